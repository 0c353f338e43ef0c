"""Objects of a TLS client: contexts with trust anchors, connections, and fresh processes up to a handshake."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tollbar import study
from tollbar.catalog.families import families
from tollbar.core.records import Outcome, Proven
from tollbar.core.runner import Session
from tollbar.lab import workloads
from tollbar.lab.workloads import Given
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

MAKING = """
question  = "What does a TLS client make?"
family    = "tls-client"
providers = ["{provider}"]
choices   = ["none", "system-trust", "no-trust"]
baseline  = "none"
"""
CHOICES = ("none", "system-trust", "no-trust")
OPERATIONS = ("context", "connection", "first")
STEPS = ("library", "context", "handshake")
BEGIN = "-----BEGIN CERTIFICATE-----"


def cells(provider: str = "libcrypto") -> dict[tuple[str, ...], Cell]:
    """Return each cell by its choice, its operation, and how far its fresh process goes."""
    (one,) = plan.make([study.read("some", MAKING.format(provider=provider), where="some.toml")], seed=1).studies
    first = study.read(
        "some",
        MAKING.format(provider=provider) + f'vary = {{ op = ["first"], until = {[*STEPS]} }}\n',
        where="some.toml",
    )
    found = (*one.cells, *plan.make([first], seed=1).cells)
    return {
        tuple(str(cell.coordinates[name]) for name in ("choice", "op", "until") if name in cell.coordinates): cell
        for cell in found
    }


def proven(cell: Cell) -> Proven:
    return workloads.of(cell).prove(cell, 7, Given(None))


def certificates() -> list[str]:
    """Return the server's own certificate, and its authority's."""
    pem = str(families()["tls-client"].choices["system-trust"].inputs["private_key_pem"])
    return [BEGIN + part for part in pem.split(BEGIN)[1:]]


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a trust store with one certificate twice."""
    path = tmp_path / "bundle.pem"
    path.write_text(certificates()[0] * 2)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


@pytest.mark.usefixtures("bundle")
@pytest.mark.parametrize(("choice", "op"), list(product(CHOICES[1:], OPERATIONS[:2])))
def test_a_context_has_the_trust_anchors_of_its_choice(choice: str, op: str) -> None:
    found = proven(cells()[choice, op])
    assert (Outcome.OK, None) == (found.outcome, found.reason)
    assert f"a context of {1 if choice == 'system-trust' else 0} trust anchors" in found.accepted
    assert "a trust store without a certificate" in found.refused


@pytest.mark.usefixtures("bundle")
@pytest.mark.parametrize(("choice", "until"), list(product(CHOICES[1:], STEPS)))
def test_a_fresh_process_goes_as_far_as_it_says(choice: str, until: str) -> None:
    found = proven(cells()[choice, "first", until])
    assert (Outcome.OK, None) == (found.outcome, found.reason)
    anchors = (choice == "system-trust" and until != "library") + (until == "handshake")
    assert (f"a fresh process up to its {until}, trust anchors: {anchors}",) == found.accepted
    others = ("a server that no trust anchor has signed",) if until == "handshake" else ()
    assert ("a library that is not there", *others) == found.refused


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_a_fresh_process_too(step: str) -> None:
    """The null choice of `first` starts a process that ends at once, and its CPU time is counted."""
    cell = cells()["none", "first", step]
    assert ("a process that does nothing",) == proven(cell).accepted
    with Session(cell.provider.runner, cell.task("measure", 7)) as session:
        session.ready(30.0)
        chunk = session.advance(0.0, 3, 30.0)
        assert 3 == chunk.operations
        assert Outcome.OK is session.finish().outcome


def test_a_trust_store_without_certificates_is_told(bundle: Path) -> None:
    bundle.write_text("no certificate\n")
    for at in (("system-trust", "context"), ("system-trust", "first", "handshake")):
        found = proven(cells()[at])
        assert Outcome.FAILED is found.outcome
        assert "SSL_CTX_load_verify_locations" in (found.reason or "")


def test_a_library_without_a_libssl_beside_it_says_so() -> None:
    """AWS-LC is built in, without a libssl."""
    found = proven(cells("aws-lc")["system-trust", "context"])
    assert Outcome.UNSUPPORTED is found.outcome
