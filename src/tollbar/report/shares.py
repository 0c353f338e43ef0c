"""Where the CPU goes: the load client's and each server component's share of a request, stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar.judge import StudyJudgement
from tollbar.measure import Outcome, trial
from tollbar.report import palette, words
from tollbar.report.cells import split
from tollbar.report.charts import ROW_PX, Chart, Data, Spec, finish, unvalidated
from tollbar.report.labels import cell_names, labels, places
from tollbar.report.scales import NANOSECONDS
from tollbar.results import Row

CLIENT = "load client"
"""What the component of the load client is called on the page."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One cell's CPU time per request, part by part."""

    row: Row
    label: str
    parts: Mapping[str, float]
    """Nanoseconds per request: the client, then each component."""

    @property
    def server(self) -> float:
        """All of it but the client's."""
        return sum(value for name, value in self.parts.items() if name != CLIENT)


def parts_of(study: StudyJudgement) -> tuple[str, ...]:
    """The client and every component of any server, in the order in which they are met."""
    names = dict.fromkeys(name for row in study.study.rows for name in components_of(row))
    return (CLIENT, *(n for n in names if n != trial.CLIENT)) if trial.CLIENT in names else ()


def components_of(row: Row) -> tuple[str, ...]:
    """Whose CPU time a cell's chunks account for; every chunk of a trial has the same."""
    return tuple(dict.fromkeys(name for t in row.trials if t.chunks for name in t.chunks[0].cpu_ns))


def colour_of(parts: Sequence[str], part: str) -> str:
    """A part's colour: the same in bars and curves. The client is no part of the cost, and grey."""
    return palette.colour("muted") if part == CLIENT else palette.line_colour(parts.index(part) - 1)


def bars(study: StudyJudgement) -> list[Bar]:
    """A bar for each cell of which both sides are known, the least of server CPU first."""
    label = labels(study, cell_names(study), whole=True)
    # By cell, then by metric and component.
    measured: dict[str, dict[tuple[str, str | None], float]] = {}
    for m in study.measurements:
        measured.setdefault(m.row.key, {})[m.metric, m.component] = m.value
    found = [
        Bar(row, label(row), parts)
        for row in study.study.rows
        if row.outcome is Outcome.OK and len(parts := _parts(row, measured.get(row.key, {}))) > 1
    ]
    return sorted(found, key=lambda bar: bar.server)


def _parts(row: Row, measured: Mapping[tuple[str, str | None], float]) -> dict[str, float]:
    """The undisturbed costs, by part: a component alone costs what the server costs."""
    components = [name for name in components_of(row) if name != trial.CLIENT]
    whole = measured.get(("server-cpu", None)) if len(components) == 1 else None
    parts = {CLIENT: measured.get(("client-cpu", None))}
    parts |= {name: measured.get(("server-cpu", name), whole) for name in components}
    return {name: value for name, value in parts.items() if value is not None}


def share_charts(study: StudyJudgement) -> list[Chart]:
    """The bars, in the same panels as the tolls."""
    found = bars(study)
    parts = parts_of(study)
    in_rows, in_panels = split(study, [bar.row for bar in found])
    label = labels(study, in_rows)
    most = max((sum(bar.parts.values()) for bar in found), default=0.0)
    # In the rows' order, as the tolls' panels are, and not by what happens to be cheapest.
    place = places(study)
    titles = (place(row.coordinates, in_panels) for row in study.study.rows)
    panels: dict[str, list[Bar]] = {title: [] for title in titles}
    for bar in found:
        panels.setdefault(place(bar.row.coordinates, in_panels), []).append(Bar(bar.row, label(bar.row), bar.parts))
    return [_chart(title, inside, parts, most) for title, inside in panels.items() if inside]


def _chart(title: str, inside: Sequence[Bar], parts: Sequence[str], most: float) -> Chart:
    heard = "; ".join(
        f"{bar.label}: " + ", ".join(f"{name} {words.amount(v, 'ns')}" for name, v in bar.parts.items())
        for bar in inside
    )
    where = f", {title}" if title else ""
    return Chart(
        title,
        f"CPU time per request by part{where}. {heard}.",
        _spec(inside, parts, most),
        max(len(b.label) for b in inside),
    )


def _spec(inside: Sequence[Bar], parts: Sequence[str], most: float) -> Spec:
    import altair as alt

    with unvalidated():
        data = Data()
        rows = data.named(
            [
                {"label": bar.label, "part": name, "order": parts.index(name), "value": float(f"{value:.5g}")}
                for bar in inside
                for name, value in bar.parts.items()
            ]
        )
        notes = data.named(
            [
                {
                    "label": bar.label,
                    "at": float(f"{sum(bar.parts.values()):.5g}"),
                    "note": " + ".join(words.amount(v, "ns") for v in bar.parts.values()),
                }
                for bar in inside
            ]
        )
        y = alt.Y(
            "label:N",
            title=None,
            scale=alt.Scale(domain=[bar.label for bar in inside]),
            axis=alt.Axis(domain=False, ticks=False, labelPadding=6),
        )
        x = alt.X(
            "value:Q",
            title="CPU time per request",
            scale=alt.Scale(domain=[0, float(f"{most * 1.02:.5g}")], nice=False),
            axis=alt.Axis(labelExpr=NANOSECONDS, tickCount=5, grid=True, labelOverlap=True),
        )
        colours = alt.Scale(domain=list(parts), range=[colour_of(parts, part) for part in parts])
        stacked = (
            alt.Chart(rows)
            .mark_bar(height={"band": 0.68})
            .encode(x=x, y=y, fill=alt.Fill("part:N", scale=colours, legend=None), order=alt.Order("order:Q"))
        )
        noted = (
            alt.Chart(notes).mark_text(align="left", dx=8).encode(x=alt.value("width"), y=y, text=alt.Text("note:N"))
        )
        return finish(alt.layer(stacked, noted).properties(width="container", height=ROW_PX * len(inside)), data)
