"""Servers that go wrong: each fault is a row with its reason, never a number, and the next cell goes on."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import FAKE_RUNNER
from fake_server import ANSWER_FAULTS, START_FAULTS, TLS_FAULTS
from served_lab import Lab
from tollbar import beds, results
from tollbar.beds import loading, proc, running
from tollbar.libraries import Provider
from tollbar.measure import Proven, Trial, served
from tollbar.runner import ComponentRecord, LoadRecord, Outcome, Record

# Whatever a server does, nothing here waits for long.
pytestmark = pytest.mark.timeout(90)

# The lab has another in its place.
PROVE = loading.prove

# Faults of every cell's start, and what the row says.
AT_START = {
    "unready": (Outcome.TIMED_OUT, "fake-server was not ready within 3 s"),
    "mute": (Outcome.TIMED_OUT, "fake-server was not ready within 3 s"),
    "refuse": (Outcome.UNSUPPORTED, "fake-server refuses: no such curve in line 7"),
    "leave": (Outcome.FAILED, "fake-server ended with status 1: out of luck"),
    "crash": (Outcome.FAILED, "fake-server was ended by SIGSEGV"),
}

# Of answers: how the load client counts them, and its words.
OF_ANSWERS = {
    "die": ("closed early", "the connection ended before the answer began"),
    "wrong-length": ("wrong length", "expected 1000 bytes, got 10"),
    "wrong-status": ("wrong status", "expected status 200, got 503"),
    "reset": ("reset", "reset by peer"),
    "half": ("closed early", "the connection ended after 500 of 1000 bytes of the body"),
    "garbage": ("not HTTP", "rubbish"),
    "stall": ("timeout", "no whole answer after"),
    "drip": ("timeout", "no whole answer after"),
    "babble": ("not HTTP", "too many headers"),
}

# Of handshakes, likewise.
OF_HANDSHAKES = {
    "other-certificate": ("tls", "the server presented another certificate"),
    "other-version": ("tls", "ProtocolVersion"),
    "other-suite": ("tls", "HandshakeFailure"),
    "handshake-garbage": ("tls", "InvalidContentType"),
    "handshake-stall": ("timeout", "the handshake not done after"),
}

# What a server takes that it must not: only a proof can tell.
GULLIBLE = {
    "every-path": "not refused: a path that is not there",
    "every-version": "not refused: a client that speaks TLS 1.2 only",
    "every-session": "not refused: a session that was offered again",
    "clear-too": "not refused: a request in clear text",
}


def test_every_fault_is_in_a_table() -> None:
    """What the fake server can do wrong is tried."""
    assert {*START_FAULTS} == {*AT_START}
    assert {*ANSWER_FAULTS} == {*OF_ANSWERS}
    assert {*TLS_FAULTS} == {*OF_HANDSHAKES, *GULLIBLE} - {"every-path"}


def asked(fault: str) -> tuple[str, str]:
    """The choice and the operation of the cells that meet this fault."""
    if fault not in TLS_FAULTS:
        return "plaintext", "request"
    # TLS 1.3's suites are not Python's to choose.
    return "tls-1.2" if fault == "other-suite" else "tls-1.3", "connect"


@pytest.mark.parametrize("choice", ["plaintext", "tls-1.2", "tls-1.3"])
def test_a_server_in_good_health_is_proved(lab: Lab, choice: str) -> None:
    """Without a fault there is none: whatever is found below is the fault's doing."""
    lab.bed()
    proven = lab.prove(lab.study(choice))
    assert {1000: (Outcome.OK, None), 2000: (Outcome.OK, None)} == {b: (p.outcome, p.reason) for b, p in proven.items()}
    assert "status 200 and 1000 bytes" in proven[1000].accepted
    assert "a path that is not there" in proven[1000].refused


