"""Other spellings and aliases of names, in every family and in the words that people type."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tollbar.catalog import runners, servers
from tollbar.catalog.families import Family, families
from tollbar.catalog.families.cells import OF_A_LOAD
from tollbar.catalog.libraries import built_in
from tollbar.catalog.policies import shipped
from tollbar.core import spelling
from tollbar.core.errors import nearest
from tollbar.study.values import NOT_SETTINGS

PROVIDERS = ("libcrypto", "runner", *built_in(), *runners.all_platforms())


def _coordinates(family: Family) -> list[str]:
    return [*NOT_SETTINGS, *family.settings]


def _places() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each set of names that can be typed at a place, with the name of the place."""
    yield "families", list(families())
    yield "servers", list(servers.all_servers())
    yield "providers", PROVIDERS
    yield "policies", list(shipped())
    for family in families().values():
        yield f"{family.name}: choices", list(family.choices)
        yield f"{family.name}: operations", family.operations
        yield f"{family.name}: coordinates", _coordinates(family)
        for setting in family.settings.values():
            if setting.values:
                yield f"{family.name}: {setting.name}", [str(value) for value in setting.values]


PLACES = dict(_places())
SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "upper-case": str.upper,
    "capitalised": str.title,
    "underscore": lambda name: name.replace("-", "_"),
    "no-dash": lambda name: name.replace("-", ""),
    "dots": lambda name: name.replace("-", "."),
    "blanks": lambda name: name.replace("-", " "),
    "slash": lambda name: name.replace("-", "/"),
    "upper-case-underscore": lambda name: name.upper().replace("-", "_"),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_name_is_found_by_its_other_spellings(place: str) -> None:
    known = PLACES[place]
    for spelt in SPELLINGS.values():
        assert {name: name for name in known} == {name: spelling.find(spelt(name), known) for name in known}


@pytest.mark.parametrize("place", PLACES)
def test_no_two_names_of_a_place_have_one_spelling(place: str) -> None:
    known = PLACES[place]
    assert len(known) == len({spelling.squeezed(name) for name in known})


def test_every_alias_is_of_a_name_that_there_is() -> None:
    known = {name for names in PLACES.values() for name in names}
    for kind, names in spelling.table().items():
        assert not names.keys() - known, kind


def test_an_alias_is_no_other_spelling_of_its_name_and_stands_once() -> None:
    for names in spelling.table().values():
        for name, others in names.items():
            squeezed = [spelling.squeezed(one) for one in others]
            assert len(squeezed) == len({*squeezed} - {spelling.squeezed(name)}), name


TYPED = [
    ("digest: choices", "SHA256", "sha-256"),
    ("digest: choices", "SHA2-256", "sha-256"),
    ("digest: choices", "SHA-512/256", "sha-512-256"),
    ("digest: choices", "BLAKE2b", "blake2b-512"),
    ("mac: choices", "HMAC-SHA256", "hmac-sha-256"),
    ("mac: choices", "hmac_sha2_256", "hmac-sha-256"),
    ("cipher: choices", "AES256-GCM", "aes-256-gcm"),
    ("cipher: choices", "AES-256-GCM", "aes-256-gcm"),
    ("cipher: choices", "aes_256_gcm", "aes-256-gcm"),
    ("cipher: choices", "A256GCM", "aes-256-gcm"),
    ("tls: cipher", "TLS_AES_128_GCM_SHA256", "aes-128-gcm"),
    ("tls: cipher", "TLS_CHACHA20_POLY1305_SHA256", "chacha20-poly1305"),
    ("key-exchange: choices", "X25519MLKEM768", "x25519mlkem768"),
    ("key-exchange: choices", "secp256r1", "ecdh-p256"),
    ("key-exchange: choices", "MLKEM768", "ml-kem-768"),
    ("tls: key-exchange", "secp256r1", "ecdhe-p256"),
    ("tls: key-exchange", "P-256", "ecdhe-p256"),
    ("tls: key-exchange", "SecP256r1MLKEM768", "secp256r1mlkem768"),
    ("signature: choices", "P-256", "ecdsa-p256"),
    ("signature: choices", "prime256v1", "ecdsa-p256"),
    ("signature: choices", "nistp256", "ecdsa-p256"),
    ("signature: choices", "ES256", "ecdsa-p256"),
    ("signature: choices", "Ed25519", "ed25519"),
    ("signature: choices", "ED-25519", "ed25519"),
    ("signature: choices", "MLDSA65", "ml-dsa-65"),
    ("tls: certificate", "P-256", "ecdsa-p256"),
    ("tls: certificate", "RSA2048", "rsa-2048"),
    ("tls: certificate", "ECDSA-P256", "ecdsa-p256"),
    ("tls: certificate", "secp384r1", "ecdsa-p384"),
    ("web-auth: signature", "ES256", "es256"),
    ("web-auth: signature", "RS256", "rs256"),
    ("web-auth: signature", "Ed25519", "eddsa"),
    ("tls: choices", "TLSv1.3", "tls-1.3"),
    ("tls: choices", "tls13", "tls-1.3"),
    ("password-hash: choices", "PBKDF2-HMAC-SHA256", "pbkdf2-sha-256"),
    ("password-hash: coordinates", "m_cost", "memory"),
    ("password-hash: coordinates", "N", "n"),
    ("providers", "AWS-LC", "aws-lc"),
    ("providers", "openssl", "libcrypto"),
    ("providers", "Node.js", "node"),
    ("providers", "golang", "go"),
    ("servers", "apache", "httpd"),
    ("servers", "Nginx", "nginx"),
    ("tls: operations", "handshake", "connect"),
    ("mac: coordinates", "size", "bytes"),
    ("families", "TLS", "tls"),
    ("families", "hash", "digest"),
    ("families", "password", "password-hash"),
    ("families", "passwords", "password-hash"),
    ("families", "PasswordHash", "password-hash"),
    ("families", "kem", "key-exchange"),
    ("families", "encryption", "cipher"),
]


