"""Inventories: a number, mode, curve or identifier that contradicts the name is reported and meets no policy."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset, made, words
from test_price import priced
from tollbar.catalog.policies import Ruling
from tollbar.decide.price.mapping import mapped

# Consistent numbers of each algorithm on a curve.
CURVES = {
    **{name: {256} for name in ("ECDSA-P-256-SHA-256", "ES256", "ECDH-P-256")},
    **{name: {384} for name in ("ECDSA-P-384-SHA-384", "ES384", "ECDH-P-384")},
    "ECDSA-P-521-SHA-512": {521, 512},
    **{name: {255, 256, 25519} for name in ("Ed25519", "X25519")},
    **{name: {448, 456} for name in ("Ed448", "X448")},
}
NUMBERS = {160, 192, 224, 255, 256, 320, 384, 448, 456, 512, 521, 25519}
# Consistent numbers of each algorithm without a curve.
OTHERS = {
    "ChaCha20-Poly1305": {256},
    "X25519MLKEM768": {768, 25519},
    "ML-KEM-768": {768},
    "ML-DSA-65": {65},
    "SLH-DSA-SHA2-128s": {128},
    "AES-256-GCM": {256},
    "AES-128-CBC": {128},
}
OTHER_NUMBERS = {8, 12, 44, 64, 65, 87, 112, 128, 192, 256, 512, 768, 1024, 25519}


def ruling(*components: dict[str, Any]) -> set[Ruling]:
    return {line.ruling for line in priced(*components, policy=("asvs-level-2-5.0.0",)).lines}


def one(component: dict[str, Any]) -> str:
    (found,) = mapped(made(component))
    return " + ".join(words(found))


@pytest.mark.parametrize("property_", ["parameterSetIdentifier", "curve", "ellipticCurve"])
@pytest.mark.parametrize("name", CURVES)
def test_a_number_of_another_curve_contradicts_the_name(name: str, property_: str) -> None:
    """The size of the curve's field agrees, and a parameter may be the size of the hash."""
    known = one(algorithm(name))
    assert not known.startswith("?")
    for number in NUMBERS:
        found = one(algorithm(name, **{property_: str(number)}))
        own = CURVES[name] - ({512} if property_ != "parameterSetIdentifier" else set())
        assert (found == known) is (number in own), (number, found)
        assert number in own or found.startswith("? "), (number, found)


@pytest.mark.parametrize("name", OTHERS)
def test_a_number_of_another_size_contradicts_the_name(name: str) -> None:
    """The number of AES in GCM may be the tag's; a shorter tag is not judged."""
    known = one(algorithm(name))
    assert not known.startswith("?")
    for number in OTHER_NUMBERS - OTHERS[name]:
        (found,) = mapped(made(algorithm(name, parameterSetIdentifier=str(number))))
        is_tag = name.endswith("GCM") and bool(found.uses)
        assert found.uses[0].beyond if is_tag else not found.uses, (number, words(found))
    for number in OTHERS[name]:
        assert known == one(algorithm(name, parameterSetIdentifier=str(number)))


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("AES-256-GCM", {256}, {8, 16, 32, 40, 56, 64, 128, 192, 512}),
        ("AES-128-CBC", {128}, {8, 16, 40, 56, 64, 256, 512}),
        ("AES-256-XTS", {256, 512}, {16, 128, 1024}),
        ("ChaCha20-Poly1305", {256}, {16, 32, 64, 128, 192, 512}),
        ("RSA-3072-SHA-256-PSS", {3072}, {40, 256, 384, 512, 1024, 2048, 4096}),
        ("ECDSA-P-256-SHA-256", {256, 264, 512, 520}, {32, 112, 160, 192, 224, 384, 521, 1024}),
        ("ECDSA-P-521-SHA-512", {521, 528, 536, 1056, 1064}, {66, 256, 384, 512, 1024}),
        ("X25519", {255, 256}, {32, 128, 160, 224, 384, 448, 1024}),
        ("Ed25519", {256, 512}, {32, 128, 160, 448, 1024}),
        ("X448", {448, 456}, {56, 224, 256, 25519}),
    ],
)
def test_the_size_of_a_key_is_that_of_what_it_is_a_key_of(name: str, own: set[int], other: set[int]) -> None:
    known = one(algorithm(name))
    for size in own | other:
        key = asset("key", "related-crypto-material", type="key", size=size, algorithmRef="a")
        (by_reference, _) = mapped(made(key, algorithm(name, "a")))
        by_name = one(asset(name, "related-crypto-material", type="key", size=size))
        expected = known if size in own else "? "
        for found in (" + ".join(words(by_reference)), by_name):
            assert found.startswith(expected), (size, found)


