"""A heat: trials of a few cells, all up at once on one core, advanced in turn a few milliseconds at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from tollbar import machine, workloads
from tollbar.beds import NotStarted, proc
from tollbar.beds.sandbox import Sandbox
from tollbar.measure.probe import Probe
from tollbar.measure.trial import Chunk, Trial
from tollbar.moments import Watch
from tollbar.plan.heats import Heat, Visit
from tollbar.runner import ChunkRecord, Outcome, Ready, Record, Session, Stopped, failed
from tollbar.runner.session import Meanwhile
from tollbar.study import Measure
from tollbar.workloads import CLIENT, RUNNER, Work

# Making ready: a library, keys, a warm-up; the slowest here are RSA-4096 keys and a password hash of a gigabyte.
READY_LIMIT_S = 120.0
# A chunk of one slow operation, or of requests of which each may take its limit; beyond this a runner hangs.
CHUNK_LIMIT_S = 60.0
# An operation that takes longer than so many chunks would drive the others of its round apart: it goes first or last,
# and has its turn in fewer rounds.
SLOW_CHUNKS = 4
# A trial spends at most so many times what was asked for all of its rounds. A longer chunk averages over more of the
# machine's states, so that fewer of them do.
MOST_SPENT = 2
# Requests a second and response times want a load that has settled, and a client that does not take the server's core
# from it: chunks have neither.
STRETCH_S = 0.05
# They get no verdict, so that some of the blocks are enough to show them.
BLOCKS_A_STRETCH = 3
# Of all the time that a study takes, what may go into waiting for quiet moments and into rounds that were lost.
BUDGET = 1 / 4
# So many rounds may be made up for each that was planned: beyond, a heat would spend what later ones need.
MOST_MADE_UP = 1
# A neighbour's burst lasts some milliseconds or some seconds; only the first is waited out.
WAIT_S = 0.005
# A probe takes the core for a moment, which is another one by then.
WAIT_STEP_S = 0.0005
# A neighbour may come and go within a chunk that lasts longer than was asked for; so many times that apart, its core is
# probed while it lasts. In a simulation chunks of 20 ms that were probed at their ends alone came out 2.5 % too dear.
PROBED_EVERY = 1.2


@dataclass(slots=True)
class _Member:
    """One trial of the heat, as far as it has come."""

    visit: Visit
    session: Session | None = None
    work: Work | None = None
    ready: Ready | None = None
    turns: range = range(0)
    """The rounds in which it has its turn."""
    chunks: list[Chunk] = field(default_factory=list)
    seen: list[ChunkRecord] = field(default_factory=list)
    stretch: ChunkRecord | None = None
    fault: Record | None = None
    """Why it will give no further chunk."""
    last: Record | None = None
    """Its runner's last line."""

    @property
    def is_up(self) -> bool:
        return self.session is not None and self.fault is None

    def chunk_s(self, how: Measure) -> float:
        """How long a chunk of it takes, as far as its warm-up showed."""
        each_s = self.ready.operation_ns / 1e9 if self.ready else 0.0
        counted_s = each_s * (self.work.fewest if self.work else 1)
        return counted_s if self.work and self.work.is_counted else max(how.chunk_s, counted_s)


def measure(
    heat: Heat,
    how: Measure,
    seed: int,
    *,
    first_order: int,
    core: int | None = None,
    sandbox: Sandbox | None = None,
    watch: Watch | None = None,
    budget: Budget | None = None,
) -> list[Trial]:
    """The trials of one heat, in the order of its visits. A member that fails leaves the others to go on."""
    members = [_Member(visit) for visit in heat.visits]
    source = random.Random(f"{seed}/{heat.study}/{heat.block}/{heat.number}")
    budget = budget or Budget()
    started_s, steal_before_ns = time.time(), machine.steal_ns()
    began_s = time.monotonic()
    with ExitStack() as stack:
        _bring_up(members, stack, seed + heat.block, core, sandbox)
        probed = _probed_core(members)
        probe = stack.enter_context(Probe(probed)) if probed is not None else None
        rounds = _Rounds(members, how, source, probe, watch or Watch())
        rounds.first_tries()
        for member in members if heat.block % BLOCKS_A_STRETCH == 0 else ():
            if member.is_up and member.work is not None and member.work.settles:
                # One longer chunk, for what users notice. Nothing of what the study asks rests on it.
                member.stretch = _stretch(member)
        budget.earn(time.monotonic() - began_s)
        if probe is not None:
            rounds.make_up(budget)
        for member in members:
            _finish(member)
    steal_ns = machine.steal_ns() - steal_before_ns
    return [
        _trial(member, how, order, started_s, steal_ns, machine.load())
        for order, member in enumerate(members, first_order)
    ]


