"""Drift and warnings: facts that a reader needs before believing a run."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest

from builders import example, row, study, study_run, trial, trials
from tollbar.analysis import judge_study
from tollbar.analysis.lattice import lattice
from tollbar.core.intervals import Moments
from tollbar.core.records import Chunk, ComponentRecord, LoadRecord, Outcome, SetAside
from tollbar.report.sections.warnings import warnings
from tollbar.results import Row


def test_drift_is_the_last_third_over_the_first() -> None:
    """A cost that doubles half way has drifted to ×2.00, and the warning gives advice."""
    costs = [100.0] * 9 + [200.0] * 9
    judged = judge_study(study_run([row({"choice": "none"}, costs, repeats_ns=costs)], (18,)))
    assert pytest.approx(2.0) == judged.drift
    assert ["rose by 100 %"] == [re.findall("rose by [0-9]+ %", w)[0] for w in warnings(judged)]


def run_queue_wait(share: float) -> LoadRecord:
    """Return a load whose server waited for its core for this share of the time, and had it for half."""
    component = ComponentRecord(cpu_ns=500, run_queue_wait_ns=round(1000 * share))
    return LoadRecord(requests=1, wall_ns=1000, components={"web": component})


def closed(connections: int) -> LoadRecord:
    """Return a load in which the server closed this number of kept connections."""
    return LoadRecord(requests=1, wall_ns=1000, reopened=connections)


@pytest.mark.parametrize(
    ("rows", "interim_looks", "expected"),
    [
        ([row({"choice": "x"}, outcome=Outcome.FAILED, reason="no")], (20,), "Nothing was measured"),
        (example(3), (3,), "3 cannot support an interval"),
        (example(12), (20,), "cut short: 12 of 20 blocks are whole"),
        (
            [replace(r, trials=r.trials[:-1] if r.choice == "same" else r.trials) for r in example()],
            (20,),
            "19 of 20",
        ),
        ([replace(r, repeats=()) for r in example()], (20,), "there is no A/A pair"),
        (
            [replace(r, trials=tuple(replace(t, steal_ns=t.wall_ns) for t in r.trials)) for r in example()],
            (20,),
            "more than 5 % of the time in 20 of 20 batches",
        ),
        (
            [
                row({"choice": "none"}, [100.0] * 20),
                replace(
                    row({"choice": "x"}),
                    trials=tuple(
                        replace(trial(1.0, block=n), load=run_queue_wait(0.2 if n < 5 else 0.1)) for n in range(20)
                    ),
                ),
            ],
            (20,),
            "for more than 10 % of the time in 5 of 20 throughput phases",
        ),
        (
            [
                row({"choice": "none"}, [100.0] * 20),
                replace(
                    row({"choice": "x"}),
                    trials=tuple(replace(trial(1.0, block=n), load=closed(3 if n < 5 else 0)) for n in range(20)),
                ),
            ],
            (20,),
            "The server closed 15 connections that its clients kept, in 5 of 20 trials",
        ),
        (
            [row({"choice": "none"}, [100.0] * 20, repeats_ns=[110.0] * 20)],
            (20,),
            "so no cell of their kind can be judged free",
        ),
        (
            [
                replace(
                    row({"choice": "x"}, [1.0] * 7),
                    trials=(*trials([1.0] * 7), trial(1.0, block=7, outcome=Outcome.FAILED)),
                )
            ],
            (8,),
            "1 trial failed in cells with other, good trials (the runner fell over)",
        ),
        (
            [
                row({"choice": "none"}, [100.0] * 8),
                replace(
                    row({"choice": "x"}),
                    # Three quiet blocks of eight.
                    trials=tuple(
                        replace(one, chunks=tuple(replace(c, probes_ns=(25_000.0, 38_000.0)) for c in one.chunks))
                        if one.block > 2
                        else one
                        for one in trials([100.0] * 8)
                    ),
                ),
            ],
            (8,),
            "he core of 1 of 2 cells was quiet in too few blocks (at least 4)",
        ),
    ],
    ids=[
        "nothing",
        "few",
        "cut",
        "cut-within",
        "no-repeats",
        "steal",
        "contention",
        "reopened",
        "noise",
        "failures",
        "quiet",
    ],
)
def test_warnings(rows: list[Row], interim_looks: tuple[int, ...], expected: str) -> None:
    said = warnings(judge_study(study_run(rows, interim_looks, study(blocks=interim_looks[-1]))))
    assert 1 == sum(expected in warning for warning in said)


def test_a_server_that_waits_for_itself_is_not_disturbed_by_others() -> None:
    """The server's processes share one core: while they use it, no other program has it."""
    for used, expected in ((500, 20), (950, 0)):
        component = ComponentRecord(cpu_ns=used, run_queue_wait_ns=600)
        load = LoadRecord(requests=1, wall_ns=1000, components={"web": component})
        waiting = replace(
            row({"choice": "x"}), trials=tuple(replace(trial(1.0, block=n), load=load) for n in range(20))
        )
        judged = judge_study(study_run([row({"choice": "none"}, [100.0] * 20), waiting], (20,)))
        assert expected == judged.trust.contended_loads


