"""A source's own statistic: mean, error and deviation over blocks, or the rate of all runs but the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders import ROUNDS, chunk, claim, row, study, study_run, trials
from tollbar.analysis import BySource, judge_study
from tollbar.analysis.by_source import mean_error_deviation, rate_after_first
from tollbar.core import intervals
from tollbar.core.records import LoadRecord, Outcome
from tollbar.report.sections.published.figures import by_source_of
from tollbar.results import Row
from tollbar.study import Amount

BASELINE = {"choice": "baseline"}
MS = Amount(7.702, "ms", "7.702 ms")


def judged(*rows: Row) -> list[BySource | None]:
    """Return each row's statistic over the baseline, in a study whose source prints it."""
    claims = [claim(dict(list(one.coordinates.items())[:1]), BASELINE, 0.5, metric="wall") for one in rows]
    about = replace(study(claims=claims), statistic="mean-error-deviation")
    return [result.by_source for result in judge_study(study_run(rows, (20,), about)).claims]


def test_a_block_is_one_measurement() -> None:
    """The chunks of a block are one cost; mean and deviation are over the blocks, and a baseline over itself is 1."""
    baseline = row(BASELINE, [100.0, 100.0, 100.0, 100.0], repeats_ns=[100.0] * 4)
    other = row({"choice": "other"}, [[40.0, 60.0], [50.0, 54.0], [48.0, 48.0], [30.0, 70.0]])
    own, found = judged(baseline, other)
    assert own is not None
    assert found is not None
    assert pytest.approx((100.0, 0.0, 0.0, 1.0), abs=1e-3) == (own.mean, own.error, own.deviation, own.ratio)
    # For 50, 52, 48 and 50: Student's quantile for three degrees of freedom and 99.9 % is 12.92.
    assert pytest.approx((50.0, math.sqrt(8 / 3), 0.5), rel=1e-3) == (found.mean, found.deviation, found.ratio)
    assert pytest.approx(12.92 * math.sqrt(8 / 3) / 2, rel=1e-3) == found.error
    assert 4 == found.blocks


def test_a_baseline_of_several_batches_is_one_measurement_a_block() -> None:
    one = row(BASELINE, [100.0, 200.0])
    more = replace(trials([300.0])[0], batch=1)
    failed = replace(trials([900.0])[0], batch=2, outcome=Outcome.FAILED)
    found = mean_error_deviation(replace(one, trials=(*one.trials, more, failed)), one)
    assert pytest.approx(200.0, rel=1e-3) == found.mean
    assert pytest.approx(4 / 3, rel=1e-3) == found.ratio


def test_one_block_has_a_mean_and_no_more() -> None:
    one = row(BASELINE, [100.0])
    found = mean_error_deviation(one, one)
    assert (None, None, 1) == (found.error, found.deviation, found.blocks)


@pytest.mark.parametrize(
    ("error", "deviation", "n"),
    [(0.0484, 0.0429, 14), (0.1352, 0.1265, 15), (0.0694, 0.0649, 15), (0.0684, 0.0640, 15), (0.0782, 0.0930, 21)],
)
def test_the_error_is_the_one_that_benchmarkdotnet_prints(error: float, deviation: float, n: int) -> None:
    """Rows of a published table: their errors follow from their deviations and numbers of iterations."""
    assert pytest.approx(error, rel=2e-3) == intervals.student(n - 1, 0.999) * deviation / math.sqrt(n)


def test_a_cell_over_itself_is_once_itself_without_a_repeat() -> None:
    rows = [row(BASELINE, [100.0] * 6), row({"choice": "other"}, [50.0] * 6)]
    of = claim({"choice": "other"}, {"choice": "other"}, 1.0, metric="wall")
    about = replace(study(claims=[of]), statistic="mean-error-deviation")
    (found,) = judge_study(study_run(rows, (6,), about)).claims
    assert found.ratio is None
    assert found.by_source is not None
    assert (1.0, 6) == (found.by_source.ratio, found.by_source.blocks)


def served(name: str, walls_s: Sequence[float | None], *, batches: int = 1) -> Row:
    """Return a row with these durations of a thousand requests in each block and batch; None: it failed."""
    made = row({"choice": name}, [100.0] * len(walls_s))
    trials = [
        replace(trial, batch=batch, outcome=Outcome.FAILED)
        if wall_s is None
        else replace(trial, batch=batch, load=LoadRecord(requests=1000, wall_ns=round(wall_s * 1e9)))
        for trial, wall_s in zip(made.trials, walls_s, strict=True)
        for batch in range(batches)
    ]
    return replace(made, trials=tuple(trials))


