"""Behaviour of a server under load: requests a second, response time, cost, and the negotiated parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.analysis import Limit, Measurement, StudyJudgement
from tollbar.analysis.measurements import BUSY
from tollbar.catalog.families import Value
from tollbar.core.records import LoadRecord, Outcome
from tollbar.core.words import counted, more
from tollbar.report.blocks import (
    Block,
    Chart,
    Figures,
    Folded,
    Items,
    Key,
    Legend,
    Paragraph,
    Section,
    Table,
    TableCell,
    folds,
    numbers,
    texts,
)
from tollbar.report.chart import Scale
from tollbar.report.coordinates import column_title, value_words
from tollbar.report.costs import cost_words
from tollbar.report.groups import (
    MOST_LINES,
    MOST_ROWS,
    at_spot,
    by_cell,
    by_row,
    cost_metric,
    covers,
    facet_names,
    facet_sizes,
    load_name,
    spot,
    without_load,
)
from tollbar.report.names import cell_names, labels, place_words, varied, varying, whole_labels
from tollbar.report.numbers import LIMIT_MARKS, amount, measured_words, percent
from tollbar.results import Row
from tollbar.study import is_paced

# Each facet has three panels.
MOST_FACETS = 4
THROUGHPUT, P50, P95 = "throughput", "latency-p50", "latency-p95"
SHARES = ((0.50, "50 %"), (0.90, "90 %"), (0.95, "95 %"), (0.99, "99 %"), (0.999, "99.9 %"), (1.0, "100 %"))


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Cell at one load."""

    load: int
    values: Mapping[str, float]
    """Values by metric: requests a second, or nanoseconds."""
    limit: Limit | None


@dataclass(frozen=True, slots=True)
class LoadLine:
    """Cell at every load where it was measured."""

    label: str
    number: int
    """Number of its colour, mark and dash."""
    points: tuple[LoadPoint, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """Metric of several cells against the load."""

    title: str
    axis: str
    metric: str
    lines: Sequence[LoadLine]
    scale: Scale
    to: str | None = None
    """Metric of a lighter line next to it."""


@dataclass(frozen=True, slots=True)
class Facet:
    """Lines that a reader can distinguish, and the panels in which they are drawn."""

    title: str
    lines: tuple[LoadLine, ...]
    charts: tuple[Chart, ...]


def facets(study: StudyJudgement) -> list[Facet]:
    """Return the curves over users or rates, in as few panels as stay readable; empty for a study of one load."""
    name = load_name(study)
    found = [] if name is None else _at_loads(study, name)
    if name is None or not found:
        return []
    family = study.about.family
    names = [n for n in varied(study) if n != name]
    cells = [without_load(r) for r in study.rows if r.key in {rows[0].key for rows, _ in found}]
    # Operations and sizes differ by orders of magnitude, and servers are not compared here.
    sizes = [n for n, setting in family.settings.items() if setting.is_size]
    apart = facet_names(cells, names, ("server", "op", *sizes))
    inside = [n for n in varying(rows[0] for rows, _ in found) if n not in apart] or ["choice"]
    label, place = labels(study, inside), place_words(study)
    called = [label(rows[0]) for rows, _ in found]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(called))}
    panels = load_panels(study, column_title(family, name), [p for _, points in found for p in points])
    drawn = []
    for where in facet_sizes(cells, apart):
        here = [i for i, (rows, _) in enumerate(found) if covers(spot(rows[0], apart), where)]
        lines = tuple(
            # A name has one colour, mark and dash in every facet, as long as there are enough of them.
            LoadLine(called[i], numbers[called[i]] if len(numbers) <= MOST_LINES else order, found[i][1])
            for order, i in enumerate(here)
        )
        title = place(at_spot(apart, where), apart)
        drawn.append(Facet(title, lines, tuple(load_chart(title, panel, lines) for panel in panels)))
    return drawn


