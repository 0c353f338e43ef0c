"""Algorithms that no authority lists: policies with a closed list refuse them, and other rules do not."""

from __future__ import annotations

import pytest

from test_inventory import algorithm
from test_price_weak import line
from tollbar.catalog import families
from tollbar.catalog.policies import Ruling
from tollbar.decide.price import names, unmeasured

NIST, BSI, NSA = "sp800-131a-2024-11", "tr-02102-2026-01", "cnsa-2.0-2024-12"
ASVS, FEDORA = "asvs-level-2-5.0.0", "fedora-default-2026-02"
BREAKS, OPEN = Ruling.BREAKS, Ruling.CANNOT_SAY

# By ASVS, NIST, BSI, NSA, Fedora.
RULED = {
    "Whirlpool": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "BLAKE2b-256": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "MD6": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "Keccak-256": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "SM3": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "Streebog-512": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "Skein-512": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "SEED-CBC": (BREAKS, BREAKS, BREAKS, BREAKS, BREAKS),
    "SM4-GCM": (BREAKS, BREAKS, BREAKS, BREAKS, BREAKS),
    "Twofish-256-CBC": (BREAKS, BREAKS, BREAKS, BREAKS, BREAKS),
    "Salsa20": (BREAKS, BREAKS, BREAKS, BREAKS, BREAKS),
    # A variant of a listed algorithm, which ASVS and Fedora may mean too.
    "XChaCha20-Poly1305": (OPEN, BREAKS, BREAKS, BREAKS, OPEN),
    # SP 800-232 is newer than the lists.
    "Ascon-AEAD128": (OPEN, OPEN, OPEN, OPEN, OPEN),
    # CNSA refuses the key in each mode; the others list some modes.
    "AES-128-CCM": (OPEN, OPEN, OPEN, BREAKS, OPEN),
    "AES-128-XTS": (OPEN, OPEN, OPEN, BREAKS, OPEN),
    "AES-192-EAX": (OPEN, OPEN, OPEN, BREAKS, BREAKS),
    "AES-256-CCM": (OPEN, OPEN, OPEN, OPEN, OPEN),
    "AES-CCM": (OPEN, OPEN, OPEN, OPEN, OPEN),
    "SHAKE256": (OPEN, OPEN, OPEN, OPEN, OPEN),
    "RIPEMD-320": (OPEN, BREAKS, BREAKS, BREAKS, BREAKS),
    "Blowfish-ECB": (BREAKS, BREAKS, BREAKS, BREAKS, BREAKS),
    "Serpent-256-ECB": (BREAKS, BREAKS, BREAKS, BREAKS, BREAKS),
    "SM2DSA": (BREAKS, BREAKS, OPEN, BREAKS, BREAKS),
    "GOST R 34.10-2012": (BREAKS, BREAKS, OPEN, BREAKS, BREAKS),
    "SM2": (BREAKS, BREAKS, OPEN, BREAKS, BREAKS),
    "Falcon-512": (BREAKS, BREAKS, OPEN, BREAKS, BREAKS),
    # SP 800-208 and the BSI approve stateful signatures, and CNSA for firmware.
    "XMSS-SHA2_10_256": (OPEN, OPEN, OPEN, OPEN, OPEN),
    "HSS-LMS": (OPEN, OPEN, OPEN, OPEN, OPEN),
    "FrodoKEM-976": (OPEN, BREAKS, OPEN, BREAKS, OPEN),
    "Classic-McEliece-460896": (OPEN, BREAKS, OPEN, BREAKS, OPEN),
}


@pytest.mark.parametrize("name", RULED)
def test_a_closed_list_refuses_what_it_does_not_have(name: str) -> None:
    found = tuple(line(algorithm(name), policy).ruling for policy in (ASVS, NIST, BSI, NSA, FEDORA))
    assert RULED[name] == found


@pytest.mark.parametrize("name", ["RSA-OAEP", "RSA-OAEP-3072", "RSAES-OAEP-4096", "RSA_DECRYPT_OAEP_3072_SHA256"])
def test_rsa_oaep_is_refused_where_no_rsa_is_listed_and_not_for_its_padding(name: str) -> None:
    rulings = [line(algorithm(name, primitive="pke"), policy).ruling for policy in (ASVS, NIST, BSI, NSA, FEDORA)]
    assert [OPEN, OPEN, OPEN, BREAKS, OPEN] == rulings


def test_rsa_oaep_of_2048_bits_has_112_bits_and_no_bad_standing() -> None:
    found = line(algorithm("RSA-OAEP-2048", primitive="pke"))
    assert BREAKS is found.ruling
    (use,) = found.uses
    assert ["11.2.3"] == [one.rule.id for one in use.reasons if one.rule]
    assert not found.is_bad


@pytest.mark.parametrize("name", ["HMAC-RIPEMD160", "HMAC-Whirlpool", "HMAC-SM3", "HMAC-BLAKE2b-512"])
def test_hmac_of_a_hash_that_is_not_approved_breaks_each_rule_on_it(name: str) -> None:
    assert {BREAKS} == {line(algorithm(name), policy).ruling for policy in (ASVS, NIST, BSI, FEDORA)}


@pytest.mark.parametrize("name", ["HMAC-SHA384", "HMAC-SHA3-256", "HMAC-SHA-224", "AES-CMAC", "AES-GMAC"])
def test_a_mac_that_lists_have_is_not_refused(name: str) -> None:
    assert {OPEN} == {line(algorithm(name), policy).ruling for policy in (ASVS, NIST, BSI, FEDORA)}


# Approved after the policies' editions or outside their lists, or names of several: `sha-2`, or AES without a mode.
_OPEN = {
    "digest": {"sha", "sha-2", "sha-3", "shake-128", "shake-256", "shake", "cshake", "tuplehash", "parallelhash",
               "blake2", "blake2b", "blake2s", "ascon-hash"},
    "cipher": {"aes", "camellia", "aria", "3des", "des", "rc2", "ascon", "fernet"},
}  # fmt: skip


@pytest.mark.parametrize("kind", _OPEN)
def test_each_known_hash_and_cipher_is_judged(kind: str) -> None:
    family = families.family(kind)
    known = getattr(names._vocabulary(), kind)
    assert _OPEN[kind] == {
        one for one in known if one not in family.choices and unmeasured.find(family, unmeasured.CHOICE, one) is None
    }


@pytest.mark.parametrize(
    "name", ["yescrypt", "sha512crypt", "sha256_crypt", "sha512crypt rounds=5000", "SHA-256-yescrypt-12-32-1-0"]
)
def test_nist_takes_pbkdf2_alone_for_passwords(name: str) -> None:
    rulings = [line(algorithm(name, primitive="kdf"), one).ruling for one in (NIST, "owasp-password-storage-2026-06")]
    assert [BREAKS, OPEN] == rulings


@pytest.mark.parametrize("name", [one for one in RULED if one != "AES-CCM"])
def test_its_own_name_is_the_reason(name: str) -> None:
    found = line(algorithm(name), NSA)
    assert any(text in str(found.reason) for text in (" is not among Tollbar's choices", "has no aes-"))
