"""Inventories: cipher suites and versions that tools list as algorithms, and DTLS with the type of TLS."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, asset
from test_inventory_contradictions import one
from test_price_weak import line
from tollbar.catalog.policies import Ruling

TLSREF = "tlsref-intermediate-6.0"
SUITE = {"name": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "tlsGroups": ["x25519"]}


@pytest.mark.parametrize(
    ("name", "type_", "version"),
    [
        ("front", "tls", "DTLS 1.2"), ("front", "tls", "DTLSv1.3"), ("DTLS", "tls", "1.2"), ("DTLS 1.2", "tls", ""),
        ("front", "dtls", "1.2"), ("front", "tls", "TLS 1.2, DTLS 1.2"), ("TLS/DTLS", "tls", "1.3"),
    ],
)  # fmt: skip
def test_dtls_is_not_tls(name: str, type_: str, version: str) -> None:
    found = line(asset(name, "protocol", type=type_, version=version, cipherSuites=[SUITE]), TLSREF)
    assert Ruling.MEETS is not found.ruling
    assert "DTLS" in str(found.reason).upper()


@pytest.mark.parametrize("version", ["DTLS 1.0", "DTLSv1", "DTLSv1.0"])
def test_dtls_1_0_is_no_better_than_tls_1_1(version: str) -> None:
    assert Ruling.BREAKS is line(asset("front", "protocol", type="tls", version=version)).ruling
    assert Ruling.BREAKS is line(algorithm(version)).ruling


@pytest.mark.parametrize(("version", "ruling"), [("TLSv1.2", "tls tls-1.2"), ("VersionTLS13", "tls tls-1.3")])
def test_a_version_names_its_protocol(version: str, ruling: str) -> None:
    assert ruling == one(asset("front", "protocol", type="tls", version=version))


def test_a_protocol_over_tls_is_its_own() -> None:
    assert "? Tollbar does not measure quic" == one(asset("front", "protocol", type="quic", version="TLS 1.3"))


@pytest.mark.parametrize(
    "name",
    [
        "ADH-AES256-GCM-SHA384", "AECDH-NULL-SHA", "ADH-RC4-MD5", "TLS_DH_anon_WITH_AES_128_GCM_SHA256",
        "SSL_RSA_WITH_RC4_128_SHA", "SSL_DH_anon_EXPORT_WITH_DES40_CBC_SHA", "ECDHE-RSA-RC4-SHA",
        "EDH-RSA-DES-CBC3-SHA", "DHE-RSA-AES128-SHA", "TLS_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-DES-CBC3-SHA",
    ],
)  # fmt: skip
def test_a_weak_suite_breaks_a_policy_as_an_algorithm(name: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name), TLSREF).ruling


@pytest.mark.parametrize("name", [SUITE["name"], "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"])
def test_a_suite_alone_meets_no_policy(name: str) -> None:
    found = line(algorithm(name), TLSREF)
    assert Ruling.CANNOT_SAY is found.ruling
    assert "its version is not given" in str(found.reason)


def test_3des_in_a_suite_is_not_des() -> None:
    found = line(algorithm("DES-CBC3-SHA"))
    assert Ruling.BREAKS is found.ruling
    assert ["3des-cbc"] == [use.use.coordinates["choice"] for use in found.uses]


@pytest.mark.parametrize("name", ["TLS 1.2+", "TLS 1.0 to 1.2"])
def test_several_versions_are_no_version(name: str) -> None:
    assert "? it names several versions: each is judged by itself" == one(algorithm(name))


def test_a_key_derivation_of_tls_is_no_tls() -> None:
    assert "? Tollbar has no family of key derivation" == one(algorithm("TLS 1.3 HKDF"))


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("SSLContext.TLSv1", "tls tls-1.0"), ("ssl.PROTOCOL_TLSv1", "tls tls-1.0"), ("PROTOCOL_SSLv3", "tls ssl-3"),
        ("tls.VersionSSL30", "tls ssl-3"), ("SslProtocols.Tls", "tls tls-1.0"), ("SslProtocols.Tls11", "tls tls-1.1"),
        ("SslProtocols.Ssl3", "tls ssl-3"), ("TLS1_VERSION", "tls tls-1.0"), ("TLSv1_method", "tls tls-1.0"),
        ("TLSv1_2_method", "tls tls-1.2"), ("minVersion TLSv1", "tls tls-1.0"),
        *((name, "? it names several versions: each is judged by itself") for name in ("SSLv23_method", "SSLv23")),
    ],
)  # fmt: skip
def test_a_constant_of_a_library_is_its_version(name: str, choice: str) -> None:
    assert choice == one(algorithm(name))


@pytest.mark.parametrize("name", ["SSLv23_method", "ssl.PROTOCOL_SSLv23"])
def test_a_method_of_any_version_breaks_nothing(name: str) -> None:
    """OpenSSL's `SSLv23_method` negotiates the newest version that both sides have."""
    assert Ruling.CANNOT_SAY is line(algorithm(name)).ruling


