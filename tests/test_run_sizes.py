"""Sizes that a foreign run claims are checked: values, pages and texts."""

from __future__ import annotations

import itertools
import json
import resource
import sqlite3
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from tollbar import analysis, results
from tollbar.core.errors import TollbarError
from tollbar.results.database import MOST_VALUE_BYTES
from tollbar.results.directory import MOST_TEXTS
from tollbar.results.observations import MOST_VALUES, MOST_VALUES_OF_SERIES
from tollbar.study import MOST_STUDIES
from tollbar.study.plan.grid import MOST_COMBINATIONS

# CPU time, so that a busy machine changes nothing.
MOST_CPU_S, MOST_MORE = 5, 300 << 20
PAGE_BYTES = 4096
# Salts of a log: any two numbers, equal in its header and in each of its pages.
SALTS = struct.pack(">2I", 1, 2)
MANY_PAGES = 0x7FFFFFF0


@pytest.mark.parametrize("column", ["title", "reason", "accepted"])
def test_a_value_that_no_run_has_is_not_read(fake_runs: Path, column: str) -> None:
    """Reading it would take some ten times its size of memory."""
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
    """A page that is read 160,000 times has more text than the files have bytes."""
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


NUMBERS = "with recursive m(i) as (select 1 union all select i + 1 from m where i < {}) select i from m"
MANY_ROWS = f"create temp table n as {NUMBERS}"
MANY = {
    "left_out": (("fake", "{}", ""), MOST_COMBINATIONS + 1, "a run has at most 45,000"),
    "set_aside": (("fake", "c", 1, 1, 1, "", 1.0, None), 10_000, "rows of a set_aside"),
    "batch": (("fake", None, None, 1.0), 10_000, "rows of a batch"),
}


@pytest.mark.parametrize("table", MANY)
def test_more_rows_than_any_run_has_are_not_read(fake_runs: Path, table: str) -> None:
    """A million of them took some 700 MiB, whatever their content."""
    run = fake_runs / "one"
    row, count, words = MANY[table]
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        rows = (
            [number if value is None and table == "batch" else value for value in row]
            for number in range(1000, 1000 + count)
        )
        database.executemany(f"insert into {table} values ({', '.join('?' * len(row))})", rows)
    with pytest.raises(TollbarError, match=words):
        results.read(run)


LETTERS: Mapping[str, tuple[Sequence[str], str]] = {
    "reasons": ([f"update trial set outcome = 'failed', reason = '{'x' * (1 << 20)}'"], "`reason` of a trial"),
    "titles": ([f"update cell set title = '{'x' * (1 << 20)}'"], "`title` of a cell"),
    "spaces of a series": (
        ["update observation set by_round = '[1' || replace(hex(zeroblob(50000)), '0', ' ') || ']'"],
        "`by_round` of a observation",
    ),
    "omissions": (
        [MANY_ROWS.format(900), f"insert into left_out select 'fake', '{{}}', '{'x' * 60_000}' from n"],
        "letters of its texts",
    ),
    "loads": (
        [f"update trial set load = '{json.dumps({'wall_ns': 1, 'latency_us': [[1, 1]] * 100_000})}'"],
        "letters of what load clients report",
    ),
    "round trips of a load": (
        [f"update trial set load = '{json.dumps({'wall_ns': 1, 'round_trip_ns': {str(n): 1 for n in range(101)}})}'"],
        "`round_trip_ns`: Dictionary should have at most 100 items",
    ),
    "metrics of components": (
        [MANY_ROWS.format(1001), "insert into observation select 1, 'c' || i, 'x', '[1]' from n"],
        "more than 1,000 metrics of components",
    ),
    "a title": ([f"update cell set title = '{'x' * 1001}'"], "`title` of a cell is out of range"),
    "a component": (
        [f"update observation set component = '{'x' * 201}' where metric = 'cpu'"],
        "`component` of a observation is out of range",
    ),
    "components of all loads": (
        [
            "create temp table n as select value from json_each('[" + ",".join(map(str, range(60))) + "]')",
            "update trial set load = json_object('wall_ns', 1, 'components',"
            " (select json_group_object('c' || trial.id || '-' || value, json('{}')) from n))",
        ],
        "components; a run has at most 100",
    ),
    "components of a load": (
        [f"update trial set load = '{json.dumps({'wall_ns': 1, 'components': {str(n): {} for n in range(101)}})}'"],
        "`components`: Dictionary should have at most 100 items",
    ),
    "trials": (
        [
            MANY_ROWS.format(61_000),
            "insert into trial select 9000 + i, study, cell, repeat, 9000 + i, batch, 9000 + i, started_s, outcome,"
            " reason, paid_by, memory_bytes, steal_ns, machine_load, load from trial, n where trial.id = 1",
        ],
        "trials; a run has at most 50,000",
    ),
}


