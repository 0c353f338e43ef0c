"""Faulty servers: each fault is a row with its reason, never a number, and the next cell goes on."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from component_lab import python_of_others
from conftest import FAKE_RUNNER
from fake_runner import SERVED_NS
from fake_server import ANSWER_FAULTS, START_FAULTS, TLS_FAULTS
from served_lab import BASELINE, NEVER_S, ROUNDS, STRUCK, Lab, by_bytes
from tollbar import results
from tollbar.catalog import servers
from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers import Component
from tollbar.core import proc
from tollbar.core.records import CLIENT, Outcome, Proven, Record, Trial
from tollbar.core.runner import session
from tollbar.lab.measure import members
from tollbar.lab.measure.members import Member
from tollbar.lab.measure.rounds import Rounds
from tollbar.lab.servers import loading
from tollbar.lab.servers.configuration import Rendered
from tollbar.lab.servers.running import Running
from tollbar.lab.workloads import Work, request
from tollbar.lab.workloads.request import RequestWorkload
from tollbar.study.plan.cells import Cell
from tollbar.study.values import DEFAULT_MEASURE

# The lab replaces this function.
PROVE = loading.prove

# Faults at the start of every cell, and the row's reason.
AT_START = {
    "unready": (Outcome.TIMED_OUT, "fake-server was not ready within 5 s"),
    "mute": (Outcome.TIMED_OUT, "fake-server was not ready within 5 s"),
    "refuse": (Outcome.UNSUPPORTED, "fake-server refuses: no such curve in line 7"),
    "leave": (Outcome.FAILED, "fake-server ended with status 1: out of luck"),
    "crash": (Outcome.FAILED, "fake-server was ended by SIGSEGV"),
}

# Faults of answers: the load client's counter and its words.
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

# Faults of handshakes, likewise.
OF_HANDSHAKES = {
    "other-certificate": ("tls", "the server presented another certificate"),
    "other-version": ("tls", "ProtocolVersion"),
    "other-suite": ("tls", "HandshakeFailure"),
    "handshake-garbage": ("tls", "InvalidContentType"),
    "handshake-stall": ("timeout", "the handshake not done after"),
}


def waited_for(fault: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the fault; if no answer comes, that cell's client alone gives up soon."""
    task = RequestWorkload._task

    def impatient(self: RequestWorkload, cell: Cell, *arguments: Any) -> dict[str, Any]:
        made = task(self, cell, *arguments)
        if cell.coordinates["bytes"] == STRUCK:
            made["load"]["request_limit_s"] = NEVER_S
        return made

    if {**OF_ANSWERS, **OF_HANDSHAKES}[fault][0] == "timeout":
        monkeypatch.setattr(RequestWorkload, "_task", impatient)
    return fault


