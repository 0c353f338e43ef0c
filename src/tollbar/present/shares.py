"""Where the CPU goes: the load client's and each component's share of a request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar import units
from tollbar.judge import StudyJudgement
from tollbar.measure import Outcome, trial
from tollbar.present import words
from tollbar.present.cells import labels, places, split, whole_labels
from tollbar.present.shapes import Cell, Chart, Table, numbers, texts
from tollbar.results import Row

CLIENT = "load client"
"""What the component of the load client is called on the page. It is the first part of every bar."""


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


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars, on an axis from nought that all panels share."""

    bars: Sequence[Bar]
    parts: Sequence[str]
    most: float


def parts_of(study: StudyJudgement) -> tuple[str, ...]:
    """The client and every component of any server, in the order in which they are met."""
    names = dict.fromkeys(name for row in study.rows for name in components_of(row))
    return (CLIENT, *(n for n in names if n != trial.CLIENT)) if trial.CLIENT in names else ()


def components_of(row: Row) -> tuple[str, ...]:
    """Whose CPU time a cell's chunks account for; every chunk of a trial has the same."""
    return tuple(dict.fromkeys(name for t in row.trials if t.chunks for name in t.chunks[0].cpu_ns))


def bars(study: StudyJudgement) -> list[Bar]:
    """A bar for each cell of which both sides are known, the least of server CPU first."""
    label = whole_labels(study)
    # By cell, then by metric and component.
    measured: dict[str, dict[tuple[str, str | None], float]] = defaultdict(dict)
    for m in study.measurements:
        measured[m.row.key][m.metric, m.component] = m.value
    found = [
        Bar(row, label(row), parts)
        for row in study.rows
        if row.outcome is Outcome.OK and len(parts := _parts(row, measured[row.key])) > 1
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
    in_rows, in_panels = split(study, [bar.row for bar in found])
    label, place = labels(study, in_rows), places(study)
    # In the rows' order, as the tolls' panels are, and not by what happens to be cheapest.
    panels: dict[str, list[Bar]] = {place(row.coordinates, in_panels): [] for row in study.rows}
    for bar in found:
        panels[place(bar.row.coordinates, in_panels)].append(Bar(bar.row, label(bar.row), bar.parts))
    most = max((sum(bar.parts.values()) for bar in found), default=0.0)
    return [_chart(title, Bars(inside, parts_of(study), most)) for title, inside in panels.items() if inside]


def _chart(title: str, data: Bars) -> Chart:
    said = "; ".join(
        f"{bar.label}: " + ", ".join(f"{name} {words.amount(v, 'ns')}" for name, v in bar.parts.items())
        for bar in data.bars
    )
    where = f", {title}" if title else ""
    letters = max(len(bar.label) for bar in data.bars)
    return Chart(title, f"CPU time per request by part{where}. {said}.", data, letters)


def shares_table(study: StudyJudgement, parts: Sequence[str]) -> Table:
    """The bars as a table."""
    columns = (*texts("cell"), *numbers(*parts, "both sides", "the server's share"))
    rows = []
    for bar in bars(study):
        both = sum(bar.parts.values())
        each = [
            Cell(units.show_nanoseconds(bar.parts[part]), bar.parts[part]) if part in bar.parts else Cell("–")
            for part in parts
        ]
        share = bar.server / both
        rows.append([Cell(bar.label), *each, Cell(units.show_nanoseconds(both), both), Cell(f"{share:.0%}", share)])
    return Table("CPU time per request, part by part", columns, rows, sortable=True)