@dataclass(slots=True)
class Budget:
    """Time that a study has for waiting and for rounds that were lost: a share of all that its measuring takes."""

    left_s: float = 0.0

    def earn(self, seconds: float) -> None:
        """Measuring as planned took so long."""
        self.left_s += seconds * BUDGET / (1 - BUDGET)


@dataclass(slots=True)
class _Rounds:
    """The rounds of a heat: the first tries, which nothing selects, and then those that stand for lost ones."""

    members: Sequence[_Member]
    how: Measure
    source: random.Random
    probe: Probe | None
    watch: Watch

    def first_tries(self) -> None:
        """Every round once, whatever the moment is like."""
        for member in self.members:
            member.turns = _turns(member, self.how)
        for number in range(self.how.rounds):
            for member in _order(self.members, self.how, self.source):
                if member.is_up and number in member.turns:
                    self._advance(member, number)

    def make_up(self, budget: Budget) -> None:
        """Further rounds in quiet moments, until as many were quiet as were planned, or the budget is spent."""
        for number in range(self.how.rounds, (1 + MOST_MADE_UP) * self.how.rounds):
            lacking = [side for member in self.members for side in self._lacking(member)]
            taking_part = [m for m in self.members if m.is_up and (m in lacking or _has_every_round(m, self.how))]
            if not lacking or budget.left_s < sum(member.chunk_s(self.how) for member in taking_part):
                return
            started_s = time.monotonic()
            # Where the core is not left alone now, the time is better spent later.
            if self._wait(budget.left_s):
                for member in _order(taking_part, self.how, self.source):
                    if member.is_up:
                        self._wait(budget.left_s - (time.monotonic() - started_s))
                        self._advance(member, number, is_made_up=True)
            budget.left_s -= time.monotonic() - started_s

    def _lacking(self, member: _Member) -> Sequence[_Member]:
        """A member and what it is compared with, where both have fewer quiet rounds together than were planned."""
        sides = [member, *self._partner(member)]
        if not all(side.is_up and self._may_be_quiet(side) for side in sides):
            return ()
        planned = set.intersection(*(set(side.turns) for side in sides))
        quiet = set.intersection(*(self._quiet_rounds(side) for side in sides))
        return sides if len(quiet) < len(planned) else ()

    def _partner(self, member: _Member) -> Sequence[_Member]:
        """Its baseline; of a twin, what it is the twin of; none, of a baseline itself."""
        visit = member.visit
        other = visit.cell.key if visit.twin else visit.cell.against
        found = [m for m in self.members if m.visit.cell.key == other and not m.visit.twin and m is not member]
        return found[:1]

    def _may_be_quiet(self, member: _Member) -> bool:
        """Whether waiting may help: of chunks that outlast every quiet moment none will be, and each costs much."""
        return not _is_slow(member, self.how) or bool(self._quiet_rounds(member))

    def _quiet_rounds(self, member: _Member) -> set[int]:
        return {
            chunk.round for chunk in member.chunks if chunk.probes_ns and all(map(self.watch.is_quick, chunk.probes_ns))
        }

    def _wait(self, at_most_s: float) -> bool:
        """Waits until the core is left alone, for a few milliseconds at most; whether it is."""
        assert self.probe is not None
        until_s = time.monotonic() + min(WAIT_S, at_most_s)
        reading = self.probe.lately()
        while reading is not None and not self.watch.is_quick(reading) and time.monotonic() < until_s:
            time.sleep(WAIT_STEP_S)
            reading = self.probe.read()
        return reading is not None and self.watch.is_quick(reading)

    def _advance(self, member: _Member, number: int, *, is_made_up: bool = False) -> None:
        before_ns = self.probe.lately() if self.probe else None
        within_ns: list[float | None] = []
        meanwhile = None
        if self.probe is not None:
            meanwhile = PROBED_EVERY * self.how.chunk_s, lambda: within_ns.append(self.probe.read())
        record = _chunk(member, self.how.chunk_s, meanwhile)
        after_ns = self.probe.read() if self.probe else None
        if record is None:
            return
        assert member.work is not None
        member.seen.append(record)
        probes_ns = _probes(before_ns, within_ns, after_ns)
        if probes_ns is not None:
            self.watch.note(probes_ns[0])
            self.watch.note(probes_ns[-1])
        if record.observed.is_exact:
            cpu_ns, observed = member.work.cpu_ns(record), member.work.observed(record)
            member.chunks.append(
                Chunk(number, record.operations, record.wall_ns, cpu_ns, observed, probes_ns, is_made_up)
            )


