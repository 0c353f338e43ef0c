"""Transfer of a node's run: only changes are sent, foreign content is refused, and looks never get lost."""

from __future__ import annotations

import json
import random
import sqlite3
import tracemalloc
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bench import fleet as made_up

from fleet_lab import RUN, trials
from tollbar import results
from tollbar.analysis.kept import read_kept
from tollbar.cluster.home import Home
from tollbar.cluster.node import BLOCK_BYTES, NodeAgent, _copy, digest
from tollbar.core.errors import TollbarError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return an empty place for a node's run."""
    (tmp_path / "node").mkdir()
    return Home(tmp_path / "node")


def sent(content: bytes = b"", files: Mapping[Any, Any] | None = None, **said: Any) -> dict[str, Any]:
    """Return a message in which a node sends a run."""
    blocks = {at: content[at * BLOCK_BYTES :][:BLOCK_BYTES] for at in range(-(-len(content) // BLOCK_BYTES))}
    found = {"bytes": len(content), "digest": digest(content), "blocks": blocks} | said.pop("results", {})
    return {"run": RUN, "files": files or {}, "results": found} | said


@pytest.mark.parametrize(
    "wrong",
    [
        sent(run="../elsewhere"),
        sent(run="/etc"),
        sent(run=".."),
        sent(files={"../run.json": b""}),
        sent(files={"/etc/passwd": b""}),
        sent(files={"studies/../../x.toml": b""}),
        sent(files={"families/../family.toml": b""}),
        sent(files={"report.html": b"<script>"}),
        sent(files={"studies/a\n.toml": b""}),
        sent(files={"run.json": b"x" * (9 << 20)}),
        sent(files={"run.json": "text"}),
        sent(files={5: b""}),
        sent(files={f"studies/{number}.toml": b"" for number in range(10_001)}),
        sent(b"whole", results={"digest": digest(b"other")}),
        sent(b"whole", results={"bytes": 5 << 40}),
        sent(b"whole", results={"bytes": -1}),
        sent(b"whole", results={"blocks": {7: b"far"}}),
        sent(b"whole", results={"blocks": {-1: b"far"}}),
        sent(b"whole", results={"blocks": {0: b"longer than it"}}),
    ],
)
def test_what_no_run_has_is_refused_and_not_written(home: Home, wrong: dict[str, Any]) -> None:
    with pytest.raises(TollbarError):
        home.take(wrong)
    assert [] == [path for path in home.folder.parent.rglob("*") if path.is_file()]


def test_room_is_made_only_for_what_came(home: Home) -> None:
    """Memory is allocated for received data only: a claimed size could exhaust it and end the parts of all nodes."""
    tracemalloc.start()
    try:
        with pytest.raises(TollbarError, match="sent an incomplete copy of its results: 5 of "):
            home.take(sent(b"whole", results={"bytes": SAID_BYTES}))
        assert SAID_BYTES // 8 > tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


SAID_BYTES = 64 << 20


def test_another_run_than_the_one_begun_is_refused(home: Home) -> None:
    home.take(sent(b"first", files={"run.json": b"{}"}))
    with pytest.raises(TollbarError):
        home.take(sent(b"first", run="2026-11-24-101501-spin"))


@pytest.mark.parametrize("study", ["my study (1)", "étude", "v1..v2", "a" * 120])
def test_a_run_is_called_as_any_study_may_be(home: Home, study: str) -> None:
    home.take(sent(b"first", run=f"2026-11-24-101500-{study}", files={"run.json": b"{}", f"studies/{study}.toml": b""}))
    assert home.whole is not None
    assert (home.whole / "studies" / f"{study}.toml").exists()


def test_only_what_has_changed_is_sent(home: Home) -> None:
    chance = random.Random(1)
    content = chance.randbytes(3 * BLOCK_BYTES + 17)
    home.take(sent(content, files={"run.json": b"{}", "studies/a.toml": b"a"}))
    files, blocks = home.known()
    assert {"run.json", "studies/a.toml"} == {*files}
    assert 4 == len(blocks)
    longer = content[:BLOCK_BYTES] + b"x" + content[BLOCK_BYTES + 1 :] + b"more"
    changed = sent(longer)
    changed["results"]["blocks"] = {at: block for at, block in changed["results"]["blocks"].items() if at in (1, 3)}
    home.take(changed)
    assert home.directory is not None
    assert longer == (home.directory / "results.sqlite").read_bytes()
    home.take(sent(content[:100]))
    assert content[:100] == (home.directory / "results.sqlite").read_bytes()


def test_a_growing_database_comes_home_whole_each_time(place: Path, home: Home) -> None:
    run = made_up.run_of(place / "cache/tollbar/fleet/one/f/runs", made_up.fingerprint("A"), lambda _: 100.0)
    node = NodeAgent("one")
    store = results.reopen(run)
    seen = []
    for number in range(5):
        with store.database as database:
            database.execute("insert into event values (?, ?)", (number, "x" * 100_000))
        home.take(node.changed("f", *home.known()))
        assert home.directory is not None
        with closing(sqlite3.connect(home.directory / "results.sqlite")) as copy:
            seen.append(copy.execute("select count(*) from event").fetchone()[0])
        assert trials(run) == trials(home.directory)
    store.close()
    assert [1, 2, 3, 4, 5] == seen
    assert node.changed("f", *home.known())["files"] == {}
    assert [one.rows for one in results.read(run).studies] == [one.rows for one in results.read(home.directory).studies]
    assert not list(home.directory.glob("results.sqlite-*"))


def test_a_judgement_comes_home_with_its_run(place: Path, home: Home) -> None:
    run = made_up.run_of(place / "cache/tollbar/fleet/one/f/runs", made_up.fingerprint("A"), lambda _: 100.0)
    node = NodeAgent("one")
    for _ in range(2):
        home.take(node.changed("f", *home.known()))
    assert home.directory is not None
    assert read_kept(run) == read_kept(home.directory)


def test_looks_at_home_are_kept_when_the_node_goes_on(place: Path, home: Home) -> None:
    """Gathering while a node measures costs a look, whatever the node reports later."""
    run = made_up.run_of(place / "cache/tollbar/fleet/one/f/runs", made_up.fingerprint("A"), lambda _: 100.0)
    node = NodeAgent("one")
    results.update_about(run, {"studies": without_looks(run)})
    home.take(node.changed("f", *home.known()))
    assert home.directory is not None
    assert results.note_interim_look(home.directory) is None
    (at_home,) = looks_of(home.directory)
    assert 1 == len(at_home)
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute("delete from trial where ord = (select max(ord) from trial)")
    assert results.note_interim_look(run) is None
    home.take(node.changed("f", *home.known()))
    (found,) = looks_of(home.directory)
    assert [*looks_of(run)[0], *at_home] == found
    home.take(node.changed("f", {}, []))
    assert [found] == looks_of(home.directory)
    assert home.directory.name == results.read(home.directory).name


def looks_of(run: Path) -> list[list[dict[str, int]]]:
    """Return the looks that are recorded for each study."""
    return [entry["interim_looks"] for entry in results.about(run)["studies"].values()]


def without_looks(run: Path) -> dict[str, dict[str, Any]]:
    """Return a run's record of its studies as before it was judged."""
    return {name: {**entry, "interim_looks": []} for name, entry in results.about(run)["studies"].items()}


@pytest.mark.parametrize("said", [b"", b"[]", b"{}", b'{"studies": {}}', b'{"studies": {"a": {"interim_looks": 1}}}'])
def test_a_node_cannot_take_looks_away(home: Home, said: bytes) -> None:
    first = json.dumps({"studies": {"a": {"interim_looks": [{"blocks": 1, "trials": 3}]}}}).encode()
    home.take(sent(b"first", files={"run.json": first}))
    with pytest.raises(TollbarError):
        home.take(sent(b"first", files={"run.json": said}))
    assert home.directory is not None
    assert first == (home.directory / "run.json").read_bytes()


def test_a_copy_has_what_is_in_the_log_beside_the_file(tmp_path: Path) -> None:
    """SQLite's log is part of the results while a run is written."""
    path = tmp_path / "results.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table batch (number)")
        database.execute("insert into batch values (1)")
        database.commit()
        (tmp_path / "copy").write_bytes(_copy(path))
    with closing(sqlite3.connect(tmp_path / "copy")) as copy:
        assert [(1,)] == copy.execute("select * from batch").fetchall()
        assert [("delete",)] == copy.execute("pragma journal_mode").fetchall()
