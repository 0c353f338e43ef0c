"""Company: what an operation costs while other threads perform the same, beside what it costs alone."""

from __future__ import annotations

from collections.abc import Iterator

from tollbar.judge.costs import Ledger, Quantity
from tollbar.judge.verdicts import CompanyResult, InCompany, Toll, Verdict
from tollbar.results import Row
from tollbar.stats import Moments

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
    """What both come to. What is not decided of either leaves open what it would rule out.

    A rise as disturbed is none of these threads' doing: who holds a lock while others have its core lets all wait.
    """
    for toll, found in ((cpu, InCompany.PAYS), (elapsed, InCompany.WAITS)):
        if toll.verdict is Verdict.COSTS:
            is_theirs = toll.ratio is not None and toll.ratio.moments is Moments.UNDISTURBED
            return found if is_theirs else InCompany.CANNOT_TELL
        if toll.verdict not in (Verdict.FREE, Verdict.SAVES):
            return InCompany.CANNOT_TELL
    return InCompany.SCALES


def _but_threads(row: Row) -> frozenset[tuple[str, object]]:
    return frozenset(item for item in row.coordinates.items() if item[0] != "threads")
