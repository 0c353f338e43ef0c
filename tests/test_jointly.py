"""Joint comparisons: headlines whose intervals hold jointly, and rows that miss by chance."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from builders import example, row, study_run, trials
from tollbar.analysis import Compared, Verdict, judge_study
from tollbar.analysis.decisions import jointly
from tollbar.catalog.families import Standing
from tollbar.core.intervals import Interval, student
from tollbar.report.sections.trust import by_chance, trust


def test_one_of_several_comparisons_has_a_wider_interval() -> None:
    """Five comparisons are judged at 99 % each if all together must hold at 95 %; a single one is unchanged."""
    one = Interval(1.1, 1.1 / 1.05, 1.1 * 1.05, 0.95, 12)
    found = jointly(one, 5)
    assert pytest.approx(0.99) == found.confidence
    times = student(11.0, 0.99) / student(11.0, 0.95)
    assert pytest.approx((1.1 / 1.05**times, 1.1 * 1.05**times)) == (found.low, found.high)
    assert one == jointly(one, 1)
    unknown = Interval(1.1, 0.0, math.inf, 0.95, 3)
    assert unknown == jointly(unknown, 5)


def test_intervals_that_hold_together_cover_together() -> None:
    """Ten equals compared at once: in at most one of twenty studies does any of the ten intervals miss."""
    source, missed, alone = random.Random(4), 0, 0
    for _ in range(400):
        seen = [_interval([source.gauss(0.0, 0.01) for _ in range(12)]) for _ in range(10)]
        missed += any(not one.low <= 1.0 <= one.high for one in (jointly(one, 10) for one in seen))
        alone += any(not one.low <= 1.0 <= one.high for one in seen)
    assert 0.02 * 400 < missed < 0.08 * 400
    # Coverage of the same studies with single intervals.
    assert 0.25 * 400 < alone


def _interval(logs: list[float]) -> Interval:
    mean = sum(logs) / len(logs)
    error = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1) / len(logs))
    half = student(len(logs) - 1.0, 0.95) * error
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), 0.95, len(logs))


def test_a_verdict_that_the_wider_interval_does_not_carry_is_none() -> None:
    judged = judge_study(study_run(example()))
    barely = next(toll for toll in judged.tolls if toll.row.key == "double")
    assert barely.ratio is not None
    near = replace(barely.ratio, estimate=1.06, low=1.035, high=1.086)
    noise = Interval(1.0, 0.995, 1.005, 0.96, 20)
    tolls = tuple(replace(toll, ratio=near, noise=noise) if toll is barely else toll for toll in judged.tolls)
    pairs = Compared(replace(judged, tolls=tolls))
    row, none = barely.row, barely.against
    for among, expected in ((1, Verdict.COSTS), (50, Verdict.UNCLEAR)):
        pair = pairs.of(row, none, among)
        assert pair is not None
        assert expected is pair.verdict
    far = Compared(judged).of(row, none, 50)
    assert far is not None
    assert Verdict.COSTS is far.verdict


def test_many_tolls_say_how_many_miss_by_chance() -> None:
    assert [] == by_chance(judge_study(study_run(example())))
    base = [100.0 + 0.01 * block for block in range(20)]
    rows = [row({"choice": "none"}, base, repeats_ns=base, standing=Standing.NULL)]
    rows += [replace(row({"choice": f"c{n}"}, against="none"), trials=trials(base)) for n in range(100)]
    judged = judge_study(study_run(rows))
    (said,) = by_chance(judged)
    assert said.startswith("About 4 of 100 tolls at 96 % confidence miss by chance alone")
    assert said in trust(judged)
