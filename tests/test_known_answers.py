"""Known answers: each cell meets those of its choice, by itself or by a cell that uses the same code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tollbar import study
from tollbar.catalog.families import Answer
from tollbar.core.records import Outcome, Proof, Proven, Record
from tollbar.lab.workloads import Given
from tollbar.lab.workloads.operation import OperationWorkload
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

STUDY = """
question  = "What does a signature cost?"
family    = "signature"
providers = ["libcrypto"]
choices   = ["none", "rsa-2048"]

[vary]
op    = ["verify"]
bytes = ["64 B", "1 KiB"]
"""

KEYS = ("kept", "from-pem")
# `PLAIN` needs no settings of its own, so it is met where the cell itself is proved; `WITH_SHA_1` needs one.
PLAIN = Answer({"of": "abc"}, "00", {})
WITH_SHA_1 = Answer({"of": "Test"}, "11", {"digest": "sha-1"})

Answers = Callable[[Mapping[str, Any]], Record]


def cells(*answers: Answer) -> list[Cell]:
    """Return RSA in two key forms at two sizes, with these known answers."""
    (one,) = plan.make([study.read("some", STUDY, where="some.toml")], seed=1).studies
    found = [cell for cell in one.cells if cell.choice.name == "rsa-2048"]
    choice = replace(found[0].choice, answers=answers)
    # Imitate a runner in another language, which reads keys in several forms.
    return [
        replace(cell, choice=choice, coordinates={**cell.coordinates, "key": key}) for cell in found for key in KEYS
    ]


def proved(of: Sequence[Cell], says: Answers) -> tuple[list[Proven], list[Mapping[str, Any]]]:
    """Return the proofs of these cells in one run, and every task that their runner was given."""
    tasks: list[Mapping[str, Any]] = []

    def ask(command: Sequence[str], task: Mapping[str, Any], **limits: float) -> Record:
        tasks.append(task)
        return says(task)

    given = Given(None, ask)
    return [OperationWorkload().prove(cell, 1, given) for cell in of], tasks


def right(task: Mapping[str, Any]) -> Record:
    """Return the expected answer, like a correct runner."""
    proof = Proof(answer=task["inputs"].get("expected_hex"), refused=("a tampered message",))
    return Record(outcome=Outcome.OK, receipt={"provider": "a library"}, proof=proof)


def test_an_answer_is_met_in_every_form_of_the_key() -> None:
    """A key read from PEM takes another path through the library than a kept key."""
    of = cells(PLAIN, WITH_SHA_1)
    proven, tasks = proved(of, right)
    assert [(Outcome.OK, 2)] * 4 == [(one.outcome, one.known_answers) for one in proven]
    met = [task["setting"]["key"] for task in tasks if task["inputs"]["expected_hex"] == "11"]
    # One for both sizes: an answer brings its own message.
    assert [*KEYS] == met


def test_a_cell_does_not_pass_by_the_proof_of_another() -> None:

    def says(task: Mapping[str, Any]) -> Record:
        record = right(task)
        if record.proof and task["setting"]["key"] == "from-pem" and record.proof.answer == "11":
            return record.model_copy(update={"proof": record.proof.model_copy(update={"answer": "12"})})
        return record

    of = cells(PLAIN, WITH_SHA_1)
    proven, _ = proved(of, says)
    assert ["from-pem", "from-pem"] == [
        cell.coordinates["key"] for cell, one in zip(of, proven, strict=True) if one.outcome is Outcome.FAILED
    ]


def test_an_answer_that_cannot_be_tried_is_said() -> None:
    """A library may refuse SHA-1 and still do the cell's work; the proof names the untried answer."""

    def says(task: Mapping[str, Any]) -> Record:
        if task["setting"].get("digest") == "sha-1":
            return Record(outcome=Outcome.UNSUPPORTED, reason="SHA-1 signatures are switched off")
        return right(task)

    for one in proved(cells(PLAIN, WITH_SHA_1), says)[0]:
        assert (Outcome.OK, 1) == (one.outcome, one.known_answers)
        assert ("a known answer (digest sha-1): SHA-1 signatures are switched off",) == one.not_tried
