"""Choices that no lab measures, missing facts, and advice: broken rules are reported whatever is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from builders import run
from test_choosing import digests
from test_inventory import algorithm, asset, made, suite
from tollbar.catalog import families, policies
from tollbar.catalog.families import Standing
from tollbar.catalog.policies import Ruling
from tollbar.core.patterns import is_like
from tollbar.decide.price import price, to_measure, unmeasured
from tollbar.decide.price.document import document
from tollbar.decide.price.platforms import _INSTEAD, _table, has
from tollbar.decide.price.priced import AssetGroup, Pricing
from tollbar.decide.price.words import brief
from tollbar.results import Run

TODAY = date(2026, 11, 23)


def judged(
    *components: object, policy: str | None = "asvs-level-2-5.0.0", on: date = TODAY, runs: Sequence[Run] = ()
) -> Pricing:
    asked = [policies.policy(policy)] if policy else []
    return price(made(*components), asked, on, TODAY, runs)


def line(component: object, policy: str = "asvs-level-2-5.0.0", on: date = TODAY) -> AssetGroup:
    (one,) = judged(component, policy=policy, on=on).lines
    return one


def encrypts(name: str, **properties: Any) -> dict[str, Any]:
    return algorithm(name, primitive="pke", cryptoFunctions=["encrypt"], **properties)


WEAK = [
    *map(algorithm, (
        "DES", "DES-56", "DES-CFB", "DES-ECB", "DES40", "3DES", "3DES-ECB", "Blowfish", "bf-cbc", "IDEA", "CAST5",
        "RC2", "RC2-40-CBC", "RC4", "RC4-40", "RC5", "Skipjack", "A5/1", "A5/2", "CMEA", "GOST28147", "AES-128-ECB",
        "LOKI97", "AES-ECB", "AES/ECB/PKCS5Padding", "MD2", "MD4", "MD5", "SHA-0", "CRC32", "SSL3", "SSLv2", "TLS 1.0",
        "TLS 1.1",
        "RSA-512", "RSA-1024-SHA256", "MD5withRSA", "ssh-dss", "DSA-1024", "ECDSA-secp192r1", "secp160r1",
        "arcfour-hmac", "diffie-hellman-group1-sha1", "DH-1024", "salted-sha512", "SSHA", "smd5",
        # Password-based encryption of JCA is no better than its cipher, nor than its hash if that is broken.
        "PBEWithMD5AndDES", "PBEWithMD2AndDES", "PBEWithMD5AndRC2", "PBEWithMD5AndTripleDES", "PBEWithSHA1AndDESede",
        "PBEWithSHA1AndRC2_40", "PBEWithSHA1AndRC2_128", "PBEWithSHA1AndRC4_40", "PBEWithSHA1AndRC4_128",
        "PBEWithSHAAnd3-KeyTripleDES-CBC", "PBEWithSHAAnd128BitRC4", "PBEWithMD5And128BitAES-CBC-OpenSSL",
        "PBEWithSHAAndIDEA-CBC", "PBES1-DES-CBC-PBKDF1-8-1000", "PKCS12 PBE SHA1 3DES",
        # Whatever the construction, and whatever has them.
        "RSA <2048 (weak key size)", "RSA < 1024", "DSA <2048",
        "md5 password hash", "unsalted MD5 password", "PDF RC4 40", "GSM A5/1",
        # Suites of OpenSSL and IKE, and their parts.
        "EXP-DES-CBC-SHA", "EXP-RC4-MD5", "EXP1024-DES-CBC-SHA", "EXP-RC2-CBC-MD5", "DES-CBC-SHA", "DES-CBC3-SHA",
        "DES-CBC-MD5", "RC2-CBC-MD5", "RC4-SHA", "RC4-MD5", "IDEA-CBC-SHA", "NULL-SHA", "NULL-MD5", "DES-MAC",
        "3DES-MAC", "ENCR_NULL", "ENCR_DES", "ENCR_3DES", "NULL", "eNULL", "TLS_RSA_WITH_NULL_SHA256",
        "TLS_RSA_WITH_RC4_128_MD5", "TLS_SHA256_SHA256",
        "DH Group 1", "group 1", "DH Group 1 (1024-bit)", "MD5andSHA1withRSA-2048")),
    encrypts("RSA-1024"),
    encrypts("RSA-1024", padding="oaep"),
    encrypts("RSA-2048"),
    *(suite(name) for name in (
        "AES256-GCM-SHA384", "AES128-SHA", "DES-CBC3-SHA", "RC4-MD5", "EXP-RC4-MD5", "NULL-SHA",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_ECDHE_RSA_WITH_RC4_128_SHA", "TLS_DH_anon_WITH_AES_128_CBC_SHA",
        "TLS_RSA_EXPORT_WITH_DES40_CBC_SHA", "TLS_SHA256_SHA256", "TLS_SHA384_SHA384", "0xC0,0xB4", "0xC0B5")),
    *(asset("new", "protocol", type="tls", version="1.3", cipherSuites=[{"name": name}]) for name in (
        "TLS_SHA256_SHA256", "TLS_SHA384_SHA384", "0xC0,0xB4", "{0xC0,0xB5}")),
    asset("old", "protocol", type="tls", version="1.0", cipherSuites=[{"name": "AES128-SHA"}]),
    asset("TLS 1.1", "protocol"),
    asset("SSL 3.0", "protocol", type="tls"),
]  # fmt: skip


@pytest.mark.parametrize("component", WEAK, ids=lambda one: str(one["name"]))
def test_what_is_weaker_than_all_that_is_measured_breaks_the_policy(component: Mapping[str, Any]) -> None:
    assert Ruling.BREAKS is line(component).ruling


@pytest.mark.parametrize("hash_", ["sha1", "sha256", "sha512"])
def test_a_signature_of_xml_has_the_padding_of_its_identifier(hash_: str) -> None:
    """RFC 9231 defines these by PKCS #1 v1.5, which the policy refuses with keys of any size."""
    name = f"http://www.w3.org/2001/04/xmldsig-more#rsa-{hash_}"
    assert Ruling.BREAKS is line(algorithm(name), "asvs-level-2-5.0.0").ruling


