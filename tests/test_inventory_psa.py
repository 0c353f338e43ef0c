"""Names of the PSA Cryptography API, and short names whose parts mean another thing alone."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset, made, words
from test_inventory_names import found
from test_price_weak import judged
from tollbar.catalog.policies import Ruling
from tollbar.decide.price.mapping import mapped

NAMES: list[tuple[str, dict[str, Any], str]] = [
    ("PSA_ALG_SHA_512_256", {}, "digest sha-512-256"),
    ("PSA_ALG_HMAC(PSA_ALG_SHA_256)", {}, "mac hmac-sha-256"),
    ("PSA_ALG_FULL_LENGTH_MAC(PSA_ALG_HMAC(PSA_ALG_SHA_512))", {}, "mac hmac-sha-512"),
    ("PSA_ALG_ECDSA(PSA_ALG_SHA_256)", {"curve": "secp256r1"}, "signature ecdsa-p256 digest=sha-256"),
    ("PSA_ALG_DETERMINISTIC_ECDSA(PSA_ALG_SHA_384)", {"curve": "P-384"}, "signature ecdsa-p384 digest=sha-384"),
    (
        "PSA_ALG_RSA_PSS_ANY_SALT(PSA_ALG_SHA_256)",
        {"parameterSetIdentifier": "3072"},
        "signature rsa-3072 digest=sha-256 padding=pss",
    ),
    (
        "PSA_ALG_RSA_PKCS1V15_SIGN(PSA_ALG_SHA_512)",
        {"parameterSetIdentifier": "4096"},
        "signature rsa-4096 digest=sha-512 padding=pkcs1",
    ),
    ("PSA_ALG_RSA_PKCS1V15_SIGN_RAW", {"parameterSetIdentifier": "4096"}, "signature rsa-4096 padding=pkcs1"),
    ("PSA_ALG_RSA_PKCS1V15_CRYPT", {"parameterSetIdentifier": "2048"}, "key-exchange rsa-2048"),
    (
        "PSA_ALG_KEY_AGREEMENT(PSA_ALG_ECDH, PSA_ALG_HKDF(PSA_ALG_SHA_256))",
        {"curve": "secp256r1"},
        "key-exchange ecdh-p256",
    ),
    ("PSA_ALG_PBKDF2_HMAC(PSA_ALG_SHA_256)", {}, "password-hash pbkdf2-sha-256"),
    (
        "PSA_ALG_PBKDF2_AES_CMAC_PRF_128",
        {},
        "? PSA_ALG_PBKDF2_AES_CMAC_PRF_128 is not among Tollbar's choices",
    ),
    ("PSA_ALG_DETERMINISTIC_ML_DSA", {"parameterSetIdentifier": "87"}, "signature ml-dsa-87"),
    ("PSA_ALG_SPAKE2P_HMAC(PSA_ALG_SHA_256)", {}, "? PSA_ALG_SPAKE2P_HMAC(PSA_ALG_SHA_256) is not among Tollbar's"),
    ("PSA_KEY_TYPE_AES", {"parameterSetIdentifier": "256", "mode": "gcm"}, "cipher aes-256-gcm"),
    ("PSA_KEY_TYPE_ARC4", {}, "cipher rc4"),
    (
        "PSA_KEY_TYPE_ECC_KEY_PAIR(PSA_ECC_FAMILY_SECP_R1)",
        {"parameterSetIdentifier": "256"},
        "signature ecdsa-p256 + key-exchange ecdh-p256",
    ),
    ("PSA_ECC_FAMILY_MONTGOMERY", {"parameterSetIdentifier": "255"}, "key-exchange x25519"),
    ("PSA_DH_FAMILY_RFC7919", {"parameterSetIdentifier": "3072"}, "key-exchange ffdhe3072"),
    ("PSA_KEY_TYPE_DH_KEY_PAIR(PSA_DH_FAMILY_RFC7919)", {"parameterSetIdentifier": "2048"}, "key-exchange ffdhe2048"),
    ("PSA_DH_FAMILY_RFC7919", {"parameterSetIdentifier": "4096"}, "? Tollbar's family key-exchange has no ffdhe4096"),
    ("PSA_DH_FAMILY_RFC7919", {}, "? its group is not given"),
    ("Diffie-Hellman 3072 (RFC 3526)", {}, "key-exchange modp-3072"),
    ("FFDHE RFC 7919, 2048 bits", {}, "key-exchange ffdhe2048"),
    ("ffdhe2048 (RFC 7919)", {}, "key-exchange ffdhe2048"),
    ("PSA_ECC_FAMILY_TWISTED_EDWARDS", {"parameterSetIdentifier": "448"}, "signature ed448"),
    # The parts of these names are other algorithms.
    ("ECCDHwithSHA256KDF", {"curve": "P-256"}, "key-exchange ecdh-p256"),
    ("SHA256withPLAIN-ECDSA", {"curve": "secp256r1"}, "signature ecdsa-p256 digest=sha-256"),
    ("SHA256withECDDSA", {"curve": "secp256r1"}, "signature ecdsa-p256 digest=sha-256"),
    ("ML-DSA-65-WITH-SHA512", {}, "? a pre-hashed signature"),
    ("SLH-DSA-SHA2-192F-WITH-SHA512", {}, "? a pre-hashed signature"),
    ("ECDH-ES+A256KW", {"curve": "P-256"}, "? a key agreement and a key wrapping in one"),
    ("AESWrapPad", {}, "? Tollbar has no family of key wrapping"),
    ("Argon2id-AES256", {}, "? its name says both "),
    ("crypto/elliptic.P384", {}, "signature ecdsa-p384 + key-exchange ecdh-p384"),
    ("aNULL", {}, "? cipher suites without authentication"),
    ("SHA-1-96", {}, "mac hmac-sha-1"),
    ("SHA", {"parameterSetIdentifier": "1"}, "digest sha-1"),
    ("SHA", {"parameterSetIdentifier": "160", "primitive": "hash"}, "digest sha-1"),
    ("SHA", {"parameterSetIdentifier": "3"}, "? the hash of the family is not given"),
    ("SHA-2", {"parameterSetIdentifier": "1"}, "? its "),
    # N of scrypt is a power of two, so that 17 is its logarithm, and 16 may be either.
    ("scrypt(17,8,1)", {}, "password-hash scrypt n=131072 r=8 p=1"),
    ("scrypt(16,8,1)", {}, "password-hash scrypt n=65536 r=8 p=1"),
    ("scrypt N=16 r=8 p=1", {}, "password-hash scrypt n=16 r=8 p=1"),
    # Sizes in properties that the specification does not have, and numbers with a fraction.
    ("AES", {"mode": "gcm", "keySize": 256}, "cipher aes-256-gcm"),
    ("RSA", {"primitive": "signature", "keyLength": 2048}, "signature rsa-2048"),
    ("AES", {"mode": "gcm", "parameterSetIdentifier": 256.0}, "cipher aes-256-gcm"),
]


@pytest.mark.parametrize(("name", "properties", "expected"), NAMES)
def test_a_name_is_its_choice_or_refused(name: str, properties: dict[str, Any], expected: str) -> None:
    said = " + ".join(words(found(name, **properties)))
    assert said.startswith(expected) if expected.startswith("?") else said == expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("scrypt(16,8,1)", "its N is given as 16: that, or 2 to that power, which is judged"),
        ("PSA_ALG_TRUNCATED_MAC(PSA_ALG_HMAC(PSA_ALG_SHA_256), 16)", "its tag has 128 bits; the judged one"),
        ("SHA1-96", "its tag has 96 bits; the judged one has 160"),
    ],
)
def test_a_part_that_is_not_judged_is_named(name: str, sentence: str) -> None:
    (use,) = found(name).uses
    assert use.beyond[0].startswith(sentence)


@pytest.mark.parametrize(
    "component",
    [
        algorithm("SSH-1"),
        algorithm("SSHv1"),
        asset("ssh", "protocol", type="ssh", version="1"),
        asset("ssh", "protocol", type="ssh", version="1.5"),
        algorithm("aNULL"),
        asset("ssl", "protocol", type="tls", version="3.0"),
        asset("TLS", "protocol", type="tls", cipherSuites=[{"name": "TLS_RSA_WITH_RC4_128_SHA"}]),
    ],
)
def test_what_is_weaker_than_all_that_is_measured_breaks_a_policy(component: dict[str, Any]) -> None:
    (line,) = judged(component).lines
    assert line.ruling is Ruling.BREAKS


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.2", "tls tls-1.2"),
        ("TLSv1.3", "tls tls-1.3"),
        ("1.2 (disabled)", "? its version is not known here"),
        ("3.0", "tls ssl"),
        ("", "tls ssl"),
    ],
)
def test_a_protocol_that_is_called_ssl_has_the_version_that_is_given(version: str, expected: str) -> None:
    (one,) = mapped(made(asset("ssl", "protocol", type="tls", version=version)))
    assert [expected] == words(one)


def test_ike_and_ipsec_do_not_contradict_each_other() -> None:
    (one,) = mapped(made(asset("IPsec", "protocol", type="ike", version="2")))
    assert ["? Tollbar does not measure ike"] == words(one)
