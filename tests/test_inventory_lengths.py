"""Facts in addition to a choice: sets of curves, lengths, exponents, hashes of masks, identifiers of algorithms."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset, made, words
from test_inventory_names import found
from test_price_weak import judged, line
from tollbar.catalog.policies import Ruling
from tollbar.decide.price.mapping import mapped

POLICIES = (
    "asvs-level-2-5.0.0",
    "sp800-131a-2024-11",
    "tr-02102-2026-01",
    "fedora-future-2026-02",
    "owasp-password-storage-2026-06",
    "sp800-63b-aal2-4",
)


def meets_none(*components: dict[str, Any]) -> bool:
    return not any(
        one.ruling is Ruling.MEETS for policy in POLICIES for one in judged(*components, policy=policy).lines
    )


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("ECDSA-brainpoolP256-SHA-256", {}),
        ("ECDH brainpool-P384", {}),
        ("brainpoolP256", {"primitive": "key-agree"}),
        ("ECDSA-brainpoolP521-SHA-512", {}),
        ("ECDSA SHA-256 brainpool secp256r1", {}),
        ("ECDSA P-256 brainpool SHA-256", {}),
        *(
            ("ECDSA SHA-256", {key: curve})
            for key in ("curve", "ellipticCurve")
            for curve in ("brainpool/P-256", "nums/P-256", "anssi/P-256", "wtls/P-256")
        ),
    ],
)
def test_a_set_of_curves_is_another_curve_than_nist_s(name: str, properties: dict[str, Any]) -> None:
    (what,) = mapped(made(algorithm(name, **properties)))
    assert () == what.uses
    assert meets_none(algorithm(name, **properties))


@pytest.mark.parametrize("name", ["SHA-256 brainpool", "AES-256-GCM wtls", "ML-KEM-768 nums"])
def test_a_set_of_curves_is_no_part_of_other_algorithms(name: str) -> None:
    assert () == found(name).uses


@pytest.mark.parametrize(
    ("name", "properties"),
    [("sig", {"algorithmFamily": "ECDSA", "ellipticCurve": "brainpool/brainpoolP256r1"}),
     ("ECDSA", {"curve": "anssi/FRP256v1"}), ("oakley group 14", {}), ("DH oakley-group-14", {})],
)  # fmt: skip
def test_a_set_of_curves_agrees_with_its_own(name: str, properties: dict[str, Any]) -> None:
    text = " + ".join(words(found(name, **properties)))
    assert "both" not in text
    assert "not known here" not in text


@pytest.mark.parametrize("policy", ["asvs-level-2-5.0.0", "sp800-131a-2024-11"])
def test_a_mask_of_a_broken_hash_is_no_better_than_a_signature_by_it(policy: str) -> None:
    """FIPS 186-5 requires an approved hash in MGF1, and ASVS accepts MD5 for nothing."""
    one = line(algorithm("RSA-PSS-SHA-256-MGF1-MD5-32-3072", primitive="signature"), policy)
    assert Ruling.BREAKS is one.ruling
    assert "the hash of its mask is md5" in str(one.reason)


@pytest.mark.parametrize(("name", "is_one"), [
    ("RSA-PSS-SHA-256-MGF1-SHA-1-32-3072", True), ("RSA-PSS-SHA-256-MGF1-SHA-512-32-3072", True),
    ("RSA-PSS-SHA-256-MGF1-SHA3-256-32-3072", True), ("RSA-PSS-SHA-256-MGF1-RIPEMD160-32-3072", False),
    ("RSA-PSS-SHA-256-MGF1-Whirlpool-32-3072", False)])  # fmt: skip
def test_the_hash_of_a_mask_is_one_of_sha(name: str, is_one: bool) -> None:
    assert is_one is bool(found(name, primitive="signature").uses)


DOUBTFUL = [
    ("Argon2id-65536-3-4-0-0-0-4", "its salt length is given as 0"),
    ("Argon2id m=65536 t=3 p=4 saltlen=0", "its salt length is given as 0"),
    ("Argon2id m=65536 t=3 p=4 saltlen=8", "its salt length is given as 8"),
    ("Argon2id m=65536 t=3 p=4 hashlen=1", "its output length is given as 1"),
    ("Argon2id-65536-3-4-16-0-0-4", "its output length is given as 4"),
    ("scrypt N=131072 r=8 p=1 saltlen=0", "its salt length is given as 0"),
    ("scrypt N=131072 r=8 p=1 keylen=8", "its output length is given as 8"),
    ("scrypt-131072-8-1-1", "its output length is given as 1"),
    ("PBKDF2-HMAC-SHA256 iterations=600000 saltlen=0", "its salt length is given as 0"),
    ("PBKDF2-HMAC-SHA256 iterations=600000 saltlen=1", "its salt length is given as 1"),
    ("PBKDF2-HMAC-SHA256 iterations=600000 keylen=1", "its output length is given as 1"),
    ("PBKDF2-SHA-256-600000-8", "its output length is given as 8"),
    ("RSA-PSS-3072-SHA-256 publicExponent=1", "its public exponent is given as 1"),
    ("RSA-3072-PSS e=1 SHA-256", "its public exponent is given as 1"),
    ("RSA-3072-PSS e=3 SHA-256", "its public exponent is given as 3"),
    ("HMAC-SHA256 keysize=40", "its key length is given as 40"),
    ("HMAC-SHA256 keylen=1", "its key length is given as 1"),
    ("KMAC128 keylen=8", "its key length is given as 8"),
    ("HMAC-SHA-256 length=8", "its key length is given as 8"),
    ("RSA-PSS-SHA-256-64-3072", "its salt has 64 bytes: more than its hash has"),
    ("RSA-PSS-3072-SHA-256 saltLength=128", "its salt has 128 bytes: more than its hash has"),
]


@pytest.mark.parametrize(("name", "sentence"), DOUBTFUL)
def test_a_length_that_is_too_small_or_too_large_is_beyond_what_is_judged(name: str, sentence: str) -> None:
    (use,) = found(name).uses or found(name, primitive="signature").uses
    assert any(sentence in one for one in use.beyond), use.beyond
    assert meets_none(algorithm(name))


def test_a_parameter_may_be_a_length() -> None:
    (use,) = found("RSA-3072-PSS SHA-256", parameterSetIdentifier="e=3").uses
    assert "its public exponent is given as 3" in use.beyond[0]


@pytest.mark.parametrize(
    "name",
    [
        "Argon2id-65536-3-4-16-0-0-32", "Argon2id m=65536 t=3 p=4 saltlen=16 hashlen=16",
        "Argon2id m=65536 t=3 p=4 saltlen=128 hashlen=256", "scrypt-131072-8-1-32",
        "PBKDF2-HMAC-SHA256 iterations=600000 saltlen=16 keylen=32", "PBKDF2-SHA256 length=256",
        "RSA-PSS-3072-SHA-256 publicExponent=65537", "RSA-PSS-3072-SHA-256 e=0x10001",
        "RSA-PSS-3072-SHA-256 saltLength=32", "RSA-PSS-3072-SHA-256 saltLength=0", "RSA-PSS-3072 saltLength=64",
        "HMAC-SHA256 keysize=112", "HMAC-SHA256 keysize=256", "HMAC-SHA256 keylen=32", "HMAC-SHA-256 length=512",
        "KMAC128 length=256",
    ],
)  # fmt: skip
def test_a_length_that_is_long_enough_is_passed_over(name: str) -> None:
    (use,) = found(name).uses
    assert () == use.beyond


@pytest.mark.parametrize(("size", "is_enough"), [(8, False), (40, False), (112, True), (256, True)])
def test_a_key_of_a_mac_has_the_size_that_is_given_of_it(size: int, is_enough: bool) -> None:
    """SP 800-131A, table 14: 112 bits at least."""
    mac = algorithm("HMAC-SHA-256", "h")
    key = asset("k", "related-crypto-material", type="secret-key", algorithmRef="h", size=size)
    rulings = [one.ruling for one in judged(mac, key, policy="sp800-131a-2024-11").lines if one.name == "k"]
    assert [Ruling.MEETS if is_enough else Ruling.CANNOT_SAY] == rulings


@pytest.mark.parametrize(
    ("name", "oid"),
    [
        *(("AES-256-GCM", oid) for oid in (
            "1.2.392.200011.61.1.1.1.4", "1.2.410.200004.1.4", "1.2.156.10197.1.104.2",
            "1.2.840.113549.1.9.16.3.6", "1.2.643.7.1.1.5.1.1", "1.2.410.200046.1.1.2")),
        ("SHA-384", "1.2.156.10197.1.401"), ("SHA-384", "1.0.10118.3.0.55"), ("SHA-384", "1.3.6.1.4.1.1722.12.2.1.12"),
        ("ML-DSA-87", "1.3.6.1.5.5.7.6.49"), ("ML-DSA-87", "2.16.840.1.114027.80.8.1.1"),
    ],
)  # fmt: skip
def test_an_identifier_of_another_algorithm_contradicts_the_name(name: str, oid: str) -> None:
    assert () == found(name, oid=oid).uses


@pytest.mark.parametrize("name", ["EXP-AES-256-GCM", "AES-256-GCM exp", "AES-256-GCM export", "SHA-256 export"])
def test_an_export_cipher_is_not_the_whole_one(name: str) -> None:
    assert () == found(name).uses
    assert meets_none(algorithm(name))