@pytest.mark.parametrize("fault", AT_START)
def test_a_server_that_cannot_be_started_is_a_row(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof and a trial without a server have an outcome and a reason, and nothing that looks like a number."""
    monkeypatch.setattr(running, "READY_LIMIT_S", 3.0)
    lab.bed(fault)
    planned = lab.study()
    proven, trials = lab.prove(planned), lab.trials(planned)
    assert AT_START[fault] == (proven[1000].outcome, proven[1000].reason)
    assert [AT_START[fault]] == [(trial.outcome, trial.reason) for trial in trials[1000]]
    assert [(0, 0, None)] == [(trial.operations, trial.cpu_ns, trial.load) for trial in trials[1000]]
    # The other cell, and its twin, are none the worse.
    assert Outcome.OK == proven[2000].outcome
    assert [Outcome.OK] * 2 == [trial.outcome for trial in trials[2000]]


def test_a_server_that_ends_once_it_is_ready_has_failed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is gone when it is asked what it runs on is not said to lack a library."""

    def gone(found: beds.Found, provider: Provider, pid: int, *, encrypted: bool) -> dict[str, str]:
        os.kill(proc.tree(pid)[1], signal.SIGKILL)
        while proc.tls_libraries(proc.tree(pid))["crypto"]:
            time.sleep(0.001)
        return PROVE(found, provider, pid, encrypted=encrypted)

    monkeypatch.setattr(loading, "prove", gone)
    lab.bed()
    proven = lab.prove(lab.study("tls-1.3"))
    assert {(Outcome.FAILED, "fake-server was ended by SIGKILL")} == {(p.outcome, p.reason) for p in proven.values()}


@pytest.mark.parametrize("fault", [*OF_ANSWERS, *OF_HANDSHAKES])
def test_a_fault_while_proving_bars_the_cell(lab: Lab, fault: str) -> None:
    """A server that fails at the first request has no proof, and says how it failed."""
    lab.bed(fault)
    kind, words = {**OF_ANSWERS, **OF_HANDSHAKES}[fault]
    proven = lab.prove(lab.study(*asked(fault)))
    reason = proven[1000].reason or ""
    assert Outcome.FAILED == proven[1000].outcome, reason
    assert f"not accepted: GET /bytes/1000: {kind}: " in reason
    assert words in reason
    assert (fault == "die") == reason.startswith("fake-server was ended by SIGSEGV: ")
    assert (Outcome.OK, None) == (proven[2000].outcome, proven[2000].reason)


@pytest.mark.parametrize("fault", GULLIBLE)
def test_a_server_that_takes_what_it_must_not_is_not_proved(lab: Lab, fault: str) -> None:
    """Right answers are half of a proof: what is wrong must be refused."""
    lab.bed(fault)
    proven = lab.prove(lab.study(*asked(fault)))
    assert (Outcome.FAILED, GULLIBLE[fault]) == (proven[1000].outcome, proven[1000].reason)
    assert Outcome.OK == proven[2000].outcome


@pytest.mark.parametrize("fault", [*OF_ANSWERS, *OF_HANDSHAKES])
def test_a_fault_while_measuring_ends_the_cell(lab: Lab, fault: str) -> None:
    """A server that fails in the middle of a trial: every request that was let down is counted by its kind."""
    # There are two users, so there is a second request however slow the machine is.
    lab.bed(fault, after=1)
    kind, words = {**OF_ANSWERS, **OF_HANDSHAKES}[fault]
    trials = lab.trials(lab.study(*asked(fault), blocks=2))
    (trial,) = trials[1000]
    assert (Outcome.FAILED, 0) == (trial.outcome, trial.block)
    assert trial.load is not None
    assert trial.load.requests - trial.operations == sum(trial.load.errors.values())
    assert {kind} <= set(trial.load.errors)
    if fault == "die":
        assert (trial.reason or "").startswith("fake-server was ended by SIGSEGV: ")
    else:
        assert {kind} == set(trial.load.errors)
        assert words in (trial.reason or "")
        assert f"{trial.load.errors[kind]} of {trial.load.requests} requests failed: {kind} " in (trial.reason or "")
    assert [Outcome.OK] * 4 == [trial.outcome for trial in trials[2000]]


def test_one_wrong_answer_is_enough(lab: Lab) -> None:
    """No error is dropped, nor drowned in thousands of right answers."""
    lab.bed("wrong-length-once", after=1)
    (trial,) = lab.trials(lab.study())[1000]
    assert Outcome.FAILED == trial.outcome
    assert trial.load is not None
    assert ({"wrong length": 1}, trial.operations + 1) == (trial.load.errors, trial.load.requests)


@pytest.mark.parametrize("fault", ["hang", "crash", "rubbish"])
@pytest.mark.parametrize("mode", ["verify", "measure"])
def test_a_load_client_that_goes_wrong_is_a_row(
    lab: Lab, mode: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks is believed no more than whoever answers, and neither is left behind."""
    monkeypatch.setattr(served, "_command", lambda: (str(FAKE_RUNNER),))
    monkeypatch.setattr(served, "PROOF_LIMIT_S", 1.0)
    monkeypatch.setattr(served, "TRIAL_GRACE_S", 0.5)
    monkeypatch.setenv("FAKE_FAULT", f"{mode}:{fault}")
    lab.bed()
    outcome, words = {
        "hang": (Outcome.TIMED_OUT, "no record within"),
        "crash": (Outcome.FAILED, "ended by SIGSEGV"),
        "rubbish": (Outcome.FAILED, "not a record"),
    }[fault]
    found: list[Proven | Trial] = []
    if mode == "verify":
        found += lab.prove(lab.study()).values()
    else:
        found += [trial for trials in lab.trials(lab.study()).values() for trial in trials]
    assert {outcome} == {one.outcome for one in found}
    assert all(words in (one.reason or "") for one in found)


# What a load client may say, and what comes of it.

WEB = ComponentRecord(cpu_ns=600, memory_bytes=7)
RIGHT = Record(
    outcome=Outcome.OK,
    operations=3,
    checked=3,
    cpu_ns=90,
    wall_ns=1000,
    load=LoadRecord(requests=3, wall_ns=1000, components={"web": WEB}),
)


def of_load(**changes: Any) -> Record:
    """The record of a load that was this one but for these."""
    assert RIGHT.load is not None
    return RIGHT.model_copy(update={"load": RIGHT.load.model_copy(update=changes)})


UNBELIEVED = {
    "the load client says nothing of the load": RIGHT.model_copy(update={"load": None}),
    "not one request was answered": RIGHT.model_copy(update={"operations": 0, "checked": 0}),
    "1 of 3 answers were not checked": RIGHT.model_copy(update={"checked": 2}),
    "2 of 3 requests failed": of_load(errors={"reset": 1, "timeout": 1}),
    "the server's processes used no CPU time, which cannot be": of_load(components={"web": ComponentRecord(cpu_ns=0)}),
    "out of luck": RIGHT.model_copy(update={"outcome": Outcome.FAILED, "reason": "out of luck"}),
}


@pytest.mark.parametrize("reason", UNBELIEVED)
def test_what_cannot_be_so_is_not_believed(lab: Lab, reason: str) -> None:
    """A record that contradicts itself, or leaves out what was asked for, is a failure."""
    lab.bed()
    trials = lab.trials(lab.study(), ask=lambda *arguments, **more: UNBELIEVED[reason])
    assert {(Outcome.FAILED, reason)} == {(trial.outcome, trial.reason) for made in trials.values() for trial in made}


def test_the_cost_is_the_server_s(lab: Lab) -> None:
    """What a load client paid itself is no part of a cell's cost, and all components are."""
    lab.bed()
    record = of_load(components={"web": WEB, "db": ComponentRecord(cpu_ns=60, memory_bytes=1)})
    trials = lab.trials(lab.study(), ask=lambda *arguments, **more: record)
    assert {(660, 8, 220.0)} == {(t.cpu_ns, t.memory_bytes, t.cost_ns) for made in trials.values() for t in made}


UNPROVEN = {
    "the load client verified nothing": Record(outcome=Outcome.OK),
    "not here": Record(outcome=Outcome.UNSUPPORTED, reason="not here"),
}


@pytest.mark.parametrize("reason", UNPROVEN)
def test_a_proof_that_is_none_is_not_believed(lab: Lab, reason: str) -> None:
    """Nor is a cell measured whose load client has shown nothing."""
    lab.bed()
    proven = lab.prove(lab.study(), ask=lambda *arguments, **more: UNPROVEN[reason])
    assert {reason} == {one.reason for one in proven.values()}
    assert Outcome.OK not in {one.outcome for one in proven.values()}


def test_who_refuses_nothing_is_not_proved(lab: Lab) -> None:
    """A cell that stands for something needs to have refused something; the one that stands for nothing need not."""
    lab.bed()
    record = Record.model_validate({"outcome": "ok", "proof": {"accepted": ["all"]}})
    for choice, reason in [("tls-1.3", "no proof: nothing wrong was tried and refused"), ("plaintext", None)]:
        proven = lab.prove(lab.study(choice), ask=lambda *arguments, **more: record)
        assert {reason} == {one.reason for one in proven.values()}


# Trials that went well.


def test_trials_are_as_planned_and_carry_their_load(lab: Lab) -> None:
    """Every cell once a block, the baseline twice; each with what was negotiated, paid and done, slice by slice."""
    lab.bed()
    trials = lab.trials(lab.study("tls-1.3", "connect", blocks=2))
    assert [(0, False), (1, False)] == [(trial.block, trial.twin) for trial in trials[1000]]
    assert {(0, False), (0, True), (1, False), (1, True)} == {(trial.block, trial.twin) for trial in trials[2000]}
    every = [trial for made in trials.values() for trial in made]
    assert [0, 1, 2, 3, 4, 5] == sorted(trial.order for trial in every)
    for trial in every:
        load = trial.load
        assert (Outcome.OK, None) == (trial.outcome, trial.reason)
        assert load is not None
        assert trial.operations == load.requests == load.connections == load.handshakes_full
        assert ({}, 0) == (load.errors, load.handshakes_resumed)
        assert trial.operations == sum(count for _, count in load.latency_us)
        assert trial.operations == sum(one.requests for one in load.series) == sum(count for count, _ in trial.batches)
        assert ["web"] == list(load.components)
        assert trial.cpu_ns == load.components["web"].cpu_ns > 0
        assert trial.memory_bytes == load.components["web"].memory_bytes > 0
        (agreed,) = load.negotiated
        assert ("TLS 1.3", "ECDSA P-256", False) == (agreed.version, agreed.certificate_key, agreed.resumed)
        assert trial.operations == agreed.count
        assert load.client_cpu_ns > 0
        assert load.server_cpu_ns == trial.cpu_ns


def test_a_trial_is_read_back_as_it_was_stored(lab: Lab, tmp_path: Path) -> None:
    """Nothing of what a load client saw is lost on the disk."""
    lab.bed()
    planned = lab.study("tls-1.3", "connect")
    made = lab.trials(planned)
    with closing(results.create(planned, tmp_path / "runs", command=(), libraries=(), fingerprint={})) as store:
        for proven in lab.prove(planned).values():
            store.record_proof(proven)
        for trial in (trial for trials in made.values() for trial in trials):
            store.record(trial)
    (back,) = results.read(store.directory).studies
    for row in back.rows:
        again = [*row.trials, *row.twins]
        assert sorted(made[row.coordinates["bytes"]], key=lambda trial: trial.twin) == again
        assert None not in [trial.load for trial in again]


def test_a_trial_without_a_load_is_read_back_without_one(lab: Lab, tmp_path: Path) -> None:
    """A cell whose server never came has no load, then and later."""
    lab.bed("leave")
    planned = lab.study()
    (trial,) = lab.trials(planned)[1000]
    with closing(results.create(planned, tmp_path / "runs", command=(), libraries=(), fingerprint={})) as store:
        store.record(trial)
    (back,) = results.read(store.directory).studies
    assert [trial] == [trial for row in back.rows for trial in row.trials]
