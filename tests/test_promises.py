"""The runner contract's promises, tried on a virtual runner with a simulated clock and known figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tollbar.core.records import CONTRACT, ChunkRecord, Observed, Outcome, Proof, Ready, Record, failed
from tollbar.core.runner import Stopped
from tollbar.lab.measure import conformance
from tollbar.lab.measure.conformance import Finding

KNOWN = "ba7816bf"
TASK: dict[str, Any] = {"contract": CONTRACT, "choice": "sha-256", "setting": {"bytes": 4096}, "inputs": {}}
VERIFY = {**TASK, "inputs": {"of": "abc", "expected_hex": KNOWN}}
MS = 1_000_000
BETWEEN = "between chunks it sleeps, and what its collector and compiler use is in the next one's `background_ns`"


@dataclass
class Virtual:
    """Runner and its machine, with adjustable faults."""

    ns_per_byte: float = 2.5
    says: float = 1.0
    """Reported part of its CPU time."""
    counts: float = 1.0
    """Reported part of its operations."""
    reading_ns: int = 0
    """Time that reading the clocks costs in each chunk."""
    lead_ns: int = 0
    """Work before its clocks start."""
    late_ns: int = 0
    """Wait after its clocks stopped."""
    queued_ns: int = 0
    """Part of the wait in which others had its core."""
    between_ns: int = 0
    """Work between chunks."""
    background_ns: int = 0
    """Reported part of the work between chunks."""
    warms_ns: int = 0
    """Work in the first pause alone."""
    answer: str | None = KNOWN
    refuses: Mapping[str, Outcome] = field(default_factory=dict)
    fails_at: str | None = None
    ends: Record = field(default_factory=lambda: Record(outcome=Outcome.OK))
    now_ns: int = 0
    cpu_ns: int = 0
    all_queued_ns: int = 0
    asked: list[Any] = field(default_factory=list)
    """Every task to be verified, and every order of a session."""

    def session(self, command: object, task: Mapping[str, Any]) -> Any:
        each_ns = self.ns_per_byte * task["setting"].get("bytes", 4096)
        self.asked.append(("session", command, task))

        def advance(seconds: float, operations: int, limit_s: float) -> ChunkRecord:
            self.asked.append((seconds, operations, limit_s))
            self._at("advance")
            count = max(operations, math.ceil(seconds * 1e9 / each_ns))
            worked_ns = round(count * each_ns) + self.reading_ns
            self.now_ns += self.lead_ns + worked_ns + self.late_ns
            self.cpu_ns += self.lead_ns + worked_ns
            self.all_queued_ns += self.queued_ns
            observed = Observed(background_ns=self.background_ns)
            cpu_ns = round(worked_ns * self.says) + self.background_ns
            return ChunkRecord(
                operations=round(count * self.counts), cpu_ns=cpu_ns, wall_ns=worked_ns, observed=observed
            )

        made = SimpleNamespace(pid=7, advance=advance, ready=self._ready, finish=self._finish)

        class Context:
            def __enter__(self) -> Any:
                return made

            def __exit__(self, *how: object) -> None:
                pass

        return Context()

    def _at(self, what: str) -> None:
        if self.fails_at == what:
            raise Stopped(failed(f"it fell over at {what}"))

    def _ready(self, limit_s: float) -> Ready:
        self._at("ready")
        return Ready(provider="virtual 1")

    def _finish(self) -> Record:
        self._at("finish")
        return self.ends

    def ask(self, command: object, task: Mapping[str, Any], limit_s: float) -> Record:
        self.asked.append((task, limit_s))
        if task["contract"] != CONTRACT:
            return self._refused("contract", Outcome.FAILED)
        if task["choice"] != "sha-256":
            return self._refused("choice", Outcome.UNSUPPORTED)
        if {*task["setting"]} - {"bytes"}:
            return self._refused("setting", Outcome.FAILED)
        return Record(outcome=Outcome.OK, proof=Proof(answer=self.answer))

    def _refused(self, what: str, outcome: Outcome) -> Record:
        outcome = self.refuses.get(what, outcome)
        return Record(outcome=outcome, reason=None if outcome is Outcome.OK else f"no such {what}")

    def sleep(self, seconds: float) -> None:
        self.asked.append(("rest", seconds))
        self.now_ns += round(seconds * 1e9)
        self.cpu_ns += self.between_ns + self.warms_ns
        self.warms_ns = 0


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Check a virtual runner against the contract."""

    def hold(
        virtual: Virtual, measure: Mapping[str, Any] = TASK, verify: Mapping[str, Any] = VERIFY
    ) -> dict[str, Finding]:
        clock = SimpleNamespace(sleep=virtual.sleep, monotonic_ns=lambda: virtual.now_ns)
        seen = SimpleNamespace(
            cpu_ns=lambda tree: virtual.cpu_ns,
            tree=lambda pid: [pid],
            run_queue_wait_ns=lambda root: virtual.all_queued_ns,
            TICK_NS=10 * MS,
        )
        monkeypatch.setattr(conformance, "time", clock)
        monkeypatch.setattr(conformance, "proc", seen)
        monkeypatch.setattr(conformance, "Session", virtual.session)
        monkeypatch.setattr(conformance, "ask", virtual.ask)
        return {one.promise: one for one in conformance.hold(["runner"], measure, verify)}

    return hold


