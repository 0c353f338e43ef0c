"""Inventories: numbers and words with another meaning than the apparent one."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm
from test_inventory_contradictions import one
from test_price_weak import line
from tollbar.catalog.policies import Ruling

NIST = "sp800-131a-2024-11"


@pytest.mark.parametrize(
    ("name", "properties", "expected"),
    [
        # The length of a key, as cbomkit writes it, and the encoding of a password.
        ("SCRYPT", {"parameterSetIdentifier": "256", "primitive": "kdf"}, "password-hash scrypt"),
        ("Argon2id", {"parameterSetIdentifier": "256", "primitive": "kdf"}, "password-hash argon2id"),
        ("scrypt-131072-8-1", {}, "password-hash scrypt n=131072 r=8 p=1"),
        ("PBKDF2withHmacSHA512-8BIT", {}, "password-hash pbkdf2-sha-512"),
        ("PBKDF2WithHmacSHA1And8BIT", {}, "password-hash pbkdf2-sha-1"),
        ("SHA-160", {}, "digest sha-1"),
        ("", {"algorithmFamily": "AES", "parameterSetIdentifier": "256", "mode": "gcm"}, "cipher aes-256-gcm"),
        ("AES-256", {"mode": "Galois/Counter Mode"}, "cipher aes-256-gcm"),
        ("AES-256", {"mode": "CBC/PKCS5Padding"}, "cipher aes-256-cbc"),
        ("NewDES", {}, "? NewDES is not among Tollbar's choices"),
        ("A5/3", {}, "cipher kasumi"),
        ("RFC 3526 group 14", {}, "key-exchange modp-2048"),
        ("DigestUtils.md5Hex", {}, "digest md5"),
        ("128-EEA2", {}, "cipher aes-128-ctr"),
        ("Dual_EC_DRBG", {"primitive": "drbg"}, "? Tollbar has no family of random number generators"),
        ("Hash160", {}, "? Hash160 is not among Tollbar's choices"),
    ],
)
def test_a_number_or_word_has_its_own_meaning(name: str, properties: dict[str, Any], expected: str) -> None:
    assert expected == one(algorithm(name, **properties))


@pytest.mark.parametrize("size", ["256", "384", "512"])
def test_the_number_of_rsa_oaep_is_that_of_its_hash(size: str) -> None:
    assert Ruling.CANNOT_SAY is line(algorithm(f"RSA-OAEP-{size}"), NIST).ruling


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("AES-256", {"mode": "cbc-hmac-sha1"}), ("AES-256", {"mode": "gcm foo"}), ("AES-256", {"mode": "gcm-128"}),
        ("SHA256withRSA", {"parameterSetIdentifier": "3072", "padding": "ISO9796"}),
        ("SHA256withRSA", {"parameterSetIdentifier": "3072", "padding": "foo"}),
    ],
)  # fmt: skip
def test_more_than_a_mode_or_a_padding_meets_no_policy(name: str, properties: dict[str, Any]) -> None:
    for policy in ("asvs-level-2-5.0.0", NIST, "fedora-default-2026-02"):
        assert Ruling.CANNOT_SAY is line(algorithm(name, **properties), policy).ruling


def test_what_pads_blocks_may_have_any_name() -> None:
    assert "cipher aes-256-gcm" == one(algorithm("AES-256-GCM", padding="ISO7816-4"))


@pytest.mark.parametrize(
    "name",
    [
        "Tiger", "Panama", "MDC-2", "GOST R 34.11-94", "Snefru-128", "modp2048s256", "group 24", "DVD CSS", "Hitag2",
        "DST40", "base32", "NEA0", "Rainbow-I", "hmac-md5.sig-alg.reg.int", "Cryptodome.Cipher.DES3",
    ],
)  # fmt: skip
def test_more_that_is_weak_breaks_a_policy(name: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name)).ruling
