"""A cell that a runner measures by itself: proved by known answers, measured by the runner's own clock."""

from __future__ import annotations

from typing import Any

from tollbar.catalogue import Answer, Standing
from tollbar.measure.trial import Ask, Proven, unproven
from tollbar.plan import Cell, Visit
from tollbar.runner import Outcome, Record, failed
from tollbar.study import Measure

# The slowest single proof here is a password hash of a gigabyte, done a handful of times.
PROOF_LIMIT_S = 120.0
# An operation may take seconds (RSA-4096 keys); beyond this a runner hangs.
TRIAL_GRACE_S = 30.0

Met = dict[tuple[Any, ...], Record]
"""Records of known answers that were met already, by what they are good for."""


def prove(cell: Cell, seed: int, met: Met, ask: Ask) -> Proven:
    """Has the runner do it once with each known answer, and refuse what is wrong."""
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
            return unproven(cell, record.outcome, record.reason)
    proofs = [record.proof for record in records if record.proof]
    known = sum(proof.answer is not None for proof in proofs)
    accepted = tuple(dict.fromkeys(what for proof in proofs for what in proof.accepted))
    refused = tuple(dict.fromkeys(what for proof in proofs for what in proof.refused))
    if cell.standing is not Standing.NULL and not refused:
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


def measure(visit: Visit, how: Measure, seed: int, core: int | None, ask: Ask) -> Record:
    """One trial by the cell's runner."""
    # Data differ from block to block, and are the same for all cells of a block.
    task = visit.cell.task("measure", seed + visit.block)
    task |= {"warm_up_s": how.warm_up_s, "duration_s": how.trial_s}
    limit_s = TRIAL_GRACE_S + 10 * (how.warm_up_s + how.trial_s)
    return _believe(ask(visit.cell.provider.runner, task, limit_s=limit_s, core=core))


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
