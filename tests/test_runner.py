"""Faulty runners: each fault is a row with its reason, and never a number."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import FAKE_RUNNER
from patience import PATIENCE_S
from tollbar import study
from tollbar.catalog import libraries
from tollbar.core import proc
from tollbar.core.errors import TollbarError
from tollbar.core.records import ChunkRecord, Observed, Outcome
from tollbar.core.runner import Session, ask, engine, process, session
from tollbar.lab import measure
from tollbar.lab.measure import members
from tollbar.lab.workloads import operation
from tollbar.study import plan
from tollbar.study.plan import Plan

TASK = {"mode": "list", "provider": {"kind": "fake"}}


@pytest.fixture
def planned(fake_study: Path) -> Plan:
    """Return a plan of three cells for the fake runner."""
    return plan.make(study.load([str(fake_study)]), seed=1)


# Limit for answers that never come.
HANGS_S = 5.0


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """Forget known runners, so that each test asks again."""
    libraries.open_provider.cache_clear()


def strike(monkeypatch: pytest.MonkeyPatch, fault: str, choice: str = "") -> None:
    """Make runners fail in this way; a hang gets a short limit at its own moment, other moments long ones."""
    monkeypatch.setenv("FAKE_FAULT", f"{fault}:{choice}" if choice else fault)
    limits = {
        "verify": (operation, "PROOF_LIMIT_S"),
        "ready": (members, "READY_LIMIT_S"),
        "chunk": (members, "CHUNK_LIMIT_S"),
        "last": (session, "END_LIMIT_S"),
    }
    moment, _, what = fault.partition(":")
    for name, (module, limit) in limits.items():
        monkeypatch.setattr(module, limit, HANGS_S if (name, what) == (moment, "hang") else PATIENCE_S)


PROOF_FAULTS = {
    "crash": (Outcome.FAILED, "ended by SIGSEGV"),
    "leave": (Outcome.FAILED, "ended with status 1: out of luck"),
    "hang": (Outcome.TIMED_OUT, "no answer within 5 s"),
    "spew": (Outcome.FAILED, "answered more than 16 MiB"),
    "twice": (Outcome.FAILED, "went on after its last line"),
    "rubbish": (Outcome.FAILED, "no JSON object: 'hello'"),
    "half": (Outcome.FAILED, "no JSON object"),
    "nothing": (Outcome.FAILED, "ended with status 0"),
    "wrong": (Outcome.FAILED, "a wrong answer: 00ff instead of"),
    "silent": (Outcome.FAILED, "no answer, where a known one must come"),
    "gullible": (Outcome.FAILED, "no wrong input was tried and refused"),
    "unproven": (Outcome.FAILED, "verified nothing"),
    "nameless": (Outcome.FAILED, "must report its provider's version"),
    "unsupported": (Outcome.UNSUPPORTED, "not in this build"),
    "reasonless": (Outcome.FAILED, "needs a reason"),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("fault", PROOF_FAULTS)
def test_a_fault_while_proving_bars_the_cell(planned: Plan, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strike(monkeypatch, f"verify:{fault}")
    outcome, words = PROOF_FAULTS[fault]
    (proven,) = measure.prove(planned.studies[0].cells[:1], 1)
    assert outcome == proven.outcome
    assert words in (proven.reason or "")


SESSION_FAULTS = {
    "ready:crash": (Outcome.FAILED, "ended by SIGSEGV"),
    "ready:hang": (Outcome.TIMED_OUT, "no answer within 5 s"),
    "ready:rubbish": (Outcome.FAILED, "no JSON object"),
    "ready:nameless": (Outcome.FAILED, "must report its provider's version"),
    "ready:unsupported": (Outcome.UNSUPPORTED, "not in this build"),
    "ready:twice": (Outcome.FAILED, "answered out of turn"),
    "chunk:crash": (Outcome.FAILED, "ended by SIGSEGV"),
    "chunk:leave": (Outcome.FAILED, "ended with status 1: out of luck"),
    "chunk:hang": (Outcome.TIMED_OUT, "no answer within 5 s"),
    "chunk:spew": (Outcome.FAILED, "answered more than 16 MiB"),
    "chunk:twice": (Outcome.FAILED, "answered out of turn"),
    "chunk:bye": (Outcome.FAILED, "ended before its input did"),
    "chunk:rubbish": (Outcome.FAILED, "no JSON object"),
    "chunk:half": (Outcome.FAILED, "no JSON object"),
    "chunk:nothing": (Outcome.FAILED, "ended with status 0"),
    "chunk:sorry": (Outcome.FAILED, "the third answer was wrong"),
    "chunk:idle": (Outcome.FAILED, "operations: Input should be greater than or equal to 1"),
    "chunk:few": (Outcome.FAILED, "operations: Input should be"),
    "chunk:countless": (Outcome.FAILED, "operations: Input should be less than or equal to 9007199254740991"),
    "chunk:negative": (Outcome.FAILED, "cpu_ns: Input should be"),
    "chunk:timeless": (Outcome.FAILED, "wall_ns: Input should be"),
    "chunk:short": (Outcome.FAILED, "the CPU time exceeds that of all cores of the machine"),
    "chunk:long": (Outcome.FAILED, "out of turn, or with another clock: a chunk of 1000000.0 ms came"),
    "chunk:other-clock": (Outcome.FAILED, "the CPU time exceeds that of all cores of the machine"),
    "chunk:sliced": (Outcome.FAILED, "slices, which were not asked for"),
    "last:crash": (Outcome.FAILED, "ended by SIGSEGV"),
    "last:hang": (Outcome.TIMED_OUT, "no answer within 5 s"),
    "last:twice": (Outcome.FAILED, "went on after its last line"),
    "last:nothing": (Outcome.FAILED, "ended with status 0"),
    "last:sorry": (Outcome.FAILED, "the third answer was wrong"),
}


def test_a_chunk_that_ends_by_time_takes_that_time() -> None:
    """The first chunk, which ends by time, gives the number of operations of the others."""
    short = ChunkRecord(operations=9, cpu_ns=1000, wall_ns=1000, observed=Observed())
    assert session._impossible(short, 0.0, 9, 2_000) is None
    assert "at least 1.500 ms were requested" in (session._impossible(short, 0.0015, 9, 2_000) or "")


@pytest.mark.share(12)
@pytest.mark.parametrize("fault", SESSION_FAULTS)
def test_a_fault_in_a_session_fails_its_own_trial(planned: Plan, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strike(monkeypatch, fault, "spin-2")
    outcome, words = SESSION_FAULTS[fault]
    (batch,) = measure.batches_left(planned, counts={"fake": 1}, done=(), excluded=())
    ((trials, _),) = measure.measured(planned, [batch])
    struck = [trial for trial in trials if '"spin-2"' in trial.cell]
    others = [trial for trial in trials if trial not in struck]
    assert [outcome] == [trial.outcome for trial in struck]
    assert words in (struck[0].reason or "")
    # The baseline, its repeat and the other cell.
    assert [(Outcome.OK, planned.studies[0].study.measure.rounds)] * 3 == [
        (trial.outcome, len(trial.chunks)) for trial in others
    ]


def test_a_cell_that_fails_again_is_set_aside(planned: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed trial leaves a cell its other blocks; after a second of two it is left out of the next batches."""
    monkeypatch.setenv("FAKE_FAULT", "chunk:crash:spin-2")
    batches = measure.batches_left(planned, counts={"fake": 4}, done=(), excluded=())
    found = [trial for batch, _ in measure.measured(planned, batches) for trial in batch]
    assert 2 == sum('"spin-2"' in trial.cell for trial in found)
    assert 4 == sum('"spin-1-again"' in trial.cell for trial in found)


