"""The judge: verdicts, tolls and measurements, and the effect of looks and noise."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders
from builders import example, lognormal, measured, row, run, study_run, trial
from disturbed import Disturbance, Kind, Work, pareto
from simulated import Lab
from tollbar.analysis import Limit, Measurement, Verdict, judge, judge_study
from tollbar.analysis.decisions import Terms, decide, more_blocks, suffers
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.tolls import tolls
from tollbar.catalog.families import Standing
from tollbar.core.intervals import Interval, product, quotient
from tollbar.core.metrics import METRICS
from tollbar.core.moments import Quickness
from tollbar.core.records import CLIENT, Chunk, ComponentRecord, LoadRecord, Outcome, Trial
from tollbar.report.sections.warnings import warnings
from tollbar.results import Row

TERMS = Terms(0.03, interim_looks=1)


# Costs.


def costs(rows: Sequence[Row]) -> Mapping[str, Measurement]:
    judged = judge_study(study_run(rows))
    return {one.row.key: one for one in judged.measurements if one.metric == "cpu"}


def test_a_quiet_cost_is_its_baselines_times_the_ratio_between_them() -> None:
    """A cell measured in the quick half of a run would otherwise seem to cost less than its ratio says."""
    noise = random.Random(1)
    base = [100 * speed * noise.uniform(0.97, 1.03) for speed in [1.0] * 10 + [1.1] * 10]
    rows = [
        row({"choice": "none"}, base, repeats_ns=base),
        row({"choice": "double"}, [2 * ns * noise.uniform(0.99, 1.01) for ns in base[:10]], against="none"),
        row({"choice": "alone"}, [300.0] * 10),
    ]
    ratio = next(toll.ratio for toll in judge_study(study_run(rows)).tolls if toll.row.key == "double")
    found = costs(rows)
    assert ratio is not None
    assert 2.0 == pytest.approx(ratio.estimate, rel=0.01)
    assert found["none"].value * ratio.estimate == pytest.approx(found["double"].value, rel=1e-9)
    assert found["double"].low < found["double"].value < found["double"].high
    assert 300 == pytest.approx(found["alone"].value, rel=0.001)


def test_a_cost_is_the_cells_own_next_to_a_baseline_that_is_hardly_known() -> None:
    """A baseline of next to no work varied by a factor of 15, and the cell by 10 %."""
    noise = random.Random(1)
    base = [2.0 ** noise.uniform(-2, 2) for _ in range(20)]
    rows = [
        row({"choice": "none"}, base, repeats_ns=base),
        row({"choice": "some"}, [5000 * noise.uniform(0.99, 1.01) for _ in base], against="none"),
    ]
    assert 5000 == pytest.approx(costs(rows)["some"].value, rel=0.01)


@pytest.mark.parametrize("which", ["baseline", "cell"])
def test_a_noisy_cost_is_the_cells_own(which: str) -> None:
    """The product of a quiet cost and a ratio of all samples is a cost of no moments."""
    slow = [1.0] * 10 + [1.5] * 10
    base, double = [100.0 * one for one in slow], [200.0 + number for number in range(10)]
    rows = [row({"choice": "none"}, base, repeats_ns=base), row({"choice": "double"}, double, against="none")]
    place = 0 if which == "baseline" else 1
    rows[place] = without_probes(rows[place])
    assert fmean(double) == pytest.approx(costs(rows)["double"].value, rel=0.01)


def without_probes(one: Row) -> Row:
    trials, repeats = (
        tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in some)
        for some in (one.trials, one.repeats)
    )
    return replace(one, trials=trials, repeats=repeats)


def test_the_quotient_of_an_interval_without_an_end_has_none() -> None:
    known, half_open = Interval(2.0, 1.9, 2.1, 0.95, 8), Interval(1.0, 0.5, math.inf, 0.95, 3)
    for found in (quotient(known, half_open), product(known, replace(known, low=0.0))):
        assert (0.0, math.inf) == (found.low, found.high)


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
    """Differences above 3 % count."""
    assert expected is decide(Interval(1.0, low, high, 0.95, 20), floor, Terms(0.03, interim_looks=1))


@given(st.floats(0.2, 5), st.floats(1, 2), st.floats(1, 2), st.floats(1, 1.2))
def test_costs_one_way_saves_the_other(estimate: float, down: float, up: float, floor: float) -> None:
    terms = Terms(0.03, interim_looks=1)
    there = decide(Interval(estimate, estimate / down, estimate * up, 0.95, 20), floor, terms)
    back = decide(Interval(1 / estimate, 1 / (estimate * up), down / estimate, 0.95, 20), floor, terms)
    assert {Verdict.COSTS: Verdict.SAVES, Verdict.SAVES: Verdict.COSTS}.get(there, there) is back


@pytest.mark.parametrize(
    ("interval", "floor", "expected"),
    [
        # 3 of the 4 blocks that an interval needs.
        (Interval(1.1, 0.0, math.inf, 0.96, 3), None, 1),
        # Half the width is wanted: four times the blocks, and nearly as many again to pay for the look.
        (Interval(1.0, 1 / 1.0609, 1.0609, 0.96, 20), 1.0, 130),
        # At the threshold itself no number of blocks decides, nor does any without a noise floor.
        (Interval(1.03, 0.98, 1.08, 0.95, 20), 1.01, None),
        (Interval(1.0299, 0.98, 1.08, 0.95, 20), 1.01, None),
        (Interval(1.2, 0.98, 1.5, 0.95, 20), None, None),
    ],
)
def test_more_blocks(interval: Interval, floor: float | None, expected: int | None) -> None:
    """The estimate follows from 1/√n, and is None beyond fifty times the blocks."""
    assert expected == more_blocks(interval, floor, Terms(0.03, interim_looks=1))


def test_looks_are_paid_for_in_confidence() -> None:
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
    spent = [1 - Terms(0.03, looks).confidence for looks in range(1, 2000)]
    # The tolerance covers the rounding errors of all confidences.
    assert 0.05 + 1e-12 >= math.fsum(spent)
    assert min(spent) > 0
    assert pytest.approx(0.05) == math.fsum(spent)


# Tolls.


def test_tolls_of_an_example() -> None:
    judged = judge_study(study_run(example()))
    assert [Verdict.FREE, Verdict.COSTS, Verdict.FREE] == [toll.verdict for toll in judged.tolls]
    double = judged.tolls[1]
    assert double.ratio is not None
    assert double.all_samples is not None
    assert pytest.approx((2.0, 2.0), rel=0.01) == (double.ratio.estimate, double.all_samples.estimate)
    assert pytest.approx(100, rel=0.02) == double.difference
    assert double.suffers is None
    assert (double.noise_floor, double.noise) == (judged.noise_floor, judged.noise)
    assert () == warnings(judged)


def test_the_noise_floor_is_an_interval() -> None:
    """A/A pairs at ×1.00 that may be 4 % apart: no toll is free, and none within that distance is decided."""
    base = [100.0, 108.0] * 10
    # One of the two is cheaper in each block by as much as the other is in the next.
    rows = [row({"choice": "none"}, base, repeats_ns=base[::-1])]
    for times in (1.0, 1.035, 1.20):
        # Both of the baseline's trials count on its side.
        rows.append(row({"choice": str(times)}, [times * 104.0] * 20, against="none"))
    judged = judge_study(study_run(rows))
    assert judged.noise is not None
    assert (pytest.approx(1.0), pytest.approx(1.0)) == (judged.noise_floor, judged.noise.estimate)
    assert judged.noise.low < 1 / 1.035 < 1.035 < judged.noise.high < 1.05
    assert [Verdict.UNCLEAR] * 3 + [Verdict.COSTS] == [toll.verdict for toll in judged.tolls]


@pytest.mark.parametrize(
    ("ratio", "all_samples", "expected"),
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
    ratio: tuple[float, float, float], all_samples: tuple[float, float, float], expected: str | None
) -> None:
    assert expected == suffers(Interval(*ratio, 0.95, 12), Interval(*all_samples, 0.95, 12), TERMS)


@given(st.floats(0.1, 10))
def test_toll_scales_with_its_cell(factor: float) -> None:
    costs = [100.0, 100.4, 99.8, 100.1, 99.7, 100.5, 99.9, 100.05]
    base = row({"choice": "none"}, costs[::-1], repeats_ns=costs)
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
    rows = example()
    turned = [replace(r, trials=r.trials[::-1], repeats=r.repeats[::-1]) for r in rows]
    there, back = judge_study(study_run(rows)), judge_study(study_run(turned))
    assert [t.ratio for t in there.tolls] == [t.ratio for t in back.tolls]
    assert there.drift == back.drift


def test_pairs_are_formed_within_blocks() -> None:
    rows = example()
    cut = rows[1].trials[2:-1]
    failed = replace(cut[0], outcome=Outcome.FAILED, reason="the runner fell over")
    judged = judge_study(study_run([rows[0], replace(rows[1], trials=(failed, *cut[1:])), rows[2]]))
    ratios = [toll.ratio.n if toll.ratio else None for toll in judged.tolls]
    assert [20, 16, 20] == ratios


def test_too_few_blocks_are_unclear() -> None:
    judged = judge_study(study_run(example(blocks=3), (3,)))
    assert {Verdict.UNCLEAR} == {toll.verdict for toll in judged.tolls}
    assert {1} == {toll.more_blocks for toll in judged.tolls}
    assert (None, None) == (judged.noise_floor, judged.noise)
    assert any("at least 4" in warning for warning in warnings(judged))


def test_failures_stay_in_their_place() -> None:
    base = row({"choice": "none"}, [100.0] * 8, repeats_ns=[100.0] * 8)
    refused = row({"choice": "no-base"}, outcome=Outcome.UNSUPPORTED, reason="no such digest")
    rows = [
        base,
        row({"choice": "a"}, against="none", outcome=Outcome.UNSUPPORTED, reason="no SHA-3 before 1.1.1"),
        row({"choice": "b"}, against="none"),
        row({"choice": "c"}, [100.0] * 8, against="none"),
        row({"choice": "d"}, [100.0] * 8, against="no-base"),
        replace(refused, against="no-base"),
        row({"choice": "e"}, [100.0] * 8, against="gone"),
        row({"choice": "f", "server": "nginx"}, [100.0] * 8),
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
        (Verdict.NOT_MEASURED, "it has no baseline: no cell differs from it only in choice none"),
    ]
    assert expected == [(toll.verdict, toll.reason) for toll in judged.tolls]
    assert ["none", "c", "d", "e", "f"] == [m.row.choice for m in judged.measurements if m.metric == "cpu"]


def test_what_is_missing_of_a_comparison_is_said_as_it_is() -> None:

    def unseen(one: Trial) -> Trial:
        return replace(one, chunks=tuple(replace(c, cpu_ns=dict.fromkeys(c.cpu_ns, 0)) for c in one.chunks))

    later = tuple(trial(100.0, block=b) for b in range(8))
    rows = [
        replace(row({"choice": "none"}, [100.0] * 4, against="none"), repeats=()),
        replace(row({"choice": "a"}, against="none"), trials=later[4:]),
        replace(row({"choice": "b"}, against="none"), trials=tuple(map(unseen, later[:4])) + later[4:]),
    ]
    assert [
        "both sides are one cell, which was not measured twice in a block",
        "no block has both cells",
        "in the blocks with both cells, one of them used no measurable CPU time",
    ] == [toll.reason for toll in judge_study(study_run(rows, (8,))).tolls]


def test_chunks_without_an_operation_are_left_out() -> None:
    rows = example()
    first = rows[1].trials[0]
    empty = (Chunk(4, 0, 5_000_000, {"runner": 5_000_000}), Chunk(5, 7, 5_000_000, {"runner": 0}))
    longer = replace(first, chunks=first.chunks + empty)
    (seen,) = Ledger([replace(rows[1], trials=(longer,))], TERMS).visits(rows[1])
    assert [0, 1, 2, 3, 5] == seen.rounds.tolist()


def test_a_baseline_counts_where_the_cell_was_beside_it() -> None:
    blocks = range(8)
    base = tuple(trial(100.0 if batch else 300.0, block=b, batch=batch) for b in blocks for batch in (0, 1))
    rows = [
        replace(row({"choice": "none"}, against="none"), trials=base),
        replace(row({"choice": "x"}, against="none"), trials=tuple(trial(200.0, block=b, batch=1) for b in blocks)),
    ]
    ratio = Ledger(rows, TERMS).best_ratio(rows[1], rows[0])
    assert ratio is not None
    assert pytest.approx(2.0) == ratio.estimate


def test_shared_variances_make_no_noisy_ratio_of_unlike_work_narrower() -> None:
    """A neighbour's state outlasts a run, so blocks do not show how such ratios move with it."""
    base, repeat, *costs = measured([1, 1, *[2] * 6], lognormal(0.02), random.Random(5), blocks=4)
    rows = [row({"choice": "none"}, base, repeats_ns=repeat)]
    rows += [row({"choice": f"c{number}"}, cost, against="none") for number, cost in enumerate(costs)]
    quiet, noisy = Ledger(rows, TERMS), Ledger(rows, TERMS, quickness=Quickness())

    def widths(ledger: Ledger, of: Sequence[Row]) -> list[float]:
        found = [ledger.best_ratio(one, rows[0]) for one in of]
        return [math.log(one.high / one.low) for one in found if one is not None]

    # Two ratios share nothing.
    own = [widths(Ledger([rows[0], one], TERMS), [one])[0] for one in rows[1:]]
    assert all(width >= alone - 1e-9 for width, alone in zip(widths(noisy, rows[1:]), own, strict=True))
    assert any(width < 0.9 * alone for width, alone in zip(widths(quiet, rows[1:]), own, strict=True))
    # A/A pairs compare like with like, and share in either case.
    assert pytest.approx(widths(quiet, rows[:1]), rel=1e-3) == widths(noisy, rows[:1])


