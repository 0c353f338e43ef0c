"""Tables that a study asks for: what each cell of them costs, by itself or beside the one that the table names."""

from __future__ import annotations

from dataclasses import replace

from tollbar.judge.costs import Ledger
from tollbar.judge.verdicts import CrossCell, CrossTableResult
from tollbar.plan.pairs import tabled
from tollbar.results import Row, StudyRun
from tollbar.study import CrossTable


def crosstables(study_run: StudyRun, ledger: Ledger) -> tuple[CrossTableResult, ...]:
    """One result for each table, with every cell that was planned for it; none where claims' cells alone were."""
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
    cell = CrossCell(row, ledger.undisturbed(row), over, reason=ledger.why_unmeasured(row))
    if cell.reason is not None or not table.over or cell.is_over:
        return cell
    if over is None:
        return replace(cell, reason="there is no cell to compare it with")
    toll = ledger.compare(row, over)
    return replace(cell, reason=toll.reason) if toll.ratio is None else replace(cell, toll=toll)