def broken(findings: Mapping[str, Finding]) -> list[str]:
    return [one.promise for one in findings.values() if one.kept is not True]


def test_what_is_seen_of_a_good_runner(held: Any) -> None:
    found = held(Virtual())
    assert {
        "a task of another version of the contract is a failure": "failed: no such contract",
        "a setting that it does not read is a failure": "failed: no such setting",
        "a choice that it does not have is unsupported": "unsupported: no such choice",
        "a known answer is worked out, and not handed back": "its own: ba7816bf",
        "its first line says that it is ready, and which code it is": "virtual 1",
        "a chunk is at least 100 ms and 1 operations, and one line": "100.0 ms, 9766 operations",
        "a chunk is at least 1 ms and 3 operations, and one line": "1.0 ms, 98 operations",
        "at the end of its input it says how it went, and ends": "ok",
        "its CPU time is no less than its processes used": (
            "301.0 ms, and the kernel counts 301.0 ms with the beginnings of chunks"
        ),
        "its CPU time is no more than its processes used": (
            "301.0 ms, and the kernel counts 301.0 ms with the beginnings of chunks"
        ),
        "it answers when its clock stops": "301.0 ms, and its answers took 301.0 ms",
        BETWEEN: "0.0 ms of CPU time that no chunk has, in 0.3 s",
        "asked for operations and no time, it does as many": "1 of 1, 8 of 8",
        "it does the operations that it counts": "2621 µs alone, 2621 µs among others",
        "a long message costs more than a short one": "4096 bytes 10.2 µs, 1048576 bytes 2621.4 µs",
    } == {one.promise: one.seen for one in found.values()}
    assert [] == broken(found)


def test_what_a_runner_is_asked(held: Any) -> None:
    """A task with one fault, three times, and one with a wrong answer; then chunks, and long messages."""
    virtual = Virtual()
    held(virtual)
    wrong = [
        {**VERIFY, "contract": CONTRACT - 1},
        {**VERIFY, "setting": {"bytes": 4096, "colour": "red"}},
        {**VERIFY, "choice": "no-such-choice"},
        {**VERIFY, "inputs": {"of": "abc", "expected_hex": "bb7816bf"}},
    ]
    rest = ("rest", 0.1)
    orders = [(0.1, 1, 60.0), (0.001, 3, 60.0), (0.1, 1, 60.0), (0.1, 1, 60.0)]
    long = [*[(0.0, 1, 60.0)] * 5, *[(0.0, 8, 60.0)] * 3, *[(0.02, 1, 60.0)] * 3]
    assert [
        *((task, 60.0) for task in wrong),
        ("session", ["runner"], TASK),
        *(one for order in orders for one in (rest, order)),
        ("session", ["runner"], {**TASK, "setting": {"bytes": 1 << 20}}),
        *(one for order in long for one in (("rest", 0.0), order)),
    ] == virtual.asked


SLACK_NS = 4 * 5 * MS + 10 * MS
"""Four lines that are read and written, and a clock tick."""


@pytest.mark.parametrize(
    ("queued_ns", "elapsed_ns", "spent_ns", "held_up_ns"),
    [
        (0, 200, 200, 0),
        (100, 200, 100, 100),
        # A thread that is not runnable waits for nothing.
        (50, 200, 100, 50),
        # Two of its own threads on one core wait for each other.
        (284, 209, 209, 0),
        (150, 200, 100, 100),
        # On several cores it used more than the elapsed time; a thread that ended took its waits along.
        (10, 200, 390, 0),
        (-271, 200, 100, 0),
    ],
)
def test_a_runner_is_held_up_by_others_alone(queued_ns: int, elapsed_ns: int, spent_ns: int, held_up_ns: int) -> None:
    assert held_up_ns == conformance._held_up(queued_ns, elapsed_ns, spent_ns)


