"""The judge: verdicts, tolls and warnings, and by simulation that it is right as often as it says."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import Noise, example, lognormal, measured, row, run, study_run, trial
from tollbar.catalogue import Standing
from tollbar.judge import Toll, Verdict, judge, judge_study
from tollbar.judge.costs import Ledger
from tollbar.judge.decisions import Terms, decide, more_blocks
from tollbar.judge.tolls import tolls
from tollbar.measure import Outcome
from tollbar.results import Row
from tollbar.stats import Interval

REPETITIONS = 2000
NOISES = {
    "3 %": lognormal(0.03),
    "10 %": lognormal(0.10),
    "3 %, 5 % slow": lognormal(0.03, slow=0.05),
    "10 %, 5 % slow": lognormal(0.10, slow=0.05),
}


def toll_of(
    ratio: float,
    noise: Noise,
    source: random.Random,
    looks: tuple[int, ...] = (20,),
    *,
    decided: bool = False,
) -> Toll:
    """The toll of a cell with this true ratio; with `decided`, blocks are added only while it is unclear."""
    base, twin, cell = measured([1.0, 1.0, ratio], noise, source, blocks=looks[-1])
    # The baseline's own toll is not asked for: it would double the work.
    baseline = replace(row({"choice": "none"}, base, twins_ns=twin), against=None)
    other = row({"choice": "x"}, cell, against="none")
    for number, blocks in enumerate(looks, start=1):
        found = _toll_after([baseline, other], blocks, looks=number)
        if decided and found.verdict is not Verdict.UNCLEAR:
            break
    return found


def _toll_after(rows: list[Row], blocks: int, *, looks: int) -> Toll:
    seen = [replace(r, trials=r.trials[:blocks], twins=r.twins[:blocks]) for r in rows]
    return tolls(Ledger(seen), Terms(worth=0.03, looks=looks))[-1]


def covers(toll: Toll, truth: float) -> bool:
    assert toll.ratio is not None
    return toll.ratio.low <= truth <= toll.ratio.high


# By simulation.


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("truth", [1.0, 1.03])
def test_covers_and_finds_nothing_where_nothing_is(name: str, truth: float) -> None:
    """With 10 % drift and slow trials the interval covers, and what is worth nothing is not found to cost."""
    source = random.Random(f"{name} {truth}")
    found = [toll_of(truth, NOISES[name], source) for _ in range(REPETITIONS)]
    coverage = sum(covers(toll, truth) for toll in found) / REPETITIONS
    wrong = sum(toll.verdict in (Verdict.COSTS, Verdict.SAVES) for toll in found) / REPETITIONS
    print(f"noise {name}, true ratio {truth}: coverage {coverage:.1%}, called costs or saves {wrong:.2%}")
    assert coverage >= 0.93
    assert wrong <= 0.05


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("truth", [1.0, 1.03])
def test_adding_blocks_while_unclear_is_paid_for(name: str, truth: float) -> None:
    """Up to three looks, each taken only because the one before was unclear, make no false verdicts."""
    source = random.Random(f"looks {name} {truth}")
    found = [toll_of(truth, NOISES[name], source, (20, 30, 40), decided=True) for _ in range(REPETITIONS)]
    coverage = sum(covers(toll, truth) for toll in found) / REPETITIONS
    wrong = sum(toll.verdict in (Verdict.COSTS, Verdict.SAVES) for toll in found) / REPETITIONS
    print(f"looks, noise {name}, true ratio {truth}: coverage {coverage:.1%}, costs or saves {wrong:.2%}")
    assert coverage >= 0.93
    assert wrong <= 0.05


@pytest.mark.parametrize(("name", "found_at_least"), [("3 %", 0.9), ("3 %, 5 % slow", 0.3), ("10 %", 0.05)])
def test_finds_a_tenth(name: str, found_at_least: float) -> None:
    """A true ×1.10 is found to cost in most runs on a quiet machine, and less often on a noisy one."""
    source = random.Random(f"power {name}")
    found = [toll_of(1.10, NOISES[name], source).verdict for _ in range(500)]
    share = found.count(Verdict.COSTS) / len(found)
    print(f"noise {name}: ×1.10 found in {share:.0%}")
    assert share >= found_at_least
    assert Verdict.SAVES not in found


def test_estimate_of_more_blocks_is_about_right() -> None:
    """Of the unclear tolls that are given so many more blocks, most are decided by them."""
    source = random.Random(11)
    decided = []
    for _ in range(200):
        base, twin, cell = measured([1.0, 1.0, 1.06], lognormal(0.05), source, blocks=150)
        rows = [row({"choice": "none"}, base, twins_ns=twin), row({"choice": "x"}, cell, against="none")]
        asked = _toll_after(rows, 10, looks=1)
        if asked.more_blocks and asked.more_blocks <= 140:
            decided.append(_toll_after(rows, 10 + asked.more_blocks, looks=2).verdict)
    share = 1 - decided.count(Verdict.UNCLEAR) / len(decided)
    print(f"decided by the blocks asked for: {share:.0%} of {len(decided)}")
    assert share >= 0.4
    assert Verdict.SAVES not in decided


# Verdicts.


@pytest.mark.parametrize(
    ("low", "high", "floor", "expected"),
    [
        (0.98, 1.02, 1.01, Verdict.FREE),
        (1 / 1.03, 1.03, 1.03, Verdict.FREE),
        (0.98, 1.02, 1.05, Verdict.UNCLEAR),
        (0.96, 1.02, 1.01, Verdict.UNCLEAR),
        (0.98, 1.04, 1.01, Verdict.UNCLEAR),
        (1.04, 1.20, 1.01, Verdict.COSTS),
        (1.03, 1.20, 1.01, Verdict.UNCLEAR),
        (1.04, 1.20, 1.05, Verdict.UNCLEAR),
        (1.06, 1.20, 1.05, Verdict.COSTS),
        (0.80, 0.96, 1.01, Verdict.SAVES),
        (0.80, 0.96, 1.05, Verdict.UNCLEAR),
        (0.80, 0.98, 1.01, Verdict.UNCLEAR),
        (0.50, 2.00, 1.01, Verdict.UNCLEAR),
        (1.50, 2.00, None, Verdict.UNCLEAR),
        (0.0, math.inf, 1.01, Verdict.UNCLEAR),
    ],
)
def test_verdicts(low: float, high: float, floor: float | None, expected: Verdict) -> None:
    """The table of verdicts, for differences worth 3 %."""
    assert expected is decide(Interval(1.0, low, high, 0.95, 20), floor, Terms(0.03, looks=1))


@given(st.floats(0.2, 5), st.floats(1, 2), st.floats(1, 2), st.floats(1, 1.2))
def test_costs_one_way_saves_the_other(estimate: float, down: float, up: float, floor: float) -> None:
    """Swapping the sides of a ratio swaps costs and saves, and leaves the other verdicts."""
    terms = Terms(0.03, looks=1)
    there = decide(Interval(estimate, estimate / down, estimate * up, 0.95, 20), floor, terms)
    back = decide(Interval(1 / estimate, 1 / (estimate * up), down / estimate, 0.95, 20), floor, terms)
    assert {Verdict.COSTS: Verdict.SAVES, Verdict.SAVES: Verdict.COSTS}.get(there, there) is back


@pytest.mark.parametrize(
    ("interval", "floor", "expected"),
    [
        # 5 blocks of the 7 that a second look needs.
        (Interval(1.1, 0.0, math.inf, 0.95, 5), None, 2),
        # Half the width is wanted: four times the blocks, and a third more to pay for the look.
        (Interval(1.0, 1 / 1.0609, 1.0609, 0.95, 20), 1.0, 85),
        # On the margin itself no number of blocks will do, nor without a floor.
        (Interval(1.03, 0.98, 1.08, 0.95, 20), 1.01, None),
        (Interval(1.0299, 0.98, 1.08, 0.95, 20), 1.01, None),
        (Interval(1.2, 0.98, 1.5, 0.95, 20), None, None),
    ],
)
def test_more_blocks(interval: Interval, floor: float | None, expected: int | None) -> None:
    """The estimate follows from 1/√n, and is None where it would be beyond fifty times the blocks."""
    assert expected == more_blocks(interval, floor, Terms(0.03, looks=1))


def test_looks_are_paid_for_in_confidence() -> None:
    """Three looks share the allowed error of 5 %."""
    costs = [100.0 + i for i in range(20)]
    rows = [row({"choice": "none"}, costs, twins_ns=costs[::-1])]
    once, thrice = (judge_study(study_run(rows, looks)).tolls[0].ratio for looks in [(20,), (8, 12, 20)])
    assert once is not None
    assert thrice is not None
    assert pytest.approx((0.95, 1 - 0.05 / 3)) == (once.confidence, thrice.confidence)
    assert thrice.low < once.low < once.high < thrice.high


# Tolls.


def test_tolls_of_an_example() -> None:
    """Twice the cost costs, the same is free, and the baseline is free of itself."""
    judged = judge_study(study_run(example()))
    assert [Verdict.FREE, Verdict.COSTS, Verdict.FREE] == [toll.verdict for toll in judged.tolls]
    double = judged.tolls[1]
    assert double.ratio is not None
    assert pytest.approx(2.0, rel=0.01) == double.ratio.estimate
    assert pytest.approx(100 * 1.05, rel=0.02) == double.difference
    assert double.noise_floor == judged.noise_floor
    assert judged.noise_floor is not None
    assert 1 < judged.noise_floor < 1.01
    assert () == judged.warnings


@given(st.floats(0.1, 10))
def test_toll_scales_with_its_cell(factor: float) -> None:
    """A cell whose every trial costs k times as much has k times the toll."""
    costs = [100.0, 104.0, 98.0, 101.0, 97.0, 105.0, 99.0, 100.5]
    base = row({"choice": "none"}, costs[::-1], twins_ns=costs)
    plain, scaled = (
        judge_study(study_run([base, row({"choice": "x"}, [k * c for c in costs], against="none")], (8,))).tolls[1]
        for k in (1.0, factor)
    )
    assert plain.ratio is not None
    assert scaled.ratio is not None
    assert pytest.approx(factor * plain.ratio.low, rel=1e-6) == scaled.ratio.low
    assert pytest.approx(factor * plain.ratio.estimate, rel=1e-6) == scaled.ratio.estimate
    assert pytest.approx(factor * plain.ratio.high, rel=1e-6) == scaled.ratio.high


def test_swapping_cell_and_baseline_inverts_the_toll() -> None:
    """The same trials the other way round give one over the ratio, ends swapped."""
    one, other = measured([1, 1.3], lognormal(0.05), random.Random(5), blocks=20)
    there, back = (
        judge_study(study_run([row({"choice": "none"}, a, twins_ns=a), row({"choice": "x"}, b, against="none")]))
        .tolls[1]
        .ratio
        for a, b in [(one, other), (other, one)]
    )
    assert there is not None
    assert back is not None
    assert pytest.approx((1 / there.estimate, 1 / there.high, 1 / there.low)) == (
        back.estimate,
        back.low,
        back.high,
    )


def test_block_order_is_irrelevant_to_tolls() -> None:
    """The same blocks in another order give the same tolls."""
    rows = example()
    turned = [replace(r, trials=r.trials[::-1], twins=r.twins[::-1]) for r in rows]
    there, back = judge_study(study_run(rows)), judge_study(study_run(turned))
    assert [t.ratio for t in there.tolls] == [t.ratio for t in back.tolls]
    assert there.drift == back.drift


def test_pairs_are_formed_within_blocks() -> None:
    """A block that lacks one side, or whose trial failed, is left out of the pair's blocks only."""
    rows = example()
    cut = rows[1].trials[2:-1]
    failed = replace(cut[0], outcome=Outcome.FAILED, reason="the runner fell over")
    judged = judge_study(study_run([rows[0], replace(rows[1], trials=(failed, *cut[1:])), rows[2]]))
    ratios = [toll.ratio.n if toll.ratio else None for toll in judged.tolls]
    assert [20, 16, 20] == ratios


