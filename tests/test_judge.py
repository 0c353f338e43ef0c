"""The judge: verdicts, tolls and measurements, and what it makes of looks and of noise."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders
from builders import example, lognormal, measured, row, run, study_run, trial
from simulated import Disturbance, Kind, Lab, Work, pareto
from tollbar.families import Standing
from tollbar.judge import Limit, Verdict, judge, judge_study
from tollbar.judge.costs import Ledger, readings
from tollbar.judge.decisions import Terms, decide, more_blocks
from tollbar.judge.tolls import suffers, tolls
from tollbar.measure import Outcome, Trial
from tollbar.measure.trial import CLIENT, Chunk
from tollbar.metrics import METRICS
from tollbar.moments import quickness_of
from tollbar.present.notes import as_disturbed
from tollbar.present.terminal import how
from tollbar.present.warnings import warnings
from tollbar.results import Row
from tollbar.runner import ComponentRecord, LoadRecord
from tollbar.stats import Interval, Moments

TERMS = Terms(0.03, looks=1)


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
        # 3 blocks of the 4 that carry an interval.
        (Interval(1.1, 0.0, math.inf, 0.96, 3), None, 1),
        # Half the width is wanted: four times the blocks, and nearly as many again to pay for the look.
        (Interval(1.0, 1 / 1.0609, 1.0609, 0.96, 20), 1.0, 130),
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
    """The confidence is that of the look at hand, is stated, and holds for every interval."""
    rows = example()
    once, thrice = (judge_study(study_run(rows, looks)) for looks in [(20,), (8, 12, 20)])
    assert pytest.approx((0.96, 0.9975)) == (once.confidence, thrice.confidence)
    narrow, wide = once.tolls[1].ratio, thrice.tolls[1].ratio
    assert narrow is not None
    assert wide is not None
    assert (once.confidence, thrice.confidence) == (narrow.confidence, wide.confidence)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_all_looks_together_are_wrong_in_one_of_twenty() -> None:
    """The errors of any number of looks add up to 5 % at most, whichever side an interval misses on."""
    spent = [1 - Terms(0.03, looks).confidence for looks in range(1, 50)]
    assert 0.05 >= math.fsum(spent)
    assert pytest.approx(0.05) == math.fsum(spent)


# Tolls.


def test_tolls_of_an_example() -> None:
    """Twice the cost costs, the same is free, and the baseline is free of itself."""
    judged = judge_study(study_run(example()))
    assert [Verdict.FREE, Verdict.COSTS, Verdict.FREE] == [toll.verdict for toll in judged.tolls]
    double = judged.tolls[1]
    assert double.ratio is not None
    assert double.typical is not None
    assert pytest.approx((2.0, 2.0), rel=0.01) == (double.ratio.estimate, double.typical.estimate)
    assert pytest.approx(100, rel=0.02) == double.difference
    assert double.suffers is None
    assert (double.noise_floor, double.noise) == (judged.noise_floor, judged.noise)
    assert () == warnings(judged)


def test_the_noise_floor_is_an_interval() -> None:
    """Twins at ×1.00 that may be 4 % apart: nothing is free, nor decided that is nearer to one than that."""
    base = [100.0, 108.0] * 10
    # One of the two is as much cheaper in each block as the other is in the next.
    rows = [row({"choice": "none"}, base, twins_ns=base[::-1])]
    for times in (1.0, 1.035, 1.20):
        rows.append(row({"choice": str(times)}, [times * 100.0] * 20, against="none"))
    judged = judge_study(study_run(rows))
    assert judged.noise is not None
    assert (pytest.approx(1.0), pytest.approx(1.0)) == (judged.noise_floor, judged.noise.estimate)
    assert judged.noise.low < 1 / 1.035 < 1.035 < judged.noise.high < 1.05
    assert [Verdict.UNCLEAR] * 3 + [Verdict.COSTS] == [toll.verdict for toll in judged.tolls]


def disturbed(block: int, times: float) -> Trial:
    """Two chunks between quiet probes, and two that cost so many times as much between slow ones."""
    quiet = [builders.chunk(number, 100.0 + number / 10, block=block) for number in range(2)]
    busy = [builders.chunk(n, 100.0 * times, block=block, probes_ns=(37_000.0, 36_000.0)) for n in (2, 3)]
    return replace(trial(100.0, block=block), chunks=(*quiet, *busy))


def disturbed_twins(trials: Sequence[Trial]) -> list[Trial]:
    return [replace(trial, twin=True) for trial in trials]


def test_undisturbed_and_typical_stand_side_by_side() -> None:
    """Work that is disturbed more than its baseline is said to suffer, and its verdict is of the quiet core."""
    base, cell = ([disturbed(block, times) for block in range(12)] for times in (1.1, 1.5))
    rows = [
        replace(row({"choice": "none"}, against="none"), trials=tuple(base), twins=tuple(disturbed_twins(base))),
        replace(row({"choice": "x"}, against="none"), trials=tuple(cell)),
    ]
    judged = judge_study(study_run(rows, (12,)))
    toll = judged.tolls[1]
    assert toll.ratio is not None
    assert toll.typical is not None
    assert pytest.approx(1.0, rel=0.01) == toll.ratio.estimate
    assert 1.1 < toll.typical.estimate
    assert (Verdict.FREE, "more") == (toll.verdict, toll.suffers)
    assert any("made 1 of 1 cell dearer by more than their baseline" in warning for warning in warnings(judged))


@pytest.mark.parametrize(
    ("ratio", "typical", "expected"),
    [
        ((1.00, 0.99, 1.01), (1.20, 1.15, 1.25), "more"),
        ((1.20, 1.19, 1.21), (1.00, 0.95, 1.05), "less"),
        ((1.00, 0.99, 1.01), (1.02, 1.015, 1.025), None),
        ((1.00, 0.70, 1.30), (1.20, 1.15, 1.25), None),
        ((1.00, 0.99, 1.01), (1.20, 0.90, 1.50), None),
        ((1.00, 0.99, 1.01), (1.20, 0.0, math.inf), None),
    ],
)
def test_who_suffers(
    ratio: tuple[float, float, float], typical: tuple[float, float, float], expected: str | None
) -> None:
    """Only what is apart by more than is worth telling, and beyond both intervals."""
    assert expected == suffers(Interval(*ratio, 0.95, 12), Interval(*typical, 0.95, 12), TERMS)


@given(st.floats(0.1, 10))
def test_toll_scales_with_its_cell(factor: float) -> None:
    """A cell whose every trial costs k times as much has k times the toll."""
    costs = [100.0, 100.4, 99.8, 100.1, 99.7, 100.5, 99.9, 100.05]
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
    one, other = measured([1, 1.3], lognormal(0.005), random.Random(5), blocks=20)
    there, back = (
        judge_study(study_run([row({"choice": "none"}, a, against="none"), row({"choice": "x"}, b, against="none")]))
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
    """With three blocks nothing is decided, and one more is asked for."""
    judged = judge_study(study_run(example(blocks=3), (3,)))
    assert {Verdict.UNCLEAR} == {toll.verdict for toll in judged.tolls}
    assert {1} == {toll.more_blocks for toll in judged.tolls}
    assert (None, None) == (judged.noise_floor, judged.noise)
    assert any("at least 4" in warning for warning in warnings(judged))


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
        row({"choice": "f", "bed": "nginx"}, [100.0] * 8),
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
        (Verdict.NOT_MEASURED, "it has no baseline: no cell differs from it in nothing but choice none"),
    ]
    assert expected == [(toll.verdict, toll.reason) for toll in judged.tolls]
    assert ["none", "c", "d", "e", "f"] == [m.row.choice for m in judged.measurements if m.metric == "cpu"]


def test_chunks_without_an_operation_are_left_out() -> None:
    """There is nothing in them to be shared out; one whose clock saw nothing counts, for another has that time."""
    rows = example()
    first = rows[1].trials[0]
    empty = (Chunk(4, 0, 5_000_000, {"runner": 5_000_000}), Chunk(5, 7, 5_000_000, {"runner": 0}))
    longer = replace(first, chunks=first.chunks + empty)
    seen = Ledger([replace(rows[1], trials=(longer,))], TERMS).visits(rows[1])
    assert [0, 1, 2, 3, 5] == seen[0].rounds.tolist()


def test_a_chunk_between_slow_probes_is_disturbed_whatever_it_cost() -> None:
    """Nothing looks at the cost itself to decide whether it counts."""
    rows = [row({"choice": "none"}, against="none"), row({"choice": "x"}, against="none")]
    for place, (quick, slow) in enumerate(((100.0, 50.0), (100.0, 400.0))):
        trials = []
        for block in range(8):
            chunks = [builders.chunk(n, quick, block=block) for n in range(2)]
            chunks += [builders.chunk(n, slow, block=block, probes_ns=(25_000.0, 40_000.0)) for n in (2, 3)]
            trials.append(replace(trial(1.0, block=block), chunks=tuple(chunks)))
        rows[place] = replace(rows[place], trials=tuple(trials))
    ledger = Ledger(rows, TERMS)
    ratio, typical = ledger.undisturbed_ratio(rows[1], rows[0]), ledger.typical_ratio(rows[1], rows[0])
    assert ratio is not None
    assert typical is not None
    assert (pytest.approx(1.0), Moments.UNDISTURBED) == (ratio.estimate, ratio.moments)
    assert (pytest.approx(500 / 150, rel=1e-4), Moments.AS_DISTURBED) == (typical.estimate, typical.moments)


@pytest.mark.parametrize("best_ns", [None, 18_000.0])
def test_a_core_that_was_never_left_alone_gives_ratios_as_disturbed(best_ns: float | None) -> None:
    """Where too few blocks were quiet, or the machine was quicker before, a row says so and keeps its own interval."""
    rows = [
        row({"choice": "none"}, [100.0] * 8, twins_ns=[100.0] * 8),
        row({"choice": "x"}, [210.0] * 8, against="none"),
    ]
    if best_ns is None:
        # Three quiet blocks of eight.
        rows = [replace(r, trials=tuple(t if t.block < 3 else slowed(t) for t in r.trials)) for r in rows]
    judged = judge_study(study_run(rows, (8,)), quickness_of(readings(rows), best_ns))
    toll = judged.tolls[1]
    assert toll.ratio is not None
    assert (Moments.AS_DISTURBED, pytest.approx(2.1), None) == (toll.ratio.moments, toll.ratio.estimate, toll.suffers)
    assert toll.ratio.half_width < 0.01
    why = "left alone in too few blocks" if best_ns is None else "never left alone"
    assert f"as disturbed: its core was {why}" == as_disturbed(judged, toll)
    assert any("as disturbed" in warning for warning in warnings(judged))


def test_a_core_that_no_probe_shares_is_said_once() -> None:
    """Then all is as disturbed, with its own interval, and every row is marked."""
    rows = [
        row({"choice": "none"}, [100.0] * 8, twins_ns=[100.0] * 8),
        row({"choice": "x"}, [210.0] * 8, against="none"),
    ]
    judged = judge_study(study_run([unprobed(r) for r in rows], (8,)))
    (said,) = [warning for warning in warnings(judged) if "as disturbed" in warning]
    assert said.startswith("No probe shares the core that is measured")
    assert {"as disturbed: no probe shares the core that is measured"} == {
        as_disturbed(judged, toll) for toll in judged.tolls
    }
    assert Verdict.COSTS == judged.tolls[1].verdict
    assert "CPU time per operation, as disturbed, against none" in how(judged)


def unprobed(of: Row) -> Row:
    """The same row, measured where no probe could be asked."""
    trials, twins = (
        tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in some)
        for some in (of.trials, of.twins)
    )
    return replace(of, trials=trials, twins=twins)


def slowed(of: Trial) -> Trial:
    """The same trial between slow probes."""
    return replace(of, chunks=tuple(replace(chunk, probes_ns=(38_000.0, 38_000.0)) for chunk in of.chunks))


def test_the_difference_has_the_sign_of_the_ratio() -> None:
    """It is what the ratio comes to at the baseline's cost, whatever other heats the baseline was in."""
    blocks = range(8)
    base = tuple(trial(100.0 if heat else 300.0, block=b, heat=heat) for b in blocks for heat in (0, 1))
    rows = [
        replace(row({"choice": "none"}, against="none"), trials=base),
        replace(row({"choice": "x"}, against="none"), trials=tuple(trial(110.0, block=b, heat=1) for b in blocks)),
    ]
    toll = judge_study(study_run(rows, (8,))).tolls[1]
    assert toll.ratio is not None
    assert pytest.approx(1.1) == toll.ratio.estimate
    assert pytest.approx(20.0, rel=1e-3) == toll.difference


