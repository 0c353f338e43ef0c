"""Sums of costs: a study's ledger, its cells, and a sum of rates times costs with its interval.

Cells of one study are summed block by block; different studies are independent, and their variances add.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tollbar.analysis import quickness
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.core import intervals
from tollbar.core.intervals import Interval, Moments
from tollbar.results import Row, Run, StudyRun


@dataclass(frozen=True, eq=False)
class Source:
    """A study of a run, and its costs."""

    run: Run
    study_run: StudyRun

    @cached_property
    def ledger(self) -> Ledger:
        study = self.study_run.study
        return Ledger(
            self.study_run.rows, Terms.of(self.study_run), study.measure.cost, study.family, quickness(self.run)
        )


@dataclass(frozen=True)
class Cell:
    """A measured cell, and how many cores each of its operations takes a share of."""

    source: Source
    row: Row
    weight: float
    """Cores per nanosecond: operations a second over 10⁹ and the utilisation."""


def summed(cells: Iterable[Cell], moments: Moments | None = None) -> Interval:
    """Return the weighted sum of these cells' costs, of these moments or of the best available."""
    by_source: dict[int, list[Cell]] = {}
    for cell in cells:
        by_source.setdefault(id(cell.source), []).append(cell)
    return intervals.total([part for some in by_source.values() for part in _of_one_source(some, moments)])


def _of_one_source(cells: Sequence[Cell], moments: Moments | None) -> list[Interval]:
    """Return one sum over the blocks that all cells have; without such blocks, each cell by itself."""
    weights: dict[str, float] = {}
    for cell in cells:
        weights[cell.row.key] = weights.get(cell.row.key, 0.0) + cell.weight
    rows = [*{cell.row.key: cell.row for cell in cells}.values()]
    ledger = cells[0].source.ledger
    together = ledger.added(rows, [weights[row.key] for row in rows], moments)
    if together is not None:
        return [together]
    alone = [ledger.added([row], [weights[row.key]], moments) for row in rows]
    return [one for one in alone if one is not None]
