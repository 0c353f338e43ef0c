"""Scaling: the cost of an operation with several threads, compared with one thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from tollbar.analysis.ledger import Ledger, Quantity
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.core.stats import Interval, Moments
from tollbar.results import Row

ELAPSED = Quantity("wall")


class Scaling(StrEnum):
    """How an operation's cost changes with the number of threads."""

    SCALES = "scales"
    """Neither CPU time nor elapsed time of an operation rises."""
    CONTENDED = "contended"
    """Its CPU time rises."""
    WAITS = "waits"
    """Its elapsed time rises, and its CPU time does not."""
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class ScalingResult:
    """A cell of several threads beside the same of one."""

    row: Row
    alone: Row
    """That of one thread."""
    cpu: Toll
    """What is judged of the CPU time of an operation."""
    elapsed: Toll
    """The same of its elapsed time, on the thread that performs it."""
    verdict: Scaling = Scaling.CANNOT_TELL

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


def scaling(ledger: Ledger) -> tuple[ScalingResult, ...]:
    """One result for each cell of several threads of which the same was planned with one, in the rows' order."""
    alone = {_but_threads(row): row for row in ledger.rows if row.coordinates.get("threads") == 1}
    return tuple(_results(ledger, alone))


def _results(ledger: Ledger, alone: dict[frozenset[tuple[str, object]], Row]) -> Iterator[ScalingResult]:
    for row in ledger.rows:
        one = alone.get(_but_threads(row)) if row.coordinates.get("threads", 1) != 1 else None
        if one is not None:
            cpu, elapsed = ledger.compare(row, one), ledger.compare(row, one, ELAPSED)
            yield ScalingResult(row, one, cpu, elapsed, verdict_of(cpu, elapsed))


def verdict_of(cpu: Toll, elapsed: Toll) -> Scaling:
    """What both come to. What is not decided of either leaves open what it would rule out.

    A rise noisy is none of these threads' doing: who holds a lock while others have its core lets all wait.
    """
    for toll, found in ((cpu, Scaling.CONTENDED), (elapsed, Scaling.WAITS)):
        if toll.verdict is Verdict.COSTS:
            is_theirs = toll.ratio is not None and toll.ratio.moments is Moments.QUIET
            return found if is_theirs else Scaling.CANNOT_TELL
        if toll.verdict not in (Verdict.FREE, Verdict.SAVES):
            return Scaling.CANNOT_TELL
    return Scaling.SCALES


def _but_threads(row: Row) -> frozenset[tuple[str, object]]:
    return frozenset(item for item in row.coordinates.items() if item[0] != "threads")
