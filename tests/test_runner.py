"""Runners that go wrong: each fault is a row with its reason, and never a number."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from conftest import FAKE_RUNNER
from tollbar import libraries, measure, plan, study
from tollbar.errors import TollbarError
from tollbar.measure import primitive
from tollbar.plan import Plan
from tollbar.runner import Outcome, ask

TASK = {"mode": "list", "provider": {"kind": "fake"}}


@pytest.fixture
def planned(fake_study: Path) -> Plan:
    """A plan of three cells for the fake runner."""
    return plan.make(study.load([str(fake_study)]), seed=1)


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits two minutes for a test's runner to hang."""
    monkeypatch.setattr(primitive, "PROOF_LIMIT_S", 2.0)
    monkeypatch.setattr(primitive, "TRIAL_GRACE_S", 2.0)
    libraries.open_provider.cache_clear()


PROOF_FAULTS = {
    "crash": (Outcome.FAILED, "ended by SIGSEGV"),
    "leave": (Outcome.FAILED, "ended with status 1: out of luck"),
    "hang": (Outcome.TIMED_OUT, "no record within 2 s"),
    "spew": (Outcome.FAILED, "answered more than 16 MiB"),
    "rubbish": (Outcome.FAILED, "not a record"),
    "half": (Outcome.FAILED, "not a record"),
    "nothing": (Outcome.FAILED, "not a record"),
    "wrong": (Outcome.FAILED, "a wrong answer: 00ff instead of"),
    "gullible": (Outcome.FAILED, "nothing wrong was tried and refused"),
    "unproven": (Outcome.FAILED, "verified nothing"),
    "nameless": (Outcome.FAILED, "cannot say its provider's version"),
    "unsupported": (Outcome.UNSUPPORTED, "not in this build"),
    "reasonless": (Outcome.FAILED, "needs a reason"),
}


@pytest.mark.parametrize("fault", PROOF_FAULTS)
def test_a_fault_while_proving_bars_the_cell(planned: Plan, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell whose proof goes wrong has an outcome and a reason, and is not measured."""
    monkeypatch.setenv("FAKE_FAULT", f"verify:{fault}")
    outcome, words = PROOF_FAULTS[fault]
    (proven,) = measure.prove(planned.studies[0].cells[:1], 1)
    assert outcome == proven.outcome
    assert words in (proven.reason or "")


TRIAL_FAULTS = {
    "crash": (Outcome.FAILED, "ended by SIGSEGV"),
    "hang": (Outcome.TIMED_OUT, "no record within 2 s"),
    "rubbish": (Outcome.FAILED, "not a record"),
    "idle": (Outcome.FAILED, "performed nothing"),
    "unchecked": (Outcome.FAILED, "19 of 20 answers were not checked"),
    "uneven": (Outcome.FAILED, "batches do not add up"),
    "negative": (Outcome.FAILED, "below zero"),
    "timeless": (Outcome.FAILED, "more CPU time than the machine has"),
}


@pytest.mark.parametrize("fault", TRIAL_FAULTS)
def test_a_fault_while_measuring_ends_the_cell(planned: Plan, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that fails in a trial is tried no more, and the others go on."""
    monkeypatch.setenv("FAKE_FAULT", f"measure:{fault}")
    outcome, words = TRIAL_FAULTS[fault]
    one = Plan((planned.studies[0],), seed=1)
    trials = list(measure.trials(one, blocks={"fake": 2}, done=(), barred=()))
    assert {outcome} == {trial.outcome for trial in trials}
    assert all(words in (trial.reason or "") for trial in trials)
    # Three cells, one trial each: the baseline's twin is part of its cell and is not tried either.
    assert 3 == len(trials)


def test_a_runner_without_a_version_is_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that cannot say what it is measures nothing."""
    monkeypatch.setenv("FAKE_FAULT", "list:nameless")
    with pytest.raises(TollbarError, match="cannot say its provider's version"):
        libraries.resolve([f"runner:{FAKE_RUNNER}"])


def test_a_runner_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A runner that cannot be started is said, with its path."""
    with pytest.raises(TollbarError, match="cannot start"):
        libraries.resolve([f"runner:{tmp_path}/none"])


def test_a_hanging_runner_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a runner started is ended with it."""
    monkeypatch.setenv("FAKE_FAULT", "list:hang")
    monkeypatch.setenv("TOLLBAR_TEST_MARK", mark := f"hang-{time.time_ns()}")
    record = ask([str(FAKE_RUNNER)], TASK, limit_s=1.0)
    assert Outcome.TIMED_OUT == record.outcome
    assert [] == marked_processes(mark)


def test_a_runner_is_kept_on_its_core() -> None:
    """The guard pins what it starts to the core it is given."""
    core = max(os.sched_getaffinity(0))
    code = "import os, json; print(json.dumps({'outcome': 'ok', 'receipt': {'on': sorted(os.sched_getaffinity(0))}}))"
    record = ask([sys.executable, "-c", code], TASK, limit_s=10.0, core=core)
    assert [core] == record.receipt["on"]


def marked_processes(mark: str) -> list[int]:
    """Processes whose environment carries this mark, this one aside; the dead need a moment to go."""
    for _ in range(50):
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    if mark.encode() in (folder / "environ").read_bytes():
                        found.append(int(folder.name))
                except OSError:
                    continue
        if not found:
            return []
        time.sleep(0.1)
    return found
