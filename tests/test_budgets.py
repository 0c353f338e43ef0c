"""Budgets: a limit is checked against a measurement, accepted, and asked as a question."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from builders import lognormal, measured, row, study, study_run
from tollbar.analysis import StudyJudgement, judge_study
from tollbar.catalog.families import Standing
from tollbar.catalog.policies import CostBudget, Processor, SetOn, check_project, read_project
from tollbar.core import method
from tollbar.core.errors import TollbarError
from tollbar.decide.check.accepting import accepted
from tollbar.decide.check.checked import PRECISION, BudgetVerdict, Check, CheckedBudget
from tollbar.decide.check.judging import judged, left_out, refuse_other_than_one, study_of
from tollbar.decide.check.words import answer
from tollbar.results import Row
from tollbar.study import plan

TODAY = date(2026, 11, 23)
HERE = Processor("AMD EPYC", "25/17/1", "aes avx2")
BUDGET = CostBudget.model_validate(
    {"name": "hashing", "where": "tollbar.toml: `budget.hashing`", "family": "digest", "choice": "x"}
    | {"against": "none", "at-most": 2.1}
)
SET_ON = SetOn(cpu=HERE.cpu, model=HERE.model, flags=HERE.flags, ratio=2.0, libraries=(), day=TODAY)


def at_ratio(
    true: float, seed: int = 1, *, sigma: float = 0.004, blocks: int = 20, noisy: bool = False
) -> StudyJudgement:
    """Return a study of one comparison with a known true ratio, quiet or noisy."""
    base, repeat, cost = measured([1.0, 1.0, true], lognormal(sigma), random.Random(seed), blocks=blocks)
    rows = [
        row({"choice": "none"}, base, repeats_ns=repeat, standing=Standing.NULL),
        row({"choice": "x"}, cost, against="none"),
    ]
    return judge_study(study_run([_disturbed(one) for one in rows] if noisy else rows, (blocks,), study(blocks=blocks)))


def _disturbed(one: Row) -> Row:
    def beside_a_neighbour(trials: Sequence[object]) -> tuple[object, ...]:
        return tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in trials)  # type: ignore[attr-defined, type-var]

    return replace(one, trials=beside_a_neighbour(one.trials), repeats=beside_a_neighbour(one.repeats))  # type: ignore[arg-type]


def found(limit: float | None, of: StudyJudgement, among: int = 1) -> CheckedBudget:
    return judged(BUDGET.model_copy(update={"at_most": limit}), of, among)


def test_a_ratio_is_over_where_its_whole_interval_is() -> None:
    of = at_ratio(2.0)
    ratio = found(2.1, of).ratio
    assert ratio is not None
    assert BudgetVerdict.WITHIN is found(2.1, of).found
    assert BudgetVerdict.OVER is found(1.9, of).found
    for limit in (ratio.low * 1.0001, ratio.estimate, ratio.high * 0.9999):
        assert (BudgetVerdict.CANNOT_TELL, "the limit lies within the interval") == (
            found(limit, of).found,
            found(limit, of).reason,
        )


def test_several_budgets_hold_together() -> None:
    """Ten budgets have wider intervals, so that the error rate of all together equals that of one."""
    of = at_ratio(2.0)
    alone, among = found(2.1, of).ratio, found(2.1, of, 10).ratio
    assert alone is not None
    assert among is not None
    assert among.low < alone.low < alone.high < among.high
    assert pytest.approx(1 - (1 - alone.confidence) / 10) == among.confidence


def test_what_noise_explains_is_not_over() -> None:
    of = at_ratio(2.0)
    (toll,) = (one for one in of.tolls if one.row.key != one.against.key)
    assert toll.ratio is not None
    apart = replace(toll, noise=replace(toll.ratio, estimate=1.03, low=1.01, high=1.05))
    noisy = replace(of, tolls=tuple(apart if one is toll else one for one in of.tolls))
    assert (BudgetVerdict.OVER, BudgetVerdict.CANNOT_TELL) == (found(1.95, of).found, found(1.95, noisy).found)
    noisy = at_ratio(2.0, noisy=True)
    assert (BudgetVerdict.CANNOT_TELL, BudgetVerdict.OVER) == (found(1.9, noisy).found, found(1.2, noisy).found)
    assert "not quiet" in (found(1.9, noisy).reason or "")
    assert not found(1.9, noisy).can_be_set


def test_within_as_disturbed_is_counted_apart() -> None:
    noisy = at_ratio(2.0, noisy=True)
    near, far, sure = (found(2.2, noisy), found(3.0, noisy), found(2.2, at_ratio(2.0)))
    assert [BudgetVerdict.WITHIN] * 3 == [one.found for one in (near, far, sure)]
    assert [False, True, True] == [one.is_sure for one in (near, far, sure)]
    check = Check(Path("tollbar.toml"), TODAY, budgets=(near, far, sure))
    assert (False, True) == (check.breaks, check.leaves_open)
    brief = answer(check)
    expected = "1 of 3 budgets is within its limit, noisy; 2 of 3 budgets are within their limits."
    assert expected == brief.headline
    assert any("neighbours alone can change a ratio this much" in note for one in brief.listings for note in one.notes)
    assert not Check(Path("tollbar.toml"), TODAY, budgets=(far, sure)).leaves_open


def test_a_limit_that_was_accepted_holds_when_nothing_changed_and_is_broken_by_five_per_cent() -> None:
    """Forty unchanged runs are never *over*; of forty runs with 5 % more, nine in ten are."""
    limit = found(None, at_ratio(2.0, 999)).new_limit
    assert limit is not None
    again = [found(limit, at_ratio(2.0, seed)).found for seed in range(40)]
    assert 0 == again.count(BudgetVerdict.OVER)
    assert again.count(BudgetVerdict.WITHIN) >= 38
    dearer = [found(limit, at_ratio(2.1, seed)).found for seed in range(40)]
    assert dearer.count(BudgetVerdict.OVER) >= 36


def test_a_limit_has_the_margin_of_its_interval_and_of_the_noise() -> None:
    """The limit is the interval's end times the noise, at least 1 % more, rounded up to four figures."""
    one = found(None, at_ratio(2.0))
    assert one.ratio is not None
    assert one.new_limit is not None
    assert one.new_limit >= one.ratio.high * (1 + PRECISION)
    assert one.new_limit <= one.ratio.high * 1.03
    assert one.new_limit == float(f"{one.new_limit:.4g}")
    assert one.finds is not None
    assert 0.01 < one.finds < 0.05


