"""Estimates and intervals: against published tables and by hand, and the laws they must keep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollbar import stats
from tollbar.stats import Visit, critical_rank, signed_rank_interval, student

LOGS = st.lists(st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=3, max_size=3), min_size=4, max_size=12)


def visits(blocks: Sequence[Sequence[float]], *, heat: int = 0, varies: bool = False) -> list[Visit]:
    """A visit for each block, with these logarithms of costs."""
    return [Visit(b, heat, np.arange(len(logs)), np.array(logs, float), varies) for b, logs in enumerate(blocks)]


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


@pytest.mark.parametrize(
    ("freedom", "confidence", "quantile"),
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (5, 0.95, 2.571), (11, 0.95, 2.201), (11, 0.99, 3.106), (30, 0.95, 2.042)],
)
def test_student_is_the_published_one(freedom: float, confidence: float, quantile: float) -> None:
    """Student's table for two sides."""
    assert math.isclose(quantile, student(freedom, confidence), abs_tol=0.001)


def test_signed_ranks_by_hand() -> None:
    """Of six values the interval is all there is, and the estimate the median of the pairwise means."""
    low, estimate, high = signed_rank_interval([0.0, 0.1, 0.2, 0.3, 0.4, 1.0], confidence=0.95)
    assert (0.0, 1.0) == (low, high)
    assert math.isclose(0.25, estimate)


def test_a_slow_block_moves_a_rank_and_not_a_sum() -> None:
    """The typical ratio does not follow one block that was three times too slow."""
    quiet = [[0.0, 0.01, -0.01]] * 11
    one = visits([*quiet, [1.1, 1.1, 1.1]])
    assert math.isclose(1.0, stats.typical_ratio(one, visits([[0.0] * 3] * 12)).estimate, abs_tol=0.005)


def test_disturbed_chunks_hardly_count() -> None:
    """Half of all chunks at 1.3 times the cost do not show in the undisturbed cost, and do in the typical one."""
    disturbed = [[0.0, 0.26, 0.0, 0.26]] * 8
    assert stats.undisturbed(visits(disturbed)).estimate < 1.003
    assert math.isclose(math.exp(0.13), stats.typical(visits(disturbed)).estimate, rel_tol=1e-6)


def test_a_ratio_is_made_in_moments_that_both_had_to_themselves() -> None:
    """Unlike work that a disturbance weighs differently comes out as it is without it."""
    state = [[0.0, 0.4, 0.4, 0.0, 0.2]] * 8
    one = visits([[math.log(16.0) + x for x in block] for block in state])
    other = visits([[0.45 * x for x in block] for block in state])
    assert math.isclose(16.0, stats.undisturbed_ratio(one, other).estimate, rel_tol=0.004)
    assert stats.typical_ratio(one, other).estimate > 17.0


def test_quiet_moments_of_one_block_alone_do_not_make_an_interval_narrow() -> None:
    """Where only one of ten blocks was quiet, the others' luck is not known, and the interval says so."""
    busy = [[0.3 + 0.02 * (block % 3), 0.35] for block in range(9)]
    quiet = visits([[0.0, 0.0], *busy])
    other = visits([[0.0, 0.0], *[[0.3, 0.35]] * 9])
    everywhere = visits([[0.0, 0.0]] * 10)
    assert width(stats.undisturbed_ratio(quiet, other)) > 10 * width(stats.undisturbed_ratio(everywhere, everywhere))


def test_work_that_varies_keeps_its_mean() -> None:
    """Operations that differ by nature cost what they cost on average, and not what a lucky one does."""
    source = np.random.default_rng(3)
    blocks = np.log(source.gamma(2.0, 50.0, (20, 30)))
    alike = visits([[0.0] * 30] * 20)
    assert math.isclose(100.0, stats.undisturbed_ratio(visits(blocks, varies=True), alike).estimate, rel_tol=0.1)
    assert stats.undisturbed_ratio(visits(blocks), alike).estimate < 60.0


