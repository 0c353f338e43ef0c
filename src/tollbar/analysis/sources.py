"""A source's own statistic, made of what was measured here, so that its table can be read beside this one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from tollbar.analysis.visits import settled
from tollbar.core import stats
from tollbar.core.records import Outcome, Trial
from tollbar.results import Row

# Of the interval of which BenchmarkDotNet prints half as the error.
_CONFIDENCE = 0.999


@dataclass(frozen=True, slots=True)
class BySource:
    """One cell by the statistic of a study's source: a cost of all samples, or a rate."""

    mean: float
    unit: str
    """Of mean, error and deviation."""
    error: float | None
    """Half of the mean's interval, where the source prints one; None where there are too few blocks for it."""
    deviation: float | None
    """None where the source prints none, and for one block."""
    blocks: int
    """Of which the mean is."""
    ratio: float
    """Of the means: this cell's over the claim's other one's; of a figure of one cell, one."""


def mean_error_deviation(of: Row, over: Row) -> BySource:
    """Mean, error and standard deviation of the time that passes in an operation, and the ratio of both cells' means.

    Over blocks, as everywhere here: a block, with its fresh processes, is one measurement. Both cells were measured.
    """
    costs, others = _by_block(of), _by_block(over)
    n = len(costs)
    deviation = stdev(costs) if n > 1 else None
    error = None if deviation is None else stats.student(n - 1, _CONFIDENCE) * deviation / math.sqrt(n)
    return BySource(fmean(costs), "ns/op", error, deviation, n, fmean(costs) / fmean(others))


def rate_after_first(of: Row, over: Row) -> BySource | None:
    """Requests a second, one over the mean time of a request in all blocks but the first, and the ratio of both cells'.

    A block stands for a run: its processes are fresh, and the first one finds cold what others find warm. Of one that
    failed there is none, so that the first is the first that succeeded. None where either cell has one block alone, or
    no load that was long enough for a rate.
    """
    times, others = (_times_by_block(row)[1:] for row in (of, over))
    if not times or not others:
        return None
    rate = 1 / fmean(times)
    return BySource(rate, "1/s", None, None, len(times), rate * fmean(others))


def _by_block(row: Row) -> list[float]:
    """Elapsed nanoseconds per operation in each block, all its chunks together."""
    blocks = _blocks(trial for trial in row.trials if trial.operations)
    return [
        sum(chunk.wall_ns for trial in found for chunk in trial.first_tries) / sum(trial.operations for trial in found)
        for found in blocks
    ]


def _times_by_block(row: Row) -> list[float]:
    """Seconds from one answer to the next in each block, on average over its loads."""
    rates = ([load.requests_per_s for load in settled(found)] for found in _blocks(row.trials))
    return [fmean(1 / rate for rate in found) for found in rates if found and all(found)]


def _blocks(trials: Iterable[Trial]) -> list[list[Trial]]:
    """The good trials of each block, in the order of blocks."""
    by_block: dict[int, list[Trial]] = {}
    for trial in trials:
        if trial.outcome is Outcome.OK:
            by_block.setdefault(trial.block, []).append(trial)
    return [by_block[block] for block in sorted(by_block)]
