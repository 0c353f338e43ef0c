"""Inventories: an asset breaks a policy because of its own strength, and each of several uses is judged."""

from __future__ import annotations

import pytest

from test_inventory import algorithm
from test_price_weak import line
from tollbar.catalog.policies import Ruling

NIST = "sp800-131a-2024-11"


@pytest.mark.parametrize(
    "name", ["IDEA", "Blowfish", "CAST5", "RC5", "XTEA", "MISTY1", "GOST 28147-89", "Magma", "KASUMI", "PRESENT-128"]
)
@pytest.mark.parametrize("policy", ["asvs-level-2-5.0.0", NIST, "tr-02102-2026-01", "fedora-future-2026-02"])
def test_no_cipher_has_the_strength_of_another(name: str, policy: str) -> None:
    """They break a policy by their blocks of 64 bits, and do not get the 112 bits of 3DES."""
    found = line(algorithm(name), policy)
    assert Ruling.BREAKS is found.ruling
    assert "112 bits, under" not in str([reason.what for use in found.uses for reason in use.reasons])


@pytest.mark.parametrize("name", ["RSA-2047", "RSA-PSS-2047-SHA-256", "DSA-2047"])
def test_a_bit_less_than_the_least_is_less(name: str) -> None:
    assert Ruling.BREAKS is line(algorithm(name), NIST).ruling


def test_of_several_uses_each_is_judged() -> None:
    """A key of RSA-2048 may sign, which SP 800-131A allows."""
    assert Ruling.CANNOT_SAY is line(algorithm("RSA-2048 + AES-256-GCM"), NIST).ruling
    assert Ruling.CANNOT_SAY is line(algorithm("RSA-2048", parameterSetIdentifier="4096"), NIST).ruling
