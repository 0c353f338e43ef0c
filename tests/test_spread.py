"""Shared variances: narrower intervals with the same coverage."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import share
from builders import row, study_run, trials
from tollbar.analysis import judge_study
from tollbar.core.intervals import Interval, student
from tollbar.core.spread import are_unlike, shared

CONFIDENCE = 0.96
REPETITIONS = share.of(60, 400)
# Standard deviation of the logarithm of one block's ratio, as in the recorded runs.
OF_A_BLOCK = 0.016


def interval(of_blocks: np.ndarray) -> Interval:
    """Return Student's interval of a ratio with these logarithms of blocks."""
    middle, number = float(of_blocks.mean()), len(of_blocks)
    half = student(number - 1.0, CONFIDENCE) * float(of_blocks.std(ddof=1)) / math.sqrt(number)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return Interval(math.exp(middle), low, high, CONFIDENCE, number, freedom=number - 1.0)


def drawn(source: np.random.Generator, rows: int, blocks: int, freedom: float, unlike: int = 0) -> list[Interval]:
    """Return ratios of a true ×1 whose variances have this many degrees of freedom.

    `unlike` of them are ten times as large.
    """
    variances = OF_A_BLOCK**2 * (freedom / source.chisquare(freedom, rows) if math.isfinite(freedom) else np.ones(rows))
    variances[:unlike] *= 10
    return [interval(row) for row in source.normal(0, 1, (rows, blocks)) * np.sqrt(variances)[:, None]]


@pytest.mark.parametrize("unlike", [0, 1])
@pytest.mark.parametrize("freedom", [math.inf, 12.0, 3.0])
@pytest.mark.parametrize(("rows", "blocks", "narrower"), [(4, 4, 0.65), (10, 4, 0.60), (10, 6, 0.80), (10, 12, 0.95)])
def test_moderated_intervals_cover_and_are_narrower(
    rows: int, blocks: int, narrower: float, freedom: float, unlike: int
) -> None:
    """Squared half-widths, which are times, fall; 96 % intervals cover in 93 % of cases or more, all rows together."""
    source = np.random.default_rng([rows, blocks, unlike, int(min(freedom, 99))])
    covered, own, moderated = [], [], []
    for _ in range(REPETITIONS * 10 // rows):
        ratios = drawn(source, rows, blocks, freedom, unlike)
        spread = shared(ratios)
        assert spread is not None
        for ratio in ratios:
            found = spread.moderate(ratio)
            covered.append(found.low <= 1 <= found.high)
            own.append(ratio.half_width)
            moderated.append(found.half_width)
    error = math.sqrt(0.93 * 0.07 / len(covered))
    assert np.mean(covered) > 0.93 - 2 * error
    assert (np.median(moderated) / np.median(own)) ** 2 < narrower


def test_a_row_that_varies_ten_times_as_much_keeps_its_interval() -> None:
    """Not always: with four blocks its variance is at times as small as the others'."""
    source = np.random.default_rng(5)
    kept = covered = 0
    for _ in range(200):
        ratios = drawn(source, 12, 6, 12.0, unlike=1)
        spread = shared(ratios)
        assert spread is not None
        found = spread.moderate(ratios[0])
        kept += found == ratios[0]
        covered += found.low <= 1 <= found.high
    assert kept > 160
    assert covered > 180


@pytest.mark.parametrize("blocks", [4, 6])
def test_a_row_of_few_rounds_does_not_take_the_variance_of_many(blocks: int) -> None:
    """Slow operations take part in one of ten rounds, so half of these rows vary several times as much as the rest."""
    source, number = np.random.default_rng([7, blocks]), share.of(100, 600)

    def costs(rounds: int) -> list[list[float]]:
        luck, each = source.normal(0, 0.006, (blocks, 1)), source.normal(0, 0.04, (blocks, rounds))
        return (100 * np.exp(luck + each)).tolist()  # type: ignore[no-any-return]

    covered = {1: 0, 10: 0}
    for _ in range(number):
        rows = [replace(row({"choice": "none"}, costs(10)), repeats=trials(costs(10), repeat=True))]
        rows += [
            row({"choice": f"{rounds}-{n}"}, costs(rounds), against="none") for rounds in covered for n in range(3)
        ]
        for toll in judge_study(study_run(rows, (blocks,))).tolls[1:]:
            assert toll.ratio is not None
            covered[int(str(toll.row.choice).partition("-")[0])] += toll.ratio.low <= 1 <= toll.ratio.high
    print(f"{blocks} blocks: {covered} of {3 * number} covered")
    for found in covered.values():
        assert found / (3 * number) > 0.93 - math.sqrt(0.93 * 0.07 / (3 * number))


def test_few_ratios_share_nothing() -> None:
    """Two variances do not show how variances differ; open intervals have none."""
    ratios = drawn(np.random.default_rng(1), 3, 6, 12.0)
    opened = replace(ratios[0], low=0.0, high=math.inf)
    assert shared(ratios) is not None
    assert shared(ratios[:2]) is None
    assert shared([*ratios[:2], opened]) is None
    spread = shared(ratios)
    assert spread is not None
    assert opened == spread.moderate(opened)


def test_the_estimate_and_the_number_of_blocks_stay() -> None:
    ratios = drawn(np.random.default_rng(2), 8, 6, 12.0)
    spread = shared(ratios)
    assert spread is not None
    for ratio in ratios:
        found = spread.moderate(ratio)
        assert replace(found, low=ratio.low, high=ratio.high, freedom=ratio.freedom) == ratio
        assert found.low < found.estimate < found.high


@pytest.mark.parametrize("pairs", [2, 4, 8])
@pytest.mark.parametrize("blocks", [6, 12])
def test_equal_ratios_seldom_differ(pairs: int, blocks: int) -> None:
    """At 96 %, in some 4 of 100 cases."""
    source = np.random.default_rng([pairs, blocks])
    number = share.of(300, 1000)
    found = sum(are_unlike(drawn(source, pairs, blocks, 12.0)) for _ in range(number))
    assert found / number < 0.05 + 2 * math.sqrt(0.05 * 0.95 / number)


def test_two_per_cent_between_halves_is_found() -> None:
    """With eight pairs of twelve blocks each, half of them at ×1.02."""
    source = np.random.default_rng(9)
    found = 0
    for _ in range(200):
        ratios = drawn(source, 8, 12, 12.0)
        moved = [
            replace(one, estimate=1.02 * one.estimate, low=1.02 * one.low, high=1.02 * one.high) for one in ratios[:4]
        ]
        found += are_unlike([*moved, *ratios[4:]])
    assert found > 180


def test_ratios_without_intervals_do_not_differ() -> None:
    one, other = drawn(np.random.default_rng(3), 2, 6, 12.0)
    opened = replace(other, estimate=9.0, low=0.0, high=math.inf)
    assert not are_unlike([one])
    assert not are_unlike([one, opened])
    # An open one does not hide that others differ.
    far = replace(other, estimate=2 * other.estimate, low=2 * other.low, high=2 * other.high)
    assert are_unlike([one, far, opened])
