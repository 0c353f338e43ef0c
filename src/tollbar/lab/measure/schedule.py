"""Schedule: the rounds of each trial, and estimated durations of trials, batches, blocks and plans.

Estimates come from usual durations first, and after the proofs from one operation of each kind of cell.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tollbar.catalog.families import Value
from tollbar.catalog.libraries import built_in
from tollbar.catalog.servers import NotStarted
from tollbar.core.runner import Session, Stopped
from tollbar.lab import workloads
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.study import Measure
from tollbar.study.plan import Plan, StudyPlan
from tollbar.study.plan.batches import Batch, blocks
from tollbar.study.plan.cells import Cell
from tollbar.study.values import QUICK_CHUNK_S, QUICK_OPERATION_S, QUICK_ROUNDS

# Measured seconds. A trial with a server needs the first to start, get ready and stop, and its chunks exceed the
# requested time by the second. Without a server, only the excess of a chunk has a usual value.
SERVED_READY_S, SERVED_CHUNK_S = 0.25, 0.004
CHUNK_S = 0.001
# Mean duration of throughput phases, which servers have in some of the blocks, over all blocks.
PHASE_S = 0.02
# Limit of a trial's time as a multiple of the requested time. A longer chunk averages over more of the machine's
# states, so fewer rounds are enough.
MOST_SPENT = 2
# An operation longer than this number of chunks would separate the others of its round.
SLOW_CHUNKS = 4
# A proof performs a few operations in a few processes. If it takes this multiple of the time to get ready, the cell
# starts or works slowly.
SLOW_PROOF = 3
# Getting ready: a library, keys, a warm-up; the slowest here are RSA-4096 keys and a password hash of a gigabyte.
READY_LIMIT_S = 120.0
# A chunk of one slow operation, or of requests that may each take their limit; beyond this a runner counts as hung.
CHUNK_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Durations of the parts of a trial."""

    ready_s: float
    """Time to start and end the trial."""
    operation_s: float
    """Least duration of a chunk: that of its least number of operations."""
    is_counted: bool = False
    """True if a chunk has a fixed number of operations, and every round has one."""

    def chunk_s(self, how: Measure) -> float:
        """Return the duration of a chunk."""
        return self.operation_s if self.is_counted else max(how.chunk_s, self.operation_s)

    def is_slow(self, how: Measure) -> bool:
        """Return whether its chunks would separate those of the others."""
        return self.chunk_s(how) > SLOW_CHUNKS * how.chunk_s

    def turns(self, how: Measure) -> range:
        """Return the rounds in which a trial has its turn: fewer if its chunks are long.

        All rounds, or every second, fourth or eighth. Strides are powers of two, so that two slow trials meet in all
        rounds of the slower one. One chunk that takes as long as all rounds of a quick trial has averaged over as many
        of the machine's states.
        """
        stride = 1
        while (
            not self.is_counted
            and stride < how.rounds
            and self.chunk_s(how) * len(range(0, how.rounds, stride)) > MOST_SPENT * how.chunk_s * how.rounds
        ):
            stride *= 2
        return range(0, how.rounds, stride)


def adapted(how: Measure, cells: Sequence[Cell], paces: Sequence[Pace]) -> Measure:
    """Return the measuring parameters of a batch: short chunks if each cell performs a quick operation.

    Both sides of a ratio are in one batch, so they have the same chunks. A server's requests take longer, and a
    platform's runtime works between chunks by itself, so these keep the usual ones.
    """
    are_quick = all(0 < pace.operation_s < QUICK_OPERATION_S and not pace.is_counted for pace in paces)
    are_plain = all(
        cell.server is None
        and cell.provider.kind in ("libcrypto", *built_in())
        and cell.coordinates.get("threads", 1) == 1
        for cell in cells
    )
    if not (how.is_adapted and paces and are_quick and are_plain):
        return how
    return replace(how, chunk_s=QUICK_CHUNK_S, rounds=QUICK_ROUNDS)


Paces = Mapping[tuple[str, str], Pace]
"""Paces by study and key of a cell."""


def of_plan(plan: Plan, paces: Paces | None = None) -> float:
    """Return the seconds for proving and measuring a plan; with `paces`, without the proofs."""
    return sum(of_study(one, plan.seed, paces) for one in plan.studies)