def test_a_runner_without_a_version_is_no_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A name of its own, because a provider's answers are cached for later tests too.
    (tmp_path / "nameless").symlink_to(FAKE_RUNNER)
    monkeypatch.setenv("FAKE_FAULT", "list:nameless")
    with pytest.raises(TollbarError, match="must report its provider's version"):
        libraries.resolve([f"runner:{tmp_path}/nameless"])


def test_a_runner_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TollbarError, match="cannot start"):
        libraries.resolve([f"runner:{tmp_path}/none"])


def test_a_hanging_runner_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FAULT", "list:hang")
    monkeypatch.setenv("TOLLBAR_TEST_MARK", mark := f"hang-{time.time_ns()}")
    record = ask([str(FAKE_RUNNER)], TASK, limit_s=1.0)
    assert Outcome.TIMED_OUT == record.outcome
    assert [] == marked_processes(mark)


def guard_of(runner: Session) -> int:
    """Return the process that guards a session's runner."""
    return runner._process._process.pid


def end_by_itself(runner: Session) -> None:
    assert Outcome.OK == runner.finish().outcome


def end_by_a_kill(runner: Session) -> None:
    os.kill(proc.tree(guard_of(runner))[1], signal.SIGKILL)
    assert "ended by SIGKILL" in (runner.finish().reason or "")


