"""A cell that a runner measures by itself: how it is proved by known answers, and its session."""

from __future__ import annotations

from typing import Any

from tollbar.families import Answer, Standing
from tollbar.measure.trial import Ask, Proven, unproven
from tollbar.plan import Cell
from tollbar.runner import Outcome, Record, failed

# The slowest single proof here is a password hash of a gigabyte, done a handful of times.
PROOF_LIMIT_S = 120.0

VerifiedAnswers = dict[tuple[Any, ...], Record]
"""Records of known answers that were met already, by what they are good for."""


def prove(cell: Cell, seed: int, met: VerifiedAnswers, ask: Ask) -> Proven:
    """Has the runner do it once with each known answer, and refuse what is wrong."""
    answers = cell.choice.answers_of(str(cell.coordinates["op"]))
    plain = [answer for answer in answers if not answer.setting]
    # An answer that needs no settings of its own is met in the same process that proves the cell.
    own = _ask_proof(cell, seed, plain[0] if plain else None, ask)
    records = [own]
    for answer in answers:
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
    not_tried = tuple(dict.fromkeys(what for proof in proofs for what in proof.not_tried))
    if cell.standing is not Standing.NULL and not refused:
        reason = "no proof: nothing wrong was tried and refused"
        return Proven(cell.study, cell.key, Outcome.FAILED, reason, known, accepted, refused, not_tried)
    return Proven(cell.study, cell.key, Outcome.OK, None, known, accepted, refused, not_tried)


def _ask_proof(cell: Cell, seed: int, answer: Answer | None, ask: Ask) -> Record:
    record = ask(cell.provider.runner, cell.task("verify", seed, answer), limit_s=PROOF_LIMIT_S)
    if record.outcome is not Outcome.OK:
        return record
    if record.proof is None:
        return failed("the runner verified nothing")
    if not record.receipt.get("provider"):
        return failed("a runner that cannot say its provider's version measures nothing")
    given = record.proof.answer
    if answer is not None and given is None:
        return failed(f"no answer, where a known one must come: {_short(answer.expected)}")
    if answer is not None and given is not None and given.lower() != answer.expected.lower():
        return failed(f"a wrong answer: {_short(given)} instead of {_short(answer.expected)}")
    return record


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:32]}… ({len(text) // 2} bytes)"


def task(cell: Cell, seed: int) -> dict[str, Any]:
    """What the cell's runner is told before it is advanced."""
    return cell.task("measure", seed)
