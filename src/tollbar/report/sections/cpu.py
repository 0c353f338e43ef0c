"""CPU time by part: the share of each part in an operation, chunk by chunk of a visit, and memory next to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tollbar.analysis import StudyJudgement
from tollbar.catalog.families import Value
from tollbar.core import units
from tollbar.core.metrics import Metric
from tollbar.core.records import Chunk, Chunks, Outcome, Trial, trial
from tollbar.core.words import counted, enumeration
from tollbar.report.blocks import (
    Chart,
    Folded,
    Legend,
    Paragraph,
    Section,
    Table,
    TableCell,
    figures,
    numbers,
    part_keys,
    standing_keys,
    texts,
)
from tollbar.report.chart import Scale, memory_charts
from tollbar.report.coordinates import named_value
from tollbar.report.costs import cost_words
from tollbar.report.groups import AtOneLoad, at_spot, by_row, cost_metric, covers, facet_names, facet_sizes, split, spot
from tollbar.report.names import labels, place_words, varied, varying, whole_labels
from tollbar.report.numbers import amount, percent
from tollbar.report.view import once
from tollbar.results import Row

CLIENT = "load client"
"""Name of the load client's component on the page. It is the first part of every bar."""
OWN_CLIENT = "client"
"""Name of the client if its work is part of the cost, as an application's encryption is."""
PROCESS = "the process itself"


@dataclass(frozen=True, slots=True)
class Bar:
    """CPU time per request of one cell, part by part."""

    row: Row
    label: str
    parts: Mapping[str, float]
    """Nanoseconds per request: the client, then each component."""

    @property
    def server(self) -> float:
        """Nanoseconds of all parts but the client's."""
        return sum(value for name, value in self.parts.items() if name not in (CLIENT, OWN_CLIENT))


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars, on an axis from zero that all panels of one operation share."""

    bars: Sequence[Bar]
    parts: Sequence[str]
    most: float
    title: str
    """Title of the axis, with the unit of work."""


@once
def payers(study: StudyJudgement) -> dict[str, str]:
    """Return all components that a study's chunks account for, with their names on the page: a client first."""
    names = dict.fromkeys(name for components in components_by_cell(study).values() for name in components)
    trials = (t for row in study.rows for t in row.trials if t.chunks)
    client = OWN_CLIENT if any(trial.CLIENT in t.paid_by for t in trials) and not _is_asked_only(study) else CLIENT
    called = {trial.CLIENT: client, trial.RUNNER: PROCESS}
    return {name: called.get(name, name) for name in sorted(names, key=lambda name: name != trial.CLIENT)}


def _is_asked_only(study: StudyJudgement) -> bool:
    """Return whether the server's processes are unknown, so that a load client's own CPU time is the cost."""
    return cost_metric(study) == "client-cpu"


def parts_of(study: StudyJudgement) -> tuple[str, ...]:
    """Return the client and every component of any server, in the order of first appearance."""
    found = payers(study)
    return tuple(found.values()) if trial.CLIENT in found else ()


def per_words(study: StudyJudgement) -> str:
    """Return the title of the parts: `CPU time per connection`."""
    return f"CPU time per {cost_words(study).each}"


def components_of(row: Row) -> tuple[str, ...]:
    """Return the components of a cell's chunks."""
    return tuple(dict.fromkeys(name for t in row.trials for name in Chunks.of(t.chunks).components))


@once
def components_by_cell(study: StudyJudgement) -> Mapping[str, tuple[str, ...]]:
    """Return the components of each cell's chunks, by the cell's key."""
    return {row.key: components_of(row) for row in study.rows}


@once
def bars(study: StudyJudgement) -> list[Bar]:
    """Return a bar for each cell with both sides known, the least server CPU first."""
    label = whole_labels(study)
    # By cell, then by metric and component.
    measured: dict[str, dict[tuple[str, str | None], float]] = defaultdict(dict)
    for m in study.measurements:
        measured[m.row.key][m.metric, m.component] = m.value
    names, components = payers(study), components_by_cell(study)
    found = [
        Bar(row, label(row), {names[component]: value for component, value in parts.items()})
        for row in study.rows
        if row.outcome is Outcome.OK
        and len(parts := _parts(components[row.key], measured[row.key], cost_metric(study))) > 1
    ]
    return sorted(found, key=lambda bar: bar.server)


def _parts(components: Sequence[str], measured: Mapping[tuple[str, str | None], float], cost: str) -> dict[str, float]:
    """Return the quiet costs by component; a component that pays the cost alone pays the whole."""
    payers = [name for name in components if name != trial.CLIENT]
    whole = measured.get((cost, None)) if len(payers) == 1 and cost == "server-cpu" else None
    parts = {name: measured.get((cost, name), whole) for name in payers}
    if trial.CLIENT in components:
        parts = {trial.CLIENT: measured.get((cost, trial.CLIENT), measured.get(("client-cpu", None)))} | parts
    return {name: value for name, value in parts.items() if value is not None}


