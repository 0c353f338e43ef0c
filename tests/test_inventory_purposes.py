"""Inventories: a function that an algorithm cannot have, keys of SSH that sign, and RSA as a KEM."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, words
from test_inventory_contradictions import one
from test_inventory_names import found
from test_price_weak import line
from tollbar.catalog.policies import Ruling

NIST, CNSA = "sp800-131a-2024-11", "cnsa-2.0-2024-12"


@pytest.mark.parametrize(
    ("name", "functions", "says"),
    [
        ("Ed25519", ["encapsulate"], "ed25519"),
        ("Ed25519", ["keyderive"], "ed25519"),
        ("Ed448", ["sign", "decrypt"], "ed448"),
        ("ECDSA-P-256-SHA-256", ["keygen", "encrypt"], "ecdsa-p256"),
        ("ML-DSA-65", ["decapsulate"], "ml-dsa-65"),
        ("SLH-DSA-SHA2-128s", ["encrypt"], "slh-dsa-128s"),
        ("X25519", ["sign"], "x25519"),
        ("ML-KEM-768", ["verify"], "ml-kem-768"),
        ("ffdhe3072", ["sign", "verify"], "ffdhe3072"),
        ("SHA-256", ["encrypt"], "sha-256"),
        ("SHA3-512", ["decapsulate"], "sha3-512"),
        ("AES-256-GCM", ["sign"], "aes-256-gcm"),
        ("ChaCha20-Poly1305", ["digest"], "chacha20-poly1305"),
        ("HMAC-SHA-256", ["encrypt"], "hmac-sha-256"),
        ("KMAC128", ["decrypt"], "kmac-128"),
    ],
)
def test_a_function_that_an_algorithm_cannot_have_is_a_contradiction(
    name: str, functions: list[str], says: str
) -> None:
    told = one(algorithm(name, cryptoFunctions=functions))
    assert told.startswith("? its functions say ")
    assert told.endswith(f"and its name says {says}")
    assert Ruling.CANNOT_SAY is line(algorithm(name, cryptoFunctions=functions)).ruling


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        ("Ed25519", ["keygen", "sign", "verify"]), ("X25519", ["generate", "keyderive"]),
        ("ML-KEM-768", ["encapsulate"]),
        ("HMAC-SHA-256", ["tag", "verify"]), ("HMAC-SHA-256", ["sign"]), ("AES-256-GCM", ["encrypt", "decrypt", "tag"]),
        ("SHA-256", ["digest"]), ("SHA-256", ["other", "unknown"]), ("RSA-2048", ["sign", "decrypt"]),
        ("P-256", ["sign", "keyderive"]), ("PBKDF2-HMAC-SHA256", ["keyderive"]),
    ],
)  # fmt: skip
def test_a_function_of_an_algorithm_changes_nothing(name: str, functions: list[str]) -> None:
    assert not one(algorithm(name, cryptoFunctions=functions)).startswith("?")


def test_what_is_broken_with_any_function_stays_broken() -> None:
    for name, function in (("RC4", "sign"), ("MD5", "encrypt"), ("DES-CBC", "digest")):
        assert Ruling.BREAKS is line(algorithm(name, cryptoFunctions=[function])).ruling


@pytest.mark.parametrize(
    "properties", [{"primitive": "signature"}, {"cryptoFunctions": ["sign"]}, {"cryptoFunctions": ["verify"]}]
)
@pytest.mark.parametrize(
    ("name", "size", "hash_"), [("rsa2048-sha256", 2048, "sha-256"), ("rsa1024-sha1", 1024, "sha-1")]
)
def test_a_name_of_keys_of_ssh_is_a_signature_where_it_signs(
    name: str, size: int, hash_: str, properties: dict[str, Any]
) -> None:
    """RFC 4432 exchanges keys by these names; elsewhere they are signatures."""
    (use,) = found(name, **properties).uses
    assert (f"rsa-{size}", hash_, ()) == (use.coordinates["choice"], use.coordinates["digest"], use.beyond)
    assert "the family storage has rsa-oaep" in one(algorithm(name))


@pytest.mark.parametrize("bits", ["2048", "3072"])
def test_a_kem_of_rsa_has_no_padding(bits: str) -> None:
    for component in (algorithm("RSA", primitive="kem", parameterSetIdentifier=bits), algorithm(f"RSA-KEM-{bits}")):
        told = line(component)
        assert "is not among Tollbar's choices" in str(told.reason)
        assert "padding is not given" not in str(told.reason)
        assert (bits == "2048") is (told.ruling is Ruling.BREAKS)


@pytest.mark.parametrize("name", ["RSA-KEM-3072", "ElGamal-3072", "RSA-X931-3072", "Rabin-3072"])
def test_another_algorithm_of_a_modulus_is_on_no_list_without_rsa(name: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name), CNSA).ruling
    assert not line(algorithm(name), CNSA).is_bad


def test_a_kem_of_rsa_is_not_refused_where_rsa_is_listed() -> None:
    assert Ruling.CANNOT_SAY is line(algorithm("RSA-KEM-3072"), NIST).ruling
    assert ["? RSA-KEM-3072 is not among Tollbar's choices"] == words(found("RSA-KEM-3072"))