@pytest.mark.parametrize(
    ("faulty", "promise"),
    [
        ({"refuses": {"contract": Outcome.UNSUPPORTED}}, "a task of another version of the contract is a failure"),
        ({"refuses": {"setting": Outcome.OK}}, "a setting that it does not read is a failure"),
        ({"refuses": {"choice": Outcome.FAILED}}, "a choice that it does not have is unsupported"),
        ({"answer": "BB7816BF"}, "a known answer is worked out, and not handed back"),
        ({"says": 0.5}, "its CPU time is no less than its processes used"),
        ({"says": 1.2}, "its CPU time is no more than its processes used"),
        ({"late_ns": 120 * MS}, "it answers when its clock stops"),
        ({"late_ns": 1120 * MS, "queued_ns": 1000 * MS}, "it answers when its clock stops"),
        ({"between_ns": SLACK_NS // 3 + 1}, BETWEEN),
        ({"ends": failed("it ran out of words")}, "at the end of its input it says how it went, and ends"),
        ({"counts": 2.0}, "asked for operations and no time, it does as many"),
    ],
)
def test_a_broken_promise_is_told(held: Any, faulty: dict[str, Any], promise: str) -> None:
    assert [promise] == broken(held(Virtual(**faulty)))


@pytest.mark.parametrize(
    "alike",
    [
        {"between_ns": SLACK_NS // 3},
        {"between_ns": 60 * MS, "background_ns": 60 * MS},
        {"warms_ns": 900 * MS},
        {"lead_ns": 15 * MS},
        {"late_ns": 90 * MS},
        {"late_ns": 1090 * MS, "queued_ns": 1000 * MS},
        {"answer": None},
        {"says": 1.09},
        {"says": 0.91},
    ],
)
def test_what_is_allowed_is_no_fault(held: Any, alike: dict[str, Any]) -> None:
    assert [] == broken(held(Virtual(**alike)))


def test_a_beginning_may_take_a_tenth_of_the_time_or_one_operation() -> None:
    """The runner's own estimate may be off by half; no operation alone may take over a quarter of the time."""

    def lead_ns(asked_ns: float, each_ns: int) -> float:
        chunk = ChunkRecord(
            operations=2, cpu_ns=2 * each_ns + 5, wall_ns=2 * each_ns, observed=Observed(background_ns=5)
        )
        return conformance._Seen(asked_ns, chunk, 0, 0, 0, 0).lead_ns

    assert pytest.approx(15.0 * MS) == lead_ns(100.0 * MS, MS)
    assert pytest.approx(1.5 * 37.5 * MS) == lead_ns(100.0 * MS, 37_500_000)
    assert pytest.approx(15.0 * MS) == lead_ns(100.0 * MS, 37_500_001)


@pytest.mark.parametrize(
    ("at", "promise"),
    [
        ("ready", "its first line says that it is ready, and which code it is"),
        ("advance", "a chunk is at least 100 ms and 1 operations, and one line"),
        ("finish", "at the end of its input it says how it went, and ends"),
    ],
)
def test_one_that_ends_too_early_is_told_where(held: Any, at: str, promise: str) -> None:
    found = held(Virtual(fails_at=at))
    done = "it does the operations that it counts"
    assert [promise, done] == [one.promise for one in found.values() if one.kept is False]
    assert {f"it fell over at {at}"} == {found[promise].seen, found[done].seen}
    assert BETWEEN not in found


def test_what_cannot_be_tried_is_said(held: Any) -> None:
    task = {**TASK, "setting": {}}
    found = held(Virtual(ns_per_byte=0.5), task, {**task, "inputs": {}})
    assert {
        "a known answer is worked out, and not handed back": "there is none for this choice",
        "it does the operations that it counts": "too short: 2 µs alone, 2 µs among others",
        "a long message costs more than a short one": "the task has no message that could be longer",
    } == {one.promise: one.seen for one in found.values() if one.kept is None}
    assert len(found) - 3 == len([one for one in found.values() if one.kept])


def test_a_message_that_costs_nothing_is_none(held: Any) -> None:
    """The message was not read if a byte costs less than a core needs to load it."""
    promise = "a long message costs more than a short one"
    assert held(Virtual(ns_per_byte=1 / 290.0))[promise].kept is True
    assert held(Virtual(ns_per_byte=1 / 310.0))[promise].kept is False
    # Reading a clock costs something on a busy machine: in a chunk of one operation that is the whole cost.
    assert held(Virtual(ns_per_byte=1 / 3100.0, reading_ns=40_000))[promise].kept is False