@pytest.mark.parametrize(("place", "word", "name"), TYPED)
def test_a_word_of_the_field_is_taken(place: str, word: str, name: str) -> None:
    assert name == spelling.find(word, PLACES[place])


@pytest.mark.parametrize(
    ("place", "word", "likeliest"),
    [
        ("signature: choices", "RS256", ["rsa-2048", "rsa-3072", "rsa-4096"]),
        ("signature: choices", "ecdsa", ["ecdsa-p256", "ecdsa-p384", "ecdsa-p521"]),
        ("key-exchange: choices", "Kyber768", ["ml-kem-768"]),
        ("password-hash: choices", "argon2", ["argon2id"]),
        ("cipher: choices", "3DES", ["3des-cbc"]),
        ("cipher: choices", "AES", ["aes-128-gcm", "aes-256-gcm"]),
        ("web-auth: signature", "ES265", ["es256"]),
        ("digest: choices", "sha-265", ["sha-256"]),
        ("password-hash: coordinates", "rounds", ["cost", "iterations"]),
    ],
)
def test_a_word_that_is_not_one_name_is_not_taken_and_the_likeliest_is_first(
    place: str, word: str, likeliest: Sequence[str]
) -> None:
    known = PLACES[place]
    assert spelling.find(word, known) is None
    assert likeliest == list(spelling.nearest(word, known))[: len(likeliest)]


def test_a_word_of_a_megabyte_is_no_name() -> None:
    assert spelling.find("a" * 1_000_000, PLACES["digest: choices"]) is None
    assert not spelling.nearest("a" * 1_000_000, PLACES["digest: choices"])


def test_long_names_of_a_file_are_not_listed() -> None:
    assert "known: one, two" == nearest("zzz", ["two", "one"])
    assert nearest("zzz", [f"{number}{'x' * 190}" for number in range(20)]) is None


def test_a_word_is_compared_with_a_limited_number_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand similar names took ten seconds."""
    compared = []
    matcher = difflib.SequenceMatcher

    def noted(*of: Any) -> difflib.SequenceMatcher[str]:
        compared.append(of)
        return matcher(*of)

    monkeypatch.setattr(difflib, "SequenceMatcher", noted)
    names = [f"{number:05d}-of-mine" for number in range(5_000)]
    assert ["00000-of-mine"] == [*spelling.nearest("00000-of-min", names)][:1]
    assert spelling.MOST_COMPARED == len(compared)
    assert ["04999-of-mine"] == [*spelling.nearest("04999_OF_mine", names)][:1]


def test_loads_are_coordinates() -> None:
    assert {*OF_A_LOAD} <= {*_coordinates(families()["web-auth"])}