def repeats(differences: list[float]) -> list[Row]:
    """Return baselines whose A/A pairs differ by these factors, each block slightly off."""
    costs = [100.0 + 0.05 * (block % 3) for block in range(12)]
    return [
        row({"choice": f"base-{number}"}, costs, repeats_ns=[times * cost for cost in reversed(costs)])
        for number, times in enumerate(differences)
    ]


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([1.0], None),
        ([1.01], "1 of 1 A/A pair "),
        ([1.01] + [1.0] * 19, "1 of 20 A/A pairs "),
        # Slightly beyond the interval of one, which happens by chance in one of twenty, but not in ten.
        ([1.0006] + [1.0] * 19, None),
        ([1.0008] * 10 + [1.0] * 10, "10 of 20 A/A pairs "),
    ],
)
def test_repeats_that_exclude_one(differences: list[float], expected: str | None) -> None:
    """A/A pairs that exclude 1 mean that intervals are too narrow, unless chance explains their number."""
    said = warnings(judge_study(study_run(repeats(differences), (12,))))
    found = [warning for warning in said if "have one that excludes" in warning]
    assert [expected in warning for warning in found] == ([True] if expected else [])


def test_chance_alone_seldom_warns_of_repeats() -> None:
    """The warning names a fault of the lab: of studies without one it comes in one of a hundred, not in one of 25."""
    source, warned, number = random.Random(3), 0, 500
    for _ in range(number):
        costs, again = ([100.0 * math.exp(source.gauss(0, 0.01)) for _ in range(12)] for _ in range(2))
        judged = judge_study(study_run([row({"choice": "base"}, costs, repeats_ns=again)], (12,)))
        warned += judged.trust.repeats_apart is not None
    print(f"warned in {warned} of {number}")
    assert warned <= 0.01 * number + 3 * math.sqrt(0.01 * 0.99 * number)


def chunks(wall_ns: list[int], cpu_ns: list[int]) -> tuple[Chunk, ...]:
    """Return chunks of a thousand operations with these times."""
    times = zip(wall_ns, cpu_ns, strict=True)
    return tuple(Chunk(number, 1000, wall, {"runner": cpu}) for number, (wall, cpu) in enumerate(times))


EVEN = [5_000_000 + 7_919 * number for number in range(24)]
# Work for a fraction of its time, and waits for the rest.
WAITING = [600_000 + 7_919 * number for number in range(24)]


