"""Encrypted storage in the embedded databases, by the engine alone: proofs, files, sessions.

The engine itself proves a choice's promises; these tests search the files that it leaves for readable text.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import in_own_mounts
from patience import PATIENCE_S
from tollbar.core.records import ChunkRecord, Outcome, Ready, Record
from tollbar.core.runner import Session, Stopped, ask, engine

MARK = "a mark of 24 characters."
PROVIDERS = ("sqlite", "sqlcipher")
# Slow choices have fewer rows, with the same tests.
FEW_ROWS = {"rows": 50}

WRONG_KEY = "a row, with a wrong key"
OF_VALUES = {WRONG_KEY, "a changed value", "a value moved from another row", "a value moved from another column"}
OF_THE_FILE = {WRONG_KEY, "a changed page", "a page in another one's place"}
# Refused faults of each choice; a new choice needs a line here.
REFUSED: Mapping[str, set[str]] = {
    "plaintext": set(),
    "sqlcipher": OF_THE_FILE,
    "aes-256-gcm": OF_VALUES,
    "blind-index": OF_VALUES,
    "envelope-aes": OF_VALUES,
    "envelope-rsa": OF_VALUES,
    "rsa-oaep": OF_VALUES,
}
# Sizes of a value of 36 characters: AES-256-GCM adds a nonce and a tag, and RSA-2048 gives as many bytes as its modulus
# has.
VALUE_SIZES: Mapping[str, int] = {
    "aes-256-gcm": 36 + 12 + 16,
    "blind-index": 36 + 12 + 16,
    "envelope-aes": 36 + 12 + 16,
    "envelope-rsa": 36 + 12 + 16,
    "rsa-oaep": 256,
}
BY_NUMBER = "each row, found by its card number"


def offered(provider: str) -> list[str]:
    """Return the choices of storage that a provider offers."""
    record = ask([str(engine()), "op"], {"mode": "list", "provider": {"kind": provider}}, limit_s=PATIENCE_S)
    return [offer.choice for offer in record.offers if offer.family == "storage"]


CASES = [(provider, choice) for provider in PROVIDERS for choice in offered(provider)]


def task(
    directory: Path, provider: str, choice: str, op: str = "read", *, mode: str = "measure", **setting: Any
) -> dict[str, Any]:
    """Return a task for `tollbar-engine store`; a setting's underscores are hyphens."""
    return {
        "mode": mode,
        "family": "storage",
        "op": op,
        "choice": choice,
        "provider": {"kind": provider},
        "setting": {name.replace("_", "-"): value for name, value in setting.items()},
        "inputs": {"mark": MARK},
        "seed": 7,
        "store": {"directory": str(directory), "server": None, "components": {}},
    }


def store(asked: Mapping[str, Any]) -> Record:
    """Return the one answer to a task."""
    return ask([str(engine()), "store"], {"contract": 2, **asked}, limit_s=PATIENCE_S)


@contextlib.contextmanager
def session(asked: Mapping[str, Any], command: tuple[str, ...] = ()) -> Iterator[tuple[Session, Ready]]:
    """Yield a ready session, with its first record."""
    with Session([*command, str(engine()), "store"], asked) as opened:
        yield opened, opened.ready(PATIENCE_S)


def chunk(opened: Session, seconds: float = 0.0, operations: int = 1) -> ChunkRecord:
    """Return one chunk of a session."""
    return opened.advance(seconds, operations, PATIENCE_S)


