"""Figures of a source, drawn again from the cells of a run: curves over the load, bars of rates, and CPU use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tollbar.analysis import Limit, StudyJudgement
from tollbar.catalog.families import LOADS, Value
from tollbar.core.records import Trial
from tollbar.core.words import counted
from tollbar.report.blocks import Block, Chart, Figures, Key, Legend, Paragraph, Section, part_keys
from tollbar.report.coordinates import column_title, value_words
from tollbar.report.groups import by_row, cost_metric
from tollbar.report.numbers import amount, percent
from tollbar.report.sections.cpu import MOST_POINTS, median_trial, payers
from tollbar.report.sections.load import THROUGHPUT, LoadLine, load_chart, load_panels, load_points
from tollbar.study import Figure

# Of these a source printed two: its costs were requests a second.
MOST_PANELS_OF_A_LOAD = 2
RATES = (
    "Bars are requests a second, pale where something other than the server limited them: the load client, too few"
    " users, or other programs. A line across a bar is one second over the CPU time of a request{component}, measured"
    " while client and server share a core. Above its line, a request costs less where the server has a core of its"
    " own; below it, other components have the rest of the time, or a request costs more there."
)
USE = (
    "Each phase is as wide as it lasted, in the visit with the median cost; pauses between phases are left out. The"
    " rest of the processor's time is waiting for the disk, other programs, or idle."
)


@dataclass(frozen=True, slots=True)
class Rate:
    """Bar: requests a second of one cell, and the rate that one core's CPU time allows."""

    group: str
    series: str
    measured: float | None
    of_a_core: float | None
    limit: Limit | None


@dataclass(frozen=True, slots=True)
class Rates:
    """Bars in groups, on an axis from zero."""

    rates: Sequence[Rate]
    groups: Sequence[str]
    series: Sequence[str]
    axis: str
    most: float


@dataclass(frozen=True, slots=True)
class UseMoment:
    """Chunk, or a few neighbouring ones."""

    since_s: float
    """Start, from that of the first phase; pauses between phases do not count."""
    until_s: float
    busy: Mapping[str, float]
    """CPU time over elapsed time, by part."""


@dataclass(frozen=True, slots=True)
class UsePhase:
    titles: Sequence[str]
    since_s: float
    until_s: float
    moments: Sequence[UseMoment]


@dataclass(frozen=True, slots=True)
class Use:
    """Phases one after another, as wide as they lasted."""

    phases: Sequence[UsePhase]
    parts: Sequence[str]


def source_figures(study: StudyJudgement | None) -> Iterator[Section]:
    """Yield a section for each figure of a study; none if nothing, or only the claims' cells were measured."""
    if study is None or study.about.measure.cells == "claimed":
        return
    for figure in study.about.figures:
        blocks = _BLOCKS[figure.draws](study, figure)
        if blocks:
            yield Section(figure.title, blocks)


def _load(study: StudyJudgement, figure: Figure) -> Sequence[Block]:
    lines: list[LoadLine] = []
    name = next((name for name in LOADS if any(name in row.coordinates for row in study.rows)), LOADS[0])
    for number, series in enumerate(figure.series):
        rows = sorted(figure.cells_of(series, study.rows), key=lambda row: float(row.coordinates.get(name, 0)))
        points = load_points(study, rows, name)
        if points:
            lines.append(LoadLine(series.title, number, points))
    if not lines:
        return ()
    axis = column_title(study.about.family, name)
    panels = load_panels(study, axis, [point for line in lines for point in line.points])[:MOST_PANELS_OF_A_LOAD]
    keys = [Key(line.label, line=line.number) for line in lines]
    return Legend(keys), Figures([load_chart(figure.title, panel, lines) for panel in panels])


