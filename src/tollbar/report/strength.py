"""Cost against strength: where each choice stands, and the cheapest that gives at least so many bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from tollbar.catalogue import Standing
from tollbar.judge import Measurement, StudyJudgement
from tollbar.report import palette, words
from tollbar.report.charts import (
    NANOSECONDS,
    Chart,
    Dot,
    Scale,
    Spec,
    finish,
    log_scale,
    scale_axis,
    standing_colour,
    standing_shape,
    unvalidated,
)

HEIGHT_PX = 280
# Twelve-pixel type with a little leading.
LINE_PX = 15
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
    family = study.study.study.family
    names = [n for n in words.varying(m.row for m in points) if n != "choice"]
    panels: dict[str, list[Measurement]] = {}
    for point in points:
        panels.setdefault(words.place(family, point.row.coordinates, names), []).append(point)
    return [_panel(title, found) for title, found in panels.items()]


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


def _panel(title: str, found: Sequence[Measurement]) -> Chart:
    points = [_Point(m.row.title, m.row.strength or 0, m.value, m.row.standing) for m in found]
    scale = Scale.over(
        "CPU time per operation (log scale)", [Dot(p.label, "", p.cost) for p in points], labels=NANOSECONDS
    )
    good = frontier([(p.bits, p.cost) for p in points if p.standing in IN_GOOD_STANDING])
    heard = "; ".join(f"{p.label}: {p.bits} bits, {words.amount(p.cost, 'ns/op')}" for p in points)
    return Chart(
        title, f"Cost against strength{', ' + title if title else ''}. {heard}.", _spec(points, good, scale)
    )


def _spec(points: Sequence[_Point], good: Sequence[tuple[int, float]], scale: Scale) -> Spec:
    import altair as alt

    with unvalidated():
        levels = sorted({p.bits for p in points})
        # Levels of strength lie close together (112, 128) or far apart (128, 256): in even steps all names have room.
        x = alt.X(
            "bits:O",
            title="strength in bits (even steps, not to scale)",
            scale=alt.Scale(type="point", domain=levels, padding=0.25),
            axis=alt.Axis(labelAngle=0, grid=True),
        )
        y = alt.Y("cost:Q", title=scale.title, scale=log_scale(scale), axis=scale_axis(scale))
        rows = alt.Data(
            values=[
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
        steps = alt.Data(values=[{"bits": bits, "cost": float(f"{cost:.5g}")} for bits, cost in good])
        base = alt.Chart(rows).encode(x=x)
        names = base.encode(y=alt.Y("beside:Q", title=scale.title), text="label:N")
        layers = [
            # The cheapest for "at least b bits": its cost holds from just above the weaker one, so the step comes before.
            alt.Chart(steps)
            .mark_line(interpolate="step-before", strokeDash=[5, 3], strokeWidth=1.5)
            .encode(x=x, y=y, stroke=alt.value(palette.colour("muted"))),
            base.mark_point(size=70, strokeWidth=1.8, opacity=1, filled=False).encode(
                y=y, shape=standing_shape(True), stroke=standing_colour(True), fill=_solid()
            ),
            # The names first in the colour of the paper, wider, so that no line runs through them.
            names.mark_text(align="left", dx=9, stroke=palette.colour("paper"), strokeWidth=4),
            names.mark_text(align="left", dx=9),
        ]
        return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX))


def _solid() -> object:
    import altair as alt

    from tollbar.report.charts import standing_scale

    return alt.Fill(
        "standing:N", scale=standing_scale([palette.colour(s) for s in words.STANDINGS]), legend=None
    )


def _spread(points: Sequence[_Point], scale: Scale) -> list[float]:
    """Where each point's name stands, pushed apart where names of one column would overlap."""
    span = log(scale.high / scale.low)
    least = LINE_PX / HEIGHT_PX * span
    placed: dict[int, float] = {}
    for bits in {p.bits for p in points}:
        column = sorted((i for i, p in enumerate(points) if p.bits == bits), key=lambda i: points[i].cost)
        at = [log(points[i].cost) for i in column]
        for _ in range(60):
            for a in range(len(at) - 1):
                lack = least - (at[a + 1] - at[a])
                if lack > 1e-9:
                    at[a], at[a + 1] = at[a] - lack / 2, at[a + 1] + lack / 2
        # Within the frame, from the top down and then from the bottom up.
        ceiling, ground = log(scale.high), log(scale.low)
        for a in reversed(range(len(at))):
            at[a] = ceiling = min(at[a], ceiling)
            ceiling -= least
        for a in range(len(at)):
            at[a] = ground = max(at[a], ground)
            ground += least
        placed |= dict(zip(column, at, strict=True))
    return [exp(placed[i]) for i in range(len(points))]
