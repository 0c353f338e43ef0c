"""Sandboxes and guards, which ensure that nothing of a run is left."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import here
from patience import PATIENCE_S
from server_lab import PLAINTEXT, SETTINGS, anything_goes, ask, listens, start
from tollbar.catalog.libraries import Provider
from tollbar.core import proc
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome
from tollbar.core.runner import engine
from tollbar.lab.servers import leftovers, sandbox
from tollbar.lab.servers.driver import NotStarted
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls import certificates_of


def _living() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def test_what_dead_labs_left_is_swept(tmp_path: Path) -> None:
    keeper = _living()
    try:
        alive = {"pid": keeper.pid, "start_time": proc.start_time(keeper.pid), "boot_id": proc.boot_id()}
        contents = {
            "tollbar-alive": json.dumps(alive),
            "tollbar-another-boot": json.dumps({**alive, "boot_id": "00000000-0000-4000-8000-000000000000"}),
            "tollbar-dead": json.dumps({**alive, "start_time": 1}),
            "tollbar-gone": json.dumps({"pid": 2**22 + 1, "start_time": 1}),
            "tollbar-broken": "{",
            "tollbar-elsewhere": json.dumps({"pid": 2**22 + 1, "start_time": 1}),
            "other": json.dumps({"pid": 2**22 + 1, "start_time": 1}),
        }
        for name, text in contents.items():
            (tmp_path / name / "work_dir").mkdir(parents=True)
            (tmp_path / name / "keeper.json").write_text(text)
        (tmp_path / "tollbar-mine").mkdir()
        (tmp_path / "tollbar-link").symlink_to(tmp_path / "other")
        # In another container the keeper has another id, which may belong to another process.
        with open(tmp_path / "tollbar-elsewhere" / "keeper.json") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            leftovers.sweep([tmp_path])
    finally:
        keeper.kill()
        keeper.wait()
    left = sorted(path.name for path in tmp_path.iterdir())
    kept = ["other", "tollbar-alive", "tollbar-broken", "tollbar-elsewhere", "tollbar-link", "tollbar-mine"]
    assert kept == left


@pytest.mark.parametrize(
    ("name", "age_s", "beside", "is_left"),
    [
        ("tollbar-0123abcd", 60, (), False),
        ("tollbar-0123abcd", 60, (".keeper.json",), False),
        ("tollbar-0123abcd", 1, (".keeper.json",), True),
        ("tollbar-0123abcd", 60, ("another",), True),
        ("tollbar-another", 60, (), True),
    ],
)
def test_what_a_keeper_left_that_was_never_ready_is_swept(
    tmp_path: Path, name: str, age_s: float, beside: tuple[str, ...], is_left: bool
) -> None:
    """A keeper that was killed before it registered leaves a directory; it stays while a lab may wait for it."""
    directory = tmp_path / name
    directory.mkdir()
    for file in beside:
        (directory / file).write_text("")
    then = time.time() - age_s
    os.utime(directory, (then, then))
    leftovers.sweep([tmp_path])
    assert is_left == directory.exists()


def test_a_lab_whose_keeper_is_killed_before_it_is_ready_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def killed(words: list[str], **options: Any) -> subprocess.Popen[bytes]:
        begins = 'mkdir "$0" && : > "$0/.keeper.json" && kill -KILL $$'
        return subprocess.Popen(["sh", "-c", begins, words[1]], **options)

    monkeypatch.setattr(sandbox, "start_engine", killed)
    monkeypatch.setattr(sandbox, "folder_for_all", lambda: str(tmp_path))
    with pytest.raises(TollbarError, match="the keeper did not report that it is ready"), Sandbox():
        raise AssertionError("entered")
    assert [] == [*tmp_path.iterdir()]


def test_sandbox_are_locked_while_they_are_kept() -> None:
    """A lab in another container has other process ids, so the lock decides."""
    with Sandbox() as at, open(at.directory / "keeper.json") as said:
        with pytest.raises(BlockingIOError):
            fcntl.flock(said, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert proc.boot_id() == json.load(said)["boot_id"]


def test_servers_start_and_stop_at_the_same_time(at: Sandbox, system: Provider) -> None:
    settings = {**SETTINGS, "certificate": "rsa-2048", "key-exchange": "ecdhe-p256"}
    with ThreadPoolExecutor(6) as pool:
        started = [pool.submit(start, at, here("embedded"), system, settings) for _ in range(6)]
        servers = [one.result() for one in started]
        assert 6 == len({server.address for server in servers})
        assert 6 == len(at.running)
        assert {"200"} == {ask(server.address, anything_goes()).status for server in servers}
        assert 1 == len(list(certificates_of(at).directory.glob("server-*.key")))
        assert [None] * 6 == list(pool.map(lambda server: server.stop(), servers))
    assert [] == at.running
    assert [] == [server.address for server in servers if listens(server.address)]


def test_a_server_outlives_the_thread_that_started_it(at: Sandbox, system: Provider) -> None:
    """The kernel signals the guard that its parent has ended when only a thread has; the guard checks."""
    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(start, at, here("embedded"), system, PLAINTEXT).result()
    with server:
        # The signal came with the end of the thread.
        assert server.fault(0.2) is None
        assert "200" == ask(server.address).status


def test_a_server_has_ended_though_its_guard_has_not_seen_it(at: Sandbox, system: Provider) -> None:
    """The kernel closes connections before it tells the guard, so clients notice first."""
    with start(at, here("embedded"), system, PLAINTEXT) as server:
        (guard,) = server.components.values()
        program = proc.tree(guard)[1]
        os.kill(guard, signal.SIGSTOP)
        os.kill(program, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_S
        while proc.start_time(program) and time.monotonic() < deadline:
            time.sleep(0.01)
        goes_on = threading.Timer(0.5, os.kill, (guard, signal.SIGCONT))
        goes_on.start()
        assert "was ended by SIGKILL" in (server.fault() or "")
        goes_on.join()


def test_sandbox_go_even_without_their_keeper() -> None:
    with Sandbox() as at:
        keeper = json.loads((at.directory / "keeper.json").read_text())
        os.kill(keeper["pid"], signal.SIGKILL)
    assert not at.directory.exists()


def test_a_full_disk_is_a_failure(at: Sandbox, system: Provider, monkeypatch: pytest.MonkeyPatch) -> None:

    def full(self: Sandbox, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Sandbox, "lay_out", full)
    with pytest.raises(NotStarted, match="No space left") as caught:
        start(at, here("embedded"), system, PLAINTEXT)
    assert Outcome.FAILED == caught.value.outcome


def test_sandbox_end_what_still_runs(system: Provider) -> None:
    with Sandbox() as at:
        server = start(at, here("embedded"), system, PLAINTEXT)
        assert 1 == len(at.running)
    assert not listens(server.address)


def _guard(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(engine()), "guard", "--tree", *arguments], start_new_session=True)


def test_the_guard_ends_those_who_left_their_parents() -> None:
    guard = _guard("--", "sh", "-c", "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 1234 & wait' &) ; exec sleep 1234")
    deadline = time.monotonic() + PATIENCE_S
    # Until the shell in between has ended there is one more process.
    while len(pids := proc.tree(guard.pid)) != 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert 4 == len(pids)
    guard.terminate()
    assert 128 + signal.SIGTERM == guard.wait(PATIENCE_S)
    assert [] == [pid for pid in pids if proc.start_time(pid)]


# Makes a segment of shared memory, and prints its id.
SEGMENT = """
import ctypes, time
libc = ctypes.CDLL(None)
print(libc.shmget(0, 4096, 0o600), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("words", [[], ["sh", "-c", '"$@"; true', "sh"]], ids=["itself", "its child"])
def test_the_guard_removes_the_shared_memory_of_its_tree(words: list[str]) -> None:
    """The kernel keeps it after its maker has ended; another program's stays."""
    libc = ctypes.CDLL(None)
    own = libc.shmget(0, 4096, 0o600)
    guard = subprocess.Popen(
        [str(engine()), "guard", "--tree", "--child-of", str(os.getpid()), "--", *words, sys.executable, "-c", SEGMENT],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert guard.stdout is not None
    with guard.stdout:
        made = int(guard.stdout.readline())
    assert {own, made} <= segments()
    os.kill(proc.tree(guard.pid)[1], signal.SIGKILL)
    guard.wait(PATIENCE_S)
    assert made not in segments()
    assert own in segments()
    libc.shmctl(own, 0, None)


# A lab with guards of such programs and a log in its directory, which prints the segments' ids.
LAB_OF_SEGMENTS = """
import subprocess, sys
from tollbar.lab.servers.guarded import Guarded
from tollbar.lab.servers.sandbox import Sandbox
words = [sys.executable, "-c", sys.argv[1]]
with Sandbox() as sandbox:
    for number in range(8):
        made = sandbox.work_dir(f"made-{number}")
        guarded = Guarded(words, sandbox=sandbox, work_dir=made, log=made / "log", stdout=subprocess.PIPE)
        print(guarded.process.stdout.readline().decode().strip(), flush=True)
    print(sandbox.directory, flush=True)
    sys.stdin.read()
"""


def test_the_keeper_lets_guards_remove_shared_memory() -> None:
    """The guards and the keeper learn of the lab's death at the same time."""
    words = [sys.executable, "-c", LAB_OF_SEGMENTS, SEGMENT]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as lab:
        assert lab.stdout is not None
        *lines, directory = [lab.stdout.readline().decode().strip() for _ in range(9)]
        made = {int(line) for line in lines}
        assert made <= segments()
        lab.kill()
    deadline = time.monotonic() + PATIENCE_S
    while Path(directory).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(directory).exists()
    assert set() == made & segments()


def segments() -> set[int]:
    """Return the ids of all shared memory."""
    return {int(line.split()[1]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}


def test_the_guard_has_the_status_of_its_command() -> None:
    guard = _guard("--", "sh", "-c", "setsid sleep 1234 & exit 5")
    assert 5 == guard.wait(PATIENCE_S)


def test_the_guard_knows_its_parent() -> None:
    assert 137 == _guard("--child-of", "1", "--", "sleep", "1234").wait(PATIENCE_S)


def test_the_guard_of_a_stubborn_command_kills_when_asked_twice() -> None:
    guard = _guard("--stop", "INT", "--", "sh", "-c", "trap '' INT; while :; do sleep 1234; done")
    while len(proc.tree(guard.pid)) < 3:
        time.sleep(0.01)
    guard.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        guard.wait(0.2)
    guard.terminate()
    assert 128 + signal.SIGKILL == guard.wait(PATIENCE_S)
