"""Choices that no lab measures, and missing facts: a policy refuses them if its rules decide it."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset, words
from test_inventory_names import found
from test_price_weak import judged, line
from tollbar.catalog.policies import Ruling

ASVS, NIST, TR, CNSA = "asvs-level-2-5.0.0", "sp800-131a-2024-11", "tr-02102-2026-01", "cnsa-2.0-2024-12"
FUTURE, OWASP = "fedora-future-2026-02", "owasp-password-storage-2026-06"


def ruling(name: str, policy: str, **properties: Any) -> Ruling:
    return line(algorithm(name, **properties), policy).ruling


@pytest.mark.parametrize("name", ["SLH-DSA", "SLH-DSA-SHA2", "SLH-DSA-SHA2-192s", "SLH-DSA-SHAKE-256f"])
def test_a_rule_that_allows_what_is_not_measured_refuses_nothing_unknown(name: str) -> None:
    """TR-02102 recommends SLH-DSA of categories 3 and 5, which are not measured."""
    assert Ruling.CANNOT_SAY is ruling(name, TR)


@pytest.mark.parametrize(("level", "breaks"), [("128", True), ("192", False), ("256", False)])
def test_the_level_of_a_parameter_set_is_a_part_of_it(level: str, breaks: bool) -> None:
    one = line(algorithm("SLH-DSA", parameterSetIdentifier=level), TR)
    assert breaks is (one.ruling is Ruling.BREAKS)
    assert all(level in str(use.use.coordinates["choice"]) for use in one.uses)


@pytest.mark.parametrize(
    ("name", "properties", "choice"),
    [
        ("RSA PKCS1 v2.1 3072", {"primitive": "signature"}, "signature rsa-3072"),
        ("RSA-PSS (PKCS#1 v2.1) 3072 SHA-256", {}, "signature rsa-3072 digest=sha-256 padding=pss"),
        ("PKCS#1 v2.2 RSA-PSS 3072 SHA-384", {}, "signature rsa-3072 digest=sha-384 padding=pss"),
        ("RSA PKCS1 v1.5 3072", {"primitive": "signature"}, "signature rsa-3072 padding=pkcs1"),
        ("SHA v2", {}, "? the hash of the family is not given"),
        ("SHA v2 256", {}, "digest sha-256"),
        ("SHA v1", {}, "digest sha-1"),
    ],
)
def test_a_version_of_a_standard_is_no_padding(name: str, properties: dict[str, Any], choice: str) -> None:
    assert choice == " + ".join(words(found(name, **properties)))


def test_oaep_is_in_version_2_of_pkcs_1() -> None:
    assert "RSA-OAEP is not in" in str(found("RSA-PKCS1-v2.1-OAEP 3072").reason)


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("Argon2id (m=1024)", {}), ("Argon2id m=4096 KiB", {}), ("scrypt N=1024", {}), ("scrypt r=1", {}),
        ("PBKDF2-1000", {}), ("PBKDF2 1000 iterations", {}), ("PBKDF2-10000-32", {}),
        ("PBKDF2-HMAC-SHA384 1000 iterations", {}), ("PBKDF2-HMAC-SHA224-1000", {}),
        ("PBKDF2-HMAC-SHA3-256 1000", {}), ("PBKDF2-HMAC-MD5-1000", {}), ("PBKDF2-HMAC-MD4-1000", {}),
        ("PBKDF2-HMAC-MD2-1000", {}), ("Argon2i m=1024", {}), ("Argon2 m=1024", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", [ASVS, OWASP])
def test_a_number_that_no_row_has_breaks_a_policy(name: str, properties: dict[str, Any], policy: str) -> None:
    assert Ruling.BREAKS is ruling(name, policy, **properties)


@pytest.mark.parametrize(
    "name", ["PBKDF2", "PBKDF2-600000", "PBKDF2-HMAC-SHA384", "PBKDF2-HMAC-SHA384 600000", "Argon2i"]
)
def test_a_number_that_is_not_given_breaks_nothing(name: str) -> None:
    assert Ruling.CANNOT_SAY is ruling(name, ASVS)


def test_pbkdf2_of_any_hash_has_1000_iterations_at_least() -> None:
    assert Ruling.BREAKS is ruling("PBKDF2 100 iterations", NIST)


@pytest.mark.parametrize(
    ("name", "properties", "policies"),
    [
        ("DSA-3072", {}, (ASVS, NIST, CNSA, FUTURE)),
        ("ECDSA", {"curve": "secp256k1"}, (CNSA,)),
        ("ECDSA", {"curve": "brainpoolP256r1"}, (CNSA,)),
        ("ECDH P-521", {}, (CNSA,)),
        ("RSA-8192-PSS SHA-384", {}, (CNSA,)),
        ("RSA-15360-SHA256", {}, (CNSA,)),
        ("DH-3072", {}, (CNSA,)),
        ("modp-3072", {}, (CNSA,)),
        ("Argon2i", {}, (NIST,)),
        ("Camellia-192-CBC", {}, (ASVS, NIST, TR)),
        ("SHA1withECDSA", {"curve": "secp256k1"}, (ASVS, NIST, TR, CNSA, FUTURE)),
        ("SHA1withECDSA", {"curve": "brainpoolP256r1"}, (ASVS, NIST, TR, CNSA, FUTURE)),
    ],
)
def test_a_list_without_an_algorithm_refuses_all_of_it(
    name: str, properties: dict[str, Any], policies: tuple[str, ...]
) -> None:
    for policy in policies:
        assert Ruling.BREAKS is ruling(name, policy, **properties), policy


@pytest.mark.parametrize(
    ("name", "properties", "policy"),
    [
        ("ECDSA", {"curve": "secp256k1"}, ASVS), ("RSA-8192-PSS SHA-384", {}, ASVS), ("ECDH P-521", {}, NIST),
        ("modp-3072", {}, NIST), ("SHA3-384", {}, NIST), ("SHA3-384", {}, ASVS), ("DSA-3072", {}, TR),
        ("Camellia-192-CBC", {}, "fedora-default-2026-02"), ("ECDSA", {"curve": "brainpoolP384r1"}, TR),
    ],
)  # fmt: skip
def test_a_list_with_others_of_an_algorithm_refuses_nothing_unmeasured(
    name: str, properties: dict[str, Any], policy: str
) -> None:
    assert Ruling.CANNOT_SAY is ruling(name, policy, **properties)


def test_the_sentence_about_a_size_claims_nothing_of_rules() -> None:
    """SP 800-131A names DSA of each size."""
    one = line(algorithm("DSA-3072"), NIST)
    assert "no rule names it" not in str([reason.what for use in one.uses for reason in use.reasons])
    assert one.is_bad


CURVES = {
    "sect193r1": (ASVS, TR, NIST), "sect233r1": (ASVS, TR), "B-233": (ASVS, TR), "brainpoolP224r1": (ASVS, TR),
    "prime239v1": (ASVS, TR), "wtls/wap-wsg-idm-ecid-wtls1": (ASVS, TR, NIST),
    "wtls/wap-wsg-idm-ecid-wtls12": (ASVS, TR), "x962/c2tnb191v1": (ASVS, TR, NIST), "c2pnb176w1": (ASVS, TR, NIST),
    "c2pnb208w1": (ASVS, TR, NIST), "Oakley-EC2N-3": (ASVS, TR, NIST), "Oakley-EC2N-4": (ASVS, TR, NIST),
    "wapip192v1": (ASVS, TR, NIST),
}  # fmt: skip


@pytest.mark.parametrize("name", ["ECDSA", "ECDH"])
@pytest.mark.parametrize("curve", CURVES)
def test_a_small_curve_has_half_the_strength_of_its_field(name: str, curve: str) -> None:
    for policy in CURVES[curve]:
        assert Ruling.BREAKS is ruling(name, policy, ellipticCurve=curve), policy


@pytest.mark.parametrize(
    ("name", "properties"),
    [("ECDSA-160", {}), ("EC", {"parameterSetIdentifier": "160"}), ("ECDSA", {"parameterSetIdentifier": "192"})],
)
def test_no_curve_of_a_small_field_is_strong(name: str, properties: dict[str, Any]) -> None:
    assert Ruling.BREAKS is ruling(name, ASVS, **properties)
    assert Ruling.CANNOT_SAY is ruling("ECDSA", ASVS, parameterSetIdentifier="256")


@pytest.mark.parametrize(
    "name",
    [
        "SHA3-224", "SHA-512/224", "RIPEMD-128", "HAS-160", "BLAKE2b-160", "BLAKE2s-128", "Snefru",
        "ECDSA-P-256-SHA-224", "RSA-PSS-3072 SHA-224", "RSA-PSS-3072 RIPEMD-160", "RSA-X931-1024", "RSA-KEM-1024",
        "ElGamal-1024", "ElGamal 512", "Rabin-1024",
        "SIKE", "SIKEp434", "SIDH", "Rainbow", "GeMSS", "NTRUSign", "HMAC-MD2", "HMAC-CRC32", "Magma-CBC", "HIGHT",
        "PRESENT-80", "SIMON64/128", "SPECK64/128-CBC", "GEA-1", "KeeLoq", "Crypto-1", "E0", "ZipCrypto", "FEAL",
        "usmNoPrivProtocol", "RC4-MAC", "CBC-MAC-DES", "SSL v3", "SSLv3.0", "SSL v2", "TLS v1.0", "TLS v1", "TLS v1.1",
    ],
)  # fmt: skip
def test_what_is_small_or_broken_breaks_a_policy(name: str) -> None:
    assert Ruling.BREAKS is ruling(name, ASVS)


@pytest.mark.parametrize("name", ["RSA-X931-1024", "RSA-KEM-1024", "ElGamal-1024", "Rabin-1024"])
@pytest.mark.parametrize("policy", [NIST, TR])
def test_a_small_modulus_is_small_in_each_algorithm(name: str, policy: str) -> None:
    assert Ruling.BREAKS is ruling(name, policy)


@pytest.mark.parametrize("name", ["CSIDH", "ElGamal-3072", "RSA-X931-3072", "EC-ElGamal", "SHA3-384", "Whirlpool"])
def test_what_is_not_measured_need_not_be_weak(name: str) -> None:
    one = line(algorithm(name), ASVS)
    assert Ruling.CANNOT_SAY is one.ruling
    assert not one.is_bad


@pytest.mark.parametrize(
    "version", ["1.0 - 1.3", "TLSv1.1, TLSv1.2", "1.0-1.2", "TLSv1, TLSv1.2", "SSLv3, TLSv1.2", ">=1.0"]
)
def test_a_protocol_offers_the_oldest_of_its_versions(version: str) -> None:
    one = line(asset("front", "protocol", type="tls", version=version))
    assert Ruling.BREAKS is one.ruling


@pytest.mark.parametrize("version", ["1.2 - 1.3", "TLSv1.2, TLSv1.3", ">1.1", ">=1.2", "1.2+"])
def test_versions_that_are_not_old_are_not_judged(version: str) -> None:
    one = line(asset("front", "protocol", type="tls", version=version))
    assert Ruling.CANNOT_SAY is one.ruling
    assert "several versions" in str(one.reason)


@pytest.mark.parametrize("group", ["secp224r1", "sect233r1", "brainpoolP224r1"])
@pytest.mark.parametrize("policy", [ASVS, CNSA])
def test_a_small_group_of_tls_breaks_a_policy(group: str, policy: str) -> None:
    of = {"name": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "tlsGroups": [group]}
    one = line(asset("front", "protocol", type="tls", version="1.2", cipherSuites=[of]), policy)
    assert Ruling.BREAKS is one.ruling


@pytest.mark.parametrize("scheme", ["ecdsa_sha1", "rsa_pkcs1_md5", "rsa_pkcs1_sha1"])
def test_a_signature_scheme_of_a_broken_hash_meets_no_policy(scheme: str) -> None:
    """RFC 9155."""
    suite = f"TLS_ECDHE_{scheme.partition('_')[0].upper()}_WITH_AES_256_GCM_SHA384"
    of = {"name": suite, "tlsGroups": ["x25519"], "tlsSignatureSchemes": [scheme]}
    (one,) = judged(asset("front", "protocol", type="tls", version="1.2", cipherSuites=[of])).lines
    assert "RFC 9155" in str([use.use.beyond for use in one.uses])
