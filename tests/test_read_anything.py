"""Foreign files and lines of a runner: anything in them is a value or one line of error."""

from __future__ import annotations

import copy
import json
import os
import shutil
import sqlite3
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomlkit
from bench.fleet import fingerprint, run_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import share
from tollbar import analysis, results, study
from tollbar.analysis.kept import FILE, read_kept
from tollbar.catalog import policies, servers
from tollbar.catalog.families import read_family
from tollbar.core.errors import TollbarError
from tollbar.core.records import ChunkRecord, Ready, Record
from tollbar.core.runner import session
from tollbar.decide import compare, price
from tollbar.decide.size import mix
from tollbar.results import database
from tollbar.study.recorded import scenario_of
from tollbar.study.scenario_file import read_scenario

HERE = Path(__file__).parent
PACKAGE = Path(study.__file__).parents[1]
POLICIES = PACKAGE / "catalog/policies"
# On demand more of them, and none of them for longer than a second.
EXAMPLES = int(os.environ.get("TOLLBAR_EXAMPLES", share.of(8, 40)))
DEADLINE_MS = 1000 if "TOLLBAR_EXAMPLES" in os.environ else None


class Reader(NamedTuple):
    """Way of reading a file, and some valid files."""

    name: str
    read: Callable[[Path], object]
    documents: Sequence[Path]

    @property
    def in_run(self) -> Path | None:
        """Return the file's place in a run's directory, or None if it belongs to no run."""
        return Path(*Path(self.name).parts[1:]) if self.name.startswith("run/") else None


def _said(path: Path) -> object:
    """Read the text as each kind of line that a runner may write."""
    try:
        return [session._read(path.read_bytes(), model) for model in (Record, Ready, ChunkRecord)]
    except session.Stopped as stopped:
        raise TollbarError(stopped.record.reason or "") from None


def _judged(path: Path) -> object:
    """Judge the run that this file belongs to."""
    return analysis.judge(results.read(next(one for one in path.parents if (one / "run.json").exists())))


READERS: Mapping[str, Reader] = {
    "study": Reader("any.toml", lambda path: study.load([str(path)]), [
        PACKAGE / "study/studies" / name for name in ("ciphers.toml", "sign-in-today.toml", "tls-certificates.toml")]),
    "family": Reader("toy/family.toml", lambda path: read_family(path.parent), [
        HERE / "toy/families/toy/family.toml", PACKAGE / "catalog/families/password-hash/family.toml"]),
    "server": Reader("toy/server.toml", lambda path: servers.read(path.parent), [
        HERE / "toy/servers/toy/server.toml", PACKAGE / "catalog/servers/nginx/server.toml"]),
    "policy": Reader("ours.toml", lambda path: policies.policy(str(path)), [
        POLICIES / f"{name}.toml" for name in ("tlsref-modern-6.0", "owasp-password-storage-2026-06")]),
    "project": Reader("tollbar.toml", policies.read_project, [HERE / "readers/tollbar.toml"]),
    "scenario": Reader("shop.toml", read_scenario, [HERE / "readers/shop.toml"]),
    "recording": Reader("site.json", scenario_of, [HERE / "readers/site.json"]),
    "mix": Reader("mix.toml", mix.read, [HERE.parent / "docs/mix.toml"]),
    "inventory": Reader("cbom.json", price.read, sorted((HERE / "inventories").glob("*.json"))),
    "runner": Reader("line.json", _said, [HERE / "readers/runner.json"]),
    "run": Reader("run/run.json", _judged, []),
    "kept study": Reader("run/studies/digests.toml", _judged, []),
    "kept family": Reader("run/families/digest/family.toml", _judged, []),
    "judgement": Reader(f"run/{FILE}", lambda path: read_kept(path.parent), []),
}  # fmt: skip
RESULTS = Reader("run/results.sqlite", _judged, [])
ALL = {**READERS, "results": RESULTS}

