"""Sentences about assets are true; known spellings and identifiers are recognised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Tollbar
from test_inventory import algorithm, asset, words
from test_inventory_names import found
from test_price_weak import line
from tollbar.catalog.policies import Ruling
from tollbar.core.errors import TollbarError
from tollbar.decide.price.inventory import parse

ASVS = "asvs-level-2-5.0.0"


@pytest.mark.parametrize(
    ("name", "properties", "has", "has_not"),
    [
        ("SLH-DSA", {"parameterSetIdentifier": "192"}, "it is one of 192", "128"),
        ("AES-128-PCBC", {}, "pcbc", "ige"),
        ("magma-mac", {}, "a MAC made of magma", "kuznyechik"),
        ("KASUMI", {}, "kasumi", "misty"),
        ("ECDSA", {"curve": "wapip192v1"}, "wapip192v1", "sm2"),
        ("ECDSA", {"curve": "sect193r1"}, "sect193", "sect233"),
        ("ECDSA", {"curve": "prime239v1"}, "prime239", "224"),
        ("KMAC", {}, "its variant is not given", "not among"),
        ("BLAKE2", {}, "the hash of the family is not given", "not among"),
        ("BLAKE2b", {"parameterSetIdentifier": "256"}, "blake2b-256 is not among", "BLAKE2b is"),
        ("ECDSA", {"ellipticCurve": "other/Curve1174"}, "in its curve is not known here", "not given"),
        ("ECDSA", {"ellipticCurve": "bls/BLS12-381"}, "in its curve is not known here", "not given"),
        ("GOST R 34.11-94", {}, "gost94", "streebog"),
        ("AES-128-CBC without MAC", {}, "`without` in its name is not known here", "a MAC made of"),
        ("RSA-3072 is not used", {}, "`not` in its name is not known here", "`is`"),
        ("SHA-256 without MAC", {}, "`without` in its name is not known here", "a MAC made of"),
    ],
)
def test_a_sentence_is_about_the_name_that_is_given(
    name: str, properties: dict[str, Any], has: str, has_not: str
) -> None:
    one = " + ".join(words(found(name, **properties)))
    assert has in one
    assert has_not not in one


@pytest.mark.parametrize(
    ("name", "choice"),
    [("TEA1", "cipher tea1"), ("GeMSS", "signature gemss"), ("SIDH", "key-exchange sidh"),
     ("Oakley-EC2N-3", "? Oakley-EC2N-3 is not among Tollbar's choices")],
)  # fmt: skip
def test_an_algorithm_is_not_called_by_the_name_of_another(name: str, choice: str) -> None:
    assert [choice] == words(found(name))


@pytest.mark.parametrize("name", ["ECDHE-RSA-AES192-SHA384", "ECDHE-RSA-AES256-SHA384"])
def test_the_size_of_a_cipher_is_no_curve_of_another_algorithm(name: str) -> None:
    assert () == line(algorithm(name), ASVS).uses


@pytest.mark.parametrize("version", ["1.4", "2.0", "latest"])
def test_a_version_that_is_given_and_not_known_is_called_so(version: str) -> None:
    one = line(asset("front", "protocol", type="tls", version=version))
    assert "its version is not known here" == one.reason


@pytest.mark.parametrize("version", [1.6, 1.7, 1, 0])
def test_a_version_of_cyclonedx_is_a_text(version: float) -> None:
    with pytest.raises(TollbarError, match=r"`specVersion` is the number .*; it must be a text"):
        parse(json.dumps({"bomFormat": "CycloneDX", "specVersion": version}).encode(), Path("cbom.json"))


def test_a_folder_is_no_file_to_check(tollbar: Tollbar, tmp_path: Path) -> None:
    assert "it is a folder" in tollbar("check", "policy", str(tmp_path)).stderr


SPELLINGS = [
    ("KMAC", {"parameterSetIdentifier": "128"}, "mac kmac-128"),
    ("KMAC", {"parameterSetIdentifier": "256", "primitive": "mac"}, "mac kmac-256"),
    ("MODP_1024_160", {}, "key-exchange modp-1024-160"),
    ("EVP_PKEY_RSA", {"parameterSetIdentifier": "3072"}, "signature rsa-3072 + key-exchange rsa-3072"),
    ("crypto.createHash('sha1')", {}, "digest sha-1"),
    ("createHmac('sha256')", {}, "mac hmac-sha-256"),
    ("crypto.createHmac('sha256', key)", {}, "mac hmac-sha-256"),
    ("createSign('RSA-SHA256')", {"parameterSetIdentifier": "3072"}, "signature rsa-3072 digest=sha-256"),
    ('KeyPairGenerator.getInstance("RSA")', {"parameterSetIdentifier": "2048"},
        "signature rsa-2048 + key-exchange rsa-2048"),
    ("golang.org/x/crypto/chacha20poly1305", {}, "cipher chacha20-poly1305"),
    ("NamedParameterSpec.ML_DSA_87", {}, "signature ml-dsa-87"),
    ("MD5_Init", {}, "digest md5"),
    ("SHA1_Update", {}, "digest sha-1"),
    ("RC4_set_key", {}, "cipher rc4"),
    ("DES_set_key", {}, "? its mode of operation is not given"),
    ("deterministic ECDSA P-256", {}, "signature ecdsa-p256"),
    ("WPA TKIP", {}, "cipher rc4"),
    ("BCryptPasswordEncoder", {"parameterSetIdentifier": "12"}, "password-hash bcrypt cost=12"),
    ("bcryptjs", {"parameterSetIdentifier": "10"}, "password-hash bcrypt cost=10"),
    ("Md5PasswordEncoder", {}, "password-hash salted-md5"),
    ("HMAC 256/64", {}, "mac hmac-sha-256"),
    ("1.2.840.113549.3.7", {}, "cipher 3des-cbc"),
    ("1.2.840.113549.3.7", {"oid": "1.2.840.113549.3.7"}, "cipher 3des-cbc"),
    ("2.16.840.1.101.3.4.2.1", {"oid": "2.16.840.1.101.3.4.2.1"}, "digest sha-256"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "properties", "choice"), SPELLINGS)
def test_a_spelling_of_a_tool_is_its_choice(name: str, properties: dict[str, Any], choice: str) -> None:
    assert choice == " + ".join(words(found(name, **properties)))


def test_the_short_tag_of_cose_is_a_part_of_its_name() -> None:
    (use,) = found("HMAC 256/64").uses
    assert ("its tag has 64 bits; the judged one has 256",) == use.beyond
    assert "its tag" not in str(found("AES-CCM-16-128-128").reason)


OIDS = [
    ("2.16.840.1.101.3.4.3.3", "? the size of its key is not given"),
    ("2.16.840.1.101.3.4.3.10", "? its curve is not given"),
    ("2.16.840.1.101.3.4.3.14", "? the size of its key is not given"),
    ("1.2.840.113549.1.1.15", "? the size of its key is not given"),
    ("1.2.840.10045.3.1.2", "signature ecdsa-prime192v2 + key-exchange ecdh-prime192v2"),
    ("1.2.840.10045.3.0.1", "signature ecdsa-c2pnb163 + key-exchange ecdh-c2pnb163"),
    ("1.3.132.0.1", "signature ecdsa-sect163 + key-exchange ecdh-sect163"),
    ("1.3.36.3.3.1.2", "? the size of its key is not given"),
    ("1.3.6.1.4.1.1722.12.2.1.16", "digest blake2b-512"),
    ("1.2.392.200011.61.1.1.1.4", "cipher camellia-256-cbc"),
    ("1.2.410.200046.1.1.12", "cipher aria-256-cbc"),
    ("0.4.0.127.0.7.1.1.4.1.3", "? its curve is not given"),
    ("1.2.840.113549.3.9", "cipher rc5"),
]


@pytest.mark.parametrize(("oid", "choice"), OIDS)
def test_an_identifier_alone_is_its_choice(oid: str, choice: str) -> None:
    assert choice == " + ".join(words(found("alg", oid=oid)))


def test_a_weak_name_that_is_an_identifier_breaks_a_policy() -> None:
    assert Ruling.BREAKS is line(algorithm("1.2.840.113549.3.7"), ASVS).ruling
