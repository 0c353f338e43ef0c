"""Ciphers, hashes, passwords and suites of the past: broken or small ones break each policy with a rule on them."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset
from test_inventory_contradictions import one
from test_price_weak import line
from tollbar.catalog.policies import Ruling

ASVS, NIST, TR, FEDORA = "asvs-level-2-5.0.0", "sp800-131a-2024-11", "tr-02102-2026-01", "fedora-default-2026-02"
BCP = "bcp195-2026-07"
OPEN = Ruling.CANNOT_SAY
CIPHERS = [
    "ENCR_DES_IV64", "CKM_CDMF_CBC", "SAFER-K64", "SAFER SK-128", "KHAZAD", "3-WAY", "Lucifer", "Khufu", "Khafre",
    "MacGuffin", "FROG", "Akelarre", "Madryga", "MICKEY 2.0", "Trivium", "Grain v1", "GEA3", "DECT DSC", "ORYX",
    "PRINCE",
    "LED-64", "Piccolo-80", "KATAN64", "TWINE", "SKINNY-64-128", "GIFT-64", "RECTANGLE-80", "CHAM-64/128", "LOKI91",
    "LOKI97", "Simeck64", "MULTI2", "mCrypton", "cisco_type7", "3DES two-key CBC", "GOST 28147-89 CNT", "KASUMI f8",
]  # fmt: skip
OTHERS = [
    "AUTH_KPDK_MD5", "CKM_SSL3_MD5_MAC", "SslMacMD5", "N-Hash", "SHA-256/64", "SFLASH", "XTR-170", "CKM_KEA_DERIVE",
    "Merkle-Hellman", "crypt16", "bigcrypt", "msdcc", "oracle10", "mssql2005", "ldap_hex_md5", "hex_sha1",
    "django_salted_md5", "SSL 1.0", "htdigest", "dsaEncryption-old 512", "gss-group1-sha1", "HMAC-Haval", "Rainbow-Va",
    "LM", "phpass portable", "PBKDF2-HMAC-SHA1 1 iteration", "SSLv3 handshake",
    "1.3.14.3.2.10", "1.2.840.113549.3.10",
]  # fmt: skip


@pytest.mark.parametrize("name", CIPHERS)
def test_a_small_or_broken_cipher_breaks_each_policy_on_ciphers(name: str) -> None:
    for policy in (ASVS, NIST, TR, FEDORA):
        found = line(algorithm(name), policy)
        assert found.is_bad
        assert Ruling.BREAKS is found.ruling


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_broken_is_known_by_its_old_name(name: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name), ASVS).ruling


def test_loki97_is_not_the_older_loki() -> None:
    assert ["cipher loki", "cipher loki97"] == [one(algorithm(name)) for name in ("LOKI89", "LOKI97")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Hash160", "Hash160 is not among"), ("sun_md5_crypt", "sun_md5_crypt is not among"),
        ("sha1_crypt", "sha1_crypt is not among"), ("SHAKE256-512", "SHAKE256-512 is not among"),
        ("mldsa44_pss2048", "two signatures in one"), ("CompositeMLDsa", "two signatures in one"),
        ("eFrodoKEM-640-AES", "eFrodoKEM-640-AES is not among"), ("dilithium3_aes", "dilithium is the draft"),
        ("SHA512withSPHINCS256", "SHA512withSPHINCS256 is not among"), ("ECDH-1PU", "ECDH-1PU is not among"),
        ("ECDH-1PU+A128KW", "a key agreement and a key wrapping in one"), ("Anubis", "Anubis is not among"),
        ("HmacPBESHA256", "HmacPBESHA256 is not among"), ("LSH-256-256", "LSH-256-256 is not among"),
        ("CECPQ2", "a hybrid that is not among"), ("XEdDSA", "XEdDSA is not among"),
    ],
)  # fmt: skip
def test_a_name_is_not_that_of_its_part(name: str, said: str) -> None:
    found = line(algorithm(name), TR)
    assert said in str(found.reason)
    assert not found.is_bad


@pytest.mark.parametrize("name", ["crypto_auth_hmacsha512256", "hmacsha512256"])
def test_the_tag_of_libsodium_is_cut_and_its_hash_is_not(name: str) -> None:
    (use,) = line(algorithm(name)).uses
    assert "hmac-sha-512" == use.use.coordinates["choice"]
    assert ("its tag has 256 bits; the judged one has 512",) == use.use.beyond


def suite_of(name: str, version: str = "1.2", **more: object) -> dict[str, Any]:
    return asset("front", "protocol", type="tls", version=version, cipherSuites=[{"name": name, **more}])


@pytest.mark.parametrize(
    "name",
    [
        "TLS_ECDHE_RSA_WITH_RC4_128_SHA", "TLS_ECDHE_ECDSA_WITH_NULL_SHA", "TLS_PSK_WITH_NULL_SHA256",
        "TLS_PSK_WITH_RC4_128_SHA", "TLS_KRB5_WITH_DES_CBC_MD5", "EXP-EDH-RSA-DES-CBC-SHA", "ECDHE-RSA-NULL-SHA",
        "TLS_RSA_EXPORT_WITH_RC2_CBC_40_MD5",
    ],
)  # fmt: skip
def test_bcp_195_refuses_ciphers_of_less_than_112_bits(name: str) -> None:
    assert Ruling.BREAKS is line(suite_of(name), BCP).ruling


def test_bcp_195_refuses_integrity_alone_in_tls_1_3() -> None:
    assert Ruling.BREAKS is line(suite_of("TLS_SHA256_SHA256", "1.3"), BCP).ruling


@pytest.mark.parametrize("name", ["TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_ECDHE_RSA_WITH_ARIA_128_GCM_SHA256"])
def test_bcp_195_advises_against_112_bits_and_lists_no_ciphers(name: str) -> None:
    assert OPEN is line(suite_of(name), BCP).ruling


@pytest.mark.parametrize(
    ("name", "policy", "ruling"),
    [
        ("TLS_ECDHE_PSK_WITH_AES_256_GCM_SHA384", TR, OPEN), ("TLS_DHE_PSK_WITH_AES_256_GCM_SHA384", FEDORA, OPEN),
        ("TLS_ECDHE_PSK_WITH_AES_256_GCM_SHA384", "tlsref-intermediate-6.0", Ruling.BREAKS),
        ("PSK-AES256-GCM-SHA384", BCP, OPEN), ("TLS_SRP_SHA_WITH_AES_256_CBC_SHA", TR, Ruling.BREAKS),
        ("TLS_PSK_WITH_AES_256_GCM_SHA384", "cnsa-2.0-2024-12", Ruling.BREAKS),
    ],
)  # fmt: skip
def test_an_exchange_that_is_given_is_not_said_to_be_missing(name: str, policy: str, ruling: Ruling) -> None:
    found = line(suite_of(name), policy)
    assert ruling is found.ruling
    assert "key-exchange is not given" not in str([reason.what for use in found.uses for reason in use.reasons])