def _probes(
    before_ns: float | None, within_ns: Sequence[float | None], after_ns: float | None
) -> tuple[float, ...] | None:
    """The readings beside a chunk, and the slowest of those within, but for one in twenty of them.

    None where the probe has ended meanwhile.
    """
    readings = sorted(ns for ns in within_ns if ns is not None)
    if before_ns is None or after_ns is None or len(readings) < len(within_ns):
        return None
    # A neighbour of so little of a chunk moves its cost by less than is called a difference.
    slowest = readings[-1 - len(readings) // 20 :][:1]
    return before_ns, *slowest, after_ns


def _probed_core(members: Sequence[_Member]) -> int | None:
    """The one core on which what is measured is paid for; None where there is no such, or no other for the lab."""
    cores = {member.work.paid_on for member in members if member.work is not None and member.is_up}
    return cores.pop() if len(cores) == 1 else None


def _bring_up(
    members: Sequence[_Member], stack: ExitStack, seed: int, core: int | None, sandbox: Sandbox | None
) -> None:
    """Has all members ready and warm, and on the core that is measured on.

    They become so on two cores at once, where there are: nothing is measured yet, and it takes as long as all rounds.
    """
    places = machine.starting_cores(core)
    if sum(sorted(member.visit.cell.memory_bytes for member in members)[-2:]) > machine.available_memory_bytes():
        places = places[:1]
    for number, member in enumerate(members):
        if number >= len(places):
            _become_ready(members[number - len(places)], core)
        begins_on = places[number % len(places)]
        _start(member, stack, seed, core, None if begins_on == core else begins_on, sandbox)
    for member in members[-len(places) :]:
        _become_ready(member, core)


def _start(
    member: _Member,
    stack: ExitStack,
    seed: int,
    core: int | None,
    begins_on: int | None,
    sandbox: Sandbox | None,
) -> None:
    """Starts a member's servers and runner, which then becomes ready by itself."""
    cell = member.visit.cell
    try:
        workload = workloads.of(cell)
        member.work = work = stack.enter_context(workload.up(cell, seed, sandbox, core, begins_on=begins_on))
        at_first = work.core if work.begins_on is None else work.begins_on
        member.session = stack.enter_context(Session(work.command, work.task, core=at_first))
    except NotStarted as error:
        member.fault = failed(error.reason, error.outcome)
    except Stopped as stopped:
        _stop(member, stopped)


def _become_ready(member: _Member, core: int | None) -> None:
    """Waits until a member is warm, and moves it from where it began."""
    if not member.is_up:
        return
    assert member.session is not None
    assert member.work is not None
    try:
        member.ready = member.session.ready(READY_LIMIT_S)
    except Stopped as stopped:
        _stop(member, stopped)
        return
    if core is not None and member.work.begins_on is not None and _is_moved(member, member.work.core):
        _are_moved(member, member.work.servers, core)


def _turns(member: _Member, how: Measure) -> range:
    """The rounds in which a member has its turn: all; or every second, fourth or eighth, where its chunks are long.

    Powers of two, so that two slow members meet in all rounds of the slower one. One chunk that takes as long as all
    rounds of a quick trial has averaged over as many of the machine's states.
    """
    if member.work is not None and member.work.is_counted:
        return range(how.rounds)
    stride = 1
    while stride < how.rounds and (
        member.chunk_s(how) * len(range(0, how.rounds, stride)) > MOST_SPENT * how.chunk_s * how.rounds
    ):
        stride *= 2
    return range(0, how.rounds, stride)


def _order(members: Sequence[_Member], how: Measure, source: random.Random) -> list[_Member]:
    """A random order, in which slow members do not come between quick ones."""
    slow = [member for member in members if _is_slow(member, how)]
    quick = [member for member in members if member not in slow]
    source.shuffle(slow)
    source.shuffle(quick)
    return [*slow, *quick] if source.random() < 0.5 else [*quick, *slow]


def _is_slow(member: _Member, how: Measure) -> bool:
    return member.chunk_s(how) > SLOW_CHUNKS * how.chunk_s


def _has_every_round(member: _Member, how: Measure) -> bool:
    """Whether it is in each round that is made up: a quick one, and one whose every round leaves rows for the next."""
    return not _is_slow(member, how) or (member.work is not None and member.work.is_counted)


def _chunk(member: _Member, seconds: float, meanwhile: Meanwhile | None = None) -> ChunkRecord | None:
    """What its runner says of the next so many seconds; None where that ends it."""
    assert member.session is not None
    assert member.work is not None
    try:
        at_least_s = 0.0 if member.work.is_counted else seconds
        record = member.session.advance(at_least_s, member.work.fewest, CHUNK_LIMIT_S, meanwhile)
        contradiction = member.work.contradiction(record)
        if contradiction is not None:
            raise Stopped(failed(contradiction))
        return record
    except Stopped as stopped:
        _stop(member, stopped)
        return None


def _stretch(member: _Member) -> ChunkRecord | None:
    """A longer chunk, for which the load client moves to a core of its own where there is one; and its waits there."""
    assert member.session is not None
    assert member.work is not None
    if not _is_moved(member, member.work.stretch_core):
        return None
    before_ns = proc.run_queue_wait_ns(member.session.pid)
    record = _chunk(member, STRETCH_S)
    waited_ns = max(0, proc.run_queue_wait_ns(member.session.pid) - before_ns)
    if record is None or not _is_moved(member, member.work.core):
        return None
    observed = record.observed.model_copy(update={"client_run_queue_wait_ns": waited_ns})
    return record.model_copy(update={"observed": observed})


def _is_moved(member: _Member, core: int | None) -> bool:
    """Whether its runner is on this core from here on; if it cannot be, that is the trial's failure."""
    assert member.session is not None
    return core is None or _are_moved(member, (member.session.pid,), core)


def _are_moved(member: _Member, roots: Sequence[int], core: int) -> bool:
    try:
        for root in roots:
            proc.keep_on(root, core)
    except OSError as error:
        _stop(member, Stopped(failed(f"its processes cannot be moved to core {core}: {error.strerror}")))
    return member.fault is None


def _finish(member: _Member) -> None:
    """Ends a member's session, and hears how it went."""
    if member.session is None or member.fault is not None:
        return
    member.last = member.session.finish()
    if member.last.outcome is not Outcome.OK:
        _stop(member, Stopped(member.last))
    elif member.work is not None and (reason := member.work.lacks(member.last)) is not None:
        member.fault = failed(reason)


def _stop(member: _Member, stopped: Stopped) -> None:
    member.fault = member.work.with_fault(stopped.record) if member.work else stopped.record


def _trial(member: _Member, how: Measure, order: int, started_s: float, steal_ns: int, machine_load: float) -> Trial:
    visit = member.visit
    fault = member.fault
    if fault is None and not member.chunks:
        fault = failed(
            "no chunk has a closed account: the server never came to rest, or its processes came and went in each"
        )
    load = member.work.load(member.last, member.stretch, member.seen) if member.work and not fault else None
    components = {name for chunk in member.chunks for name in chunk.cpu_ns}
    servers = tuple(sorted(components - {CLIENT, RUNNER}))
    paid_by = {"cpu": tuple(sorted(components)), "server-cpu": servers, "client-cpu": (CLIENT,)}
    memory_bytes = member.ready.memory_bytes if member.ready else 0
    if load is not None:
        memory_bytes = sum(component.memory_bytes for component in load.components.values())
    return Trial(
        study=visit.cell.study,
        cell=visit.cell.key,
        twin=visit.twin,
        block=visit.block,
        heat=visit.heat,
        order=order,
        started_s=started_s,
        outcome=fault.outcome if fault else Outcome.OK,
        reason=fault.reason if fault else None,
        chunks=tuple(member.chunks),
        paid_by=paid_by[how.cost],
        memory_bytes=memory_bytes,
        steal_ns=steal_ns,
        machine_load=machine_load,
        load=load,
    )
