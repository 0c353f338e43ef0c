"""A figure: its subject, its goal, its value, and whether it meets the goal."""

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
    """Line of the table."""

    what: str
    goal: str
    here: str
    met: bool | None
    """True if the goal is met; None for a figure that has no goal, but never for an unmeasured one."""


def unmeasured(what: str, why: object, goal: str = "(not measured)") -> Figure:
    """Return a figure that could not be measured, and so misses its goal."""
    return Figure(what, goal, str(why) or type(why).__name__, False)


@dataclass(frozen=True, slots=True)
class Finished:
    """Ended command: its time, its own peak memory, and its output."""

    wall_s: float
    """Seconds; infinite if the exit status is none of `done`."""
    memory_bytes: int
    status: int
    out: str


def timed(*arguments: str, cwd: Path | None = None, done: Collection[int] = (0,)) -> Finished:
    """Run a command and watch its memory: its own, not that of the processes it starts.

    `done` are the statuses of a command that did its work, because a crash must not count as quick.
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
    """Return whether a child ends in time, without waiting for it, which would lose its usage."""
    handle = os.pidfd_open(process_id)
    try:
        return bool(select.select([handle], [], [], limit_s)[0])
    finally:
        os.close(handle)


def peak_memory_bytes(process_id: int) -> int:
    """Return the peak memory of a process until now."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0")
    return int(line.split()[1]) * 1024
