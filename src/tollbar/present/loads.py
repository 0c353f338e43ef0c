"""What a server did under load, against the load: requests a second, response time, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.families import Value
from tollbar.judge import Limit, Measurement, StudyJudgement
from tollbar.present import words
from tollbar.present.cells import (
    MOST_LINES,
    at_spot,
    by_cell,
    by_row,
    cell_names,
    cost_metric,
    covers,
    facet_names,
    facet_sizes,
    labels,
    load_name,
    places,
    spot,
    varying,
    whole_labels,
    without_load,
)
from tollbar.present.charts import Scale
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Chart, Table, numbers, texts
from tollbar.records import LoadRecord, Outcome
from tollbar.results import Row

THROUGHPUT, P50, P95 = "throughput", "latency-p50", "latency-p95"
SHARES = ((0.50, "50 %"), (0.90, "90 %"), (0.95, "95 %"), (0.99, "99 %"), (0.999, "99.9 %"), (1.0, "100 %"))


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One cell at one load."""

    load: int
    values: Mapping[str, float]
    """By metric: requests a second, or nanoseconds."""
    limit: Limit | None


@dataclass(frozen=True, slots=True)
class Line:
    """One cell at every load where it was measured."""

    label: str
    number: int
    """Which colour, mark and dash it has."""
    points: tuple[LoadPoint, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """One metric of several cells against the load."""

    title: str
    axis: str
    metric: str
    lines: Sequence[Line]
    scale: Scale
    to: str | None = None
    """The metric of a lighter line beside it."""


@dataclass(frozen=True, slots=True)
class Facet:
    """As many lines as a reader can tell apart, and the panels in which they are drawn."""

    title: str
    lines: tuple[Line, ...]
    charts: tuple[Chart, ...]


def facets(study: StudyJudgement) -> list[Facet]:
    """The curves over users or rates, in as few panels as stay readable; nothing for a study of one load."""
    name = load_name(study)
    found = [] if name is None else _cells(study, name)
    if name is None or not found:
        return []
    family = study.about.family
    names = [n for n in varying(study.rows) if n != name]
    cells = [without_load(r) for r in study.rows if r.key in {rows[0].key for rows, _ in found}]
    # Operations and sizes differ by orders of magnitude, and servers are not what is compared.
    sizes = [n for n, setting in family.settings.items() if setting.is_size]
    apart = facet_names(cells, names, ("bed", "op", *sizes))
    inside = [n for n in varying(rows[0] for rows, _ in found) if n not in apart] or ["choice"]
    label, place = labels(study, inside), places(study)
    called = [label(rows[0]) for rows, _ in found]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(called))}
    panels = _panels(study, words.column_title(family, name), [p for _, points in found for p in points])
    drawn = []
    for where in facet_sizes(cells, apart):
        here = [i for i, (rows, _) in enumerate(found) if covers(spot(rows[0], apart), where)]
        lines = tuple(
            # A name has one colour, mark and dash in every facet, as long as there are enough of them.
            Line(called[i], numbers[called[i]] if len(numbers) <= MOST_LINES else order, found[i][1])
            for order, i in enumerate(here)
        )
        title = place(at_spot(apart, where), apart)
        drawn.append(Facet(title, lines, tuple(_chart(title, panel, lines) for panel in panels)))
    return drawn


def _cells(study: StudyJudgement, name: str) -> list[tuple[list[Row], tuple[LoadPoint, ...]]]:
    """The rows and points of each cell that was to be measured at several loads, the least costly first."""
    metrics = {metric: by_row(study, metric) for metric in (cost_metric(study), THROUGHPUT, P50, P95)}
    cost = metrics[cost_metric(study)]
    found = []
    for rows in by_cell(study.rows):
        points = tuple(
            LoadPoint(
                int(r.coordinates[name]),
                # Nanoseconds, whatever the unit of a metric of time is.
                {m: v.value * (1000 if v.unit == "us" else 1) for m, of in metrics.items() if (v := of.get(r.key))},
                next((limit for of in metrics.values() if r.key in of and (limit := of[r.key].limit)), None),
            )
            for r in rows
            if r.key in cost and name in r.coordinates
        )
        # A cell of one load has no curve: the table below has it.
        if points and len(rows) > 1:
            found.append((rows, points))
    found.sort(key=lambda one: one[1][-1].values[cost_metric(study)])
    return found


