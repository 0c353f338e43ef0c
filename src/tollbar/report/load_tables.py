"""Tables of what users see: requests a second by load, and how long answers took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tollbar.families import Value
from tollbar.judge import Measurement, StudyJudgement
from tollbar.measure import Outcome
from tollbar.report import limits, words
from tollbar.report.cells import by_cell, load_name
from tollbar.report.labels import cell_names, labels
from tollbar.report.loads import P50, THROUGHPUT
from tollbar.report.markup import Cell, Column, table
from tollbar.results import Row
from tollbar.runner import LoadRecord

THROUGHPUT_TITLE = "Requests a second, and under them the median response time"
SHARES = ((0.50, "50 %"), (0.90, "90 %"), (0.95, "95 %"), (0.99, "99 %"), (0.999, "99.9 %"), (1.0, "100 %"))


def throughput_table(study: StudyJudgement) -> str:
    """A row for each cell, a column for each load: requests a second, and the median response time under them."""
    family = study.study.study.family
    name = load_name(study)
    values: Sequence[Value | None] = [None]
    if name is not None:
        values = sorted({int(r.coordinates[name]) for r in study.study.rows if name in r.coordinates})
    label = labels(study, cell_names(study), whole=True)
    throughput, median = words.by_row(study, THROUGHPUT), words.by_row(study, P50)
    rows = []
    for found in by_cell(study.study.rows):
        at = {r.coordinates.get(name) if name else None: r for r in found}
        cells = [_throughput(at.get(value), throughput, median) for value in values]
        rows.append([Cell(label(found[0])), *cells])
    titles = [words.value_words(family, name, v) if name and v is not None else "requests a second" for v in values]
    columns = [Column("cell"), *(Column(title, True) for title in titles)]
    return table(THROUGHPUT_TITLE, columns, rows, sortable=True)


def _throughput(row: Row | None, throughput: dict[str, Measurement], median: dict[str, Measurement]) -> Cell:
    if row is None:
        return Cell("–")
    found = throughput.get(row.key)
    if found is None:
        return Cell("not measured" if row.outcome is Outcome.OK else str(row.outcome))
    waited = median.get(row.key)
    return Cell(
        limits.limited(found).replace("\u00a0/s", ""),
        found.value,
        words.amount(waited.value, waited.unit) if waited else None,
    )


def latency_table(study: StudyJudgement) -> str:
    """How long answers took from the moment they were due, over all trials; for loads of a fixed rate only."""
    label = labels(study, [*cell_names(study), "rate"], whole=True)
    rows = []
    for row in study.study.rows:
        merged = merged_load(row)
        if "rate" not in row.coordinates or merged is None:
            continue
        at = [merged.latency_at(share) for share, _ in SHARES]
        rows.append(
            [
                Cell(label(row)),
                Cell(f"{merged.requests:,}", float(merged.requests)),
                *(Cell(words.amount(us, "us"), us) for us in at),
            ]
        )
    if not rows:
        return ""
    columns = [Column("cell"), Column("answers", True), *(Column(f"{title} within", True) for _, title in SHARES)]
    return table("Response time, from when each request was due", columns, rows, sortable=True)


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
