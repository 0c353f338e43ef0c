"""Simulated machines: a network of their own, and nothing left of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.ground import program

from conftest import machines_are_made
from patience import PATIENCE_S
from tollbar.cluster import namespaces
from tollbar.cluster.namespaces import Network, Space
from tollbar.core import proc
from tollbar.core.errors import TollbarError
from tollbar.lab.servers.sandbox import Sandbox

SERVE = ("python3", "-m", "http.server", "8000")


@pytest.fixture
def pair() -> Iterator[Network]:
    """Yield two machines of a private network."""
    machines_are_made()
    with Sandbox() as sandbox:
        yield namespaces.network(sandbox, ["one", "other"])


def wait_for(found: Callable[[], object]) -> None:
    """Wait until the condition holds, or fail after the limit."""
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def said(space: Space, *command: str) -> str:
    """Return a command's output on a machine."""
    return subprocess.run(
        space.words(*command), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    ).stdout.strip()


def reaches(one: Space, other: Space) -> bool:
    """Return whether a page of the other's server arrives within two seconds."""
    fetch = ("curl", "--silent", "--output", os.devnull, "--max-time", "2", f"http://{other.address}:8000/")
    return subprocess.run(one.words(*fetch), check=False).returncode == 0


def test_machines_reach_one_another_and_nothing_else(pair: Network) -> None:
    one, other = pair.spaces.values()
    assert ["one", "other"] == [said(space, "hostname") for space in (one, other)]
    assert "10.77." not in subprocess.run(["ip", "address"], capture_output=True, text=True, check=True).stdout
    assert "" == said(one, "ip", "route", "show", "default")
    assert str(one.directory) == said(one, "pwd")
    server = other.start(pair.sandbox, *SERVE)
    wait_for(lambda: reaches(one, other))
    pair.cut(other)
    assert not reaches(one, other)
    pair.mend(other)
    wait_for(lambda: reaches(one, other))
    assert server.fault() is None
    pair.end(other)
    wait_for(lambda: server.fault() is not None)


def test_a_machine_that_is_not_made_in_time_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    machines_are_made()
    monkeypatch.setattr(namespaces, "HOLD", "exec sleep 54321")
    monkeypatch.setattr(namespaces, "MADE_LIMIT_S", 0.5)
    before = {*proc.tree(os.getpid())}
    with Sandbox() as sandbox:
        with pytest.raises(TollbarError) as error:
            namespaces.network(sandbox, ["one"])
        assert "no answer within 0.5 s" in error.value.what
        wait_for(lambda: not any("sleep 54321" in program(pid) for pid in {*proc.tree(os.getpid())} - before))


def test_nothing_is_left_of_a_network_whose_lab_is_killed(tmp_path: Path) -> None:
    machines_are_made()
    made = """
import sys, time
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.cluster import namespaces
with Sandbox() as sandbox:
    network = namespaces.network(sandbox, ["one"])
    network.spaces["one"].start(sandbox, "sleep", "12345")
    print("made", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", made], stdout=subprocess.PIPE) as lab:
        assert lab.stdout is not None
        assert b"made\n" == lab.stdout.readline()
        wait_for(lambda: any("sleep 12345" in program(pid) for pid in proc.tree(lab.pid)))
        pids = proc.tree(lab.pid)[1:]
        lab.kill()
    wait_for(lambda: not [pid for pid in pids if proc.start_time(pid) is not None])
