"""Statistics: one interval, used everywhere.

The estimate is Hodges and Lehmann's (the median of all pairwise means, "Walsh averages") and the interval
is the one that Wilcoxon's signed-rank test leaves standing. Both are applied to the logarithms of ratios
formed within a block. Two trials of a block see the same machine in the same state, so while their noise
has one distribution, whatever its shape, the logarithm of their ratio is symmetric about the true one; and
symmetry is all that the signed-rank interval asks to cover exactly as often as it says. A trial that was
three times too slow moves a rank and not a sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

# What one looks for by custom; a reader who wants another level has the raw trials.
CONFIDENCE = 0.95

# Up to here the null distribution is counted out. At 60 blocks the normal approximation of the critical
# rank is off by one part in five hundred, and counting would begin to take longer than the judging.
_EXACT_UP_TO = 60


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval that covers the truth with the stated confidence."""

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    """How many independent blocks it rests on."""

    @property
    def is_bounded(self) -> bool:
        """Whether there were blocks enough to say anything: see `fewest_blocks`."""
        return math.isfinite(self.high)


def ratio_interval(logs: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval:
    """The ratio whose logarithms these are, one for each block, in any order.

    With fewer blocks than `fewest_blocks(confidence)` (six at 95 %) no interval can reach the confidence:
    then the low end is 0 and the high end infinite. Raises ValueError if there is no block at all.
    """
    estimate, low, high = signed_rank_interval(logs, confidence=confidence)
    return Interval(math.exp(estimate), math.exp(low), math.exp(high), confidence, len(logs))


def signed_rank_interval(values: Sequence[float], *, confidence: float) -> tuple[float, float, float]:
    """The Hodges–Lehmann estimate, and the low and high end of the signed-rank interval, perhaps infinite."""
    sums = _walsh_sums(values)
    rank = critical_rank(len(values), confidence)
    if rank is None:
        return _median(sums) / 2, -math.inf, math.inf
    return _median(sums) / 2, sums[rank] / 2, sums[-1 - rank] / 2


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of the means of all pairs of values, each value with itself included."""
    return _median(_walsh_sums(values)) / 2


def fewest_blocks(confidence: float = CONFIDENCE) -> int:
    """The fewest blocks whose widest interval, from the smallest to the largest, has this confidence.

    n symmetric values fall all on one side of their centre with probability 2/2ⁿ: six are needed for 95 %.
    """
    return math.ceil(1 - math.log2(1 - confidence) - 1e-9)


@cache
def critical_rank(blocks: int, confidence: float) -> int | None:
    """The largest rank sum that a two-sided test at this confidence rejects; None if it can reject nothing.

    The interval runs from the Walsh average after that many of the smallest to the one before that many of
    the largest.
    """
    one_side = (1 - confidence) / 2
    if blocks > _EXACT_UP_TO:
        return _critical_rank_approximate(blocks, one_side)
    # `1 - 0.95` is a hair above 0.05, and 2/64 must not fail against 1 - 0.96875: a billionth settles both.
    allowed = one_side * 2**blocks * (1 + 1e-9)
    total = 0
    for rank, count in enumerate(_rank_sum_counts(blocks)):
        total += count
        if total > allowed:
            return rank - 1 if rank else None
    return None


def _critical_rank_approximate(blocks: int, one_side: float) -> int:
    mean = blocks * (blocks + 1) / 4
    deviation = math.sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24)
    return math.floor(mean - 0.5 + NormalDist().inv_cdf(one_side) * deviation)


@cache
def _rank_sum_counts(blocks: int) -> tuple[int, ...]:
    """In how many of the 2ⁿ ways to sign the ranks 1 … n the positive ones add up to 0, 1, 2, …"""
    counts = [1]
    for rank in range(1, blocks + 1):
        padding = [0] * rank
        counts = [a + b for a, b in zip(counts + padding, padding + counts, strict=True)]
    return tuple(counts)


def _walsh_sums(values: Sequence[float]) -> list[float]:
    """Twice the Walsh averages, in order: halving is left to the three that are wanted."""
    if not values:
        raise ValueError("an interval needs at least one block")
    # Sorted first, so that the order of the blocks does not show even in the last bit.
    ordered = sorted(values)
    sums = [a + b for i, a in enumerate(ordered) for b in ordered[i:]]
    sums.sort()
    return sums


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
