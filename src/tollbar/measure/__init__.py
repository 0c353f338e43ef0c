"""Measure: prove every cell, then visit each once a block, in a new random order, each visit a fresh process."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tollbar import machine
from tollbar.beds.premises import Premises
from tollbar.measure import primitive, served
from tollbar.measure.served import configuration_of, load_task_shown
from tollbar.measure.trial import Ask, Proven, Trial, trial_of
from tollbar.plan import Cell, Plan, Visit, visits
from tollbar.runner import Outcome, Record, ask
from tollbar.study import Measure

__all__ = [
    "Outcome",
    "Proven",
    "Trial",
    "configuration_of",
    "load_task_shown",
    "premises_for",
    "prove",
    "trials",
]


def premises_for(plan: Plan, logs: Path | None = None) -> AbstractContextManager[Premises | None]:
    """Where the servers of a plan live while it is proved and measured; nothing, where it needs none."""
    cells = (cell for study in plan.studies for cell in study.cells)
    if any(cell.service is not None and cell.service.bed is not None for cell in cells):
        return Premises(logs)
    return nullcontext()


def prove(cells: Iterable[Cell], seed: int, *, premises: Premises | None = None, ask: Ask = ask) -> Iterator[Proven]:
    """Verifies each cell both ways before its first trial: right things accepted, wrong things refused.

    `premises` are where servers live; cells that are measured through one need them.
    """
    met: primitive.Met = {}
    for cell in cells:
        if cell.service is None:
            yield primitive.prove(cell, seed, met, ask)
        else:
            yield served.prove(cell, cell.service, seed, met, premises, ask)


def trials(
    plan: Plan,
    *,
    blocks: Mapping[str, int],
    done: Collection[tuple[str, str, bool, int]],
    barred: Collection[tuple[str, str]],
    first_order: int = 0,
    core: int | None = None,
    premises: Premises | None = None,
    ask: Ask = ask,
) -> Iterator[Trial]:
    """Every trial that is still to be made, block by block, each measured as it is asked for.

    `done` holds (study, cell, twin, block) of trials that are there already, `barred` (study, cell) of cells
    that may not be measured. A cell that fails is barred from then on: what it cost would mean nothing.
    """
    barred = set(barred)
    order = first_order
    for study in plan.studies:
        for block in range(blocks[study.study.name]):
            for visit in visits(study, plan.seed, block):
                key = (visit.cell.study, visit.cell.key)
                if key in barred or (*key, visit.twin, block) in done:
                    continue
                started_s, steal_before = time.time(), machine.steal_ns()
                record = _measure(visit, study.study.measure, plan.seed, core, premises, ask)
                steal_ns = machine.steal_ns() - steal_before
                trial = trial_of(
                    visit, order, record, started_s=started_s, steal_ns=steal_ns, machine_load=machine.load()
                )
                if trial.outcome is not Outcome.OK:
                    barred.add(key)
                order += 1
                yield trial


def _measure(visit: Visit, how: Measure, seed: int, core: int | None, premises: Premises | None, ask: Ask) -> Record:
    if visit.cell.service is None:
        return primitive.measure(visit, how, seed, core, ask)
    return served.measure(visit, visit.cell.service, how, seed, core, premises, ask)
