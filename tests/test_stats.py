"""Estimates and intervals: by hand, against a published table, and by invariants."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollbar.core import intervals, stats
from tollbar.core.intervals import FEWEST_BLOCKS, Interval, Moments, student
from tollbar.core.visits import Visit, column

QUIET, NOISY = Moments.QUIET, Moments.ALL

# By block and round: the CPU time of a chunk, and its operations.
CHUNKS = st.lists(
    st.lists(st.tuples(st.floats(1, 1000), st.integers(1, 50)), min_size=3, max_size=3), min_size=4, max_size=10
)


def visits(
    costs: Sequence[Sequence[float]],
    operations: Sequence[Sequence[int]] | None = None,
    *,
    batch: int = 0,
    quiet: Sequence[Sequence[bool]] | None = None,
    rounds: Sequence[int] | None = None,
) -> list[Visit]:
    """Return a visit for each block with these chunks' costs, by default each of one operation, and quiet."""
    return [
        Visit(
            block,
            batch,
            rounds=np.array(rounds if rounds is not None else range(len(spent))),
            costs=np.array(spent, float),
            operations=np.array(operations[block] if operations else [1] * len(spent)),
            quiet=np.array(quiet[block] if quiet else [True] * len(spent)),
            first=np.ones(len(spent), bool),
        )
        for block, spent in enumerate(costs)
    ]


def drawn(chunks: Sequence[Sequence[tuple[float, int]]], *, batch: int = 0) -> list[Visit]:
    """Return the visits of these chunks."""
    return visits([[c for c, _ in block] for block in chunks], [[n for _, n in block] for block in chunks], batch=batch)


@pytest.mark.parametrize(
    ("freedom", "confidence", "quantile"),
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (5, 0.95, 2.571), (11, 0.95, 2.201), (11, 0.99, 3.106), (30, 0.95, 2.042)],
)
def test_student_is_the_published_one(freedom: float, confidence: float, quantile: float) -> None:
    """Student's table for two sides."""
    assert math.isclose(quantile, student(freedom, confidence), abs_tol=0.001)


def test_the_jackknife_by_hand() -> None:
    """Four blocks at 1, 2, 3 and 4 against four at 1: the mean of all, and of each three that are left."""
    found = known(stats.ratio(visits([[1], [2], [3], [4]]), visits([[1], [1], [1], [1]]), QUIET))
    without = [math.log(mean) for mean in (3, 8 / 3, 7 / 3, 2)]
    middle = sum(without) / 4
    error = math.sqrt(3 / 4 * sum((each - middle) ** 2 for each in without))
    assert math.isclose(2.5, found.estimate)
    assert math.isclose(2.5 * math.exp(3.182446 * error), found.high, rel_tol=1e-4)
    assert math.isclose(2.5 / math.exp(3.182446 * error), found.low, rel_tol=1e-4)
    assert (4, QUIET, 0.95) == (found.n, found.moments, found.confidence)


def test_a_ratio_by_hand() -> None:
    """Σ cost / Σ operations of the one over that of the other."""
    of = visits([[30, 10], [20, 20], [20, 20], [20, 20]], [[3, 1], [1, 1], [2, 2], [2, 2]])
    over = visits([[5, 5]] * 4, [[2, 3]] * 4)
    assert math.isclose((160 / 14) / (40 / 20), known(stats.ratio(of, over, QUIET)).estimate)


def test_blocks_that_are_alike_leave_nothing_open() -> None:
    found = known(stats.ratio(visits([[2, 4]] * 5), visits([[1, 2]] * 5), QUIET))
    assert math.isclose(2, found.low)
    assert math.isclose(2, found.high)


def test_half_width_is_a_share_of_the_estimate() -> None:
    """From 0.9 to 1.1 times, on logarithms."""
    assert math.isclose(0.1, Interval(1.0, 1 / 1.1, 1.1, 0.95, 5).half_width)
    assert math.inf == Interval(1.0, 0.0, math.inf, 0.95, 2).half_width


def test_only_what_the_probe_says_is_selected() -> None:
    """Quiet: quiet rounds, extra or not. Noisy: first tries, quiet or not. The cost decides nothing."""
    blocks = [
        replace(
            visit,
            quiet=np.array([True, False, True]),
            first=np.array([True, True, False]),
        )
        for visit in visits([[10, 40, 90]] * 4)
    ]
    assert math.isclose(50, known(stats.cost(blocks, QUIET)).estimate)
    assert math.isclose(25, known(stats.cost(blocks, NOISY)).estimate)


