"""Accounts with which a run's users sign in, and the stores in which servers look them up."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tollbar.core.files import write
from tollbar.lab.servers.prepared import told_meanwhile
from tollbar.lab.servers.sandbox import Sandbox

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

REALM = "tollbar"
# Key of keyed hashes, which a server keeps next to its table.
PEPPER = secrets.token_bytes(32)
# An expensive hash takes some 50 ms of CPU time to make, and as long to check: ten thousand would take minutes.
DEAR_ACCOUNTS = 64
BCRYPT_COST = 10
# Longer than any run.
TOKEN_S = 30 * 86400
ARGON2_KIB, ARGON2_PASSES, ARGON2_LANES = 19 * 1024, 2, 1


@dataclass(frozen=True, slots=True)
class Credential:
    """Name and password of a user."""

    name: str
    password: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A server's stored form of a password."""

    of: Callable[[Credential], str]
    is_dear: bool = False
    """True if it is so expensive that only the first `DEAR_ACCOUNTS` have their own."""


def _unsalted_sha_1(one: Credential) -> str:
    return "{SHA}" + base64.b64encode(hashlib.sha1(one.password.encode()).digest()).decode()


def _salted_sha_1(one: Credential) -> str:
    salt = secrets.token_bytes(8)
    return "{SSHA}" + base64.b64encode(hashlib.sha1(one.password.encode() + salt).digest() + salt).decode()


def _bcrypt(one: Credential) -> str:
    import bcrypt

    return bcrypt.hashpw(one.password.encode(), bcrypt.gensalt(BCRYPT_COST)).decode()


def _argon2id(one: Credential) -> str:
    from argon2 import PasswordHasher

    return PasswordHasher(ARGON2_PASSES, ARGON2_KIB, ARGON2_LANES).hash(one.password)


def _digest(algorithm: str, one: Credential) -> str:
    """Return H(A1) of RFC 7616, which is equivalent to the password."""
    return f"{REALM}:" + hashlib.new(algorithm, f"{one.name}:{REALM}:{one.password}".encode()).hexdigest()


def _key(one: Credential) -> str:
    """Return the password itself, as the key of the user's signatures."""
    return one.password


def _sha_256(one: Credential) -> str:
    return "{SHA-256}" + hashlib.sha256(one.password.encode()).hexdigest()


def _hmac_sha_256(one: Credential) -> str:
    return "{HMAC-SHA-256}" + hmac.digest(PEPPER, one.password.encode(), "sha256").hex()


STORED: Mapping[str, Stored] = {
    "key": Stored(_key),
    "sha-256": Stored(_sha_256),
    "hmac": Stored(_hmac_sha_256),
    "sha-1": Stored(_unsalted_sha_1),
    "salted-sha-1": Stored(_salted_sha_1),
    "bcrypt": Stored(_bcrypt, is_dear=True),
    "argon2id": Stored(_argon2id, is_dear=True),
    "digest-md5": Stored(partial(_digest, "md5")),
    "digest-sha-256": Stored(partial(_digest, "sha256")),
}
"""Stored forms of a password, by name."""


def _rsa() -> PrivateKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(65537, 2048)


def _p256() -> PrivateKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _ed25519() -> PrivateKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return ed25519.Ed25519PrivateKey.generate()


KEYS: Mapping[str, Callable[[], PrivateKeyTypes]] = {"rs256": _rsa, "es256": _p256, "eddsa": _ed25519}
"""Functions that make the key of a token issuer, by the signature's name; other signatures use a secret instead."""


