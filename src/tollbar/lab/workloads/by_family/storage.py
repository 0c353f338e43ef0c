"""Workload of encrypted storage: a table in a database, and a client that writes and reads it with its keys."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar

from tollbar.catalog import families, servers
from tollbar.catalog.families import Degree, Standing
from tollbar.catalog.servers import Installed, NotStarted, Server, Unavailable
from tollbar.catalog.servers.remote import Remote
from tollbar.core import machine
from tollbar.core.records import CLIENT, RUNNER, Outcome, Proven, Record, failed
from tollbar.core.runner import engine
from tollbar.core.runner.confined import Account
from tollbar.lab import tls
from tollbar.lab.servers import driver, handing
from tollbar.lab.servers.configuration import ADDRESS, SHOWN, Request, rendered
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls import Certificates
from tollbar.lab.workloads import Given, Shown, Work, Workload, unproven
from tollbar.lab.workloads.request import settings_of
from tollbar.study.plan.cells import Cell

# Some twenty rows are written and read a handful of times; the slowest take milliseconds each.
PROOF_LIMIT_S = 60.0
# Rows that a chunk of inserts has, instead of a duration, because a row costs more in a larger table: some milliseconds
# without encryption, embedded or in a server. Fewer if each row waits for the disk.
EMBEDDED_ROWS, SERVER_ROWS, FLUSHED_ROWS = 1000, 250, 50
# Limit of a server's silence over one statement. The slowest searches decrypt each row of a table. It is below the
# lab's limit of 60 s for a chunk, so that a failure names the server.
ANSWER_LIMIT_S = 50.0
# Least number of rows that share a commit.
FEWEST = {"insert-and-read": 20}
# Length of the text to search for in the files: too long to occur by chance.
MARK_CHARACTERS = 24
# Files are read in pieces of this size, so that the lab never holds a table.
PIECE_BYTES = 1 << 20
# Databases in the engine's own process.
EMBEDDED = ("sqlite", "sqlcipher")
IN_APPLICATION = ("plaintext", "aes-256-gcm", "blind-index", "envelope-aes", "envelope-rsa", "rsa-oaep")
# Choices of each database.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "sqlite": IN_APPLICATION,
    "sqlcipher": (*IN_APPLICATION, "sqlcipher"),
    "postgresql": (*IN_APPLICATION, "pgp-pub-encrypt", "pgp-sym-encrypt", "encrypt-iv", "encrypt-iv-hmac"),
    "mariadb": (*IN_APPLICATION, "aes-encrypt", "table-encryption"),
}
# MariaDB's log that the setting `log` is about.
REDO_LOG = "data/ib_logfile*"
# MariaDB looks up the name of the account at the other end of the socket. Only the lab's account has a name, so its
# client runs as the lab's user, without the lab's rights.
BY_NAME = "unix-socket"
# User that the servers' configurations admit over their sockets.
USER = "tollbar"
# Path of each server's socket in its directory (PostgreSQL takes the folder), and the database's name.
REACHED = {"postgresql": ("", "postgres"), "mariadb": ("private/mariadb.sock", "tollbar")}

# PostgreSQL 15's own choice for a client without preferences: it has one curve, and OpenSSL's first suite.
CERTIFICATE = "ecdsa-p256"
OVER_TLS: Mapping[str, str | int] = {
    "choice": "tls-1.3",
    "certificate": CERTIFICATE,
    "key-exchange": "ecdhe-p256",
    "cipher": "aes-256-gcm",
}
UNMADE = tls.UnmadeCertificates(SHOWN / "certificates")


class StorageWorkload(Workload):
    """Rows of a table with three secret columns."""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = CHOICES

    def needs_sandbox(self, cell: Cell) -> bool:
        """Return True, because an embedded database has its files in the sandbox."""
        return True

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof: a few rows written and read, right and wrong, and a search of the database's files."""
        assert given.sandbox is not None, "databases need a sandbox"
        mark = "".join(secrets.choice(string.ascii_letters) for _ in range(MARK_CHARACTERS))
        try:
            with self._database(cell, given.sandbox, None) as database:
                record = self._proved(cell, seed, given, database, mark=mark)
                if record.outcome is not Outcome.OK or record.proof is None:
                    return unproven(cell, record.outcome, record.reason)
                database.close()
                found_in = _files_with(database.directory, mark.encode())
        except NotStarted as error:
            return unproven(cell, error.outcome, error.reason)
        accepted, refused = record.proof.accepted, record.proof.refused
        kept = families.family(cell.family).mitigations_of(cell.coordinates)["stolen-files"].degree is not Degree.NO
        if cell.coordinates.get("log") == "plain":
            # The log contains the last writes, which the cell declares.
            in_log = [name for name in found_in if fnmatch(name, REDO_LOG)]
            accepted += (f"the plaintext, found in {', '.join(in_log)}",) if in_log else ()
            found_in = [name for name in found_in if name not in in_log]
        if found_in and kept:
            reason = f"the plaintext is in the database's files: {', '.join(found_in)}"
            return unproven(cell, Outcome.FAILED, reason)
        if not found_in and not kept:
            # If the plaintext is not found here, the search would find nothing anywhere.
            return unproven(cell, Outcome.FAILED, "the plaintext is in none of the database's files, where it must be")
        if found_in:
            accepted += (f"the plaintext, found in {', '.join(found_in)}",)
        else:
            refused += ("the plaintext, searched for in all files of the stopped database",)
        if cell.standing is not Standing.NULL and not refused:
            return unproven(cell, Outcome.FAILED, "no proof: no wrong input was tried and refused")
        return Proven(cell.study, cell.key, Outcome.OK, None, 0, accepted, refused, record.proof.not_tried)

    @contextmanager
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> Iterator[Work]:
        """Start a fresh database, and yield the client that fills it before it is ready. Raises NotStarted."""
        assert sandbox is not None, "databases need a sandbox"
        with self._database(cell, sandbox, core, begins_on) as database:
            task, account = self._handed(cell, "measure", seed, database, sandbox)
            yield StorageWork(
                _command(),
                task,
                # The client waits for each answer in a loop. On another core, both sides would sleep and wake for every
                # row, which costs more than the row, and twice as much in one moment as in the next.
                core,
                account=account,
                paid_on=core,
                metrics=tuple(families.family(cell.family).metrics),
                fewest=self.fewest(cell),
                is_counted=_rows_a_chunk(cell) is not None,
                begins_on=begins_on,
                components=database.components,
                # An embedded database is in the client.
                component=CLIENT if database.server else RUNNER,
                database=database,
            )

    def shown(self, cell: Cell, seed: int) -> Shown:
        """Return the client's task, and the configuration of the server."""
        try:
            task = self._task(cell, "measure", seed, _Database(cell, Path("DIRECTORY"), None))
            return Shown(_command(), task, _configuration(cell))
        except NotStarted as error:
            return Shown(_command(), {"impossible": error.reason}, error.reason)

    def fewest(self, cell: Cell) -> int:
        """Return the least number of operations of a chunk."""
        return _rows_a_chunk(cell) or FEWEST.get(str(cell.coordinates["op"]), 1)

    def _proved(self, cell: Cell, seed: int, given: Given, database: _Database, **inputs: str) -> Record:
        """Return the engine's proof of the cell in a database without a table."""
        assert given.sandbox is not None, "databases need a sandbox"
        task, account = self._handed(cell, "verify", seed, database, given.sandbox)
        task["inputs"] = {**task["inputs"], **inputs}
        record = given.ask(_command(), task, limit_s=PROOF_LIMIT_S, core=machine.client_core(), account=account)
        record = _with_fault(record, database)
        if record.outcome is Outcome.OK and record.proof is None:
            return failed("the store verified nothing")
        return record

    @contextmanager
    def _database(
        self, cell: Cell, sandbox: Sandbox, core: int | None, begins_on: int | None = None
    ) -> Iterator[_Database]:
        """Yield a database without a table. Raises NotStarted if it does not support the cell."""
        self._check(cell)
        if isinstance(cell.server, Server) and sandbox.nodes.keys() & {one.role for one in cell.server.components}:
            # Its files and processes are examined on the lab's machine.
            reason = f"{cell.server.title} is measured by itself on the lab's own machine: leave --roles out"
            raise NotStarted(Outcome.UNSUPPORTED, reason)
        if cell.server is None:
            account = sandbox.account_of("client")
            directory = sandbox.work_dir("store")
            directory.chmod(0o700)
            if account:
                os.chown(directory, account.number, account.number)
            try:
                yield _Database(cell, directory, None, account=account)
            finally:
                shutil.rmtree(directory, ignore_errors=True)
            return
        assert isinstance(cell.server, Server)
        made = tls.certificates_of(sandbox)
        with driver.start(
            sandbox, _request(cell, servers.here(cell.server), made), core, begins_on=begins_on
        ) as server:
            account = server.client_account()
            if account and cell.choice.name == BY_NAME:
                account = replace(account, number=os.geteuid())
            yield _Database(cell, server.work_dirs[cell.server.frontend.name], server, made, account=account)

    def _check(self, cell: Cell) -> None:
        """Raise NotStarted if the database does not have the choice or operation."""
        if isinstance(cell.server, Remote):
            reason = "a database with an address cannot be measured: Tollbar starts its own"
            raise NotStarted(Outcome.UNSUPPORTED, reason)
        name, title = (cell.server.kind, cell.server.title) if cell.server else (cell.provider.kind, cell.provider.name)
        if name not in self.choices:
            known = [kind for kind in EMBEDDED if kind in self.choices]
            instead = f"{', '.join(known)}, or a server" if known else f"the server {', '.join(self.choices)}"
            instead = f"the server {cell.choice.servers[0]}" if cell.choice.servers else instead
            what = "is not a database" if name not in CHOICES else "has no sign-in"
            raise NotStarted(Outcome.UNSUPPORTED, f"{title} {what}; use {instead}")
        if cell.choice.name not in self.choices[name]:
            instead = f"; use the server {cell.choice.servers[0]}" if cell.choice.servers and not cell.server else ""
            raise NotStarted(Outcome.UNSUPPORTED, f"{title} does not support {cell.choice.name}{instead}")
        if cell.server and cell.coordinates["op"] == "open":
            reason = f"{title} is open while it runs; the operation `open` needs a database in the process"
            raise NotStarted(Outcome.UNSUPPORTED, reason)

    def _handed(
        self, cell: Cell, mode: str, seed: int, database: _Database, sandbox: Sandbox
    ) -> tuple[dict[str, Any], Account | None]:
        """Return the client's task, with its own copies of the files that it reads, and its account in root's lab."""
        task, account = self._task(cell, mode, seed, database), database.account
        folder = handing.client_folder(sandbox, account)
        if database.server is not None:
            # It times flushes there, on the file system of the server's own directory.
            task["store"] = {**task["store"], "directory": str(folder)}
        return handing.own_copies(sandbox, task, folder, account), account

    def _task(self, cell: Cell, mode: str, seed: int, database: _Database) -> dict[str, Any]:
        """Return the cell's task, and the location of its database."""
        self._check(cell)
        return cell.task(mode, seed) | {"store": database.in_task}


