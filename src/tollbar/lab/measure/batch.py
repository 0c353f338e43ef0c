"""Batch: trials of a few cells, all running on one core, advanced in turn by a few milliseconds."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack

from tollbar.core import machine
from tollbar.core.moments import Core, Watch
from tollbar.core.records import CLIENT, RUNNER, Outcome, Trial, failed
from tollbar.lab.measure.members import Member, bring_up, finish, phase_of
from tollbar.lab.measure.probe import BASE_NS, Chain, Probe
from tollbar.lab.measure.rounds import Budget, Rounds
from tollbar.lab.measure.schedule import adapted
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.study import Measure
from tollbar.study.plan.batches import Batch


def measure(
    batch: Batch,
    how: Measure,
    seed: int,
    *,
    first_order: int,
    core: int | None = None,
    sandbox: Sandbox | None = None,
    watch: Watch | None = None,
    budget: Budget | None = None,
    chain: Chain | None = None,
) -> list[Trial]:
    """Return the trials of one batch, in the order of its visits. If a member fails, the others go on."""
    members = [Member(visit) for visit in batch.visits]
    source = random.Random(f"{seed}/{batch.study}/{batch.block}/{batch.number}")
    budget, watch = budget or Budget(), watch or Watch()
    started_s, steal_before_ns = time.time(), machine.steal_ns()
    began_s = time.monotonic()
    with ExitStack() as stack:
        bring_up(members, stack, seed + batch.block, core, sandbox)
        up = [member for member in members if member.is_up]
        how = adapted(how, [member.visit.cell for member in up], [member.pace for member in up])
        probed = _probed_cores(members)
        # Readings need one scale in all batches of a run, also in those with only one of its machines.
        base_ns = BASE_NS if sandbox is not None and sandbox.nodes else None
        made = Probe(*probed, best_of=watch.best_of, base_ns=base_ns) if probed else None
        probe = stack.enter_context(made) if made else None
        # Readings of several machines are ratios, not durations, so the chain does not apply.
        chained = probed if base_ns is None else []
        if chain is not None:
            chain.read(chained)
        if how.pause_s:
            time.sleep(how.pause_s)
        rounds = Rounds(members, how, source, probe, watch)
        rounds.first_tries()
        for member in members if batch.block % how.phase_every == 0 else ():
            if member.is_up and member.work is not None and member.work.settles:
                # A longer chunk for throughput and response times; the study's cost does not use it.
                member.phase = phase_of(member)
        if chain is not None:
            chain.read(chained)
        budget.earn(time.monotonic() - began_s - how.pause_s)
        if probe is not None:
            rounds.make_up(budget)
        for member in members:
            finish(member)
        if sandbox is not None and any(member.fault is not None for member in members):
            # If a machine is lost, its results are unreliable, so the whole batch is discarded.
            sandbox.check_nodes()
    steal_ns = machine.steal_ns() - steal_before_ns
    return [
        _trial(member, how, order, started_s, steal_ns, machine.load())
        for order, member in enumerate(members, first_order)
    ]


def _probed_cores(members: Sequence[Member]) -> list[Core]:
    """Return the cores to probe: those that pay for the measured work, also on other machines.

    Empty if there is no single paying core, or the lab has no other core. All are probed around each chunk of the
    batch, so that compared chunks come from similar moments.
    """
    works = [member.work for member in members if member.work is not None and member.is_up]
    paid_on = {work.paid_on for work in works}
    elsewhere = [*dict.fromkeys(command for work in works for command in work.paid_elsewhere)]
    if len(paid_on) != 1 or (None in paid_on and not elsewhere):
        return []
    cores = (*paid_on, *(core for work in works for core in work.cores))
    return [*dict.fromkeys(core for core in cores if core is not None), *elsewhere]


def _trial(member: Member, how: Measure, order: int, started_s: float, steal_ns: int, machine_load: float) -> Trial:
    visit = member.visit
    fault = member.fault
    if fault is None and not member.chunks:
        fault = failed(
            "no chunk can be used: the server never went idle, or its processes started and ended within every chunk"
        )
    load = member.work.load(member.last, member.phase, member.seen) if member.work and not fault else None
    components = {name for chunk in member.chunks for name in chunk.cpu_ns}
    servers = tuple(sorted(components - {CLIENT, RUNNER}))
    paid_by = {"cpu": tuple(sorted(components)), "server-cpu": servers, "client-cpu": (CLIENT,)}
    memory_bytes = member.ready.memory_bytes if member.ready else 0
    if load is not None:
        memory_bytes = sum(component.memory_bytes for component in load.components.values())
    return Trial(
        study=visit.cell.study,
        cell=visit.cell.key,
        repeat=visit.repeat,
        block=visit.block,
        batch=visit.batch,
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
