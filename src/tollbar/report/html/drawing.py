"""Drawing: from a chart's data to its Vega-Lite specification, by a JSON template in `charts/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tollbar.report.chart import SECOND_LINE, Dot, Dots, Drift, Scale, Strengths
from tollbar.report.html import palette
from tollbar.report.html.layout import HEIGHT_PX, LINE_PX, Columns, spread, ticks
from tollbar.report.numbers import amount
from tollbar.report.sections.cpu import Bars, Timeline
from tollbar.report.sections.factors import Waterfall
from tollbar.report.sections.load import Curves, is_hollow
from tollbar.report.sections.published.drawn import Rates, Use
from tollbar.report.standings import STANDINGS, standing_words

Spec = dict[str, Any]

ROW_PX = 22
# Height of a row whose label has a second line.
TALL_ROW_PX = 34
# Height of the plot of a processor's use, without the names of its phases.
USE_PX = 150


def spec_of(data: object) -> Spec:
    """Return the specification of the chart for these data, without a title."""
    name, values = _CHARTS[type(data)]
    written = _templates().get_template(f"{name}.json.jinja").render(chart=data, **values(data))
    spec: Spec = json.loads(written)
    return spec


@cache
def _templates() -> Environment:
    # Outside texts are written by `tojson`; the page escapes the whole again.
    templates = Environment(
        loader=PackageLoader("tollbar.report.html", "charts"), autoescape=False, undefined=StrictUndefined
    )
    templates.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False}
    templates.globals |= {
        "ticks": ticks,
        "standings": [standing_words(s) for s in STANDINGS],
        "standing_colours": [f"var(--{s})" for s in STANDINGS],
        "standing_shapes": list(palette.SHAPES.values()),
    }
    return templates


def _dots(data: Dots) -> Mapping[str, object]:
    tall = any(SECOND_LINE in d.label for d in data.dots)
    return {
        "rows": [_dot(d, data.scale) for d in data.dots],
        "standing": any(d.standing is not None for d in data.dots),
        "height": (TALL_ROW_PX if tall else ROW_PX) * len(data.dots),
    }


def _dot(dot: Dot, scale: Scale) -> Mapping[str, object]:
    row: dict[str, object] = {
        "label": dot.label,
        "note": dot.note,
        "value": _short(dot.value),
        # An interval that reaches zero cannot be drawn on a log axis: it ends at the frame.
        "low": None if dot.low is None else _short(max(dot.low, scale.low)),
        "high": None if dot.high is None else _short(min(dot.high, scale.high)),
        "decided": dot.decided,
    }
    if dot.cell is not None:
        row["cell"] = dot.cell
    if dot.standing is not None:
        row["standing"] = standing_words(dot.standing)
    return row | {name: _short(value) for name, value in (("then", dot.then), ("to", dot.to)) if value is not None}


def _curves(data: Curves) -> Mapping[str, object]:
    numbers = [line.number for line in data.lines]
    shown = {"value": data.metric} | ({"to": data.to} if data.to else {})
    return {
        "rows": [
            {
                "line": line.label,
                "load": p.load,
                "hollow": is_hollow(p, data.metric),
                **{n: _short(p.values[m]) for n, m in shown.items() if m in p.values},
            }
            for line in data.lines
            for p in line.points
        ],
        "loads": sorted({p.load for line in data.lines for p in line.points}),
        "colours": [palette.line_colour(n) for n in numbers],
        "shapes": [palette.line_shape(n) for n in numbers],
        "dashes": [palette.line_dash(n) for n in numbers],
    }


def _bars(data: Bars) -> Mapping[str, object]:
    return {
        "rows": [
            {"label": bar.label, "part": name, "order": data.parts.index(name), "value": _short(value)}
            for bar in data.bars
            for name, value in bar.parts.items()
        ],
        "notes": [
            {"label": bar.label, "note": " + ".join(amount(v, "ns") for v in bar.parts.values())} for bar in data.bars
        ],
        "colours": [palette.part_colour(i) for i in range(len(data.parts))],
        "height": ROW_PX * len(data.bars),
    }


def _timeline(data: Timeline) -> Mapping[str, object]:
    parts = {part: number for number, part in enumerate(data.parts)}
    return {
        # Short names, because with many points they are most of the size.
        "rows": [
            {"op": number, "at": round(number + moment.at, 3), "ns": round(float(f"{paid:.4g}"), 1), "by": parts[part]}
            for number, phase in enumerate(data.phases)
            for moment in phase.moments
            for part, paid in moment.paid.items()
        ],
        "names": [
            {"at": number + 0.5, "says": [*phase.titles, amount(phase.lasted_ns, "ns")]}
            for number, phase in enumerate(data.phases)
        ],
        "colours": [palette.part_colour(i) for i in range(len(data.parts))],
    }


def _rates(data: Rates) -> Mapping[str, object]:
    return {
        "rows": [
            {
                "group": one.group,
                "series": one.series,
                "limited": one.limit is not None,
                **({} if one.measured is None else {"value": _short(one.measured)}),
                **({} if one.of_a_core is None else {"core": _short(one.of_a_core)}),
            }
            for one in data.rates
        ],
        "colours": [palette.part_colour(i + 1) for i in range(len(data.series))],
    }


def _use(data: Use) -> Mapping[str, object]:
    last_s = data.phases[-1].until_s
    rows = []
    for phase in data.phases:
        for moment in phase.moments:
            below = 0.0
            for part, busy in moment.busy.items():
                ends = {"from": _short(moment.since_s), "to": _short(moment.until_s)}
                rows.append({**ends, "low": _short(below), "high": _short(below + busy), "by": part})
                below += busy
    return {
        "rows": rows,
        # A phase may be too narrow for its name, so each has a line of its own above the plot.
        "names": [
            {
                "at": _short(phase.since_s),
                "y": LINE_PX * (number + 1),
                "says": ": ".join(phase.titles),
                "left": phase.since_s < last_s / 2,
            }
            for number, phase in enumerate(data.phases)
        ],
        "top": LINE_PX * (len(data.phases) + 1),
        "height": LINE_PX * (len(data.phases) + 1) + USE_PX,
        "last": _short(last_s),
        "colours": [palette.part_colour(i) for i in range(len(data.parts))],
    }


def _strength(data: Strengths) -> Mapping[str, object]:
    # Room below the lowest name, so that it does not touch the axis.
    low = data.scale.low * (data.scale.low / data.scale.high) ** (LINE_PX / HEIGHT_PX)
    scale = replace(data.scale, low=low)
    columns = Columns.of(data.points)
    return {
        "rows": [
            {
                "label": p.label,
                "bits": p.bits,
                "cost": _short(p.cost),
                "beside": _short(beside),
                "standing": standing_words(p.standing),
            }
            for p, beside in zip(data.points, spread(data.points, columns, scale), strict=True)
        ],
        "steps": [{"bits": bits, "cost": _short(cost)} for bits, cost in data.frontier],
        "scale": scale,
        "columns": columns,
        "height": HEIGHT_PX,
    }


def _waterfall(data: Waterfall) -> Mapping[str, object]:
    steps = data.steps
    return {
        "rows": [
            {"label": s.label, "from": _short(s.start), "to": _short(s.end), "kind": s.kind, "note": s.note}
            for s in steps
        ],
        # Undecided remainders are hollow.
        "colours": [*(palette.part_colour(i) for i in range(3)), "transparent"],
        "strokes": [*(["transparent"] * 3), palette.part_colour(2)],
        "height": ROW_PX * len(steps),
    }


def _short(value: float | None) -> float | None:
    """Return a number to five figures: further ones are noise, and add size."""
    return None if value is None else float(f"{value:.5g}")


# Template of each type of data, with a function for the values that the template needs in addition.
_CHARTS: Mapping[type, tuple[str, Callable[[Any], Mapping[str, object]]]] = {
    Dots: ("dots", _dots),
    Curves: ("curves", _curves),
    Bars: ("bars", _bars),
    Timeline: ("timeline", _timeline),
    Rates: ("rates", _rates),
    Use: ("use", _use),
    Strengths: ("strength", _strength),
    Waterfall: ("waterfall", _waterfall),
    Drift: ("drift", lambda _: {}),
}
