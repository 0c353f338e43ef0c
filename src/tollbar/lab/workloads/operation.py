"""The workload of a runner alone: proved by known answers, measured in its own session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tollbar.catalog import families, libraries
from tollbar.catalog.families import Answer, Standing
from tollbar.catalog.libraries import Broken
from tollbar.core import machine, units
from tollbar.core.records import Made, Outcome, Proven, Record, failed
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Ask, Given, Shown, Work, Workload, unproven
from tollbar.study.plan import Cell

# The slowest single proof here is a password hash of a gigabyte, done a handful of times.
PROOF_LIMIT_S = 120.0
# Verifies the signatures that others make.
OTHER = "libcrypto"


class OperationWorkload(Workload):
    """The cell's provider performs the operation, and is the only process."""

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Has the runner do it once with each known answer, and refuse what is wrong."""
        if cell.provider.fault:
            return unproven(cell, *cell.provider.fault)
        too_large = beyond_memory(cell)
        if too_large:
            return unproven(cell, Outcome.UNSUPPORTED, too_large)
        records, unanswered = _records(cell, seed, given)
        for record in records:
            if record.outcome is not Outcome.OK:
                return unproven(cell, record.outcome, record.reason)
        proofs = [record.proof for record in records if record.proof]
        known = sum(proof.answer is not None for proof in proofs)
        accepted = tuple(dict.fromkeys(what for proof in proofs for what in proof.accepted))
        refused = tuple(dict.fromkeys(what for proof in proofs for what in proof.refused))
        not_tried = tuple(dict.fromkeys(what for proof in proofs for what in proof.not_tried)) + unanswered
        if cell.standing is not Standing.NULL and not refused:
            reason = "no proof: nothing wrong was tried and refused"
            return Proven(cell.study, cell.key, Outcome.FAILED, reason, known, accepted, refused, not_tried)
        made = next((proof.made for proof in proofs if proof.made), None)
        if made is not None and cell.provider.kind != OTHER:
            checked = _checked(cell, made, seed, given.ask)
            if checked.outcome is Outcome.FAILED:
                return unproven(
                    cell, checked.outcome, f"another implementation refuses its signature: {checked.reason}"
                )
            theirs = f"its signature, verified by {checked.receipt.get('name', OTHER)}"
            if checked.outcome is Outcome.OK:
                accepted += (theirs,)
            else:
                not_tried += (f"{theirs}: {checked.reason}",)
        return Proven(cell.study, cell.key, Outcome.OK, None, known, accepted, refused, not_tried)

    @contextmanager
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> Iterator[Work]:
        """Starts nothing: the runner is all there is. Of several threads each is kept on a core of its own."""
        cores = machine.cores_for(cell.threads, core) if "threads" in cell.coordinates and core is not None else ()
        task = cell.task("measure", seed)
        yield Work(
            cell.provider.runner,
            {**task, "cores": [*cores]} if cores else task,
            core,
            paid_on=core,
            cores=cores,
            threads=cell.threads,
            metrics=tuple(families.family(cell.family).metrics),
            # A runner that is moved is moved with all of its threads.
            begins_on=None if cores else begins_on,
        )

    def shown(self, cell: Cell, seed: int) -> Shown:
        """The runner's task."""
        return Shown(cell.provider.runner, cell.task("measure", seed))


def beyond_memory(cell: Cell) -> str | None:
    """Why one operation of the cell cannot be done in this machine's memory; None: it can."""
    available = machine.available_memory_bytes()
    if cell.memory_bytes <= available:
        return None
    takes, free = units.show_size(cell.memory_bytes), units.show_bytes(available)
    return f"one operation takes {takes} of memory, and {free} are free here"


def _records(cell: Cell, seed: int, given: Given) -> tuple[list[Record], tuple[str, ...]]:
    """The cell's own proof and one of each known answer; and the answers that could not be tried, each with why."""
    answers = cell.choice.answers_of(str(cell.coordinates["op"]))
    # An answer that needs no settings of its own is met in the same process that proves the cell.
    first = next((answer for answer in answers if not answer.setting), None)
    records = [_ask_proof(cell, seed, first, given.ask)]
    if records[0].outcome is not Outcome.OK:
        return records, ()
    unanswered: list[str] = []
    for answer in answers:
        if answer is first:
            continue
        at = _good_for(cell, seed, answer)
        if at not in given.verified:
            given.verified[at] = _ask_proof(cell, seed, answer, given.ask)
        record = given.verified[at]
        # A library may lack what one answer needs (RSA-1024, say) and still do what the cell asks.
        if record.outcome is Outcome.UNSUPPORTED:
            unanswered.append(f"a known answer ({_named(answer)}): {record.reason}")
        else:
            records.append(record)
    return records, tuple(unanswered)


def _good_for(cell: Cell, seed: int, answer: Answer) -> tuple[str, ...]:
    """Whose proof a known answer is: of all cells that give their runner the same task for it.

    The size of a message is none of that, as the answer brings its own.
    """
    settings = families.family(cell.family).settings
    task = cell.task("verify", seed, answer)
    brought = {name for name in task["setting"] if name in settings and settings[name].is_size} - {*answer.setting}
    same = {name: value for name, value in task["setting"].items() if name not in brought}
    return cell.provider.spec, json.dumps({**task, "setting": same}, sort_keys=True)


def _named(answer: Answer) -> str:
    """By what tells a known answer from the others of its choice: its settings, or else what it is the answer of."""
    if answer.setting:
        return ", ".join(f"{name} {value}" for name, value in answer.setting.items())
    return ", ".join(f"{name} {_short(value)}" for name, value in answer.inputs.items())


def _checked(cell: Cell, made: Made, seed: int, ask: Ask) -> Record:
    """What the system's libcrypto makes of a signature: `unsupported` where it cannot be asked."""
    other = libraries.open_provider(f"{OTHER}:system")
    if isinstance(other, Broken):
        return failed(other.reason, Outcome.UNSUPPORTED)
    inputs = {"of": made.of, "expected_hex": made.signature_hex, "public_key_der_hex": made.public_key_der_hex}
    task = cell.task("verify", seed) | {"op": "verify", "provider": other.in_task, "inputs": inputs}
    # Of its settings, those that a known answer asks for change what is right; the others are how the cell comes by it.
    meant = {name for answer in cell.choice.answers for name in answer.setting}
    task["setting"] = {name: value for name, value in task["setting"].items() if name in meant}
    return ask(other.runner, task, limit_s=PROOF_LIMIT_S)


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