def share_charts(study: StudyJudgement) -> list[Chart]:
    """Return the bars, in the same panels as the tolls."""
    found = bars(study)
    in_rows, in_panels = split(study, [bar.row for bar in found])
    label, place = labels(study, in_rows), place_words(study)
    # In the rows' order, as the tolls' panels are, not in the order of costs.
    panels: dict[str, list[Bar]] = {place(row.coordinates, in_panels): [] for row in study.rows}
    for bar in found:
        panels[place(bar.row.coordinates, in_panels)].append(Bar(bar.row, label(bar.row), bar.parts))
    # Panels of one operation share their axis: the cost of writing would vanish on the axis of reading.
    most: dict[Value | None, float] = {}
    for bar in found:
        operation = bar.row.coordinates.get("op")
        most[operation] = max(most.get(operation, 0.0), sum(bar.parts.values()))
    parts, per = parts_of(study), per_words(study)
    return [
        _bars_chart(title, Bars(inside, parts, max(most[bar.row.coordinates.get("op")] for bar in inside), per))
        for title, inside in panels.items()
        if inside
    ]


def _bars_chart(title: str, data: Bars) -> Chart:
    said = "; ".join(
        f"{bar.label}: " + ", ".join(f"{name} {amount(v, 'ns')}" for name, v in bar.parts.items()) for bar in data.bars
    )
    where = f", {title}" if title else ""
    letters = max(len(bar.label) for bar in data.bars)
    return Chart(title, f"{data.title} by part{where}. {said}.", data, letters)


def shares_table(study: StudyJudgement, parts: Sequence[str]) -> Table:
    """Return the bars as a table."""
    columns = (*texts("cell"), *numbers(*parts, "both sides", "the server's share"))
    rows = []
    for bar in bars(study):
        both = sum(bar.parts.values())
        each = [
            TableCell(units.show_nanoseconds(bar.parts[part]), bar.parts[part]) if part in bar.parts else TableCell("–")
            for part in parts
        ]
        share = bar.server / both
        rows.append(
            [
                TableCell(bar.label),
                *each,
                TableCell(units.show_nanoseconds(both), both),
                TableCell(percent(round(share, 2)), share),
            ]
        )
    return Table(f"{per_words(study)}, part by part", columns, rows, sortable=True)


# With more operations side by side there is no room for their names.
MOST_PHASES = 4
# Limit for one operation; neighbouring chunks of a longer visit are drawn as one.
MOST_POINTS = 40
# Parts below this share of a chunk are not drawn: one idle component must not flatten all the others.
LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Moment:
    """Chunk, or a few neighbouring ones."""

    at: float
    """Middle of its time, as a share of its phase's."""
    paid: Mapping[str, float]
    """Nanoseconds per operation, by part."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Visit to one cell."""

    titles: Sequence[str]
    """Operation, then the other differences from its neighbours."""
    lasted_ns: int
    """Elapsed time of all its chunks; between them the other cells of its batch had the core."""
    moments: Sequence[Moment]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Phases side by side, as if one visit had performed one after the other."""

    phases: Sequence[Phase]
    parts: Sequence[str]
    apart: int
    """Number of the last parts that are not in a chunk's own cost: work that was put off until after it."""
    scale: Scale


def timeline_parts(study: StudyJudgement) -> tuple[str, ...]:
    """Return all parts that the study's charts over time distinguish."""
    return (*payers(study).values(), *(metric.title for metric in _put_off(study)))


def put_off_words(study: StudyJudgement) -> str:
    """Return the meaning of the dashed lines, if there are any."""
    titles = [metric.title for metric in _put_off(study)]
    return f"Dashed, not part of a chunk's cost: {enumeration(titles)}, done after each chunk." if titles else ""


def timeline_charts(study: StudyJudgement) -> list[Chart]:
    """Return a panel for each choice on its server and library, operations side by side; empty if one part pays all.

    Each operation is one visit: of the cell's visits, the one with the median cost.
    """
    parts = timeline_parts(study)
    if len(parts) < 2:
        return []
    measured = by_row(study, cost_metric(study))
    visits = {row.key: found for row in study.rows if row.key in measured and (found := median_trial(row))}
    rows = [row for row in study.rows if row.key in visits]
    told = [name for name in varying(rows) if name != "op"]
    names = facet_names([r.coordinates for r in rows], told, ("choice", "server", "provider"), MOST_PHASES)
    place = place_words(study)
    operations = list(dict.fromkeys(row.coordinates.get("op") for row in rows))
    panels = {
        place(at_spot(names, whole), names): [
            _phase(study, row, names, visits[row.key])
            for row in sorted(rows, key=lambda row: operations.index(row.coordinates.get("op")))
            if covers(spot(row, names), whole)
        ]
        for whole in facet_sizes([r.coordinates for r in rows], names)
    }
    paid = [ns for phases in panels.values() for phase in phases for m in phase.moments for ns in m.paid.values()]
    scale = Scale.over(cost_words(study).title, paid, "ns")
    apart = len(_put_off(study))
    return [_timeline_chart(title, Timeline(phases, parts, apart, scale)) for title, phases in panels.items()]


