"""Check tolls: forty checks without a change next to a busy program, and ten with five per cent more; `check-tolls`.

Half an hour at most, usually ten minutes, because a decided check ends at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import ENGINE, TOLLBAR, Figure, timed

UNCHANGED, INJECTED = 40, 10
FOUND_GOAL = 9
# An undecided check is no right answer either.
WITHIN_GOAL = 36
WITHIN_S = 60.0
DEARER = 1.05

PROJECT = """
[budget.spun]
family  = "spin"
choice  = "spin-1-again"
against = "spin-1"
setting = { provider = "runner:./spun" }
"""
# Forwards everything to the engine, whose clock alone counts; while measuring, it asks for this multiple of one
# choice's work.
SPUN = """#!{python} -IS
import json, os, subprocess, sys
task = json.loads(sys.stdin.buffer.raw.readline())
task["provider"] = {{"kind": "spin"}}
if task["mode"] == "measure" and task["choice"] == "spin-1-again":
    task["setting"]["iterations"] = round(task["setting"]["iterations"] * {times})
engine = subprocess.Popen([{engine!r}, "op"], stdin=subprocess.PIPE)
engine.stdin.write(json.dumps(task).encode() + b"\\n")
engine.stdin.flush()
while line := sys.stdin.buffer.raw.readline():
    engine.stdin.write(line)
    engine.stdin.flush()
engine.stdin.close()
sys.exit(engine.wait())
"""


def figures(unchanged: int = UNCHANGED, injected: int = INJECTED) -> Iterator[Figure]:
    """Yield checks against a limit accepted in quiet, on a busy machine: unchanged ones, then ones with 5 % more."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tollbar.toml").write_text(PROJECT)
        _spin(folder, 1.0)
        limit = _checked(folder, "--accept")[0]["new_limit"]
        if limit is None:
            yield Figure("check tolls", "(not measured)", "the core was quiet too seldom for a limit", False)
            return
        yield Figure("check tolls: the limit of equals", "(for comparison)", f"×{limit:g}", None)
        with _neighbour():
            found = Counter(_checked(folder)[0]["verdict"] for _ in range(unchanged))
        is_told = found["within"] * UNCHANGED >= WITHIN_GOAL * unchanged > 0
        what = f"check tolls: {unchanged} of no change beside a busy neighbour"
        goal = f"0 over, {WITHIN_GOAL} of {UNCHANGED} within"
        yield Figure(what, goal, _said(found), found["over"] == 0 and is_told)
        _spin(folder, DEARER)
        verdicts = [_checked(folder) for _ in range(injected)]
        found = Counter(budget["verdict"] for budget, _ in verdicts)
        in_time = sum(budget["verdict"] == "over" and wall_s <= WITHIN_S for budget, wall_s in verdicts)
        longest_s = max(wall_s for _, wall_s in verdicts)
        yield Figure(
            f"check tolls: {injected} of {DEARER - 1:.0%} more",
            f"{FOUND_GOAL} of {INJECTED} over, within {WITHIN_S:.0f} s",
            f"{_said(found)}; {longest_s:.0f} s at most",
            in_time * INJECTED >= FOUND_GOAL * injected,
        )


def _spin(folder: Path, times: float) -> None:
    program = folder / "spun"
    program.write_text(SPUN.format(python=sys.executable, engine=ENGINE, times=times))
    program.chmod(0o755)


def _checked(folder: Path, *words: str) -> tuple[dict[str, Any], float]:
    """Return the budget's result, and its time in seconds."""
    done = timed(TOLLBAR, "check", "tolls", "--json", "--for", "50s", *words, cwd=folder, done=(0, 1, 3))
    (budget,) = json.loads(done.out)["budgets"]
    return budget, done.wall_s


def _said(found: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in found.most_common())


@contextmanager
def _neighbour() -> Iterator[None]:
    """Run a process that computes all the time, on any core."""
    process = subprocess.Popen([sys.executable, "-IS", "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
