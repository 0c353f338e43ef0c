"""Assets as eight generators write them of public packages: each is its choice, or the missing property is named."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, made, words
from tollbar.decide.price.mapping import mapped

SIZE, CURVE = "? the size of its key is not given", "? its curve is not given"
# A name, its properties by the generator, and the answer.
ASSETS: list[tuple[str, dict[str, Any], str]] = [
    # cbomscanner 0.2.0
    ("ECDSA", {"primitive": "signature", "parameterSetIdentifier": "P-256"}, "signature ecdsa-p256"),
    ("RSA", {"primitive": "pke", "parameterSetIdentifier": "2048"}, "signature rsa-2048 + key-exchange rsa-2048"),
    ("DSA", {"primitive": "signature", "parameterSetIdentifier": "2048"}, "signature dsa-2048"),
    ("SHA1", {"primitive": "hash", "parameterSetIdentifier": "160"}, "digest sha-1"),
    ("MD5", {"primitive": "hash", "parameterSetIdentifier": "128"}, "digest md5"),
    ("DH", {"primitive": "pke", "parameterSetIdentifier": "2048"}, "? its group is not given"),
    # cryptoagility 0.1.3
    ("X25519", {"primitive": "key-agree", "parameterSetIdentifier": "unspecified", "mode": "", "padding": "",
        "classicalSecurityLevel": 128, "nistQuantumSecurityLevel": 0}, "key-exchange x25519"),
    ("MD5", {"primitive": "hash", "parameterSetIdentifier": "unspecified", "mode": "", "padding": "",
        "classicalSecurityLevel": 0, "nistQuantumSecurityLevel": 1}, "digest md5"),
    ("RSA-512", {"primitive": "pke", "parameterSetIdentifier": "512", "classicalSecurityLevel": 0},
        "signature rsa-512 + key-exchange rsa-512"),
    ("AES", {"primitive": "block-cipher", "parameterSetIdentifier": "unspecified"},
        "? the size of its key and its mode of operation are not given"),
    # ecdat 0.2.0
    ("ECC generic key generation", {"primitive": "unknown", "parameterSetIdentifier": "256"}, CURVE),
    ("AES", {"primitive": "block-cipher", "parameterSetIdentifier": "192"}, "? its mode of operation is not given"),
    ("RC4", {"primitive": "block-cipher"}, "cipher rc4"),
    ("ML-KEM", {"primitive": "kem"}, "? its parameter set is not given"),
    # pqcpilot 0.1.0
    ("ECDH-secp384r1", {"primitive": "key-agree", "curve": "secp384r1", "classicalSecurityLevel": 192,
        "nistQuantumSecurityLevel": 0}, "key-exchange ecdh-p384"),
    ("EdDSA-ed25519", {"primitive": "signature", "curve": "ed25519", "classicalSecurityLevel": 128,
        "nistQuantumSecurityLevel": 0}, "signature ed25519"),
    ("RSA-?", {"primitive": "pke", "classicalSecurityLevel": 112, "nistQuantumSecurityLevel": 0}, SIZE),
    ("RSA-512", {"primitive": "pke", "parameterSetIdentifier": "512", "classicalSecurityLevel": 112,
        "nistQuantumSecurityLevel": 0}, "signature rsa-512 + key-exchange rsa-512"),
    # pqc-scan 0.1.0
    ("JWT/JWS algorithm: ES384", {"primitive": "signature", "nistQuantumSecurityLevel": 0},
        "signature ecdsa-p384 digest=sha-384"),
    ("JWT/JWS algorithm: RS256", {"primitive": "signature", "nistQuantumSecurityLevel": 0}, SIZE),
    ("Elliptic curve: prime256v1", {"primitive": "signature", "parameterSetIdentifier": "prime256v1",
        "classicalSecurityLevel": 128}, "signature ecdsa-p256"),
    ("RSA (privateDecrypt)", {"primitive": "pke", "cryptoFunctions": ["decrypt"]}, "? its padding is not given"),
    # cryptoscan-pqc 0.1.1
    ("X25519", {"primitive": "keyagree", "classicalSecurityLevel": 128}, "key-exchange x25519"),
    ("Triple DES", {"primitive": "blockcipher", "classicalSecurityLevel": 112}, "? its mode of operation is not given"),
    ("AES (unspecified key size)", {"primitive": "blockcipher", "nistQuantumSecurityLevel": 0},
        "? the size of its key and its mode of operation are not given"),
    # quantumsafe-scan 0.3.0
    ("RSA <2048 (weak key size)", {"primitive": "pke", "nistQuantumSecurityLevel": 1}, "? its key has at most"),
    ("ML-KEM (Kyber)", {"primitive": "kem", "nistQuantumSecurityLevel": 3}, "? its name has a NIST standard"),
    ("3DES / Triple DES", {"primitive": "block-cipher", "nistQuantumSecurityLevel": 1},
        "? its mode of operation is not given"),
    ("bcrypt", {"primitive": "kdf", "nistQuantumSecurityLevel": 0}, "password-hash bcrypt"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "properties", "answer"), ASSETS)
def test_an_asset_of_a_generator_is_its_choice_or_what_is_missing(
    name: str, properties: dict[str, Any], answer: str
) -> None:
    (found,) = mapped(made(algorithm(name, **properties)))
    said = " + ".join(words(found))
    assert said.startswith(answer) if answer.startswith("?") else said == answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("SHA-256", "digest sha-256"),
        ("HMAC-SHA-1", "mac hmac-sha-1"),
        ("hazmat", "? neither its name nor its properties say which algorithm it is"),
        ("x509-certificate", "? the format of a key, not an algorithm"),
    ],
)
def test_an_asset_of_qtrust_inspector_has_its_name_in_the_properties(name: str, answer: str) -> None:
    """Version 2.2.0 writes a type that the specification does not have, and nulls."""
    properties = {"name": name, "oid": None, "scheme": name, "strength": None, "version": None, "mode": None}
    crypto = {"assetType": "library", "algorithmProperties": properties}
    component = {"type": "cryptographic-asset", "name": "source_crypto_usage:src/app.py", "cryptoProperties": crypto}
    (found,) = mapped(made(component))
    assert answer == " + ".join(words(found))
