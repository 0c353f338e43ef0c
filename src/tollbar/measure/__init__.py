"""Measure: prove every cell, then run block after block of heats, each trial a fresh process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from tollbar import workloads
from tollbar.beds.sandbox import Sandbox
from tollbar.measure import heat as heats_of
from tollbar.measure.trial import Chunk, Trial
from tollbar.moments import Watch
from tollbar.plan import Cell, Plan
from tollbar.plan.heats import Heat, blocks
from tollbar.runner import Outcome, ask
from tollbar.workloads import Ask, Given, Proven

__all__ = [
    "MOST_FAILURES",
    "Chunk",
    "Outcome",
    "Proven",
    "Trial",
    "heats_left",
    "measured",
    "prove",
    "sandbox_for",
]

# A trial may fail by accident once, and its cell has the other blocks; one that fails again is set aside until the
# run is resumed.
MOST_FAILURES = 2


def sandbox_for(plan: Plan, logs: Path | None = None) -> AbstractContextManager[Sandbox | None]:
    """Where the servers of a plan are started while it is proved and measured; None where it needs no such place."""
    if any(workloads.of(cell).needs_sandbox(cell) for study in plan.studies for cell in study.cells):
        return Sandbox(logs)
    return nullcontext()


def prove(cells: Iterable[Cell], seed: int, *, sandbox: Sandbox | None = None, ask: Ask = ask) -> Iterator[Proven]:
    """Verifies each cell both ways before its first trial: right things accepted, wrong things refused.

    Cells that are measured through servers need a sandbox.
    """
    given = Given(sandbox, ask)
    return (workloads.of(cell).prove(cell, seed, given) for cell in cells)


def heats_left(
    plan: Plan,
    *,
    counts: Mapping[str, int],
    done: Collection[tuple[str, int, int]],
    excluded: Collection[tuple[str, str]],
) -> list[Heat]:
    """The heats that are still to be run, in order, without the cells that may not be measured.

    `counts` is the number of blocks of each study, `done` holds (study, block, heat) of what is there already,
    `excluded` (study, cell) of cells that were not proven.
    """
    drawn = (heat for one in plan.studies for block in blocks(one, plan.seed, counts[one.study.name]) for heat in block)
    left = (_without(heat, excluded) for heat in drawn if (heat.study, heat.block, heat.number) not in done)
    return [heat for heat in left if heat is not None]


def measured(
    plan: Plan,
    heats: Sequence[Heat],
    *,
    first_order: int = 0,
    core: int | None = None,
    sandbox: Sandbox | None = None,
    watch: Watch | None = None,
    budgets: dict[str, heats_of.Budget] | None = None,
) -> Iterator[list[Trial]]:
    """The trials of each heat, heat after heat, measured as they are asked for.

    `watch` is what is known of quiet moments on this machine, `budgets` the time that each study has for lost rounds.

    A cell whose trials fail more than once is left out of the heats that follow.
    """
    how = {one.study.name: one.study.measure for one in plan.studies}
    failures: Counter[tuple[str, str]] = Counter()
    order = first_order
    watch, budgets = watch or Watch(), {} if budgets is None else budgets
    for drawn in heats:
        heat = _without(drawn, {cell for cell, count in failures.items() if count >= MOST_FAILURES})
        if heat is None:
            yield []
            continue
        trials = heats_of.measure(
            heat,
            how[heat.study],
            plan.seed,
            first_order=order,
            core=core,
            sandbox=sandbox,
            watch=watch,
            budget=budgets.setdefault(heat.study, heats_of.Budget()),
        )
        failures.update((trial.study, trial.cell) for trial in trials if trial.outcome is not Outcome.OK)
        order += len(trials)
        yield trials


def _without(heat: Heat, left_out: Collection[tuple[str, str]]) -> Heat | None:
    """The heat without these cells; None where nothing is left that is to be compared."""
    visits = tuple(visit for visit in heat.visits if (visit.cell.study, visit.cell.key) not in left_out)
    if not visits or (len(visits) < len(heat.visits) and all(v.cell.is_baseline and not v.twin for v in visits)):
        return None
    return replace(heat, visits=visits)
