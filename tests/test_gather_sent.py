"""Runs that others sent: each is read, or refused in one line, and nothing is read that is not the run's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from bench.fleet import FLAGS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import share
from conftest import Tollbar
from gather_lab import reason_of, told
from tollbar import gathering, judge, results
from tollbar.document.decisions.gather import document
from tollbar.errors import TollbarError
from tollbar.gathering import Unusable
from tollbar.gathering.kept import FILE, KeptJudgement, state
from tollbar.gathering.reading import Found
from tollbar.present.decisions.gather import gather_answer, gather_page
from tollbar.report.page import html
from tollbar.results import database, reading


def _schema(run: Path) -> None:
    _said(run, schema=4)


def _said(run: Path, **more: object) -> None:
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**said, **more}))
    (run / FILE).unlink(missing_ok=True)


def _linked(run: Path) -> None:
    (run / "results.sqlite").rename(run.parent.parent / "elsewhere")
    (run / "results.sqlite").symlink_to(run.parent.parent / "elsewhere")


def _linked_study(run: Path) -> None:
    (run / "studies" / "digests.toml").unlink()
    (run / "studies" / "digests.toml").symlink_to("/etc/passwd")


def _climbing(run: Path) -> None:
    said = json.loads((run / "run.json").read_text())
    _said(run, studies={"../../../etc/x": said["studies"]["digests"]})


def _climbing_family(run: Path) -> None:
    text = (run / "studies" / "digests.toml").read_text()
    (run / "studies" / "digests.toml").write_text(text.replace('"digest"', '"../../../digest"'))
    (run / FILE).unlink()


def _viewed(run: Path, table: str = "trial", *, forged: bool = False, kept: bool = True) -> None:
    """A view that never ends under a table's name; `forged`: the schema says that it is a table."""
    with sqlite3.connect(run / "results.sqlite") as database:
        database.executescript(
            f"drop table {table}; create view {table} as with recursive n(i) as (select 1 union all select i + 1 from"
            " n) select i as study, i as block, i as key from n"
        )
        if forged:
            database.execute("pragma writable_schema = 1")
            database.execute("update sqlite_master set type = 'table' where name = ?", (table,))
    if not kept:
        (run / FILE).unlink()


def _cut(run: Path) -> None:
    os.truncate(run / "results.sqlite", 5000)


