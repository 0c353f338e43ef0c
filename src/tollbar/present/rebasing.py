"""The full table as a page shows it: what a reader looks for first, and what it takes to compare with another baseline.

A page divides one cost by another by itself; what that is worth was judged against the study's own baseline only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.judge import StudyJudgement
from tollbar.present.cells import baseline_words, by_row, cost_metric, labels, spot, varying
from tollbar.present.shapes import Cell, Table
from tollbar.present.tables import full_table
from tollbar.present.ways import options


@dataclass(frozen=True, slots=True)
class EveryResult:
    """A study's full table, and what its rows are to one another."""

    table: Table
    baseline: str
    """What the ratios in it are against."""
    ways: Sequence[str]
    """What else they may be set against, in the rows' order."""
    providers: Sequence[str]
    facts: Sequence[Mapping[str, object]]
    """Of each row: the number of its `way`, of its `place` and of its `provider`, and its `cost` where it has one.
    Rows of one place are alternatives to one another."""
    against_column: int
    typical_column: int
    verdict_column: int


def every_result(study: StudyJudgement) -> EveryResult:
    """Every planned cell: its name, ratio and standing first, so that they can stay in sight."""
    found = full_table(study)
    titles = [column.title for column in found.columns]
    first = [titles.index(t) for t in ("choice", f"against {baseline_words(study)}", "standing", "verdict")]
    order = [*first, *(n for n in range(len(titles)) if n not in first)]
    beside = [n for n in varying(study.rows) if n != "choice"]
    where = labels(study, beside, whole=True)
    rows = [
        [_named(cells[0], where(row)), *(cells[n] for n in order[1:])]
        for row, cells in zip(study.rows, found.rows, strict=True)
    ]
    columns = [found.columns[n] for n in order]
    chosen = options(study)
    given = [n for n in varying(study.rows) if n not in chosen]
    label = labels(study, chosen, whole=True)
    cost = by_row(study, cost_metric(study))
    ways = list(dict.fromkeys(label(row) for row in study.rows))
    spots = list(dict.fromkeys(spot(row, given) for row in study.rows))
    shown = {row.key: str(row.shown.get("provider", "")) for row in study.rows}
    providers = list(dict.fromkeys(shown.values()))
    facts = [
        {
            "way": ways.index(label(row)),
            "place": spots.index(spot(row, given)),
            "provider": providers.index(shown[row.key]),
            **({"cost": f"{cost[row.key].value:.6g}"} if row.key in cost else {}),
        }
        for row in study.rows
    ]
    numbers = [columns.index(found.columns[titles.index(t)]) for t in (titles[first[1]], "typical ratio", "verdict")]
    return EveryResult(
        replace(found, columns=columns, rows=rows), baseline_words(study), ways, providers, facts, *numbers
    )


def _named(cell: Cell, where: str) -> Cell:
    """A row's head tells it from all others, whichever columns are in sight."""
    return cell if where == cell.says else replace(cell, small=where)