def test_two_that_never_met_have_a_ratio_with_both_errors() -> None:
    """Without a heat in common there are no pairs: the ratio is that of the costs, and no narrower than either."""
    one, other = visits([[1.0, 1.01], [1.0, 1.02], [0.99, 1.0], [1.0, 1.0]], heat=1), visits([[0.0, 0.01]] * 4)
    apart = stats.undisturbed_ratio(one, other)
    assert math.isclose(stats.undisturbed(one).estimate / stats.undisturbed(other).estimate, apart.estimate)
    assert width(apart) >= width(stats.undisturbed(one)) * (1 - 1e-9)


def test_chunks_are_paired_by_round() -> None:
    """A slow cell that has its turn in every other round is held against the chunks beside its own."""
    base = [Visit(b, 0, np.arange(4), np.array([0.0, 0.5, 0.0, 0.5])) for b in range(5)]
    slow = [Visit(b, 0, np.array([1, 3]), np.array([1.5, 1.5])) for b in range(5)]
    assert math.isclose(math.e, stats.typical_ratio(slow, base).estimate, rel_tol=1e-9)


def test_too_few_blocks_say_so() -> None:
    """Then there is an estimate, and no end to the interval."""
    few = visits([[0.0, 0.1]] * (FEWEST_BLOCKS - 1))
    assert not stats.undisturbed(few).is_bounded
    assert stats.undisturbed(visits([[0.0, 0.1]] * FEWEST_BLOCKS)).is_bounded


def test_no_visit_is_an_error() -> None:
    """There is no estimate of nothing."""
    for estimate in (stats.undisturbed, stats.typical):
        with pytest.raises(ValueError, match="at least one visit"):
            estimate([])
    with pytest.raises(ValueError, match="at least one visit"):
        stats.undisturbed_ratio(visits([[0.0]]), [])


@given(LOGS, st.randoms(use_true_random=False))
def test_order_of_blocks_is_irrelevant(logs: list[list[float]], random: object) -> None:
    """The same chunks say the same in any order of their blocks."""
    one = visits(logs)
    other = list(one)
    random.shuffle(other)  # type: ignore[attr-defined]
    assert same(stats.undisturbed(one), stats.undisturbed(other))
    assert same(stats.typical_ratio(one, one), stats.typical_ratio(other, other))


@given(LOGS, LOGS)
def test_swapping_sides_inverts_the_interval(one: list[list[float]], other: list[list[float]]) -> None:
    """How much dearer the one is, is how much cheaper the other is."""
    for ratio in (stats.undisturbed_ratio, stats.typical_ratio):
        there, back = ratio(visits(one), visits(other)), ratio(visits(other), visits(one))
        assert math.isclose(there.estimate, 1 / back.estimate, rel_tol=1e-9)
        if there.is_bounded:
            assert math.isclose(there.low, 1 / back.high, rel_tol=1e-9)


@given(LOGS, st.floats(-2, 2))
def test_scale_equivariance(logs: list[list[float]], shift: float) -> None:
    """In another unit everything is that many times as large."""
    moved = [[x + shift for x in block] for block in logs]
    here, there = stats.undisturbed(visits(logs)), stats.undisturbed(visits(moved))
    assert math.isclose(here.estimate * math.exp(shift), there.estimate, rel_tol=1e-9)


@given(LOGS)
def test_more_confidence_is_never_narrower(logs: list[list[float]]) -> None:
    """An interval that is to be right more often is no shorter."""
    for estimate in (stats.undisturbed, stats.typical):
        assert width(estimate(visits(logs), confidence=0.99)) >= width(estimate(visits(logs), confidence=0.95))


def width(interval: stats.Interval) -> float:
    """From end to end, on logarithms."""
    return math.log(interval.high / interval.low) if interval.is_bounded else math.inf


def same(one: stats.Interval, other: stats.Interval) -> bool:
    """Alike but for the last bits."""
    pairs = ((one.estimate, other.estimate), (one.low, other.low), (one.high, other.high))
    return all(math.isclose(a, b, rel_tol=1e-9) or a == b for a, b in pairs)