def _garbled(run: Path) -> None:
    with sqlite3.connect(run / "results.sqlite") as database:
        database.execute("update observation set by_round = 'x'")
    (run / FILE).unlink()


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
    "no run": (lambda run: (run / "run.json").write_text("[]"), "not a run of schema 5"),
    "no studies": (lambda run: _said(run, studies=7), "not as Tollbar writes it"),
    "no fingerprint": (lambda run: _said(run, fingerprint="x"), "not as Tollbar writes it"),
    "a terminal's escape": (lambda run: _said(run, started="\x1b[2J"), "a control character, U+001B"),
    "a climbing study": (_climbing, "no name of a study"),
    "a climbing family": (_climbing_family, "a name, and no place"),
    "a linked database": (_linked, "`results.sqlite` is a symbolic link, which is not followed"),
    "a linked study": (_linked_study, "is a symbolic link, which is not followed"),
    "a pipe": (_fifo, "`judged.json` is neither a file nor a folder"),
    "a large file": (_large, "`studies/digests.toml` is larger than that of any run"),
    "many large files": (_much, "its files are larger than those of any run"),
    **{
        f"a view that never ends, {table}, {forged=}, {kept=}": (
            partial(_viewed, table=table, forged=forged, kept=kept),
            # SQLite holds the type against the text.
            f"malformed database schema ({table})" if forged else f"`{table}` is no table",
        )
        for table, forged, kept in product(("cell", "trial"), (False, True), (False, True))
    },
    "a cut database": (_cut, "the results cannot be read"),
    "no database": (lambda run: (run / "results.sqlite").unlink(), "cannot be read"),
    "no text of a study": (lambda run: shutil.rmtree(run / "studies"), "cannot be read"),
    "garbled rounds": (_garbled, "not as Tollbar writes it"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_others_send_is_a_reason(own_run: Path, what: str) -> None:
    """One line each, and nothing read that is not the run's."""
    spoil, expected = HOSTILE[what]
    spoil(own_run)
    assert expected in reason_of(own_run)


def test_reading_ends(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked of the results of another's making."""
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    monkeypatch.setattr(database, "LEAST_S", 0)
    monkeypatch.setattr(reading, "reach", lambda database: database.execute(endless).fetchall())
    with pytest.raises(TollbarError, match="take more than 0 s of CPU time to be read"):
        results.present(own_run)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.share(1)
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_die, "the process that judged it ended"),
        (lambda: time.sleep(600), "the process that judged it ended"),
        (lambda: bytearray(gathering.reading.MOST_ADDRESSES), "more memory than one run may have"),
    ],
    ids=["killed", "endless", "large"],
)
def test_one_that_dies_takes_no_other_with_it(
    one_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[], object], said: str
) -> None:
    """Those that shared its pool are judged all the same."""
    for seed in range(5):
        copied = Path(shutil.copytree(one_run, tmp_path / "runs" / f"{seed}"))
        _said(copied, seed=seed)
    really = judge.judge

    def judged(run: results.Run) -> judge.Judgement:
        if run.seed == 1:
            spoil()
        return really(run)

    monkeypatch.setattr(judge, "judge", judged)
    # The others are to be judged within that on a busy machine.
    monkeypatch.setattr(gathering.reading, "MOST_S", 20)
    found = gathering.read([tmp_path / "runs"])
    reasons = [one.reason if isinstance(one, Unusable) else "" for one in found]
    assert said in reasons.pop(1)
    assert [""] * 4 == reasons


def test_what_is_kept_by_others_is_checked(own_run: Path) -> None:
    """A judgement that is not as it is written here is none; one with a control character is a reason."""
    kept = json.loads((own_run / FILE).read_text())
    kept["studies"][0]["question"] = "\x1b]0;title\x07"
    (own_run / FILE).write_text(json.dumps(kept))
    assert "a control character, U+001B" in reason_of(own_run)
    kept["studies"][0]["tolls"][0][0] = 10**6
    kept["studies"][0]["question"] = "What?"
    (own_run / FILE).write_text(json.dumps(kept))
    (found,) = gathering.read([own_run])
    assert isinstance(found, Found)
    assert json.loads((own_run / FILE).read_text())["studies"][0]["tolls"][0][0] < 10**6


# A folder for all examples, and time for each on a busy machine.
UNCHECKED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
JSONS = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=share.of(10, 60), deadline=None, suppress_health_check=UNCHECKED)
@given(key=some.sampled_from(["fingerprint", "studies", "started", "providers", "tollbar", "schema"]), value=JSONS)
def test_whatever_a_run_says_is_read_or_refused(one_run: Path, tmp_path: Path, key: str, value: Any) -> None:
    """Any value in the place of any key: a run or a reason, and text that can be shown."""
    run = tmp_path / "any"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(one_run, run)
    kept = KeptJudgement.model_validate_json((run / FILE).read_bytes())
    _said(run, **{key: value})
    # As a sender would have it who wants it believed.
    (run / FILE).write_text(kept.model_copy(update={"of": _state(run)}).model_dump_json())
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
    """Any value in any place of what was judged: believed where it is of its type, else judged again."""
    # Not that of the example before, which may have been believed.
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
    """Each is a row, and what is left is told."""
    _schema(Path(shutil.copytree(own_run, tmp_path / "runs" / "old")))
    done = tollbar("compare", "--by", "machine", tmp_path / "runs")
    assert 1 == done.returncode
    assert "Refused" in done.stdout
    assert "before version 5 of the run format" in done.stdout
    assert FLAGS[0] in done.stdout