def test_measurements_are_in_their_own_units() -> None:
    chunks = tuple(replace(c, wall_ns=2 * c.wall_ns) for c in trial(100.0).chunks)
    grown = tuple(replace(trial(100.0, block=b), memory_bytes=4096, chunks=chunks) for b in range(8))
    judged = judge_study(study_run([replace(row({"choice": "x"}), trials=grown)], (8,)))
    found = {m.metric: m for m in judged.measurements}
    expected = {"cpu": 100.0, "cpu-all": 100.0, "wall": 200.0, "memory": 4096.0}
    assert set(expected) == set(found)
    for metric, value in expected.items():
        measurement = found[metric]
        assert METRICS[metric].unit == measurement.unit
        assert pytest.approx((value,) * 3) == (measurement.low, measurement.value, measurement.high)


def test_components_add_up_to_the_whole() -> None:
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
    """Return a trial of a server with two components, the second of which works in every other chunk only."""
    chunks = tuple(
        Chunk(number, 1000, 10**6, {"web": 100_000 - behind_ns, "behind": behind_ns, CLIENT: 40_000})
        for number, behind_ns in enumerate((50_000, 0) * 2)
    )
    components = {"web": ComponentRecord(memory_bytes=4_000_000), "behind": ComponentRecord(memory_bytes=1_000_000)}
    load = LoadRecord(requests=2000, wall_ns=10**9, latency_us=((500, 2000),), components=components)
    return replace(trial(1.0, block=block), chunks=chunks, paid_by=("web", "behind"), load=load)