def test_pairs_are_of_one_block_batch_and_round() -> None:
    of = visits([[2, 900, 2, 900]] * 4)
    over = visits([[1, 1]] * 4, rounds=[0, 2])
    assert math.isclose(2, known(stats.ratio(of, over, QUIET)).estimate)
    busy = visits([[1, 50, 1, 50]] * 4, quiet=[[True, False, True, False]] * 4)
    assert math.isclose(2, known(stats.ratio(of, busy, QUIET)).estimate)
    assert math.isclose(1804 / 102, known(stats.ratio(of, busy, NOISY)).estimate)
    # Another batch is another moment with other processes.
    elsewhere = [*visits([[1, 1, 1, 1]] * 4), *visits([[700] * 4] * 4, batch=1)]
    assert math.isclose(451, known(stats.ratio(of, elsewhere, QUIET)).estimate)


def test_two_that_never_met_are_compared_by_all_that_each_has() -> None:
    one, other = visits([[3, 3], [3, 4], [2, 3], [3, 3]], batch=1), visits([[1, 1.1], [1, 1], [1, 1.2], [1, 1]])
    apart = known(stats.ratio(one, other, QUIET))
    costs = [known(stats.cost(side, QUIET)) for side in (one, other)]
    assert math.isclose(costs[0].estimate / costs[1].estimate, apart.estimate)
    assert 4 == apart.n
    assert width(apart) > 0.5 * max(map(width, costs))


def test_two_that_seldom_met_are_not_judged_by_those_blocks_alone() -> None:
    """Pairs count if they are in at least half of the blocks of the side with fewer."""
    of = visits([[2.0 + block / 10] for block in range(10)])
    often = [replace(visit, batch=int(visit.block >= 5)) for visit in visits([[1.0]] * 10)]
    seldom = [replace(visit, batch=int(visit.block >= 4)) for visit in visits([[1.0]] * 10)]
    assert math.isclose(2.2, known(stats.ratio(of, often, QUIET)).estimate)
    assert 5 == known(stats.ratio(of, often, QUIET)).n
    assert math.isclose(2.45, known(stats.ratio(of, seldom, QUIET)).estimate)
    assert 10 == known(stats.ratio(of, seldom, QUIET)).n


@pytest.mark.parametrize(
    ("quiet", "is_enough"), [((12, 2, 2, 2), True), ((14, 2, 2, 2), False), ((20, 1, 1, 1), False)]
)
def test_quiet_rounds_of_one_block_are_too_few(quiet: tuple[int, ...], is_enough: bool) -> None:
    """Kish's number is 324 / 156 = 2.1 blocks with twelve and three times two rounds, 400 / 208 = 1.9 with 14."""
    costs, rounds = [[1.0] * 20] * 4, [[place < number for place in range(20)] for number in quiet]
    found = known(stats.cost(visits(costs, quiet=rounds), QUIET))
    assert (is_enough, 4) == (found.is_bounded, found.n)
    assert known(stats.cost(visits(costs, quiet=rounds), NOISY)).is_bounded


def test_too_few_blocks_say_so() -> None:
    few, enough = (known(stats.cost(visits([[1, 2]] * n), QUIET)) for n in (FEWEST_BLOCKS - 1, FEWEST_BLOCKS))
    assert (False, FEWEST_BLOCKS - 1) == (few.is_bounded, few.n)
    assert (0.0, 1.5, math.inf) == (few.low, few.estimate, few.high)
    assert enough.is_bounded


def test_quiet_rounds_in_few_blocks_are_too_few() -> None:
    """A hundred quiet rounds of three blocks are three processes, so all samples are used."""
    quiet = [[block < 3] * 20 for block in range(10)]
    seen = visits([[1.0 + (block >= 3)] * 20 for block in range(10)], quiet=quiet)
    found, all_samples = stats.cost(seen, QUIET), stats.cost(seen, NOISY)
    assert not known(found).is_bounded
    assert (NOISY, 1.7) == (known(intervals.best(found, all_samples)).moments, known(all_samples).estimate)


