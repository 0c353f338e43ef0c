"""Known answers: their sources, their settings, and agreement with Python's own functions."""

from __future__ import annotations

import hashlib
import hmac
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tollbar.catalog.families
from conftest import lacking
from family_text import as_a_study_writes_it
from tollbar.catalog.families import Answer, Choice, Family, Standing, families

ROOT = Path(tollbar.catalog.families.__file__).parent

# Limits above which a test would take as long as a password hash.
FEW_ITERATIONS = 10_000
SMALL_N = 2**10


def all_choices() -> Iterator[tuple[Family, Choice]]:
    """Yield every choice of every family."""
    return ((family, choice) for family in families().values() for choice in family.choices.values())


def answers(family: str) -> list[tuple[Choice, Answer]]:
    """Return every known answer of a family, with its choice."""
    return [(choice, answer) for choice in families()[family].choices.values() for answer in choice.answers]


def message(answer: Answer) -> bytes:
    """Return the message of a known answer, written as text or in hex."""
    return answer.inputs["of"].encode() if "of" in answer.inputs else bytes.fromhex(answer.inputs["of_hex"])


def parameters(choice: Choice, answer: Answer) -> dict[str, int]:
    """Return a password hash's parameters for one answer: the choice's own, overridden by the answer's."""
    merged = {**choice.setting, **answer.setting}
    return {name: value for name, value in merged.items() if isinstance(value, int)}


def folders() -> list[Path]:
    """Return the folder of every family."""
    return [path.parent for path in ROOT.glob("*/family.toml")]


def named_files(folder: Path, key: str) -> set[str]:
    """Return every file that a family names under `key`, at a choice (`key`) or at an answer (`file`)."""
    named: set[str] = set()
    for choice in tomllib.loads((folder / "family.toml").read_text("utf-8"))["choice"].values():
        holders = [choice, *choice.get("answers", [])]
        named |= {holder[key] for holder in holders if key in holder}
    return named


def test_every_key_and_answer_is_used() -> None:
    keys = {path.name for path in (ROOT / "keys").glob("*.pem")}
    assert keys == {name for folder in folders() for name in named_files(folder, "key")}
    for folder in folders():
        assert {path.name for path in folder.glob("answers/*")} == named_files(folder, "file"), folder.name


def test_every_answer_names_its_source() -> None:
    for folder in folders():
        for name, choice in tomllib.loads((folder / "family.toml").read_text("utf-8"))["choice"].items():
            for answer in choice.get("answers", []):
                read = json.loads((folder / "answers" / answer["file"]).read_text()) if "file" in answer else answer
                assert read.get("source"), f"{folder.name}: {name}"


def test_answers_are_lower_case_hex() -> None:
    for family, choice in all_choices():
        for answer in choice.answers:
            texts = [answer.expected, *(v for name, v in answer.inputs.items() if name.endswith("_hex"))]
            for text in texts:
                assert text == bytes.fromhex(text).hex(), f"{family.name}: {choice.name}"


def test_answers_set_only_what_can_be_set() -> None:
    for family, choice in all_choices():
        for answer in choice.answers:
            for name, value in answer.setting.items():
                assert name in family.settings or name in choice.setting, f"{family.name}: {choice.name}: {name}"
                if name in family.settings:
                    setting = family.settings[name]
                    assert value == setting.read(as_a_study_writes_it(setting, value))


HASHLIB = {
    "md5": "md5",
    "sha-1": "sha1",
    "sha-224": "sha224",
    "sha-256": "sha256",
    "sha-384": "sha384",
    "sha-512": "sha512",
    "sha-512-256": "sha512_256",
    "sha3-256": "sha3_256",
    "sha3-512": "sha3_512",
    "blake2b-512": "blake2b",
    "blake2s-256": "blake2s",
}


@pytest.mark.parametrize("name", HASHLIB)
def test_digest_answers_agree_with_hashlib(name: str) -> None:
    if HASHLIB[name] not in hashlib.algorithms_available:
        lacking(f"this Python has no {HASHLIB[name]}")
    for answer in families()["digest"].choices[name].answers:
        assert answer.expected == hashlib.new(HASHLIB[name], message(answer)).hexdigest()