def given_up_soon(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the start of servers with this fault a short limit."""
    start = Running.__init__

    def impatient(self: Running, component: Component, program: Path, rendered: Rendered, **more: Any) -> None:
        if f'"fault": "{fault}"' in (rendered.stdin or ""):
            # Copies: healthy servers share the component, and need more time on a busy machine.
            component, ready = copy(component), copy(component.ready)
            object.__setattr__(ready, "limit", NEVER_S)
            object.__setattr__(component, "ready", ready)
        start(self, component, program, rendered, **more)

    monkeypatch.setattr(Running, "__init__", impatient)


# Wrong acceptances of a server, which only a proof can detect.
GULLIBLE = {
    "every-path": "not refused: a path that is not there",
    "every-version": "not refused: a client that speaks TLS 1.2 only",
    "every-session": "not refused: a session that was offered again",
    "clear-too": "not refused: a request in clear text",
}


def test_every_fault_is_in_a_table() -> None:
    assert {*START_FAULTS} == {*AT_START}
    assert {*ANSWER_FAULTS} == {*OF_ANSWERS}
    assert {*TLS_FAULTS} == {*OF_HANDSHAKES, *GULLIBLE} - {"every-path"}


def asked(fault: str) -> tuple[str, str]:
    """Return the choice and the operation of the cells that meet this fault."""
    if fault not in TLS_FAULTS:
        return "plaintext", "request"
    # Python cannot choose TLS 1.3's suites.
    return "tls-1.2" if fault == "other-suite" else "tls-1.3", "connect"


@pytest.mark.parametrize("choice", ["plaintext", "tls-1.2", "tls-1.3"])
def test_a_server_in_good_health_is_proved(lab: Lab, choice: str) -> None:
    lab.server()
    proven = lab.prove(lab.study(choice))
    assert {(Outcome.OK, None)} == {(one.outcome, one.reason) for one in proven.values()}
    assert "status 200 and 1000 bytes" in proven[STRUCK].accepted
    assert "a path that is not there" in proven[STRUCK].refused


@pytest.mark.share(1)
@pytest.mark.parametrize("fault", AT_START)
def test_a_server_that_cannot_be_started_is_a_row(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if AT_START[fault][0] is Outcome.TIMED_OUT:
        given_up_soon(fault, monkeypatch)
    lab.server(fault)
    planned = lab.study()
    proven, trials = lab.prove(planned), lab.trials(planned)
    assert AT_START[fault] == (proven[STRUCK].outcome, proven[STRUCK].reason)
    assert [AT_START[fault]] == [(trial.outcome, trial.reason) for trial in trials[STRUCK]]
    assert [((), None)] == [(trial.chunks, trial.load) for trial in trials[STRUCK]]
    # The other cell and its repeat are unaffected.
    assert Outcome.OK == proven[BASELINE].outcome
    assert [Outcome.OK] * 2 == [trial.outcome for trial in trials[BASELINE]]


def test_a_server_that_ends_once_it_is_ready_has_failed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:

    def gone(found: servers.Installed, provider: Provider, pid: int, *, encrypted: bool) -> dict[str, str]:
        os.kill(proc.tree(pid)[1], signal.SIGKILL)
        while proc.tls_libraries(proc.tree(pid))["crypto"]:
            time.sleep(0.001)
        return PROVE(found, provider, pid, encrypted=encrypted)

    monkeypatch.setattr(loading, "prove", gone)
    lab.server()
    proven = lab.prove(lab.study("tls-1.3"))
    assert {(Outcome.FAILED, "fake-server was ended by SIGKILL")} == {(p.outcome, p.reason) for p in proven.values()}


@pytest.mark.share(3)
@pytest.mark.parametrize("fault", [*OF_ANSWERS, *OF_HANDSHAKES])
def test_a_fault_while_proving_bars_the_cell(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.server(waited_for(fault, monkeypatch))
    kind, words = {**OF_ANSWERS, **OF_HANDSHAKES}[fault]
    proven = lab.prove(lab.study(*asked(fault)))
    reason = proven[STRUCK].reason or ""
    assert Outcome.FAILED == proven[STRUCK].outcome, reason
    assert f"not accepted: GET /bytes/1000: {kind}: " in reason
    assert words in reason
    assert (fault == "die") == reason.startswith("fake-server was ended by SIGSEGV: ")
    assert (Outcome.OK, None) == (proven[BASELINE].outcome, proven[BASELINE].reason)


def test_a_server_that_says_why_is_quoted(lab: Lab) -> None:
    lab.server("wrong-status")
    planned = lab.study()
    reason = lab.prove(planned)[STRUCK].reason or ""
    assert reason.endswith("got 503; fake-server said: it is the 1st time"), reason
    (trial,) = lab.trials(planned)[STRUCK]
    assert re.search(r"got 503\); fake-server said: it is the 2nd time$", trial.reason or ""), trial.reason


@pytest.mark.parametrize("fault", GULLIBLE)
def test_a_server_that_takes_what_it_must_not_is_not_proved(lab: Lab, fault: str) -> None:
    lab.server(fault)
    proven = lab.prove(lab.study(*asked(fault)))
    assert (Outcome.FAILED, GULLIBLE[fault]) == (proven[STRUCK].outcome, proven[STRUCK].reason)
    assert Outcome.OK == proven[BASELINE].outcome


def before_chunk(monkeypatch: pytest.MonkeyPatch, number: int, size: int, do: Callable[[Member], object]) -> None:
    """Do something before the cell of this many bytes is advanced in this round; a thread of it ends by then."""
    advance = Rounds._advance

    def do_and_advance(rounds: Rounds, member: Member, at: int, **how: bool) -> None:
        is_meant = (at, member.visit.cell.coordinates["bytes"], member.visit.repeat) == (number, size, False)
        done = do(member) if is_meant else None
        advance(rounds, member, at, **how)
        if isinstance(done, threading.Thread):
            done.join()

    monkeypatch.setattr(Rounds, "_advance", do_and_advance)


# A chunk of a middle round.
MIDDLE = ROUNDS // 2


@pytest.mark.share(2)
@pytest.mark.parametrize("fault", [*OF_ANSWERS, *OF_HANDSHAKES])
def test_a_fault_in_a_chunk_ends_the_trial(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.server(waited_for(fault, monkeypatch), after=None)
    before_chunk(monkeypatch, MIDDLE, STRUCK, lambda member: lab.sign.touch())
    kind, words = {**OF_ANSWERS, **OF_HANDSHAKES}[fault]
    trials = lab.trials(lab.study(*asked(fault)))
    (trial,) = trials[STRUCK]
    reason = trial.reason or ""
    assert (Outcome.FAILED, MIDDLE, None) == (trial.outcome, len(trial.chunks), trial.load), reason
    assert re.search(rf"[1-9]\d* of [1-9]\d* requests failed: .*\b{kind} [1-9]", reason), reason
    if fault == "die":
        assert reason.startswith("fake-server was ended by SIGSEGV: ")
    else:
        assert words in reason
    assert [(Outcome.OK, ROUNDS)] * 2 == [(other.outcome, len(other.chunks)) for other in trials[BASELINE]]


@pytest.mark.share(2)
@pytest.mark.parametrize("fault", ["die", "stall", "wrong-status", "handshake-garbage"])
def test_a_fault_while_warming_up_ends_the_trial(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # With two users there is a second request, however slow the machine is.
    lab.server(waited_for(fault, monkeypatch), after=1)
    kind, _ = {**OF_ANSWERS, **OF_HANDSHAKES}[fault]
    trials = lab.trials(lab.study(*asked(fault), blocks=3))
    assert [(Outcome.FAILED, 0, 0), (Outcome.FAILED, 1, 0)] == [
        (trial.outcome, trial.block, len(trial.chunks)) for trial in trials[STRUCK]
    ]
    assert all(kind in (trial.reason or "") for trial in trials[STRUCK])
    assert [Outcome.OK] * 4 == [trial.outcome for trial in trials[BASELINE]][:4]


def test_a_server_that_dies_in_another_s_chunk_fails_alone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.server()
    servers: dict[object, list[int]] = {}
    up = RequestWorkload.up

    @contextmanager
    def noted(self: RequestWorkload, cell: Cell, *arguments: Any, **more: Any) -> Iterator[Work]:
        with up(self, cell, *arguments, **more) as work:
            servers.setdefault(cell.coordinates["bytes"], []).extend(work.task["load"]["components"].values())
            yield work

    def kill(member: Member) -> threading.Thread:
        (guard,) = servers[STRUCK]
        # The other cell is working: a tenth of its chunk has passed, or it has not yet begun.
        killing = threading.Timer(0.0002, os.kill, (proc.tree(guard)[1], signal.SIGKILL))
        killing.start()
        return killing

    monkeypatch.setattr(RequestWorkload, "up", noted)
    before_chunk(monkeypatch, MIDDLE, BASELINE, kill)
    trials = lab.trials(lab.study())
    (trial,) = trials[STRUCK]
    assert Outcome.FAILED == trial.outcome
    assert MIDDLE <= len(trial.chunks) <= MIDDLE + 1
    assert (trial.reason or "").startswith("fake-server was ended by SIGKILL: ")
    assert [(Outcome.OK, ROUNDS)] * 2 == [(other.outcome, len(other.chunks)) for other in trials[BASELINE]]


def test_one_wrong_answer_is_enough(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single error among thousands of right answers counts."""
    lab.server("wrong-length-once", after=None)
    before_chunk(monkeypatch, MIDDLE, STRUCK, lambda member: lab.sign.touch())
    (trial,) = lab.trials(lab.study())[STRUCK]
    assert (Outcome.FAILED, MIDDLE) == (trial.outcome, len(trial.chunks))
    words = r"1 of \d+ requests failed: wrong length 1 \(first: expected 1000 bytes, got 10\)"
    assert re.search(words, trial.reason or ""), trial.reason


@pytest.mark.share(2)
@pytest.mark.parametrize("fault", ["hang", "crash", "rubbish"])
@pytest.mark.parametrize("moment", ["verify", "ready", "chunk", "last"])
def test_a_load_client_that_goes_wrong_is_a_row(
    lab: Lab, moment: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "command", lambda: (python_of_others(), "-I", "-S", str(FAKE_RUNNER)))
    if fault == "hang":
        limits = {
            "verify": (request, "PROOF_LIMIT_S"),
            "ready": (members, "READY_LIMIT_S"),
            "chunk": (members, "CHUNK_LIMIT_S"),
            "last": (session, "END_LIMIT_S"),
        }
        # At the other moments a busy machine has time.
        monkeypatch.setattr(*limits[moment], NEVER_S)
    monkeypatch.setenv("FAKE_FAULT", f"{moment}:{fault}")
    lab.server()
    outcome, words = {
        "hang": (Outcome.TIMED_OUT, "no answer within 5 s"),
        "crash": (Outcome.FAILED, "ended by SIGSEGV"),
        "rubbish": (Outcome.FAILED, "no JSON object: 'hello'"),
    }[fault]
    found: list[Proven | Trial] = []
    if moment == "verify":
        found += lab.prove(lab.study()).values()
    else:
        found += [trial for trials in lab.trials(lab.study()).values() for trial in trials]
    assert {outcome} == {one.outcome for one in found}, [one.reason for one in found]
    assert all(words in (one.reason or "") for one in found)


# Impossible reports of a load client, and the reasons that follow.
UNBELIEVED = {
    "chunk:failing": "2 of 20 requests failed",
    "chunk:boasting": "20 right answers to 19 requests",
    "chunk:blind": "CPU time was reported for []; the server has ['web']",
    "chunk:effortless": "the server's processes used no measurable CPU time",
    "last:unsaid": "the load client says nothing of the load",
    "last:sorry": "the third answer was wrong",
}


@pytest.mark.share(3)
@pytest.mark.parametrize("fault", UNBELIEVED)
def test_what_cannot_be_so_is_not_believed(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "command", lambda: (python_of_others(), "-I", "-S", str(FAKE_RUNNER)))
    monkeypatch.setenv("FAKE_FAULT", fault)
    lab.server()
    trials = lab.trials(lab.study())
    # The lab decides how many requests a later chunk has.
    reasons = {re.sub("of [0-9]+ requests", "of 20 requests", str(t.reason)) for made in trials.values() for t in made}
    assert {UNBELIEVED[fault]} == reasons
    assert {Outcome.FAILED} == {t.outcome for made in trials.values() for t in made}


def test_the_cost_is_the_server_s(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "command", lambda: (python_of_others(), "-I", "-S", str(FAKE_RUNNER)))
    lab.server(components=("db", "web"))
    trials = [trial for made in lab.trials(lab.study()).values() for trial in made]
    # The cell, and its baseline twice.
    assert 3 == len(trials)
    for trial in trials:
        assert (Outcome.OK, ("db", "web")) == (trial.outcome, trial.paid_by)
        assert {"db", "web", CLIENT} == set(trial.chunks[0].cpu_ns)
        assert {2.0 * SERVED_NS} == {trial.cost_of(chunk) for chunk in trial.chunks}


UNPROVEN = {
    "the load client verified nothing": Record(outcome=Outcome.OK),
    "not here": Record(outcome=Outcome.UNSUPPORTED, reason="not here"),
}


@pytest.mark.parametrize("reason", UNPROVEN)
def test_a_proof_that_is_none_is_not_believed(lab: Lab, reason: str) -> None:
    lab.server()
    proven = lab.prove(lab.study(), ask=lambda *arguments, **more: UNPROVEN[reason])
    assert {reason} == {one.reason for one in proven.values()}
    assert Outcome.OK not in {one.outcome for one in proven.values()}


def test_who_refuses_nothing_is_not_proved(lab: Lab) -> None:
    lab.server()
    record = Record.model_validate({"outcome": "ok", "proof": {"accepted": ["all"]}})
    for choice, reason in [("tls-1.3", "no proof: no wrong input was tried and refused"), ("plaintext", None)]:
        proven = lab.prove(lab.study(choice), ask=lambda *arguments, **more: record)
        assert {reason} == {one.reason for one in proven.values()}


# Successful trials.


def test_trials_are_as_planned_and_carry_their_load(lab: Lab) -> None:
    lab.server()
    planned = lab.study("tls-1.3", "connect", blocks=2)
    batches = lab.batches(planned)
    # The baseline is its own repeat in the one batch of each block.
    assert [[(block, 0)] * 3 for block in range(2)] == [[(t.block, t.batch) for t in trials] for trials in batches]
    trials = by_bytes(planned, batches)
    assert [(0, False), (1, False)] == [(trial.block, trial.repeat) for trial in trials[STRUCK]]
    twice = sorted((trial.block, trial.repeat) for trial in trials[BASELINE])
    assert [(0, False), (0, True), (1, False), (1, True)] == twice
    every = [trial for batch in batches for trial in batch]
    assert [0, 1, 2, 3, 4, 5] == [trial.order for trial in every]
    for trial in every:
        load = trial.load
        assert (Outcome.OK, None) == (trial.outcome, trial.reason)
        assert [*range(ROUNDS)] == [chunk.round for chunk in trial.first_tries]
        # Two users, each at least twice.
        assert all(chunk.operations >= 4 for chunk in trial.chunks)
        assert ("web",) == trial.paid_by
        assert all({"web", CLIENT} == chunk.cpu_ns.keys() for chunk in trial.chunks)
        assert trial.cpu_ns == sum(chunk.cpu_ns["web"] for chunk in trial.first_tries) > 0
        assert load is not None
        # Users' waits are measured in one throughput phase of some blocks, and never in the chunks.
        assert load.requests == load.connections == load.handshakes_full
        assert load.is_settled == (trial.block % DEFAULT_MEASURE.phase_every == 0)
        assert sum(count for _, count in load.latency_us) == (load.requests if load.is_settled else 0)
        assert load.is_settled == (load.requests_per_s > 0)
        assert load.wall_ns >= members.PHASE_S * 1e9 if load.is_settled else load.wall_ns == trial.wall_ns
        assert ({}, 0) == (load.errors, load.handshakes_resumed)
        assert ["web"] == list(load.components)
        assert load.components["web"].cpu_ns > 0
        assert trial.memory_bytes == load.components["web"].memory_bytes > 0
        (agreed,) = load.negotiated
        assert ("TLS 1.3", "ECDSA P-256", False) == (agreed.version, agreed.certificate_key, agreed.resumed)
        done = sum(chunk.operations for chunk in trial.chunks)
        assert done + (load.requests if load.is_settled else 0) == agreed.count
        assert load.client_cpu_ns > 0


def test_a_trial_is_read_back_as_it_was_stored(lab: Lab, tmp_path: Path) -> None:
    lab.server()
    planned = lab.study("tls-1.3", "connect", blocks=2)
    batches = lab.batches(planned)
    with closing(results.create(planned, tmp_path / "runs", command=(), libraries=(), fingerprint={})) as store:
        for proven in lab.prove(planned).values():
            store.record_proof(proven)
        for trials in batches:
            store.record(trials)
    made = by_bytes(planned, batches)
    (back,) = results.read(store.directory).studies
    for row in back.rows:
        again = [*row.trials, *row.repeats]
        assert sorted(made[row.coordinates["bytes"]], key=lambda trial: trial.repeat) == again
        assert None not in [trial.load for trial in again]


def test_a_trial_without_a_load_is_read_back_without_one(lab: Lab, tmp_path: Path) -> None:
    lab.server("leave")
    planned = lab.study()
    (trials,) = lab.batches(planned)
    with closing(results.create(planned, tmp_path / "runs", command=(), libraries=(), fingerprint={})) as store:
        store.record(trials)
    (back,) = results.read(store.directory).studies
    struck = by_bytes(planned, [trials])[STRUCK]
    assert struck == [trial for row in back.rows for trial in row.trials if row.coordinates["bytes"] == STRUCK]
    assert [(Outcome.FAILED, None, ())] == [(trial.outcome, trial.load, trial.chunks) for trial in struck]
