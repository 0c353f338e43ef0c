"""Inventories: identifiers of weak algorithms, and names of libraries that were mistaken for others."""

from __future__ import annotations

import pytest

from test_inventory import algorithm, made, words
from test_inventory_contradictions import one
from test_price import priced
from tollbar.catalog.policies import Ruling
from tollbar.decide.price.mapping import mapped
from tollbar.decide.price.table import table

WEAK = (
    *(f"1.2.840.113549.1.5.{last}" for last in (1, 3, 4, 6, 10, 11)),
    *(f"1.2.840.113549.1.12.1.{last}" for last in range(1, 7)),
    *(f"1.3.14.3.2.{last}" for last in (2, 3, 4, 6, 7, 8, 9, 12, 24, 25, 26, 27, 28)),
    *(f"1.3.132.0.{last}" for last in (6, 7, 8, 9, 28, 29, 30, 31)),
    "1.3.6.1.4.1.188.7.1.1.2",
    "1.2.840.113549.2.5",
)


@pytest.mark.parametrize("oid", WEAK)
def test_an_identifier_of_what_is_weak_breaks_a_policy(oid: str) -> None:
    (line,) = priced(algorithm("label", oid=oid), policy=("asvs-level-2-5.0.0",)).lines
    assert line.ruling is Ruling.BREAKS or line.is_bad
    for name in ("SHA-256", "AES-256-GCM", "Ed25519"):
        (line,) = priced(algorithm(name, oid=oid), policy=("asvs-level-2-5.0.0",)).lines
        assert line.ruling is not Ruling.MEETS


def test_each_identifier_is_known_by_all_of_its_name() -> None:
    for oid in table().oid:
        (found,) = mapped(made(algorithm("label", oid=oid)))
        assert "not known here" not in str(found.reason), (oid, words(found))


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("OpenSSL::Digest::MD5", {"primitive": "hash"}, "digest md5"),
        ("Digest::MD5", {"primitive": "hash"}, "digest md5"),
        ("OpenSSL::Digest::SHA256", {"primitive": "hash"}, "digest sha-256"),
        ("kCCHmacAlgSHA256", {"primitive": "mac"}, "mac hmac-sha-256"),
        ("kCCHmacAlgMD5", {"primitive": "mac"}, "mac hmac-md5"),
        ("Curve25519.Signing", {"primitive": "signature"}, "signature ed25519"),
        ("Curve25519.KeyAgreement", {"primitive": "key-agree"}, "key-exchange x25519"),
        ("SHA-2", {"primitive": "hash", "parameterSetIdentifier": "512/256"}, "digest sha-512-256"),
        ("hash", {"algorithmFamily": "SHA-2", "parameterSetIdentifier": "512/256"}, "digest sha-512-256"),
        ("SHA-2", {"primitive": "hash", "parameterSetIdentifier": "256"}, "digest sha-256"),
        ("c", {"oid": "1.2.840.113549.1.9.16.3.18"}, "cipher chacha20-poly1305"),
        ("ECC_SECG_P256K1", {"primitive": "signature"}, "? Tollbar's family signature has no ecdsa-secp256k1"),
        ("cv25519", {}, "key-exchange x25519"),
        ("P256Kyber768Draft00", {}, "? a hybrid with Kyber, the draft of ML-KEM"),
        ("DIGEST-MD5", {}, "? a way to sign in: `tollbar list choices web-auth` and `database-sign-on` have the ones"),
    ],
)
def test_a_name_of_a_library_is_what_it_calls(name: str, more: dict[str, str], expected: str) -> None:
    assert one(algorithm(name, **more)).startswith(expected)


@pytest.mark.parametrize("name", ["SHA-512", "SHA-384", "SHA3-512", "AES-256-GCM"])
def test_two_numbers_truncate_no_hash_but_that_of_a_family(name: str) -> None:
    assert "sha-512-256" not in one(algorithm(name, parameterSetIdentifier="512/256"))


@pytest.mark.parametrize("name", ["DSANSEC3SHA1", "DSA-NSEC3-SHA1", "SIKE-p434", "SIKEp751", "SIDH-p503", "LANMAN"])
def test_a_name_of_what_is_broken_breaks_a_policy(name: str) -> None:
    (line,) = priced(algorithm(name), policy=("asvs-level-2-5.0.0",)).lines
    assert Ruling.BREAKS is line.ruling
