"""Rounds of a batch on a virtual core: waits for quiet, extra rounds for lost ones, and members' places."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tollbar.core.records import ChunkRecord, ComponentRecord, LoadRecord, Observed, Outcome
from tollbar.core.runner.confined import Account
from tollbar.lab import measure
from tollbar.lab.measure import batch, members, rounds
from tollbar.lab.measure.members import Member, phase_of
from tollbar.lab.measure.rounds import Budget, Rounds
from tollbar.lab.workloads import Work
from tollbar.study import Measure
from tollbar.study.plan.batches import Visit

HOW = Measure("cpu", 0.005, 4, 4)
QUIET_NS, BUSY_NS = 100.0, 1000.0


class Clock:
    """Clock that only sleeping advances."""

    def __init__(self) -> None:
        self.now_s, self.slept = 0.0, 0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s, self.slept = round(self.now_s + seconds, 6), self.slept + 1


class Probe:
    """Probe whose readings are quiet by number; None once it has ended."""

    is_plain = True

    def __init__(self, is_quiet: Callable[[int], bool | None]) -> None:
        self._is_quiet, self._reads, self._last = is_quiet, 0, None

    def read(self) -> float | None:
        quiet = self._is_quiet(self._reads)
        self._reads += 1
        self._last: float | None = None if quiet is None else QUIET_NS if quiet else BUSY_NS
        return self._last

    def lately(self) -> float | None:
        return self._last if self._last is not None else self.read()


WATCH: Any = SimpleNamespace(is_quick=lambda ns: ns <= QUIET_NS, longest_quick_ns=QUIET_NS, note=lambda ns: None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(rounds, "time", found)
    return found


@pytest.mark.parametrize(
    ("is_quiet", "at_most_s", "expected", "slept"),
    [
        (lambda n: True, 1.0, True, 0),
        (lambda n: n == 3, 1.0, True, 3),
        (lambda n: False, 1.0, False, 10),
        (lambda n: False, 0.001, False, 2),
        (lambda n: False, 0.0, False, 0),
        (lambda n: None, 1.0, False, 0),
        (lambda n: False if n < 2 else None, 1.0, False, 2),
    ],
)
def test_a_quiet_moment_is_waited_for_some_milliseconds(
    clock: Clock, is_quiet: Callable[[int], bool | None], at_most_s: float, expected: bool, slept: int
) -> None:
    """The probe is asked every half millisecond until it is quiet, the wait is over or it has ended."""
    made: Any = Probe(is_quiet)
    assert expected is Rounds([], HOW, random.Random(1), made, WATCH)._wait(at_most_s)
    assert slept == clock.slept


class Answering:
    """Session with chunks of a microsecond."""

    def __init__(self, asked: list[Any]) -> None:
        self.pid, self._asked = 7, asked

    def advance(
        self, seconds: float, operations: int, limit_s: float, meanwhile: object = None, *, slice_s: float = 0.0
    ) -> ChunkRecord:
        self._asked.append((seconds, operations))
        return ChunkRecord(operations=10, cpu_ns=1000, wall_ns=1000, observed=Observed(client_run_queue_wait_ns=5))


def up(name: str, asked: list[Any] | None = None, repeat: bool = False, **work: Any) -> Member:
    """Return a member that is up and warm, compared with `a`."""
    cell: Any = SimpleNamespace(key=name, against="a", study="s", memory_bytes=0)
    session: Any = Answering([] if asked is None else asked)
    return Member(Visit(cell, repeat, 0, 0), session=session, work=Work((), {}, **{"core": None, **work}))


@pytest.mark.usefixtures("clock")
def test_as_many_rounds_are_made_up_as_were_lost() -> None:
    """A round in which one of two compared members was disturbed is lost to both; extra chunks are marked."""
    both = [up("a"), up("b")]
    # Asked once before the first chunk, and after each: the first chunk of the second round has a busy probe behind it.
    made: Any = Probe(lambda n: n != 3)
    of = Rounds(both, HOW, random.Random(1), made, WATCH)
    of.first_tries()
    assert [[0, 1, 2, 3]] * 2 == [[chunk.round for chunk in one.chunks] for one in both]
    budget = Budget(1.0)
    of.make_up(budget)
    assert [[(0, False), (1, False), (2, False), (3, False), (4, True)]] * 2 == [
        [(chunk.round, chunk.is_made_up) for chunk in one.chunks] for one in both
    ]
    assert 1.0 == budget.left_s
    of.make_up(budget)
    assert 5 == len(both[0].chunks)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("left_s", "made_up"), [(0.0099, 0), (0.01, 4)])
def test_nothing_is_made_up_beyond_the_budget_or_twice(
    monkeypatch: pytest.MonkeyPatch, left_s: float, made_up: int
) -> None:
    both = [up("a"), up("b")]
    made: Any = Probe(lambda n: n > 8 and n % 3 == 0)
    of = Rounds(both, HOW, random.Random(1), made, WATCH)
    of.first_tries()
    monkeypatch.setattr(Rounds, "_wait", lambda self, at_most_s: True)
    of.make_up(Budget(left_s))
    assert [made_up] * 2 == [sum(chunk.is_made_up for chunk in one.chunks) for one in both]


@pytest.mark.usefixtures("clock")
def test_a_core_that_is_not_quiet_has_nothing_made_up() -> None:
    both, budget = [up("a"), up("b")], Budget(0.02)
    made: Any = Probe(lambda n: False)
    of = Rounds(both, HOW, random.Random(1), made, WATCH)
    of.first_tries()
    of.make_up(budget)
    assert [4, 4] == [len(one.chunks) for one in both]
    assert budget.left_s < 0.01


def test_a_budget_is_a_quarter_of_all() -> None:
    """A quarter of all is a third of the planned time."""
    budget = Budget()
    budget.earn(3.0)
    budget.earn(6.0)
    assert pytest.approx(3.0) == budget.left_s


@pytest.mark.parametrize(("begins_on", "first"), [(None, 3), (1, 1)])
def test_what_begins_elsewhere_has_its_runner_there(
    monkeypatch: pytest.MonkeyPatch, begins_on: int | None, first: int
) -> None:
    seen: list[Any] = []
    account = Account(7)

    @contextmanager
    def up_(cell: object, seed: int, sandbox: object, core: int | None, *, begins_on: int | None) -> Iterator[Work]:
        seen.append((seed, sandbox, core, begins_on))
        yield Work(("x",), {"a": 1}, 3, begins_on=begins_on, account=account)

    @contextmanager
    def session(command: object, task: object, *, core: int | None, account: object) -> Iterator[Any]:
        seen.append((command, task, core, account))
        yield SimpleNamespace(pid=7, ready=lambda limit_s: "ready")

    there = SimpleNamespace(
        starting_cores=lambda core: (3,) if begins_on is None else (begins_on,), available_memory_bytes=lambda: 1
    )
    monkeypatch.setattr(members, "workloads", SimpleNamespace(of=lambda cell: SimpleNamespace(up=up_)))
    monkeypatch.setattr(members, "Session", session)
    monkeypatch.setattr(members, "machine", there)
    moved: list[Any] = []
    monkeypatch.setattr(members.proc, "keep_on", lambda root, core: moved.append((root, core)))
    member = Member(up("a").visit)
    with ExitStack() as stack:
        members.bring_up([member], stack, 9, 3, None)
    assert [(9, None, 3, begins_on), (("x",), {"a": 1}, first, account)] == seen
    assert "ready" == member.ready
    assert ([] if begins_on is None else [(7, 3)]) == moved


def test_a_phase_is_longer_on_a_core_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The move there and back counts; the client's waits in it are its own."""
    moved: list[Any] = []
    waits = iter((100, 450))
    monkeypatch.setattr(members.proc, "keep_on", lambda root, core: moved.append((root, core)))
    monkeypatch.setattr(members.proc, "run_queue_wait_ns", lambda pid: next(waits))
    asked: list[Any] = []
    record = phase_of(up("a", asked, core=0, phase_core=1, fewest=3))
    assert record is not None
    assert (350, [(7, 1), (7, 0)], [(0.05, 3)]) == (record.observed.client_run_queue_wait_ns, moved, asked)


