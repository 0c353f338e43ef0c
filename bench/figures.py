"""A figure: what was measured, what it should be, and whether it is."""

from __future__ import annotations

import math
import os
import select
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(sysconfig.get_path("scripts"))
TOLLBAR = str(SCRIPTS / "tollbar")
ENGINE = str(SCRIPTS / "tollbar-engine")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    goal: str
    here: str
    met: bool | None
    """None for a figure that has no goal and stands there for comparison: never for one that could not be measured."""


def unmeasured(what: str, why: object, goal: str = "(not measured)") -> Figure:
    """A figure that could not be had: it misses its goal."""
    return Figure(what, goal, str(why) or type(why).__name__, False)


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ended: how long it took, the most memory it held itself, and what it said."""

    wall_s: float
    """Infinite where it ended with another status than those that say that it did its work."""
    memory_bytes: int
    status: int
    out: str


def timed(*arguments: str, cwd: Path | None = None, done: Collection[int] = (0,)) -> Finished:
    """Runs a command and watches its memory: its own, not that of the processes it starts.

    `done` are the statuses of a command that did its work: one that crashed is not quick.
    """
    # A file, not a pipe: nothing reads while the clock runs, and a full pipe would stop the command.
    with tempfile.TemporaryFile("w+") as out:
        start = time.perf_counter()
        process = subprocess.Popen(arguments, cwd=cwd, stdout=out, stderr=subprocess.DEVNULL)
        memory_bytes = 0
        while process.poll() is None:
            memory_bytes = max(memory_bytes, peak_memory_bytes(process.pid))
            time.sleep(0.01)
        wall_s = time.perf_counter() - start
        out.seek(0)
        took_s = wall_s if process.returncode in done else math.inf
        return Finished(took_s, memory_bytes, process.returncode, out.read())


def ends_within(process_id: int, limit_s: float) -> bool:
    """Whether a child ends in time; it is not waited for, because that would lose what it used."""
    handle = os.pidfd_open(process_id)
    try:
        return bool(select.select([handle], [], [], limit_s)[0])
    finally:
        os.close(handle)


def peak_memory_bytes(process_id: int) -> int:
    """The most memory a process has held so far."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0")
    return int(line.split()[1]) * 1024
