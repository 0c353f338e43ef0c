"""Stored password hashes in a question: each form has its words, and no salt or hash is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollbar import study
from tollbar.catalog.families import family
from tollbar.core.errors import TollbarError
from tollbar.study.stored_hashes import words_of

SALT, HASH = "c2FsdHNhbHRzYWx0", "aGFzaGhhc2hoYXNoaGFzaA"
FORMS = {
    f"$argon2id$v=19$m=65536,t=3,p=4${SALT}${HASH}": "argon2id memory=65536KiB passes=3 lanes=4",
    f"argon2$argon2id$v=19$m=102400,t=2,p=8${SALT}${HASH}": "argon2id memory=102400KiB passes=2 lanes=8",
    f"$2b$12${SALT}{HASH}": "bcrypt cost=12",
    f"$2y$05${SALT}{HASH}": "bcrypt cost=5",
    f"{{bcrypt}}$2a$10${SALT}{HASH}": "bcrypt cost=10",
    f"bcrypt_sha256$$2b$12${SALT}{HASH}": "bcrypt cost=12",
    f"pbkdf2_sha256$1000000${SALT}${HASH}=": "pbkdf2-sha-256 iterations=1000000",
    f"pbkdf2:sha256:1000000${SALT}${HASH}": "pbkdf2-sha-256 iterations=1000000",
    f"$pbkdf2-sha512$25000${SALT}${HASH}": "pbkdf2-sha-512 iterations=25000",
    f"scrypt:32768:8:1${SALT}${HASH}": "scrypt n=32768 r=8 p=1",
    "scrypt:32768:8:1": "scrypt n=32768 r=8 p=1",
    f"scrypt$16384${SALT}$8$5${HASH}==": "scrypt n=16384 r=8 p=5",
    f"$scrypt$ln=16,r=8,p=1${SALT}${HASH}": "scrypt n=2^16 r=8 p=1",
}


@pytest.mark.parametrize("stored", FORMS)
@pytest.mark.parametrize("name", ["password-hash", "digest"])
def test_a_stored_hash_has_the_words_of_its_parameters(stored: str, name: str) -> None:
    with pytest.raises(TollbarError, match="its parameters are needed") as raised:
        study.of_words(name, [stored])
    said = f"{raised.value} {raised.value.hint}"
    assert f"type `{FORMS[stored]}`" in said
    assert SALT not in said
    assert HASH not in said


@pytest.mark.parametrize("words", sorted(set(FORMS.values())))
def test_the_words_are_a_question(words: str) -> None:
    choice, *settings = words.split()
    assert choice in family("password-hash").choices
    assert study.of_words("password-hash", [choice, *settings]).text()


@pytest.mark.parametrize(
    "text", ["argon2id", "bcrypt-12", "$apr1$ab$cd", "$6$rounds=5000$ab$cd", "{SHA}abc", "bytes=4KiB", "$"]
)
def test_other_words_are_no_stored_hashes(text: str) -> None:
    assert words_of(text) is None


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert words_of(text) is None or "$" in text or ":" in text