class _Database:
    """Database for one trial: files in a directory, and the server if there is one."""

    def __init__(
        self,
        cell: Cell,
        directory: Path,
        server: driver.StartedServer | None,
        made: Certificates | None = None,
        *,
        account: Account | None = None,
    ) -> None:
        self.directory = directory
        """Directory of all of its files."""
        self.account = account
        """Account of its client, in root's lab."""
        self.server = server
        self._frontend = cell.server.frontend.name if isinstance(cell.server, Server) else ""
        pooler = _pooler(cell)
        self._pooler = pooler.frontend.name if pooler else None
        self._channel = str(cell.coordinates.get("channel", "socket"))
        self._shows_certificate = cell.choice.name == "client-certificate"
        self._made = made or UNMADE
        self._server = cell.server.kind if isinstance(cell.server, Server) else None

    @property
    def components(self) -> Mapping[str, int]:
        """Process at the root of each of the server's components."""
        return self.server.components if self.server else {}

    @property
    def in_task(self) -> dict[str, Any]:
        """Description of the database in the client's task."""
        return {"directory": str(self.directory), "server": self._reached(), "components": dict(self.components)}

    def close(self) -> None:
        """Stop the server in its own way, so that it writes all data to its files."""
        if self.server is not None:
            self.server.end()

    def _reached(self) -> dict[str, Any] | None:
        if self._server is None:
            return None
        socket, database = REACHED[self._server]
        addresses = self.server.addresses if self.server else {}
        address = addresses.get(self._frontend, f"{ADDRESS}:0")
        reached = {
            "kind": self._server,
            "socket": str(self.directory / socket),
            "port": int(address.rpartition(":")[2]),
            "user": USER,
            "database": database,
            "answer_limit_s": ANSWER_LIMIT_S,
        }
        if self._pooler is not None:
            address = addresses.get(self._pooler, address)
            folder = self.server.work_dirs[self._pooler] if self.server else self.directory
            reached["pooler"] = str(folder / f".s.PGSQL.{address.rpartition(':')[2]}")
        if self._channel == "socket":
            return reached
        return {**reached, "address": address, **(self._secured() if self._channel == "tls" else {})}

    def _secured(self) -> dict[str, Any]:
        """Return the client's TLS configuration, and a certificate that is not the server's."""
        mutual = {"client-certificate": CERTIFICATE} if self._shows_certificate else {}
        (client,) = tls.clients(tls.Settings.read({**OVER_TLS, **mutual}), self._made)
        other = self._made.revocations(CERTIFICATE).revoked
        if self._shows_certificate:
            client["tls"]["revoked"] = {"chain_pem": other.chain_pem, "key_pem": other.key_pem}
        return {"tls": client["tls"], "other_certificate_pem": other.chain_pem}


