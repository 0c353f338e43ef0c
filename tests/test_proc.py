"""What /proc tells of processes that do not hold still."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tollbar.beds import proc


def test_a_file_that_is_closed_meanwhile_hides_no_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that opens and closes files as it starts is still found to be the one that listens."""
    readlink = os.readlink

    def closed_first(path: str) -> str:
        if path.endswith("/fd/0"):
            raise FileNotFoundError(path)
        return readlink(path)

    monkeypatch.setattr(os, "readlink", closed_first)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert proc.listens([os.getpid()], *listener.getsockname())


def test_a_process_that_ends_meanwhile_has_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be gone between the opening and the reading of the list, which has an error of its own."""
    read_text = Path.read_text

    def gone(path: Path, **more: Any) -> str:
        if path.name == "children":
            raise ProcessLookupError(path)
        return read_text(path, **more)

    monkeypatch.setattr(Path, "read_text", gone)
    with subprocess.Popen(["sleep", "60"]) as process:
        assert (process.pid,) == proc.tree(process.pid)
        process.kill()


def test_a_session_is_ended_by_who_is_in_it() -> None:
    """Processes whose session leader has ended are killed."""
    leader = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!"], stdout=subprocess.PIPE, start_new_session=True)
    with leader:
        assert leader.stdout is not None
        left = int(leader.stdout.readline())
    assert proc.start_time(left) is not None
    assert proc.end_session(leader.pid, 5.0)
    assert proc.start_time(left) is None


def test_who_got_the_id_of_a_dead_leader_is_left_alone() -> None:
    """Once a session is empty its id may be another's, who is alive to lead it."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        assert proc.end_session(stranger.pid, 5.0)
        assert stranger.poll() is None
        stranger.kill()
