"""The workload of encrypted storage: a table in a database, and a client that writes and reads it with its keys."""

from __future__ import annotations

import secrets
import shutil
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tollbar import beds, families, machine
from tollbar.beds import Bed, Installed, NotStarted, Unavailable, driver
from tollbar.beds.configuration import Request, rendered
from tollbar.beds.remote import Remote
from tollbar.beds.sandbox import Sandbox
from tollbar.families import Degree, Standing
from tollbar.plan import Cell
from tollbar.records import CLIENT, RUNNER, Outcome, Proven, Record, failed
from tollbar.runner import engine
from tollbar.workloads import Given, Shown, Work, Workload, unproven
from tollbar.workloads.request import settings_of

# Some twenty rows are written and read a handful of times, of which the slowest take milliseconds each.
PROOF_LIMIT_S = 60.0
# A row costs more in a table of more rows, so that a chunk of inserts is of so many rows and not of so much time: some
# milliseconds where nothing is encrypted, embedded or in a server. Where each waits for the disk, fewer.
EMBEDDED_ROWS, SERVER_ROWS, FLUSHED_ROWS = 1000, 250, 50
# What a server is silent for over one statement at most. The slowest searches decrypt each row of a table; and the lab
# waits for a chunk no longer than 60 s, and could not say then who stood still.
ANSWER_LIMIT_S = 50.0
# So many share a commit at least.
FEWEST = {"insert-and-read": 20}
# What is searched for in the files: long enough that it is nowhere by chance.
MARK_CHARACTERS = 24
# Files are read in pieces of this, so that the lab holds no table.
PIECE_BYTES = 1 << 20
# In the engine's own process.
EMBEDDED = ("sqlite", "sqlcipher")
IN_APPLICATION = ("plaintext", "aes-256-gcm", "blind-index", "envelope-aes", "envelope-rsa", "rsa-oaep")
# What each database can be asked for.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "sqlite": IN_APPLICATION,
    "sqlcipher": (*IN_APPLICATION, "sqlcipher"),
    "postgresql": (*IN_APPLICATION, "pgp-pub-encrypt", "pgp-sym-encrypt", "encrypt-iv", "encrypt-iv-hmac"),
    "mariadb": (*IN_APPLICATION, "aes-encrypt", "table-encryption"),
}
# Of MariaDB, the one that the setting `log` is about.
REDO_LOG = "data/ib_logfile*"
# The user that the servers' files of configuration let in over their sockets.
USER = "tollbar"
# Where each server's socket is, in its directory (PostgreSQL takes the folder), and the database in it.
REACHED = {"postgresql": ("", "postgres"), "mariadb": ("private/mariadb.sock", "tollbar")}


class FamilyWorkload(Workload):
    """Rows of a table with three columns that are to be kept secret."""

    def needs_sandbox(self, cell: Cell) -> bool:
        """An embedded database has its files there."""
        return True

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Has a few rows written and read, right and wrong, and searches the files of the database afterwards."""
        assert given.sandbox is not None, "databases need a sandbox"
        mark = "".join(secrets.choice(string.ascii_letters) for _ in range(MARK_CHARACTERS))
        try:
            with _database(cell, given.sandbox, None) as database:
                task = _task(cell, "verify", seed, database)
                task["inputs"] = {**task["inputs"], "mark": mark}
                record = given.ask(_command(), task, limit_s=PROOF_LIMIT_S, core=machine.client_core())
                record = _with_fault(record, database)
                if record.outcome is Outcome.OK and record.proof is None:
                    record = failed("the store verified nothing")
                if record.outcome is not Outcome.OK or record.proof is None:
                    return unproven(cell, record.outcome, record.reason)
                database.close()
                found_in = _files_with(database.directory, mark.encode())
        except NotStarted as error:
            return unproven(cell, error.outcome, error.reason)
        accepted, refused = record.proof.accepted, record.proof.refused
        kept = families.family(cell.family).mitigations_of(cell.coordinates)["stolen-files"].degree is not Degree.NO
        if cell.coordinates.get("log") == "plain":
            # It has what was written last, and the cell says so.
            in_log = [name for name in found_in if fnmatch(name, REDO_LOG)]
            accepted += (f"the plaintext, found in {', '.join(in_log)}",) if in_log else ()
            found_in = [name for name in found_in if name not in in_log]
        if found_in and kept:
            reason = f"the plaintext is in the database's files: {', '.join(found_in)}"
            return unproven(cell, Outcome.FAILED, reason)
        if not found_in and not kept:
            # Then the search would find nothing anywhere.
            return unproven(cell, Outcome.FAILED, "the plaintext is in none of the database's files, where it must be")
        if found_in:
            accepted += (f"the plaintext, found in {', '.join(found_in)}",)
        else:
            refused += ("the plaintext, searched for in all files of the stopped database",)
        if cell.standing is not Standing.NULL and not refused:
            return unproven(cell, Outcome.FAILED, "no proof: nothing wrong was tried and refused")
        return Proven(cell.study, cell.key, Outcome.OK, None, 0, accepted, refused, record.proof.not_tried)

    @contextmanager
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> Iterator[Work]:
        """A fresh database, and the client that fills it before it is ready. Raises NotStarted."""
        assert sandbox is not None, "databases need a sandbox"
        with _database(cell, sandbox, core, begins_on) as database:
            yield StorageWork(
                _command(),
                _task(cell, "measure", seed, database),
                # A client in a loop waits for each answer. On a core of its own, both would sleep and be woken for
                # every row, which costs more than the row, and twice as much in one moment as in the next.
                core,
                paid_on=core,
                metrics=tuple(families.family(cell.family).metrics),
                fewest=_rows_a_chunk(cell) or FEWEST.get(str(cell.coordinates["op"]), 1),
                is_counted=_rows_a_chunk(cell) is not None,
                begins_on=begins_on,
                components=database.components,
                # An embedded database is in the client.
                component=CLIENT if database.server else RUNNER,
                database=database,
            )

    def shown(self, cell: Cell, seed: int) -> Shown:
        """The client's task, and what the server would be configured with."""
        try:
            task = _task(cell, "measure", seed, _Database(cell, Path("DIRECTORY"), None))
            return Shown(_command(), task, _configuration(cell))
        except NotStarted as error:
            return Shown(_command(), {"impossible": error.reason}, error.reason)


