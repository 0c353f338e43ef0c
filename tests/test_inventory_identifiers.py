"""Inventories: an unknown object identifier meets no policy, whatever its arc and label."""

from __future__ import annotations

import pytest

from test_inventory import algorithm
from test_inventory_contradictions import one
from test_price_weak import line
from tollbar.catalog.policies import Ruling

UNKNOWN = [
    # Ukraine, Belarus, the BSI, IBM, Bouncy Castle, OQS, a company, and arcs that contain known identifiers.
    "1.2.804.2.1.1.1.1.1.3", "1.2.804.2.1.1.1.1.2.2.1", "1.2.112.0.2.0.34.101.31.81", "1.2.112.0.2.0.34.101.45.12",
    "0.4.0.127.0.7.2.2.2.2.3", "0.4.0.127.0.7.1.1.5.1.1.3", "1.3.6.1.4.1.2.267.12.6.5", "1.3.6.1.4.1.22554.5.6.2",
    "1.3.9999.3.6", "1.3.9999.7.1", "1.2.3.4", "1.3.6.1.4.1.99999.1", "2.16.840.1.101.3.4.1.99", "2.999",
    "0.4.0.1862.1.1", "2.16.840.1.113719.1.2.8.999", "aes-256-gcm",
]  # fmt: skip


@pytest.mark.parametrize("oid", UNKNOWN)
@pytest.mark.parametrize("name", ["AES-256-GCM", "SHA-384", "Ed25519", "ML-KEM-1024", "HMAC-SHA-256", "ffdhe3072"])
def test_an_unknown_identifier_meets_no_policy(name: str, oid: str) -> None:
    found = line(algorithm(name, oid=oid))
    assert Ruling.CANNOT_SAY is found.ruling
    assert f"`{oid}` in its oid is not known here" == found.reason


@pytest.mark.parametrize("name", ["MD5", "RC4", "DES-CBC", "RSA-1024", "SHA1withRSA", "Blowfish", "DES"])
@pytest.mark.parametrize("oid", ["1.2.3.4", "1.3.9999.3.6"])
def test_a_weak_name_is_weak_with_an_unknown_identifier(name: str, oid: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name, oid=oid)).ruling


@pytest.mark.parametrize(
    "oid",
    [
        "2.16.840.1.101.3.4.1.46", "urn:oid:2.16.840.1.101.3.4.1.46", "2.16.840.1.101.3.4.1.46 (aes256-GCM)",
        "2.16.840.1.101.3.4.1.46.", ".2.16.840.1.101.3.4.1.46", "OID.2.16.840.1.101.3.4.1.46", "N/A", "unknown", "",
    ],
)  # fmt: skip
def test_the_notations_of_an_identifier_are_one_identifier(oid: str) -> None:
    assert "cipher aes-256-gcm" == one(algorithm("AES-256-GCM", oid=oid))


@pytest.mark.parametrize(
    ("oid", "expected"),
    [
        ("1.2.840.113549.1.3.1", "? its group is not given"),
        ("1.3.6.1.4.1.3029.1.1.2", "cipher blowfish"),
        ("1.3.36.3.1.1", "? its mode of operation is not given"),
        ("2.23.43.1.4.7", "signature ecdsa-secp160 + key-exchange ecdh-secp160"),
        ("1.3.36.3.3.2.8.1.1.3", "signature ecdsa-brainpoolp192"),
        ("2.16.840.1.101.3.4.3.40", "? a pre-hashed signature"),
        ("1.2.840.113549.1.9.16.3.28", "? Tollbar has no family of key derivation"),
        ("2.5.8.3.101", "digest mdc2"),
        # cdxgen writes it for SHA-1.
        ("2.16.840.1.113719.1.2.8.82", "digest sha-1"),
    ],
)
def test_an_identifier_is_its_algorithm(oid: str, expected: str) -> None:
    assert one(algorithm("label", oid=oid)).startswith(expected)


@pytest.mark.parametrize(
    ("name", "parameter", "choice"),
    [
        ("ECDSA", "1.2.840.10045.3.1.7", "signature ecdsa-p256"),
        ("ECDH", "1.3.132.0.34", "key-exchange ecdh-p384"),
        ("ECDSA", "urn:oid:1.3.132.0.35", "signature ecdsa-p521"),
        ("ECDSA", "1.3.132.0.10", "? Tollbar's family signature has no ecdsa-secp256k1"),
        ("ECDSA-P-256", "1.3.132.0.34", "? its name says p256, and its parameter says p384"),
        ("AES-256-GCM", "1.2.840.10045.3.1.7", "? its name says aes, and its parameter says ec"),
        ("ecdh-sha2-1.3.132.0.10", "", "? Tollbar's family key-exchange has no ecdh-secp256k1"),
        ("ecdh-sha2-1.2.840.10045.3.1.1", "", "key-exchange ecdh-p192"),
        ("ecdh-sha2-1.3.132.0.99", "", "? `1` in its name is not known here"),
    ],
)
def test_an_identifier_of_a_curve_is_the_curve(name: str, parameter: str, choice: str) -> None:
    properties = {"parameterSetIdentifier": parameter} if parameter else {}
    assert choice == one(algorithm(name, **properties))
