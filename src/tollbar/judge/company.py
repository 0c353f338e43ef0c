"""Company: what an operation costs while other threads perform the same, beside what it costs alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from tollbar.judge.costs import Ledger, Quantity
from tollbar.judge.verdicts import Toll, Verdict
from tollbar.results import Row
from tollbar.stats import Interval, Moments

ELAPSED = Quantity("wall")


class InCompany(StrEnum):
    """What an operation pays for others beside it."""

    SCALES = "scales"
    """Neither CPU time nor elapsed time of an operation rises."""
    PAYS = "pays for company"
    """Its CPU time rises."""
    WAITS = "waits"
    """Its elapsed time rises, and its CPU time does not."""
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class CompanyResult:
    """A cell of several threads beside the same of one."""

    row: Row
    alone: Row
    """That of one thread."""
    cpu: Toll
    """What is judged of the CPU time of an operation."""
    elapsed: Toll
    """The same of its elapsed time, on the thread that performs it."""
    verdict: InCompany = InCompany.CANNOT_TELL

    @property
    def threads(self) -> int:
        return int(self.row.coordinates["threads"])

    @property
    def rate(self) -> Interval | None:
        """Operations in a time, of all threads together, over those of one: as many as there are threads where none
        waits. None where that could not be measured."""
        if self.elapsed.ratio is None:
            return None
        each, many = self.elapsed.ratio.inverse, self.threads
        return replace(each, estimate=many * each.estimate, low=many * each.low, high=many * each.high)

    @property
    def reason(self) -> str | None:
        """Why there is nothing to judge."""
        return self.cpu.reason or self.elapsed.reason


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
