"""Parts of a server on machines of their own: network namespaces joined by a bridge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import lacking
from patience import PATIENCE_S
from roles_lab import SIGN_IN, STUDY, TOLLBAR
from tollbar.catalog import servers

LAB = Path(__file__).with_name("roles_lab.py")


# For further directories of a run: each has the same ports.
MORE_ADDRESSES = ("10.79.0.14", "10.79.0.24", "10.79.0.34")


class Machines:
    """Network of a bridge's namespace, from which the lab asks, and one namespace for each role."""

    def __init__(self) -> None:
        self._tag = f"roles{os.getpid()}"
        self._made: list[str] = []
        self._ip(f"netns add {self._tag}-hub")
        self._made.append("hub")
        for words in ("link set lo up", "link add name hub0 type bridge", "addr add 10.79.0.1/24 dev hub0"):
            self._ip(f"-n {self._tag}-hub {words}")
        self._ip(f"-n {self._tag}-hub link set hub0 up")
        for number, role in enumerate(("web", "database", "directory"), 2):
            self._ip(f"netns add {self._tag}-{role}")
            self._made.append(role)
            self._ip(f"-n {self._tag}-hub link add cable{number} type veth peer name eth0 netns {self._tag}-{role}")
            self._ip(f"-n {self._tag}-hub link set cable{number} master hub0 up")
            for words in ("link set lo up", f"addr add 10.79.0.{number}/24 dev eth0", "link set eth0 up"):
                self._ip(f"-n {self._tag}-{role} {words}")
        for more in MORE_ADDRESSES:
            self._ip(f"-n {self._tag}-directory addr add {more}/24 dev eth0")

    def inside(self, role: str) -> list[str]:
        return ["ip", "netns", "exec", f"{self._tag}-{role}"]

    def roles(self, *roles: str) -> list[str]:
        address = {"web": "10.79.0.2", "database": "10.79.0.3", "directory": "+".join(("10.79.0.4", *MORE_ADDRESSES))}
        return [f"{role}={address[role]} by {' '.join(self.inside(role))}" for role in roles]

    def pids(self, role: str) -> list[int]:
        said = subprocess.run(["ip", "netns", "pids", f"{self._tag}-{role}"], capture_output=True, text=True)
        return [int(pid) for pid in said.stdout.split()]

    def cut(self, role: str) -> None:
        number = {"web": 2, "database": 3, "directory": 4}[role]
        self._ip(f"-n {self._tag}-hub link set cable{number} down")

    def mend(self) -> None:
        for number in (2, 3, 4):
            self._ip(f"-n {self._tag}-hub link set cable{number} up")

    def is_empty(self, role: str) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while self.pids(role) and time.monotonic() < deadline:
            time.sleep(0.05)
        return not self.pids(role)

    def remove(self) -> None:
        for role in reversed(self._made):
            self._ip(f"netns del {self._tag}-{role}")

    def _ip(self, words: str) -> None:
        subprocess.run(["ip", *words.split()], check=True, capture_output=True, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    try:
        made = Machines()
    except (OSError, subprocess.CalledProcessError):
        lacking("no network namespaces can be made: that takes root and iproute2")
    yield made
    made.remove()


# On a busy machine packets are sent twice, and servers' background work is a larger part of a chunk; a wrong count is
# wrong each time.
ATTEMPTS = 5


def _trial(machines: Machines, tmp_path: Path, text: str, choice: str, *roles: str) -> dict[str, Any]:
    (tmp_path / "one.toml").write_text(text)
    words = [sys.executable, str(LAB), str(tmp_path / "one.toml"), choice, *machines.roles(*roles)]
    done = subprocess.run([*machines.inside("hub"), *words], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.share(0)
def test_round_trips_and_bytes_are_those_of_a_capture(machines: Machines, tmp_path: Path) -> None:
    """Kernel counts of the client equal a packet socket's; connecting and TLS are a round trip each."""
    for choice, round_trips in (("plaintext", 2), ("tls-1.3", 3)):
        for _ in range(ATTEMPTS):
            said = _trial(machines, tmp_path, STUDY, choice, "web")
            if said["captured"]["round-trips"] == round_trips * said["operations"]:
                break
        assert said["captured"]["round-trips"] == said["network"]["round-trips"] == round_trips * said["operations"]
        assert said["captured"]["sent"] == said["network"]["sent"]
        if choice == "plaintext":
            # The end of the server's side counts as a byte if the connection is never read again.
            more = said["network"]["received"] - said["captured"]["received"]
            assert 0 <= more <= said["operations"] // 20
        assert 0 < said["round_trip_ns"]["web"] < 1e9


@pytest.mark.share(1)
@pytest.mark.parametrize(
    ("varied", "parts"),
    [
        ('store = ["sql"]\npassword-hash = ["sha-1"]', {"web", "database"}),
        ('store = ["ldap"]\ndirectory = ["mit"]', {"web", "directory"}),
    ],
)
def test_the_parts_are_the_whole(machines: Machines, tmp_path: Path, varied: str, parts: set[str]) -> None:
    """The tolerance is one per cent of the clocks of all processes."""
    for name in ("httpd", "postgresql-accounts", "mit"):
        if not isinstance(servers.find({**servers.all_servers(), **servers.services()}[name]), servers.Installed):
            lacking(f"{name} is not installed")
    text = SIGN_IN.replace("VARIED", varied)
    for _ in range(ATTEMPTS):
        said = _trial(machines, tmp_path, text, "basic", "web", "database", "directory")
        if said["whole_ns"] == pytest.approx(sum(said["components"].values()), rel=0.01):
            break
    assert {name for name, ns in said["components"].items() if ns} == parts
    assert said["whole_ns"] == pytest.approx(sum(said["components"].values()), rel=0.01)


def _run(machines: Machines, tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    command = [*machines.inside("hub"), str(TOLLBAR), "run", *words, "--runs", str(tmp_path / "runs"), "--no-report"]
    command += ["--roles", ",".join(machines.roles("web"))]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, cwd=tmp_path
    )


def _until_served(machines: Machines) -> int:
    """Wait for a server on the other machine, and return the process of the agent."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        words = {pid: _words(pid) for pid in machines.pids("web")}
        if any(b"serve" in said for said in words.values()):
            return next(
                pid for pid, said in words.items() if b"tollbar.lab.servers.agent" in said and b"probe" not in said
            )
        time.sleep(0.01)
    raise AssertionError("no server was started")


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.mark.share(0)
def test_a_lost_machine_ends_the_run_which_goes_on(machines: Machines, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(STUDY)
    lab = _run(machines, tmp_path, "one.toml", "--blocks", "5")
    os.kill(_until_served(machines), signal.SIGKILL)
    said = lab.communicate(timeout=PATIENCE_S)[0]
    assert lab.returncode != 0
    assert "the machine of the role web (10.79.0.2) is lost" in said
    assert "Traceback" not in said
    assert machines.is_empty("web")
    (run,) = (tmp_path / "runs").iterdir()
    elsewhere = subprocess.run([str(TOLLBAR), "run", "--resume", str(run)], capture_output=True, text=True)
    assert (2, True) == (elsewhere.returncode, "the run began with other roles" in elsewhere.stderr)
    again = _run(machines, tmp_path, "--resume", str(run))
    said = again.communicate(timeout=PATIENCE_S)[0]
    assert again.returncode == 0, said
    assert "On machines of their own" in said
    assert machines.is_empty("web")


@pytest.mark.share(1)
@pytest.mark.parametrize("what", ["lab", "network"])
def test_nothing_is_left_there(machines: Machines, tmp_path: Path, what: str) -> None:
    (tmp_path / "one.toml").write_text(STUDY)
    lab = _run(machines, tmp_path, "one.toml", "--blocks", "5")
    _until_served(machines)
    if what == "lab":
        os.kill(lab.pid, signal.SIGKILL)
        lab.communicate(timeout=PATIENCE_S)
    else:
        machines.cut("web")
        said = lab.communicate(timeout=PATIENCE_S)[0]
        machines.mend()
        assert "the machine of the role web (10.79.0.2) is lost: it cannot be reached" in said
    assert machines.is_empty("web")


@pytest.mark.share(0)
def test_a_run_is_made_where_its_study_says(machines: Machines, tmp_path: Path) -> None:
    role, _, at = machines.roles("web")[0].partition("=")
    (tmp_path / "one.toml").write_text(f"{STUDY}[roles]\n{role} = {json.dumps(at)}\n")
    command = [*machines.inside("hub"), str(TOLLBAR), "run", "--no-report"]
    first = [*command, "one.toml", "--runs", "runs", "--blocks", "2"]
    done = subprocess.run(first, capture_output=True, text=True, timeout=PATIENCE_S, cwd=tmp_path)
    assert 0 == done.returncode, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    said = json.loads((run / "run.json").read_text())
    assert {"web": "10.79.0.2"} == said["roles"]
    assert "10.79.0.2" == said["nodes"]["web"]["address"]
    again = [*command, "--resume", str(run), "--blocks", "3"]
    done = subprocess.run(again, capture_output=True, text=True, timeout=PATIENCE_S, cwd=tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "On machines of their own" in done.stdout
