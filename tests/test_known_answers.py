"""Every known answer of the primitives, as the libraries of this machine compute it."""

from __future__ import annotations

import pytest

from tollbar import study
from tollbar.catalog.families import families
from tollbar.core.records import Outcome
from tollbar.lab import measure
from tollbar.study import plan

# Families whose answers a provider computes by itself, with the operation that shows them.
OPERATIONS = {"digest": "hash", "mac": "authenticate", "signature": "verify"}
STUDY = """
question  = "Does each library give the known answers?"
family    = "{family}"
choices   = [{choices}]
providers = ["libcrypto", "libcrypto:psycopg", "aws-lc", "rustcrypto"]

[vary]
op = ["{op}"]
"""


@pytest.mark.parametrize("family", OPERATIONS)
def test_each_known_answer_is_computed_by_a_library(family: str) -> None:
    known = [name for name, choice in families()[family].choices.items() if choice.answers]
    text = STUDY.format(family=family, op=OPERATIONS[family], choices=", ".join(f'"{name}"' for name in known))
    (planned,) = plan.make([study.read("answers", text, where="test")], seed=1).studies
    proofs = [(cell, proof) for cell, proof in zip(planned.cells, measure.prove(planned.cells, 1), strict=True)]
    wrong = {cell.key: proof.reason for cell, proof in proofs if proof.outcome is Outcome.FAILED}
    assert {} == wrong
    assert {*known} == {cell.choice.name for cell, proof in proofs if proof.outcome is Outcome.OK}