@pytest.mark.parametrize("noise", [1.0, 1.03])
def test_what_a_limit_finds_is_found(noise: float) -> None:
    of = at_ratio(2.0)
    (toll,) = (one for one in of.tolls if one.row.key != one.against.key)
    assert toll.ratio is not None

    def dearer(by: float) -> StudyJudgement:
        assert toll.ratio is not None
        ends = {end: getattr(toll.ratio, end) * by for end in ("estimate", "low", "high")}
        repeats = replace(toll.ratio, estimate=1.0, low=1 / noise, high=noise)
        changed = replace(toll, ratio=replace(toll.ratio, **ends), noise=repeats)
        return replace(of, tolls=tuple(changed if one is toll else one for one in of.tolls))

    accepted = found(None, dearer(1.0))
    limit, finds = accepted.new_limit, accepted.finds
    assert limit is not None
    assert finds is not None
    said = [found(limit, dearer(1 + finds + more)).found for more in (-0.002, 0.002)]
    assert [BudgetVerdict.CANNOT_TELL, BudgetVerdict.OVER] == said


def test_a_limit_that_is_kept_and_near_stays() -> None:
    """Accepting twice changes nothing; a distant limit or a hand-written one is replaced."""
    of = at_ratio(2.0)
    limit = found(None, of).new_limit
    assert limit is not None
    own = BUDGET.model_copy(update={"at_most": limit, "set_on": SET_ON.model_copy(update={"method": method.VERSION})})
    assert judged(own, of, 1).new_limit is None
    for other in ({"at_most": 3.0}, {"at_most": 1.9}, {"set_on": None}):
        assert limit == judged(own.model_copy(update=other), of, 1).new_limit


def test_a_budget_of_another_processor_is_not_judged_here() -> None:
    there = BUDGET.model_copy(update={"set_on": SET_ON.model_copy(update={"method": method.VERSION})})
    others = {
        "AMD EPYC, and this is Xeon": replace(HERE, cpu="Xeon"),
        "model 25/17/1, and this is 25/1/1": replace(HERE, model="25/1/1"),
        "other instruction sets: avx512f": replace(HERE, flags="aes avx2 avx512f"),
    }
    for words, here in others.items():
        (one,) = left_out([there, BUDGET], here, accepts=False)
        assert BudgetVerdict.ELSEWHERE is one.found
        assert words in (one.reason or "")
    assert () == left_out([there], HERE, accepts=False)


def test_a_limit_of_another_version_of_the_method_is_measured_only_to_be_replaced() -> None:
    of = at_ratio(2.0)
    limit = found(None, of).new_limit
    earlier = BUDGET.model_copy(update={"at_most": limit, "set_on": SET_ON})
    assert method.FIRST == (earlier.set_on and earlier.set_on.method)
    (one,) = left_out([earlier], HERE, accepts=False)
    assert BudgetVerdict.ELSEWHERE is one.found
    assert "version 1 of the method" in (one.reason or "")
    assert () == left_out([earlier], HERE, accepts=True)
    # A limit that would be kept is written again, with its version.
    assert limit == judged(earlier, of, 1).new_limit


PROJECT = """\
# What we use.
policy = ["asvs-level-2-5.0.0"]   # since release 3

[uses.archive]
family   = "digest"
choice   = "sha-1"
standing = "acceptable"           # when we began

[uses.mail]
family = "digest"
choice = "sha-256"

[budget.hashing]
choice  = "sha-256"               # here
family  = "digest"
against = "blake3"
at-most = 1.5

# Not in the way.
[budget]
short = { family = "digest", choice = "x", against = "none" }
"""