class _Database:
    """A database for one trial: files in a directory, and where it is a server's, that server."""

    def __init__(self, cell: Cell, directory: Path, server: driver.Server | None) -> None:
        self.directory = directory
        """Where all of its files are."""
        self.server = server
        self._bed = cell.bed.name if isinstance(cell.bed, Bed) else None

    @property
    def components(self) -> Mapping[str, int]:
        """The process at the root of each of the server's components."""
        return self.server.components if self.server else {}

    @property
    def in_task(self) -> dict[str, Any]:
        """How the client's task names it."""
        return {"directory": str(self.directory), "server": self._reached(), "components": dict(self.components)}

    def close(self) -> None:
        """Stops the server in its own way: what it still has to write is in its files then."""
        if self.server is not None:
            self.server.end()

    def _reached(self) -> dict[str, Any] | None:
        if self._bed is None:
            return None
        socket, database = REACHED[self._bed]
        port = int(self.server.address.rpartition(":")[2]) if self.server else 0
        return {
            "kind": self._bed,
            "socket": str(self.directory / socket),
            "port": port,
            "user": USER,
            "database": database,
            "answer_limit_s": ANSWER_LIMIT_S,
        }


@contextmanager
def _database(cell: Cell, sandbox: Sandbox, core: int | None, begins_on: int | None = None) -> Iterator[_Database]:
    """A database without a table. Raises NotStarted where this one cannot do what the cell says."""
    _check(cell)
    if cell.bed is None:
        directory = sandbox.work_dir("store")
        directory.chmod(0o700)
        try:
            yield _Database(cell, directory, None)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return
    assert isinstance(cell.bed, Bed)
    with driver.start(sandbox, _request(cell, beds.here(cell.bed)), core, begins_on=begins_on) as server:
        yield _Database(cell, server.work_dirs[cell.bed.frontend.name], server)


def _rows_a_chunk(cell: Cell) -> int | None:
    """How many rows a chunk inserts; None where it inserts none."""
    # What also reads does so in a table that has its rows.
    if cell.coordinates["op"] != "insert":
        return None
    if cell.coordinates["durability"] == "flushed":
        return FLUSHED_ROWS
    return SERVER_ROWS if cell.bed else EMBEDDED_ROWS


def _check(cell: Cell) -> None:
    """Raises NotStarted where the database has no such choice or operation."""
    if isinstance(cell.bed, Remote):
        raise NotStarted(Outcome.UNSUPPORTED, "a database is started for the measurement, and has no address before")
    name, title = (cell.bed.name, cell.bed.title) if cell.bed else (cell.provider.kind, cell.provider.name)
    if name not in CHOICES:
        raise NotStarted(Outcome.UNSUPPORTED, f"{title} is no database: take {', '.join(EMBEDDED)}, or a bed")
    if cell.choice.name not in CHOICES[name]:
        raise NotStarted(Outcome.UNSUPPORTED, f"{title} has no {cell.choice.name}")
    if cell.bed and cell.coordinates["op"] == "open":
        raise NotStarted(Outcome.UNSUPPORTED, f"{title} is open while it runs")


def _request(cell: Cell, found: Installed) -> Request:
    # The key of an encrypted table, for each start another; templates are shown without it.
    words, shown = {"table_key": secrets.token_hex(32)}, {"table_key": "KEY"}
    return Request(found, cell.provider, settings_of(cell), words=words, shown_words=shown)


def _configuration(cell: Cell) -> str | None:
    if not isinstance(cell.bed, Bed):
        return None
    found = beds.find(cell.bed)
    return found.reason if isinstance(found, Unavailable) else rendered(_request(cell, found))


def _task(cell: Cell, mode: str, seed: int, database: _Database) -> dict[str, Any]:
    """The cell's task, and where its database is."""
    _check(cell)
    return cell.task(mode, seed) | {"store": database.in_task}


def _command() -> tuple[str, ...]:
    return (str(engine()), "store")


def _with_fault(record: Record, database: _Database) -> Record:
    if record.outcome is Outcome.OK or database.server is None:
        return record
    fault = database.server.fault(driver.NOTICED_S)
    return record.model_copy(update={"reason": f"{fault}: {record.reason}"}) if fault else record


def _files_with(directory: Path, mark: bytes) -> list[str]:
    """The files below a directory in which these bytes are, by their paths in it."""
    return [str(path.relative_to(directory)) for path in sorted(directory.rglob("*")) if _has(path, mark)]


def _has(path: Path, mark: bytes) -> bool:
    # A socket of a server that has just stopped may still be there.
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        kept = b""
        while piece := file.read(PIECE_BYTES):
            if mark in kept + piece:
                return True
            kept = piece[-len(mark) :]
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWork(Work):
    """A database that is up, and the client that works with it."""

    database: _Database

    def with_fault(self, record: Record) -> Record:
        """The record of a client that failed, with what became of the server if it was that which ended."""
        return _with_fault(record, self.database)
