"""What a stranger's results claim of their size is not believed: values and pages."""

from __future__ import annotations

import itertools
import resource
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tollbar import results
from tollbar.errors import TollbarError
from tollbar.plan import MOST_COMBINATIONS
from tollbar.results.database import MOST_VALUE_BYTES

PAGE_BYTES = 4096
# Salts of a log: any two numbers, the same in its header and in each of its pages.
SALTS = struct.pack(">2I", 1, 2)
MANY_PAGES = 0x7FFFFFF0


@pytest.mark.parametrize("column", ["title", "reason", "accepted"])
def test_a_value_that_no_run_has_is_not_read(fake_runs: Path, column: str) -> None:
    """It would take some ten times its size of memory."""
    run = fake_runs / "one"
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute(f"update cell set {column} = ?", ("x" * (MOST_VALUE_BYTES + 1),))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TollbarError, match="too big"):
        results.read(run)
    assert 20 * 1024 > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def test_a_schema_that_no_run_has_is_not_read(fake_runs: Path) -> None:
    run = fake_runs / "one"
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute(f"create view v as select '{'x' * MOST_VALUE_BYTES}'")
    with pytest.raises(TollbarError, match="too big"):
        results.read(run)


def test_the_pages_that_a_log_claims_are_not_believed(fake_runs: Path) -> None:
    """The same page, read as a hundred and sixty thousand, has more text than the files have bytes."""
    run = fake_runs / "one"
    path = run / "results.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("insert into left_out values ('fake', '{}', ?)", ("z" * 300,))
        ((root,),) = database.execute("select rootpage from sqlite_master where name = 'left_out'")
    content = bytearray(path.read_bytes())
    # Versions of the format that have a log.
    content[18:20] = b"\2\2"
    path.write_bytes(content)
    content[28:32] = struct.pack(">I", MANY_PAGES)
    rows, above = len(content) // PAGE_BYTES + 1, len(content) // PAGE_BYTES + 2
    leaf = bytes(content[(root - 1) * PAGE_BYTES : root * PAGE_BYTES])
    pages = [(rows, leaf), (above, parent_of(rows)), (root, parent_of(above)), (1, bytes(content[:PAGE_BYTES]))]
    (run / "results.sqlite-wal").write_bytes(log_of(pages))
    with pytest.raises(TollbarError, match="more rows of a left_out than its file can hold"):
        results.read(run)


MANY = {
    "left_out": (("fake", "{}", ""), MOST_COMBINATIONS + 1, "a run has 100,000 at most"),
    "set_aside": (("fake", "c", 1, 1, 1, "", 1.0, None), 10_000, "rows of a set_aside"),
    "heat": (("fake", None, None, 1.0), 10_000, "rows of a heat"),
}


@pytest.mark.parametrize("table", MANY)
def test_more_rows_than_any_run_has_are_not_read(fake_runs: Path, table: str) -> None:
    """A million of them took some 700 MiB, whatever they hold."""
    run = fake_runs / "one"
    row, count, words = MANY[table]
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        rows = (
            [number if value is None and table == "heat" else value for value in row]
            for number in range(1000, 1000 + count)
        )
        database.executemany(f"insert into {table} values ({', '.join('?' * len(row))})", rows)
    with pytest.raises(TollbarError, match=words):
        results.read(run)


def parent_of(child: int, times: int = 400) -> bytes:
    """An inner page of a table, whose children are all the same page."""
    cells = [struct.pack(">IBB", child, 0x80 | (key >> 7), key & 0x7F) for key in range(times)]
    starts = list(itertools.accumulate((-len(cell) for cell in cells), initial=PAGE_BYTES))[1:]
    head = struct.pack(">BHHHBI", 5, 0, times, starts[-1], 0, child) + struct.pack(f">{times}H", *starts)
    return head.ljust(starts[-1], b"\0") + b"".join(reversed(cells))


def log_of(pages: Sequence[tuple[int, bytes]]) -> bytes:
    """A write-ahead log of one commit, as the file format of SQLite has it."""
    log = struct.pack(">4I", 0x377F0682, 3007000, PAGE_BYTES, 0) + SALTS
    sums = _summed(log, (0, 0))
    log += struct.pack(">2I", *sums)
    for number, content in pages:
        head = struct.pack(">2I", number, MANY_PAGES if (number, content) == pages[-1] else 0)
        sums = _summed(head + content, sums)
        log += head + SALTS + struct.pack(">2I", *sums) + content
    return log


def _summed(content: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    one, other = sums
    for first, second in struct.iter_unpack("<2I", content):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return one, other
