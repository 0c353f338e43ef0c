"""Cost against strength: where each choice stands, and the cheapest that gives at least so many bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

from tollbar.families import Standing
from tollbar.judge import Measurement, StudyJudgement
from tollbar.report import palette, words
from tollbar.report.cells import split
from tollbar.report.charts import (
    Chart,
    Data,
    Spec,
    finish,
    log_scale,
    scale_axis,
    standing_colour,
    standing_scale,
    standing_shape,
    unvalidated,
)
from tollbar.report.costs import cost_words
from tollbar.report.labels import labels, places
from tollbar.report.scales import NANOSECONDS, Scale

HEIGHT_PX = 280
# Twelve-pixel type with a little leading, its mean letter, and a point with the room around it.
LINE_PX, LETTER_PX, MARK_PX = 14, 6.5, 10
# More levels of strength than this and their names need the page's whole width.
MOST_LEVELS = 5
# About what the plot has of a page's width, alone and beside another.
WIDE_PX, NARROW_PX = 1000, 430
# What one may choose today: only these make the frontier.
IN_GOOD_STANDING = (Standing.RECOMMENDED, Standing.ACCEPTABLE)


def strength_charts(study: StudyJudgement) -> list[Chart]:
    """A panel for each provider and setting; nothing for a family whose choices have no strengths."""
    points = [
        m
        for m in words.by_row(study, words.cost_metric(study)).values()
        if m.row.strength is not None and m.row.standing is not Standing.NULL
    ]
    if len({m.row.strength for m in points}) < 2:
        return []
    about = study.study.study
    # As with the tolls: what has one baseline is compared within a panel.
    inside = [n for n in split(study, [m.row for m in points])[0] if n != "provider" or n in about.baseline] or [
        "choice"
    ]
    titled = [n for n in words.varying(m.row for m in points) if n not in inside]
    label, place = labels(study, inside), places(study)
    panels: dict[str, list[Measurement]] = {}
    for point in points:
        title = place(point.row.coordinates, titled)
        panels.setdefault(title, []).append(point)
    return [
        _panel(title, cost_words(study).title, [_point(label(m.row), m) for m in found])
        for title, found in panels.items()
        if len({m.row.strength for m in found}) > 1
    ]


@dataclass(frozen=True, slots=True)
class _Point:
    label: str
    bits: int
    cost: float
    standing: Standing


def frontier(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Of (bits, cost) pairs, those that nothing at least as strong undercuts; weakest first."""
    kept: list[tuple[int, float]] = []
    for bits, cost in sorted(points, key=lambda p: (-p[0], p[1])):
        if not kept or cost < kept[-1][1]:
            kept.append((bits, cost))
    return kept[::-1]


def _point(label: str, measured: Measurement) -> _Point:
    row = measured.row
    return _Point(label, row.strength or 0, measured.value, row.standing)


def _panel(title: str, cost: str, points: Sequence[_Point]) -> Chart:
    scale = Scale.over(f"{cost} (log scale)", [p.cost for p in points], labels=NANOSECONDS)
    # Room below the lowest name, so that it does not stand on the axis.
    scale = replace(scale, low=scale.low * (scale.low / scale.high) ** (LINE_PX / HEIGHT_PX))
    good = frontier([(p.bits, p.cost) for p in points if p.standing in IN_GOOD_STANDING])
    heard = "; ".join(f"{p.label}: {p.bits} bits, {words.amount(p.cost, 'ns/op')}" for p in points)
    described = f"Cost against strength{', ' + title if title else ''}. {heard}."
    letters = max(len(p.label) for p in points)
    return Chart(title, described, _spec(points, good, scale), letters)