def test_a_contradiction_meets_no_policy() -> None:
    assert {Ruling.CANNOT_SAY} == ruling(algorithm("ES256", parameterSetIdentifier="521"))
    assert {Ruling.CANNOT_SAY} == ruling(algorithm("ChaCha20-Poly1305", mode="gcm"))
    assert {Ruling.CANNOT_SAY} == ruling(algorithm("SHA-256", oid="MD5"))


@pytest.mark.parametrize("write", [
    "{}", " {} ", "{}\n", "oid:{}", "OID:{}", "OID: {}", "urn:oid:{}", "URN:OID:{}", ".{}", "OID.{}", "urn:oid:.{}",
])  # fmt: skip
def test_an_object_identifier_is_read_in_each_notation(write: str) -> None:
    md5, p384 = write.format("1.2.840.113549.2.5"), write.format("1.3.132.0.34")
    assert "digest md5" == one(algorithm("h", oid=md5))
    assert "? its name says sha-256, and its oid says md5" == one(algorithm("SHA-256", oid=md5))
    assert "signature ecdsa-p384" == one(algorithm("ECDSA", curve=p384))


@pytest.mark.parametrize("oid", [
    "MD5", "{iso(1) member-body(2) us(840) rsadsi(113549)}", "{1 2 840 113549 2 5}", "1,2,840", "1.2.840.", "1..2",
    "1.2.840.113549.02.5", "1/2/840", "7.1", "/ISO/Member-Body", "id-md5", "OID", "urn:oid:MD5",
])  # fmt: skip
@pytest.mark.parametrize("name", ["SHA-256", "AES-256-GCM", "Ed25519", "ML-KEM-768"])
def test_what_is_no_object_identifier_is_never_passed_over(name: str, oid: str) -> None:
    assert one(algorithm(name, oid=oid)).startswith("? ")


@pytest.mark.parametrize("oid", ["", "unknown", "null", "N/A", "-", " "])
def test_an_object_identifier_that_is_not_given_says_nothing(oid: str) -> None:
    assert "digest sha-256" == one(algorithm("SHA-256", oid=oid))


@pytest.mark.parametrize("mode", ["ecb", "cbc", "gcm", "ctr", "ccm"])
@pytest.mark.parametrize("name", [
    "ChaCha20", "ChaCha20-Poly1305", "XChaCha20", "XChaCha20-Poly1305", "Salsa20", "XSalsa20", "AEGIS-256", "Ascon-128",
])  # fmt: skip
def test_a_mode_of_a_cipher_that_has_none_is_a_contradiction(name: str, mode: str) -> None:
    (found,) = mapped(made(algorithm(name, mode=mode)))
    assert ((), ()) == (found.uses, found.at_best)
    assert f"which has no mode of operation, and its mode says {mode}" in str(found.reason)
    assert {Ruling.CANNOT_SAY} == ruling(algorithm(name, mode=mode))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, {"mode": "ecb"}) for name in ("Ed25519", "X25519", "ML-DSA-65", "SHA-256", "HMAC-SHA-256")),
        *((name, {"padding": "pkcs1v15"}) for name in ("Ed25519", "X25519", "ML-DSA-65", "SHA-256", "ES256")),
        *((name, {"curve": "P-192"}) for name in ("ML-KEM-768", "AES-256-GCM", "RSA-3072-SHA-256-PSS", "SHA-256")),
    ],
)
def test_a_mode_a_padding_or_a_curve_is_a_part_of_what_has_one(name: str, more: dict[str, str]) -> None:
    said = one(algorithm(name, **more))
    assert said.startswith("? ")
    assert said.endswith("in addition, which is not part of it")


@pytest.mark.parametrize("mode", ["ecb", "cbc", ""])
def test_rc4_is_broken_whatever_mode_it_is_said_to_have(mode: str) -> None:
    assert {Ruling.BREAKS} == ruling(algorithm("RC4", mode=mode))


@pytest.mark.parametrize(
    ("curve", "elliptic", "choice"),
    [
        ("P-256", "nist/P-384", "? its curve says both p384 and p256"),
        ("secp256r1", "nist/P-256", "signature ecdsa-p256"),
        ("P-256", "P-256", "signature ecdsa-p256"),
        ("1.2.840.10045.3.1.7", "nist/P-256", "signature ecdsa-p256"),
        (None, "secg/secp384r1", "signature ecdsa-p384"),
    ],
)
def test_the_curves_of_both_versions_agree(curve: str | None, elliptic: str, choice: str) -> None:
    assert choice == one(algorithm("ECDSA", curve=curve, ellipticCurve=elliptic))
