"""Inventories: code points in every form, suites of several algorithms, and RSA without a given padding."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from test_inventory import algorithm, asset, made, suite, words
from test_price import priced
from tollbar.catalog.policies import Ruling
from tollbar.core.errors import TollbarError
from tollbar.decide.price import limits, mapping, parts
from tollbar.decide.price.mapping import mapped
from tollbar.decide.price.table import code_points

HPKE = (
    "HPKE is a KEM, a key derivation and a cipher in one: Tollbar's families key-exchange and cipher judge each alone"
)


def tls(version: str, **said: object) -> dict[str, Any]:
    """Return a protocol with a suite of these properties."""
    return asset("front", "protocol", type="tls", version=version, cipherSuites=[said])


@pytest.mark.parametrize(
    "form", ["0x1301", "0X1301", "4865", "0x13,0x01", "{0x13,0x01}", "{0x13, 0x01}", "(0x13,0x1)", "0x13 0x01"]
)
def test_a_suite_is_known_by_its_code_point(form: str) -> None:
    """Hexadecimal, a pair of bytes, or decimal; as a suite's name, and in CycloneDX's own key."""
    (found,) = mapped(made(tls("1.3", name=form)))
    assert ["tls tls-1.3 cipher=aes-128-gcm"] == words(found)
    assert () == found.uses[0].beyond


def test_the_two_bytes_beside_a_suite_are_its_code_point() -> None:
    (alone, both, other) = mapped(
        made(
            tls("1.2", identifiers=["0xC0", "0x9E"]),
            tls("1.2", name="TLS_RSA_WITH_AES_128_GCM_SHA256", identifiers=["0x00", "0x9C"]),
            tls("1.2", name="TLS_RSA_WITH_AES_128_GCM_SHA256", identifiers=["0x00", "0x9D"]),
        )
    )
    assert "dhe" == alone.uses[0].coordinates["key-exchange"]
    assert ("Tollbar's family tls does not measure AES-128-CCM: this mode is not measured",) == alone.uses[0].beyond
    assert ["tls tls-1.2 key-exchange=rsa cipher=aes-128-gcm"] == words(both)
    assert ("its suite says aes-128-gcm, and its identifiers say aes-256-gcm",) == other.uses[0].beyond


@pytest.mark.parametrize("form", ["0x1399", "5017", "{0x13,0x99}"])
def test_a_suite_whose_code_point_has_no_name_here_is_said(form: str) -> None:
    """The suite may have any cipher, so no policy is met."""
    front = tls("1.3", name=form, tlsGroups=["x25519"])
    (found,) = mapped(made(front))
    assert (f"suite {form} is not known here",) == found.uses[0].beyond
    (line,) = priced(front, policy=("bcp195-2026-07",)).lines
    assert Ruling.CANNOT_SAY is line.ruling


@pytest.mark.parametrize(
    "identifiers", [["0x13", "0x99"], ["13", "01"], ["0x13"], ["C02F"], ["{0x13,0x99}"], ["0x13", "0x01", "0x02"]]
)
def test_what_is_beside_a_suite_and_has_no_name_here_is_said(identifiers: list[str]) -> None:
    """The value may be any suite, so no policy is met."""
    front = tls("1.3", identifiers=identifiers, tlsGroups=["x25519"], tlsSignatureSchemes=["0x0403"])
    (found,) = mapped(made(front))
    assert ["is not known here"] == [one[-len("is not known here") :] for one in found.uses[0].beyond]
    (line,) = priced(front, policy=("asvs-level-1-5.0.0",)).lines
    assert Ruling.CANNOT_SAY is line.ruling


@pytest.mark.parametrize("form", ["0044", "0x44", "0x044", "00045"])
def test_half_a_code_point_is_none(form: str) -> None:
    """Decimal 44 is a suite without encryption, and hexadecimal 0044 one of 3DES: neither is assumed."""
    (found,) = mapped(made(tls("1.2", name=form)))
    assert "cipher" not in found.uses[0].coordinates
    assert (f"suite {form} is not known here",) == found.uses[0].beyond


@pytest.mark.parametrize(
    ("form", "known"),
    [("29", "x25519"), ("0x00,0x1D", "x25519"), ("{0x11,0xEC}", "x25519mlkem768"), ("4587", "secp256r1mlkem768")],
)
def test_a_group_is_known_by_its_code_point(form: str, known: str) -> None:
    (found,) = mapped(made(suite("TLS_AES_128_GCM_SHA256", tlsGroups=[form])))
    assert (known, ()) == (found.uses[0].coordinates["key-exchange"], found.uses[0].beyond)


@pytest.mark.parametrize(("form", "known"), [("0x0403", "ecdsa-p256"), ("2055", "ed25519"), ("0x0804", None)])
def test_a_scheme_is_known_by_its_code_point(form: str, known: str | None) -> None:
    """A scheme of RSA does not give the key's size."""
    (found,) = mapped(made(suite("TLS_AES_128_GCM_SHA256", tlsSignatureSchemes=[form])))
    assert known == found.uses[0].coordinates.get("certificate")


