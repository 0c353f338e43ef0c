"""Noise: the measured ratio of a true ×1.00 in this lab, from cells that were measured twice."""

from __future__ import annotations

import math

from tollbar.analysis.decisions import apart, reach
from tollbar.analysis.ledger import Ledger
from tollbar.core.intervals import Interval
from tollbar.results import Row

# Highest probability that chance alone puts this number of A/A pairs apart, with intervals as wide as they should be.
# The warning names a fault of the lab, so chance must cause it in far fewer than one study of twenty.
_BY_CHANCE = 0.01


def repeats(ledger: Ledger) -> tuple[tuple[Row, Interval], ...]:
    """Return every cell that was measured twice, with its repeat's cost over its own."""
    found = [(row, ledger.best_ratio(row, row)) for row in ledger.repeated]
    return tuple((row, ratio) for row, ratio in found if ratio is not None)


def worst_noise(ledger: Ledger) -> Interval | None:
    """Return the A/A pair of a study whose interval reaches furthest from one; None if nothing was measured twice."""
    return max(ledger.noises(ledger.repeated), key=reach, default=None)


def largest_difference(ledger: Ledger) -> float | None:
    """Return the largest measured difference of an A/A pair, as a ratio above one; None if nothing was measured twice.

    The pair need not be that of `worst_noise`, whose interval may be wider.
    """
    return max(map(apart, ledger.noises(ledger.repeated)), default=None)


def repeats_apart(ledger: Ledger) -> tuple[int, int] | None:
    """Return the number of A/A pairs whose intervals exclude one, and that of all pairs; None if chance explains it.

    At 96 % one in 25 excludes it by chance. Too many: one pair at a distance, or a number of pairs, that chance would
    make either in less than one study of a hundred.
    """
    repeated = [row for row in ledger.repeated if ledger.noises([row])]
    outside = [row for row in repeated if _excludes_one(ledger.best_ratio(row, row))]
    if not outside:
        return None
    shared = 1 - min(_BY_CHANCE, 1 - ledger.confidence) / len(repeated)
    strictly = any(_excludes_one(ledger.best_ratio(row, row, shared)) for row in outside)
    chance = _at_least(len(outside), len(repeated), 1 - ledger.confidence)
    return (len(outside), len(repeated)) if strictly or chance < _BY_CHANCE else None


def _excludes_one(noise: Interval | None) -> bool:
    return noise is not None and not noise.low <= 1 <= noise.high


def _at_least(number: int, of: int, probability: float) -> float:
    """Return the probability of at least `number` events out of `of`, by the binomial distribution."""
    # Logarithms, because the coefficients of 1,100 pairs are beyond the range of a double.
    logs = (
        math.lgamma(of + 1)
        - math.lgamma(k + 1)
        - math.lgamma(of - k + 1)
        + k * math.log(probability)
        + (of - k) * math.log1p(-probability)
        for k in range(number, of + 1)
    )
    return math.fsum(map(math.exp, logs))