def _rows_a_chunk(cell: Cell) -> int | None:
    """Return the number of rows that a chunk inserts; None if it inserts none."""
    # An operation that also reads uses a table that already has its rows.
    if cell.coordinates["op"] != "insert":
        return None
    if cell.coordinates["durability"] == "flushed":
        return FLUSHED_ROWS
    return SERVER_ROWS if cell.server else EMBEDDED_ROWS


def _request(cell: Cell, found: Installed, made: Certificates) -> Request:
    # Key of an encrypted table, new for each start; templates are displayed without it.
    words: dict[str, Any] = {"table_key": secrets.token_hex(32)}
    shown: dict[str, Any] = {"table_key": "KEY"}
    if cell.coordinates.get("channel") == "tls":
        words["database_certificate"] = made.server(CERTIFICATE)
        shown["database_certificate"] = tls.UnmadeCertificates(made.directory).server(CERTIFICATE)
    pooler = _pooler(cell)
    # Clients connect to the pooler, with the database behind it.
    front, behind = (found, ()) if pooler is None else (servers.here(pooler), (found,))
    return Request(front, cell.provider, settings_of(cell), words=words, shown_words=shown, services=behind)


def _pooler(cell: Cell) -> Server | None:
    """Return the pooler between the client and the database, or None."""
    return servers.services().get(str(cell.coordinates.get("pooler")))


