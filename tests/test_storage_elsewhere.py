"""Stored values of the application's choices, compared with another implementation.

Each reads the other's rows, and both refuse changed ones. The other implementation is `cryptography`; the rows are
reached by `sqlite3`, psql and MariaDB's own client.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import sqlite3
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import test_databases
import test_store
from patience import PATIENCE_S
from server_lab import query
from tollbar.core.runner import Session, Stopped, engine
from tollbar.core.runner.confined import Account
from tollbar.lab.servers.sandbox import Sandbox

CHOICES = ("aes-256-gcm", "blind-index", "envelope-aes", "envelope-rsa", "rsa-oaep")
DATABASES = ("sqlite", "postgresql", "mariadb")
# Position in the table of each protected column, to which its values are bound; the data key has the position after
# all.
PLACES = {"card_number1": 2, "security_code1": 6, "secure_string1": 10, "data_key": 14}
VALUES = ("card_number1", "security_code1", "secure_string1")
NONCE_BYTES = 12
ROWS, READ = 8, 40


Row = dict[str, bytes]
Refused = (InvalidTag, ValueError)


@dataclass(frozen=True)
class Theirs:
    """Independent implementation of the choices."""

    choice: str
    aes_key: bytes
    code_key: bytes
    rsa_key: rsa.RSAPrivateKey

    @property
    def inputs(self) -> Mapping[str, str]:
        """Return the keys as a task has them."""
        pkcs8 = self.rsa_key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {"aes_key_hex": self.aes_key.hex(), "code_key_hex": self.code_key.hex(), "rsa_key_hex": pkcs8.hex()}

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the choice fills with bytes."""
        added = {"blind-index": ("number_code",), "envelope-aes": ("data_key",), "envelope-rsa": ("data_key",)}
        return VALUES + added.get(self.choice, ())

    def open(self, card_id: int, row: Row) -> Row:
        """Return the plaintext of the three values.

        Raises Refused.
        """
        seal_key = None
        if "data_key" in row:
            seal_key = self._open("data_key", card_id, row["data_key"])
        plain = {name: self._open(name, card_id, row[name], seal_key) for name in VALUES}
        if "number_code" in row and not hmac.compare_digest(row["number_code"], self._code(plain)):
            raise ValueError("the code is that of another number")
        return plain

    def seal(self, card_id: int, plain: Row) -> Row:
        """Return the stored form of the three values."""
        data_key = secrets.token_bytes(32) if "data_key" in self.columns else None
        row = {name: self._seal(name, card_id, plain[name], data_key) for name in VALUES}
        if data_key is not None:
            row["data_key"] = self._seal("data_key", card_id, data_key)
        if "number_code" in self.columns:
            row["number_code"] = self._code(plain)
        return row

    def _code(self, plain: Row) -> bytes:
        return hmac.new(self.code_key, plain["card_number1"], hashlib.sha256).digest()

    def _uses_rsa(self, data_key: bytes | None) -> bool:
        return self.choice in ("rsa-oaep", "envelope-rsa") and data_key is None

    def _open(self, name: str, card_id: int, stored: bytes, data_key: bytes | None = None) -> bytes:
        if self._uses_rsa(data_key):
            return self.rsa_key.decrypt(stored, oaep(bound_to(card_id, name)))
        cipher = AESGCM(data_key or self.aes_key)
        return cipher.decrypt(stored[:NONCE_BYTES], stored[NONCE_BYTES:], bound_to(card_id, name))

    def _seal(self, name: str, card_id: int, plain: bytes, data_key: bytes | None = None) -> bytes:
        if self._uses_rsa(data_key):
            return self.rsa_key.public_key().encrypt(plain, oaep(bound_to(card_id, name)))
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + AESGCM(data_key or self.aes_key).encrypt(nonce, plain, bound_to(card_id, name))


def oaep(label: bytes) -> padding.OAEP:
    """Return OAEP with SHA-256 throughout."""
    return padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), label)


def bound_to(card_id: int, name: str) -> bytes:
    """Return the bytes of a row and a column."""
    return card_id.to_bytes(8, "big") + bytes([PLACES[name]])


@dataclass(frozen=True)
class Table:
    """The engine's table, reached without the engine."""

    task: Mapping[str, Any]
    name: str
    ask: Callable[[str], list[list[str]]]
    """Rows of a statement's result, as text."""
    in_hex: str
    """SQL expression for a column's bytes in hexadecimal."""
    of_hex: str
    """SQL expression for the bytes of hexadecimal digits."""
    account: Account | None = None
    """Account of the engine in root's lab."""

    def rows(self, columns: tuple[str, ...]) -> dict[int, Row]:
        """Return all rows by their ids."""
        words = ", ".join(self.in_hex.format(name) for name in columns)
        found = self.ask(f"select card_id, {words} from {self.name}")
        return {int(row[0]): dict(zip(columns, map(bytes.fromhex, row[1:]), strict=True)) for row in found}

    def put(self, card_id: int, row: Row) -> None:
        """Replace columns of a row."""
        words = ", ".join(f"{name} = {self.of_hex.format(stored.hex())}" for name, stored in row.items())
        self.ask(f"update {self.name} set {words} where card_id = {card_id}")