def end_by_a_kill_of_the_guard(runner: Session) -> None:
    os.kill(guard_of(runner), signal.SIGKILL)
    assert Outcome.OK != runner.finish().outcome


# Processes that the runner starts, and its end. Only the guard can end those that left the session.
ENDS = [
    ("fork-away", end_by_itself),
    ("fork-away", end_by_a_kill),
    ("fork-away", guard_of),
    ("fork", end_by_a_kill_of_the_guard),
]


@pytest.mark.share(1)
@pytest.mark.parametrize(("starts", "end"), ENDS)
def test_what_a_runner_started_ends_with_it(
    starts: str, end: Callable[[Session], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAULT", f"chunk:{starts}")
    monkeypatch.setenv("TOLLBAR_TEST_MARK", mark := f"started-{time.time_ns()}")
    task = {**TASK, "mode": "measure", "choice": "spin-1", "setting": {"iterations": 100}, "seed": 1}
    with Session([str(FAKE_RUNNER)], task) as runner:
        runner.ready(PATIENCE_S)
        for _ in range(4):
            runner.advance(0.001, 1, PATIENCE_S)
        # The guard, the runner, and the runner's children.
        assert 4 <= len(proc.tree(guard_of(runner)))
        end(runner)
    assert [] == marked_processes(mark)


def test_an_engine_that_is_gone_once_its_guard_is_there_is_no_failed_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade may remove the engine between the two: the run ends with an error, not with failed trials."""
    own = tmp_path / "tollbar-engine"
    own.write_text(f'#!/bin/sh\nrm "$0"\nexec {engine()} "$@"\n')
    own.chmod(0o755)
    monkeypatch.setattr(process, "engine", lambda: own)
    lost = pytest.raises(TollbarError, match="cannot be started: No such file or directory")
    with lost as error, Session([str(own), "op"], TASK) as runner:
        runner.ready(PATIENCE_S)
    assert str(own) == error.value.where


def test_a_runner_is_kept_on_its_core() -> None:
    core = max(os.sched_getaffinity(0))
    code = "import os, json; print(json.dumps({'outcome': 'ok', 'receipt': {'on': sorted(os.sched_getaffinity(0))}}))"
    record = ask([sys.executable, "-c", code], TASK, limit_s=PATIENCE_S, core=core)
    assert [core] == record.receipt["on"]


def marked_processes(mark: str) -> list[int]:
    """Return other processes whose environment has this mark, after a while.

    Ending takes time on a busy machine.
    """
    for _ in range(600):
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
