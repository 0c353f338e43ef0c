"""Measure: prove every cell, then run block after block of batches, each trial a fresh process."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from tollbar.catalog.servers.places import RoleMachine
from tollbar.core.moments import Watch
from tollbar.core.records import Proven, SetAside, Trial, TrialKey
from tollbar.core.runner import ask
from tollbar.lab import workloads
from tollbar.lab.measure import batch as batches_of
from tollbar.lab.measure.aside import Aside
from tollbar.lab.measure.probe import Chain
from tollbar.lab.measure.rounds import Budget
from tollbar.lab.servers import leftovers, nodes
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Ask, Given
from tollbar.lab.workloads.instead import Instead
from tollbar.study.plan import Plan
from tollbar.study.plan.batches import Batch, blocks
from tollbar.study.plan.cells import Cell

__all__ = [
    "Aside",
    "aside_of",
    "batches_left",
    "measured",
    "prove",
    "sandbox_for",
]


def sandbox_for(
    plan: Plan, logs: Path | None = None, places: Sequence[RoleMachine] = ()
) -> AbstractContextManager[Sandbox | None]:
    """Return the sandbox for the servers of a plan, as a context; it yields None if the plan needs none.

    Leftovers of killed runs are swept first in both cases, because they would use the measured cores. `places` are the
    machines of roles. Raises TollbarError if one of them is not available.
    """
    if any(workloads.of(cell).needs_sandbox(cell) for study in plan.studies for cell in study.cells):
        return _sandbox(logs, places)
    leftovers.sweep()
    return nullcontext()


@contextmanager
def _sandbox(logs: Path | None, places: Sequence[RoleMachine]) -> Iterator[Sandbox]:
    with Sandbox(logs) as sandbox, nodes.reached(places, sandbox):
        yield sandbox


def prove(cells: Iterable[Cell], seed: int, *, sandbox: Sandbox | None = None, ask: Ask = ask) -> Iterator[Proven]:
    """Yield the proof of each cell before its first trial: correct inputs accepted, wrong ones refused.

    The reason of an unsupported cell ends with a supported setting, if there is one. Cells that are measured through
    servers need a sandbox.
    """
    given, planned = Given(sandbox, ask), list(cells)

    def proven(cell: Cell) -> Proven:
        return workloads.of(cell).prove(cell, seed, given)

    instead = Instead({(cell.study, cell.key) for cell in planned}, proven)
    return (instead.advised(cell, proven(cell)) for cell in planned)


def batches_left(
    plan: Plan,
    *,
    counts: Mapping[str, int],
    done: Collection[tuple[str, int, int]],
    excluded: Collection[tuple[str, str]],
    made: Collection[TrialKey] | None = None,
) -> list[Batch]:
    """Return the remaining batches in order, without excluded cells.

    `counts` is the number of blocks of each study, `done` holds (study, block, batch) of completed batches, `excluded`
    (study, cell) of unproven cells. With `made`, the existing trials, completed batches that missed some cells are
    repeated with these cells and their baselines only.
    """
    drawn = (block for one in plan.studies for block in blocks(one, plan.seed, counts[one.study.name], excluded))
    # Unproven cells stay missing and are not made up for.
    allowed = ((len(block), _without(batch, excluded)) for block in drawn for batch in block)
    left = (_left(batch, batches, done, made) for batches, batch in allowed if batch is not None)
    return [batch for batch in left if batch is not None]


def _left(
    batch: Batch, batches: int, done: Collection[tuple[str, int, int]], made: Collection[TrialKey] | None
) -> Batch | None:
    """Return the remaining part of a batch of a block of `batches` batches; None if it is complete.

    A batch that makes up for missing cells gets the next free number, counted in whole blocks, because each batch is
    kept under its own number.
    """
    numbers = [batch.number]
    while (batch.study, batch.block, numbers[-1]) in done:
        numbers.append(numbers[-1] + batches)
    if len(numbers) == 1:
        return batch
    there = made if made is not None else ()
    missing = [
        visit
        for visit in batch.visits
        if not any((batch.study, visit.cell.key, visit.repeat, batch.block, number) in there for number in numbers)
    ]
    if made is None or not missing:
        return None
    # A missing baseline leaves its cells without a partner, and a cell or a repeat needs its baseline in the same
    # batch.
    lost = {visit.cell.key for visit in missing if not visit.repeat}
    wanted = {visit.cell.against for visit in missing} | {visit.cell.key for visit in missing}
    again = (
        visit
        for visit in batch.visits
        if visit in missing or visit.cell.against in lost or (not visit.repeat and visit.cell.key in wanted)
    )
    return replace(batch, number=numbers[-1], visits=tuple(replace(visit, batch=numbers[-1]) for visit in again))


def measured(
    plan: Plan,
    batches: Sequence[Batch],
    *,
    first_order: int = 0,
    core: int | None = None,
    sandbox: Sandbox | None = None,
    watch: Watch | None = None,
    budgets: dict[str, Budget] | None = None,
    aside: Aside | None = None,
) -> Generator[tuple[list[Trial], list[SetAside]]]:
    """Yield the trials of each batch and the cells that they quarantine, measured on demand.

    `watch` holds the known quiet moments of this machine, `budgets` the time that each study has for lost rounds. A
    cell that is quarantined in `aside` is left out of later batches.
    """
    how = {one.study.name: one.study.measure for one in plan.studies}
    aside = aside or aside_of(plan)
    order = first_order
    watch, budgets = watch or Watch(), {} if budgets is None else budgets
    with Chain(watch) as chain:
        for drawn in batches:
            batch = _without(drawn, aside.set_aside)
            if batch is None:
                yield [], []
                continue
            trials = batches_of.measure(
                batch,
                how[batch.study],
                plan.seed,
                first_order=order,
                core=core,
                sandbox=sandbox,
                watch=watch,
                budget=budgets.setdefault(batch.study, Budget()),
                chain=chain,
            )
            order += len(trials)
            yield trials, aside.note(trials)


def aside_of(plan: Plan) -> Aside:
    """Return an empty quarantine for the cells of this plan."""
    return Aside({(one.study.name, cell.key) for one in plan.studies for cell in one.cells if cell.is_baseline})


def _without(batch: Batch, left_out: Collection[tuple[str, str]]) -> Batch | None:
    """Return the batch without these cells; None if nothing is left to compare."""
    visits = tuple(visit for visit in batch.visits if (visit.cell.study, visit.cell.key) not in left_out)
    if not visits or (len(visits) < len(batch.visits) and all(v.cell.is_baseline and not v.repeat for v in visits)):
        return None
    return replace(batch, visits=visits)