def test_too_few_blocks_are_unclear() -> None:
    """With five blocks nothing is decided, and one more is not enough after a look: two are."""
    judged = judge_study(study_run(example(blocks=5), (5,)))
    assert {Verdict.UNCLEAR} == {toll.verdict for toll in judged.tolls}
    assert {2} == {toll.more_blocks for toll in judged.tolls}
    assert judged.noise_floor is None
    assert any("at least 6" in warning for warning in judged.warnings)


def test_failures_stay_in_their_place() -> None:
    """A cell that failed, was not visited, or lost its baseline is a toll with its reason."""
    base = row({"choice": "none"}, [100.0] * 8, twins_ns=[100.0] * 8)
    refused = row({"choice": "no-base"}, outcome=Outcome.UNSUPPORTED, reason="no such digest")
    rows = [
        base,
        row({"choice": "a"}, against="none", outcome=Outcome.UNSUPPORTED, reason="no SHA-3 before 1.1.1"),
        row({"choice": "b"}, against="none"),
        row({"choice": "c"}, [100.0] * 8, against="none"),
        row({"choice": "d"}, [100.0] * 8, against="no-base"),
        replace(refused, against="no-base"),
        row({"choice": "e"}, [100.0] * 8, against="gone"),
    ]
    judged = judge_study(study_run(rows, (8,)))
    expected = [
        (Verdict.FREE, None),
        (Verdict.NOT_MEASURED, "no SHA-3 before 1.1.1"),
        (Verdict.NOT_MEASURED, "none of its trials was completed"),
        (Verdict.FREE, None),
        (Verdict.NOT_MEASURED, "its baseline was not measured: no such digest"),
        (Verdict.NOT_MEASURED, "no such digest"),
        (Verdict.NOT_MEASURED, "its baseline, gone, is not among the cells"),
    ]
    assert expected == [(toll.verdict, toll.reason) for toll in judged.tolls]
    assert ["none", "c", "d", "e"] == [m.row.choice for m in judged.measurements if m.metric == "cpu"]