@pytest.mark.coverage
def test_estimate_of_more_blocks_is_about_right() -> None:
    decided = []
    machine = Kind((Disturbance(((0.0, pareto(0.02, 1.3)), (0.4, pareto(0.004, 1.3)))),), luck=0.04)
    work = Work(260_000)
    for seed in range(40):
        with Lab(machine, (work, work.times(1.05)), seed, blocks=60, rounds=4) as lab:
            lab.measure(60)
            rows = lab.look().studies[0].rows
        asked = tolls(Ledger([builders.first_blocks(r, 6) for r in rows], TERMS), {})[1]
        if asked.more_blocks and asked.more_blocks <= 54:
            again = Terms(0.03, interim_looks=2)
            cut = [builders.first_blocks(r, 6 + asked.more_blocks) for r in rows]
            decided.append(tolls(Ledger(cut, again), {})[1].verdict)
    share = 1 - decided.count(Verdict.UNCLEAR) / len(decided)
    print(f"decided by the blocks asked for: {share:.0%} of {len(decided)}")
    assert share >= 0.4
    assert Verdict.SAVES not in decided


# Full size.


@pytest.mark.share(0)
def test_a_thousand_cells() -> None:
    source = random.Random(9)
    api = {"legacy": 0.0, "evp": 0.05, "fetched": 0.1}
    rows = []
    for choice in ["none", *(f"choice-{i}" for i in range(37))]:
        for provider in ("openssl 3.0.19", "aws-lc 1.71", "rustcrypto"):
            for name in api:
                for size in (64, 1024, 16384):
                    true = size * (1 + hash_of(choice)) * (1 + api[name] * (choice != "choice-7"))
                    where = {"choice": choice, "provider": provider, "api": name, "bytes": size}
                    costs, repeats = measured([true, true], lognormal(0.03), source, blocks=20)
                    against = " ".join(["none", provider, name, str(size)])
                    standing = Standing.NULL if choice == "none" else Standing.ACCEPTABLE
                    rows.append(
                        row(
                            where,
                            costs,
                            against=against,
                            repeats_ns=repeats if choice == "none" else (),
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
    """Return a fixed cost for each choice, the same in every run of the tests."""
    return random.Random(choice).random()