def _rates(study: StudyJudgement, figure: Figure) -> Sequence[Block]:
    measured, costs = by_row(study, THROUGHPUT), _costs(study, figure.component)
    family, groups = study.about.family, figure.groups or ""
    found: list[Rate] = []
    for series in figure.series:
        for row in figure.cells_of(series, study.rows):
            rate, cost_ns = measured.get(row.key), costs.get(row.key)
            if rate is not None or cost_ns is not None:
                found.append(
                    Rate(
                        value_words(family, groups, row.coordinates[groups]),
                        series.title,
                        rate.value if rate else None,
                        1e9 / cost_ns if cost_ns else None,
                        rate.limit if rate else None,
                    )
                )
    if not found:
        return ()
    values = _in_order(study, figure)
    titles = [series.title for series in figure.series if any(one.series == series.title for one in found)]
    most = max(value for one in found for value in (one.measured, one.of_a_core) if value is not None)
    data = Rates(
        found, [value_words(family, groups, one) for one in values], titles, column_title(family, groups), most
    )
    said = "; ".join(f"{one.group}, {one.series}: {_spoken(one)}" for one in found)
    component = f" in {figure.component}" if figure.component else ""
    keys = [Key(title, part=number + 1) for number, title in enumerate(titles)]
    return (
        Legend(keys),
        Figures([Chart("", f"{figure.title}: requests a second by {data.axis}. {said}.", data)], ""),
        Paragraph(RATES.format(component=component), "note"),
    )


def _in_order(study: StudyJudgement, figure: Figure) -> list[Value]:
    """Return the groups of a figure, in the order of the study's values."""
    name = figure.groups or ""
    cells = [row for series in figure.series for row in figure.cells_of(series, study.rows)]
    present = dict.fromkeys(row.coordinates[name] for row in cells)
    declared = [value for value in study.about.vary.get(name, ()) if value in present]
    return list(dict.fromkeys([*declared, *present]))


def _costs(study: StudyJudgement, component: str | None) -> Mapping[str, float]:
    """Return the CPU nanoseconds of each cell; those of a component where it does not pay alone."""
    metric = cost_metric(study)
    whole = {key: one.value for key, one in by_row(study, metric).items()}
    if component is None:
        return whole
    return whole | {
        one.row.key: one.value for one in study.measurements if one.metric == metric and one.component == component
    }


def _spoken(one: Rate) -> str:
    measured = "not measured" if one.measured is None else amount(one.measured, "1/s")
    limit = f" ({one.limit})" if one.limit else ""
    core = "" if one.of_a_core is None else f", {amount(one.of_a_core, '1/s')} by one core's CPU time"
    return f"{measured}{limit}{core}"


def _use(study: StudyJudgement, figure: Figure) -> Sequence[Block]:
    parts = payers(study)
    phases: list[UsePhase] = []
    for series in figure.series:
        for row in figure.cells_of(series, study.rows):
            visit = median_trial(row)
            if visit is not None:
                phases.append(_phase(series.title, visit, parts, phases[-1].until_s if phases else 0.0))
    if not phases:
        return ()
    titles = list(parts.values())
    said = "; ".join(f"{', '.join(phase.titles)}: {_busy(phase)}" for phase in phases)
    chart = Chart("", f"{figure.title}. {said}.", Use(phases, titles))
    return part_keys(titles), Figures([chart], "panels wide"), Paragraph(USE, "note")


def _phase(title: str, visit: Trial, parts: Mapping[str, str], since_s: float) -> UsePhase:
    chunks = [chunk for chunk in visit.chunks if chunk.operations > 0 and chunk.wall_ns > 0]
    lasted_ns, now_s = sum(chunk.wall_ns for chunk in chunks), since_s
    step = max(1, -(-len(chunks) // MOST_POINTS))
    moments = []
    for first in range(0, len(chunks), step):
        together = chunks[first : first + step]
        wall_ns = sum(chunk.wall_ns for chunk in together)
        busy = {part: sum(chunk.cpu_ns.get(name, 0) for chunk in together) / wall_ns for name, part in parts.items()}
        moments.append(UseMoment(now_s, now_s + wall_ns / 1e9, busy))
        now_s = moments[-1].until_s
    rows = counted(sum(chunk.operations for chunk in chunks), "row")
    return UsePhase((title, f"{rows}, {amount(lasted_ns, 'ns')}"), since_s, now_s, moments)


def _busy(phase: UsePhase) -> str:
    shares = [sum(moment.busy.values()) for moment in phase.moments]
    return f"{percent(round(min(shares), 2))} to {percent(round(max(shares), 2))} of a core"


_BLOCKS = {"load": _load, "rates": _rates, "use": _use}