@pytest.mark.parametrize(
    ("wall_ns", "cpu_ns", "expected"),
    [
        (EVEN, EVEN, None),
        # A clock that moves every 10 ms, as that of ended children does.
        (EVEN, [0, 10_000_000, 10_000_000, 20_000_000] * 6, "a CPU clock that moves in steps of 10 ms"),
        (EVEN, [10_000_000] * 24, "a CPU clock that moves in steps of 10 ms"),
        (EVEN, [number // 1000 * 1000 for number in EVEN], None),
        # A flush that ends with the scheduler's tick: 4, 8 and 16 ms, and never 5 or 11.
        ([4_010_000, 8_020_000, 8_005_000, 16_050_000] * 6, WAITING, "waits for a tick every 4 ms"),
        # It works most of the time: another program had its core for a tick.
        ([4_010_000, 8_020_000, 4_005_000, 4_050_000] * 6, [wall - 900_000 for wall in EVEN], None),
        # Planned to last 4 ms, and lasting just that.
        ([4_000_100 + number for number in range(24)], EVEN, None),
        ([4_010_000, 8_020_000, 8_005_000, 16_050_000], WAITING[:4], None),
        # A component with hardly any work: a directory whose answers are cached.
        (EVEN, [0] * 23 + [45_107], None),
    ],
    ids=["none", "clock", "clock, one step", "microseconds", "flush", "held up", "as asked", "few", "worked once"],
)
def test_lattices(wall_ns: list[int], cpu_ns: list[int], expected: str | None) -> None:
    """Chunk times that are multiples of a tick are precise but wrong, and the warning names the cause."""
    seen = replace(trial(1.0), chunks=chunks(wall_ns, cpu_ns))
    assert expected == lattice([seen])
    said = warnings(judge_study(study_run([replace(row({"choice": "x"}), trials=(seen,))], (1,))))
    assert (expected is not None) == any("tight and wrong" in warning for warning in said)


def test_a_block_is_whole_where_every_cell_has_it() -> None:
    """Two cells that each miss another block leave both blocks incomplete; a quarantined cell does not."""
    none, double, same = example()
    without = [
        replace(of, trials=tuple(t for t in of.trials if t.block != block)) for of, block in ((double, 3), (same, 7))
    ]
    judged = judge_study(study_run([none, *without], (20,)))
    assert (20, 18) == (judged.trust.blocks, judged.trust.whole_blocks)
    aside = SetAside("study", same.key, after=9, failed=4, trials=9, reason="it fell over", at_s=1.0)
    judged = judge_study(study_run([none, without[0], replace(without[1], set_aside=aside)], (20,)))
    assert (20, 19) == (judged.trust.blocks, judged.trust.whole_blocks)


@pytest.mark.parametrize(("change", "warms"), [(0.96, True), (1.0, False), (0.99, False)])
def test_a_ratio_that_changes_within_trials_is_told(change: float, warms: bool) -> None:
    """From the first to the last of ten rounds, by more than the threshold; drift over blocks does not show that."""
    source, rounds = random.Random(3), 10
    base, repeat = (
        [[100 * source.lognormvariate(0, 0.01) for _ in range(rounds)] for _ in range(12)] for _ in range(2)
    )
    cell = [
        [200 * change ** (number / (rounds - 1)) * source.lognormvariate(0, 0.01) for number in range(rounds)]
        for _ in range(12)
    ]
    rows = [row({"choice": "none"}, base, repeats_ns=repeat), row({"choice": "x"}, cell, against="none")]
    judged = judge_study(study_run(rows, (12,), study(blocks=12)))
    assert judged.trust.trend is not None
    title, found = judged.trust.trend
    assert "x" == title
    assert found.low <= change <= found.high
    assert warms == any("still warmed up while measured" in said for said in warnings(judged))


def test_work_that_varies_by_itself_is_named() -> None:
    source = random.Random(4)
    base, repeat = ([[4e6 * source.lognormvariate(0, 0.01) for _ in range(10)] for _ in range(12)] for _ in range(2))
    cell = [[8e6 * source.gammavariate(3, 1 / 3) for _ in range(10)] for _ in range(12)]
    rows = [row({"choice": "none"}, base, repeats_ns=repeat), row({"choice": "x"}, cell, against="none")]
    judged = judge_study(study_run(rows, (12,), study(blocks=12)))
    assert (("x",), 0) == (judged.trust.varying, judged.trust.never_quiet)
    toll = judged.tolls[1]
    assert toll.ratio is not None
    assert Moments.ALL is toll.ratio.moments
    assert ["Operations of 1 cell (x)"] == [said[:24] for said in warnings(judged) if "vary by themselves" in said]
