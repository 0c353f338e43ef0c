"""Slices of chunks: parts of one process's chunk between probes, of which the quiet ones count."""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import share
import simulated
from builders import trial
from conftest import Tollbar
from disturbed import Disturbance, Kind, Work, gamma
from simulated import PROBE_NS, Lab
from tollbar import results
from tollbar.analysis import Toll, Verdict, judge
from tollbar.analysis.grain import grain_of
from tollbar.analysis.selection import falls
from tollbar.core.intervals import Interval, Moments
from tollbar.core.moments import without_slices
from tollbar.core.records import RUNNER, Chunk, ChunkRecord, Observed, SliceRecord
from tollbar.core.runner import Session, Stopped, engine
from tollbar.core.runner import session as session_module
from tollbar.core.stats import cost, ratio
from tollbar.core.visits import Visit
from tollbar.core.warming import trend
from tollbar.lab.measure import rounds

TASK: dict[str, Any] = {
    "mode": "measure",
    "family": "spin",
    "op": "spin",
    "choice": "spin-1",
    "provider": {"kind": "spin"},
    "setting": {"iterations": 20_000},
    "inputs": {},
    "seed": 1,
}


@pytest.fixture(scope="module")
def spinning() -> Iterator[Session]:
    """Yield a session of the engine that is ready."""
    with Session((str(engine()), "op"), TASK) as made:
        assert made.ready(30.0).slices
        yield made


def test_the_engine_slices_a_chunk_of_so_many_operations(spinning: Session) -> None:
    # A chunk has no slices if others had its core meanwhile.
    tried = (spinning.advance(0.0, 100, 30.0, slice_s=0.0005) for _ in range(2_000))
    chunk = next(one for one in tried if one.observed.slices)
    slices = chunk.observed.slices
    assert 100 == chunk.operations == sum(one.operations for one in slices)
    assert chunk.cpu_ns == sum(one.cpu_ns for one in slices)
    assert len(slices) > 1
    assert all(one.probes_ns[1] == other.probes_ns[0] for one, other in itertools.pairwise(slices))
    assert max(one.operations for one in slices) - min(one.operations for one in slices) <= 1


@pytest.mark.parametrize(("seconds", "slice_s"), [(0.002, 0.0005), (0.0, 0.0)])
def test_a_chunk_that_ends_by_time_is_whole(spinning: Session, seconds: float, slice_s: float) -> None:
    """Slices that end by time would have more operations in quick moments."""
    assert () == spinning.advance(seconds, 50, 30.0, slice_s=slice_s).observed.slices


@pytest.mark.parametrize("what", ["operations", "cpu_ns", "wall_ns"])
def test_slices_that_are_not_the_chunk_are_refused(what: str) -> None:
    part = SliceRecord(operations=5, cpu_ns=500, wall_ns=600, probes_ns=(20, 21))
    whole = ChunkRecord(operations=10, cpu_ns=1000, wall_ns=1200, observed=Observed(slices=(part, part)))
    assert session_module._impossible(whole, 0.0, 1, 10_000) is None
    wrong = whole.model_copy(update={what: getattr(whole, what) + 1})
    fault = session_module._impossible(wrong, 0.0, 1, 10_000)
    assert fault is not None
    assert fault.startswith(f"`{what}` is ")


def test_a_slice_without_an_end_is_refused() -> None:
    with Session((str(engine()), "op"), TASK) as made:
        made.ready(30.0)
        with pytest.raises(Stopped, match="cannot slice a chunk into parts of"):
            made.advance(0.0, 5, 30.0, slice_s=1e-9)


