"""The command line as a user sees it: help, errors, exit status, output streams."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints
from unittest import mock

import pytest

import share
from conftest import Tollbar
from patience import PATIENCE_S
from tollbar import cli, study
from tollbar.cli import COMMANDS, measuring
from tollbar.core import machine
from tollbar.report import terminal
from tollbar.study import plan

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(tollbar: Tollbar, name: str) -> None:
    place, line = COMMANDS[name]
    module, _, function = place.partition(":")
    docstring = getattr(importlib.import_module(f"tollbar.cli.{module}"), function).__doc__
    assert docstring.startswith(line[:-1].split(", and run the self-test")[0])
    assert f"tollbar {name}" in docstring
    done = tollbar(name, "--help")
    assert 0 == done.returncode
    assert line.split()[0] in done.stdout
    assert f"\ntollbar {name}" in done.stdout
    assert "`" * 3 not in done.stdout


def test_help_lists_every_command(tollbar: Tollbar) -> None:
    shown = tollbar("--help").stdout
    assert all(name in shown for name in COMMANDS)
    assert "Exit status" in shown


ERRORS = {
    "unknown command": (["mesure"], "mesure"),
    "unknown option": (["run", "--fast"], "--fast"),
    "unknown study": (["run", "digets"], "did you mean `digests`"),
    "no such run": (["judge", "nowhere"], "not a run"),
    "no such kind": (["list", "people"], "people"),
    "no such cell": (["show", "digests", "md6"], "no cell of digests"),
    "no library": (["run", "digests", "--library", "/nowhere/libcrypto.so"], "cannot be loaded"),
    "not a library": (["run", "digests", "--library", "README.md"], "cannot be loaded"),
    "no blocks": (["run", "--blocks", "0"], "at least one block"),
    "parquet to nowhere": (["export", "nowhere", "--format", "parquet"], "not a run"),
}


@pytest.mark.parametrize("fault", ERRORS)
def test_a_bad_command_is_refused_in_words(tollbar: Tollbar, tmp_path: Path, fault: str) -> None:
    (tmp_path / "README.md").write_text("not a library\n")
    arguments, words = ERRORS[fault]
    done = tollbar(*arguments)
    assert (2, "") == (done.returncode, done.stdout)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_library_that_is_no_libcrypto_is_refused(tollbar: Tollbar) -> None:
    libc = re.search(r"(/\S*libc\.so\.6)", Path("/proc/self/maps").read_text())
    assert libc
    done = tollbar("run", "digests", "--library", libc.group(1))
    assert 2 == done.returncode
    assert "is not a libcrypto" in done.stderr


def test_a_report_that_cannot_be_written_is_said(tollbar: Tollbar, fake_runs: Path, tmp_path: Path) -> None:
    done = tollbar("report", fake_runs / "one", "--output", tmp_path / "none" / "report.html")
    assert 2 == done.returncode
    assert "cannot be written: No such file or directory" in done.stderr


@pytest.mark.share(2)
@pytest.mark.parametrize("module", sorted({module.partition(":")[0] for module, _ in COMMANDS.values()}))
def test_the_module_of_a_command_can_be_imported_first(module: str) -> None:
    words = [sys.executable, "-c", f"import tollbar.cli.{module}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (0, "") == (done.returncode, done.stderr)


def test_lists_are_tables_or_json(tollbar: Tollbar) -> None:
    listed = {}
    # The table of providers is left out: it asks the runner of each platform.
    tables = share.of(("studies", "families", "choices"), ("studies", "families", "choices", "providers"))
    for what in ("studies", "families", "choices", "providers"):
        assert what not in tables or 0 == tollbar("list", what).returncode
        listed[what] = json.loads(tollbar("list", what, "--json").stdout)
        assert isinstance(listed[what], list)
    providers = listed["providers"]
    assert {"libcrypto", "libcrypto:psycopg", "aws-lc", "rustcrypto", "spin"} <= {p["provider"] for p in providers}


def test_show_gives_the_task_that_a_runner_gets(tollbar: Tollbar) -> None:
    shown = json.loads(tollbar("show", "digests", "sha-256 rustcrypto 4096", "--json").stdout)
    task = {**shown["task"], "mode": "verify"}
    answer = subprocess.run(shown["runner"], input=json.dumps(task), capture_output=True, text=True, timeout=PATIENCE_S)
    assert "ok" == json.loads(answer.stdout)["outcome"]


def test_plan_measures_nothing(tollbar: Tollbar, tmp_path: Path) -> None:
    planned = json.loads(tollbar("plan", "self-test", "--json").stdout)
    assert 4 == planned["studies"][0]["cells"]
    assert not (tmp_path / "runs").exists()


def test_verify_proves_without_measuring(tollbar: Tollbar) -> None:
    """Uses every cell of the self-test."""
    proven = json.loads(tollbar("verify", "self-test", "--json").stdout)
    assert {"ok"} == {one["outcome"] for one in proven}
    assert all(one["known_answers"] >= 1 for one in proven)


def _imported(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has imported at its end, beyond its start."""
    at_exit = "import atexit, sys; own = set(sys.modules); atexit.register(lambda: print(*set(sys.modules) - own))"
    done = subprocess.run([sys.executable, "-c", f"{at_exit}; {code}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_next_to_nothing(words: list[str]) -> None:
    """Printing help needs seven modules of Tollbar and no third-party package."""
    imported = _imported(f"from tollbar import cli; sys.argv = ['tollbar', *{words}]; cli.main()")
    others = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {
        "tollbar",
        "tollbar.cli",
        "tollbar.core",
        "tollbar.core.errors",
        "tollbar.core.output",
        "tollbar.core.renamed",
        "tollbar.core.spelling",
    } == others - {"tollbar.cli.pages"}
    # The first page needs some 40, finding the version most of 110; running a command takes 500.
    assert len(imported) <= 130


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_every_option_with_its_meaning(tollbar: Tollbar, name: str) -> None:
    place, _ = COMMANDS[name]
    module, _, function = place.partition(":")
    command = getattr(importlib.import_module(f"tollbar.cli.{module}"), function)
    shown = tollbar(name, "--help").stdout
    parameters = _typed(command)
    for typed in parameters:
        assert re.search(rf"^\[?{typed}\b", shown, re.MULTILINE)
    described = re.findall(r"^(--[\w-]+|\[?[A-Z]{2,}…?\]?)(?:, \S+)?\s+(\S+)", shown, re.MULTILINE)
    assert len(parameters) + 1 == len(described)


def _typed(command: Callable[..., object]) -> list[str]:
    """Return every parameter as the user types it, including each shared option."""
    typed = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        is_option = parameter.kind is parameter.KEYWORD_ONLY
        shared = dataclasses.is_dataclass(parameter.annotation) and is_option
        if shared:
            hints = get_type_hints(parameter.annotation, include_extras=True)
            options = {field.name: hints[field.name] for field in dataclasses.fields(parameter.annotation)}
        else:
            options = {parameter.name: parameter.annotation}
        typed += [_option(name, hint) if is_option else name.upper() for name, hint in options.items()]
    return typed


def _option(name: str, hint: object) -> str:
    """Return a parameter's option from its annotation, or else from its name."""
    named = [name for one in getattr(hint, "__metadata__", ()) for name in getattr(one, "name", None) or ()]
    return str(named[0]) if named else f"--{name.rstrip('_').replace('_', '-')}"


def test_a_command_imports_nothing_that_only_a_report_or_an_export_needs() -> None:
    assert set() == {"altair", "vl_convert", "pyarrow", "pandas", "scipy"} & _imported("import tollbar.cli.run")


def test_colour_is_left_out_on_request(tollbar: Tollbar) -> None:
    assert "\x1b" not in tollbar("list", "studies").stdout
    assert "\x1b" not in tollbar("run", "digets").stderr


def test_too_few_blocks_are_said_before_measuring(tollbar: Tollbar, short_study: Path) -> None:
    """Three blocks never give an interval; four can."""
    said = tollbar("run", short_study, "--blocks", 3, "--no-report").stderr
    assert "3 blocks are too few for an interval, so every verdict will be unclear" in said
    assert "--blocks 4" in said
    assert "too few for an interval" not in tollbar("run", short_study, "--blocks", 4, "--no-report").stderr


def test_noise_is_told_in_one_line_with_advice(
    short_study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = plan.make(study.load([str(short_study)]), seed=1)
    store = mock.Mock(directory=Path("runs/made"))
    for busy, expected in [(1.3, 1), (0.2, 0)]:
        monkeypatch.setattr(machine, "busy_cores", lambda busy=busy: busy)
        measuring._say_plan(planned, store, terminal.say)
        said = " ".join(capsys.readouterr().err.split())
        assert expected == said.count("warning: other programs use 1.3 of "), said
        assert expected == said.count("end them, or measure longer"), said


def test_no_command_counts_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage counting from the environment is disabled in commands, because it takes time that would be measured."""
    monkeypatch.setenv("TOLLBAR_COUNT_CALLS", "1")
    monkeypatch.setattr("sys.argv", ["tollbar", "--version"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert 0 == ended.value.code
    assert "TOLLBAR_COUNT_CALLS" not in os.environ


# Expected status for each signal; a signal typed at the terminal has a status of its own so that a prompt comes.
ENDS = {signal.SIGINT: cli.ExitStatus.INTERRUPTED, signal.SIGTERM: -signal.SIGTERM}


def _ended_in(module: str, folder: Path) -> tuple[int, str, str]:
    """Return the status and the output of a command that consists of this code."""
    (folder / "models.py").write_text(module)
    # The process that starts the tests may ignore the signal.
    code = (
        "import signal, sys; from tollbar import cli; cli.__path__.append(sys.argv[1]); "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "cli.COMMANDS['look'] = ('models:look', ''); sys.argv = ['tollbar', 'look']; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("how", ENDS)
def test_a_command_is_ended_whatever_is_made_of_the_exception(tmp_path: Path, how: signal.Signals) -> None:
    """Pydantic wraps the exception while it builds a model; covered at the start and later."""
    module = f"""
import os, time
try:
    os.kill(os.getpid(), {int(how)})
    time.sleep(10)
except KeyboardInterrupt as error:
    raise ValueError("a model cannot be built: KeyboardInterrupt")

def look() -> None:
    ...
"""
    assert (ENDS[how], "", "") == _ended_in(module, tmp_path)


def test_an_error_that_no_signal_made_is_shown(tmp_path: Path) -> None:
    status, _, said = _ended_in('raise ValueError("KeyboardInterrupt")', tmp_path)
    assert 1 == status
    assert "ValueError: KeyboardInterrupt" in said


STRUCK = """
import atexit, os, signal, time

class Held:
    def __init__(self, *signals):
        self.signals = signals

    def __del__(self):
        # So that they come at once.
        signal.pthread_sigmask(signal.SIG_BLOCK, self.signals)
        for one in self.signals:
            os.kill(os.getpid(), one)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self.signals)
"""


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("then_s", [0, 10])
def test_a_command_is_ended_though_a_finalizer_is_under_way(tmp_path: Path, how: signal.Signals, then_s: float) -> None:
    """Python ignores exceptions raised in a finalizer: the signal would be lost and the run would go on."""
    module = f"{STRUCK}\ndef look() -> None:\n    held = Held({int(how)})\n    del held\n    time.sleep({then_s})\n"
    assert (ENDS[how], "", "") == _ended_in(module, tmp_path)


def test_two_signals_in_one_finalizer_end_the_command(tmp_path: Path) -> None:
    """The second signal finds the hook installed for the first, and has a status that says more."""
    signals = f"{int(signal.SIGINT)}, {int(signal.SIGTERM)}"
    module = f"{STRUCK}\ndef look() -> None:\n    held = Held({signals})\n    del held\n    time.sleep(10)\n"
    status, _, _ = _ended_in(module, tmp_path)
    assert -signal.SIGTERM == status


def test_a_signal_after_the_end_changes_no_status(tmp_path: Path) -> None:
    strike = f"os.kill(os.getpid(), {int(signal.SIGINT)})"
    module = f"{STRUCK}\ndef look() -> None:\n    atexit.register(lambda: ({strike}, time.sleep(0.1)))\n"
    status, _, _ = _ended_in(module, tmp_path)
    assert 0 == status