def in_files(directory: Path, text: str) -> bool:
    """Return whether a text is in any file of a directory."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert files, "a database leaves files"
    return any(text.encode() in path.read_bytes() for path in files)


def test_every_choice_that_is_offered_has_its_promises_here() -> None:
    assert set(REFUSED) == {choice for _, choice in CASES}
    assert {"sqlcipher"} == set(offered("sqlcipher")) - set(offered("sqlite"))


@pytest.mark.parametrize(("provider", "choice"), CASES)
def test_a_choice_keeps_its_promises(provider: str, choice: str, tmp_path: Path) -> None:
    record = store(task(tmp_path, provider, choice, mode="verify"))
    assert record.outcome is Outcome.OK, record.reason
    assert record.proof is not None
    assert "20 rows, written and read back" in record.proof.accepted
    assert BY_NUMBER in record.proof.accepted
    assert REFUSED[choice] == set(record.proof.refused)
    assert in_files(tmp_path, MARK) == (choice == "plaintext"), "the protected string, in the files"
    # Columns that no choice protects are in the file, unless the whole file is encrypted.
    assert in_files(tmp_path, "CREATE TABLE card") == (choice != "sqlcipher")


def test_a_passphrase_is_a_key(tmp_path: Path) -> None:
    record = store(task(tmp_path, "sqlcipher", "sqlcipher", mode="verify", key="passphrase"))
    assert record.proof, record.reason
    assert set(record.proof.refused) == OF_THE_FILE
    assert not in_files(tmp_path, MARK)


@pytest.mark.share(2)
@pytest.mark.parametrize(("provider", "choice"), CASES)
def test_a_session_counts_exactly_and_says_what_a_row_takes(provider: str, choice: str, tmp_path: Path) -> None:
    for op in ("insert", "read", "insert-and-read", "find"):
        directory = tmp_path / op
        directory.mkdir()
        setting = {} if op == "insert" else FEW_ROWS
        with session(task(directory, provider, choice, op, **setting)) as (opened, ready):
            assert ready.operation_ns > 0
            seen = [chunk(opened, operations=count) for count in (1, 7, 40)]
            longer = chunk(opened, seconds=0.02)
            assert opened.finish().outcome is Outcome.OK
        assert [one.operations for one in seen] == [1, 7, 40]
        assert longer.wall_ns >= 20_000_000
        sizes = [one.observed.value_of("row-size") for one in seen]
        # A row is 13 columns, of which four hold 36 characters each.
        assert all(size is not None and size >= 4 * 36 for size in sizes), sizes
        assert {one.observed.value_of("value-size") for one in seen} == {VALUE_SIZES.get(choice)}
        assert all((one.observed.value_of("put-off") is not None) == ("insert" in op) for one in seen)
        assert all(one.observed.value_of("flush") is None for one in seen)
        assert not (directory / "cards.sqlite-wal").exists(), "it was closed cleanly"


def test_rows_inserted_are_counted_in_whole_commits(tmp_path: Path) -> None:
    with session(task(tmp_path, "sqlite", "plaintext", "insert", rows_per_commit=30)) as (opened, _):
        assert chunk(opened, seconds=0.01).operations % 30 == 0


def test_what_is_flushed_has_the_flush_beside_it(tmp_path: Path) -> None:
    """Chunks have the file system's time for one flush, and the file of that test is removed."""
    asked = task(tmp_path, "sqlite", "plaintext", "insert", durability="flushed", rows_per_commit=1)
    with session(asked) as (opened, _):
        flush = chunk(opened, operations=3).observed.value_of("flush")
    assert flush is not None
    assert flush >= 0
    assert {"cards.sqlite"} >= {path.name for path in tmp_path.iterdir() if not path.name.startswith("cards.sqlite-")}


@pytest.mark.parametrize("choice", ["plaintext", "sqlcipher", "aes-256-gcm"])
def test_a_database_is_opened_anew(choice: str, tmp_path: Path) -> None:
    """Open, read one row, close."""
    with session(task(tmp_path, "sqlcipher", choice, "open", **FEW_ROWS)) as (opened, _):
        assert chunk(opened, operations=3).operations == 3


def test_a_small_cache_reads_from_the_file(tmp_path: Path) -> None:
    """With 16 pages of cache an encrypted read costs more than with all of them."""
    cost_ns = {}
    for cache in ("all", "small"):
        directory = tmp_path / cache
        directory.mkdir()
        with session(task(directory, "sqlcipher", "sqlcipher", rows=5000, cache=cache)) as (opened, _):
            chunks = [chunk(opened, operations=500) for _ in range(5)]
            cost_ns[cache] = min(one.cpu_ns / one.operations for one in chunks)
    assert cost_ns["small"] > cost_ns["all"]


def test_the_loop_alone_costs_less_than_a_database(tmp_path: Path) -> None:
    record = store(task(tmp_path, "sqlite", "none", mode="verify"))
    assert record.proof is not None
    assert record.proof.accepted == ("nothing is stored",)
    with session(task(tmp_path, "sqlite", "none")) as (opened, _):
        assert chunk(opened, operations=1000).operations == 1000
    assert not list(tmp_path.iterdir())


