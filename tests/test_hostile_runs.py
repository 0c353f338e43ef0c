"""Runs made by strangers, and every command that reads a run: one line, at once, and no harm."""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench.fleet import run_of

from conftest import Tollbar, command
from gather_lab import cost
from tollbar import results
from tollbar.analysis.kept import FILE, state
from tollbar.core import machine
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.decide import compare
from tollbar.decide.compare import ReadRun, Unusable
from tollbar.results.database import MOST_COMPRESSED, opened, size_of

PRECIOUS = b"the reader's own\n"
MIB = 1 << 20
Spoil = Callable[[Path], object]


def linked(name: str, to: str, run: Path) -> None:
    """Replace an entry by a link to a file of the reader's."""
    path = run / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.symlink_to(to)


def piped(name: str, run: Path) -> None:
    """Replace an entry by a named pipe without a writer."""
    path = run / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def said(run: Path, **changed: Any) -> None:
    """Change keys of `run.json`."""
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    (run / FILE).unlink(missing_ok=True)


def entry(run: Path, **changed: Any) -> None:
    """Change keys of the study in `run.json`."""
    ((name, before),) = json.loads((run / "run.json").read_text())["studies"].items()
    said(run, studies={name: before | changed})


def upgraded(run: Path, **changed: Any) -> None:
    """Note an upgrade by which the run was made."""
    builds = {"old": "libcrypto", "new": "libcrypto:other", "families": [], "folder": "/"}
    said(run, upgrade=builds | {"within_s": 1.0, "fail_above": None} | changed)


def sql(*statements: str) -> Spoil:
    """Return a change of the database by these statements."""
    return lambda run: _change(run, statements)


def _change(run: Path, statements: Sequence[str]) -> None:
    with sqlite3.connect(run / "results.sqlite") as database:
        for one in statements:
            database.execute(one)
    database.close()
    (run / FILE).unlink(missing_ok=True)


def loaded(run: Path, **changed: Any) -> None:
    """Change a trial's load."""
    text = json.dumps({"wall_ns": 1, "requests": 1} | changed)
    _change(run, [f"update trial set load = '{text}' where id = 1"])


