"""Tables that a study requests: the cost of each cell, alone or compared with the cell that the table names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tollbar.analysis.ledger import Ledger
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.catalog.families import Value
from tollbar.core.intervals import Interval
from tollbar.results import Row, StudyRun
from tollbar.study import CrossTable
from tollbar.study.plan.pairs import tabled


@dataclass(frozen=True, slots=True)
class CrossCell:
    """Cell of a table that a study requests."""

    row: Row
    cost: Interval | None
    """Nanoseconds per operation, quiet; in a table of another metric, the observed value."""
    over: Row | None
    """Cell that the table compares it with; the cell itself if it is that one."""
    toll: Toll | None = None
    """Toll against `over`; None in a table of costs, for the `over` cell itself, and without a ratio."""
    unit: str = "ns/op"
    reason: str | None = None
    """Reason why there is no cost, or no ratio in a table of ratios."""

    @property
    def is_over(self) -> bool:
        """True for the cell that the table compares others with."""
        return self.over is not None and self.over.key == self.row.key

    @property
    def ratio(self) -> Interval | None:
        return self.toll.ratio if self.toll else None

    @property
    def verdict(self) -> Verdict | None:
        return self.toll.verdict if self.toll else None

    @property
    def more_blocks(self) -> int | None:
        return self.toll.more_blocks if self.toll else None


@dataclass(frozen=True)
class CrossTableResult:
    """Table that a study requests."""

    table: CrossTable
    cells: tuple[CrossCell, ...]
    """Planned cells, at most one in each place."""

    @property
    def rows(self) -> tuple[Value, ...]:
        """Values of the table's rows."""
        return tuple(dict.fromkeys(cell.row.coordinates[self.table.rows] for cell in self.cells))

    @property
    def columns(self) -> tuple[Value, ...]:
        """Values of the table's columns."""
        return tuple(dict.fromkeys(cell.row.coordinates[self.table.columns] for cell in self.cells))

    def at(self, row: Value, column: Value) -> CrossCell | None:
        """Return the cell in this place; None if none was planned."""
        return self._by_place.get((row, column))

    @cached_property
    def _by_place(self) -> Mapping[tuple[Value, Value], CrossCell]:
        names = self.table.rows, self.table.columns
        found: dict[tuple[Value, Value], CrossCell] = {}
        for cell in self.cells:
            row, column = (cell.row.coordinates[name] for name in names)
            found.setdefault((row, column), cell)
        return found


def crosstables(study_run: StudyRun, ledger: Ledger) -> tuple[CrossTableResult, ...]:
    """Return one result for each table, with every cell planned for it; none if only the claims' cells were planned."""
    if study_run.study.measure.cells == "claimed":
        return ()
    return tuple(
        CrossTableResult(
            table,
            tuple(_cell(row, overs[0] if overs else None, table, ledger) for row, overs in found),
        )
        for table in study_run.study.tables
        for found in [tabled(table, ledger.rows)]
    )


def _cell(row: Row, over: Row | None, table: CrossTable, ledger: Ledger) -> CrossCell:
    metric = next((metric for metric in ledger.observed_metrics if metric.name == table.metric), None)
    if metric is not None:
        seen = ledger.observed(row, metric)
        reason = ledger.why_unmeasured(row) or (None if seen else f"its runners observed no `{metric.name}`")
        return CrossCell(row, seen, None, unit=metric.unit, reason=reason)
    cell = CrossCell(row, ledger.best_cost(row), over, reason=ledger.why_unmeasured(row))
    if cell.reason is not None or not table.over or cell.is_over:
        return cell
    if over is None:
        return replace(cell, reason="there is no cell to compare it with")
    toll = ledger.compare(row, over)
    return replace(cell, reason=toll.reason) if toll.ratio is None else replace(cell, toll=toll)
