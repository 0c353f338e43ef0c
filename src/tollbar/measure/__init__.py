"""Measure: prove every cell, then visit each once a block, in a new random order, each visit a fresh process."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tollbar import machine
from tollbar.catalogue import Answer, Standing
from tollbar.plan import Cell, Plan, StudyPlan, Visit, visits
from tollbar.runner import Outcome, Record, ask, failed

__all__ = ["Outcome", "Proven", "Trial", "prove", "trials"]


@dataclass(frozen=True, slots=True)
class Proven:
    """Whether a cell may be measured: it did what it says and refused what it should, or why not."""

    study: str
    cell: str
    outcome: Outcome
    reason: str | None
    known_answers: int
    accepted: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One visit to one cell."""

    study: str
    cell: str
    twin: bool
    block: int
    order: int
    """Its place in the run's sequence of trials."""
    started_s: float
    """Seconds since the epoch."""
    outcome: Outcome
    reason: str | None
    operations: int
    cpu_ns: int
    wall_ns: int
    memory_bytes: int
    """How far the runner's memory grew during its first operation."""
    batches: tuple[tuple[int, int], ...]
    """(operations, CPU nanoseconds) of each batch."""
    steal_ns: int
    """CPU time the hypervisor gave to others during the trial, all cores."""

    @property
    def cost_ns(self) -> float:
        """CPU nanoseconds per operation."""
        return self.cpu_ns / self.operations


# The slowest single proof here is a password hash of a gigabyte, done a handful of times.
PROOF_LIMIT_S = 120.0
# An operation may take seconds (RSA-4096 keys); beyond this a runner hangs.
TRIAL_GRACE_S = 30.0

Ask = Callable[..., Record]


def prove(cells: Iterable[Cell], seed: int, *, ask: Ask = ask) -> Iterator[Proven]:
    """Verifies each cell both ways before its first trial: known answers met, wrong things refused."""
    met: dict[tuple[Any, ...], Record] = {}
    for cell in cells:
        yield _prove(cell, seed, met, ask)


def trials(
    plan: Plan,
    *,
    blocks: Mapping[str, int],
    done: Collection[tuple[str, str, bool, int]],
    barred: Collection[tuple[str, str]],
    first_order: int = 0,
    core: int | None = None,
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
                trial = _visit(visit, study, plan.seed, order, core, ask)
                if trial.outcome is not Outcome.OK:
                    barred.add(key)
                order += 1
                yield trial


def _prove(cell: Cell, seed: int, met: dict[tuple[Any, ...], Record], ask: Ask) -> Proven:
    plain = [answer for answer in cell.choice.answers if not answer.setting]
    # An answer that needs no settings of its own is met in the same process that proves the cell.
    own = _ask_proof(cell, seed, plain[0] if plain else None, ask)
    records = [own]
    for answer in cell.choice.answers:
        if own.outcome is Outcome.OK and answer is not (plain[0] if plain else None):
            # The same answer is good for every cell that differs only in what the answer replaces.
            at = (
                cell.choice.name,
                cell.provider.name,
                cell.coordinates.get("cpu"),
                cell.coordinates["op"],
                id(answer),
            )
            if at not in met:
                met[at] = _ask_proof(cell, seed, answer, ask)
            # A library may lack what one answer needs (RSA-1024, say) and still do what the cell asks.
            if met[at].outcome is not Outcome.UNSUPPORTED:
                records.append(met[at])
    for record in records:
        if record.outcome is not Outcome.OK:
            return Proven(cell.study, cell.key, record.outcome, record.reason, 0, (), ())
    proofs = [record.proof for record in records if record.proof]
    known = sum(proof.answer is not None for proof in proofs)
    accepted = tuple(dict.fromkeys(what for proof in proofs for what in proof.accepted))
    refused = tuple(dict.fromkeys(what for proof in proofs for what in proof.refused))
    if cell.choice.standing is not Standing.NULL and not refused:
        reason = "no proof: nothing wrong was tried and refused"
        return Proven(cell.study, cell.key, Outcome.FAILED, reason, known, accepted, refused)
    return Proven(cell.study, cell.key, Outcome.OK, None, known, accepted, refused)


def _ask_proof(cell: Cell, seed: int, answer: Answer | None, ask: Ask) -> Record:
    record = ask(cell.provider.runner, cell.task("verify", seed, answer), limit_s=PROOF_LIMIT_S)
    if record.outcome is not Outcome.OK:
        return record
    if record.proof is None:
        return failed("the runner verified nothing")
    if not record.receipt.get("provider"):
        return failed("a runner that cannot say its provider's version measures nothing")
    given = record.proof.answer
    if answer is not None and given is not None and given.lower() != answer.expected.lower():
        return failed(f"a wrong answer: {_short(given)} instead of {_short(answer.expected)}")
    return record


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:32]}… ({len(text) // 2} bytes)"


def _visit(visit: Visit, study: StudyPlan, seed: int, order: int, core: int | None, ask: Ask) -> Trial:
    measure = study.study.measure
    # Data differ from block to block, and are the same for all cells of a block.
    task = visit.cell.task("measure", seed + visit.block)
    task |= {"warm_up_s": measure.warm_up_s, "duration_s": measure.trial_s}
    limit_s = TRIAL_GRACE_S + 10 * (measure.warm_up_s + measure.trial_s)
    started_s, steal_before = time.time(), machine.steal_ns()
    record = _believe(ask(visit.cell.provider.runner, task, limit_s=limit_s, core=core))
    return Trial(
        study=visit.cell.study,
        cell=visit.cell.key,
        twin=visit.twin,
        block=visit.block,
        order=order,
        started_s=started_s,
        outcome=record.outcome,
        reason=record.reason,
        operations=record.operations,
        cpu_ns=record.cpu_ns,
        wall_ns=record.wall_ns,
        memory_bytes=record.memory_bytes,
        batches=record.batches,
        steal_ns=machine.steal_ns() - steal_before,
    )


def _believe(record: Record) -> Record:
    """The record, unless what it says cannot be so."""
    if record.outcome is not Outcome.OK:
        return record
    if record.operations < 1 or record.cpu_ns < 1:
        return failed("the runner performed nothing")
    if record.checked != record.operations:
        return failed(f"{record.operations - record.checked} of {record.operations} answers were not checked")
    if sum(count for count, _ in record.batches) != record.operations:
        return failed("the runner's batches do not add up to its operations")
    # More CPU time than all cores could give means another clock than the contract asks for.
    if record.cpu_ns > record.wall_ns * MOST_CORES:
        return failed("more CPU time than the machine has")
    return record


MOST_CORES = 1024
