"""Readings of /proc while processes change."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from listening import addresses
from tollbar.core import proc


def test_a_file_that_is_closed_meanwhile_hides_no_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server opens and closes files as it starts, and its listener must be found all the same."""
    readlink = os.readlink

    def closed_first(path: str) -> str:
        if path.endswith("/fd/0"):
            raise FileNotFoundError(path)
        return readlink(path)

    monkeypatch.setattr(os, "readlink", closed_first)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert proc.listens([os.getpid()], *listener.getsockname())


@pytest.mark.parametrize(
    ("bound", "asked", "listens"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("0.0.0.0", "127.0.0.2", True),
        ("::1", "::1", True),
        ("::1", "127.0.0.1", False),
    ],
)
def test_a_listener_is_found_by_what_it_is_bound_to(bound: str, asked: str, listens: bool) -> None:
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    with socket.create_server((bound, 0), family=family) as listener:
        port = listener.getsockname()[1]
        assert listens == proc.listens([os.getpid()], asked, port)
        assert listens == (os.getpid() in proc.holders(proc.listeners(asked, port)))
    assert not proc.listens([os.getpid()], asked, port)


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0", "::1", "::"])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_who_listens_on_which_address_is_found(bound: str, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET6 if ":" in bound else socket.AF_INET, kind) as one:
        before = addresses([os.getpid()])
        one.bind((bound, free_port()))
        if kind is socket.SOCK_STREAM:
            one.listen()
        assert {ip_address(bound)} == addresses([os.getpid()]) - before


def free_port() -> int:
    """Return a port below those of clients."""
    for port in range(20_000, 32_000):
        with suppress(OSError), socket.socket() as one, socket.socket(type=socket.SOCK_DGRAM) as other:
            one.bind(("", port))
            other.bind(("", port))
            return port
    raise OSError("no free port")


def test_an_address_of_its_own_comes_before_every_one() -> None:
    """The kernel gives the connection to the program with the exact address."""
    with socket.socket() as everywhere, socket.socket() as own:
        for one in (everywhere, own):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        everywhere.bind(("0.0.0.0", 0))
        own.bind(("127.0.0.1", everywhere.getsockname()[1]))
        for one in (everywhere, own):
            one.listen()
        inode = os.readlink(f"/proc/self/fd/{own.fileno()}")
        assert {inode} == proc.listeners(*own.getsockname())


def test_a_process_that_ends_meanwhile_has_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may end between the opening and the reading of the list, which has an error of its own."""
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
    leader = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!"], stdout=subprocess.PIPE, start_new_session=True)
    with leader:
        assert leader.stdout is not None
        left = int(leader.stdout.readline())
    assert proc.start_time(left) is not None
    assert proc.end_session(leader.pid, 60.0)
    assert proc.start_time(left) is None


def test_who_got_the_id_of_a_dead_leader_is_left_alone() -> None:
    """Once a session is empty its id may belong to another process, the leader of its own session."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        assert proc.end_session(stranger.pid, 60.0)
        assert stranger.poll() is None
        stranger.kill()
