"""Assets between or below the measured sizes and modes: each policy rules by its clause, and on no other ground."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, suite
from test_price_weak import line
from tollbar.catalog.policies import Ruling

FEDORA, FUTURE, TR = "fedora-default-2026-02", "fedora-future-2026-02", "tr-02102-2026-01"
CNSA, NIST, ASVS_1 = "cnsa-2.0-2024-12", "sp800-131a-2024-11", "asvs-level-1-5.0.0"


def key(bits: int) -> dict[str, Any]:
    return algorithm("RSA", primitive="signature", parameterSetIdentifier=str(bits))


CASES = [
    (key(1536), FEDORA, True), (key(2047), FEDORA, True), (key(2560), FEDORA, False), (key(2560), FUTURE, True),
    (key(2999), TR, True), (key(3000), TR, False),
    (algorithm("diffie-hellman-group5", primitive="key-agree"), FEDORA, True),
    (algorithm("Diffie-Hellman", primitive="key-agree", parameterSetIdentifier="1024"), FEDORA, True),
    (algorithm("AES", primitive="block-cipher", mode="ecb"), FEDORA, True),
    (algorithm("AES-128-OFB"), FEDORA, True), (algorithm("AES-128-CFB"), FEDORA, False),
    (algorithm("Camellia-128-GCM"), FUTURE, True),
    (algorithm("PBKDF2-HMAC-MD5", primitive="kdf"), ASVS_1, True), (algorithm("md5crypt"), ASVS_1, True),
    (algorithm("PBKDF2-HMAC-SM3", primitive="kdf"), NIST, True),
    (algorithm("PBKDF2-HMAC-SHA224", primitive="kdf"), NIST, False),
    (algorithm("X25519Kyber768Draft00", primitive="kem"), NIST, True),
    (algorithm("P256Kyber768Draft00", primitive="kem"), NIST, False),
    (algorithm("SecP256r1MLKEM768", primitive="kem"), CNSA, True),
    (suite("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"), TR, True),
    (suite("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"), TR, False),
]  # fmt: skip


@pytest.mark.parametrize(("component", "policy", "is_broken"), CASES)
def test_a_clause_refuses_what_it_excludes_and_nothing_else(
    component: dict[str, Any], policy: str, is_broken: bool
) -> None:
    assert is_broken == (line(component, policy).ruling is Ruling.BREAKS)