REFUSALS = {
    "no such choice": ({"choice": "rot13"}, "unsupported", "rot13"),
    "a choice of another provider": ({"choice": "sqlcipher"}, "unsupported", "sqlcipher"),
    "a choice of a server": ({"choice": "pgp-pub-encrypt"}, "unsupported", "pgp-pub-encrypt"),
    "an operation that is none": ({"op": "update"}, "failed", "update"),
    "the null choice of another operation": ({"choice": "none", "op": "insert"}, "unsupported", "insert"),
    "a key where there is none": ({"setting": {"key": "raw"}}, "failed", "`key`"),
    "a server's loop": ({"setting": {"loop": "server"}}, "failed", "`loop`"),
    "rows where it starts empty": ({"op": "insert", "setting": {"rows": 10}}, "failed", "`rows`"),
    "commits of a read": ({"setting": {"rows-per-commit": 1}}, "failed", "`rows-per-commit`"),
    "no rows": ({"setting": {"rows": 0}}, "failed", "`rows`"),
    "masked instruction sets": ({"setting": {"cpu": "no-aes"}}, "unsupported", "instruction sets"),
    "nowhere": ({"store": None}, "failed", "`store`"),
    "a directory that is not there": ({"store": {"directory": "/nowhere/at/all"}}, "failed", "/nowhere/at/all"),
    "a server's database in an embedded one": (
        {"store": {"directory": "/", "server": {"kind": "mariadb", "socket": "/", "user": "u", "answer_limit_s": 1}}},
        "failed",
        "sqlite",
    ),
}


@pytest.mark.parametrize("mode", ["verify", "measure"])
@pytest.mark.parametrize("case", sorted(REFUSALS))
def test_a_task_that_makes_no_sense_is_refused(case: str, mode: str, tmp_path: Path) -> None:
    change, outcome, reason = REFUSALS[case]
    record = store({**task(tmp_path, "sqlite", "plaintext", mode=mode), **change})
    assert (outcome, True) == (record.outcome, reason in str(record.reason)), record.reason


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    """The files might be the user's own."""
    (tmp_path / "cards.sqlite").write_text("mine")
    record = store(task(tmp_path, "sqlite", "plaintext"))
    assert "not empty" in str(record.reason)
    assert (tmp_path / "cards.sqlite").read_text() == "mine"


@pytest.mark.parametrize("column", ["card_number1", "security_code3", "secure_string1", "secure_string4"])
def test_a_wrong_row_ends_a_session(column: str, tmp_path: Path) -> None:
    with session(task(tmp_path, "sqlite", "plaintext", **FEW_ROWS)) as (opened, _):
        chunk(opened)
        with contextlib.closing(sqlite3.connect(tmp_path / "cards.sqlite")) as other:
            changed = "'x'" if column.startswith("secure") else f"{column} + 1"
            other.execute(f"update card set {column} = {changed}")
            other.commit()
        with pytest.raises(Stopped) as stopped:
            chunk(opened, operations=10)
    assert stopped.value.record.outcome is Outcome.FAILED
    assert "was read wrongly" in str(stopped.value.record.reason)


def test_a_deleted_row_ends_a_session(tmp_path: Path) -> None:
    with session(task(tmp_path, "sqlite", "plaintext", **FEW_ROWS)) as (opened, _):
        with contextlib.closing(sqlite3.connect(tmp_path / "cards.sqlite")) as other:
            other.execute("delete from card")
            other.commit()
        with pytest.raises(Stopped, match="it is not there"):
            chunk(opened)


def test_a_full_disk_ends_a_session_in_the_databases_own_words(tmp_path: Path) -> None:
    asked = task(tmp_path, "sqlite", "plaintext", "insert")
    # During the warm-up, or in the chunk.
    with (
        small_disk(tmp_path) as command,
        pytest.raises(Stopped, match=r"inserting rows: .* full"),
        session(asked, command) as (opened, _),
    ):
        chunk(opened, operations=100_000)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield words before a command that then finds 2 MB of disk in this folder.

    The processes of root's lab may mount nothing.
    """
    words = ("mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder))
    if os.geteuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0:
        try:
            yield ()
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    else:
        yield (*in_own_mounts(), "sh", "-c", f'{shlex.join(words)} && exec "$0" "$@"')