def _configuration(cell: Cell) -> str | None:
    if not isinstance(cell.server, Server):
        return None
    found = servers.find(cell.server)
    return found.reason if isinstance(found, Unavailable) else rendered(_request(cell, found, UNMADE))


def _command() -> tuple[str, ...]:
    return (str(engine()), "store")


def _with_fault(record: Record, database: _Database) -> Record:
    if record.outcome is Outcome.OK or database.server is None:
        return record
    fault = database.server.fault(driver.NOTICED_S)
    return record.model_copy(update={"reason": f"{fault}: {record.reason}"}) if fault else record


def _files_with(directory: Path, mark: bytes) -> list[str]:
    """Return the files below a directory that contain these bytes, by their relative paths."""
    return [str(path.relative_to(directory)) for path in sorted(directory.rglob("*")) if _has(path, mark)]


def _has(path: Path, mark: bytes) -> bool:
    # A socket of a stopped server may remain, and a link may lead out of the directory.
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        kept = b""
        while piece := file.read(PIECE_BYTES):
            if mark in kept + piece:
                return True
            kept = piece[-len(mark) :]
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWork(Work):
    """Database that is up, and its client."""

    database: _Database

    def with_fault(self, record: Record) -> Record:
        """Return the record of a client that failed, with the server's failure if it ended."""
        return _with_fault(record, self.database)