@pytest.mark.parametrize("what", LETTERS)
def test_more_than_any_run_holds_is_not_read(fake_runs: Path, what: str) -> None:
    """Files of 35 to 460 MB took 0.5 to 1.3 GB, and up to half a minute."""
    run = fake_runs / "one"
    statements, words = LETTERS[what]
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        for one in statements:
            database.execute(one)
    with pytest.raises(TollbarError, match=words):
        results.read(run)


@pytest.mark.parametrize(
    ("count", "words"), [(101, "a cell with 101 coordinates"), (60_000, "`coordinates` of a cell is out of range")]
)
def test_more_coordinates_than_any_cell_has_are_not_read(fake_runs: Path, count: int, words: str) -> None:
    """Judging a run of 60,000 coordinates took minutes."""
    run = fake_runs / "one"
    many = {"choice": "spin-1", "provider": "x", "op": "spin"} | {f"k{number}": number for number in range(3, count)}
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute("update cell set coordinates = ?", (json.dumps(many),))
    with pytest.raises(TollbarError, match=words):
        results.read(run)


def test_more_coordinates_than_any_study_has_are_not_read(fake_runs: Path) -> None:
    """Each is a column of an export, in which every row has a cell."""
    run = fake_runs / "one"
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        rows = database.execute("select position, coordinates from cell").fetchall()
        for position, text in rows:
            many = json.loads(text) | {f"k{position}-{number}": number for number in range(50)}
            database.execute("update cell set coordinates = ? where position = ?", (json.dumps(many), position))
    with pytest.raises(TollbarError, match=r"cells with 1\d\d different coordinates; a study has at most 100"):
        results.read(run)


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("stored.MOST_CELLS", 2, "3 rows of a cell; a run has at most 2"),
        ("reading.MOST_KINDS", 1, "cells with 2 different sets of coordinates; a study has at most 1"),
        ("reading.MOST_COORDINATES_OF_ALL", 9, r"1\d coordinates of all cells; a study has at most 9"),
        ("reading.MOST_CLAIMED", 2, "comparisons of cells with claims"),
        ("reading.MOST_TABLED", -1, "0 places of cells in tables"),
        ("stored.MOST_PROVED", 9, "letters of known answers of all cells; a run has at most 9"),
    ],
)
def test_more_comparisons_than_any_run_asks_for_are_not_made(
    fake_runs: Path, limit: str, most: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 20,000 cells took more than 7 s to report, and pairs of them minutes."""
    run = fake_runs / "one"
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute(
            "update cell set coordinates = json_set(coordinates, '$.more', 1) where position ="
            " (select max(position) from cell)"
        )
    assert results.read(run).studies
    monkeypatch.setattr(f"tollbar.results.{limit}", most)
    with pytest.raises(TollbarError, match=words):
        results.read(run)


def _left_out(run: Path) -> None:
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        (study,) = database.execute("select study from cell").fetchone()
        text = json.dumps({"choice": "spin-1", "op": "spin"}, separators=(",", " : "))
        database.executemany("insert into left_out values (?, ?, ?)", [(study, text, f"because {n}") for n in range(5)])


def _agreed(run: Path) -> None:
    kinds = [{"version": f"TLS {number}", "suite": "x"} for number in range(5)]
    load = json.dumps({"wall_ns": 1, "requests": 1, "negotiated": kinds})
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute("update trial set load = ? where cell = (select cell from trial limit 1)", (load,))


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("observations.MOST_SERIES", 9, r"[\d,]+ series of values of all trials; a run has at most 9"),
        ("stored.MOST_LEFT_OUT", 9, "10 coordinates of combinations that were left out; a run has at most 9"),
        ("stored.MOST_PAYING", 9, r"[\d,]+ letters of the components that trials pay for; a run has at most 9"),
        ("stored.MOST_SET_ASIDE", 0, "1 rows of a set_aside; a run has at most 0"),
        ("reading.MOST_AGREED", 4, "5 kinds of connections of all cells; a run has at most 4"),
    ],
)
def test_more_than_a_report_can_show_is_not_read(
    fake_runs: Path, limit: str, most: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three million series took half a minute, and four million coordinates 1.7 GB."""
    run = fake_runs / "one"
    _left_out(run)
    _agreed(run)
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        (study, key) = database.execute("select study, key from cell").fetchone()
        database.execute("insert into set_aside values (?, ?, 0, 3, 8, 'x', 1.0, null)", (study, key))
    assert results.read(run).studies
    monkeypatch.setattr(f"tollbar.results.{limit}", most)
    with pytest.raises(TollbarError, match=words):
        results.read(run)


def test_reasons_of_combinations_are_cut_to_a_limit_of_all(fake_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fake_runs / "one"
    _left_out(run)
    monkeypatch.setattr("tollbar.results.stored.MOST_OF_BECAUSE", 5 * len("beca"))
    (one,) = results.read(run).studies
    assert ["beca…"] * 5 == [because for _, because in one.left_out[-5:]]


@pytest.mark.parametrize("letters", [300, 100_000])
def test_a_name_of_any_length_is_a_short_message(fake_runs: Path, letters: int) -> None:
    run = fake_runs / "one"
    about = json.loads((run / "run.json").read_text())
    about["studies"] = {"a" * letters: next(iter(about["studies"].values()))}
    (run / "run.json").write_text(json.dumps(about))
    with pytest.raises(TollbarError) as raised:
        results.read(run)
    assert 4_000 > len(str(raised.value))


def _add(file: str, text: str) -> Callable[[Path], object]:
    """Append this text to a file."""

    def spoil(run: Path) -> None:
        path = run / file
        path.write_text(path.read_text("utf-8") + text, "utf-8")

    return spoil


def _studies(run: Path, count: int) -> None:
    """Give the run its study many times, under other names."""
    about = json.loads((run / "run.json").read_text())
    ((name, entry),) = about["studies"].items()
    about["studies"] = {f"{name}{number}": entry for number in range(count)}
    (run / "run.json").write_text(json.dumps(about))
    for other in about["studies"]:
        (run / f"studies/{other}.toml").write_bytes((run / f"studies/{name}.toml").read_bytes())


def _nested(run: Path) -> None:
    """Nest families: each has eight parts, all of which are the next family."""
    text = (run / "families/spin/family.toml").read_text("utf-8")
    for depth in range(1, 9):
        (run / f"families/{depth}").mkdir()
        parts = "".join(
            f'[part.p{number}]\ntitle = "x"\nfamily = "{depth + 1 if depth < 8 else "spin"}"\ndefault = "spin-1"\n'
            for number in range(8)
        )
        (run / f"families/{depth}/family.toml").write_text(text + parts, "utf-8")
    path = run / "studies/fake.toml"
    path.write_text(path.read_text("utf-8").replace('"spin"', '"1"'), "utf-8")


def test_reasons_are_cut_to_a_limit_of_all(fake_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons of 5 MB took 190 MiB of memory in a report."""
    run = fake_runs / "one"
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute("update cell set outcome = 'failed', reason = ?", ("x" * 60_000,))
        (cells,) = database.execute("select count(*) from cell").fetchone()
        key, name = database.execute("select key, study from cell").fetchone()
        database.execute("insert into set_aside values (?, ?, 0, 3, 8, ?, 1.0, null)", (name, key, "y" * 60_000))
    monkeypatch.setattr("tollbar.results.stored.MOST_OF_REASONS", 100 * (cells + 1))
    (one,) = results.read(run).studies
    assert {101} == {len(row.reason or "") for row in one.rows}
    assert [101] == [len(row.set_aside.reason) for row in one.rows if row.set_aside is not None]


def test_more_studies_than_a_run_may_have_are_not_read(fake_runs: Path) -> None:
    _studies(fake_runs / "one", MOST_STUDIES)
    assert MOST_STUDIES == len(results.read(fake_runs / "one").studies)
    about = json.loads((fake_runs / "one" / "run.json").read_text())
    about["studies"]["more"] = next(iter(about["studies"].values()))
    (fake_runs / "one" / "run.json").write_text(json.dumps(about))
    with pytest.raises(TollbarError, match="101 studies; a run has at most 100"):
        results.read(fake_runs / "one")


CLAIM = '[[claim]]\nsays="a"\nof={choice="spin-2"}\nover={choice="spin-1"}\nmetric="cost"\nratio=2.0\n'
LARGE = MOST_TEXTS - 40_000
TEXTS: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "keys of many parts": (
        _add("studies/fake.toml", "[x]\n" + "".join(f"{n:05}{'.a' * 95}=1\n" for n in range(LARGE // 200))),
        "dots",
    ),
    "tables of many parts": (
        _add("studies/fake.toml", "".join(f"[{n:05}{'.a' * 95}]\n" for n in range(LARGE // 200))),
        "dots",
    ),
    "many claims": (_add("studies/fake.toml", CLAIM * (LARGE // len(CLAIM))), "at most 1000 items"),
    "a long study": (_add("studies/fake.toml", "#\n" * (LARGE // 2)), ""),
    "studies too long": (_add("studies/fake.toml", "#\n" * (MOST_TEXTS // 2)), "; the limit is "),
    "a long family, and many studies": (
        lambda run: [_add("families/spin/family.toml", "#\n" * 500_000)(run), _studies(run, 50)],
        "",
    ),
    "families in families": (_nested, "of another cannot have parts"),
}


def _read_within_limits(run: Path, words: str) -> None:
    """Read a run within limits, in a process of its own.

    Exits with 1 if the outcome, read or refused, is not the expected one.
    """
    _limit()
    try:
        results.read(run)
    except TollbarError as error:
        raise SystemExit(not words or words not in str(error)) from error
    raise SystemExit(bool(words))


def _limit() -> None:
    (pages, *_) = Path("/proc/self/statm").read_text().split()
    most = int(pages) * resource.getpagesize() + MOST_MORE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))


@pytest.mark.parametrize("what", TEXTS)
def test_any_text_is_read_or_refused_within_limits(fake_runs: Path, what: str) -> None:
    spoil, words = TEXTS[what]
    spoil(fake_runs / "one")
    process = get_context("fork").Process(target=_read_within_limits, args=(fake_runs / "one", words))
    process.start()
    process.join()
    assert 0 == process.exitcode


def test_as_many_values_as_a_run_may_have_are_judged_within_limits(fake_runs: Path) -> None:
    run = fake_runs / "one"
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        chunks = MOST_VALUES_OF_SERIES
        read = database.execute("select trial, component, metric, by_round from observation order by trial").fetchall()
        left = MOST_VALUES - 10_000
        for _, group in itertools.groupby(read, key=lambda one: one[0]):
            series = [*group]
            left -= len(series) * chunks
            for trial, component, metric, text in series if left >= 0 else ():
                numbers = [*range(chunks)] if metric == "round" else json.loads(text)[:1] * chunks
                database.execute(
                    "update observation set by_round = ? where trial = ? and component = ? and metric = ?",
                    (json.dumps(numbers), trial, component, metric),
                )
    process = get_context("fork").Process(target=_judge_within_limits, args=(run,))
    process.start()
    process.join()
    assert 0 == process.exitcode


def _judge_within_limits(run: Path) -> None:
    _limit()
    analysis.judge(results.read(run))


def parent_of(child: int, times: int = 400) -> bytes:
    """Return an inner page of a table whose children are all the same page."""
    cells = [struct.pack(">IBB", child, 0x80 | (key >> 7), key & 0x7F) for key in range(times)]
    starts = list(itertools.accumulate((-len(cell) for cell in cells), initial=PAGE_BYTES))[1:]
    head = struct.pack(">BHHHBI", 5, 0, times, starts[-1], 0, child) + struct.pack(f">{times}H", *starts)
    return head.ljust(starts[-1], b"\0") + b"".join(reversed(cells))


def log_of(pages: Sequence[tuple[int, bytes]]) -> bytes:
    """Return a write-ahead log of one commit, in SQLite's file format."""
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
