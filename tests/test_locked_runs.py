"""Runs whose database another process has locked: each wait can be ended by Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from bench.fleet import run_of

from gather_lab import cost
from tollbar import results
from tollbar.cluster import node
from tollbar.core import machine
from tollbar.core.errors import TollbarError
from tollbar.results import database
from tollbar.results.database import locking, opened


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("one"), machine.fingerprint(), cost())


@pytest.fixture
def run(one_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(one_run, tmp_path / "run"))


@contextmanager
def _locked(run: Path, how: str = "begin exclusive") -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(run / "results.sqlite", check_same_thread=False)) as other:
        other.execute(how)
        yield other


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a lock without end, and press Ctrl-C during the first wait."""
    for module in (database, node):
        monkeypatch.setattr(module, "LOCK_LIMIT_S", 86_400.0)

    def press(_: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(time, "sleep", press)


@pytest.mark.usefixtures("interrupted")
def test_ctrl_c_ends_the_wait_of_a_reader(run: Path) -> None:
    with _locked(run), pytest.raises(KeyboardInterrupt), opened(run / "results.sqlite"):
        pass


@pytest.mark.usefixtures("interrupted")
def test_ctrl_c_ends_the_wait_of_a_writer(run: Path) -> None:
    with closing(results.reopen(run)) as store, _locked(run, "begin immediate"):
        with pytest.raises(KeyboardInterrupt):
            store.resume()
        assert not store.database.in_transaction


@pytest.mark.usefixtures("interrupted")
@pytest.mark.parametrize("read", [node._copy, lambda path: node._count(path, "trial")], ids=["copy", "count"])
def test_ctrl_c_ends_the_wait_of_a_node(run: Path, read: Callable[[Path], object]) -> None:
    with _locked(run), pytest.raises(KeyboardInterrupt):
        read(run / "results.sqlite")


def test_a_node_waits_no_longer_than_the_limit(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run / "results.sqlite"
    before = path.read_bytes()
    assert before[100:] == node._copy(path)[100:]
    monkeypatch.setattr(node, "LOCK_LIMIT_S", 0.0)
    with _locked(run):
        assert 0 == node._count(path, "trial")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            node._copy(path)
    assert node._count(path, "trial") > 0


@pytest.mark.parametrize("open_", [lambda path: database.connect(path, "rw"), node._opened], ids=["here", "node"])
def test_sqlite_itself_waits_for_less_than_a_second(run: Path, open_: Callable[[Path], sqlite3.Connection]) -> None:
    with closing(open_(run / "results.sqlite")) as connection:
        (longest_ms,) = connection.execute("pragma busy_timeout").fetchone()
    assert 0 < longest_ms < 500


def test_a_lock_that_is_released_is_waited_for(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    with closing(results.reopen(run)) as store, _locked(run, "begin immediate") as other:

        def release(seconds: float) -> None:
            waits.append(seconds)
            other.rollback()

        monkeypatch.setattr(time, "sleep", release)
        assert 0 == store.resume()
    assert 1 == len(waits)


def test_a_lock_that_is_kept_is_an_error(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_LIMIT_S", 0.0)
    with (
        closing(results.reopen(run)) as store,
        _locked(run, "begin immediate"),
        pytest.raises(TollbarError, match="cannot write the results: database is locked"),
    ):
        store.resume()


def test_a_locked_run_is_neither_copied_nor_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of files that another process is changing may be of two moments."""
    monkeypatch.setattr(database, "LOCK_LIMIT_S", 0.0)
    monkeypatch.setattr(shutil, "copyfile", None)
    with _locked(run), pytest.raises(TollbarError, match="the results cannot be read: database is locked"):
        results.read(run)


@pytest.mark.parametrize("error", [sqlite3.OperationalError("Could not decode to UTF-8"), None])
def test_other_errors_are_not_repeated(error: sqlite3.Error | None) -> None:
    tries = []
    with closing(sqlite3.connect(":memory:")) as connection:

        def fail() -> None:
            tries.append(1)
            if error is not None:
                raise error
            connection.execute("select * from missing")

        with pytest.raises(sqlite3.OperationalError, match="UTF-8" if error else "no such table"):
            locking(fail)
    assert [1] == tries


def test_a_read_keeps_its_lock(run: Path) -> None:
    """The first statement takes the lock, so later ones do not wait."""
    path = run / "results.sqlite"
    with opened(path) as reading, closing(sqlite3.connect(path, timeout=0)) as other:
        before = reading.execute("select count(*) from event").fetchone()
        with pytest.raises(sqlite3.OperationalError, match="locked"), other:
            other.execute("insert into event values (1.0, 'x')")
        assert before == reading.execute("select count(*) from event").fetchone()
