"""A source's own statistic: mean, error and deviation over blocks, and the ratio of the means."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from builders import claim, row, study, study_run, trials
from tollbar import stats
from tollbar.judge import BySource, judge_study
from tollbar.judge.sources import mean_error_deviation
from tollbar.measure import Outcome
from tollbar.results import Row

BASELINE = {"choice": "baseline"}


def judged(*rows: Row) -> list[BySource | None]:
    """Of each row over the baseline, in a study whose source prints the statistic."""
    claims = [claim(dict(list(one.coordinates.items())[:1]), BASELINE, 0.5, metric="cost") for one in rows]
    about = replace(study(claims=claims), statistic="mean-error-deviation")
    return [result.by_source for result in judge_study(study_run(rows, (20,), about)).claims]


def test_a_block_is_one_measurement() -> None:
    """The chunks of a block are one cost; mean and deviation are over the blocks, and a baseline is once itself."""
    baseline = row(BASELINE, [100.0, 100.0, 100.0, 100.0], twins_ns=[100.0] * 4)
    other = row({"choice": "other"}, [[40.0, 60.0], [50.0, 54.0], [48.0, 48.0], [30.0, 70.0]])
    own, found = judged(baseline, other)
    assert own is not None
    assert found is not None
    assert pytest.approx((100.0, 0.0, 0.0, 1.0), abs=1e-3) == (own.mean, own.error, own.deviation, own.ratio)
    # Of 50, 52, 48 and 50: Student's quantile for three degrees of freedom and 99.9 % is 12.92.
    assert pytest.approx((50.0, math.sqrt(8 / 3), 0.5), rel=1e-3) == (found.mean, found.deviation, found.ratio)
    assert pytest.approx(12.92 * math.sqrt(8 / 3) / 2, rel=1e-3) == found.error
    assert 4 == found.blocks


def test_a_baseline_of_several_heats_is_one_measurement_a_block() -> None:
    """All its chunks of the block together; a trial that failed is not among them."""
    one = row(BASELINE, [100.0, 200.0])
    more = replace(trials([300.0])[0], heat=1)
    failed = replace(trials([900.0])[0], heat=2, outcome=Outcome.FAILED)
    found = mean_error_deviation(replace(one, trials=(*one.trials, more, failed)), one)
    assert pytest.approx(200.0, rel=1e-3) == found.mean
    assert pytest.approx(4 / 3, rel=1e-3) == found.ratio


def test_one_block_has_a_mean_and_no_more() -> None:
    """Its deviation is not known, and so is its error not."""
    one = row(BASELINE, [100.0])
    found = mean_error_deviation(one, one)
    assert (None, None, 1) == (found.error, found.deviation, found.blocks)


@pytest.mark.parametrize(
    ("error", "deviation", "n"),
    [(0.0484, 0.0429, 14), (0.1352, 0.1265, 15), (0.0694, 0.0649, 15), (0.0684, 0.0640, 15), (0.0782, 0.0930, 21)],
)
def test_the_error_is_the_one_that_benchmarkdotnet_prints(error: float, deviation: float, n: int) -> None:
    """Rows of a published table: their errors follow from their deviations, for so many iterations."""
    assert pytest.approx(error, rel=2e-3) == stats.student(n - 1, 0.999) * deviation / math.sqrt(n)


def test_a_cell_over_itself_is_once_itself_without_a_twin() -> None:
    """A source's own baseline has its line, though nothing here tells what noise makes of it."""
    rows = [row(BASELINE, [100.0] * 6), row({"choice": "other"}, [50.0] * 6)]
    of = claim({"choice": "other"}, {"choice": "other"}, 1.0, metric="cost")
    about = replace(study(claims=[of]), statistic="mean-error-deviation")
    (found,) = judge_study(study_run(rows, (6,), about)).claims
    assert found.ratio is None
    assert found.by_source is not None
    assert (1.0, 6) == (found.by_source.ratio, found.by_source.blocks)


def test_what_was_not_measured_has_no_statistic() -> None:
    """Nor has a study whose source prints none."""
    failed = row({"choice": "other"}, outcome=Outcome.FAILED, reason="wrong answer")
    baseline = row(BASELINE, [100.0] * 6, twins_ns=[100.0] * 6)
    assert [True, False] == [found is not None for found in judged(baseline, failed)]
    about = study(claims=[claim(BASELINE, BASELINE, 1.0, metric="cost")])
    assert [None] == [result.by_source for result in judge_study(study_run([baseline], (6,), about)).claims]