@pytest.mark.parametrize(
    "name", ["ElGamal", "Kyber768", "Kyber1024", "SPHINCS+-128s", "Dilithium5", "serpent-xts-plain64"]
)
def test_a_draft_or_another_algorithm_is_on_no_list(name: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name), "cnsa-2.0-2024-12").ruling


@pytest.mark.parametrize("policy", ["sp800-131a-2024-11", "tr-02102-2026-01", "asvs-level-1-5.0.0"])
@pytest.mark.parametrize("name", ["AES-256-ECB", "AES-ECB", "AES/ECB/PKCS5Padding"])
def test_ecb_breaks_a_policy_whose_rules_on_storage_refuse_it(name: str, policy: str) -> None:
    """Their clauses speak of encryption by ECB, and the one choice of a family that encrypts so is in storage."""
    assert Ruling.BREAKS is line(algorithm(name), policy).ruling


@pytest.mark.parametrize("name", ["PBEWithMD5AndDES", "EXP-DES-CBC-SHA", "DES-MAC", "NULL", "TLS_SHA256_SHA256"])
@pytest.mark.parametrize("policy", ["asvs-level-3-5.0.0", "bcp195-2026-07"])
def test_a_weak_part_is_not_unknown_in_the_first_line(name: str, policy: str) -> None:
    found = judged(algorithm(name), policy=policy)
    assert 1 == found.count(Ruling.BREAKS) + found.bad_unrefused


