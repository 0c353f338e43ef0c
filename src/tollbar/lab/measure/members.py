"""Members of a batch: trials that are started, warmed up, advanced and ended, each on its cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from tollbar.catalog.libraries import built_in
from tollbar.catalog.servers import NotStarted
from tollbar.core import machine, proc
from tollbar.core.records import Chunk, ChunkRecord, Outcome, Ready, Record, failed
from tollbar.core.runner import Session, Stopped
from tollbar.core.runner.session import Meanwhile
from tollbar.lab import workloads
from tollbar.lab.measure.schedule import CHUNK_LIMIT_S, READY_LIMIT_S, Pace
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Work
from tollbar.study.plan.batches import Visit

# Request rates and response times need a settled load, and a client on another core than the server's. Chunks have
# neither.
PHASE_S = 0.05


@dataclass(slots=True)
class Member:
    """Trial of the batch, with its current state."""

    visit: Visit
    session: Session | None = None
    work: Work | None = None
    ready: Ready | None = None
    turns: range = range(0)
    """Rounds in which it has its turn."""
    chunks: list[Chunk] = field(default_factory=list)
    seen: list[ChunkRecord] = field(default_factory=list)
    filling: int = 0
    """Largest number of requests that filled a chunk's time so far; later chunks of a load have at least as many."""
    phase: ChunkRecord | None = None
    fault: Record | None = None
    """Reason for giving no further chunk."""
    last: Record | None = None
    """Last line of its runner."""

    @property
    def is_up(self) -> bool:
        return self.session is not None and self.fault is None

    @property
    def pace(self) -> Pace:
        """Duration of its chunks, as found by the warm-up."""
        operation_ns = self.ready.operation_ns if self.ready else 0.0
        if self.work is None:
            return Pace(0.0, operation_ns / 1e9)
        return Pace(0.0, self.work.least_s(operation_ns), self.work.is_counted)


def bring_up(members: Sequence[Member], stack: ExitStack, seed: int, core: int | None, sandbox: Sandbox | None) -> None:
    """Start and warm up all members, and move them to the measuring core.

    Two cores are used at once if available: nothing is measured yet, and warming up takes as long as all rounds.
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
    member: Member,
    stack: ExitStack,
    seed: int,
    core: int | None,
    begins_on: int | None,
    sandbox: Sandbox | None,
) -> None:
    """Start a member's servers and its runner, which then warms up by itself."""
    cell = member.visit.cell
    try:
        workload = workloads.of(cell)
        member.work = work = stack.enter_context(workload.up(cell, seed, sandbox, core, begins_on=begins_on))
        at_first = work.core if work.begins_on is None else work.begins_on
        member.session = stack.enter_context(Session(work.command, work.task, core=at_first, account=work.account))
    except NotStarted as error:
        member.fault = failed(error.reason, error.outcome)
    except Stopped as stopped:
        _stop(member, stopped)


def _become_ready(member: Member, core: int | None) -> None:
    """Wait until a member is warm, and move it to its final core."""
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
        _are_moved(member, [*member.work.components.values()], core)


def round_of(member: Member, seconds: float, meanwhile: Meanwhile | None, slice_s: float = 0.0) -> ChunkRecord | None:
    """Return the chunk of one round; None if it failed.

    Its number of operations fills `seconds` on a quiet core. `slice_s` is the approximate duration of its slices, if
    its runner can slice; 0: no slices.

    The number is fixed before the chunk. Chunks that end by time have more operations in quick moments, and chunks of
    long operations do not, so their ratio would weigh the moments differently on its two sides. In addition, if work
    varies, the last operation of such a chunk is more often a long one.
    """
    assert member.work is not None
    if not member.work.fills_time:
        return chunk_of(member, seconds, meanwhile=meanwhile)
    by_warm_up = _filling_by_warm_up(member, seconds)
    operations = by_warm_up or member.filling
    slice_s = slice_s if can_slice(member, seconds) else 0.0
    # The lab's probe would take the core from the chunk, and the chunk would lose its slices.
    meanwhile = None if slice_s else meanwhile
    record = chunk_of(member, 0.0 if operations else seconds, operations, meanwhile, slice_s)
    if record is not None and record.wall_ns and not by_warm_up:
        member.filling = max(member.filling, math.ceil(record.operations * seconds * 1e9 / record.wall_ns))
    return record


def can_slice(member: Member, seconds: float) -> bool:
    """Return whether its runner can slice, which needs the engine's probe, and an operation fits into the chunk.

    During a longer operation the lab probes the core instead.
    """
    ready = member.ready
    if ready is None or not ready.slices or ready.operation_ns > seconds * 1e9:
        return False
    return member.visit.cell.provider.kind in ("libcrypto", *built_in())


def _filling_by_warm_up(member: Member, seconds: float) -> int:
    """Return the number of operations that fill `seconds`, by the warm-up; 0 if unknown.

    A load's warm-up reports the server's cost of a request, which is not its duration.
    """
    assert member.work is not None
    operation_ns = member.ready.operation_ns if member.ready and not member.work.components else 0.0
    return math.ceil(seconds * 1e9 / operation_ns) if operation_ns else 0


def chunk_of(
    member: Member,
    seconds: float,
    operations: int = 0,
    meanwhile: Meanwhile | None = None,
    slice_s: float = 0.0,
) -> ChunkRecord | None:
    """Return a chunk of at least `seconds` and `operations`; None if the runner failed."""
    assert member.session is not None
    assert member.work is not None
    try:
        at_least_s = 0.0 if member.work.is_counted else seconds
        fewest = max(member.work.fewest, operations)
        record = member.session.advance(at_least_s, fewest, CHUNK_LIMIT_S, meanwhile, slice_s=slice_s)
        contradiction = member.work.contradiction(record)
        if contradiction is not None:
            raise Stopped(failed(contradiction))
        return record
    except Stopped as stopped:
        _stop(member, stopped)
        return None


def phase_of(member: Member) -> ChunkRecord | None:
    """Return a longer chunk, for which the load client moves to a core of its own if there is one.

    The chunk has the client's waits there.
    """
    assert member.session is not None
    assert member.work is not None
    if not _is_moved(member, member.work.phase_core):
        return None
    before_ns = proc.run_queue_wait_ns(member.session.pid)
    record = chunk_of(member, PHASE_S)
    waited_ns = max(0, proc.run_queue_wait_ns(member.session.pid) - before_ns)
    if record is None or not _is_moved(member, member.work.core):
        return None
    observed = record.observed.model_copy(update={"client_run_queue_wait_ns": waited_ns})
    return record.model_copy(update={"observed": observed})


def _is_moved(member: Member, core: int | None) -> bool:
    """Move its runner to this core, and return whether that worked; if not, the trial has failed."""
    assert member.session is not None
    return core is None or _are_moved(member, (member.session.pid,), core)


def _are_moved(member: Member, roots: Sequence[int], core: int) -> bool:
    try:
        for root in roots:
            proc.keep_on(root, core)
    except OSError as error:
        _stop(member, Stopped(failed(f"its processes cannot be moved to core {core}: {error.strerror}")))
    return member.fault is None


def finish(member: Member) -> None:
    """End a member's session, and record its outcome."""
    if member.session is None or member.fault is not None:
        return
    member.last = member.session.finish()
    if member.last.outcome is not Outcome.OK:
        _stop(member, Stopped(member.last))
    elif member.work is not None and (reason := member.work.lacks(member.last)) is not None:
        member.fault = failed(reason)


def _stop(member: Member, stopped: Stopped) -> None:
    member.fault = member.work.with_fault(stopped.record) if member.work else stopped.record
