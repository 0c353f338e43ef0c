"""Where the CPU goes: the load client's and each component's share of an operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar import units
from tollbar.families import Value
from tollbar.judge import StudyJudgement
from tollbar.present import words
from tollbar.present.cells import cost_metric, labels, places, split, whole_labels
from tollbar.present.shapes import Cell, Chart, Table, numbers, texts
from tollbar.records import Outcome, trial
from tollbar.results import Row

CLIENT = "load client"
"""What the component of the load client is called on the page. It is the first part of every bar."""
OWN_CLIENT = "client"
"""The same where what it does is part of the cost, as an application's encryption is."""
PROCESS = "the process itself"


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
        return sum(value for name, value in self.parts.items() if name not in (CLIENT, OWN_CLIENT))


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars, on an axis from nought that all panels of one operation share."""

    bars: Sequence[Bar]
    parts: Sequence[str]
    most: float
    title: str
    """Of the axis: per what the time is."""


def payers(study: StudyJudgement) -> dict[str, str]:
    """All whose CPU time a study's chunks account for, by what the page calls them: a client first."""
    trials = [t for row in study.rows for t in row.trials if t.chunks]
    names = dict.fromkeys(name for t in trials for name in t.chunks[0].cpu_ns)
    client = OWN_CLIENT if any(trial.CLIENT in t.paid_by for t in trials) and not _is_asked_only(study) else CLIENT
    called = {trial.CLIENT: client, trial.RUNNER: PROCESS}
    return {name: called.get(name, name) for name in sorted(names, key=lambda name: name != trial.CLIENT)}


def _is_asked_only(study: StudyJudgement) -> bool:
    """Whether the server is one of which nothing is known, so that a load client's own CPU time is the cost."""
    return cost_metric(study) == "client-cpu"


def parts_of(study: StudyJudgement) -> tuple[str, ...]:
    """The client and every component of any server, in the order in which they are met."""
    found = payers(study)
    return tuple(found.values()) if trial.CLIENT in found else ()


def per_words(study: StudyJudgement) -> str:
    """What the parts are of: `CPU time per request`."""
    return f"CPU time per {'operation' if cost_metric(study) == 'cpu' else 'request'}"


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
    names = payers(study)
    found = [
        Bar(row, label(row), {names[component]: value for component, value in parts.items()})
        for row in study.rows
        if row.outcome is Outcome.OK and len(parts := _parts(row, measured[row.key], cost_metric(study))) > 1
    ]
    return sorted(found, key=lambda bar: bar.server)


def _parts(row: Row, measured: Mapping[tuple[str, str | None], float], cost: str) -> dict[str, float]:
    """The undisturbed costs, by component: one that pays the cost alone pays the whole of it."""
    components = components_of(row)
    payers = [name for name in components if name != trial.CLIENT]
    whole = measured.get((cost, None)) if len(payers) == 1 and cost == "server-cpu" else None
    parts = {name: measured.get((cost, name), whole) for name in payers}
    if trial.CLIENT in components:
        parts = {trial.CLIENT: measured.get((cost, trial.CLIENT), measured.get(("client-cpu", None)))} | parts
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
    # Panels of one operation share their axis: what writing costs would be nothing on that of reading.
    most: dict[Value | None, float] = {}
    for bar in found:
        operation = bar.row.coordinates.get("op")
        most[operation] = max(most.get(operation, 0.0), sum(bar.parts.values()))
    parts, per = parts_of(study), per_words(study)
    return [
        _chart(title, Bars(inside, parts, max(most[bar.row.coordinates.get("op")] for bar in inside), per))
        for title, inside in panels.items()
        if inside
    ]


def _chart(title: str, data: Bars) -> Chart:
    said = "; ".join(
        f"{bar.label}: " + ", ".join(f"{name} {words.amount(v, 'ns')}" for name, v in bar.parts.items())
        for bar in data.bars
    )
    where = f", {title}" if title else ""
    letters = max(len(bar.label) for bar in data.bars)
    return Chart(title, f"{data.title} by part{where}. {said}.", data, letters)


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
    return Table(f"{per_words(study)}, part by part", columns, rows, sortable=True)