def of_study(planned: StudyPlan, seed: int, paces: Paces | None = None) -> float:
    """Return the seconds for proving and measuring one study; with `paces`, without the proofs."""
    proofs_s = 0.0 if paces is not None else sum(proof_s(cell) for cell in planned.cells)
    return proofs_s + planned.study.measure.blocks * of_block(planned, seed, paces)


def of_block(planned: StudyPlan, seed: int, paces: Paces | None = None) -> float:
    """Return the seconds of one block: each batch also has baselines, and each baseline has its repeat."""
    visits: Counter[str] = Counter()
    measure, known = planned.study.measure, paces or {}
    paused_s = 0.0
    for batches in blocks(planned, seed, 1):
        visits.update(visit.cell.key for batch in batches for visit in batch.visits)
        paused_s += measure.pause_s * len(batches)
    return paused_s + sum(
        visits[cell.key] * trial_s(cell, measure, known.get((cell.study, cell.key)))
        for cell in planned.cells
        # Unproven cells are not measured.
        if paces is None or (cell.study, cell.key) in paces
    )


def of_batches(plan: Plan, batches: Iterable[Batch], paces: Paces) -> float:
    """Return the seconds of these batches, of proved cells."""
    measures = {one.study.name: one.study.measure for one in plan.studies}
    return sum(
        measures[batch.study].pause_s
        + sum(trial_s(v.cell, measures[batch.study], paces.get((batch.study, v.cell.key))) for v in batch.visits)
        for batch in batches
    )


def trial_s(cell: Cell, how: Measure, pace: Pace | None = None) -> float:
    """Return the seconds of one trial, over all of its rounds."""
    pace = pace or usual(cell)
    besides_s, phase_s = (SERVED_CHUNK_S, PHASE_S) if cell.server else (CHUNK_S, 0.0)
    return pace.ready_s + (pace.chunk_s(how) + besides_s) * len(pace.turns(how)) + phase_s


def proof_s(cell: Cell) -> float:
    """Return the usual seconds of a proof, which has no warm-up: a runner or a server is started for it."""
    return usual(cell).ready_s / 2


def usual(cell: Cell) -> Pace:
    """Return the usual pace of such a cell: quick operations, on its kind of server or provider."""
    return Pace(SERVED_READY_S if cell.server else cell.provider.ready_s, 0.0)


def blocks_within(planned: StudyPlan, seed: int, seconds: float, fewest: int, paces: Paces | None = None) -> int:
    """Return the number of blocks that fit into `seconds`; at least `fewest`.

    The time includes the proofs if they are still to come.
    """
    proofs_s = 0.0 if paces is not None else sum(proof_s(cell) for cell in planned.cells)
    block_s = of_block(planned, seed, paces)
    return max(fewest, int((seconds - proofs_s) / block_s)) if block_s else fewest


def with_blocks(planned: StudyPlan, count: int) -> StudyPlan:
    """Return the study's plan with this number of blocks."""
    study = planned.study
    return replace(planned, study=replace(study, measure=replace(study.measure, blocks=count)))


@dataclass(slots=True)
class Tried:
    """Paces found by trying the first cell of each choice, operation, provider and server, and each with a slow proof.

    Other cells are assumed to be like the first, because trying all of them would take as long as a block.
    """

    seed: int
    sandbox: Sandbox | None
    core: int | None
    _first: dict[tuple[Value | None, ...], Pace] = field(default_factory=dict)

    def pace(self, cell: Cell, proof_s: float) -> Pace:
        """Return the pace of a trial of the cell, whose proof took `proof_s` seconds."""
        kind = cell.provider.spec, cell.server_version, cell.choice.name, cell.coordinates.get("op")
        first = self._first.get(kind)
        if first is not None and proof_s <= SLOW_PROOF * first.ready_s:
            return first
        try:
            found = self._trial(cell)
        except (NotStarted, Stopped):
            # Its trials will report the reason.
            return first or usual(cell)
        self._first.setdefault(kind, found)
        return found

    def _trial(self, cell: Cell) -> Pace:
        started_s = time.monotonic()
        up = workloads.of(cell).up(cell, self.seed, self.sandbox, self.core)
        with up as work, Session(work.command, work.task, core=work.core, account=work.account) as session:
            session.ready(READY_LIMIT_S)
            ready_s = time.monotonic()
            session.advance(0.0, work.fewest, CHUNK_LIMIT_S)
            operation_s = time.monotonic() - ready_s
            session.finish()
        return Pace(time.monotonic() - started_s - operation_s, operation_s, work.is_counted)