def test_a_baseline_counts_where_the_cell_was_beside_it() -> None:
    """Of a baseline in several heats, the ratio is made of those that the cell was in."""
    blocks = range(8)
    base = tuple(trial(100.0 if heat else 300.0, block=b, heat=heat) for b in blocks for heat in (0, 1))
    rows = [
        replace(row({"choice": "none"}, against="none"), trials=base),
        replace(row({"choice": "x"}, against="none"), trials=tuple(trial(200.0, block=b, heat=1) for b in blocks)),
    ]
    ratio = Ledger(rows, TERMS).undisturbed_ratio(rows[1], rows[0])
    assert ratio is not None
    assert pytest.approx(2.0) == ratio.estimate


def test_measurements_are_in_their_own_units() -> None:
    """CPU and wall time in nanoseconds per operation, memory in bytes where it grew."""
    chunks = tuple(replace(c, wall_ns=2 * c.wall_ns) for c in trial(100.0).chunks)
    grown = tuple(replace(trial(100.0, block=b), memory_bytes=4096, chunks=chunks) for b in range(8))
    judged = judge_study(study_run([replace(row({"choice": "x"}), trials=grown)], (8,)))
    found = {m.metric: m for m in judged.measurements}
    expected = {"cpu": 100.0, "cpu-typical": 100.0, "wall": 200.0, "memory": 4096.0}
    assert set(expected) == set(found)
    for metric, value in expected.items():
        measurement = found[metric]
        assert METRICS[metric].unit == measurement.unit
        assert pytest.approx((value,) * 3) == (measurement.low, measurement.value, measurement.high)


