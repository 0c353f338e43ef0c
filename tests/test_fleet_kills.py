"""Kills of fleets: a kill that strikes nothing or comes too late is not counted as survived."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench import fleet_kills
from bench.fleet_kills import NODES, TRIALS, Kill


class Driver:
    """Command that measures until it is waited for, and ends with this status."""

    def __init__(self, status: int) -> None:
        self.status, self.has_ended, self.pid = status, False, 0

    def poll(self) -> int | None:
        return self.status if self.has_ended else None

    def wait(self, limit_s: float) -> int:
        if limit_s < fleet_kills.LIMIT_S:
            raise subprocess.TimeoutExpired("driver", limit_s)
        self.has_ended = True
        return self.status


def struck(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    *,
    status: int,
    strikes: list[int],
    trials: int = TRIALS,
    late: bool = False,
) -> Kill | None:
    """Return the kill of a fleet: the driver's status, the strikes, and the trials that each node brings home.

    `late`: the node that was measuring is done when it is struck.
    """
    (folder / "runs" / "some-fleet").mkdir(parents=True)
    commands = iter([Driver(status), Driver(0)])
    ground: Any = SimpleNamespace(
        folder=folder, start=lambda *_: next(commands), under_way=lambda _: [], left=lambda: fleet_kills.NOTHING,
        output=lambda: "",
    )  # fmt: skip
    found = {("runs", f"node-{number}"): {*range(trials)} for number in range(NODES)}
    was_struck: list[bool] = []

    def strike(*_: object) -> list[int]:
        was_struck.append(True)
        return strikes

    monkeypatch.setattr(fleet_kills, "_measuring", lambda _: None if late and was_struck else "node-1")
    monkeypatch.setattr(fleet_kills, "_committed", lambda _: found)
    monkeypatch.setitem(fleet_kills.WAYS, "node", strike)
    return fleet_kills._struck(ground, "node", random.Random(1))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that can be killed."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_kill_that_struck_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kill = struck(monkeypatch, tmp_path, status=1, strikes=[7])
    assert kill is not None
    assert ([1, 0], []) == (kill.statuses, kill.unfinished)


@pytest.mark.parametrize("status", [0, 1])
def test_a_kill_that_struck_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int) -> None:
    kill = struck(monkeypatch, tmp_path, status=status, strikes=[])
    assert kill is not None
    assert "nothing was struck" in kill.unfinished


def test_a_kill_that_came_too_late_is_not_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert struck(monkeypatch, tmp_path, status=0, strikes=[7], late=True) is None


def test_a_kill_that_a_fleet_survives_whole_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kill = struck(monkeypatch, tmp_path, status=0, strikes=[7])
    assert kill is not None
    assert ([0], []) == (kill.statuses, kill.unfinished)


def test_what_is_called_done_and_is_not_whole_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kill = struck(monkeypatch, tmp_path, status=0, strikes=[7], trials=TRIALS - 1)
    assert kill is not None
    assert "what was not whole was called done" in kill.unfinished


@pytest.mark.parametrize("strikes_every", [0, 2])
def test_kills_that_strike_nothing_end(monkeypatch: pytest.MonkeyPatch, strikes_every: int) -> None:
    fleets: list[Kill | None] = []

    def one(*_: object) -> Kill | None:
        is_struck = strikes_every and len(fleets) % strikes_every == 0
        fleets.append(Kill("node", statuses=[1, 0]) if is_struck else None)
        return fleets[-1]

    monkeypatch.setattr(fleet_kills, "a_ground", lambda **_: nullcontext())
    monkeypatch.setattr(fleet_kills, "_struck", one)
    found = [*fleet_kills.figures(kills=4)]
    assert {bool(strikes_every)} == {figure.met for figure in found}
    assert len(fleets) == (7 if strikes_every else fleet_kills.MOST_FLEETS * 4)


def test_each_way_says_what_it_struck(monkeypatch: pytest.MonkeyPatch, sleeper: subprocess.Popen[bytes]) -> None:
    monkeypatch.setattr(fleet_kills, "_named", lambda *_: [])
    for way in ("node", "raylet", "network"):
        assert [] == fleet_kills.WAYS[way](sleeper, "node-1")
    assert [sleeper.pid] == fleet_kills.WAYS["driver"](sleeper, "node-1")
    sleeper.wait()
    assert [] == fleet_kills.WAYS["driver"](sleeper, "node-1")
    assert [] == fleet_kills._kill([sleeper.pid])