class Accounts:
    """A number of accounts, whose passwords and stores are made at their first use. Raises OSError."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._count = count
        self._secret = secrets.token_bytes(32)
        self._web_password = secrets.token_urlsafe(24)
        self._expired_token = secrets.token_urlsafe(24)
        self._spare_token = secrets.token_urlsafe(24)
        self._making = threading.Lock()
        self._hashes: dict[str, list[str]] = {}
        self._keys: dict[str, tuple[bytes, bytes]] = {}

    def __iter__(self) -> Iterator[Credential]:
        for number in range(self._count):
            name = f"u{number:05}"
            # These characters need no quoting in a header, a form, a file or SQL.
            made = hmac.digest(self._secret, name.encode(), "sha256")[:18]
            yield Credential(name, base64.urlsafe_b64encode(made).decode())

    @property
    def passwords(self) -> Path:
        """File with a line for each account: name, password and number of groups, for the load client only."""
        return self._made("accounts.tsv", lambda: self._lines("{name}\t{password}\t0"))

    def passwords_of(self, stored: str) -> Path:
        """Return the same file for this stored form; if it is expensive, with the first accounts' passwords for all."""
        first = [one.password for one in self][: self.usable(stored)]
        line = "{name}\t{password}\t0"
        return self._made(f"accounts-{len(first)}.tsv", lambda: self._lines(line, first))

    @property
    def pepper(self) -> Path:
        """File with the key of keyed hashes."""
        return self._made("pepper", lambda: PEPPER)

    def usable(self, stored: str) -> int:
        """Return the number of first accounts that can sign in with this stored form."""
        return min(self._count, DEAR_ACCOUNTS) if STORED[stored].is_dear else self._count

    def file(self, stored: str) -> Path:
        """Return a file with a line `name:stored` for each account."""
        return self._made(f"{stored}.txt", lambda: self._stored_lines(stored))

    def sqlite(self, stored: str) -> Path:
        """Return a SQLite file with a table `accounts` of names and stored passwords."""
        return self._made(f"{stored}.sqlite", lambda: self._database(stored))

    def postgresql(self, stored: str) -> Path:
        """Return SQL for a table `accounts` of names and stored passwords, and the role `web`, which may read it."""
        return self._made(f"{stored}.sql", lambda: self._tables(stored))

    @property
    def web_password(self) -> Path:
        """File with the password of the role `web`, as PostgreSQL's clients read it."""
        return self._made("web.password", lambda: f"*:*:*:web:{self._web_password}\n".encode())

    @property
    def tokens(self) -> Path:
        """SQLite file with a table `held` of token hashes.

        Each password serves as a token; there are also a spare and an expired one.
        """
        return self._made("tokens.sqlite", self._tokens)

    @property
    def sessions(self) -> Path:
        """SQLite file with a table `held` of sessions, one for each account.

        Its rows have the length of those of `tokens`; the text of a session is not kept.
        """
        return self._made("sessions.sqlite", self._sessions)

    @property
    def expired_token(self) -> Path:
        """File with the expired token."""
        return self._made("expired.token", self._expired_token.encode)

    @property
    def spare_token(self) -> Path:
        """File with a token that no account uses, so that a proof may revoke it."""
        return self._made("spare.token", self._spare_token.encode)

    def issuer_key(self, signature: str) -> Path:
        """Return the file with which tokens are signed: a PEM key, or the secret."""
        return self._made(f"{signature}.key", lambda: self._key_pair(signature)[0])

    def verification_key(self, signature: str) -> Path:
        """Return the file with which a server verifies tokens: a PEM key, or the same secret."""
        return self._made(f"{signature}.pub", lambda: self._key_pair(signature)[1])

    def _key_pair(self, signature: str) -> tuple[bytes, bytes]:
        if signature not in self._keys:
            if signature in KEYS:
                from cryptography.hazmat.primitives.serialization import (
                    Encoding,
                    NoEncryption,
                    PrivateFormat,
                    PublicFormat,
                )

                key = KEYS[signature]()
                private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
                public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            else:
                private = public = secrets.token_urlsafe(32).encode()
            self._keys[signature] = (private, public)
        return self._keys[signature]

    def _tokens(self) -> bytes:
        now_s = int(time.time())
        tokens = [(one.password, one.name, now_s + TOKEN_S) for one in self]
        others = ((self._expired_token, now_s - TOKEN_S), (self._spare_token, now_s + TOKEN_S))
        return _held([*tokens, *((token, tokens[0][1], until_s) for token, until_s in others)])

    def _sessions(self) -> bytes:
        until_s = int(time.time()) + TOKEN_S
        return _held((secrets.token_urlsafe(18), one.name, until_s) for one in self)

    def _made(self, name: str, content: Callable[[], bytes]) -> Path:
        """Return a file of the lab, made if necessary; each server and client that uses it gets a copy."""
        path = self._folder / name
        with self._making:
            if not path.exists():
                self._folder.mkdir(exist_ok=True)
                self._folder.chmod(0o711)
                write(path, content(), 0o600)
        return path

    def _lines(self, line: str, passwords: Sequence[str] = ()) -> bytes:
        """Return a line for each account, with its own password or, in turn, one of these."""
        given = cycle(passwords) if passwords else (one.password for one in self)
        lines = zip(self, given, strict=False)
        return "".join(line.format(name=one.name, password=password) + "\n" for one, password in lines).encode()

    def _stored(self, stored: str) -> Iterator[tuple[str, str]]:
        made = self._hashes.get(stored)
        if made is None:
            # The hash functions release the interpreter lock, so two threads help.
            count = self.usable(stored)
            words = f"making {count:,} accounts, whose passwords are stored as {stored}"
            with told_meanwhile(words), ThreadPoolExecutor(2) as pool:
                made = self._hashes[stored] = list(pool.map(STORED[stored].of, list(self)[: self.usable(stored)]))
        # The other accounts only fill the table. They have hashes of the first ones' passwords, and are never drawn.
        yield from ((one.name, made[number % len(made)]) for number, one in enumerate(self))

    def _stored_lines(self, stored: str) -> bytes:
        return "".join(f"{name}:{text}\n" for name, text in self._stored(stored)).encode()

    def _database(self, stored: str) -> bytes:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("create table accounts (name text primary key, hash text not null) without rowid")
            connection.executemany("insert into accounts values (?, ?)", self._stored(stored))
            connection.commit()
            return connection.serialize()

    def _tables(self, stored: str) -> bytes:
        # The only special character here is the backslash, which no stored password contains.
        rows = "".join(f"{name}\t{text}\n" for name, text in self._stored(stored))
        return (
            "create table accounts (name text primary key, hash text not null);\n"
            f"copy accounts from stdin;\n{rows}\\.\n"
            f"create role web login password '{self._web_password}';\n"
            "grant select on accounts to web;\n"
            # As in the article of 2002: the web server calls a procedure, which looks the hash up.
            "create function stored_hash(text) returns setof text language sql stable"
            " as 'select hash from accounts where name = $1';\n"
        ).encode()


def _held(texts: Iterable[tuple[str, str, int]]) -> bytes:
    """Return a SQLite database of users: the hash of each text, its user, and its expiry in seconds."""
    rows = ((hashlib.sha256(text.encode()).digest(), name, until_s) for text, name, until_s in texts)
    with sqlite3.connect(":memory:") as connection:
        connection.execute(
            "create table held (hash blob primary key, name text not null, expires_s integer not null) without rowid"
        )
        connection.executemany("insert into held values (?, ?, ?)", rows)
        connection.commit()
        return connection.serialize()


class UnmadeAccounts(Accounts):
    """Paths of accounts for display: nothing is made."""

    def _made(self, name: str, content: Callable[[], bytes]) -> Path:
        return self._folder / name


_OF_RUNS: WeakKeyDictionary[Sandbox, dict[int, Accounts]] = WeakKeyDictionary()
_MAKING = threading.Lock()


def accounts_of(sandbox: Sandbox, count: int) -> Accounts:
    """Return the accounts of a run, `count` of them."""
    with _MAKING:
        of_run = _OF_RUNS.setdefault(sandbox, {})
        return of_run.setdefault(count, Accounts(sandbox.directory / f"accounts-{count}", count))