def test_the_best_is_the_quiet_one_unless_only_the_other_is_known() -> None:
    """If neither side has enough blocks the quiet estimate is the better guess."""
    bounded = Interval(1.0, 0.9, 1.1, 0.95, 5)
    open_one = Interval(1.2, 0.0, math.inf, 0.95, 2)
    all_samples = replace(bounded, moments=NOISY)
    assert bounded == intervals.best(bounded, all_samples)
    assert all_samples == intervals.best(open_one, all_samples)
    assert all_samples == intervals.best(None, all_samples)
    assert open_one == intervals.best(open_one, replace(open_one, moments=NOISY))
    assert open_one == intervals.best(open_one, None)
    assert intervals.best(None, None) is None


def test_a_block_weighs_by_its_quiet_rounds() -> None:
    """Nine blocks of one quiet round and three of twenty weigh little more than three; so do the degrees of freedom."""
    lucks = [0.99, 1.0, 1.01] * 4
    even = visits([[luck] * 20 for luck in lucks])
    uneven = visits([[luck] * 20 for luck in lucks], quiet=[[n < 1 or b < 3 for n in range(20)] for b in range(12)])
    assert width(known(stats.cost(uneven, QUIET))) > 1.5 * width(known(stats.cost(even, QUIET)))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "rounds", [[20] * 12, [20] * 6 + [2] * 6, [20] * 3 + [1] * 9, [*range(1, 24, 2)], [20, 10, 3, 1]], ids=str
)
def test_blocks_of_unlike_many_rounds_cover_all_the_same(rounds: list[int]) -> None:
    """Processes differ by luck, and numbers of quiet rounds vary: 95 % intervals still cover in 95 %."""
    source, covered, repetitions = np.random.default_rng(4), 0, 1000
    for _ in range(repetitions):
        lucks = np.exp(source.normal(0, 0.02, len(rounds)))
        seen = visits([[luck] * n for luck, n in zip(lucks, rounds, strict=True)])
        found = known(stats.cost(seen, QUIET))
        covered += found.low <= math.exp(0.02**2 / 2) <= found.high
    print(f"{rounds}: covers {covered / repetitions:.1%}")
    assert 0.93 <= covered / repetitions <= 0.995


def test_where_nothing_was_spent_there_is_no_cost() -> None:
    nothing, something = visits([[0.0, 0.0]] * 5), visits([[1.0, 1.0]] * 5)
    never = visits([[1.0, 1.0]] * 5, quiet=[[False, False]] * 5)
    for silent in (nothing, never, []):
        assert stats.cost(silent, QUIET) is None
        assert stats.ratio(silent, something, QUIET) is None
        assert stats.ratio(something, silent, QUIET) is None


def test_what_was_spent_in_one_block_alone_has_no_interval() -> None:
    """Without that block no cost remains."""
    assert not known(stats.cost(visits([[1.0], [0.0], [0.0], [0.0], [0.0]]), QUIET)).is_bounded


def test_a_quotient_has_both_errors() -> None:
    """Relative errors of two runs add up as squares do."""
    three, four = (Interval(n, n / math.exp(n / 100), n * math.exp(n / 100), 0.96, int(n)) for n in (3.0, 4.0))
    found = intervals.quotient(three, four)
    assert math.isclose(0.75, found.estimate)
    assert math.isclose(0.1, width(found))
    assert (3, 0.96) == (found.n, found.confidence)
    wide = Interval(1.0, 1e-300, 1e300, 0.96, 4)
    assert not intervals.product(wide, wide).is_bounded
    assert not intervals.quotient(three, Interval(4.0, 0.0, math.inf, 0.96, 2)).is_bounded


def test_operations_that_vary_keep_their_mean_where_time_ends_a_chunk() -> None:
    """Chunks of 5 ms with a slow operation have fewer operations, so only a weighted mean counts them correctly."""
    source = np.random.default_rng(3)
    costs, operations = [], []
    for _ in range(100):
        chunks = [source.gamma(2.0, 1.0, 40) for _ in range(30)]
        taken = [1 + int(np.searchsorted(np.cumsum(chunk), 5.0)) for chunk in chunks]
        costs.append([float(chunk[:n].sum()) for chunk, n in zip(chunks, taken, strict=True)])
        operations.append(taken)
    each_alike = np.mean([c / n for cs, ns in zip(costs, operations, strict=True) for c, n in zip(cs, ns, strict=True)])
    assert math.isclose(2.0, known(stats.cost(visits(costs, operations), QUIET)).estimate, rel_tol=0.02)
    assert each_alike > 2.2


