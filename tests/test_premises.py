"""Premises and guards: what sees to it that nothing of a run is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from bed_lab import PLAINTEXT, listens
from conftest import here
from tollbar.beds import driver, premises, proc
from tollbar.beds.driver import NotStarted
from tollbar.beds.premises import Premises
from tollbar.libraries import Provider
from tollbar.runner import Outcome, engine


def _living() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def test_what_dead_labs_left_is_swept(tmp_path: Path) -> None:
    """A directory whose keeper is gone is removed; one that is kept, or is nobody's, stays."""
    keeper = _living()
    try:
        alive = {"pid": keeper.pid, "start_time": proc.start_time(keeper.pid)}
        contents = {
            "tollbar-alive": json.dumps(alive),
            "tollbar-dead": json.dumps({**alive, "start_time": 1}),
            "tollbar-gone": json.dumps({"pid": 2**22 + 1, "start_time": 1}),
            "tollbar-broken": "{",
            "other": json.dumps({"pid": 2**22 + 1, "start_time": 1}),
        }
        for name, text in contents.items():
            (tmp_path / name / "room").mkdir(parents=True)
            (tmp_path / name / "keeper.json").write_text(text)
        (tmp_path / "tollbar-mine").mkdir()
        (tmp_path / "tollbar-link").symlink_to(tmp_path / "other")
        premises.sweep(tmp_path)
    finally:
        keeper.kill()
        keeper.wait()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert ["other", "tollbar-alive", "tollbar-broken", "tollbar-link", "tollbar-mine"] == left


def test_premises_go_even_without_their_keeper() -> None:
    """Somebody may kill the keeper; the directory goes with the run all the same."""
    with Premises() as at:
        keeper = json.loads((at.directory / "keeper.json").read_text())
        os.kill(keeper["pid"], signal.SIGKILL)
    assert not at.directory.exists()


def test_a_full_disk_is_a_failure(at: Premises, system: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system refuses is a row with its words."""

    def full(self: Premises, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Premises, "lay_out", full)
    with pytest.raises(NotStarted, match="No space left") as caught:
        driver.start(at, here("embedded"), system, PLAINTEXT)
    assert Outcome.FAILED == caught.value.outcome


def test_premises_end_what_still_runs(system: Provider) -> None:
    """A server that nobody stopped is stopped with the run."""
    with Premises() as at:
        server = driver.start(at, here("embedded"), system, PLAINTEXT)
        assert 1 == len(at.running)
    assert not listens(server.address)


def _guard(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(engine()), "guard", "--tree", *arguments], start_new_session=True)


def test_the_guard_ends_those_who_left_their_parents() -> None:
    """Daemons that ignore every polite signal end with the command they came from."""
    guard = _guard("--", "sh", "-c", "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 1234 & wait' &) ; exec sleep 1234")
    deadline = time.monotonic() + 5
    while len(proc.tree(guard.pid)) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    pids = proc.tree(guard.pid)
    assert 4 == len(pids)
    guard.terminate()
    assert 128 + signal.SIGTERM == guard.wait(10)
    assert [] == [pid for pid in pids if proc.start_time(pid)]


def test_the_guard_has_the_status_of_its_command() -> None:
    """And it ends with it, when somebody was left behind too."""
    guard = _guard("--", "sh", "-c", "setsid sleep 1234 & exit 5")
    assert 5 == guard.wait(10)


def test_the_guard_knows_its_parent() -> None:
    """One whose parent is gone already, or is another, starts nothing."""
    assert 137 == _guard("--child-of", "1", "--", "sleep", "1234").wait(10)


def test_the_guard_of_a_stubborn_command_kills_when_asked_twice() -> None:
    """Asked once it lets the command take its time."""
    guard = _guard("--stop", "INT", "--", "sh", "-c", "trap '' INT; while :; do sleep 1234; done")
    while len(proc.tree(guard.pid)) < 3:
        time.sleep(0.01)
    guard.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        guard.wait(0.2)
    guard.terminate()
    assert 128 + signal.SIGKILL == guard.wait(10)
