"""Sources' own statistics, computed from the measurements here, so that their tables can be compared with these."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from tollbar.analysis.visits import settled
from tollbar.core import intervals
from tollbar.core.records import Outcome, Trial
from tollbar.results import Row

# Confidence of the interval of which BenchmarkDotNet prints half as the error.
_CONFIDENCE = 0.999


@dataclass(frozen=True, slots=True)
class BySource:
    """Cell by the statistic of a study's source: a cost of all samples, or a rate."""

    mean: float
    unit: str
    """Unit of mean, error and deviation."""
    error: float | None
    """Half of the mean's interval, if the source prints one; None with too few blocks for it."""
    deviation: float | None
    """Standard deviation; None if the source prints none, and for one block."""
    blocks: int
    """Number of blocks in the mean."""
    ratio: float
    """Ratio of the means: this cell's over the claim's other one's; 1 for a figure of one cell."""


def mean_error_deviation(of: Row, over: Row) -> BySource:
    """Return mean, error and standard deviation of an operation's elapsed time, and the ratio of both cells' means.

    Each block, with its fresh processes, is one measurement, as everywhere here. Both cells must have been measured.
    """
    costs, others = _by_block(of), _by_block(over)
    n = len(costs)
    deviation = stdev(costs) if n > 1 else None
    error = None if deviation is None else intervals.student(n - 1, _CONFIDENCE) * deviation / math.sqrt(n)
    return BySource(fmean(costs), "ns/op", error, deviation, n, fmean(costs) / fmean(others))


def rate_after_first(of: Row, over: Row) -> BySource | None:
    """Return requests a second, one over a request's mean time in all blocks but the first, and both cells' ratio.

    A block corresponds to a source's run: its processes are fresh, and the first one runs cold. Failed blocks are
    skipped, so that the first is the first that succeeded. None if either cell has only one block, or no load that was
    long enough for a rate.
    """
    times, others = (_times_by_block(row)[1:] for row in (of, over))
    if not times or not others:
        return None
    rate = 1 / fmean(times)
    return BySource(rate, "1/s", None, None, len(times), rate * fmean(others))


def _by_block(row: Row) -> list[float]:
    """Return elapsed nanoseconds per operation in each block, all its chunks together."""
    blocks = _blocks(trial for trial in row.trials if trial.operations)
    return [
        sum(chunk.wall_ns for trial in found for chunk in trial.first_tries) / sum(trial.operations for trial in found)
        for found in blocks
    ]


def _times_by_block(row: Row) -> list[float]:
    """Return seconds from one answer to the next in each block, on average over its loads."""
    rates = ([load.requests_per_s for load in settled(found)] for found in _blocks(row.trials))
    return [fmean(1 / rate for rate in found) for found in rates if found and all(found)]


def _blocks(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Return the good trials of each block, in the order of blocks."""
    by_block: dict[int, list[Trial]] = {}
    for trial in trials:
        if trial.outcome is Outcome.OK:
            by_block.setdefault(trial.block, []).append(trial)
    return [by_block[block] for block in sorted(by_block)]
