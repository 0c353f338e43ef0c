"""Workload of a runner alone: proved by known answers, measured in its own session."""

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
from tollbar.study.plan.cells import Cell

# The slowest single proof here is a password hash of a gigabyte, done a handful of times.
PROOF_LIMIT_S = 120.0
# Provider that verifies the signatures of the others.
OTHER = "libcrypto"


class OperationWorkload(Workload):
    """Operation performed by the cell's provider as the only process."""

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof: the runner gives each known answer once, and refuses wrong inputs."""
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
            reason = "no proof: no wrong input was tried and refused"
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
        """Yield the runner's work, without starting anything. Each of several threads has a core of its own."""
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
            # A runner is moved with all of its threads, so one with several cores starts on them.
            begins_on=None if cores else begins_on,
        )

    def shown(self, cell: Cell, seed: int) -> Shown:
        """Return the runner's task."""
        return Shown(cell.provider.runner, cell.task("measure", seed))


def beyond_memory(cell: Cell) -> str | None:
    """Return why one operation of the cell exceeds this machine's memory; None if it fits."""
    available = machine.available_memory_bytes()
    if cell.memory_bytes <= available:
        return None
    takes, free = units.show_size(cell.memory_bytes), units.show_bytes(available)
    return f"one operation needs {takes} of memory; {free} are free here"


def _records(cell: Cell, seed: int, given: Given) -> tuple[list[Record], tuple[str, ...]]:
    """Return the cell's own proof and one of each known answer, and the untestable answers with their reasons."""
    answers = cell.choice.answers_of(str(cell.coordinates["op"]))
    # An answer without settings of its own is checked in the same process that proves the cell.
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
        # A library may not support one answer's settings (RSA-1024, for example) and still support the cell.
        if record.outcome is Outcome.UNSUPPORTED:
            unanswered.append(f"a known answer ({_named(answer)}): {record.reason}")
        else:
            records.append(record)
    return records, tuple(unanswered)


def _good_for(cell: Cell, seed: int, answer: Answer) -> tuple[str, ...]:
    """Return the key of the cells that share the proof of a known answer: those with the same task for it.

    The size of a message does not count, because the answer has its own.
    """
    settings = families.family(cell.family).settings
    task = cell.task("verify", seed, answer)
    brought = {name for name in task["setting"] if name in settings and settings[name].is_size} - {*answer.setting}
    same = {name: value for name, value in task["setting"].items() if name not in brought}
    return cell.provider.spec, json.dumps({**task, "setting": same}, sort_keys=True)


def _named(answer: Answer) -> str:
    """Return the name of a known answer among those of its choice: its settings, or else its inputs."""
    if answer.setting:
        return ", ".join(f"{name} {value}" for name, value in answer.setting.items())
    return ", ".join(f"{name} {_short(value)}" for name, value in answer.inputs.items())


def _checked(cell: Cell, made: Made, seed: int, ask: Ask) -> Record:
    """Return the system libcrypto's verdict on a signature: `unsupported` if it cannot check it."""
    other = libraries.open_provider(f"{OTHER}:system")
    if isinstance(other, Broken):
        return failed(other.reason, Outcome.UNSUPPORTED)
    inputs = {"of": made.of, "expected_hex": made.signature_hex, "public_key_der_hex": made.public_key_der_hex}
    task = cell.task("verify", seed) | {"op": "verify", "provider": other.in_task, "inputs": inputs}
    # Only settings that a known answer also has change the result; the others are the provider's own.
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
        return failed("the runner must report its provider's version, because every result names it")
    given = record.proof.answer
    if answer is not None and given is None:
        return failed(f"no answer; it must be {_short(answer.expected)}")
    if answer is not None and given is not None and given.lower() != answer.expected.lower():
        return failed(f"a wrong answer: {_short(given)} instead of {_short(answer.expected)}")
    return record


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:32]}… ({len(text) // 2} bytes)"
