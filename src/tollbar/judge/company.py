"""Company: what an operation costs while other threads perform the same, beside what it costs alone."""

from __future__ import annotations

from collections.abc import Iterator

from tollbar.judge.costs import Ledger, Quantity
from tollbar.judge.verdicts import CompanyResult, InCompany, Toll, Verdict
from tollbar.results import Row

ELAPSED = Quantity("wall")


def company(ledger: Ledger) -> tuple[CompanyResult, ...]:
    """One result for each cell of several threads of which the same was planned with one, in the rows' order."""
    alone = {_but_threads(row): row for row in ledger.rows if row.coordinates.get("threads") == 1}
    return tuple(_results(ledger, alone))


def _results(ledger: Ledger, alone: dict[frozenset[tuple[str, object]], Row]) -> Iterator[CompanyResult]:
    for row in ledger.rows:
        one = alone.get(_but_threads(row)) if row.coordinates.get("threads", 1) != 1 else None
        if one is not None:
            cpu, elapsed = ledger.compare(row, one), ledger.compare(row, one, ELAPSED)
            yield CompanyResult(row, one, cpu, elapsed, verdict_of(cpu, elapsed))


def verdict_of(cpu: Toll, elapsed: Toll) -> InCompany:
    """What both come to. What is not decided of either leaves open what it would rule out."""
    if cpu.verdict is Verdict.COSTS:
        return InCompany.PAYS
    if cpu.verdict not in (Verdict.FREE, Verdict.SAVES):
        return InCompany.CANNOT_TELL
    if elapsed.verdict is Verdict.COSTS:
        return InCompany.WAITS
    return InCompany.SCALES if elapsed.verdict in (Verdict.FREE, Verdict.SAVES) else InCompany.CANNOT_TELL


def _but_threads(row: Row) -> frozenset[tuple[str, object]]:
    return frozenset(item for item in row.coordinates.items() if item[0] != "threads")
