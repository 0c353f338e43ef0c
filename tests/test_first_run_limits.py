"""Limits in a first run on an unlisted processor: a ratio near its limit is *cannot tell*."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import run, study_run
from test_budgets import at_ratio, found
from test_comparison import slower
from tollbar.analysis import Judgement, StudyJudgement, judge
from tollbar.core.moments import Known
from tollbar.decide.check.checked import BudgetVerdict
from tollbar.decide.upgrade import Upgrade
from tollbar.decide.upgrade.words import upgrade_answer
from tollbar.report.changes import increase_lines
from upgrade_lab import of, pair


def unsure(study: StudyJudgement) -> StudyJudgement:
    """Return the study as of a first run, without any knowledge of a quiet core's probe."""
    return replace(study, trust=replace(study.trust, known_by=Known.NOTHING))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1.5, BudgetVerdict.OVER),
        (1.8, BudgetVerdict.CANNOT_TELL),
        (2.1, BudgetVerdict.CANNOT_TELL),
        (2.5, BudgetVerdict.WITHIN),
    ],
)
def test_a_budget_near_its_limit_cannot_be_told(limit: float, expected: BudgetVerdict) -> None:
    sure, first = at_ratio(2.0), unsure(at_ratio(2.0))
    assert (BudgetVerdict.OVER if limit < 2.0 else BudgetVerdict.WITHIN) is found(limit, sure).found
    assert expected is found(limit, first).found
    if expected is BudgetVerdict.CANNOT_TELL:
        assert "first run on this processor" in (found(limit, first).reason or "")


def test_a_limit_is_accepted_all_the_same() -> None:
    assert found(None, at_ratio(2.0)).new_limit == found(None, unsure(at_ratio(2.0))).new_limit


def test_a_rise_near_fail_above_is_not_told() -> None:
    """With 5 % allowed, no rise of 10 % and every rise of 50 % is reported."""
    near, far = slower(1.10), slower(1.50)
    firsts = []
    for comparison in (near, far):
        pairs = {
            study: tuple(
                replace(pair, trusts=tuple(replace(one, known_by=Known.NOTHING) for one in pair.trusts))
                for pair in some
            )
            for study, some in comparison.studies.items()
        }
        firsts.append(replace(comparison, studies=pairs))
    assert [2, 2] == [len(comparison.increases(0.05)) for comparison in (near, far)]
    assert [0, 2] == [len(comparison.increases(0.05)) for comparison in firsts]
    assert [0, 2] == [comparison.tellable("ratio", 0.05) for comparison in firsts]
    lines = [increase_lines(one, one.increases(0.05), 0.05) for one in (*firsts, near)]
    expected = (
        "Cannot exclude a steady neighbour: first run on this processor. 2 rows within ×1.15 of 5 % cannot be judged."
    )
    assert [True, False, False] == [expected in said for said in lines]


def test_an_upgrade_near_fail_above_is_not_told() -> None:
    sure = of(*pair("dearer", 1.10), *pair("cheaper", 0.8))
    first = first_run(sure)
    assert (1, 2, 0) == (len(sure.above(0.05)), sure.tellable(0.05), sure.near(0.05))
    assert (0, 1, 1) == (len(first.above(0.05)), first.tellable(0.05), first.near(0.05))
    assert any("first run on this processor" in note for note in upgrade_answer(first, 0.05).notes)
    assert not any("first run on this processor" in note for note in upgrade_answer(sure, 0.05).notes)


def first_run(found: Upgrade) -> Upgrade:
    judged = Judgement(found.judged.run, tuple(map(unsure, found.judged.studies)))
    changes = tuple(replace(change, study=unsure(change.study)) for change in found.changes)
    return replace(found, judged=judged, changes=changes)


def test_a_run_without_history_and_chain_is_a_first_run() -> None:
    rows = at_ratio(2.0).rows
    kept = run(study_run(rows, (20,)))
    first = replace(kept, best_probe_ns=None)
    known = [judge(one).studies[0].trust.known_by for one in (kept, first, replace(first, nodes={"web": {}}))]
    assert [Known.EARLIER_RUNS, Known.NOTHING, None] == known
