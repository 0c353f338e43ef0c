"""Rows of dots with intervals, which most of the report's charts are, and what all charts share.

Altair writes the specifications; nothing here knows the page. Only a log axis is used for ratios and costs,
never widened to whole decades (`nice`), which would squeeze what is to be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import md5
from typing import Any

from tollbar.families import Standing
from tollbar.report import palette, words
from tollbar.report.scales import Scale

Spec = dict[str, Any]

ROW_PX = 22
SECOND_LINE = " / "
"""What stands between the two lines of a row's label."""
# A row whose label has a second line.
TALL_ROW_PX = 34


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: what stands above it, what it shows in words, and its Vega-Lite specification."""

    title: str
    description: str
    spec: Spec
    letters: int = 0
    """How long the longest name beside its rows is."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One row of a chart: an estimate with its interval, or a word in place of them."""

    label: str
    note: str
    value: float | None
    low: float | None = None
    high: float | None = None
    standing: Standing | None = None
    decided: bool = True
    """An undecided dot is drawn hollow."""
    then: float | None = None
    """What was published, where that is the comparison."""
    to: float | None = None
    """The other end, where several estimates stand in one row and `value` is the least of them."""

    @property
    def values(self) -> tuple[float | None, ...]:
        """All that its scale must hold."""
        return self.value, self.low, self.high, self.then, self.to


def scale_over(title: str, dots: Iterable[Dot], **more: Any) -> Scale:
    """The scale that holds all these dots with their intervals."""
    return Scale.over(title, (v for d in dots for v in d.values), **more)


def dot_rows(dots: Sequence[Dot], scale: Scale) -> Spec:
    """A row for each dot, in the order given: interval, estimate, and its note at the right."""
    import altair as alt

    with unvalidated():
        labels = [d.label for d in dots]
        tall = any(SECOND_LINE in label for label in labels)
        data = Data()
        rows = data.named([_values(d, scale) for d in dots])
        x = alt.X("value:Q", title=scale.title, scale=log_scale(scale), axis=scale_axis(scale))
        y = alt.Y(
            "label:N",
            title=None,
            scale=alt.Scale(domain=labels),
            # The page bounds the labels' width by the panel's.
            axis=alt.Axis(
                domain=False,
                ticks=False,
                grid=True,
                labelPadding=6,
                labelLineHeight=14,
                labelExpr=f"split(datum.label, '{SECOND_LINE}')",
            ),
        )
        base = alt.Chart(rows).encode(y=y)
        measured = base.transform_filter("isValid(datum.value)")
        standing = any(d.standing is not None for d in dots)
        layers = [
            *_frame(scale, data),
            measured.transform_filter("isValid(datum.low)")
            .mark_rule(strokeWidth=2, clip=True)
            .encode(x=alt.X("low:Q", title=scale.title), x2=alt.X2("high:Q"), stroke=standing_colour(standing)),
        ]
        if any(d.then is not None for d in dots):
            layers += _published(base, scale)
        if any(d.to is not None for d in dots):
            layers += _ranges(base, scale)
        layers += [
            measured.mark_point(size=62, strokeWidth=1.8, opacity=1, clip=True).encode(
                x=x, shape=standing_shape(standing), stroke=standing_colour(standing), fill=_fill(standing)
            ),
            base.mark_text(align="left", dx=8).encode(x=alt.value("width"), text=alt.Text("note:N")),
        ]
        return finish(
            alt.layer(*layers).properties(width="container", height=(TALL_ROW_PX if tall else ROW_PX) * len(dots)),
            data,
        )


def _values(dot: Dot, scale: Scale) -> dict[str, Any]:
    row = {
        "label": dot.label,
        "note": dot.note,
        "value": dot.value,
        # An interval that reaches zero has no place on a log axis: it ends at the frame.
        "low": None if dot.low is None else max(dot.low, scale.low),
        "high": None if dot.high is None else min(dot.high, scale.high),
        "decided": dot.decided,
    }
    if dot.standing is not None:
        row["standing"] = words.standing_words(dot.standing)
    for name, value in (("then", dot.then), ("to", dot.to)):
        if value is not None:
            row[name] = value
    return {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in row.items()}


def _frame(scale: Scale, data: Data) -> list[Any]:
    """What a ratio is read against: the band that is worth nothing, what noise alone may make, and one."""
    import altair as alt

    layers: list[Any] = []
    x = alt.X("at:Q", scale=log_scale(scale), axis=scale_axis(scale), title=scale.title)
    if scale.worth is not None:
        ends = data.named([{"at": round(1 / (1 + scale.worth), 6), "to": round(1 + scale.worth, 6)}])
        layers.append(alt.Chart(ends).mark_rect(fill=palette.colour("band"), clip=True).encode(x=x, x2=alt.X2("to:Q")))
        layers.append(alt.Chart(data.named([{"at": 1}])).mark_rule(stroke=palette.colour("ink")).encode(x=x))
    if scale.noise is not None:
        either = data.named([{"at": round(scale.noise**sign, 6)} for sign in (-1, 1)])
        layers.append(
            alt.Chart(either).mark_rule(stroke=palette.colour("muted"), strokeDash=[2, 2], clip=True).encode(x=x)
        )
    return layers