def _panels(study: StudyJudgement, axis: str, points: Sequence[LoadPoint]) -> list[Curves]:
    """The three panels, without lines, on axes that all facets share."""
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


def _chart(where: str, panel: Curves, lines: Sequence[Line]) -> Chart:
    said = "; ".join(
        f"{line.label}: " + ", ".join(_spoken(p, panel) for p in line.points if panel.metric in p.values)
        for line in lines
    )
    place = f", {where}" if where else ""
    return Chart(panel.title, f"{panel.title} by {panel.axis}{place}. {said}.", replace(panel, lines=lines))


def _spoken(point: LoadPoint, panel: Curves) -> str:
    unit = "1/s" if panel.metric == THROUGHPUT else "ns"
    hollow = f" ({point.limit})" if is_hollow(point, panel.metric) else ""
    return f"{words.amount(point.values[panel.metric], unit)} at {point.load:,}{hollow}"


def is_hollow(point: LoadPoint, metric: str) -> bool:
    """Whether something other than the server limited this; CPU per request is right whatever the bottleneck is."""
    return point.limit is not None and metric in (THROUGHPUT, P50)


def throughput_table(study: StudyJudgement) -> Table:
    """A row for each cell, a column for each load: requests a second, and the median response time under them."""
    family = study.about.family
    name = load_name(study)
    values: Sequence[Value | None] = [None]
    if name is not None:
        values = sorted({int(r.coordinates[name]) for r in study.rows if name in r.coordinates})
    label = whole_labels(study)
    throughput, median = by_row(study, THROUGHPUT), by_row(study, P50)
    rows = []
    for found in by_cell(study.rows):
        at = {r.coordinates.get(name) if name else None: r for r in found}
        rows.append([Cell(label(found[0])), *(_throughput(at.get(value), throughput, median) for value in values)])
    titles = [words.value_words(family, name, v) if name and v is not None else "requests a second" for v in values]
    columns = (*texts("cell"), *numbers(*titles))
    return Table("Requests a second, and under them the median response time", columns, rows, sortable=True)


def _throughput(row: Row | None, throughput: dict[str, Measurement], median: dict[str, Measurement]) -> Cell:
    if row is None:
        return Cell("–")
    found = throughput.get(row.key)
    if found is None:
        return Cell("not measured" if row.outcome is Outcome.OK else str(row.outcome))
    waited = median.get(row.key)
    says = words.measured(found).replace("\u00a0/s", "")
    return Cell(says, found.value, words.amount(waited.value, waited.unit) if waited else None)


def latency_table(study: StudyJudgement) -> Table:
    """How long answers took from the moment they were due, over all trials; for loads of a fixed rate only."""
    label = labels(study, [*cell_names(study), "rate"], whole=True)
    rows = []
    for row in study.rows:
        merged = merged_load(row)
        if "rate" not in row.coordinates or merged is None:
            continue
        waited_us = [merged.latency_at(share) for share, _ in SHARES]
        answers = Cell(f"{merged.requests:,}", float(merged.requests))
        rows.append([Cell(label(row)), answers, *(Cell(words.amount(us, "us"), us) for us in waited_us)])
    columns = (*texts("cell"), *numbers("answers", *(f"{title} within" for _, title in SHARES)))
    return Table("Response time, from when each request was due", columns, rows, sortable=True)


def merged_load(row: Row) -> LoadRecord | None:
    """All answers of a cell's trials that ended well, in one histogram."""
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