@pytest.mark.parametrize(
    "component",
    [
        algorithm("PBEWithHmacSHA256AndAES_256"),
        algorithm("PBEWithHmacSHA1AndAES_128"),
        algorithm("PBES2-HS256+A128KW"),
        algorithm("SHA-1 password hash"),
        algorithm("AES128-SHA256"),
        algorithm("TLS_AES_256_GCM_SHA384"),
        algorithm("TLS_FALLBACK_SCSV"),
        *(suite(name) for name in (
            "TLS_FALLBACK_SCSV", "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "0x00,0xFF", "0x5600", "{0x56,0x00}")),
    ],
    ids=lambda one: str(one["name"]),
)  # fmt: skip
def test_what_is_not_weak_is_not_called_so(component: Mapping[str, Any]) -> None:
    found = line(component)
    assert Ruling.CANNOT_SAY is found.ruling
    assert () == found.uses
    assert not found.is_bad


@pytest.mark.parametrize("padding", ["PKCS1Padding", "NoPadding", "OAEPWithSHA-256AndMGF1Padding"])
def test_no_mode_of_rsa_is_its_ecb(padding: str) -> None:
    for none in ("None", "NONE"):
        ecb, other = (line(algorithm(f"RSA/{mode}/{padding}", parameterSetIdentifier="2048")) for mode in ("ECB", none))
        assert (ecb.ruling, ecb.reason, ecb.uses) == (other.ruling, other.reason, other.uses)


PASSWORDS = "owasp-password-storage-2026-06"


@pytest.mark.parametrize(
    ("place", "first", "absent"),
    [
        ("A.java", "pbkdf2-sha-256-600k", "Java itself has only PBKDF2: Argon2id needs a separate package"),
        ("a.go", "pbkdf2-sha-256-600k", "Go itself has only PBKDF2: Argon2id needs a separate package"),
        ("a.cs", "pbkdf2-sha-256-600k", ".NET itself has only PBKDF2: Argon2id needs a separate package"),
        ("a.py", "argon2id", ""),
        ("a.js", "argon2id", ""),
        ("a.txt", "argon2id", ""),
    ],
)
@pytest.mark.parametrize("name", ["PBKDF2-HMAC-SHA-1-1000", "bcrypt-5", "SSHA"])
def test_a_password_hash_is_one_that_the_platform_has(place: str, first: str, absent: str, name: str) -> None:
    (found,) = judged(placed(name, place), policy=PASSWORDS).lines
    (priced,) = found.uses
    assert first == priced.qualifying[0]
    assert absent in str(priced.unpriced)
    assert bool(absent) is ("Argon2id needs" in str(priced.unpriced))


@pytest.mark.parametrize("policy", [*policies.policies()])
def test_nothing_unmeasured_meets_a_policy(policy: str) -> None:
    """An authority that was not asked about it has not approved it."""
    found = judged(*WEAK, policy=policy)
    for one in found.lines:
        unmeasured_too = any(use.use.unmeasured for use in one.uses)
        assert not (unmeasured_too and one.ruling is Ruling.MEETS), one.name


def test_the_first_line_counts_what_no_policy_refuses() -> None:
    """BCP 195 has no rule on ciphers and hashes, which does not make DES and MD4 acceptable."""
    found = judged(algorithm("DES-CFB"), algorithm("MD4"), algorithm("3DES"), policy="bcp195-2026-07")
    assert (0, 3) == (found.count(Ruling.BREAKS), found.bad_unrefused)
    assert "3 that break no policy are broken or disallowed by standing" in brief(found).headline
    assert 3 == document(found).bad_unrefused
    assert "1 is broken or disallowed by standing" in brief(judged(algorithm("DES-CFB"), policy=None)).headline
    assert "standing" not in brief(judged(algorithm("AES-256-GCM"))).headline


@pytest.mark.parametrize(
    ("name", "policy", "ruling"),
    [
        ("3DES", "sp800-131a-2024-11", Ruling.BREAKS),
        # CNSA 2.0 has no RSA of any size; other policies may list some curve.
        ("RSA", "cnsa-2.0-2024-12", Ruling.BREAKS),
        ("ECDSA", "cnsa-2.0-2024-12", Ruling.BREAKS),
        ("ML-DSA", "cnsa-2.0-2024-12", Ruling.CANNOT_SAY),
        ("ML-DSA", "tr-02102-2026-01", Ruling.BREAKS),
        ("RSA", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        ("ECDSA", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        ("AES", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        ("AES-128", "cnsa-2.0-2024-12", Ruling.BREAKS),
        ("AES-256", "cnsa-2.0-2024-12", Ruling.CANNOT_SAY),
        ("HMAC", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        ("SHA-2", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        ("DES Quux", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        # Larger than all measured sizes: judged by its own strength, or by a list without RSA of any size.
        ("RSA-15360-SHA256", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        ("RSA-15360-SHA256", "cnsa-2.0-2024-12", Ruling.BREAKS),
        ("ECDSA-secp256k1", "asvs-level-2-5.0.0", Ruling.CANNOT_SAY),
        ("RIPEMD-160", "asvs-level-2-5.0.0", Ruling.BREAKS),
    ],
)
def test_all_values_of_a_missing_fact_are_judged(name: str, policy: str, ruling: Ruling) -> None:
    found = line(algorithm(name), policy)
    assert ruling is found.ruling
    if ruling is Ruling.BREAKS and found.reason:
        assert not found.is_mapped
        assert 1 == len(found.uses)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("1.3", "TLS_DHE_RSA_WITH_AES_128_CCM"),
        ("1.3", "AES256-GCM-SHA384"),
        ("1.2", "TLS_AES_128_GCM_SHA256"),
        ("1.3", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_a_suite_of_another_version_contradicts_its_protocol(version: str, name: str) -> None:
    found = line(asset("front", "protocol", type="tls", version=version, cipherSuites=[{"name": name}]))
    assert "in a protocol of" in str(found.reason)
    assert () == found.uses


@pytest.mark.parametrize("version", ["0x0303", "TLSv1.2", "1.2", "v1.2", "tls1.2"])
def test_a_version_is_known_in_its_forms(version: str) -> None:
    found = line(asset("front", "protocol", type="tls", version=version))
    assert "tls-1.2" == found.uses[0].use.coordinates["choice"]


@pytest.mark.parametrize("version", [">=1.2", "1.2, 1.3", "1.2 or 1.3", "1.2+"])
def test_several_versions_are_not_judged_as_one(version: str) -> None:
    found = line(asset("front", "protocol", type="tls", version=version))
    assert "several versions" in str(found.reason)


def test_the_table_of_the_unmeasured_names_what_families_have() -> None:
    for one in unmeasured._table():
        family = families.families()[one.family]
        if "{" in one.no_better_than:
            continue
        measured_ = family.settings[one.setting].about if one.setting else family.choices
        assert one.no_better_than in measured_
        assert all("*" in pattern or not any(is_like(name, pattern) for name in measured_) for pattern in one.pattern)
        assert Standing(one.standing)
        assert one.because


COSTS = {"sha-1": 1.0, "sha-256": 1.2, "sha-512": 3.0, "blake2b-512": 0.8, "blake3": 0.5}


def placed(name: str, *places: str) -> dict[str, Any]:
    return algorithm(name) | {"evidence": {"occurrences": [{"location": one} for one in places]}}


@pytest.mark.parametrize("place", ["src/main/java/A.java", "src/app.py:12", "main.go#L4", "lib/x.txt", ""])
def test_a_replacement_is_one_that_the_platform_has_and_recommended(place: str) -> None:
    """BLAKE3 is the cheapest, but in no JDK and no OpenSSL, and only acceptable where SHA-256 is recommended."""
    (found,) = judged(placed("SHA-1", place), runs=[run(digests(COSTS))]).lines
    assert ["sha-256"] == [one.coordinates["choice"] for one in found.uses[0].replacements]
    assert "blake3" not in found.uses[0].qualifying


def test_assets_of_two_platforms_are_two_rows() -> None:
    found = judged(placed("SHA-1", "a.java"), placed("SHA-1", "b.node.js"), placed("SHA-1", "c.java"))
    assert [2, 1] == [one.count for one in found.lines]
    (mixed,) = judged(placed("SHA-1", "a.java", "b.py")).lines
    assert 1 == mixed.count


def test_the_platforms_are_of_choices_that_families_have() -> None:
    assert not has("java", "digest", "blake3")
    assert has("java", "digest", "sha-256")
    assert has(None, "mac", "kmac-128")
    assert not any(has("node", "mac", one) for one in ("kmac-128", "kmac-256", "poly1305"))
    assert not has("dotnet", "cipher", "aes-256-ctr")
    assert not has("dotnet", "digest", "sha-512-256")
    for platform in _table().values():
        for family, patterns in platform.items():
            for pattern in patterns:
                assert any(is_like(one, pattern) for one in families.family(family).choices), pattern


def test_the_rules_that_ask_for_no_other_choice_exist() -> None:
    for policy, rule in _INSTEAD:
        assert rule in [one.id for one in policies.policy(policy).rules]


@pytest.mark.parametrize(
    ("name", "policy", "advice"),
    [
        ("ML-DSA-65", "tr-02102-2026-01", "a classical signature next to it would meet the rule"),
        ("ML-KEM-768", "tr-02102-2026-01", "a hybrid of ML-KEM with a classical key exchange would meet the rule"),
        ("X25519", "tr-02102-2026-01", "a hybrid of ML-KEM with a classical key exchange would meet the rule"),
        (
            "ML-KEM-768",
            "fedora-default-2026-02",
            "a hybrid of ML-KEM with a classical key exchange would meet the rule",
        ),
        ("RSAES-PKCS1-2048", "tr-02102-2026-01", "asks for a hybrid of ML-KEM with a classical key exchange"),
    ],
)
def test_a_rule_against_a_choice_alone_is_met_by_a_second_one(name: str, policy: str, advice: str) -> None:
    """A classical choice never replaces a post-quantum one."""
    found = judged(algorithm(name), policy=policy, on=date(2032, 1, 1))
    (listing,) = (one for one in brief(found).listings if one.tables)
    text = " ".join(str(cell.small) for cell in listing.tables[0].rows[0])
    assert advice in text
    assert "ecdsa" not in text
    assert {} == to_measure(found)


def test_advice_that_an_asset_does_not_follow_is_printed_and_in_the_document() -> None:
    told = judged(algorithm("HMAC-SHA-1"))
    (use,) = document(told).lines[0].uses
    assert ("meets", ["asvs-level-1-5.0.0"]) == (use.ruling, [one.policy for one in use.advice])
    (table,) = brief(told).listings[0].tables
    assert "against advice: " in " ".join(str(cell.small) for cell in table.rows[0])
    assert [] == document(judged(algorithm("HMAC-SHA-256"))).lines[0].uses[0].advice


@pytest.mark.parametrize("policy", ["asvs-level-2-5.0.0", "sp800-131a-2024-11"])
def test_the_best_of_the_choices_that_an_asset_may_be_is_shown(policy: str) -> None:
    found = line(algorithm("DSA"), policy)
    assert "dsa-2048" == found.uses[0].use.coordinates["choice"]