def _published(base: Any, scale: Scale) -> list[Any]:
    import altair as alt

    then = base.transform_filter("isValid(datum.then)")
    both = then.transform_filter("isValid(datum.value)")
    return [
        both.mark_rule(stroke=palette.colour("muted"), strokeDash=[2, 2], clip=True).encode(
            x=alt.X("then:Q", title=scale.title), x2=alt.X2("value:Q")
        ),
        then.mark_point(size=70, shape="diamond", strokeWidth=1.8, opacity=1, clip=True).encode(
            x=alt.X("then:Q", title=scale.title),
            stroke=alt.StrokeValue(palette.colour("ink")),
            fill=alt.FillValue(palette.colour("paper")),
        ),
    ]


def _ranges(base: Any, scale: Scale) -> list[Any]:
    """From the least estimate to the most, over the thin line of the intervals, with a mark at its far end."""
    import altair as alt

    ranged = base.transform_filter("isValid(datum.to)")
    accent = alt.StrokeValue(palette.colour("accent"))
    to = alt.X("to:Q", title=scale.title)
    return [
        ranged.mark_rule(strokeWidth=6, clip=True).encode(x=to, x2=alt.X2("value:Q"), stroke=accent),
        ranged.mark_point(size=62, strokeWidth=1.8, opacity=1, shape="circle", clip=True).encode(
            x=to, stroke=accent, fill=_fill(standing=False)
        ),
    ]


def log_scale(scale: Scale) -> Any:
    import altair as alt

    return alt.Scale(type="log", nice=False, domain=[float(f"{scale.low:.6g}"), float(f"{scale.high:.6g}")])


def scale_axis(scale: Scale) -> Any:
    import altair as alt

    return alt.Axis(values=list(scale.ticks), labelExpr=scale.labels, labelOverlap=True, grid=True)


def standing_scale(values: Sequence[str]) -> Any:
    """The scale that gives each standing its value, in the standings' own order."""
    import altair as alt

    return alt.Scale(domain=[words.standing_words(s) for s in words.STANDINGS], range=list(values))


def standing_colour(standing: bool) -> Any:
    import altair as alt

    if not standing:
        return alt.StrokeValue(palette.colour("accent"))
    colours = [palette.colour(s) for s in words.STANDINGS]
    return alt.Stroke("standing:N", scale=standing_scale(colours), legend=None)


def _fill(standing: bool) -> Any:
    import altair as alt

    hollow = alt.value(palette.colour("paper"))
    if not standing:
        return alt.condition("datum.decided", alt.value(palette.colour("accent")), hollow)
    colours = [palette.colour(s) for s in words.STANDINGS]
    filled = alt.Fill("standing:N", scale=standing_scale(colours), legend=None)
    return alt.condition("datum.decided", filled, hollow)


def standing_shape(standing: bool) -> Any:
    import altair as alt

    if not standing:
        return alt.ShapeValue("circle")
    return alt.Shape("standing:N", scale=standing_scale(list(palette.SHAPES.values())), legend=None)


class Data:
    """The rows that a chart's layers draw, each list by a name of its own.

    Layers hold the names only: Altair copies all that a layer holds, several times for each layer.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, list[Any]] = {}

    def named(self, values: list[Any]) -> Any:
        """What a layer takes in place of the rows themselves."""
        import altair as alt

        name = f"data-{md5(json.dumps(values).encode(), usedforsecurity=False).hexdigest()}"
        self.by_name[name] = values
        return alt.NamedData(name=name)


def finish(chart: Any, data: Data) -> Spec:
    """The chart as Vega-Lite, without Altair's own configuration and the address of its schema."""
    spec: Spec = chart.to_dict(validate=False)
    spec["datasets"] = data.by_name
    spec.pop("$schema", None)
    spec.pop("config", None)
    # Text that runs out of the frame (the notes at the right) counts as part of what is fitted in; its width is
    # estimated, and some fonts run wider.
    spec["padding"] = {"left": 2, "top": 4, "bottom": 4, "right": 22}
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


@contextmanager
def unvalidated() -> Iterator[None]:
    """Altair checks each piece against its schema as it is made: the tests do that, a page need not."""
    from altair.utils import schemapi

    with schemapi.debug_mode(False):
        yield