def test_the_first_run_is_dropped_and_the_times_of_the_others_are_averaged() -> None:
    """Six runs: the statistic is the rate of their mean time, not the mean of their rates."""
    of, over = served("one", [9.0, 1.0, 1.0, 1.0, 1.0, 3.5]), served("other", [9.0, *[0.5] * 5])
    found = rate_after_first(of, over)
    assert found is not None
    assert pytest.approx((1000 / 1.5, 1 / 3)) == (found.mean, found.ratio)
    assert ("1/s", None, None, 5) == (found.unit, found.error, found.deviation, found.blocks)


def test_a_run_that_failed_is_none() -> None:
    usual = served("other", [9.0, 1.0, 1.0])
    later = rate_after_first(served("one", [None, 9.0, 2.0, 2.0]), usual)
    assert later is not None
    assert (pytest.approx(500), 2) == (later.mean, later.blocks)
    beside = rate_after_first(served("one", [9.0, 2.0, 2.0], batches=2), usual)
    assert beside is not None
    assert (pytest.approx(500), 2) == (beside.mean, beside.blocks)


@pytest.mark.parametrize("few", [served("one", [1.0]), row({"choice": "one"}, [100.0] * 6)], ids=["once", "no load"])
def test_without_a_second_run_there_is_no_rate(few: Row) -> None:
    usual = served("other", [1.0] * 6)
    assert (None, None) == (rate_after_first(few, usual), rate_after_first(usual, few))


def test_a_statistic_stands_beside_claims_of_its_metric_alone() -> None:
    rows = [served("one", [9.0, *[2.0] * 5]), served("other", [9.0, *[1.0] * 5])]
    claims = [claim({"choice": "one"}, {"choice": "other"}, 0.5, metric=metric) for metric in ("capacity", "cost")]
    about = replace(study(claims=claims), statistic="rate-after-first")
    judgement = judge_study(study_run(rows, (6,), about))
    assert [True, False] == [result.by_source is not None for result in judgement.claims]
    expected = ["mean 500\u00a0/s, scaled ×\u00a00.50", ""]
    assert expected == [by_source_of(one.claim, one.by_source) for one in judgement.claims]


def test_a_figure_of_one_cell_has_the_statistic_too() -> None:
    failed = row({"choice": "b"}, outcome=Outcome.FAILED, reason="wrong answer")
    rows = [row(BASELINE, [100.0] * 6, repeats_ns=[100.0] * 6), row({"choice": "a"}, [50.0] * 6), failed]
    figures = [claim({"choice": name}, {}, metric="wall", published=(MS,)) for name in ("a", "b")]
    about = replace(study(claims=figures), statistic="mean-error-deviation")
    found, none = judge_study(study_run(rows, (6,), about)).claims
    assert found.by_source is not None
    assert pytest.approx((50.0, 0.0, 1.0), abs=1e-3) == (
        found.by_source.mean,
        found.by_source.deviation,
        found.by_source.ratio,
    )
    assert (None, "wrong answer") == (none.by_source, none.reason)


def test_what_was_not_measured_has_no_statistic() -> None:
    failed = row({"choice": "other"}, outcome=Outcome.FAILED, reason="wrong answer")
    baseline = row(BASELINE, [100.0] * 6, repeats_ns=[100.0] * 6)
    assert [True, False] == [found is not None for found in judged(baseline, failed)]
    about = study(claims=[claim(BASELINE, BASELINE, 1.0, metric="wall")])
    assert [None] == [result.by_source for result in judge_study(study_run([baseline], (6,), about)).claims]


def test_rounds_made_up_are_in_no_source_s_statistic() -> None:
    """The source took its chunks as they came: extra rounds, which the lab waited for, would change its mean."""
    base = row(BASELINE, [100.0] * 4)
    picked = [replace(chunk(ROUNDS, 1.0, block=block), is_made_up=True) for block in range(4)]
    trials_now = tuple(replace(t, chunks=(*t.chunks, extra)) for t, extra in zip(base.trials, picked, strict=True))
    found = mean_error_deviation(replace(base, trials=trials_now), base)
    assert pytest.approx((100.0, 0.0, 1.0), abs=1e-3) == (found.mean, found.deviation, found.ratio)
