"""Runs from other senders: each is read or refused in one line, and nothing outside the run is read."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.fleet import FLAGS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import share
from conftest import Tollbar
from gather_lab import reason_of, told
from tollbar import results
from tollbar.analysis.kept import FILE, state
from tollbar.core.errors import TollbarError
from tollbar.decide import compare
from tollbar.decide.compare.document import document
from tollbar.decide.compare.found_runs import ReadRun
from tollbar.decide.compare.words import gather_answer, gather_page
from tollbar.report.html.page import html
from tollbar.results import database


def _schema(run: Path) -> None:
    _said(run, schema=4)


def _said(run: Path, **more: object) -> None:
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**said, **more}))
    kept = json.loads((run / FILE).read_text())
    # A consistent digest, as a sender who wants to be believed would write it.
    (run / FILE).write_text(json.dumps(kept | {"of": _state(run)}))


def _linked(run: Path) -> None:
    (run / "results.sqlite").rename(run.parent.parent / "elsewhere")
    (run / "results.sqlite").symlink_to(run.parent.parent / "elsewhere")


def _linked_study(run: Path) -> None:
    (run / "studies" / "digests.toml").unlink()
    (run / "studies" / "digests.toml").symlink_to("/etc/passwd")


def _cut(run: Path) -> None:
    os.truncate(run / "results.sqlite", 5000)


def _viewed(run: Path) -> None:
    """Replace a table by a view without an end; the judgement matches these results."""
    with sqlite3.connect(run / "results.sqlite") as database:
        database.executescript(
            "drop table trial; create view trial as with recursive n(i) as (select 1 union all select i + 1 from"
            " n) select i as study, i as block, i as key from n"
        )
    kept = json.loads((run / FILE).read_text())
    (run / FILE).write_text(json.dumps(kept | {"of": state(run)}))


def _fifo(run: Path) -> None:
    (run / FILE).unlink()
    os.mkfifo(run / FILE)


def _much(run: Path) -> None:
    for number in range(50):
        path = run / "studies" / f"{number}.toml"
        path.touch()
        os.truncate(path, 4 << 20)


def _large(run: Path) -> None:
    os.truncate(run / "studies" / "digests.toml", 1 << 30)


HOSTILE: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "another schema": (_schema, "before version 5 of the run format"),
    "no JSON": (lambda run: (run / "run.json").write_text("{"), "cannot be read"),
    "deep JSON": (lambda run: (run / "run.json").write_text("[" * 100_000), "not as Tollbar writes it"),
    "no run": (lambda run: (run / "run.json").write_text("[]"), "must have schema 5"),
    "no studies": (lambda run: _said(run, studies=7), "not as Tollbar writes it"),
    "no fingerprint": (lambda run: _said(run, fingerprint="x"), "not as Tollbar writes it"),
    "a terminal's escape": (lambda run: _said(run, started="\x1b[2J"), "the control character U+001B"),
    "a linked database": (_linked, "`results.sqlite` is a symbolic link; it must be a file or a folder"),
    "a linked study": (_linked_study, "is a symbolic link; it must be a file or a folder"),
    "a pipe": (_fifo, "`judged.json` must be a file or a folder"),
    "a large file": (_large, "`studies/digests.toml` has "),
    "many large files": (_much, "its studies and families have"),
    "a cut database": (_cut, "its results have changed since it was judged; `tollbar report "),
    "no database": (lambda run: (run / "results.sqlite").unlink(), "its results have changed since it was judged"),
    "no text of a study": (lambda run: shutil.rmtree(run / "studies"), "its results have changed since it was judged"),
    "no judgement": (lambda run: (run / FILE).unlink(), "is not judged yet; `tollbar report "),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_others_send_is_a_reason(own_run: Path, what: str) -> None:
    spoil, expected = HOSTILE[what]
    spoil(own_run)
    assert expected in reason_of(own_run)


def test_a_database_of_others_is_not_opened(own_run: Path) -> None:
    _viewed(own_run)
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    (found,) = compare.read([own_run])
    assert isinstance(found, ReadRun)
    assert before == {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}


def test_reading_ends(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    monkeypatch.setattr(database, "LEAST_S", 0)
    monkeypatch.setattr("tollbar.results.looks.reach", lambda database: database.execute(endless).fetchall())
    with pytest.raises(TollbarError, match="take more than 0 s of CPU time to be read"):
        results.present(own_run)


def test_what_is_kept_by_others_is_checked(own_run: Path) -> None:
    kept = json.loads((own_run / FILE).read_text())
    kept["studies"][0]["question"] = "\x1b]0;title\x07"
    (own_run / FILE).write_text(json.dumps(kept))
    assert "the control character U+001B" in reason_of(own_run)
    kept["studies"][0]["tolls"][0][0] = 10**6
    kept["studies"][0]["question"] = "What?"
    (own_run / FILE).write_text(json.dumps(kept))
    assert "`judged.json` is not as Tollbar writes it; `tollbar report " in reason_of(own_run)
    kept["studies"][0]["tolls"][0][0] = 0
    # They were printed all in one line of megabytes.
    kept["studies"][0]["wrong_claims"] = ["x"] * 1001
    (own_run / FILE).write_text(json.dumps(kept))
    assert "`judged.json` is not as Tollbar writes it; `tollbar report " in reason_of(own_run)


# All examples share a folder, and each gets time on a busy machine.
UNCHECKED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
JSONS = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=share.of(10, 60), deadline=None, suppress_health_check=UNCHECKED)
@given(key=some.sampled_from(["fingerprint", "studies", "started", "providers", "tollbar", "schema"]), value=JSONS)
def test_whatever_a_run_says_is_read_or_refused(one_run: Path, tmp_path: Path, key: str, value: Any) -> None:
    run = tmp_path / "any"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(one_run, run)
    _said(run, **{key: value})
    found = told(run)
    assert 1 == len(found.runs) + len(found.unusable)
    json.dumps(document(found).model_dump(mode="json"), allow_nan=False)
    for listing in gather_answer(found, everything=True).listings:
        for table in listing.tables:
            assert all(cell.says.isprintable() or "\u00a0" in cell.says for row in table.rows for cell in row)


KEPT = ["threshold", "noise_floor", "load", "family", "parameters", "cells", "tolls", "cells/0/0/bytes", "tolls/0/2",
        "cells/0/0", "wrong_claims", "tolls/0/7", "tolls/0/8", "cells/0/3"]  # fmt: skip


@settings(max_examples=share.of(10, 60), deadline=None, suppress_health_check=UNCHECKED)
@given(place=some.sampled_from(KEPT), value=JSONS)
def test_whatever_a_run_keeps_can_be_shown(one_run: Path, own_run: Path, place: str, value: Any) -> None:
    # Restore the judgement, because the example before may have been accepted.
    kept = json.loads((one_run / FILE).read_text())
    *way, last = place.split("/")
    at = kept["studies"][0]
    for step in way:
        at = at[int(step) if step.isdigit() else step]
    at[int(last) if last.isdigit() else last] = value
    (own_run / FILE).write_text(json.dumps(kept))
    found = told(own_run)
    assert 1 == len(found.runs) + len(found.unusable)
    print_json = json.dumps(document(found).model_dump(mode="json"), allow_nan=False)
    assert print_json.isprintable()
    gather_answer(found, everything=True)
    html(gather_page(found, "tollbar gather", own_run / "page.html"))


def _state(run: Path) -> str:
    try:
        return state(run)
    except (TollbarError, OSError):
        return ""


def test_refused_runs_give_status_1(tollbar: Tollbar, own_run: Path, tmp_path: Path) -> None:
    _schema(Path(shutil.copytree(own_run, tmp_path / "runs" / "old")))
    done = tollbar("compare", "--by", "machine", tmp_path / "runs")
    assert 1 == done.returncode
    assert "Refused" in done.stdout
    assert "before version 5 of the run format" in done.stdout
    assert FLAGS[0] in done.stdout