def test_measurements_are_in_their_own_units() -> None:
    """CPU and wall time in nanoseconds per operation, memory in bytes where it grew."""
    grown = tuple(replace(trial(100.0, block=b), memory_bytes=4096, wall_ns=2 * 10**8) for b in range(8))
    judged = judge_study(study_run([replace(row({"choice": "x"}), trials=grown)], (8,)))
    found = {m.metric: m for m in judged.measurements}
    assert {"cpu": "ns/op", "wall": "ns/op", "memory": "B"} == {m.metric: m.unit for m in found.values()}
    for metric, expected in {"cpu": 100.0, "wall": 200.0, "memory": 4096.0}.items():
        measurement = found[metric]
        assert pytest.approx((expected,) * 3) == (measurement.low, measurement.value, measurement.high)


# In full size.


def test_a_thousand_cells() -> None:
    """A study of a thousand cells and twenty blocks is judged whole."""
    source = random.Random(9)
    api = {"legacy": 0.0, "evp": 0.05, "fetched": 0.1}
    rows = []
    for choice in ["none", *(f"choice-{i}" for i in range(37))]:
        for provider in ("openssl 3.0.19", "aws-lc 1.71", "rustcrypto"):
            for name in api:
                for size in (64, 1024, 16384):
                    true = size * (1 + hash_of(choice)) * (1 + api[name] * (choice != "choice-7"))
                    where = {"choice": choice, "provider": provider, "api": name, "bytes": size}
                    costs, twins = measured([true, true], lognormal(0.03), source, blocks=20)
                    against = " ".join(["none", provider, name, str(size)])
                    standing = Standing.NULL if choice == "none" else Standing.ACCEPTABLE
                    rows.append(
                        row(
                            where,
                            costs,
                            against=against,
                            twins_ns=twins if choice == "none" else (),
                            standing=standing,
                        )
                    )
    rows = rows[:1000]
    began = time.perf_counter()
    judgement = judge(run(study_run(rows)))
    print(f"{len(rows):,} cells of 20 blocks judged in {time.perf_counter() - began:.2f} s")
    assert 1000 == len(judgement.studies[0].tolls)
    assert judgement.studies[0].contrasts


def hash_of(choice: str) -> float:
    """A cost of its own for each choice, the same in every run of the tests."""
    return random.Random(choice).random()