def test_code_points_have_the_names_of_openssl() -> None:
    """The names are compared for every suite that both the installed library and the table have."""
    asked = ["openssl", "ciphers", "-V", "-stdname", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"]
    lines = [line.split()[:3] for line in subprocess.check_output(asked, text=True).splitlines()]
    found = {f"0x{''.join(part[2:] for part in pair.split(','))}".lower(): name for pair, _, name in lines}
    there = code_points().suite
    expected = {number: name.lower().replace("_", "-") for number, name in found.items() if number in there}
    assert len(expected) > 50
    assert expected == {number: there[number] for number in expected}


@pytest.mark.parametrize(
    "component",
    [
        algorithm("HPKE: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM"),
        algorithm("DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305", primitive="combiner"),
        algorithm("HPKE-X-Wing-SHA256-AES256GCM", algorithmFamily="HPKE", primitive="kem"),
        algorithm("Hybrid Public Key Encryption", algorithmFamily="ECDH", curve="curve25519"),
    ],
    ids=lambda component: component["name"],
)
def test_hpke_is_none_of_its_parts(component: Mapping[str, Any]) -> None:
    """HPKE contains a key derivation and is not treated as one."""
    (found,) = mapped(made(component))
    assert [f"? {HPKE}"] == words(found)


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        (
            algorithm("RSA-2048", cryptoFunctions=["encrypt", "decrypt"]),
            "? its padding is not given; key transport is judged with that of PKCS #1 v1.5",
        ),
        (
            algorithm("RSA-2048", padding="raw", cryptoFunctions=["decrypt"]),
            "? RSA without padding is not among Tollbar's choices: its key transport is PKCS #1 v1.5",
        ),
        (
            algorithm("RSA/ECB/NoPadding", parameterSetIdentifier="2048", cryptoFunctions=["encrypt"]),
            "? RSA without padding is not among Tollbar's choices: its key transport is PKCS #1 v1.5",
        ),
        (algorithm("RSA-2048", padding="pkcs1v15", cryptoFunctions=["decrypt"]), "key-exchange rsa-2048"),
        (algorithm("RSA-2048", padding="raw", cryptoFunctions=["sign"]), "signature rsa-2048"),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_rsa_that_encrypts_is_judged_by_the_padding_that_it_has(component: Mapping[str, Any], expected: str) -> None:
    """Unnamed OAEP is not one of the weak paddings that policies refuse."""
    (found,) = mapped(made(component))
    assert [expected] == words(found)


def test_a_signature_without_padding_meets_nothing() -> None:
    """Tollbar has no such choice, and does not substitute another."""
    (found,) = mapped(made(algorithm("RSA-3072", padding="raw", cryptoFunctions=["sign"])))
    assert ("Tollbar's family signature has no padding none",) == found.uses[0].beyond


def test_an_asset_with_a_fault_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_ASSETS", 2)
    faulty = {"type": "cryptographic-asset", "name": "no properties"}
    assert 2 == len(made(faulty, faulty).assets)
    with pytest.raises(TollbarError, match="more than 2 assets, the limit"):
        made(faulty, faulty, faulty)


def test_assets_that_differ_in_what_they_say_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "MOST_DIFFERENT", 2)
    assert 3 == len(mapped(made(*[algorithm(name) for name in ("RSA", "AES", "RSA")])))
    with pytest.raises(TollbarError, match="more than 2 different assets"):
        mapped(made(*[algorithm(name) for name in ("RSA", "AES", "SHA-256")]))


def test_controls_of_a_long_text_are_shown_as_blanks() -> None:
    text = "a\x1b\u202e\u00a0b`\U000e0001c" * 1000
    assert "a b' ca b' ca…" == parts.shown(text, 14)