def _at_loads(study: StudyJudgement, name: str) -> list[tuple[list[Row], tuple[LoadPoint, ...]]]:
    """Return the rows and points of each cell that was to be measured at several loads, the cheapest first."""
    found = []
    for rows in by_cell(study.rows):
        points = load_points(study, rows, name)
        # A cell of one load has no curve; the table below has it.
        if points and len(rows) > 1:
            found.append((rows, points))
    found.sort(key=lambda one: one[1][-1].values[cost_metric(study)])
    return found


def load_points(study: StudyJudgement, rows: Sequence[Row], name: str) -> tuple[LoadPoint, ...]:
    """Return the measured ones of these rows, by their coordinate `users` or `rate`."""
    metrics = {metric: by_row(study, metric) for metric in (cost_metric(study), THROUGHPUT, P50, P95)}
    return tuple(
        LoadPoint(
            int(r.coordinates[name]),
            # Nanoseconds, whatever the unit of a metric of time is.
            {m: v.value * (1000 if v.unit == "us" else 1) for m, of in metrics.items() if (v := of.get(r.key))},
            next((limit for of in metrics.values() if r.key in of and (limit := of[r.key].limit)), None),
        )
        for r in rows
        # Unpaced users have no place on an axis of rates.
        if r.key in metrics[cost_metric(study)] and r.coordinates.get(name)
    )


def load_panels(study: StudyJudgement, axis: str, points: Sequence[LoadPoint]) -> list[Curves]:
    """Return the panels of requests a second, response times and costs, without lines, on axes that facets share."""
    cost, title = cost_metric(study), cost_words(study).title

    def values(*metrics: str) -> list[float | None]:
        return [p.values.get(m) for p in points for m in metrics]

    rate = Scale.over("requests a second", values(THROUGHPUT))
    waited = Scale.over("response time", values(P50, P95), "ns")
    return [
        Curves("Requests a second", axis, THROUGHPUT, (), rate),
        Curves("Response time, median (lighter: 95 %)", axis, P50, (), waited, to=P95),
        Curves(title, axis, cost, (), Scale.over(title, values(cost), "ns")),
    ]


def load_chart(where: str, panel: Curves, lines: Sequence[LoadLine]) -> Chart:
    """Return a panel with these lines."""
    said = "; ".join(
        f"{line.label}: " + ", ".join(_spoken(p, panel) for p in line.points if panel.metric in p.values)
        for line in lines
    )
    place = f", {where}" if where else ""
    return Chart(panel.title, f"{panel.title} by {panel.axis}{place}. {said}.", replace(panel, lines=lines))


def _spoken(point: LoadPoint, panel: Curves) -> str:
    unit = "1/s" if panel.metric == THROUGHPUT else "ns"
    hollow = f" ({point.limit})" if is_hollow(point, panel.metric) else ""
    return f"{amount(point.values[panel.metric], unit)} at {point.load:,}{hollow}"


def is_hollow(point: LoadPoint, metric: str) -> bool:
    """Return whether something other than the server limited this; CPU per request is right at any bottleneck."""
    return point.limit is not None and metric in (THROUGHPUT, P50)


def throughput_table(study: StudyJudgement) -> Table:
    """Return a row for each cell, a column for each load: requests a second, with the median response time below."""
    family = study.about.family
    name = load_name(study)
    values: Sequence[Value | None] = [None]
    if name is not None:
        loads: set[Value] = {r.coordinates[name] for r in study.rows if name in r.coordinates}
        in_order = sorted(loads, key=float)
        values = in_order
    label = whole_labels(study)
    throughput, median = by_row(study, THROUGHPUT), by_row(study, P50)
    rows = []
    for found in by_cell(study.rows):
        at = {r.coordinates.get(name) if name else None: r for r in found}
        rows.append([TableCell(label(found[0])), *(_throughput(at.get(value), throughput, median) for value in values)])
    titles = [value_words(family, name, v) if name and v is not None else "requests a second" for v in values]
    columns = (*texts("cell"), *numbers(*titles))
    return Table("Requests a second, and under them the median response time", columns, rows, sortable=True)


