"""Database of a run: its tables, opening it, and limits for reading one that a stranger sent.

Opening a database runs its author's code: a view, a trigger, a generated column. So the schema is checked before
anything is read, and a read that takes longer than its size explains is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tollbar.core.errors import TollbarError
from tollbar.core.renamed import COLUMNS, COORDINATES, WORDS
from tollbar.results.directory import RESULTS_FILES

TABLES = """
create table cell (
    study text, key text, position integer, coordinates text not null, title text not null, standing text not null,
    strength integer, against text, server_version text, outcome text, reason text, known_answers integer,
    accepted text, refused text, not_tried text,
    primary key (study, key)
) without rowid;
create table batch (
    study text, block integer, batch integer, started_s real not null,
    primary key (study, block, batch)
) without rowid;
create table trial (
    id integer primary key, study text not null, cell text not null, repeat integer not null, block integer not null,
    batch integer not null, ord integer not null, started_s real not null, outcome text not null, reason text,
    paid_by text not null, memory_bytes integer, steal_ns integer, machine_load real, load text,
    unique (study, cell, repeat, block, batch)
);
create table observation (
    trial integer not null, component text not null, metric text not null, by_round text not null,
    primary key (trial, component, metric)
) without rowid;
create table left_out (study text, coordinates text not null, because text not null);
create table event (at_s real not null, what text not null);
create table set_aside (
    study text not null, cell text not null, ord integer not null, failed integer not null, trials integer not null,
    reason text not null, at_s real not null, tried_again_s real
);
"""

# CPU time of a read: many times the time for a run of this size, and the same on a busy machine.
LEAST_S, BYTES_PER_S = 4.0, 4 << 20
# Unit of `st_blocks` (see stat(2)), and the largest compression accepted. A sparse file of 4 GiB would allow a read of
# a quarter of an hour. A compressing file system seldom stores SQLite's pages in less than an eighth of their bytes.
BLOCK_BYTES, MOST_COMPRESSED = 512, 8
# Sparse files up to this size are accepted, because they take little time to read.
MOST_HOLE_BYTES = 16 << 20
# A larger value is not read at all: the rounds of a trial, at most 10,000, take a tenth of it.
MOST_VALUE_BYTES = 4 << 20
# Seconds between two checks of a read, and between two attempts to get a lock.
_PERIOD_S = 0.1
# Longest wait for the lock of another process.
LOCK_LIMIT_S = 5.0
# Line breaks in a message of SQLite, which become spaces.
SPACES = {ord(one): " " for one in "\n\r\t"}

Result = TypeVar("Result")


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a database file. `mode` is one of SQLite's URIs: `ro`, `rw`, or `rwc`, which creates the file.

    Raises sqlite3.Error, also if another process puts a link in the place of the file meanwhile.
    """
    try:
        before = None if mode == "rwc" else path.lstat()
    except OSError as error:
        raise sqlite3.OperationalError("unable to open database file") from error
    # Characters such as `#`, `?` and `%` mean something in a URI.
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_PERIOD_S)
    # SQLite follows a link, and reads nothing before the first statement. A file of a lower layer of an overlay has
    # another number once it was opened for writing.
    if before is not None and not (_is_open(before) or (os.path.lexists(path) and _is_open(path.lstat()))):
        database.close()
        raise sqlite3.OperationalError("another file was put in its place while it was opened")
    return database


def _is_open(wanted: os.stat_result) -> bool:
    """Return whether this process has a file open."""
    for handle in os.listdir("/proc/self/fd"):
        # The handle of the folder itself is closed by now.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(int(handle)), wanted):
                return True
    return False


def locking(statements: Callable[[], Result]) -> Result:
    """Return the result of statements that need a lock, repeated while another process has it. Raises sqlite3.Error.

    Ctrl-C ends this wait. Python handles no signal while SQLite itself waits.
    """
    ends_s = time.monotonic() + LOCK_LIMIT_S
    while True:
        try:
            return statements()
        except sqlite3.OperationalError as error:
            if not _is_locked(error) or time.monotonic() > ends_s:
                raise
        time.sleep(_PERIOD_S)