@pytest.mark.parametrize("name", ["TLS_FOO_256_SHA512", "TLS_ECDHE_RSA_WITH_FOO_SHA256", "my favourite suite"])
def test_a_suite_that_is_not_known_meets_no_policy(name: str) -> None:
    """A rule about versions alone would be met, whatever the suite encrypts with."""
    version = "1.2" if "WITH" in name else "1.3"
    front = asset(
        "front", "protocol", type="tls", version=version, cipherSuites=[{"name": name, "tlsGroups": ["x25519"]}]
    )
    found = line(front, "asvs-level-1-5.0.0")
    assert Ruling.CANNOT_SAY is found.ruling
    (use,) = found.uses
    assert "suite" in use.use.beyond[-1]


@pytest.mark.parametrize(
    "name", ["HIGH:!aNULL", "AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", "DEFAULT@SECLEVEL=1", "ALL:-RC4:+HIGH"]
)
def test_a_list_of_suites_is_none_of_them(name: str) -> None:
    front = asset("front", "protocol", type="tls", version="1.2", cipherSuites=[{"name": name}])
    assert "? it names several suites: each is judged by itself" == one(front)
    old = asset("front", "protocol", type="tls", version="1.0", cipherSuites=[{"name": name}])
    assert Ruling.BREAKS is line(old).ruling


def suite_of(name: str, version: str, **properties: object) -> dict[str, Any]:
    return asset("front", "protocol", type="tls", version=version, cipherSuites=[{"name": name, **properties}])


@pytest.mark.parametrize(
    ("name", "version", "policy", "ruling"),
    [
        ("TLS_AES_128_CCM_SHA256", "1.3", "cnsa-2.0-2024-12", Ruling.BREAKS),
        ("TLS_AES_128_CCM_8_SHA256", "1.3", "cnsa-2.0-2024-12", Ruling.BREAKS),
        # Both have AES with CCM on their lists, and not with the short tag.
        ("TLS_AES_128_CCM_SHA256", "1.3", "fedora-default-2026-02", Ruling.CANNOT_SAY),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CCM", "1.2", "tr-02102-2026-01", Ruling.CANNOT_SAY),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8", "1.2", "fedora-default-2026-02", Ruling.BREAKS),
    ],
)
def test_ccm_is_refused_where_gcm_of_its_size_is(name: str, version: str, policy: str, ruling: Ruling) -> None:
    assert ruling is line(suite_of(name, version), policy).ruling


@pytest.mark.parametrize(
    ("name", "policy", "ruling"),
    [
        ("TLS_ECDHE_RSA_WITH_CAMELLIA_128_GCM_SHA256", "tlsref-intermediate-6.0", Ruling.BREAKS),
        ("TLS_ECDHE_RSA_WITH_ARIA_128_GCM_SHA256", "sp800-131a-2024-11", Ruling.BREAKS),
        ("TLS_ECDHE_RSA_WITH_ARIA_256_GCM_SHA384", "tr-02102-2026-01", Ruling.CANNOT_SAY),
        ("ECDHE-RSA-AES256-SHA384", "tlsref-intermediate-6.0", Ruling.BREAKS),
        ("ECDHE-RSA-AES128-SHA256", "cnsa-2.0-2024-12", Ruling.BREAKS),
        ("ECDHE-RSA-AES256-SHA", "tlsref-intermediate-6.0", Ruling.BREAKS),
        # Each has AES with CBC.
        ("ECDHE-RSA-AES256-SHA384", "tr-02102-2026-01", Ruling.CANNOT_SAY),
        ("ECDHE-RSA-AES256-SHA", "fedora-default-2026-02", Ruling.CANNOT_SAY),
        ("ECDHE-RSA-AES256-SHA", "sp800-131a-2024-11", Ruling.CANNOT_SAY),
    ],
)
def test_a_list_of_ciphers_refuses_one_of_another_kind(name: str, policy: str, ruling: Ruling) -> None:
    assert ruling is line(suite_of(name, "1.2"), policy).ruling


@pytest.mark.parametrize(
    ("group", "parameters", "ruling"),
    [
        ("ffdhe2048", "ffdhe2048", Ruling.BREAKS), ("ffdhe3072", "ffdhe3072", Ruling.CANNOT_SAY),
        ("ffdhe3072 (257)", "ffdhe3072", Ruling.CANNOT_SAY), ("modp-2048", "modp-2048", Ruling.BREAKS),
        ("ffdhe6144", "ffdhe6144", Ruling.CANNOT_SAY), ("x25519", None, Ruling.CANNOT_SAY),
    ],
)  # fmt: skip
def test_the_group_of_a_suite_with_dhe_is_its_parameters(group: str, parameters: str | None, ruling: Ruling) -> None:
    found = line(suite_of("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "1.2", tlsGroups=[group]), "tr-02102-2026-01")
    assert [parameters] == [use.use.coordinates.get("dh-parameters") for use in found.uses]
    assert ruling is found.ruling


@pytest.mark.parametrize("bits", [256, 384, 512])
def test_a_signature_scheme_of_tls_1_3_is_no_suite(bits: int) -> None:
    """RFC 8734 names them after the version."""
    name = f"ecdsa_brainpoolP{bits}r1tls13_sha{bits}"
    assert f"? Tollbar's family signature has no ecdsa-brainpoolp{bits}r1" == one(algorithm(name))