def test_accepting_writes_values_and_keeps_all_else(tmp_path: Path) -> None:
    path = tmp_path / "tollbar.toml"
    path.write_text(PROJECT)
    project = read_project(path)
    of = at_ratio(2.0)
    check = Check(
        path,
        TODAY,
        check_project(project, TODAY),
        tuple(judged(one, of, 2) for one in project.budgets),
        is_accepted=True,
    )
    text = accepted(PROJECT, check, HERE, TODAY)
    limit = check.budgets[0].new_limit
    expected = PROJECT.replace('"acceptable"           #', '"broken"           #').replace(
        "at-most = 1.5", f"at-most = {limit}"
    )
    for line in expected.splitlines():
        assert line.partition(" }")[0] in text
    path.write_text(text)
    again = read_project(path)
    assert [Standing.BROKEN, Standing.RECOMMENDED] == [use.standing for use in again.uses]
    assert [limit, limit] == [one.at_most for one in again.budgets]
    assert {SET_ON.model_copy(update={"libraries": ("openssl 3.0.19",), "method": method.VERSION})} == {
        one.set_on.model_copy(update={"ratio": round(one.set_on.ratio, 1)}) for one in again.budgets if one.set_on
    }
    repeated = replace(
        check, uses=check_project(again, TODAY), budgets=tuple(judged(one, of, 2) for one in again.budgets)
    )
    assert text == accepted(text, repeated, HERE, TODAY)
    with_returns = PROJECT.replace("\n", "\r\n")
    assert accepted(with_returns, check, HERE, TODAY).replace("\r\n", "\n") == text


BAD = {
    "an unknown family": ('family  = "digest"', 'family  = "dgest"', "no such family: `dgest`", "`digest`"),
    "an unknown choice": (
        '"sha-256"               #',
        '"sha256"               #',
        "no such choice of digest",
        "`sha-256`",
    ),
    "another unknown choice": ('"blake3"', '"blake4"', "no such choice of digest: `blake4`", "`blake3`"),
    "a choice with a value": ('"sha-256"               #', '"sha=256"               #', "must be one value", ""),
    "an unknown setting": ("at-most = 1.5", 'setting = { byts = "4 KiB" }', "no setting `byts`", "`bytes`"),
    "several values": ("at-most = 1.5", 'setting = { bytes = "4KiB,64B" }', "`bytes=4KiB,64B` must be one value", ""),
    "a size without its unit": ("at-most = 1.5", "setting = { bytes = 4096 }", "needs a unit", ""),
    "a setting that is not said": ('"blake3"', '"bytes=4KiB"', "`against` has `bytes`, so `setting` needs it too", ""),
    "a misspelt key": ("at-most", "at-mots", "`budget.hashing.at-mots`: no such key", "`at-most`"),
    "a limit in words": ("at-most = 1.5", 'at-most = "1.5"', "at-most", ""),
    "no limit at all": ("at-most = 1.5", "at-most = 0", "greater than 0", ""),
    "no bound": ("at-most = 1.5", "at-most = inf", "finite", ""),
    "a name that is no file's": ("[budget.hashing]", '[budget."../hashing"]', "budget", ""),
    "nothing to compare": ('"blake3"', '"sha-256"', "alone cannot be compared", ""),
}


def _planned(path: Path) -> None:
    """Read a project and plan its first budget."""
    one = read_project(path).budgets[0]
    refuse_other_than_one(plan.make([study_of(one)], seed=0), {one.name: one})


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_budget_is_refused_in_one_line(fault: str, tmp_path: Path) -> None:
    find, replacement, words, hint = BAD[fault]
    path = tmp_path / "tollbar.toml"
    path.write_text(PROJECT.replace(find, replacement, 1))
    with pytest.raises(TollbarError) as caught:
        _planned(path)
    said = f"{caught.value.what} {caught.value.where} {caught.value.hint}"
    assert words in said
    assert hint in said
    assert str(path) in (caught.value.where or "")


def test_a_budget_is_the_question_that_ask_would_be_asked() -> None:
    of_two = study_of(
        BUDGET.model_copy(update={"choice": "sha-256", "against": "blake3", "setting": {"bytes": "4 KiB"}})
    )
    assert ({"choice": "blake3"}, {"sha-256", "blake3"}) == (of_two.baseline, {*of_two.choices})
    tls = CostBudget.model_validate(
        {"name": "b", "where": "w", "family": "tls", "choice": "tls-1.3", "against": "key-exchange=x25519"}
        | {"setting": {"key-exchange": "x25519mlkem768"}}
    )
    of_one = study_of(tls)
    assert {"key-exchange": "x25519"} == of_one.baseline
    assert ("x25519", "x25519mlkem768") == of_one.vary["key-exchange"]
    planned = plan.make([of_one], seed=0)
    refuse_other_than_one(planned, {"b": tls})
