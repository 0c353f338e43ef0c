"""Ends of commands: full, closed or abandoned streams, SIGTERM, and runs without a measurement."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import Tollbar, command
from patience import PATIENCE_S

# One cell of libcrypto, which has no BLAKE3.
NOTHING_HERE = """
question  = "Is there anything to measure?"
family    = "digest"
choices   = ["blake3"]
providers = ["libcrypto"]
baseline  = "blake3"
"""
# Commands without a run, and commands that read one.
COMMANDS = [["--help"], ["--version"], ["list", "families"], ["judge", "made/one"], ["judge", "made/one", "--json"]]


@pytest.mark.share(4)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("where", "said"), [(">/dev/full", "No space left on device"), (">&-", "is closed; it must be open")]
)
def test_output_that_cannot_be_written_is_one_line(
    fake_runs: Path, tmp_path: Path, words: list[str], where: str, said: str
) -> None:
    done = _in_shell(f'"$@" {where}', words, tmp_path)
    assert 2 == done.returncode
    first, *rest = done.stderr.strip().splitlines()
    assert first.startswith("error: standard output: ")
    assert first.endswith(said)
    assert [] == [line for line in rest if line and not line.startswith("hint: ")]


@pytest.mark.share(2)
@pytest.mark.parametrize("words", [*COMMANDS, ["judge", "nowhere"]], ids=" ".join)
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_messages_that_cannot_be_written_change_no_status(
    fake_runs: Path, tmp_path: Path, words: list[str], where: str
) -> None:
    done, usual = _in_shell(f'"$@" {where}', words, tmp_path), _in_shell('"$@"', words, tmp_path)
    assert (usual.returncode, usual.stdout) == (done.returncode, done.stdout)


@pytest.mark.share(0)
@pytest.mark.parametrize("fault", ["none", "chunk:crash"])
def test_a_reader_who_leaves_changes_no_status(tollbar: Tollbar, fake_study: Path, tmp_path: Path, fault: str) -> None:
    words = ["run", str(fake_study), "--no-report", "--blocks", "1", "--seed", "1"]
    env = {**os.environ, "FAKE_FAULT": "" if fault == "none" else fault}
    usual = tollbar(*words, env=env)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as left:
        done = subprocess.run([command(), *words], cwd=tmp_path, env=env, stdout=left, stderr=left, timeout=PATIENCE_S)
    assert usual.returncode == done.returncode
    assert 2 == len(list((tmp_path / "runs").iterdir()))
    # Broken pipes cause no traceback either.
    piped = _in_shell('"$@" | true; echo "${PIPESTATUS[0]}"', ["list", "families"], tmp_path)
    assert ("0\n", "") == (piped.stdout, piped.stderr)


def test_a_run_in_which_nothing_could_be_measured_has_failed(tollbar: Tollbar, tmp_path: Path) -> None:
    (tmp_path / "nothing.toml").write_text(NOTHING_HERE)
    done = tollbar("run", "nothing.toml", "--blocks", 4, "--no-report")
    assert 1 == done.returncode, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert 1 == tollbar("judge", run).returncode


def test_sigterm_says_how_to_go_on(short_study: Path, tmp_path: Path) -> None:
    words = [command(), "run", str(short_study), "--no-report", "--blocks", "200"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
        assert run.stderr is not None
        assert any("  data  " in line for line in run.stderr)
        run.terminate()
        _, said = run.communicate(timeout=PATIENCE_S)
    assert -signal.SIGTERM == run.returncode
    assert "tollbar run --resume runs/" in said
    assert "Traceback" not in said


@pytest.mark.share(0)
def test_an_attempt_that_ends_in_an_error_leaves_no_study(tollbar: Tollbar, tmp_path: Path) -> None:
    """Otherwise the same line could not be tried again; a study that existed before is not touched."""
    (tmp_path / "file").write_text("")
    words = ("ask", "spin", "spin-1", "spin-2", "--for", "1s", "--save", "mine.toml")
    done = tollbar(*words, "--runs", "file")
    assert 2 == done.returncode
    assert not (tmp_path / "mine.toml").exists()
    assert 0 == tollbar(*words, "--no-report").returncode
    kept = (tmp_path / "mine.toml").read_text()
    assert 2 == tollbar(*words).returncode
    assert kept == (tmp_path / "mine.toml").read_text()


def test_the_doctor_prints_as_it_finds(tmp_path: Path) -> None:
    # The doctor asks this program for its version, however soon it reaches it.
    (programs := tmp_path / "programs").mkdir()
    (programs / "nginx").write_text("#!/bin/sh\nexec sleep 60\n")
    (programs / "nginx").chmod(0o755)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with subprocess.Popen(
        [command(), "doctor"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as doctor:
        assert doctor.stdout is not None
        assert "engine" in doctor.stdout.readline()
        assert doctor.poll() is None
        os.killpg(doctor.pid, signal.SIGKILL)


def test_completion_has_every_command_and_its_options(tollbar: Tollbar, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    done = tollbar("--install-completion", "--shell", "bash", "--output", "completion.bash", env=env)
    assert 0 == done.returncode, done.stderr
    script = (tmp_path / "completion.bash").read_text()
    for word in ("run", "compare", "--precision", "--across-machines", "markdown"):
        assert word in script


def _in_shell(line: str, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the result of a line in bash, where `"$@"` is the command."""
    return subprocess.run(
        ["bash", "-c", line, "bash", command(), *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.share(2)
@pytest.mark.parametrize("descriptors", [8, 10, 12, 14])
def test_a_shortage_is_said_in_words(short_study: Path, descriptors: int) -> None:
    limited = ["sh", "-c", f'ulimit -n {descriptors} && exec "$0" "$@"', command()]
    run = ["run", str(short_study), "--no-report"]
    done = subprocess.run([*limited, *run], cwd=short_study.parent, capture_output=True, text=True, timeout=PATIENCE_S)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode != 2 or "no file descriptors left" in done.stderr, done.stderr