def test_a_server_s_memory_is_that_of_its_components() -> None:
    component = ComponentRecord(cpu_ns=1, memory_bytes=40)
    load = LoadRecord(requests=1, wall_ns=9, components={"web": component, "db": component})
    for of, expected in ((load, 80), (None, 7)):
        member = up("a")
        work: Any = SimpleNamespace(load=lambda last, phase, seen, of=of: of)
        member.work, member.ready = work, SimpleNamespace(memory_bytes=7)  # type: ignore[assignment]
        member.chunks = [SimpleNamespace(cpu_ns={"web": 1, "db": 2, "client": 3})]  # type: ignore[list-item]
        trial = batch._trial(member, HOW, 5, 1.0, 2, 0.5)
        assert (expected, ("client", "db", "web"), 5) == (trial.memory_bytes, trial.paid_by, trial.order)
    of_server = batch._trial(member, Measure("server-cpu", 0.005, 4, 4), 5, 1.0, 2, 0.5)
    assert ("db", "web") == of_server.paid_by


def test_each_cell_is_proved_by_its_own_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def prove(cell: object, seed: int, given: Any) -> SimpleNamespace:
        asked.append((cell, seed, given.sandbox, given.ask))
        return SimpleNamespace(outcome=Outcome.OK, reason=None)

    proved = SimpleNamespace(prove=prove)
    monkeypatch.setattr(measure.workloads, "of", lambda cell: proved)
    cells: Any = [SimpleNamespace(study="s", key=name) for name in ("one", "other")]
    sandbox: Any = "sandbox"
    assert 2 == len([*measure.prove(cells, 4, sandbox=sandbox, ask=len)])  # type: ignore[arg-type]
    assert [(cell, 4, sandbox, len) for cell in cells] == asked
