"""Scaling: the cost of an operation with several threads, compared with one thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from tollbar.analysis.ledger import Ledger, Quantity
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.core.intervals import Interval, Moments
from tollbar.results import Row

ELAPSED = Quantity("wall")


class Scaling(StrEnum):
    """Effect of the number of threads on an operation's cost."""

    SCALES = "scales"
    """Neither CPU time nor elapsed time of an operation rises."""
    CONTENDED = "contended"
    """CPU time of an operation rises."""
    WAITS = "waits"
    """Elapsed time of an operation rises, and its CPU time does not."""
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class ScalingResult:
    """Cell of several threads compared with the same cell of one."""

    row: Row
    alone: Row
    """Cell of one thread."""
    cpu: Toll
    """Toll in CPU time of an operation."""
    elapsed: Toll
    """Toll in elapsed time of an operation, on the thread that performs it."""
    verdict: Scaling = Scaling.CANNOT_TELL

    @property
    def threads(self) -> int:
        return int(self.row.coordinates["threads"])

    @property
    def rate(self) -> Interval | None:
        """Throughput of all threads together over that of one; None if it could not be measured.

        Equal to the number of threads if none waits.
        """
        if self.elapsed.ratio is None:
            return None
        each, many = self.elapsed.ratio.inverse, self.threads
        return replace(each, estimate=many * each.estimate, low=many * each.low, high=many * each.high)

    @property
    def reason(self) -> str | None:
        """Reason why there is nothing to judge."""
        return self.cpu.reason or self.elapsed.reason


def scaling(ledger: Ledger) -> tuple[ScalingResult, ...]:
    """Return one result for each cell of several threads whose one-thread cell was planned, in the rows' order."""
    alone = {_but_threads(row): row for row in ledger.rows if row.coordinates.get("threads") == 1}
    return tuple(_results(ledger, alone))


def _results(ledger: Ledger, alone: dict[frozenset[tuple[str, object]], Row]) -> Iterator[ScalingResult]:
    for row in ledger.rows:
        one = alone.get(_but_threads(row)) if row.coordinates.get("threads", 1) != 1 else None
        if one is not None:
            cpu, elapsed = ledger.compare(row, one), ledger.compare(row, one, ELAPSED)
            yield ScalingResult(row, one, cpu, elapsed, verdict_of(cpu, elapsed))


def verdict_of(cpu: Toll, elapsed: Toll) -> Scaling:
    """Return the verdict of both tolls; an undecided toll leaves open what it would rule out.

    A rise that is only noisy may not be caused by these threads: a thread that is preempted while it holds a lock
    stalls all others.
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