@pytest.mark.parametrize("name", ["hmac-sha-1", "hmac-sha-256", "hmac-sha-512"])
def test_hmac_answers_agree_with_python(name: str) -> None:
    digest = HASHLIB[name.removeprefix("hmac-")]
    for answer in families()["mac"].choices[name].answers:
        key = bytes.fromhex(answer.inputs["key_hex"])
        assert answer.expected == hmac.new(key, message(answer), digest).hexdigest()


def salted(digest: str) -> Callable[[bytes, bytes, dict[str, int], int], bytes | None]:
    """Return a function that hashes salt and password once."""
    return lambda password, salt, _parameters, _length: hashlib.new(digest, salt + password).digest()


def pbkdf2(digest: str) -> Callable[[bytes, bytes, dict[str, int], int], bytes | None]:
    """Return a function for PBKDF2, which returns None if it would take too long for a test."""

    def derive(password: bytes, salt: bytes, parameters: dict[str, int], length: int) -> bytes | None:
        if parameters["iterations"] > FEW_ITERATIONS:
            return None
        return hashlib.pbkdf2_hmac(digest, password, salt, parameters["iterations"], length)

    return derive


def scrypt(password: bytes, salt: bytes, parameters: dict[str, int], length: int) -> bytes | None:
    """Return scrypt's hash, or None if it would take too long for a test."""
    if parameters["n"] > SMALL_N:
        return None
    n, r, p = parameters["n"], parameters["r"], parameters["p"]
    return hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, dklen=length)


PASSWORD_HASHES = {
    "salted-sha-1": salted("sha1"),
    "salted-sha-256": salted("sha256"),
    "pbkdf2-sha-1": pbkdf2("sha1"),
    "pbkdf2-sha-256": pbkdf2("sha256"),
    "pbkdf2-sha-512": pbkdf2("sha512"),
    "scrypt": scrypt,
}


@pytest.mark.parametrize("algorithm", PASSWORD_HASHES)
def test_password_hash_answers_agree_with_hashlib(algorithm: str) -> None:
    compared = 0
    for choice, answer in answers("password-hash"):
        if choice.setting.get("algorithm", choice.name) != algorithm:
            continue
        password, salt = answer.inputs["password"].encode(), bytes.fromhex(answer.inputs["salt_hex"])
        length = len(answer.expected) // 2
        derived = PASSWORD_HASHES[algorithm](password, salt, parameters(choice, answer), length)
        if derived is not None:
            assert answer.expected == derived.hex(), choice.name
            compared += 1
    assert compared


def test_every_password_hash_has_an_answer_for_its_own_parameters() -> None:
    unanswered = [
        choice.name
        for choice in families()["password-hash"].choices.values()
        if choice.standing is not Standing.NULL and choice.setting and all(answer.setting for answer in choice.answers)
    ]
    expected = ["argon2id-rfc9106-2g"]
    assert expected == unanswered


def test_test_keys_reach_the_task() -> None:
    for family, choice in all_choices():
        # A store makes its own keys; a key to connect to a server exists.
        needs_key = choice.name.startswith(("rsa-", "dsa-", "key-")) and family.name != "storage"
        needs_key = needs_key or (family.name == "tls-client" and choice.standing is not Standing.NULL)
        assert needs_key == ("private_key_pem" in choice.inputs), f"{family.name}: {choice.name}"
        if needs_key:
            assert choice.inputs["private_key_pem"].startswith("-----BEGIN PRIVATE KEY-----\n")


def test_public_keys_are_subject_public_key_info() -> None:
    """A public key is a SEQUENCE that begins with an algorithm, not a bare number."""
    for choice in families()["signature"].choices.values():
        for answer in choice.answers:
            key = bytes.fromhex(answer.inputs["public_key_der_hex"])
            first_inside = 2 + (key[1] & 0x7F if key[1] & 0x80 else 0)
            sequence = 0x30
            assert sequence == key[first_inside], choice.name
