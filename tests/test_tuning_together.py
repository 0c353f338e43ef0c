"""Simultaneous hashes: several processes of a runner work at once, and each hash is timed meanwhile."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tollbar.core.runner import Stopped
from tollbar.decide import tune
from tollbar.decide.tune import together

RUNNER = """
import json, os, sys, time
folder, first = {folder!r}, {first!r}
task = json.loads(sys.stdin.readline())
print(json.dumps({{"ready": {{"provider": "toy", "name": "toy", "operation_ns": 1e6}}}}), flush=True)
for line in sys.stdin:
    own = os.path.join(folder, str(os.getpid()))
    open(own, "w").close()
    begun = time.monotonic_ns()
    time.sleep(0.02)
    at_once = len(os.listdir(folder))
    if first:
        # It ends when the others have begun theirs, however late a busy machine lets them; who never begins shows.
        open(os.path.join(first, str(os.getpid())), "w").close()
        while (at_once := len(os.listdir(first))) < {at_once} and time.monotonic_ns() - begun < 60e9:
            time.sleep(0.005)
        first = None
    os.remove(own)
    if {fails} and at_once > 1:
        print(json.dumps({{"outcome": "failed", "reason": "it broke"}}), flush=True)
        break
    with open({log!r}, "a") as log:
        log.write(f"{{at_once}}\\n")
    wall = time.monotonic_ns() - begun
    print(json.dumps({{"operations": 1, "cpu_ns": wall // 2, "wall_ns": wall}}), flush=True)
else:
    print(json.dumps({{"outcome": "ok"}}), flush=True)
"""


AT_ONCE = 3


def toy(tmp_path: Path, *, fails: bool = False) -> tuple[tuple[str, ...], Path]:
    """Return a runner whose hash sleeps and records how many were running, and its log."""
    folder, first, log = tmp_path / "under-way", tmp_path / "first", tmp_path / "log"
    folder.mkdir()
    first.mkdir()
    script = tmp_path / "runner.py"
    script.write_text(RUNNER.format(folder=str(folder), first=str(first), log=str(log), fails=fails, at_once=AT_ONCE))
    return (sys.executable, str(script)), log


def test_so_many_are_under_way_at_once(tmp_path: Path) -> None:
    command, log = toy(tmp_path)
    found = together.elapsed(command, {"mode": "measure"}, AT_ONCE, 0.3)
    assert AT_ONCE == found.at_once
    assert found.hashes >= AT_ONCE * (together.FEWEST - 1)
    assert found.median_s >= 0.02
    assert found.p95_s >= found.median_s
    assert found.cores == pytest.approx(1.5, rel=0.2)
    assert AT_ONCE == max(map(int, log.read_text().split()))


def test_a_runner_that_fails_ends_all_of_them(tmp_path: Path) -> None:
    command, _ = toy(tmp_path, fails=True)
    with pytest.raises(Stopped, match="it broke"):
        together.elapsed(command, {"mode": "measure"}, AT_ONCE, 30.0)


def test_the_engine_hashes_so_many_at_once() -> None:
    asked = tune.asked(["pbkdf2-sha-256"], [], within_s=0.05, at_once=2, providers=["rustcrypto"])
    (provider,) = asked.providers
    point = tune.measure(replace(asked, within_s=0.01), asked.choices[0], provider, {"iterations": 2000})
    assert 2 == point.elapsed.at_once
    assert point.elapsed.hashes > 2 * together.FEWEST
    assert point.elapsed.cpu_s > 0
