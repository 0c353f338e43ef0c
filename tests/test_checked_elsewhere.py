"""A randomised signature is verified by another implementation before anything is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tollbar import study
from tollbar.catalog import libraries
from tollbar.catalog.libraries import Broken
from tollbar.core.records import Made, Outcome, Proof, Proven, Record
from tollbar.core.runner import ask as ask_for_real
from tollbar.lab.workloads import Given
from tollbar.lab.workloads.operation import OperationWorkload
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

STUDY = """
question  = "What does a signature cost?"
family    = "signature"
providers = ["libcrypto"]
choices   = ["none", "ecdsa-p256"]
vary      = { op = ["sign"] }
"""


@pytest.fixture
def cell() -> Cell:
    """Return a cell whose provider is another library than the libcrypto that checks it."""
    (one,) = plan.make([study.read("some", STUDY, where="some.toml")], seed=1).studies
    cell = one.cells[1]
    return replace(cell, provider=replace(cell.provider, kind="python", spec="python", runner=("python-runner",)))


def made_over(message: bytes) -> Made:
    """Return a signature of this message, labelled as a signature of `tollbar`."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    signature = key.sign(message, ec.ECDSA(hashes.SHA256()))
    return Made(of="tollbar", signature_hex=signature.hex(), public_key_der_hex=public.hex())


def proved(cell: Cell, made: Made | None) -> Proven:
    """Return the proof for a runner that proves itself and returns this signature; the engine is the real one."""

    def ask(command: Sequence[str], task: Mapping[str, Any], **limits: float) -> Record:
        if command != cell.provider.runner:
            return ask_for_real(command, task, **limits)
        proof = Proof(answer=task["inputs"].get("expected_hex"), refused=("a tampered message",), made=made)
        return Record(outcome=Outcome.OK, receipt={"provider": "Python 3"}, proof=proof)

    return OperationWorkload().prove(cell, 1, Given(None, ask))


def test_a_right_signature_is_accepted_by_another_implementation(cell: Cell) -> None:
    proven = proved(cell, made_over(b"tollbar"))
    assert (Outcome.OK, None) == (proven.outcome, proven.reason)
    assert [one for one in proven.accepted if one.startswith("its signature, verified by openssl")]


def test_a_signature_of_something_else_bars_the_cell(cell: Cell) -> None:
    proven = proved(cell, made_over(b"another"))
    assert Outcome.FAILED == proven.outcome
    assert "another implementation refuses its signature" in (proven.reason or "")


def test_without_another_implementation_it_is_said(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    broken: Callable[[str], Broken] = lambda spec: Broken(spec, None, "no libcrypto on this machine")  # noqa: E731
    monkeypatch.setattr(libraries, "open_provider", broken)
    proven = proved(cell, made_over(b"another"))
    assert Outcome.OK == proven.outcome
    assert ("its signature, verified by libcrypto: no libcrypto on this machine",) == proven.not_tried
