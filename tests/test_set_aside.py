"""Quarantine: decided by a share of failures, recorded as an event, reported everywhere, and ended by `--resume`."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from builders import example, study_run, trial
from conftest import BLOCKS, Tollbar
from tollbar import results, study
from tollbar.analysis import judge_study
from tollbar.core.records import Outcome, SetAside, Trial, TrialKey
from tollbar.lab import measure
from tollbar.lab.measure import Aside
from tollbar.report.sections.trust import trust
from tollbar.report.sections.warnings import warnings
from tollbar.study import plan
from tollbar.study.plan import Plan
from tollbar.study.plan.batches import Batch, blocks

CELL = "study", "cell"


def set_aside_after(ends: str, *, baseline: bool = False) -> int | None:
    """Return after how many of these trials (`.` success, `x` failure) a cell is quarantined, or None."""
    aside = Aside({CELL} if baseline else ())
    for number, end in enumerate(ends, start=1):
        outcome = Outcome.FAILED if end == "x" else Outcome.OK
        if aside.note([replace(trial(1.0, outcome=outcome), order=number)]):
            return aside.set_aside[CELL].after
    return None


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ("x" + "." * 20, None),
        ("xx", 2),
        ("x..x", 4),
        # Two of eight are a quarter, not more.
        ("x......x", None),
        ("." * 200 + "x" + "." * 200 + "x" + "." * 50, None),
        # From the middle on every trial fails.
        ("." * 9 + "x" * 9, 13),
    ],
)
def test_a_share_of_failures_sets_a_cell_aside(ends: str, expected: int | None) -> None:
    """At least two failures, and more than a quarter: two accidents in hundreds of trials do not count."""
    assert expected == set_aside_after(ends)


@pytest.mark.parametrize(
    ("ends", "expected"), [("xxx", None), ("xxxx", 4), ("xxx.xxx", None), ("x." * 50, None), ("." * 9 + "x" * 50, 13)]
)
def test_a_baseline_is_set_aside_only_where_nothing_of_it_succeeds(ends: str, expected: int | None) -> None:
    """Every toll needs the baseline: four failures in a row, as when its server has ended."""
    assert expected == set_aside_after(ends, baseline=True)


def test_a_cell_is_set_aside_with_the_words_of_its_last_failure() -> None:
    for reason, said in (("ended by SIGSEGV", "ended by SIGSEGV"), (None, "failed")):
        failed = trial(1.0, outcome=Outcome.FAILED)
        (aside,) = Aside(()).note([replace(failed, reason="another"), replace(failed, reason=reason)])
        assert said == aside.reason


@pytest.fixture
def planned(fake_study: Path) -> Plan:
    """Return a plan of three cells for the fake runner."""
    return plan.make(study.load([str(fake_study)]), seed=1)


def test_what_was_not_proven_is_not_made_up_for(planned: Plan) -> None:
    (one,) = planned.studies
    baselines = {("fake", cell.key) for cell in one.cells if cell.is_baseline}
    left = measure.batches_left(planned, counts={"fake": 4}, done=(), excluded=baselines)
    assert left
    assert not baselines & {("fake", visit.cell.key) for batch in left for visit in batch.visits}
    made = {("fake", v.cell.key, v.repeat, v.block, v.batch) for batch in left for v in batch.visits}
    done = {(batch.study, batch.block, batch.number) for batch in left}
    assert [] == measure.batches_left(planned, counts={"fake": 4}, done=done, made=made, excluded=baselines)


def batches_after(planned: Plan, made: set[TrialKey]) -> list[Batch]:
    """Return the remaining batches of four blocks after these trials."""
    done = {(study, block, batch) for study, _, _, block, batch in made}
    return measure.batches_left(planned, counts={"fake": 4}, done=done, made=made, excluded=())


def test_what_was_left_out_of_a_batch_is_made_up_for(planned: Plan) -> None:
    (one,) = planned.studies
    drawn = [batch for block in blocks(one, planned.seed, 4) for batch in block]
    struck = next(cell.key for cell in one.cells if cell.choice.name == "spin-2")
    visits = [("fake", v.cell.key, v.repeat, v.block, v.batch) for batch in drawn for v in batch.visits]
    made = {visit for visit in visits if visit[1] != struck or visit[3] == 0}
    found = batches_after(planned, made)
    assert [1, 2, 3] == [batch.block for batch in found]
    for batch in found:
        names = sorted((v.cell.choice.name, v.repeat) for v in batch.visits)
        assert [("spin-1", False), ("spin-2", False)] == names
        # Its number is new: existing batches of the block stay as they are.
        assert batch.number not in {other.number for other in drawn if other.block == batch.block}
    again = made | {("fake", v.cell.key, v.repeat, v.block, v.batch) for batch in found for v in batch.visits}
    assert [] == batches_after(planned, again)


def test_a_batch_of_which_only_baselines_are_missing_is_measured_again(planned: Plan) -> None:
    """The cell's baseline was quarantined, so it needs a second trial next to one."""
    (one,) = planned.studies
    drawn = [batch for block in blocks(one, planned.seed, 4) for batch in block]
    made = {
        ("fake", v.cell.key, v.repeat, v.block, v.batch)
        for batch in drawn
        for v in batch.visits
        if not (v.cell.is_baseline and v.block == 2)
    }
    (batch,) = batches_after(planned, made)
    assert 2 == batch.block
    assert Counter({"spin-1": 2, "spin-2": 1, "spin-1-again": 1}) == Counter(v.cell.choice.name for v in batch.visits)


