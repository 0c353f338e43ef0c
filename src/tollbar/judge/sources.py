"""A source's own statistic, made of what was measured here, so that its table can be read beside this one."""

from __future__ import annotations

import math
from statistics import fmean, stdev

from tollbar import stats
from tollbar.judge.verdicts import BySource
from tollbar.measure import Outcome
from tollbar.results import Row

# Of the interval of which BenchmarkDotNet prints half as the error.
_CONFIDENCE = 0.999


def mean_error_deviation(of: Row, over: Row) -> BySource:
    """Mean, error and standard deviation of a cell's typical cost, and the ratio of both cells' means.

    Over blocks, as everywhere here: a block, with its fresh processes, is one measurement. Both cells were measured.
    """
    costs, others = _by_block(of), _by_block(over)
    n = len(costs)
    deviation = stdev(costs) if n > 1 else None
    error = None if deviation is None else stats.student(n - 1, _CONFIDENCE) * deviation / math.sqrt(n)
    return BySource(fmean(costs), error, deviation, n, fmean(costs) / fmean(others))


def _by_block(row: Row) -> list[float]:
    """CPU nanoseconds per operation in each block, all its chunks together."""
    good = [trial for trial in row.trials if trial.outcome is Outcome.OK and trial.operations]
    by_block = ([trial for trial in good if trial.block == block] for block in {trial.block for trial in good})
    return [sum(trial.cpu_ns for trial in found) / sum(trial.operations for trial in found) for found in by_block]