def median_trial(row: Row) -> Trial | None:
    """Return the cell's trial with the median cost; of two in the middle, the cheaper."""
    trials = [t for t in row.trials if t.outcome is Outcome.OK and t.operations > 0]
    return sorted(trials, key=lambda t: t.cost_ns)[(len(trials) - 1) // 2] if trials else None


def moments(study: StudyJudgement, visit: Trial) -> list[Moment]:
    """Return a visit's chunks in the order of time, at most as many as a chart can show."""
    paying, put_off = payers(study), _put_off(study)
    chunks = [chunk for chunk in visit.chunks if chunk.operations > 0 and chunk.wall_ns > 0]
    lasted_ns, passed_ns = sum(chunk.wall_ns for chunk in chunks), 0
    found = []
    step = max(1, -(-len(chunks) // MOST_POINTS))
    for first in range(0, len(chunks), step):
        together = chunks[first : first + step]
        wall_ns = sum(chunk.wall_ns for chunk in together)
        spent = dict(_spent(together, paying, put_off))
        least = LEAST_SHARE * sum(spent.values())
        paid = {part: ns / sum(c.operations for c in together) for part, ns in spent.items() if ns > least}
        found.append(Moment((passed_ns + wall_ns / 2) / lasted_ns, paid))
        passed_ns += wall_ns
    return found


def _spent(
    chunks: Sequence[Chunk], paying: Mapping[str, str], put_off: Sequence[Metric]
) -> Iterator[tuple[str, float]]:
    for component, part in paying.items():
        yield part, sum(chunk.cpu_ns.get(component, 0) for chunk in chunks)
    for metric in put_off:
        yield metric.title, sum(chunk.observed.get(("", metric.name), 0.0) for chunk in chunks)


@once
def _put_off(study: StudyJudgement) -> list[Metric]:
    """Return the metrics of CPU time that runners observed in addition to a chunk's own."""
    seen = {name for r in study.rows for t in r.trials for _, name in Chunks.of(t.chunks).observed_at_first}
    return [m for m in study.about.family.metrics.values() if m.name in seen and m.unit == "ns/op"]


def _phase(study: StudyJudgement, row: Row, names: Sequence[str], visit: Trial) -> Phase:
    """Return the phase of one cell; settings at their default are not named."""
    family = study.about.family
    settings = family.settings
    differ = [n for n in varied(study) if n in row.coordinates and n not in ("op", *names)]
    said = [n for n in differ if n not in settings or row.coordinates[n] != settings[n].default]
    titles = [str(row.coordinates.get("op", "")), *(named_value(family, n, row.coordinates[n]) for n in said)]
    return Phase(titles, visit.wall_ns, moments(study, visit))


def _timeline_chart(title: str, data: Timeline) -> Chart:
    said = "; ".join(
        f"{', '.join(phase.titles)}: "
        + enumeration(
            [
                f"{part} {amount(min(paid), 'ns')} to {amount(max(paid), 'ns')}"
                for part in data.parts
                if (paid := [m.paid[part] for m in phase.moments if part in m.paid])
            ]
        )
        for phase in data.phases
    )
    return Chart(title, f"CPU time per operation over one visit, {title}. {said}.", data)


def memory_section(study: StudyJudgement) -> Section | None:
    charts = memory_charts(study)
    keys = standing_keys([m.row for m in study.measurements])
    return Section("Memory and CPU", (Legend(keys), *figures(charts))) if charts else None


def shares_section(at: AtOneLoad) -> Section | None:
    charts = share_charts(at.study)
    if not charts:
        return None
    parts = parts_of(at.study)
    table = shares_table(at.study, parts)
    note = f"Quiet {per_words(at.study)}, on both sides. {at.note}"
    summary = f"{table.caption}: {counted(len(table.rows), 'cell')}"
    return Section(
        "Where the CPU goes",
        (Paragraph(note.strip(), "note"), part_keys(parts), *figures(charts), Folded(summary, [table])),
    )


def timeline_section(at: AtOneLoad) -> Section | None:
    charts = timeline_charts(at.study)
    if not charts:
        return None
    how = (
        "CPU time of each part for one operation, chunk by chunk, in the visit with the median cost. Operations are"
        " side by side, each over its own time."
    )
    note = f"{put_off_words(at.study)} {at.note}".strip()
    keys = part_keys(timeline_parts(at.study))
    return Section(
        "CPU over time", (Paragraph(how), Paragraph(note, "note"), keys, *figures(charts, "panels timeline"))
    )