VALUES = some.recursive(
    some.booleans() | some.integers() | some.floats() | some.text(max_size=20) | some.dates() | some.just("\x1b[2J\n"),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
DEEP = 100_000
TEXTS = [b"", b"\xff", b"\0", b"[" * DEEP, b"a = " + b"[" * DEEP, b'{"a":' * DEEP, b"a." * DEEP + b"b = 1", b"null",
         b"a = " + b"9" * 10_000, b"9" * 10_000, b'"\\ud800"']  # fmt: skip


def places(said: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value of a document."""
    inner = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    for key, value in inner:
        yield (*way, key)
        yield from places(value, (*way, key))


def changed(said: Any, data: some.DataObject) -> Any:
    """Return a document with some values replaced, removed or renamed."""
    said = copy.deepcopy(said)
    for _ in range(data.draw(some.integers(1, 2))):
        *way, last = data.draw(some.sampled_from([*places(said)] or [()])) or ("",)
        at = said
        for key in way:
            at = at[key]
        match data.draw(some.sampled_from(["other", "gone", "renamed"])):
            case "other":
                at[last] = data.draw(VALUES)
            case "renamed" if isinstance(at, dict):
                at[data.draw(some.text(max_size=9))] = at.pop(last, None)
            case _ if last in at or isinstance(at, list):
                del at[last]
    return said


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a judged run."""
    run = run_of(tmp_path_factory.mktemp("made"), fingerprint("Example CPU 1"), lambda at: 1000.0)
    compare.read([run])
    return run


def check(reader: Reader, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        reader.read(path)
    except TollbarError as error:
        assert error.what
        assert "\n" not in str(error), error


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=EXAMPLES, deadline=DEADLINE_MS, suppress_health_check=[*HealthCheck])
@given(data=some.data())
def test_whatever_is_read_is_a_value_or_one_line(
    kind: str, made: Path, tmp_path_factory: pytest.TempPathFactory, data: some.DataObject
) -> None:
    """Changes of valid documents: values, truncation, other bytes."""
    reader = READERS[kind]
    path = _place(kind, made, tmp_path_factory)
    of = data.draw(some.sampled_from(reader.documents or [made / (reader.in_run or "")]))
    text, is_json = of.read_text("utf-8"), path.suffix == ".json"
    # tomlkit takes ten times as long to read it.
    said = changed(json.loads(text) if is_json else tomllib.loads(text), data)
    try:
        content = (json.dumps(said, default=str) if is_json else tomlkit.dumps(said)).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, tomlkit.exceptions.TOMLKitError):
        content = text.encode()
    if data.draw(some.booleans()):
        at, length = data.draw(some.integers(0, len(content))), data.draw(some.integers(0, 9))
        content = content[:at] + data.draw(some.binary(max_size=4)) + content[at + length :]
    check(reader, path, content)


# Possible values of a row: one of each SQLite type, or a text of JSON.
STORED = some.none() | some.integers(-(2**63), 2**63 - 1) | some.floats() | some.binary(max_size=9)
STORED |= VALUES.map(lambda value: json.dumps(value, default=str)) | some.text(max_size=9) | some.just("[" * DEEP)


@settings(max_examples=EXAMPLES, deadline=DEADLINE_MS, suppress_health_check=[*HealthCheck])
@given(data=some.data())
def test_whatever_is_in_the_results_is_a_value_or_one_line(
    made: Path, tmp_path_factory: pytest.TempPathFactory, data: some.DataObject
) -> None:
    """Changes: rows, tables and columns that are altered, removed or renamed; a truncated file, or other bytes."""
    path = _place("results", made, tmp_path_factory)
    for beside in path.parent.glob(f"{path.name}*"):
        beside.unlink()
    shutil.copyfile(made / path.name, path)
    if data.draw(some.integers(0, 3)):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            spoil(connection, data)
        content = path.read_bytes()
    else:
        content = path.read_bytes()
        at, length = data.draw(some.integers(0, len(content))), data.draw(some.sampled_from([0, 1, 9, len(content)]))
        content = content[:at] + data.draw(some.binary(max_size=4)) + content[at + length :]
    with pytest.MonkeyPatch.context() as patched:
        # Values must be refused for themselves, not because a table has another definition.
        if data.draw(some.booleans()):
            patched.setattr(database, "refuse_other_tables", lambda *_: None)
        check(RESULTS, path, content)


def spoil(database: sqlite3.Connection, data: some.DataObject) -> None:
    """Change a table in a way that none of its constraints refuses."""
    tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table' order by name")]
    table = data.draw(some.sampled_from(tables))
    columns = [name for _, name, *_ in database.execute(f"pragma table_info({table})")]
    column = data.draw(some.sampled_from(columns))
    # A table with the same columns and no keys.
    database.execute(f"create table loose as select * from {table}")
    database.execute(f"drop table {table}")
    database.execute(f"alter table loose rename to {table}")
    rows = database.execute(f"select count(*) from {table}").fetchone()[0]
    row = f"where rowid % {data.draw(some.integers(1, max(1, rows)))} = 0"
    match data.draw(some.sampled_from(["value", "value", "value", "rows", "column", "no column", "table", "no table"])):
        case "value":
            database.execute(f"update {table} set {column} = ? {row}", (data.draw(STORED),))
        case "rows":
            database.execute(f"delete from {table} {row}")
        case "column":
            database.execute(f"alter table {table} rename column {column} to other")
        case "no column":
            database.execute(f"alter table {table} drop column {column}")
        case "table":
            database.execute(f"alter table {table} rename to other")
        case _:
            database.execute(f"drop table {table}")


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("content", TEXTS, ids=lambda content: str(content[:12]))
def test_what_is_no_document_at_all_is_one_line(
    kind: str, content: bytes, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    reader = ALL[kind]
    check(reader, _place(kind, made, tmp_path_factory), content)


def _place(kind: str, made: Path, folders: pytest.TempPathFactory) -> Path:
    """Return the place of a reader's file: in a folder of its own, or in a copy of the run."""
    folder, reader = folders.getbasetemp() / "read" / kind, ALL[kind]
    path = folder / reader.name
    if not folder.exists():
        shutil.copytree(made, folder / "run") if reader.in_run else path.parent.mkdir(parents=True)
    return path
