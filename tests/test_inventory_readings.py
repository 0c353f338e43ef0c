"""Contradictions of levels, sizes and certificates: each is named, and broken only if every reading is."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset, made, words
from test_inventory_names import found
from test_price_weak import judged, line
from tollbar.catalog.policies import Ruling
from tollbar.decide.price.mapping import mapped

LEVELS = [
    ("AES-128-GCM", {"nistQuantumSecurityLevel": 5}, "it is aes-128-gcm, and its nistQuantumSecurityLevel is 5"),
    ("AES-128-GCM", {"classicalSecurityLevel": 256}, "it is aes-128-gcm, and its classicalSecurityLevel is 256"),
    ("AES-256-GCM", {"nistQuantumSecurityLevel": "1"}, "it is aes-256-gcm, and its nistQuantumSecurityLevel is 1"),
    ("ML-KEM-512", {"nistQuantumSecurityLevel": 5}, "it is ml-kem-512, and its nistQuantumSecurityLevel is 5"),
    ("ML-KEM-768", {"nistQuantumSecurityLevel": 0}, "it is ml-kem-768, and its nistQuantumSecurityLevel is 0"),
    ("Ed25519", {"nistQuantumSecurityLevel": 2}, "it is ed25519, and its nistQuantumSecurityLevel is 2"),
    ("ECDH-P256", {"classicalSecurityLevel": 256}, "it is ecdh-p256, and its classicalSecurityLevel is 256"),
    ("RSA-3072", {"classicalSecurityLevel": 2048}, "it is rsa-3072, and its classicalSecurityLevel is 2048"),
    ("SHA-256", {"classicalSecurityLevel": 512}, "it is sha-256, and its classicalSecurityLevel is 512"),
]


@pytest.mark.parametrize(("name", "level", "reason"), LEVELS)
def test_a_level_that_an_algorithm_does_not_have_is_a_contradiction(
    name: str, level: dict[str, Any], reason: str
) -> None:
    assert [f"? {reason}"] == words(found(name, **level))
    assert Ruling.CANNOT_SAY is line(algorithm(name, **level)).ruling


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("AES-128-GCM", {"classicalSecurityLevel": 128, "nistQuantumSecurityLevel": 1}),
        ("AES-256-GCM", {"classicalSecurityLevel": 256, "nistQuantumSecurityLevel": 5}),
        ("AES-256-GCM", {"classicalSecurityLevel": 0, "nistQuantumSecurityLevel": 0}),
        ("AES-256-GCM", {"classicalSecurityLevel": None, "nistQuantumSecurityLevel": "unknown"}),
        ("RSA-3072", {"classicalSecurityLevel": 128, "nistQuantumSecurityLevel": 0}),
        ("ECDSA-P384", {"classicalSecurityLevel": 192, "nistQuantumSecurityLevel": 0}),
        ("SHA-256", {"classicalSecurityLevel": 128, "nistQuantumSecurityLevel": 2}),
        ("SHA-256", {"classicalSecurityLevel": 256, "nistQuantumSecurityLevel": 1}),
        ("ML-KEM-768", {"classicalSecurityLevel": 192, "nistQuantumSecurityLevel": 3}),
        ("ML-DSA-44", {"classicalSecurityLevel": 128, "nistQuantumSecurityLevel": 2}),
        ("SLH-DSA-SHA2-128s", {"classicalSecurityLevel": 128, "nistQuantumSecurityLevel": 1}),
        ("X25519MLKEM768", {"classicalSecurityLevel": 192, "nistQuantumSecurityLevel": 3}),
        # Tools write these, and a broken algorithm has no better level.
        ("MD5", {"classicalSecurityLevel": 0, "nistQuantumSecurityLevel": 1}),
        ("RSA-512", {"classicalSecurityLevel": 112, "nistQuantumSecurityLevel": 0}),
        ("RSA-2048", {"classicalSecurityLevel": 2048}),
        ("RSA-1024", {"classicalSecurityLevel": 112, "nistQuantumSecurityLevel": 0}),
    ],
)
def test_a_level_that_an_algorithm_has_changes_nothing(name: str, levels: dict[str, Any]) -> None:
    assert words(found(name)) == words(found(name, **levels))


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("3DES-CBC", {"classicalSecurityLevel": 256}),
        ("MD5", {"classicalSecurityLevel": 256}),
        ("RSA-1024", {"nistQuantumSecurityLevel": 5}),
        ("RSA-1024", {"parameterSetIdentifier": "512"}),
        ("DH-1024", {"parameterSetIdentifier": "768"}),
        ("MD5", {"parameterSetIdentifier": "256"}),
        ("MD4-160", {}),
        ("RC4", {"parameterSetIdentifier": "512"}),
        ("DES40", {"parameterSetIdentifier": "128"}),
        ("MD5", {"primitive": "kdf"}),
        ("MD5", {"primitive": "mac"}),
        ("RC4", {"primitive": "mac"}),
        ("DES", {"primitive": "hash"}),
        ("DES-CBC", {"padding": "oaep"}),
    ],
)
def test_what_is_broken_in_each_reading_is_judged_broken(name: str, properties: dict[str, Any]) -> None:
    told = line(algorithm(name, **properties))
    assert told.is_bad
    assert Ruling.BREAKS is told.ruling


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("DH-1024", {"parameterSetIdentifier": "4096"}),
        ("SHA-1", {"parameterSetIdentifier": "256"}),
        ("P-192", {"parameterSetIdentifier": "256"}),
        ("SHA-1", {"primitive": "mac"}),
        ("MD5", {"primitive": "drbg"}),
    ],
)
def test_what_may_be_another_choice_is_not_judged(name: str, properties: dict[str, Any]) -> None:
    assert Ruling.CANNOT_SAY is line(algorithm(name, **properties)).ruling


RSA, P256, ED25519 = algorithm("RSA-2048"), algorithm("ECDSA", curve="P-256"), algorithm("Ed25519")
OF_ECDSA, OF_RSA = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


def server(suite: str, *keys: dict[str, Any], version: str = "1.2", scheme: str = "") -> list[dict[str, Any]]:
    """Return a protocol with a certificate of each key."""
    parts: list[dict[str, Any]] = []
    for number, key in enumerate(keys):
        parts.append(key | {"bom-ref": f"a{number}"})
        parts.append(asset("k", "related-crypto-material", f"k{number}", type="public-key", algorithmRef=f"a{number}"))
        parts.append(asset("c", "certificate", f"c{number}", subjectPublicKeyRef=f"k{number}"))
    refs = [f"c{number}" for number in range(len(keys))]
    one = {"name": suite} | ({"tlsSignatureSchemes": [scheme]} if scheme else {})
    return [
        asset("tls", "protocol", type="tls", version=version, cipherSuites=[one], cryptoRefArray=refs[:1],
              relatedCryptographicAssets=[{"type": "certificate", "ref": ref} for ref in refs[1:]]),
        *parts,
    ]  # fmt: skip


AEAD = "cipher=aes-128-gcm"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (server(OF_RSA, RSA), f"tls tls-1.2 certificate=rsa-2048 {AEAD}"),
        (server(OF_ECDSA, P256), f"tls tls-1.2 certificate=ecdsa-p256 {AEAD}"),
        (server(OF_ECDSA, ED25519), f"tls tls-1.2 certificate=ed25519 {AEAD}"),
        (server(OF_ECDSA, RSA), "? its suite says ecdsa, and its certificate says rsa"),
        (server(OF_RSA, P256), "? its suite says rsa, and its certificate says ecdsa"),
        (server(OF_RSA, P256, RSA), f"tls tls-1.2 certificate=rsa-2048 {AEAD}"),
        (server(OF_RSA, RSA, algorithm("RSA-3072")), f"tls tls-1.2 {AEAD}"),
        (server(OF_RSA, algorithm("RSA")), f"tls tls-1.2 {AEAD}"),
        (server("TLS_AES_128_GCM_SHA256", P256, version="1.3"), f"tls tls-1.3 certificate=ecdsa-p256 {AEAD}"),
        (server("TLS_AES_128_GCM_SHA256", P256, RSA, version="1.3"), f"tls tls-1.3 {AEAD}"),
        (server(OF_ECDSA, scheme="rsa_pss_rsae_sha256"), "? its suite says ecdsa, and its scheme says rsa"),
        (server(OF_RSA, scheme="ecdsa_secp256r1_sha256"), "? its suite says rsa, and its scheme says ecdsa"),
    ],
)
def test_a_certificate_tells_or_contradicts_the_suite_that_it_serves(
    parts: list[dict[str, Any]], expected: str
) -> None:
    assert [expected] == words(mapped(made(*parts, version="1.7"))[0])


def test_a_broken_suite_is_judged_though_its_certificate_contradicts_it() -> None:
    told = judged(*server("TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", RSA))
    (suite,) = [one for one in told.lines if one.kind == "cipher suite"]
    assert Ruling.BREAKS is suite.ruling
    (suite,) = [one for one in judged(*server(OF_ECDSA, RSA)).lines if one.kind == "cipher suite"]
    assert Ruling.CANNOT_SAY is suite.ruling


@pytest.mark.parametrize("cipher", ["AES-128-GCM", "ChaCha20-Poly1305"])
@pytest.mark.parametrize(("written", "padding"), [("oaep", "oaep"), ("pkcs1v15", "pkcs1"), ("pss", "pss")])
def test_a_cipher_has_no_padding_of_rsa(cipher: str, written: str, padding: str) -> None:
    assert [f"? its padding says {padding} in addition, which is not part of it"] == words(
        found(cipher, padding=written)
    )


@pytest.mark.parametrize("version", ["1.0-1.2", "TLS 1.0 to 1.2", "TLS 1.2 - TLS 1.3", "1.0 through 1.3"])
def test_a_span_of_versions_is_several(version: str) -> None:
    (told,) = mapped(made(asset("server", "protocol", type="tls", version=version)))
    assert ["? it names several versions: each is judged by itself"] == words(told)


@pytest.mark.parametrize(("number", "version"), [("769", "1.0"), ("770", "1.1"), ("771", "1.2"), ("772", "1.3")])
def test_a_version_may_be_the_number_of_the_wire(number: str, version: str) -> None:
    (told,) = mapped(made(asset("server", "protocol", type="tls", version=number)))
    assert [f"tls tls-{version}"] == words(told)


def test_a_type_of_asset_may_have_capitals() -> None:
    crypto = {"assetType": "Algorithm", "algorithmProperties": {}}
    (told,) = mapped(made({"type": "cryptographic-asset", "name": "AES-128-GCM", "cryptoProperties": crypto}))
    assert ["cipher aes-128-gcm"] == words(told)
