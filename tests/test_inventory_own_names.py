"""Inventories: no algorithm is called by the name of another one that is spelled or made like it."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset
from test_inventory_contradictions import one
from test_price_weak import line
from tollbar.catalog.policies import Ruling

OWN = [
    ("XTEA", {}, "cipher xtea"),
    ("XXTEA", {}, "cipher xxtea"),
    ("RC4-40", {}, "cipher rc4-40"),
    ("RC4", {"parameterSetIdentifier": "56"}, "cipher rc4-56"),
    ("RC4", {"parameterSetIdentifier": "128"}, "cipher rc4"),
    ("NT hash", {}, "password-hash nt-hash"),
    ("LM hash", {}, "password-hash lm-hash"),
    ("{SSHA384}", {}, "password-hash salted-sha-384"),
    ("BSDi crypt", {}, "password-hash bsdi-crypt"),
    ("CRYPT_EXT_DES", {}, "password-hash bsdi-crypt"),
    ("CRYPT_STD_DES", {}, "password-hash des-crypt"),
    ("CRYPT_BLOWFISH (cost=12)", {}, "password-hash bcrypt cost=12"),
    ("crypto_pwhash_scryptsalsa208sha256", {}, "password-hash scrypt"),
    ("EC-DSA-P-256", {"primitive": "signature"}, "signature ecdsa-p256"),
    # SSH has one spelling for the exchange of keys by RSA; in others the hash is that of a signature.
    ("RSA-2048-SHA256", {"primitive": "signature"}, "signature rsa-2048 digest=sha-256"),
    ("RSA-1024-SHA1", {"primitive": "signature"}, "signature rsa-1024 digest=sha-1"),
    ("RSA2048-SHA256", {}, "signature rsa-2048 digest=sha-256"),
]


@pytest.mark.parametrize(("name", "properties", "choice"), OWN)
def test_an_algorithm_has_its_own_name(name: str, properties: dict[str, Any], choice: str) -> None:
    assert choice == one(algorithm(name, **properties))


@pytest.mark.parametrize(
    ("curve", "choice", "bits"),
    [
        ("secp112r1", "secp112", 56),
        ("secp128r2", "secp128", 64),
        ("secp160k1", "secp160", 80),
        ("secp192k1", "secp192k1", 96),
        ("prime192v2", "prime192v2", 96),
        ("secp224k1", "secp224k1", 112),
        ("brainpoolP160r1", "brainpoolp160", 80),
        ("sect113r1", "sect113", 56),
        ("sect131r2", "sect131", 64),
        ("sect163k1", "sect163", 80),
        ("c2pnb163v1", "c2pnb163", 80),
        ("wtls1", "wtls1", 56),
        ("wtls8", "wtls8", 56),
    ],
)
def test_a_small_curve_has_its_own_name_and_strength(curve: str, choice: str, bits: int) -> None:
    for name, kind in (("ECDSA", "signature ecdsa"), ("ECDH", "key-exchange ecdh")):
        component = algorithm(name, curve=curve)
        assert f"{kind}-{choice}" == one(component)
        found = line(component)
        assert Ruling.BREAKS is found.ruling
        assert f"{bits} bits, under 128" in str([reason.what for use in found.uses for reason in use.reasons])


def test_the_mac_with_a_nonce_is_not_the_one_for_a_single_message() -> None:
    """ASVS lists Poly1305-AES, and does not list Poly1305."""
    found = line(algorithm("Poly1305-AES", primitive="mac"), "asvs-level-1-5.0.0")
    assert Ruling.CANNOT_SAY is found.ruling
    assert "Poly1305-AES is not among Tollbar's choices" == found.reason
    assert Ruling.BREAKS is line(algorithm("Poly1305-AES", primitive="mac"), "sp800-131a-2024-11").ruling


@pytest.mark.parametrize(
    "name", ["Rainbow-III-Classic", "Rainbow-V-Circumzenithal", "Rainbow-I-Compressed", "SIKE-p434-compressed"]
)
def test_a_variant_of_a_broken_algorithm_is_broken(name: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name)).ruling


@pytest.mark.parametrize("policy", ["tlsref-modern-6.0", "cnsa-2.0-2024-12", "sp800-131a-2024-11"])
def test_a_new_cipher_of_tls_is_not_on_a_closed_list(policy: str) -> None:
    """BCP 195 says nothing of it."""
    new = asset("front", "protocol", type="tls", version="1.3", cipherSuites=[{"name": "TLS_AEGIS_256_SHA512"}])
    assert Ruling.BREAKS is line(new, policy).ruling
    found = line(new, "bcp195-2026-07")
    assert Ruling.CANNOT_SAY is found.ruling
    assert "aegis" == found.uses[0].use.coordinates["cipher"]