@given(CHUNKS, st.randoms(use_true_random=False))
def test_order_of_visits_is_irrelevant(chunks: list[list[tuple[float, int]]], random: Random) -> None:
    one, others = drawn(chunks), drawn(chunks[::-1])
    mixed = random.sample(one, len(one))
    assert same(stats.cost(one, QUIET), stats.cost(mixed, QUIET))
    assert same(stats.ratio(one, others, QUIET), stats.ratio(mixed, others, QUIET))


@given(CHUNKS, CHUNKS)
def test_swapping_sides_inverts_the_interval(
    one: list[list[tuple[float, int]]], other: list[list[tuple[float, int]]]
) -> None:
    there, back = (
        known(stats.ratio(*sides, QUIET)) for sides in ((drawn(one), drawn(other)), (drawn(other), drawn(one)))
    )
    assert math.isclose(there.estimate, 1 / back.estimate, rel_tol=1e-9)
    assert there.is_bounded == back.is_bounded
    if there.is_bounded:
        assert math.isclose(there.low, 1 / back.high, rel_tol=1e-9)


@given(CHUNKS, st.floats(0.001, 1000))
def test_scaling_a_side_scales_the_ratio(chunks: list[list[tuple[float, int]]], times: float) -> None:
    of, over = drawn(chunks), drawn(chunks[::-1])
    scaled = [replace(visit, costs=visit.costs * times) for visit in of]
    here, there = known(stats.ratio(of, over, QUIET)), known(stats.ratio(scaled, over, QUIET))
    moved = replace(here, estimate=here.estimate * times, low=here.low * times, high=here.high * times)
    assert same(moved, there)


@given(CHUNKS, st.floats(0.01, 100))
def test_what_disturbs_a_block_as_a_whole_changes_no_ratio(chunks: list[list[tuple[float, int]]], state: float) -> None:
    of, over = drawn(chunks), drawn(chunks[::-1])
    slow = [[replace(visit, costs=visit.costs * state) for visit in side] for side in (of, over)]
    assert same(stats.ratio(of, over, QUIET), stats.ratio(*slow, QUIET))


@given(CHUNKS)
def test_a_chunk_counts_by_its_operations(chunks: list[list[tuple[float, int]]]) -> None:
    whole = drawn([[(c, 2 * n) for c, n in block] for block in chunks])
    halves = drawn([[(c / 2, n) for c, n in block for _ in range(2)] for block in chunks])
    assert same(stats.cost(whole, QUIET), stats.cost(halves, QUIET))


@given(CHUNKS)
def test_a_noisy_block_changes_nothing_quiet(chunks: list[list[tuple[float, int]]]) -> None:
    of, over = drawn(chunks), drawn(chunks[::-1])
    busy = replace(visits([[500.0] * 3])[0], block=99, quiet=np.zeros(3, bool))
    assert same(stats.ratio(of, over, QUIET), stats.ratio([*of, busy], [*over, busy], QUIET))
    # A block with the baseline alone adds nothing to a pair.
    assert same(stats.ratio(of, over, QUIET), stats.ratio(of, [*over, replace(busy, quiet=np.ones(3, bool))], QUIET))


@given(CHUNKS)
def test_more_confidence_is_never_narrower(chunks: list[list[tuple[float, int]]]) -> None:
    sides = drawn(chunks), drawn(chunks[::-1])
    less, more = (known(stats.ratio(*sides, QUIET, confidence=confidence)) for confidence in (0.95, 0.99))
    assert width(more) >= width(less)


def known(found: Interval | None) -> Interval:
    """Return the interval, which must exist."""
    assert found is not None
    return found


def width(interval: Interval) -> float:
    """Return the width from end to end, on logarithms."""
    return math.log(interval.high / interval.low) if interval.is_bounded else math.inf


def same(one: Interval | None, other: Interval | None) -> bool:
    """Return whether two intervals are equal except for the last bits."""
    if one is None or other is None:
        return one is other
    pairs = ((one.estimate, other.estimate), (one.low, other.low), (one.high, other.high))
    return one.n == other.n and all(math.isclose(a, b, rel_tol=1e-7) or a == b for a, b in pairs)