def needs_width(letters: int, levels: int) -> bool:
    """Whether names of so many letters at so many levels need the page's whole width."""
    return levels > MOST_LEVELS or letters * LETTER_PX > NARROW_PX / levels


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where the levels stand, in steps and in pixels, so that the names of the last ones have room too."""

    levels: Sequence[int]
    padding: float
    step_px: float

    @classmethod
    def of(cls, points: Sequence[_Point]) -> _Columns:
        levels = sorted({p.bits for p in points})
        letters = max(len(p.label) for p in points)
        width = WIDE_PX if needs_width(letters, len(levels)) else NARROW_PX
        name = min(MARK_PX + letters * LETTER_PX, 0.4 * width)
        # A quarter of a step to the left of the first level, and a name's length to the right of the last.
        padding = max(0.25, (name * (len(levels) - 1) + width / 4) / (width - name) / 2)
        return cls(levels, padding, width / (len(levels) - 1 + 2 * padding))


def _spec(points: Sequence[_Point], good: Sequence[tuple[int, float]], scale: Scale) -> Spec:
    import altair as alt

    with unvalidated():
        data = Data()
        columns = _Columns.of(points)
        # Levels lie close together (112, 128) or far apart (128, 256): in even steps all names have room.
        # Names stand to the right of their points, and so does most of the room.
        align = round(0.125 / columns.padding, 3)
        x = alt.X(
            "bits:O",
            title="strength in bits (even steps, not to scale)",
            scale=alt.Scale(type="point", domain=columns.levels, padding=round(columns.padding, 3), align=align),
            axis=alt.Axis(labelAngle=0, grid=True),
        )
        y = alt.Y("cost:Q", title=scale.title, scale=log_scale(scale), axis=scale_axis(scale))
        rows = data.named(
            [
                {
                    "label": p.label,
                    "bits": p.bits,
                    "cost": float(f"{p.cost:.5g}"),
                    "beside": float(f"{beside:.5g}"),
                    "standing": words.standing_words(p.standing),
                }
                for p, beside in zip(points, _spread(points, scale), strict=True)
            ]
        )
        steps = data.named([{"bits": bits, "cost": float(f"{cost:.5g}")} for bits, cost in good])
        base = alt.Chart(rows).encode(x=x)
        names = base.encode(y=alt.Y("beside:Q", title=scale.title), text=alt.Text("label:N"))
        layers = [
            # The cheapest for "at least b bits": its cost holds from just above the weaker one on.
            alt.Chart(steps)
            .mark_line(interpolate="step-before", strokeDash=[5, 3], strokeWidth=1.5)
            .encode(x=x, y=y, stroke=alt.StrokeValue(palette.colour("muted"))),
            # The names once in the colour of the paper and wider, so that no line runs through them.
            names.mark_text(align="left", dx=9, stroke=palette.colour("paper"), strokeWidth=4),
            base.mark_point(size=70, strokeWidth=1.8, opacity=1, filled=False).encode(
                y=y, shape=standing_shape(True), stroke=standing_colour(True), fill=_solid()
            ),
            names.mark_text(align="left", dx=9),
        ]
        return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX), data)


def _solid() -> object:
    import altair as alt

    return alt.Fill("standing:N", scale=standing_scale([palette.colour(s) for s in words.STANDINGS]), legend=None)


def _spread(points: Sequence[_Point], scale: Scale) -> list[float]:
    """Where each point's name stands: at the point, or at the nearest height where it covers nothing else."""
    columns = _Columns.of(points)
    px = HEIGHT_PX / log(scale.high / scale.low)
    marks = [(columns.levels.index(p.bits) * columns.step_px, log(p.cost / scale.low) * px) for p in points]
    # Each taken place as left, right and middle height, from the bottom of the plot.
    taken = [(x - MARK_PX / 2, x + MARK_PX / 2, y) for x, y in marks]
    beside = [0.0] * len(points)
    for i in sorted(range(len(points)), key=lambda i: marks[i]):
        x, y = marks[i]
        left, right = x + MARK_PX, x + MARK_PX + LETTER_PX * len(points[i].label)
        near = sorted((step * LINE_PX / 3 for step in range(-45, 46)), key=abs)
        free = (
            y + off
            for off in near
            if LINE_PX / 2 <= y + off <= HEIGHT_PX
            and not any(left < end and start < right and abs(y + off - at) < LINE_PX for start, end, at in taken)
        )
        height = next(free, y)
        taken.append((left, right, height))
        beside[i] = scale.low * exp(height / px)
    return beside