def test_components_add_up_to_the_whole() -> None:
    """A front end and what is behind it: their parts stand beside the server's cost, and the client's apart."""
    trials = tuple(served(block) for block in range(8))
    cell = replace(row({"choice": "x"}), trials=trials)
    study = builders.study(blocks=8)
    judged = judge_study(study_run([cell], (8,), replace(study, measure=replace(study.measure, cost="server-cpu"))))
    found = {(m.metric, m.component): m for m in judged.measurements}
    whole, web, behind = (found["server-cpu", name].value for name in (None, "web", "behind"))
    assert pytest.approx((100.0, 75.0, 25.0)) == (whole, web, behind)
    assert pytest.approx(40.0) == found["client-cpu", None].value
    assert pytest.approx(2000.0) == found["throughput", None].value
    assert pytest.approx(5e6) == found["server-memory", None].value
    assert {"throughput", "latency-p50", "latency-p95", "latency-p99"} == {
        m.metric for m in judged.measurements if m.limit is Limit.NOT_SATURATED
    }
    assert set(METRICS) >= {m.metric for m in judged.measurements}


def served(block: int) -> Trial:
    """A trial of a server with two components, the second of which works in every other chunk only."""
    chunks = tuple(
        Chunk(number, 1000, 10**6, {"web": 100_000 - behind_ns, "behind": behind_ns, CLIENT: 40_000})
        for number, behind_ns in enumerate((50_000, 0) * 2)
    )
    components = {"web": ComponentRecord(memory_bytes=4_000_000), "behind": ComponentRecord(memory_bytes=1_000_000)}
    load = LoadRecord(requests=2000, wall_ns=10**9, latency_us=((500, 2000),), components=components)
    return replace(trial(1.0, block=block), chunks=chunks, paid_by=("web", "behind"), load=load)