def test_a_line_falls_to_a_level() -> None:
    """Costs of 22, 17 and 12 at 0, 50 and 100 % against a constant 20: the crossing is at 20 %, on any machine."""
    machine = [1.0, 1.2, 0.9, 1.1, 1.0]
    line = [visits([[cost * speed] * 3 for speed in machine]) for cost in (22, 17, 12)]
    level = visits([[20 * speed] * 3 for speed in machine])
    found = known(stats.crossing([0, 50, 100], line, level, QUIET))
    assert [20.0] * 3 == pytest.approx([found.estimate, found.low, found.high])
    assert (5, 4.0) == (found.n, found.freedom)
    assert stats.crossing([0, 50, 100], line[::-1], level, QUIET) is None
    few = known(stats.crossing([0, 50, 100], [one[:3] for one in line], level[:3], QUIET))
    assert (False, pytest.approx(20.0)) == (few.is_bounded, few.estimate)


def test_the_interval_of_a_crossing_covers_the_truth() -> None:
    """The coverage is that of a thousand studies in which each process has a luck of its own."""
    source = np.random.default_rng(11)
    covered = 0
    for _ in range(1000):
        luck = np.exp(source.normal(0.0, 0.01, (5, 8)))
        costs = np.array([22, 17, 13, 12, 20])[:, None] * luck
        (*line, level) = [visits([[cost] * 3 for cost in side]) for side in costs]
        found = known(stats.crossing([0, 50, 90, 100], line, level, QUIET))
        covered += found.low <= 20.0 <= found.high
    assert 930 <= covered <= 970


def test_numpy_has_one_thread_and_what_is_started_is_not_told_so() -> None:
    """Threads of its library would be on the measured cores; a user's own setting holds."""
    threads, told = "len(os.listdir('/proc/self/task'))", "os.getenv('OPENBLAS_NUM_THREADS')"
    program = f"import os, tollbar.core.stats; print({threads}, {told})"
    for said, expected in ({}, "1 None"), ({"OPENBLAS_NUM_THREADS": "1"}, "1 1"):
        here = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=here | said, capture_output=True, text=True, check=True
        )
        assert expected == done.stdout.strip()


def test_costs_that_drift_have_wider_intervals() -> None:
    """Neighbouring blocks at a correlation of 0.7: costs cover as often as ratios do, which need no widening."""
    source = np.random.default_rng(11)
    covered, number = 0, 300
    for _ in range(number):
        state = [source.normal()]
        for _ in range(11):
            state.append(0.7 * state[-1] + math.sqrt(1 - 0.7**2) * source.normal())
        logs = 0.02 * np.array(state) + source.normal(0, 0.01, 12)
        found = known(stats.cost(visits([[math.exp(log)] for log in logs]), QUIET, confidence=0.96))
        covered += found.low <= 1 <= found.high
    assert covered > 0.91 * number


def test_costs_without_drift_are_little_wider() -> None:
    """With 24 independent blocks the interval of a cost is a fifth wider than a ratio to an exact value."""
    source = np.random.default_rng(12)
    wider = []
    for _ in range(100):
        costs = visits([[math.exp(log)] for log in source.normal(0, 0.01, 24)])
        exact = visits([[1.0]] * 24)
        cost, ratio = known(stats.cost(costs, QUIET)), known(stats.ratio(costs, exact, QUIET))
        wider.append(cost.half_width / ratio.half_width)
    assert 1.0 <= float(np.median(wider)) < 1.35


def test_a_baseline_measured_twice_counts_twice() -> None:
    """Both of its trials in a batch count, so that its own noise is a smaller part of the ratio's."""
    source = np.random.default_rng(13)
    narrower = []
    for _ in range(60):
        one, base, repeat = (visits(np.exp(source.normal(0, 0.03, (12, 10))).tolist()) for _ in range(3))
        alone, both = known(stats.ratio(one, base, QUIET)), known(stats.ratio(one, [*base, *repeat], QUIET))
        narrower.append(both.half_width / alone.half_width)
    assert 0.80 < float(np.median(narrower)) < 0.95


@pytest.mark.parametrize(
    "each",
    [
        [array("q", [1, 2]), array("q", [3])],
        [array("d", [1.0, 2.0]), array("d", [3.0])],
        [array("q", [1, 2]), array("d", [3.0])],
        [array("q", [1, 2]), [3]],
        [[1.0, 2], (3,)],
    ],
)
def test_a_column_has_the_values_of_lists_and_arrays(each: list[Iterable[float]]) -> None:
    assert [1.0, 2.0, 3.0] == column(each, float).tolist()
    assert [1, 2, 3] == column(iter(each), int).tolist()


def test_a_column_of_nothing_is_empty_and_none_is_no_number() -> None:
    assert [] == column([], float).tolist()
    assert [True, False] == np.isnan(column([[None], array("d", [1.0])], float)).tolist()
