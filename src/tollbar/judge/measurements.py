"""Measurements: what each cell cost in itself, for the tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tollbar.judge.costs import METRIC, Ledger, cost
from tollbar.judge.decisions import Terms
from tollbar.judge.verdicts import Measurement
from tollbar.measure import Outcome, Trial
from tollbar.results import Row
from tollbar.stats import ratio_interval

# (metric, unit, how a trial gives it). Memory that did not grow is not listed: a logarithm has no zero.
_METRICS: tuple[tuple[str, str, Callable[[Trial], float]], ...] = (
    (METRIC, "ns/op", cost),
    ("wall", "ns/op", lambda trial: trial.wall_ns / trial.operations),
    ("memory", "B", lambda trial: float(trial.memory_bytes)),
)


def measurements(ledger: Ledger, terms: Terms) -> tuple[Measurement, ...]:
    """CPU and wall time per operation, and memory where it grew, of every cell that was measured."""
    return tuple(m for row in ledger.rows if ledger.why_nothing(row) is None for m in _of(row, terms))


def _of(row: Row, terms: Terms) -> Iterator[Measurement]:
    """The same interval as for ratios, on the logarithms of the values themselves.

    Here the machine's drift and its state are in the noise, which need not be symmetric: two cells are
    compared by their toll and never by whether these overlap.
    """
    trials = [t for t in row.trials if t.outcome is Outcome.OK and t.operations > 0]
    for metric, unit, value in _METRICS:
        values = [v for v in map(value, trials) if v > 0]
        # In half of the trials or more, or it is no property of the cell.
        if 2 * len(values) < len(trials) or not values:
            continue
        over = ratio_interval([math.log(v) for v in values], confidence=terms.confidence)
        yield Measurement(row, metric, unit, over.estimate, over.low, over.high, over.n)