def journaled(run: Path) -> None:
    """Add a journal that makes SQLite remove a file of the reader's after reading it."""
    database = (run / "results.sqlite").read_bytes()
    page_bytes = int.from_bytes(database[16:18], "big")
    page, name = database[:page_bytes], str(run.parent / "precious").encode()
    magic = bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">5I", 1, 0, len(database) // page_bytes, 512, page_bytes)
    checksum = sum(page[at] for at in range(page_bytes - 200, 0, -200))
    super_journal = struct.pack(">I", (1 << 30) // page_bytes + 1) + name + struct.pack(">2I", len(name), sum(name))
    (run / "results.sqlite-journal").write_bytes(
        head.ljust(512, b"\0") + struct.pack(">I", 1) + page + struct.pack(">I", checksum) + super_journal + magic
    )


def endless(run: Path, table: str = "event") -> None:
    """Make a table of one row with endlessly many paths to it: each page is many times the child of the next."""
    path = run / "results.sqlite"
    _change(run, ["insert into event values (1.0, 'x')", "insert into left_out values ('digests', '{}', 'x')"])
    with sqlite3.connect(path) as database:
        ((root,),) = database.execute("select rootpage from sqlite_master where name = ?", (table,))
        ((size,),) = database.execute("pragma page_size")
    database.close()
    content = bytearray(path.read_bytes())
    leaf = content[(root - 1) * size : root * size]
    pages = len(content) // size
    content += leaf
    for level in range(15):
        page = _parent(pages + 1, size)
        pages += 1
        if level < 14:
            content += page
        else:
            content[(root - 1) * size : root * size] = page
    struct.pack_into(">I", content, 28, len(content) // size)
    path.write_bytes(content)


def _parent(child: int, size: int) -> bytes:
    """Return a page of a table whose children are all one page."""
    cell = struct.pack(">IB", child, 1)
    count = (size - 12) // (len(cell) + 2)
    starts = [size - (number + 1) * len(cell) for number in range(count)]
    head = struct.pack(">BHHHBI", 5, 0, count, starts[-1], 0, child)
    places = b"".join(struct.pack(">H", start) for start in starts)
    return (head + places).ljust(starts[-1], b"\0") + cell * count


NEVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select i as study, i as block, i as key from n"
ENTRIES = (".lock", "run.json", "results.sqlite", "results.sqlite-wal", "results.sqlite-shm", "results.sqlite-journal",
           FILE, "report.html")  # fmt: skip
VALUES = {
    "infinite": "9e999",
    "negative": "-1.0",
    "a word": "'x'",
    "null": "null",
}

HOSTILE: Mapping[str, tuple[Spoil, str]] = {
    **{f"{name} is a link": (partial(linked, name, "../precious"), "symbolic link") for name in ENTRIES},
    **{f"{name} is a dangling link": (partial(linked, name, "../new"), "symbolic link") for name in ENTRIES},
    **{f"{name} is a pipe": (partial(piped, name), "must be a file or a folder") for name in ENTRIES},
    "the studies are a link": (partial(linked, "studies", "../folder"), "symbolic link"),
    "the families are a link": (partial(linked, "families", "../folder"), "symbolic link"),
    "a study is a link": (partial(linked, "studies/digests.toml", "../../precious"), "symbolic link"),
    "a study is a pipe": (partial(piped, "studies/digests.toml"), "must be a file or a folder"),
    "a family is a link": (partial(linked, "families/digest/family.toml", "../../../precious"), "symbolic link"),
    "a family is a pipe": (partial(piped, "families/digest/family.toml"), "must be a file or a folder"),
    "the results are a device": (partial(linked, "results.sqlite", "/dev/zero"), "symbolic link"),
    "the results are a folder": (lambda run: [(run / "results.sqlite").unlink(), (run / "results.sqlite").mkdir()],
                                 "is a folder"),
    "the results are another's": (lambda run: shutil.copyfile(run.parent / "own.db", run / "results.sqlite"),
                                  "is not a table of a run"),
    "a journal names a file": (journaled, "names another file"),
    "a view never ends": (sql("drop table trial", f"create view trial as {NEVER}"),
                          "`trial` is not a table of a run"),
    "a view is added": (sql(f"create view more as {NEVER}"), "`more` is not a table of a run"),
    "a trigger": (sql("create trigger more after insert on event begin delete from trial; end"),
                  "`more` is not a table of a run"),
    "an index of an expression": (sql("create index more on trial (hex(study))"),
                                  "`more` is not a table of a run"),
    "a virtual table": (sql("drop table left_out", "create virtual table left_out using fts5 (study)"),
                        "is not a table of a run"),
    "a computed column": (sql("alter table event add column more as (hex(zeroblob(100000000)))"),
                          "`event` is not a table of a run"),
    "many events": (
        sql("insert into event with recursive n(i) as (select 1 union all select i + 1 from n where i < 10001)"
            " select 1.0, 'x' from n"),
        "more than 10,000 events"),
    "results beyond their limit": (lambda run: os.truncate(run / "results.sqlite", (256 << 20) + 1), "the limit is"),
    "a schema that says otherwise": (
        sql("pragma writable_schema = 1", "update sqlite_master set sql = replace(sql, 'ord ', 'odd ')"),
        "is not a table of a run"),
    "events without end": (endless, "more than 10,000 events"),
    "a table without end": (partial(endless, table="left_out"), "of CPU time"),
    **{f"{table}.{column} is {name}": (sql(statement), f"`{column}` of a {table}")
       for table, column in (("trial", "started_s"), ("trial", "machine_load"), ("batch", "started_s"))
       for name, value in VALUES.items() if name != "null" or (table, column) == ("trial", "machine_load")
       for statement in [f"update {table} set {column} = {value}"]},
    **{f"trial.{column} is huge": (sql(f"update trial set {column} = {2**63 - 1 - 10**6} + id"),
                                   f"`{column}` of a trial")
       for column in ("block", "batch", "ord", "memory_bytes", "steal_ns")},
    "a load of many lists": (partial(loaded, latency_us=[[]] * 200_000), "not as Tollbar writes it"),
    "a load of a huge number": (partial(loaded, requests=10**400, steady={"requests": 1, "wall_ns": 1}),
                                "not as Tollbar writes it"),
    "a load larger than any": (partial(loaded, reason="x" * 2 * MIB), "out of range"),
    "rounds of lists": (sql(f"update observation set by_round = '{[[]] * 150_000}' where trial = 1"),
                        "must have a value for each round"),
    "rounds beyond any trial": (sql(f"update observation set by_round = '{[1] * 400_000}' where trial = 1"),
                                "400,000 values of one trial"),
    "rounds beyond any run": (sql(f"update observation set by_round = '{[1] * 100_000}' where trial < 7"),
                              "a run has at most 3,000,000"),
    "rounds of two rows in one": (sql("update observation set by_round = '[1],[1]'"),
                                  "must have a value for each round"),
    "a coordinate of no choice": (sql("update cell set coordinates = json_set(coordinates, '$.choice', 'x' || key)"),
                                  "which its family does not have"),
    "a coordinate of a load": (sql("update cell set coordinates = json_set(coordinates, '$.users', 'x')"),
                               "the load of a cell must be a number"),
    "a coordinate of two cells": (
        sql("update cell set coordinates = (select coordinates from cell order by position limit 1)"),
        "must not have the same coordinates",
    ),
    "a load of some cells": (
        sql("update cell set coordinates = json_set(coordinates, '$.users', 8) where position = 0"),
        "the same kind of load"),
    "an infinite coordinate": (sql("update cell set coordinates = replace(coordinates, '64', '9e999')"),
                               "the coordinates of a cell must be names with values"),
    "many looks that are none": (lambda run: entry(run, interim_looks=[{}] * 200_000), "not as Tollbar writes it"),
    "many looks that are none, in 8 MiB": (lambda run: entry(run, interim_looks=[{}] * 2_000_000),
                                           "the limit is 1 MiB"),
    "many studies that are none": (lambda run: said(run, studies={str(n): {} for n in range(80_000)}),
                                   "not as Tollbar writes it"),
    "many receipts that are none": (lambda run: said(run, providers={str(n): 0 for n in range(80_000)}),
                                    "not as Tollbar writes it"),
    "many words that are none": (lambda run: said(run, command=[[]] * 250_000), "not as Tollbar writes it"),
    "deep JSON": (lambda run: (run / "run.json").write_text('{"a":' * 100_000), "nested too deeply"),
    "a long number": (lambda run: (run / "run.json").write_text("9" * 100_000), "cannot be read"),
    "blocks that are true": (lambda run: entry(run, blocks=True), "not as Tollbar writes it"),
    "blocks without number": (lambda run: entry(run, blocks=10**400), "not as Tollbar writes it"),
    "a look at blocks without number": (lambda run: entry(run, interim_looks=[{"blocks": 10**19, "trials": 1}]),
                                        "not as Tollbar writes it"),
    "an infinite precision": (lambda run: entry(run, precision=float("inf")), "not as Tollbar writes it"),
    "a probe that is no number": (lambda run: said(run, best_probe_ns=float("nan")), "not as Tollbar writes it"),
    "a probe of no time": (lambda run: said(run, best_probe_ns=0.0), "not as Tollbar writes it"),
    "a chain of no time": (lambda run: said(run, chain_ns=0.0), "not as Tollbar writes it"),
    "libraries that are none": (lambda run: said(run, libraries=7), "not as Tollbar writes it"),
    "a library that is no path": (lambda run: said(run, libraries=["a\0b"]), "must be a path"),
    "a library longer than a path": (lambda run: said(run, libraries=["x" * 900_000]), "not as Tollbar writes it"),
    "many libraries": (lambda run: said(run, libraries=[str(n) for n in range(60_000)]), "not as Tollbar writes it"),
    "an upgrade in no folder": (partial(upgraded, folder="a\0b"), "must be a path"),
    "an upgrade of no path": (partial(upgraded, old="./a\0b"), "must be a path"),
    "an upgrade of a long path": (partial(upgraded, new="./" + "x" * 900_000), "not as Tollbar writes it"),
    "roles that are none": (lambda run: said(run, roles=[7]), "not as Tollbar writes it"),
    "a URL of another name": (lambda run: said(run, urls={"https://a/?b=…": "https://c/?b=1"}), "by its name"),
    "a number for a URL": (lambda run: said(run, urls={"https://a/": [7]}), "not as Tollbar writes it"),
}  # fmt: skip

READERS: Mapping[str, Sequence[str]] = {
    "judge": ["judge", "RUN"],
    "judge --all --format markdown": ["judge", "RUN", "--all", "--format", "markdown"],
    "report": ["report", "RUN"],
    "compare": ["compare", "RUN", "GOOD"],
    "compare with": ["compare", "GOOD", "RUN"],
    "export": ["export", "RUN"],
    "export --per cell": ["export", "RUN", "--per", "cell"],
    "choose": ["choose", "digest", "--run", "RUN"],
    "price": ["price", "INVENTORY", "--run", "RUN"],
    "size": ["size", "MIX", "--run", "RUN", "--for", "0s"],
    "show --run": ["show", "rsa-apis", "--run", "RUN"],
    "plan --resume": ["plan", "--resume", "RUN"],
    "run --resume": ["run", "--resume", "RUN"],
}
HERE = Path(__file__).parent
# Planning reads nothing from the database.
OF_THE_DATABASE = ("view", "trigger", "index", "virtual", "computed", "schema", "end", "trial.", "batch.", "load",
                   "rounds", "coordinate", "events", "results are a folder", "results are another's")  # fmt: skip


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of this machine, which can be resumed on it."""
    return run_of(tmp_path_factory.mktemp("one"), machine.fingerprint(), cost())


@pytest.fixture
def hostile(one_run: Path, tmp_path: Path) -> Path:
    """Return a stranger's run, next to files of the reader's."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "precious").write_bytes(PRECIOUS)
    (folder / "folder").mkdir()
    with sqlite3.connect(folder / "own.db") as database:
        database.execute("create table own (a)")
    database.close()
    return Path(shutil.copytree(one_run, folder / "run"))


def _outside(run: Path) -> dict[str, bytes]:
    """Return all files next to the run."""
    return {str(one): one.read_bytes() for one in run.parent.rglob("*") if run not in one.parents and one.is_file()}


def _inside(run: Path) -> dict[str, tuple[int, int, int]]:
    """Return each entry of the run with its type, size and time."""
    # SQLite makes an index of the log for its readers.
    entries = {one: one.lstat() for one in run.rglob("*") if one.name != "results.sqlite-shm"}
    return {str(one): (s.st_mode, s.st_size, s.st_mtime_ns) for one, s in entries.items() if not one.is_dir()}


def in_turn(runs: Iterable[str], readers: Sequence[str], always: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Pair each run with the readers it always has, and with one of the others in turn.

    The others read runs the same way.
    """
    others = [reader for reader in readers if reader not in always]
    return [(what, reader) for place, what in enumerate(runs) for reader in (*always, others[place % len(others)])]


@pytest.mark.share(26)
@pytest.mark.parametrize(("what", "reader"), in_turn(HOSTILE, [*READERS], ["judge"]))
def test_a_strangers_run_is_refused_in_one_line(
    tollbar: Tollbar, one_run: Path, hostile: Path, what: str, reader: str
) -> None:
    spoil, expected = HOSTILE[what]
    spoil(hostile)
    if reader == "plan --resume" and any(word in what for word in OF_THE_DATABASE):
        pytest.skip("reads no results")
    names = {"RUN": hostile, "GOOD": one_run, "INVENTORY": next((HERE / "inventories").glob("*full*")),
             "MIX": HERE.parent / "docs/mix.toml"}  # fmt: skip
    outside, inside = _outside(hostile), _inside(hostile)
    done = tollbar(*(names.get(word, word) for word in READERS[reader]))
    message = " ".join(done.stderr.split())
    assert (2, "") == (done.returncode, done.stdout), message
    assert expected.replace(" ", "") in message.replace(" ", "")
    assert 1 == message.count("error:")
    assert "Traceback" not in message
    assert outside == _outside(hostile)
    assert inside == _inside(hostile)


@pytest.mark.share(26)
@pytest.mark.parametrize("what", HOSTILE)
def test_compare_by_machine_has_a_line_for_it_and_the_others(one_run: Path, hostile: Path, what: str) -> None:
    spoil, expected = HOSTILE[what]
    spoil(hostile)
    (hostile / FILE).unlink() if (hostile / FILE).is_file() and not (hostile / FILE).is_symlink() else None
    outside, inside = _outside(hostile), _inside(hostile)
    good, refused = compare.read([one_run, hostile])
    assert isinstance(good, ReadRun)
    assert isinstance(refused, Unusable)
    in_database = any(word in what for word in OF_THE_DATABASE)
    reasons = [expected, *(["is not judged yet; `tollbar report "] if in_database else [])]
    assert any(one.replace(" ", "") in refused.reason.replace(" ", "") for one in reasons), refused.reason
    assert (outside, inside) == (_outside(hostile), _inside(hostile))


@pytest.mark.parametrize("reader", ["judge", "plan --resume", "run --resume"])
@pytest.mark.parametrize("name", ["\ud800", "../../precious", "a\0b", "\x1b[2J"])
def test_a_study_of_a_name_that_no_file_has_is_one_line(
    tollbar: Tollbar, hostile: Path, name: str, reader: str
) -> None:
    (before,) = json.loads((hostile / "run.json").read_text())["studies"].values()
    said(hostile, studies={name: before})
    done = tollbar(*(str(hostile) if word == "RUN" else word for word in READERS[reader]))
    assert (2, "") == (done.returncode, done.stdout)
    assert "not a name of a study" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("where", ["fingerprint", "engine"])
def test_a_refusal_to_resume_has_no_lines_of_the_run(tollbar: Tollbar, hostile: Path, where: str) -> None:
    about = json.loads((hostile / "run.json").read_text())
    forged = "2.4\nwarning: forged"
    if where == "fingerprint":
        said(hostile, fingerprint={**about["fingerprint"], "cpu": forged})
    else:
        said(hostile, engine=forged)
    done = tollbar("run", "--resume", str(hostile))
    assert 2 == done.returncode, done.stderr
    assert "forged" in done.stderr
    assert not re.search(r"^\s*warning: forged", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("is_put_back", [False, True])
@pytest.mark.parametrize("open_", [results.read, results.reopen])
def test_a_link_that_is_laid_while_the_results_are_opened_is_not_followed(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, open_: Callable[[Path], object], is_put_back: bool
) -> None:
    """Another process may write the folder, after all of its files were checked."""
    path, own = hostile / "results.sqlite", hostile.parent / "own.db"
    connect = sqlite3.connect

    def connect_after(*words: Any, **named: Any) -> sqlite3.Connection:
        path.rename(path.with_name("kept"))
        path.symlink_to(own)
        try:
            return connect(*words, **named)
        finally:
            if is_put_back:
                path.with_name("kept").replace(path)

    before = _outside(hostile)
    monkeypatch.setattr(sqlite3, "connect", connect_after)
    with pytest.raises(TollbarError, match="another file was put in its place"):
        open_(hostile)
    assert before == _outside(hostile)


def test_a_name_that_is_not_utf_8_is_a_name_too(hostile: Path) -> None:
    before = state(hostile)
    Path(os.fsdecode(os.fsencode(hostile / "studies") + b"/\xff.toml")).touch()
    assert before != state(hostile)


def test_a_hole_allows_no_longer_read(hostile: Path) -> None:
    path = hostile / "results.sqlite"
    before = size_of(path)
    os.truncate(path, 1 << 32)
    assert size_of(path) <= MOST_COMPRESSED * (before + mmap.PAGESIZE)


@pytest.mark.parametrize("name", ["results.sqlite", "results.sqlite-wal", "results.sqlite-journal"])
def test_a_hole_is_neither_read_nor_copied(hostile: Path, name: str) -> None:
    """SQLite reads a log first, and a copy of a sparse file would fill the disk."""
    (hostile / name).touch()
    os.truncate(hostile / name, 1 << 32)
    with pytest.raises(TollbarError, match="of which the disk has") as raised, opened(hostile / "results.sqlite"):
        pass
    assert raised.value.where == str(hostile / name)


def test_a_long_schema_has_the_time_of_a_short_run(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite parses it within the first statement, whatever the size of the file allows."""
    monkeypatch.setattr("tollbar.results.database.LEAST_S", 0.0)
    monkeypatch.setattr("tollbar.results.database.BYTES_PER_S", 1e-3)
    numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)"
    view = "'view', 'v' || i, 'v' || i, 0, 'create view v' || i || ' as select 1'"
    sql("pragma writable_schema = 1", f"insert into sqlite_master {numbers} select {view} from n")(hostile)
    with pytest.raises(TollbarError, match="of CPU time"), opened(hostile / "results.sqlite"):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_read_without_end_is_ended(hostile: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end it, even within one instruction of SQLite."""
    endless(hostile, "left_out")
    with subprocess.Popen([command(), "judge", str(hostile)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as judge:
        try:
            # The thread that watches the read.
            while judge.poll() is None and len(os.listdir(f"/proc/{judge.pid}/task")) < 2:
                time.sleep(0.01)
            judge.send_signal(number)
            said = judge.communicate(timeout=60)
        finally:
            judge.kill()
    assert (ExitStatus.INTERRUPTED if number == signal.SIGINT else -signal.SIGTERM) == judge.returncode
    assert (b"", b"") == said


EXTREME: Mapping[str, Spoil] = {
    "looks": lambda run: entry(run, interim_looks=[{"blocks": 5, "trials": number} for number in range(1, 2000)]),
    "fifty looks": lambda run: entry(run, interim_looks=[{"blocks": 5, "trials": number} for number in range(1, 51)]),
    **{
        f"{metric} {value} of {name}": sql(
            f"update observation set by_round = '[{value},{value}]' where metric = '{metric}' {of}"
        )
        for metric in ("cpu", "wall", "operations", "round", "probe-before", "probe-after")
        for value in (1, 2**53 - 1)
        for name, of in (("some", "and trial % 3 = 0"), ("all", ""))
    },
    "a metric": sql("update observation set metric = 'x', by_round = '[1e308,1e308]' where metric = 'probe-before'"),
    "a component": sql("update observation set component = 'x' where metric = 'cpu'"),
    "a load": partial(loaded, requests=2**53 - 1, wall_ns=1, latency_us=[[2**53 - 1, 2**53 - 1]] * 3, errors={"x": -1}),
    "a load of nothing": partial(loaded, wall_ns=0, requests=0),
    "negative counts": sql("update trial set block = -block, batch = -batch, ord = -ord, steal_ns = -1"),
    "the first moment": sql("update trial set started_s = 0.0"),
    "a moment beyond all": sql(f"update trial set started_s = {2**53 - 1}.0, machine_load = {2**53 - 1}.0"),
    "strengths": sql(f"update cell set strength = {2**53 - 1}, position = -position, known_answers = -1"),
    "a seed": lambda run: said(run, seed=10**4000),
    "a start": lambda run: said(run, started="yesterday"),
    "blocks": lambda run: entry(run, blocks=2**53 - 1),
    "a probe": lambda run: said(run, best_probe_ns=1e308),
    "a chain": lambda run: said(run, best_probe_ns=None, chain_ns=1e308),
}  # fmt: skip


@pytest.mark.share(12)
@pytest.mark.parametrize(("what", "reader"), in_turn(EXTREME, [name for name in READERS if "resume" not in name]))
def test_numbers_that_are_hardly_possible_are_judged_or_refused(
    tollbar: Tollbar, one_run: Path, hostile: Path, what: str, reader: str
) -> None:
    EXTREME[what](hostile)
    names = {"RUN": hostile, "GOOD": one_run, "INVENTORY": next((HERE / "inventories").glob("*full*")),
             "MIX": HERE.parent / "docs/mix.toml"}  # fmt: skip
    done = tollbar(*(names.get(word, word) for word in READERS[reader]))
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode in {*ExitStatus}
    assert 1 >= done.stderr.count("error:")
