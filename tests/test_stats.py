"""The interval: against published tables and by hand, and the laws it must keep."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollbar import stats
from tollbar.stats import (
    critical_rank,
    fewest_blocks,
    hodges_lehmann,
    ratio_interval,
    signed_rank_interval,
)

LOGS = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=1, max_size=25)


@pytest.mark.parametrize(
    ("blocks", "critical"),
    [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89), (30, 137), (50, 434)],
)
def test_critical_rank_is_the_published_one(blocks: int, critical: int) -> None:
    """Wilcoxon's table for two sides and 5 % (McCornack 1965, and every textbook since)."""
    assert critical == critical_rank(blocks, 0.95)


def test_critical_rank_counts_every_sign() -> None:
    """For eight blocks the distribution is that of all 256 ways to sign the ranks."""
    sums = sorted(
        sum(r for r, sign in zip(range(1, 9), signs, strict=True) if sign)
        for signs in itertools.product((0, 1), repeat=8)
    )
    rank = critical_rank(8, 0.95)
    assert rank is not None
    assert sum(s <= rank for s in sums) / 256 <= 0.025 < sum(s <= rank + 1 for s in sums) / 256


def test_approximation_meets_the_exact_rank() -> None:
    """Where counting stops, the normal approximation gives the same rank, give or take one."""
    exact = critical_rank(60, 0.95)
    assert exact == pytest.approx(stats._critical_rank_approximate(60, 0.025), abs=1)


def test_more_than_the_exact_range() -> None:
    """A hundred blocks get the published approximate rank of 1,955."""
    assert critical_rank(100, 0.95) == pytest.approx(1955, abs=2)


@pytest.mark.parametrize(("confidence", "fewest"), [(0.95, 6), (0.975, 7), (1 - 0.05 / 3, 7), (0.5, 2), (0.99, 8)])
def test_fewest_blocks_is_where_an_interval_becomes_possible(confidence: float, fewest: int) -> None:
    """One block fewer and no rank can be rejected."""
    assert fewest == fewest_blocks(confidence)
    assert critical_rank(fewest, confidence) is not None
    assert critical_rank(fewest - 1, confidence) is None


def test_estimate_by_hand() -> None:
    """Of 1, 2, 4 the Walsh averages are 1, 1.5, 2, 2.5, 3, 4."""
    assert hodges_lehmann([4, 1, 2]) == 2.25


def test_six_blocks_give_all_there_is() -> None:
    """With six blocks 95 % runs from the smallest Walsh average to the largest: the extreme blocks."""
    estimate, low, high = signed_rank_interval([0.3, 0.1, 0.2, 0.6, 0.5, 0.4], confidence=0.95)
    assert (0.1, 0.6) == (low, high)
    assert pytest.approx(0.35) == estimate


def test_eight_blocks_by_hand() -> None:
    """Of 1, 2, 4, 8 … 128 the three smallest Walsh averages go (1, 1.5, 2), and the three largest."""
    values = [float(2**i) for i in range(8)]
    _, low, high = signed_rank_interval(values, confidence=0.95)
    # Sorted from below: 1, 1.5, 2, 2.5 …; from above: 128, 96, 80, 72 …
    assert (2.5, 72.0) == (low, high)


def test_too_few_blocks_say_so() -> None:
    """Below six blocks the ends are 0 and infinity, and the estimate is still there."""
    interval = ratio_interval([math.log(2)] * 5)
    assert (0.0, math.inf, 5) == (interval.low, interval.high, interval.n)
    assert pytest.approx(2.0) == interval.estimate
    assert not interval.is_bounded


def test_no_block_is_an_error() -> None:
    """An interval over nothing is a mistake of the caller's."""
    with pytest.raises(ValueError, match="at least one block"):
        ratio_interval([])


def test_one_slow_trial_moves_a_rank_and_not_a_sum() -> None:
    """A trial a thousand times too slow does no more than one that is three times too slow."""
    source = random.Random(1)
    quiet = [source.gauss(0, 0.03) for _ in range(19)]
    assert ratio_interval([*quiet, math.log(3)]) == ratio_interval([*quiet, math.log(1000)])


@given(LOGS)
def test_order_of_blocks_is_irrelevant(logs: list[float]) -> None:
    """Blocks may come in any order."""
    assert ratio_interval(sorted(logs)) == ratio_interval(logs[::-1])


@given(LOGS, st.floats(0.01, 100))
def test_scale_equivariance(logs: list[float], factor: float) -> None:
    """A cell that costs k times as much has k times the ratio and k times both ends."""
    plain = ratio_interval(logs)
    scaled = ratio_interval([x + math.log(factor) for x in logs])
    expected = [factor * plain.estimate, factor * plain.low, factor * plain.high]
    assert expected == pytest.approx([scaled.estimate, scaled.low, scaled.high])


@given(LOGS)
def test_swapping_sides_inverts_the_interval(logs: list[float]) -> None:
    """The ratio of the baseline to the cell is one over the other, ends swapped."""
    there = signed_rank_interval(logs, confidence=0.95)
    back = signed_rank_interval([-x for x in logs], confidence=0.95)
    assert (-there[0], -there[2], -there[1]) == pytest.approx(back)


@given(LOGS)
def test_more_confidence_is_never_narrower(logs: list[float]) -> None:
    """A higher confidence holds the lower one's interval, and both hold the estimate."""
    narrow, wide = ratio_interval(logs, confidence=0.9), ratio_interval(logs, confidence=0.98)
    assert wide.low <= narrow.low <= narrow.estimate <= narrow.high <= wide.high
