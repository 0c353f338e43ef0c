"""How long a plan will take: beforehand by what is usual, after the proofs by what one operation of each cell took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tollbar.plan import Cell, Plan, StudyPlan
from tollbar.plan.heats import Heat, blocks
from tollbar.study import Measure

# As measured, in seconds: with a server, which is started, ready and stopped for each trial, that takes so long, and a
# chunk so much longer than was asked; without one, only the chunk has a usual length.
SERVED_READY_S, SERVED_CHUNK_S = 0.25, 0.004
CHUNK_S = 0.001
# Servers are asked for a longer stretch in some of the blocks; so long on average over all of them.
STRETCH_S = 0.02
# A cell that has to work long for a chunk has its turn in fewer rounds, so that all of them take about so many times
# what was asked for.
MOST_SPENT = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """What one trial of a cell showed."""

    ready_s: float
    """From nothing to ready, its end included."""
    operation_s: float
    """The least that a chunk can take: as many operations as a chunk must have."""
    is_counted: bool = False
    """Whether a chunk has just so many, and every round has one."""


Timings = Mapping[tuple[str, str], Seen]
"""By study and key of a cell."""


def of_plan(plan: Plan, timings: Timings | None = None) -> float:
    """Seconds that proving and measuring a plan takes; without the proofs once there are `timings`."""
    return sum(of_study(one, plan.seed, timings) for one in plan.studies)


def of_study(planned: StudyPlan, seed: int, timings: Timings | None = None) -> float:
    """The same of one of its studies."""
    proofs_s = 0.0 if timings is not None else sum(proof_s(cell) for cell in planned.cells)
    return proofs_s + planned.study.measure.blocks * of_block(planned, seed, timings)


def of_block(planned: StudyPlan, seed: int, timings: Timings | None = None) -> float:
    """Seconds that one block takes: each heat has baselines besides its cells, and each baseline has its twin."""
    visits: Counter[str] = Counter()
    for heats in blocks(planned, seed, 1):
        visits.update(visit.cell.key for heat in heats for visit in heat.visits)
    measure, seen = planned.study.measure, timings or {}
    return sum(
        visits[cell.key] * trial_s(cell, measure, seen.get((cell.study, cell.key)))
        for cell in planned.cells
        # What could not be proved is not measured.
        if timings is None or (cell.study, cell.key) in timings
    )


def of_heats(plan: Plan, heats: Iterable[Heat], timings: Timings) -> float:
    """Seconds that these heats take, of cells that were proved."""
    measures = {one.study.name: one.study.measure for one in plan.studies}
    visits = (visit for heat in heats for visit in heat.visits)
    return sum(trial_s(v.cell, measures[v.cell.study], timings.get((v.cell.study, v.cell.key))) for v in visits)


def proof_s(cell: Cell) -> float:
    """Seconds that a proof usually takes, which warms nothing: a runner or a server is started for it."""
    return usual(cell).ready_s / 2


def usual(cell: Cell) -> Seen:
    """What is usual for such a cell: quick operations, on a server or a provider that is known."""
    return Seen(SERVED_READY_S if cell.bed else cell.provider.ready_s, 0.0)


def trial_s(cell: Cell, measure: Measure, seen: Seen | None = None) -> float:
    """Seconds that one trial takes, in all of its rounds."""
    seen = seen or usual(cell)
    chunk_s = seen.operation_s if seen.is_counted else max(measure.chunk_s, seen.operation_s)
    stride = 1
    while (
        not seen.is_counted
        and stride < measure.rounds
        and (chunk_s * len(range(0, measure.rounds, stride)) > MOST_SPENT * measure.chunk_s * measure.rounds)
    ):
        stride *= 2
    besides_s, stretch_s = (SERVED_CHUNK_S, STRETCH_S) if cell.bed else (CHUNK_S, 0.0)
    return seen.ready_s + (chunk_s + besides_s) * len(range(0, measure.rounds, stride)) + stretch_s


def with_blocks(planned: StudyPlan, count: int) -> StudyPlan:
    """The same study, with this many blocks."""
    study = planned.study
    return replace(planned, study=replace(study, measure=replace(study.measure, blocks=count)))


def blocks_within(planned: StudyPlan, seed: int, seconds: float, fewest: int, timings: Timings | None = None) -> int:
    """How many blocks fit into so many seconds, the proofs included where they are still to come; at least `fewest`."""
    proofs_s = 0.0 if timings is not None else sum(proof_s(cell) for cell in planned.cells)
    block_s = of_block(planned, seed, timings)
    return max(fewest, int((seconds - proofs_s) / block_s)) if block_s else fewest