def _visit(costs: np.ndarray, rounds_of: np.ndarray, quiet: np.ndarray) -> Visit:
    ones = np.ones(len(costs), int)
    return Visit(0, 0, rounds_of, costs, ones, quiet, ones > 0)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_slices_meet_by_rounds(quiet: list[tuple[bool, bool]], own: int, other: int) -> None:
    """A ratio of constant costs stays exact, whichever slices are quiet; disturbed slices are excluded."""
    numbers = range(len(quiet))
    mine = np.repeat([one for one, _ in quiet], own)
    theirs = np.repeat([one for _, one in quiet], other)
    # In each round one slice more is disturbed, and ten times as expensive.
    one = _visit(np.where(mine, 6.0, 60.0), np.repeat(numbers, own), mine)
    two = _visit(np.where(theirs, 2.0, 30.0), np.repeat(numbers, other), theirs)
    found = ratio([one], [two], Moments.QUIET)
    assert (found is not None) == (mine.any() and theirs.any())
    assert found is None or math.isclose(3.0, found.estimate)


def test_slices_of_equal_rounds_do_not_meet_one_by_one() -> None:
    """The first slice of one side and the second of the other are quiet: the round is quiet for both."""
    of_round = np.zeros(2, int)
    one = _visit(np.array([4.0, 9.0]), of_round, np.array([True, False]))
    two = _visit(np.array([9.0, 2.0]), of_round, np.array([False, True]))
    found = ratio([one], [two], Moments.QUIET)
    assert found is not None
    assert math.isclose(2.0, found.estimate)


def test_a_chunk_weighs_as_much_with_slices_as_without() -> None:
    """A disturbed chunk has no slices, and would have a tenth of the others' weight."""
    rounds_of = np.array([0, 0, 0, 0, 1])
    costs = np.array([2.0, 2.0, 2.0, 2.0, 6.0])
    visits = [Visit(block, 0, rounds_of, costs, np.ones(5, int), costs < 6, costs > 0) for block in range(4)]
    found = cost(visits, Moments.ALL)
    assert found is not None
    assert math.isclose(4.0, found.estimate)


def test_blocks_weigh_by_their_operations() -> None:
    """A block with 20 quiet chunks outweighs blocks with as many quiet slices."""
    rounds_of, ones = np.arange(20), np.ones(20, bool)
    costs = np.random.default_rng(1).lognormal(0.0, 0.01, 4)
    visits = [
        Visit(block, 0, rounds_of, np.full(20, operations * costs[block]), np.full(20, operations), ones, ones)
        for block, operations in enumerate((10, 5, 5, 5))
    ]
    found = cost(visits, Moments.QUIET), cost(visits, Moments.ALL)
    # Kish's number less one is 25² / 175 - 1.
    assert [2.6, 3.0] == [one.freedom for one in found if one]


def test_a_trend_is_of_all_quiet_slices_of_a_round() -> None:
    numbers, blocks = np.repeat(range(5), 2), range(4)
    steady = np.full(10, 2.0)
    warming = 2.0 * np.exp(-0.1 * numbers) + np.tile([0.5, -0.5], 5)
    quiet = np.ones(10, bool)
    sides = [
        [Visit(block, 0, numbers, costs, np.ones(10, int), quiet, quiet) for block in blocks]
        for costs in (warming, steady)
    ]
    found = trend(*sides)
    assert found is not None
    assert math.isclose(math.exp(-0.4), found.estimate)


def test_a_trend_at_the_confidence_of_many_looks_is_open() -> None:
    numbers, quiet = np.arange(5), np.ones(5, bool)
    sides = [
        [Visit(block, 0, numbers, costs, np.ones(5, int), quiet, quiet) for block, costs in enumerate(of)]
        for of in ([np.exp(0.1 * block * numbers) for block in range(4)], [np.ones(5)] * 4)
    ]
    found = trend(*sides, confidence=1 - 2.0**-52)
    assert found is not None
    assert (0.0, math.inf) == (found.low, found.high)