def test_batches_after_one_of_which_nothing_is_left_are_measured(
    planned: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = planned.studies
    ((batch,),) = blocks(one, planned.seed, 1)
    struck = next(cell.key for cell in one.cells if cell.choice.name == "spin-2")
    of_it = [visit for visit in batch.visits if visit.cell.key == struck]
    others = [visit for visit in batch.visits if visit.cell.key != struck]
    batches = [replace(batch, visits=tuple(of_it)), replace(batch, visits=tuple(others))]
    asked: list[Batch] = []
    monkeypatch.setattr(
        "tollbar.lab.measure.batches_of.measure", lambda batch, *_, **__: asked.append(batch) or [trial(1.0)]
    )
    aside = Aside(())
    aside.set_aside["fake", struck] = replace(ASIDE, study="fake", cell=struck)
    assert [0, 1] == [len(trials) for trials, _ in measure.measured(planned, batches, aside=aside)]
    assert [batches[1]] == asked


ASIDE = SetAside("study", "double", 7, 2, 3, "ended by SIGSEGV", 5.0)


@pytest.mark.parametrize("again", [None, 9.0])
def test_the_page_says_what_was_set_aside(again: float | None) -> None:
    kept = replace(study_run(example()), set_aside=(replace(ASIDE, tried_again_s=again),))
    judged = judge_study(kept)
    (said,) = [line for line in warnings(judged) if "quarantined" in line]
    assert "double was quarantined after 2 of its 3 trials failed (ended by SIGSEGV)" in said
    assert ("was tried again when the run was resumed" in said) == (again is not None)
    assert ("`tollbar run --resume RUN` tries it again" in said) == (again is None)
    assert said in trust(judged)


@pytest.fixture
def crashed(fake_study: Path, tollbar: Tollbar) -> Path:
    """Run a study in which one choice crashed in each of its chunks."""
    os.environ["FAKE_FAULT"] = "chunk:crash:spin-2"
    try:
        done = tollbar("run", fake_study, "--no-report", "--json", "--blocks", BLOCKS)
    finally:
        del os.environ["FAKE_FAULT"]
    assert 1 == done.returncode, done.stderr
    (event,) = json.loads(done.stdout)["studies"][0]["set_aside"]
    assert ("spin-2", 2, 2, False) == (event["choice"], event["failed"], event["trials"], event["tried_again"])
    assert "SIGSEGV" in event["reason"]
    (run,) = (fake_study.parent / "runs").iterdir()
    return run


def trials_of(run: Path, choice: str) -> list[Trial]:
    (row,) = [row for row in results.read(run).studies[0].rows if row.choice == choice]
    return list(row.trials)


@pytest.mark.share(0)
def test_resuming_tries_again_what_was_set_aside(tollbar: Tollbar, crashed: Path) -> None:
    assert 2 == len(trials_of(crashed, "spin-2"))
    done = tollbar("run", "--resume", crashed, "--no-report", "--json", "--blocks", BLOCKS)
    (event,) = json.loads(done.stdout)["studies"][0]["set_aside"]
    assert event["tried_again"]
    found = trials_of(crashed, "spin-2")
    assert sorted([0, 1, *range(2, BLOCKS)]) == sorted(one.block for one in found)
    assert [Outcome.OK] * (BLOCKS - 2) == [one.outcome for one in found if one.block >= 2]
    # It is no longer quarantined; its failures are reported, but too few to cost it its number.
    assert 0 == done.returncode, done.stderr
    (run_of,) = results.read(crashed).studies
    assert [None] * 3 == [row.set_aside for row in run_of.rows]


def test_the_terminal_and_markdown_say_so(tollbar: Tollbar, crashed: Path) -> None:
    for words in (["judge", crashed], ["judge", crashed, "--format", "markdown"]):
        done = tollbar(*words)
        assert 1 == done.returncode
        assert "quarantined after 2 of its 2 trials failed" in " ".join((done.stdout + done.stderr).split())
