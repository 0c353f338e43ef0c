"""Functions of several estimates: sums, ratios of sums, and inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tollbar.core import intervals, stats
from tollbar.core.intervals import Interval, Moments, student
from tollbar.core.visits import Visit

QUIET, NOISY = Moments.QUIET, Moments.ALL


def visits(costs: Sequence[float], noisy: float = 0.0, quiet: int = 100) -> list[Visit]:
    """Return a visit for each block: an extra quiet round at this cost, and a disturbed first try at `noisy` more.

    From the block `quiet` on nothing is quiet.
    """
    first = np.array([True, False])
    return [
        Visit(n, 0, np.arange(2), np.array([one + noisy, one]), np.ones(2, int), ~first & (n < quiet), first)
        for n, one in enumerate(costs)
    ]


def interval(low: float, high: float, **more: object) -> Interval:
    """Return an interval with its estimate in the middle, by default of eight blocks and seven degrees of freedom."""
    how = {"confidence": 0.95, "n": 8, "moments": QUIET, "freedom": 7.0, **more}
    return Interval((low + high) / 2, low, high, **how)  # type: ignore[arg-type]


def test_the_sum_of_independent_estimates_by_hand() -> None:
    """Standard errors add as squares do, and the degrees of freedom are those of Welch and Satterthwaite."""
    one, other = interval(90.0, 110.0), interval(40.0, 60.0, n=5, freedom=4.0)
    errors = 10 / student(7.0, 0.95), 10 / student(4.0, 0.95)
    variance = errors[0] ** 2 + errors[1] ** 2
    freedom = round(variance**2 / (errors[0] ** 4 / 7 + errors[1] ** 4 / 4), 1)
    half = student(freedom, 0.95) * math.sqrt(variance)
    found = intervals.total([one, other])
    assert (150.0, 0.95, 5, QUIET, freedom) == (found.estimate, found.confidence, found.n, found.moments, found.freedom)
    assert pytest.approx((150 - half, 150 + half)) == (found.low, found.high)
    assert 7 < freedom < 11


def test_a_sum_says_of_which_moments_it_is_and_how_sure() -> None:
    """A sum is quiet, bounded or exact only if all its parts are; the sum of one part is that part."""
    one, other = interval(90.0, 110.0), interval(40.0, 60.0, moments=NOISY, confidence=0.99)
    assert one == intervals.total([one])
    both = intervals.total([one, other])
    assert (NOISY, 0.99) == (both.moments, both.confidence)
    assert QUIET == intervals.total([one, one]).moments
    open_ = intervals.total([one, replace(other, high=math.inf)])
    assert (150.0, -math.inf, math.inf, 0.99, 8, NOISY) == (
        open_.estimate, open_.low, open_.high, open_.confidence, open_.n, open_.moments,
    )  # fmt: skip
    exact = intervals.total([interval(5.0, 5.0), interval(7.0, 7.0, n=3)])
    assert (12.0, 12.0, 12.0, 0.95, 3, QUIET) == (
        exact.estimate, exact.low, exact.high, exact.confidence, exact.n, exact.moments,
    )  # fmt: skip


def test_a_few_degrees_of_freedom_are_never_less_than_one() -> None:
    """A part with nearly all of the variance decides."""
    found = intervals.total([interval(0.0, 200.0, freedom=1.0), interval(9.999, 10.001, freedom=50.0)])
    assert 1.0 == found.freedom
    assert pytest.approx(100.0, rel=1e-3) == found.high - found.estimate


def test_a_ratio_seen_from_the_other_side() -> None:
    found = interval(1.5, 2.5).inverse
    assert (0.5, 0.4, 1 / 1.5, 8, 7.0) == (found.estimate, found.low, found.high, found.n, found.freedom)
    assert (0.0, 2.0) == (replace(interval(0.5, 1.0), high=math.inf).inverse.low, interval(0.5, 1.0).inverse.high)
    assert math.inf == replace(interval(0.0, 2.0), low=0.0).inverse.high


@pytest.mark.parametrize(("moments", "more"), [(QUIET, 0.0), (NOISY, 50.0)])
def test_sums_of_costs_are_of_the_moments_that_are_asked_for(moments: Moments, more: float) -> None:
    a, b = [100.0, 101.0, 99.0, 100.0], [200.0, 202.0, 198.0, 200.0]
    of = [visits(a, 50.0), visits(b, 50.0)]
    added = stats.added(of, (2.0, -1.0), moments)
    over = stats.ratio_of_sums(of, (0.0, 1.0), (2.0, 0.0), moments)
    assert added is not None
    assert over is not None
    assert pytest.approx(more) == added.estimate
    assert pytest.approx((200 + more) / (200 + 2 * more)) == over.estimate
    assert (moments, moments, 4, 4) == (added.moments, over.moments, added.n, over.n)
    # At 0 it costs 200 and at 10 it costs 100: as much as the level in the middle, disturbed or not.
    crossing = stats.crossing([0.0, 10.0], [of[1], of[0]], visits([150.0] * 4, 50.0), moments)
    assert crossing is not None
    assert pytest.approx(5.0) == crossing.estimate
    assert moments == crossing.moments


def test_sums_are_over_the_blocks_that_all_have() -> None:
    found = stats.added([visits([1.0] * 6), visits([2.0] * 9)], (1.0, 1.0), QUIET)
    assert found is not None
    assert (3.0, 6) == (found.estimate, found.n)
    fewer = stats.added([visits([1.0] * 6), visits([2.0] * 9, quiet=4)], (1.0, 1.0), QUIET, confidence=0.99)
    assert fewer is not None
    assert (4, 0.99) == (fewer.n, fewer.confidence)
    assert stats.added([visits([1.0] * 6, quiet=0), visits([2.0] * 6)], (1.0, 1.0), QUIET) is None


@pytest.mark.parametrize(("above", "below"), [((1.0, -1.0), (1.0, 0.0)), ((1.0, 0.0), (1.0, -1.0))])
def test_there_is_no_ratio_of_a_sum_of_nothing(above: Sequence[float], below: Sequence[float]) -> None:
    of = [visits([5.0] * 4), visits([5.0] * 4)]
    assert stats.ratio_of_sums(of, above, below, QUIET) is None


def test_a_line_that_does_not_fall_meets_no_level() -> None:
    for costs in ((5.0, 5.0), (5.0, 6.0)):
        line = [visits([one] * 4) for one in costs]
        assert stats.crossing([0.0, 1.0], line, visits([4.0] * 4), QUIET) is None


def test_a_line_that_one_block_bends_has_no_interval() -> None:
    """Without that block the line rises: the crossing is reported with an open interval."""
    line = [visits([1.0, 1.0, 1.0, 21.0]), visits([2.0] * 4)]
    found = stats.crossing([0.0, 1.0], line, visits([4.0] * 4), QUIET, confidence=0.99)
    assert found is not None
    assert pytest.approx(0.5) == found.estimate
    assert (-math.inf, math.inf, 0.99, 4, QUIET) == (found.low, found.high, found.confidence, found.n, found.moments)


def test_a_sum_is_of_costs_of_operations_however_many_a_round_had() -> None:
    """Ten operations in each round cost a tenth each."""
    by_tens = [replace(one, operations=10 * one.operations) for one in visits([10.0, 20.0, 30.0, 40.0])]
    ones = visits([1.0, 2.0, 3.0, 4.0])
    expected, found = (stats.added([side], [1.0], QUIET) for side in (ones, by_tens))
    assert expected is not None
    assert expected == found
    assert pytest.approx(2.5) == expected.estimate


def test_sides_that_seldom_met_are_compared_by_the_blocks_of_each() -> None:
    of, over = visits([2.0] * 8)[:5], visits([1.0] * 8)[3:]
    found = stats.ratio(of, over, QUIET)
    assert found is not None
    assert (pytest.approx(2.0), 5) == (found.estimate, found.n)
