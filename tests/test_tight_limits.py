"""Limits on memory and on file size: a command that cannot work within them fails in words, without a traceback."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from bench.figures import TOLLBAR

from tollbar import cli

STUDY = """
question  = "?"
family    = "digest"
choices   = ["md5", "sha-256"]
providers = ["libcrypto"]
[vary]
op    = ["hash"]
bytes = ["64 B"]
"""


def limited(folder: Path, kind: int, limit: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Return the result of a command with this limit of a resource."""
    (folder / "study.toml").write_text(STUDY)
    return subprocess.run(
        [TOLLBAR, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
    )


@pytest.mark.parametrize("mebibytes", [128, 64, 48])
@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_command_without_memory_says_so(command: str, mebibytes: int, tmp_path: Path) -> None:
    """Python raises another kind of error when modules cannot be imported."""
    ended = limited(tmp_path, resource.RLIMIT_AS, mebibytes << 20, command, "study.toml")
    assert "Traceback" not in ended.stderr
    # Among the libraries, OpenBLAS ends the process with its own message.
    assert "no memory left" in ended.stderr or ended.stderr.startswith("OpenBLAS error: ")


@pytest.mark.parametrize(("limit", "shortage"), [(resource.RLIM_INFINITY, None), (1 << 40, "memory")])
def test_an_error_without_an_exception_is_a_shortage_under_a_limit(
    limit: int, shortage: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit, limit))
    assert shortage == cli._shortage(SystemError("error return without exception set"))


def test_a_plan_needs_no_room_in_files(tmp_path: Path) -> None:
    planned = limited(tmp_path, resource.RLIMIT_FSIZE, 0, "plan", "study.toml")
    assert (0, "") == (planned.returncode, planned.stderr)


def test_a_run_without_room_in_files_says_so(tmp_path: Path) -> None:
    ended = limited(tmp_path, resource.RLIMIT_FSIZE, 0, "run", "study.toml")
    assert 2 == ended.returncode
    assert ended.stderr.startswith("error: ")
    assert "File too large" in ended.stderr
    assert "Traceback" not in ended.stderr
