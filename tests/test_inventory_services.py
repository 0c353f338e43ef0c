"""Names of key services, SSH, DNSSEC, ACVP, and suites of GnuTLS and Windows: each is its choice."""

from __future__ import annotations

import pytest

from test_inventory import algorithm, suite
from test_inventory_contradictions import one

NAMES = {
    # AWS KMS, Google Cloud KMS, Azure Key Vault, HashiCorp Vault, Tink.
    "RSASSA_PSS_SHA_256": "? the size of its key is not given",
    "RSA_SIGN_PSS_3072_SHA256": "signature rsa-3072 digest=sha-256 padding=pss",
    "EC_SIGN_P384_SHA384": "signature ecdsa-p384 digest=sha-384",
    "aes256-gcm96": "cipher aes-256-gcm",
    "aes128-gcm96": "cipher aes-128-gcm",
    "ECDSA_P256_IEEE_P1363": "signature ecdsa-p256",
    "RSA_SSA_PKCS1_3072_SHA256_F4": "signature rsa-3072 digest=sha-256 padding=pkcs1",
    # SSH: RFC 5656, section 6.2.1 gives the hash.
    "ecdsa-sha2-nistp256": "signature ecdsa-p256 digest=sha-256",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com": "signature ecdsa-p384 digest=sha-384",
    "x509v3-ecdsa-sha2-nistp521": "signature ecdsa-p521 digest=sha-512",
    "sk-ecdsa-sha2-nistp256@openssh.com": "signature ecdsa-p256 digest=sha-256",
    # The kernel of Linux.
    "rfc4106(gcm(aes))": "? the size of its key is not given",
    "pkcs1pad(rsa,sha256)": "? the size of its key is not given",
    # RFC 8032: a context, and no hash before.
    "Ed25519ctx": "? a signature with a context, another algorithm than the pure one that Tollbar measures",
    "Ed25519ph": "? a pre-hashed signature, another algorithm than the pure one that Tollbar measures",
    "HAVAL-5-256": "digest haval",
    # DNSSEC, and the test vectors of NIST.
    "ECDSAP256SHA256": "signature ecdsa-p256 digest=sha-256",
    "ACVP-AES-GCM": "? the size of its key is not given",
    "ACVP-TDES-CBC": "cipher 3des-cbc",
}
SUITES = {
    "TLS_RSA_AES_128_GCM_SHA256": "tls tls-1.2 key-exchange=rsa cipher=aes-128-gcm",
    "TLS_RSA_3DES_EDE_CBC_SHA1": "tls tls-1.2 key-exchange=rsa cipher=3des-cbc",
    "TLS_RSA_ARCFOUR_128_SHA1": "tls tls-1.2 key-exchange=rsa cipher=rc4",
    "TLS_ECDHE_ECDSA_AES_256_GCM_SHA384": "tls tls-1.2 cipher=aes-256-gcm",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256_P256": "tls tls-1.2 key-exchange=ecdhe-p256 cipher=aes-128-gcm",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256_P384": "tls tls-1.2 cipher=aes-128-gcm",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_service_is_its_choice(name: str) -> None:
    assert NAMES[name] == one(algorithm(name))


@pytest.mark.parametrize("name", ["NSEC3RSASHA1", "RSASHA1-NSEC3-SHA1"])
def test_dnssec_signs_with_sha_1_in_two_names(name: str) -> None:
    assert one(algorithm(name, parameterSetIdentifier="2048")).startswith("signature rsa-2048 digest=sha-1")


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_in_the_words_of_another_library_is_the_same(name: str) -> None:
    assert SUITES[name] == one(suite(name))