def test_nobody_takes_the_core_from_a_chunk_with_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk that lasts longer than planned, for example next to a neighbour, is probed by its runner alone."""
    asked = []
    advance = simulated._Session.advance

    def noted(*of: Any, **how: Any) -> ChunkRecord:
        asked.append((bool(how.get("slice_s")), len(of) > 4 and of[4] is not None))
        return advance(*of, **how)

    monkeypatch.setattr(simulated._Session, "advance", noted)
    with Lab(Kind(()), [Work(3_000_000.0), Work(9_000_000.0)], 1, blocks=4, slices=True) as lab:
        lab.measure(1)
    assert (True, True) not in asked
    # An operation of 9 ms has no slices, so its core is probed while it lasts.
    assert {(True, False), (False, True)} <= set(asked)


# Quiet lasts 1.2 ms, and a neighbour 2 or 8: a chunk of 5 ms is quiet at both ends only by chance.
SPELLS = {
    name: Kind((Disturbance(((0.0, gamma(0.0012)), (0.3, gamma(busy_s)))),), best_probe_ns=PROBE_NS)
    for name, busy_s in (("a third quiet", 0.002), ("an eighth quiet", 0.008))
}
BASELINE, SUFFERS, HARDLY_SUFFERS = Work(100_000.0), Work(200_000.0, suffers=1.3), Work(250_000.0, suffers=0.7)
RUNS = share.of(12, 24)


def _errors(kind: Kind, slice_s: float) -> tuple[np.ndarray, list[Moments]]:
    """Return the errors of ratios, in logarithms, and their moments."""
    errors, moments = [], []
    with mock.patch.object(rounds, "SLICE_S", slice_s):
        for seed in range(RUNS):
            with Lab(kind, [BASELINE, SUFFERS, HARDLY_SUFFERS], seed, blocks=4, between_s=0.2, slices=True) as lab:
                lab.measure(4)
                (study,) = judge(lab.look()).studies
            tolls = [toll for toll in study.tolls if toll.row.key != toll.against.key]
            for toll, truth in zip(tolls, (2.0, 2.5), strict=True):
                assert toll.ratio is not None
                errors.append(math.log(toll.ratio.estimate / truth))
                moments.append(toll.ratio.moments)
    return np.array(errors).reshape(-1, 2), moments


@pytest.mark.parametrize("name", SPELLS)
def test_quiet_slices_are_found_where_no_chunk_is_quiet(name: str) -> None:
    """Ratios of work with different sensitivity are right by slices, and off by several per cent by whole chunks."""
    sliced, moments = _errors(SPELLS[name], rounds.SLICE_S)
    assert {Moments.QUIET} == set(moments)
    assert abs(sliced.mean(axis=0)).max() < 0.01
    assert sliced.std(axis=0).max() < 0.012
    whole, _ = _errors(SPELLS[name], math.inf)
    assert abs(whole.mean(axis=0)).max() > 0.02


def _found(kind: Kind, works: Sequence[Work], runs: int, blocks: int = 4) -> list[dict[str, Toll]]:
    """Return the tolls of some runs, by choice."""
    found = []
    for seed in range(runs):
        with Lab(kind, works, seed, blocks=blocks, between_s=0.2, slices=True) as lab:
            lab.measure(blocks)
            (study,) = judge(lab.look()).studies
        found.append({toll.row.choice: toll for toll in study.tolls})
    return found


def _ratios(found: Sequence[dict[str, Toll]], choice: str) -> list[Interval]:
    return [ratio for one in found if (ratio := one[choice].ratio) is not None]


def _bias(ratios: Sequence[Interval], truth: float) -> float:
    return float(np.mean([math.log(one.estimate / truth) for one in ratios]))


def test_a_chunk_that_lost_its_slices_is_known_by_its_length() -> None:
    slices, lasts = np.array([3, 3, 3, 1, 1, 1, 1]), np.array([0.5, 0.5, 0.7, 5.0, 0.6, 5.0, 7.0])
    assert [False, False, False, True, False, True, True] == without_slices(slices, lasts).tolist()
    assert [False, False] == without_slices(slices[-2:], lasts[-2:]).tolist()
    assert [] == without_slices(np.zeros(0, int), np.zeros(0)).tolist()


def test_chunks_that_lost_their_slices_are_not_quiet() -> None:
    """Quiet ends say little of 5 ms: with two of three chunks whole such a ratio came out 3.6 % too high."""
    kind = replace(SPELLS["a third quiet"], preempted=0.7)
    found = _ratios(_found(kind, [BASELINE, SUFFERS], RUNS), "spin-1-again")
    ratios = [one for one in found if one.moments is Moments.QUIET]
    # In a few runs fewer than four blocks have quiet slices on both sides.
    assert len(ratios) >= 0.8 * RUNS
    assert abs(_bias(ratios, 2.0)) < 0.015


def test_a_long_chunk_without_its_slices_is_not_quiet() -> None:
    """Nobody probed the core during the chunk, because its slices were expected to."""
    kind = replace(SPELLS["a third quiet"], preempted=1.0)
    with Lab(kind, [BASELINE, SUFFERS], 1, blocks=4, between_s=0.2, slices=True) as lab:
        lab.measure(4)
        trials = [trial for row in lab.look().studies[0].rows for trial in row.all_trials]
    long_ns = rounds.PROBED_EVERY * 5e6
    probed = {(chunk.wall_ns > long_ns, len(chunk.probes_ns or ())) for trial in trials for chunk in trial.chunks}
    assert {(False, 2), (True, 3)} == probed


# Slices of one operation of 0.7 ms, two of 3 ms, and the whole chunk of a platform's runner.
UNLIKE_GRAIN = [Work(700_000.0), Work(3_000_000.0), Work(100_000.0, slices=False)]


@pytest.mark.parametrize("name", SPELLS)
def test_unlike_grain_is_no_difference_of_cost(name: str) -> None:
    """Distant probes miss more of a neighbour: ratios of equal work came out 1 to 14 % too high."""
    found = _found(SPELLS[name], [BASELINE, *UNLIKE_GRAIN], RUNS)
    for choice, work in zip(simulated.CHOICES[1:], UNLIKE_GRAIN, strict=False):
        ratios, truth = _ratios(found, choice), work.ns / BASELINE.ns
        assert RUNS == len(ratios)
        if work.ns > 1e6 or not work.slices:
            assert {Moments.ALL} == {one.moments for one in ratios}
        assert abs(_bias(ratios, truth)) < 0.008
        assert sum(one.low <= truth <= one.high for one in ratios) >= RUNS - 1
    assert {Verdict.COSTS, Verdict.SAVES}.isdisjoint(one[simulated.CHOICES[3]].verdict for one in found)


def test_unlike_grain_is_quiet_where_quiet_lasts() -> None:
    """On an idle machine all ratios are quiet, and next to a neighbour that comes for 20 ms."""
    neighbour = Disturbance(((0.0, gamma(0.1)), (0.4, gamma(0.02, 8.0))))
    for kind in (Kind((), best_probe_ns=PROBE_NS), Kind((neighbour,), best_probe_ns=PROBE_NS)):
        found = _found(kind, [BASELINE, *UNLIKE_GRAIN], 2)
        ratios = [ratio for choice in simulated.CHOICES[:4] for ratio in _ratios(found, choice)]
        assert {Moments.QUIET} == {one.moments for one in ratios}


def test_work_that_varies_a_little_is_not_selected_where_quiet_is_short() -> None:
    """Slices that vary by 23 % by themselves are selected where they are cheap: such a ratio came out 2 % too low."""
    varying = Work(40_000.0, varies=0.8)
    ratios = _ratios(_found(SPELLS["a third quiet"], [BASELINE, varying], 2 * RUNS), "spin-1-again")
    assert abs(_bias(ratios, 0.4)) < 0.01
    ratios = _ratios(_found(Kind((), best_probe_ns=PROBE_NS), [BASELINE, varying], 2), "spin-1-again")
    assert {Moments.QUIET} == {one.moments for one in ratios}


def test_selection_is_by_the_length_of_quiet() -> None:
    """Three of four slices that begin in quiet end in quiet, and half of all begin so: half of these meet no change."""
    begins, ends = np.repeat([True, False], 40), np.tile([True, True, True, False], 20)
    ends[40:] = ~ends[40:]
    assert math.isclose(math.log(2) * 0.5 * 0.5 / 0.75, falls(begins, ends))
    assert 0.0 == falls(np.ones(9, bool), np.ones(9, bool)) == falls(~np.ones(9, bool), np.ones(9, bool))


def test_the_share_of_quiet_time_is_of_time() -> None:
    """Work goes faster in quiet moments, so their share of the readings is larger: 65 % instead of half."""
    heavy = Kind((Disturbance(((0.0, gamma(0.02)), (0.6, gamma(0.02)))),), best_probe_ns=PROBE_NS)
    printed, true = [], []
    for seed in range(4):
        with Lab(heavy, [BASELINE, Work(200_000.0)], seed, blocks=4, between_s=0.2, slices=True) as lab:
            lab.measure(4)
            printed.append(judge(lab.look()).studies[0].trust.quiet_share or 0.0)
        path = lab.machine.path
        before = path.ends_s < lab.machine.now_s
        lasts = np.diff(path.ends_s, prepend=0.0)[before]
        true.append(lasts[path.levels[before] == 0].sum() / lasts.sum())
    assert abs(np.mean(printed) - np.mean(true)) < 0.06


def test_grain_is_learned_from_probes_alone() -> None:
    """Ten windows of two slices between quick probes have one slow probe, of half as much again."""
    quick, slow = 20_000.0, 30_000.0
    chunks = [
        Chunk(number, 5, 500_000, {RUNNER: 500_000}, {}, (before, after))
        for number in range(200)
        for before, after in itertools.pairwise((quick, slow if number % 10 == 0 else quick, quick))
    ]
    trials = [replace(trial(1.0, block=block), chunks=tuple(chunks)) for block in range(4)]
    grain = grain_of(trials, 23_000.0)
    # One inner point of three by Simpson's rule: 4 / 6 of a tenth of a half.
    assert math.isclose(0.5 * 0.1 * 4 / 6, grain.missed[1])
    assert math.isclose(1_022_000, grain.lasts_ns[1], rel_tol=0.001)
    assert math.isclose(grain.missed[1] * 500 / 1022, grain.missed_in_slice, rel_tol=0.001)
    assert 0.0 == grain_of([], 23_000.0).missed_in(np.array([5e6]), np.ones(1))


STUDY = """
question  = "?"
family    = "digest"
choices   = ["sha-256"]
providers = ["rustcrypto"]
baseline  = "sha-256"

