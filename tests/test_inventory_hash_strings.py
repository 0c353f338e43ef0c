"""Inventories: a stored password hash is the function and the costs that it names, whatever its salt and hash are."""

from __future__ import annotations

import pytest

from test_inventory import algorithm
from test_inventory_contradictions import one
from test_price_weak import line
from tollbar.catalog.policies import Ruling

OWASP = "owasp-password-storage-2026-06"
SALT = "c2FsdHNhbHRzYWx0"
HASH = "kJ7mYq0vXo3Zt8wE5bRcNd1fGh2LsPaUkJ7mYq0vXo3Zt8wE5bRcNd1fGh2LsPaU"
BCRYPT = "N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        # The format of the Password Hashing Competition.
        (f"$argon2id$v=19$m=4096,t=3,p=1${SALT}${HASH}",
         "password-hash argon2id memory=4194304 passes=3 lanes=1"),
        (f"$argon2id$v=19$m=65536,t=3,p=4${SALT}", "password-hash argon2id memory=67108864 passes=3 lanes=4"),
        (f"$argon2id$m=19456,t=2,p=1${SALT}${HASH}", "password-hash argon2id memory=19922944 passes=2 lanes=1"),
        (f"$scrypt$ln=17,r=8,p=1${SALT}${HASH}", "password-hash scrypt n=131072 r=8 p=1"),
        (f"$pbkdf2-sha256$29000${SALT}${HASH}", "password-hash pbkdf2-sha-256 iterations=29000"),
        (f"$pbkdf2-sha256$i=600000,l=32${SALT}${HASH}", "password-hash pbkdf2-sha-256 iterations=600000"),
        (f"$pbkdf2-sha512$25000${SALT}${HASH}", "password-hash pbkdf2-sha-512 iterations=25000"),
        (f"$pbkdf2$131000${SALT}${HASH}", "password-hash pbkdf2-sha-1 iterations=131000"),
        # crypt(3).
        (f"$2y$05${BCRYPT}", "password-hash bcrypt cost=5"),
        (f"$2b$12${BCRYPT}", "password-hash bcrypt cost=12"),
        # Django, Werkzeug and Spring Security.
        (f"pbkdf2_sha256$1000000${SALT}${HASH}=", "password-hash pbkdf2-sha-256 iterations=1000000"),
        (f"pbkdf2_sha1$180000${SALT}${HASH}=", "password-hash pbkdf2-sha-1 iterations=180000"),
        (f"argon2$argon2id$v=19$m=102400,t=2,p=8${SALT}${HASH}",
         "password-hash argon2id memory=104857600 passes=2 lanes=8"),
        (f"scrypt$16384${SALT}$8$5${HASH}==", "password-hash scrypt n=16384 r=8 p=5"),
        (f"bcrypt$$2b$12${BCRYPT}", "password-hash bcrypt cost=12"),
        (f"scrypt:32768:8:1${SALT}$0123abcd", "password-hash scrypt n=32768 r=8 p=1"),
        (f"pbkdf2:sha256:1000000${SALT}$0123abcd", "password-hash pbkdf2-sha-256 iterations=1000000"),
        (f"{{bcrypt}}$2a$10${BCRYPT}", "password-hash bcrypt cost=10"),
        (f"{{argon2}}$argon2id$v=19$m=16384,t=2,p=1${SALT}${HASH}",
         "password-hash argon2id memory=16777216 passes=2 lanes=1"),
        # LDAP (RFC 2307), and its modules.
        (f"{{SSHA}}{HASH}", "password-hash salted-sha-1"),
        (f"{{SSHA256}}{HASH}=", "password-hash salted-sha-256"),
        (f"{{PBKDF2-SHA512}}10000${SALT}${HASH}", "password-hash pbkdf2-sha-512 iterations=10000"),
        (f"{{CRYPT}}$2b$12${BCRYPT}", "password-hash bcrypt cost=12"),
        (f"{{BLF-CRYPT}}$2y$05${BCRYPT}", "password-hash bcrypt cost=5"),
    ],
)  # fmt: skip
def test_a_stored_hash_is_read_with_its_costs(text: str, choice: str) -> None:
    assert choice == one(algorithm(text))


@pytest.mark.parametrize(
    "text",
    [
        "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
        "{MD5}X03MO1qnZdYdgyfeuILPmQ==",
        "{SHA256}n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
        "{SMD5}WHt6vSF5Mm7cvVJkEHgjNg==",
        "unsalted SHA-1 password hash",
        "unsalted SHA-256 password",
        "mysql_old_password",
        "mysql_native_password",
        "mysql41",
        "mysql323",
        "ldap_sha1",
        "ldap_md5",
        "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19",
        "md5827ccb0eea8a706c4c34a16891f84e7b",
        f"$1${SALT[:8]}$7s8Yf1",
        f"$apr1${SALT[:8]}$7s8Yf1",
        "$P$B7s8Yf1ZmM4Vd0X3uT6qJp9aRk2WcE1",
        "$3$$8846f7eaee8fb117ad06bdd830b7586c",
        f"$2y$05${BCRYPT}",
        f"$pbkdf2-sha256$29000${SALT}${HASH}",
        f"scrypt:32768:8:1${SALT}$0123abcd",
    ],
)
def test_a_weak_stored_hash_breaks_a_policy_of_passwords(text: str) -> None:
    assert Ruling.BREAKS is line(algorithm(text), OWASP).ruling


@pytest.mark.parametrize(
    "text", ["bcrypt_sha256$$2b$12$", f"bcrypt_sha256$$2b$12${BCRYPT}", f"$bcrypt-sha256$v=2,t=2b,r=12${SALT}${HASH}"]
)
def test_bcrypt_of_a_digest_is_not_bcrypt(text: str) -> None:
    found = line(algorithm(text), OWASP)
    assert Ruling.CANNOT_SAY is found.ruling
    assert f"{text} is not among Tollbar's choices"[:60] == str(found.reason)[:60]


@pytest.mark.parametrize("text", ["$argon2id$v=19$m=4096,t=3$p$q$r$s", "$argon2id$x=1$", "pbkdf2_sha256$many$a$b"])
def test_a_damaged_stored_hash_is_not_read(text: str) -> None:
    found = line(algorithm(text), OWASP)
    assert Ruling.MEETS is not found.ruling
    assert found.reason