def test_a_cost_is_the_mean_over_operations() -> None:
    """Of work that is dear now and then, what it costs then is in the cost of all, and counts by its operations."""
    blocks = range(8)
    dear = tuple(trial([100.0, 100.0, 100.0, 150.0], block=block) for block in blocks)
    rows = [row({"choice": "none"}, [100.0] * 8), replace(row({"choice": "x"}), trials=dear)]
    ratio = Ledger(rows, TERMS).undisturbed_ratio(rows[1], rows[0])
    assert ratio is not None
    assert pytest.approx(1.125, rel=1e-4) == ratio.estimate


def test_estimate_of_more_blocks_is_about_right() -> None:
    """Of the unclear tolls that are given so many more blocks, most are decided by them."""
    decided = []
    machine = Kind((Disturbance(((0.0, pareto(0.02, 1.3)), (0.4, pareto(0.004, 1.3)))),), luck=0.04)
    work = Work(260_000)
    for seed in range(40):
        with Lab(machine, (work, work.times(1.05)), seed, blocks=60, rounds=4) as lab:
            lab.measure(60)
            rows = lab.look().studies[0].rows
        asked = tolls(Ledger([builders.first_blocks(r, 6) for r in rows], TERMS), TERMS, {})[1]
        if asked.more_blocks and asked.more_blocks <= 54:
            again = Terms(0.03, looks=2)
            cut = [builders.first_blocks(r, 6 + asked.more_blocks) for r in rows]
            decided.append(tolls(Ledger(cut, again), again, {})[1].verdict)
    share = 1 - decided.count(Verdict.UNCLEAR) / len(decided)
    print(f"decided by the blocks asked for: {share:.0%} of {len(decided)}")
    assert share >= 0.4
    assert Verdict.SAVES not in decided


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