[vary]
bytes = [{bytes}]

[measure]
blocks = 1
chunk  = "5 ms"
rounds = 40
"""


@pytest.mark.parametrize(("size", "may_be_sliced"), [("64 KiB", True), ("64 MiB", False)])
def test_a_run_keeps_each_slice(tollbar: Tollbar, tmp_path: Path, size: str, may_be_sliced: bool) -> None:
    """A slice is a chunk of its round; an operation longer than a chunk, or a core without a probe, gives none."""
    (tmp_path / "sliced.toml").write_text(STUDY.format(bytes=f'"{size}"'))
    done = tollbar("run", "./sliced.toml")
    assert 0 == done.returncode, done.stderr
    (directory,) = (tmp_path / "runs").glob("*-sliced")
    trials = [trial for row in results.read(directory).studies[0].rows for trial in row.all_trials]
    most = max(max(Counter(chunk.round for chunk in trial.chunks).values()) for trial in trials)
    # A chunk that did not have its core to itself has no slices: on a busy machine some chunks, or all.
    has_core = any(chunk.wall_ns < 1.005 * sum(chunk.cpu_ns.values()) for trial in trials for chunk in trial.chunks)
    assert (most > 1) == (may_be_sliced and has_core and len(os.sched_getaffinity(0)) > 1)