def in_sqlite(path: Path, sql: str) -> list[list[str]]:
    """Run a statement by Python's own SQLite."""
    with contextlib.closing(sqlite3.connect(path)) as other:
        found = [[str(value) for value in row] for row in other.execute(sql)]
        other.commit()
    return found


@contextlib.contextmanager
def table(database: str, theirs: Theirs, at: Sandbox, path: Path) -> Iterator[Callable[[int], Table]]:
    """Yield a maker of tables with a number of rows, which exist when a session for the table is ready."""
    if database == "sqlite":

        def embedded(rows: int) -> Table:
            directory = path / secrets.token_hex(4)
            directory.mkdir()
            task = test_store.task(directory, "sqlite", theirs.choice, "find", rows=rows)
            ask = partial(in_sqlite, directory / "cards.sqlite")
            return Table({**task, "inputs": theirs.inputs}, "card", ask, "hex({})", "x'{}'")

        yield embedded
        return
    case = test_databases.Case(database, theirs.choice)
    separator = "|" if database == "postgresql" else "\t"
    words = ("encode({}, 'hex')", "decode('{}', 'hex')") if database == "postgresql" else ("hex({})", "x'{}'")
    with test_databases.started(at, case) as server:

        def of_server(rows: int) -> Table:
            task = test_databases.task(at, server, case, "measure", "find", rows=rows)

            def ask(sql: str) -> list[list[str]]:
                return [line.split(separator) for line in query(server, sql)]

            return Table({**task, "inputs": theirs.inputs}, "cards", ask, *words, server.client_account())

        yield of_server


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    """Return one key for all choices, because making it takes a while."""
    return rsa.generate_private_key(65537, 2048)


@pytest.mark.share(1)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("database", DATABASES)
def test_each_reads_what_the_other_wrote_and_refuses_what_was_changed(
    at: Sandbox, tmp_path: Path, rsa_key: rsa.RSAPrivateKey, database: str, choice: str
) -> None:
    theirs = Theirs(choice, secrets.token_bytes(32), secrets.token_bytes(32), rsa_key)
    with table(database, theirs, at, tmp_path) as fresh:
        whole = fresh(ROWS)
        with Session([str(engine()), "store"], whole.task, account=whole.account) as opened:
            opened.ready(PATIENCE_S)
            rows = whole.rows(theirs.columns)
            assert set(range(1, ROWS + 1)) == set(rows)
            plain = {card_id: theirs.open(card_id, row) for card_id, row in rows.items()}
            assert all(has_the_form_of_a_card(card) for card in plain.values())
            for card_id, card in plain.items():
                again = theirs.seal(card_id, card)
                assert [] == [name for name in VALUES if again[name] == rows[card_id][name]]
                whole.put(card_id, again)
            # Ours compares each value with its expected card.
            assert opened.advance(0.0, READ, PATIENCE_S).operations >= READ
            opened.finish()
        for column in theirs.columns:
            alone = fresh(1)
            with Session([str(engine()), "store"], alone.task, account=alone.account) as opened:
                opened.ready(PATIENCE_S)
                (row,) = alone.rows(theirs.columns).values()
                changed = {**row, column: bytes([*row[column][:-1], row[column][-1] ^ 1])}
                with pytest.raises(Refused):
                    theirs.open(1, changed)
                alone.put(1, changed)
                with pytest.raises(Stopped) as stopped:
                    opened.advance(0.0, 1, PATIENCE_S)
            assert "failed" == stopped.value.record.outcome


def has_the_form_of_a_card(plain: Row) -> bool:
    """Return whether the values have the form of a card.

    It is a number of sixteen digits, a code of twelve bits, and a string of 36 characters.
    """
    number = int.from_bytes(plain["card_number1"], "big", signed=True)
    code = int.from_bytes(plain["security_code1"], "big", signed=True)
    text = plain["secure_string1"].decode("ascii")
    allowed = set(string.ascii_letters + string.digits + " -")
    return len(str(number)) == 16 and 0 <= code < 4096 and len(text) == 36 and set(text) <= allowed


@pytest.mark.parametrize("name", ["aes_key_hex", "rsa_key_hex"])
def test_a_key_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    """No other key is used in its place."""
    choice = "rsa-oaep" if name.startswith("rsa") else "aes-256-gcm"
    asked = {**test_store.task(tmp_path, "sqlite", choice), "inputs": {name: "00" * 31}}
    record = test_store.store(asked)
    assert "failed" == record.outcome
    assert name in str(record.reason)