def _throughput(row: Row | None, throughput: Mapping[str, Measurement], median: Mapping[str, Measurement]) -> TableCell:
    if row is None:
        return TableCell("–")
    found = throughput.get(row.key)
    if found is None:
        return TableCell("not measured" if row.outcome is Outcome.OK else str(row.outcome))
    waited = median.get(row.key)
    says = measured_words(found).replace("\u00a0/s", "")
    return TableCell(says, found.value, amount(waited.value, waited.unit) if waited else None)


def latency_table(study: StudyJudgement) -> Table:
    """Return response times from the moment requests were due, over all trials; for loads of a fixed rate only."""
    label = labels(study, [*cell_names(study), "rate", "utilisation"], whole=True)
    rows = []
    for row in study.rows:
        merged = merged_load(row)
        if not is_paced(row.coordinates) or merged is None:
            continue
        waited_us = [merged.latency_at(share) for share, _ in SHARES]
        answers = TableCell(f"{merged.requests:,}", float(merged.requests))
        rows.append([TableCell(label(row)), answers, *(TableCell(amount(us, "us"), us) for us in waited_us)])
    columns = (*texts("cell"), *numbers("answers", *(f"{title} within" for _, title in SHARES)))
    return Table("Response time, from when each request was due", columns, rows, sortable=True)


def merged_load(row: Row) -> LoadRecord | None:
    """Return all answers of a cell's successful trials in one histogram."""
    loads = [t.load for t in row.trials if t.load is not None and t.load.is_settled and t.outcome is Outcome.OK]
    if not loads:
        return None
    counts: Counter[int] = Counter()
    for load in loads:
        counts.update(dict(load.latency_us))
    return LoadRecord(
        requests=sum(counts.values()),
        wall_ns=sum(load.wall_ns for load in loads),
        latency_us=tuple(sorted(counts.items())),
    )


_WHY_LIMITED = {
    Limit.CLIENT_BOUND: f"the load client's core was more than {percent(BUSY)} busy; a faster client"
    " would have got more.",
    Limit.NOT_SATURATED: f"the server's core was less than {percent(BUSY)} busy; more users would have got more.",
    Limit.CONTENDED: "other programs had the server's or the load client's core for part of the time; a"
    " quieter machine would have got more.",
}


def limited(study: StudyJudgement) -> list[str]:
    """Return the meanings of the hollow points and marked numbers, with their counts."""
    found = list(by_row(study, "throughput").values())
    all_of = counted(len(found), "cell")
    said = []
    for limit, why in _WHY_LIMITED.items():
        count = sum(m.limit is limit for m in found)
        if count:
            said.append(f"{LIMIT_MARKS[limit]} hollow, {limit} ({count:,} of {all_of}): {why}")
    if said:
        right = f"{cost_words(study).title} is valid there too." if cost_metric(study) == "server-cpu" else ""
        said.append(f"Such requests a second and response times get no verdict. {right}".strip())
    return said


def load_section(study: StudyJudgement) -> Section | None:
    """Return requests a second and response times against the load; None if no throughput was measured."""
    if not by_row(study, THROUGHPUT):
        return None
    found, table, slow = facets(study), throughput_table(study), latency_table(study)
    shown, rest = found[:MOST_FACETS], found[MOST_FACETS:]
    unfolds = f"{more(len(rest))}: {'; '.join(one.title for one in rest)}"
    summary = f"{table.caption}: {counted(len(table.rows), 'cell')}"
    return Section(
        "Requests a second and response time",
        (
            Paragraph("All axes are logarithmic." if found else "", "note"),
            Items(limited(study)),
            *(block for one in shown for block in _facet_blocks(one)),
            *([Folded(unfolds, [block for one in rest for block in _facet_blocks(one)])] if rest else []),
            *folds(summary, table, len(table.rows) > MOST_ROWS),
            *([slow] if slow.rows else []),
        ),
    )


def _facet_blocks(facet: Facet) -> list[Block]:
    blocks: list[Block] = [
        Legend([Key(line.label, line=line.number) for line in facet.lines]),
        Figures(facet.charts, "panels three"),
    ]
    return [Section(facet.title, blocks)] if facet.title else blocks