def _is_locked(error: sqlite3.Error) -> bool:
    """Return whether another process has the lock."""
    # The lowest byte is the kind of an error. An error of the module itself has no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_BUSY


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the results of a run for reading, wherever they are. Raises TollbarError for tables that no run has.

    A run that was ended by force has a log next to its file, and SQLite must write before it reads the log. In a folder
    that is not writable, a copy is read.
    """
    _refuse_holes(path)
    with contextlib.ExitStack() as stack:
        reading = stack.enter_context(_Reading(path, LEAST_S))
        database = reading.watch(stack.enter_context(contextlib.closing(connect(path, "ro"))))
        try:
            locking(lambda: _begin(database))
        except sqlite3.OperationalError as error:
            # A copy of a database that another process is changing may be of two moments.
            if reading.is_over or _is_locked(error):
                raise
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tollbar-results-")))
            for one in _files(path):
                shutil.copyfile(one, folder / one.name, follow_symlinks=False)
            database = reading.watch(stack.enter_context(contextlib.closing(connect(folder / path.name, "rw"))))
        if _schema(database) == _schema_of_5():
            _show_as_today(database)
        else:
            refuse_other_tables(database, path)
        # A schema is the same in a run of any size: only its rows may take longer.
        reading.allow(LEAST_S + size_of(path) / BYTES_PER_S)
        yield database


def _begin(database: sqlite3.Connection) -> None:
    """Begin a read that keeps its lock until the database is closed, so that no later statement waits for one."""
    if not database.in_transaction:
        database.execute("begin")
    database.execute("select 1 from sqlite_master").fetchone()


def size_of(path: Path) -> int:
    """Return the bytes of a database and its logs, limited by the blocks that the disk has of them. Raises OSError."""
    found = [one.stat() for one in _files(path)]
    return sum(min(one.st_size, one.st_blocks * BLOCK_BYTES * MOST_COMPRESSED) for one in found)


def _refuse_holes(path: Path) -> None:
    """Raise TollbarError for a file that claims to be much larger than its blocks on the disk.

    SQLite reads a log whole before anything else, and a copy of it would fill the disk.
    """
    for one in _files(path):
        found = one.stat()
        if found.st_size > MOST_HOLE_BYTES + found.st_blocks * BLOCK_BYTES * MOST_COMPRESSED:
            what = (
                f"{found.st_size:,} bytes, of which the disk has {found.st_blocks * BLOCK_BYTES:,}: no results of a run"
            )
            hint = "copy the run again from where it was measured"
            raise TollbarError(what, where=str(one), hint=hint)


def _files(path: Path) -> list[Path]:
    """Return the files of a database that exist: the database and its logs."""
    beside = (path.with_name(name) for name in RESULTS_FILES)
    return [one for one in beside if one.exists()]


def _show_as_today(database: sqlite3.Connection) -> None:
    """Create temporary views that give the tables of format 5 today's names."""
    old = {new: name for name, new in COLUMNS.items()}
    for table, columns in _columns().items():
        shown = ", ".join(_shown(column, old.get(column, column)) for column in columns)
        database.execute(f"create temp view {table} as select {shown} from main.{old.get(table, table)} not indexed")


def _shown(column: str, old: str) -> str:
    if column != "coordinates":
        return f"{old} as {column}"
    # A quotation mark in a value has a backslash before it, so that only keys are replaced.
    for name in COORDINATES:
        old = f"""replace({old}, '"{name}": ', '"{WORDS[name]}": ')"""
    return f"{old} as {column}"


def refuse_other_tables(database: sqlite3.Connection, path: Path) -> None:
    """Raise TollbarError unless the schema is exactly that of a run."""
    found, expected = _schema(database), _expected()
    for name in sorted({name for name, *_ in found - expected}):
        raise TollbarError(
            f"the results are not as Tollbar writes them: `{name}` is not a table of a run", where=str(path)
        )
    for name in sorted({name for name, *_ in expected - found}):
        raise TollbarError(
            f"the results are not as Tollbar writes them: the table `{name}` is missing", where=str(path)
        )


def _schema(database: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    rows = database.execute("select name, type, tbl_name, sql from sqlite_master")
    return frozenset(tuple(" ".join(str(one).split()).lower() for one in row) for row in rows)


@cache
def _columns() -> Mapping[str, tuple[str, ...]]:
    """Return the columns of each table of today's format."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(TABLES)
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        return {name: tuple(one[1] for one in database.execute(f"pragma table_info({name})")) for name in tables}


@cache
def _schema_of_5() -> frozenset[tuple[str, ...]]:
    earlier = TABLES
    for old, new in COLUMNS.items():
        earlier = re.sub(rf"\b{new}\b", old, earlier)
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(earlier)
        return _schema(database)


@cache
def _expected() -> frozenset[tuple[str, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(TABLES)
        return _schema(database)


class _Reading:
    """Limited read: ended by Ctrl-C and SIGTERM, and when it has used more CPU time than its size explains.

    SQLite holds the main thread, in which Python handles signals, until a statement ends. A page of a database may be
    the child of many others, so that a statement runs for ever within one instruction, where SQLite calls no progress
    handler. A second thread can interrupt the statement.
    """

    def __init__(self, path: Path, most_s: float) -> None:
        self.is_over = False
        """True if it used all of its CPU time."""
        self._path, self._most_s = path, most_s
        self._database: sqlite3.Connection | None = None
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._ends_s = time.clock_gettime(self._clock) + most_s
        self._ear, self._mouth = socket.socketpair()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._handles_signals = threading.current_thread() is threading.main_thread()

    def watch(self, database: sqlite3.Connection) -> sqlite3.Connection:
        """Interrupt this database from now on, refuse larger values than a run has, and return it."""
        self._database = database
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
        return database

    def __enter__(self) -> Self:
        self._mouth.setblocking(False)
        if self._handles_signals:
            self._before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        try:
            self._thread.start()
        except RuntimeError as error:
            self.__exit__(None, None, None)
            raise TollbarError(
                f"cannot be read: {error}",
                where=str(self._path),
                hint="free some memory, or raise the limit of this process with `ulimit -v`",
            ) from error
        return self

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if self._handles_signals:
            signal.set_wakeup_fd(self._before)
        self._mouth.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._ear.close()
        if self.is_over and isinstance(error, sqlite3.OperationalError):
            what = f"the results take more than {self._most_s:.0f} s of CPU time to be read"
            raise TollbarError(what, where=str(self._path)) from error

    def allow(self, most_s: float) -> None:
        """Limit the whole read to this CPU time."""
        self._ends_s += most_s - self._most_s
        self._most_s = most_s

    def _watch(self) -> None:
        is_ending = False
        while True:
            if select.select([self._ear], [], [], _PERIOD_S)[0]:
                heard = self._ear.recv(64)
                if not heard:
                    return
                is_ending |= bool({signal.SIGINT, signal.SIGTERM} & {*heard})
            self.is_over |= time.clock_gettime(self._clock) > self._ends_s
            # Interrupt repeatedly: no statement may be running now, and one may start next.
            if (is_ending or self.is_over) and self._database is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._database.interrupt()
