"""The ruling of each policy in the document: it agrees with the reasons, and a bound of an asset meets nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from test_inventory import algorithm, made, suite
from test_price_weak import TODAY
from tollbar.catalog import policies
from tollbar.decide.price import price
from tollbar.decide.price.document import UseForm, document

ASKED = (
    "asvs-level-2-5.0.0",
    "sp800-131a-2024-11",
    "tr-02102-2026-01",
    "cnsa-2.0-2024-12",
    "fedora-default-2026-02",
    "owasp-password-storage-2026-06",
)
ASSETS = [
    algorithm("LM hash", primitive="kdf"),
    algorithm("md5crypt", primitive="kdf"),
    algorithm("MD5withRSA", primitive="signature", parameterSetIdentifier="2048"),
    algorithm("RSASSA_PSS_SHA_256", primitive="signature"),
    algorithm("rsa-sha2-512", primitive="signature"),
    algorithm("RSA-OAEP-2048", primitive="pke"),
    algorithm("AES-256-ECB"),
    algorithm("SHA3-384", primitive="hash"),
    algorithm("diffie-hellman-group16-sha512", primitive="key-agree"),
    algorithm("AES-128-GCM"),
    algorithm("aes192-ctr"),
    suite("TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
]


def uses(component: Mapping[str, Any]) -> list[UseForm]:
    found = price(made(component), [policies.policy(one) for one in ASKED], TODAY, TODAY)
    return [use for line in document(found).lines for use in line.uses]


def parts_of(name: str) -> set[str]:
    return {one.name for one in policies.policy(name).all_of_it}


@pytest.mark.parametrize("component", ASSETS, ids=lambda one: one["name"])
def test_a_policy_is_broken_where_one_of_its_rules_is_among_the_reasons(component: Mapping[str, Any]) -> None:
    for use in uses(component):
        if use.ruling == "breaks":
            refusing = {one.policy for one in use.reasons}
            assert {name for name in use.rulings if parts_of(name) & refusing} == {
                name for name, ruling in use.rulings.items() if ruling == "breaks"
            }


@pytest.mark.parametrize(
    "component",
    [
        algorithm("RSASSA_PSS_SHA_256", primitive="signature"),
        algorithm("rsa-sha2-512", primitive="signature"),
        algorithm("SLH-DSA-SHAKE-256s"),
        algorithm("RSA-OAEP-2048", primitive="pke"),
        algorithm("SHA3-384", primitive="hash"),
    ],
    ids=lambda one: one["name"],
)
def test_what_an_asset_may_be_at_best_meets_no_policy(component: Mapping[str, Any]) -> None:
    (use,) = uses(component)
    assert "breaks" == use.ruling
    assert "meets" not in use.rulings.values()


def test_a_known_choice_meets_the_policies_that_it_does_not_break() -> None:
    (use,) = uses(algorithm("AES-128-GCM"))
    assert "meets" == use.rulings["asvs-level-2-5.0.0"]
    assert "breaks" == use.rulings["cnsa-2.0-2024-12"]


def test_a_use_that_no_lab_measures_mitigates_nothing_known() -> None:
    (use,) = uses(algorithm("RSA-KEM-2048", primitive="kem"))
    assert ("acceptable", {}) == (use.standing, use.mitigates)
    (key,) = uses(algorithm("RSAES-PKCS1-v1_5-2048", primitive="pke"))
    assert "disallowed" == key.standing
