"""Inventories: the whole text of a curve counts, and a curve of another purpose is no key exchange."""

from __future__ import annotations

import pytest

from test_inventory import algorithm
from test_inventory_contradictions import one
from test_price_weak import line
from tollbar.catalog.policies import Ruling


@pytest.mark.parametrize(
    "curve",
    [
        "secp256r1 twisted", "P-256 (invalid)", "not P-256", "P-256 with SHA-1", "P-256 MD5", "P-256 384",
        "P-256/P-384", "P-256 AES", "prime256v1 Koblitz", "Oakley 3", "Curve1174 P-256", "P-256 size=2^100",
        "1.2.3.4.5", "1.3.36.3.3.2.8.1.1.99",
    ],
)  # fmt: skip
def test_a_word_next_to_a_curve_keeps_it_from_meeting_a_policy(curve: str) -> None:
    for key in ("curve", "ellipticCurve"):
        for name in ("ECDSA-SHA-256", "ECDSA-P-256-SHA-256"):
            found = line(algorithm(name, **{key: curve}))
            assert Ruling.CANNOT_SAY is found.ruling
            assert not found.uses


@pytest.mark.parametrize(
    "curve",
    [
        "P-256", "NIST P-256", "nist/P-256", "secp256r1 (23)", "secp256r1 (0x0017)", "P-256 (256 bits)", "EC P-256",
        "prime256v1, secp256r1, NIST P-256", "elliptic curve secp256r1", "1.2.840.10045.3.1.7",
    ],
)  # fmt: skip
def test_the_spellings_of_a_curve_are_one_curve(curve: str) -> None:
    assert "signature ecdsa-p256 digest=sha-256" == one(algorithm("ECDSA-SHA-256", ellipticCurve=curve))


@pytest.mark.parametrize("curve", ["NIST", "EC", "ECC", "elliptic curve", "named curve", "SECG"])
def test_a_class_of_curves_says_nothing(curve: str) -> None:
    assert "signature ecdsa-p384" == one(algorithm("ECDSA-P-384", ellipticCurve=curve))
    assert "? its curve is not given" == one(algorithm("ECDSA", ellipticCurve=curve))
    assert "digest sha-256" == one(algorithm("SHA-256", ellipticCurve=curve))


@pytest.mark.parametrize("name", ["WTLS1", "wtls6", "WTLS7", "wtls9", "wap-wsg-idm-ecid-wtls4"])
def test_a_curve_of_wtls_is_small(name: str) -> None:
    for component in (algorithm(name), algorithm("ECDSA", ellipticCurve=name)):
        assert Ruling.BREAKS is line(component).ruling


@pytest.mark.parametrize(("name", "choice"), [("Edwards25519", "ed25519"), ("Edwards448", "ed448")])
def test_a_curve_of_signatures_is_no_key_exchange(name: str, choice: str) -> None:
    assert f"signature {choice}" == one(algorithm(name))
    assert f"signature {choice}" == one(algorithm("EdDSA", curve=name))
