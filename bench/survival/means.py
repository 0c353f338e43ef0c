"""Means by which a run is struck."""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.ground import RUN_LIMIT_S, Ground, program
from bench.survival.kinds import KINDS, SERVED, WITH_DATABASES, WITH_SERVERS_OF_OTHERS
from tollbar.core import proc

# Positions of the shim's settings; at the same positions after them it counts how often each was used.
CLOCK, SLOW = 0, 1
TOLD = 2
# Message of a Rust library before it aborts.
NO_MEMORY = "memory allocation of "


@dataclass
class Kill:
    """Struck run."""

    ground: Ground
    chance: random.Random
    run: subprocess.Popen[bytes]
    suspended_s: float
    note: dict[str, Any] = field(default_factory=dict)
    """Record of the strike, for the log."""
    holder: int = 0
    """Process that holds the run's own mounts, if it has some."""
    moved: Callable[[Path], Path] | None = None
    """Function that moves the ended run's directory to the place where it is resumed."""
    terminal: int | None = None
    """Other end of its controlling terminal, if it has one of its own."""

    def tell(self, what: int, value: int) -> None:
        """Change a setting of the shim."""
        with open(self.ground.folder / "told", "r+b") as told:
            told.seek(8 * what)
            told.write(value.to_bytes(8, sys.byteorder, signed=True))

    def asked(self) -> int:
        """Return how often the lab used a set clock or a slow disk."""
        told = (self.ground.folder / "told").read_bytes()
        return sum(int.from_bytes(told[8 * (TOLD + one) :][:8], sys.byteorder) for one in (CLOCK, SLOW))

    def close_terminal(self) -> None:
        """Hang up, unless that was done."""
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None


def _signals(*signals: signal.Signals) -> Callable[[Kill], None]:
    def strike(kill: Kill) -> None:
        for number, one in enumerate(signals):
            if number:
                time.sleep(kill.chance.uniform(0.0, 0.3))
            kill.run.send_signal(one)

    return strike


def _part(words: str) -> Callable[[Kill], None]:
    """Return a strike that kills a process with this program and these words, once there is one."""

    def strike(kill: Kill) -> None:
        while kill.run.poll() is None:
            pids = [pid for pid in proc.tree(kill.run.pid)[1:] if re.search(words, program(pid).partition(" ")[2])]
            if pids:
                pid = kill.chance.choice(pids)
                words_of = program(pid).partition(" ")[2][:80]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kill.note["part"] = words_of
                    return
            time.sleep(0.005)
        kill.note["part"] = None

    return strike


def _several(words: str, *, with_lab: bool = True) -> Callable[[Kill], None]:
    """Return a strike that kills the lab and all processes with this program and these words, once there is a guard.

    All are stopped first, so that none notices the end of another.
    """

    def strike(kill: Kill) -> None:
        kill.note["part"] = None
        while kill.run.poll() is None:
            programs = {pid: program(pid).partition(" ")[2] for pid in proc.tree(kill.run.pid)[1:]}
            pids = [pid for pid, name in programs.items() if re.search(words, name)]
            if any(re.search(GUARD, programs[pid]) for pid in pids):
                pids += [kill.run.pid] if with_lab else []
                kill.note["part"] = f"{len(pids)} processes"
                for how in (signal.SIGSTOP, signal.SIGKILL):
                    for pid in pids:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, how)
                return
            time.sleep(0.005)

    return strike


def _quit(kill: Kill) -> None:
    """Send SIGQUIT, without a core file in the working directory."""
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(kill.run.pid, resource.RLIMIT_CORE, (0, 0))
    kill.run.send_signal(signal.SIGQUIT)


def _hang_up(kill: Kill) -> None:
    kill.close_terminal()


def _suspend(kill: Kill) -> None:
    """Stop the whole tree, parents first, and resume it in the opposite order."""
    pids = proc.tree(kill.run.pid)
    for how, those in ((signal.SIGSTOP, pids), (signal.SIGCONT, pids[::-1])):
        for pid in those:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        if how is signal.SIGSTOP:
            time.sleep(kill.suspended_s)


def _set_clock(kill: Kill) -> None:
    """Set the clock back or forth by up to a day, twice within moments."""
    for _ in range(2):
        seconds = kill.chance.randrange(-86400, 86400)
        kill.tell(CLOCK, seconds)
        time.sleep(kill.chance.uniform(0.0, 1.0))


def _slow_disk(kill: Kill) -> None:
    kill.tell(SLOW, kill.chance.randrange(20_000, 200_000))


def _lose_power(kill: Kill) -> None:
    """Copy the files of one moment, with a torn write at the end of the log; the run is resumed elsewhere."""
    kill.run.send_signal(signal.SIGSTOP)
    # Stopped only after the kernel has finished the last system call.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, kill.run.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    copied = kill.ground.folder / "elsewhere"
    shutil.copytree(kill.ground.folder / "runs", copied) if (kill.ground.folder / "runs").exists() else copied.mkdir()
    torn = kill.chance.randbytes(kill.chance.randrange(1, 9000))
    for run in copied.iterdir():
        (run / "results.sqlite-shm").unlink(missing_ok=True)
        if (log := run / "results.sqlite-wal").exists():
            with open(log, "ab") as file:
                file.write(torn)
    kill.run.kill()
    kill.moved = lambda run: copied / run.name


def _run_out_of(kind: int, now: Callable[[int], int], spare: int) -> Callable[[Kill], None]:
    def strike(kill: Kill) -> None:
        # Before there is a run, Python itself is still loading, and reports shortages in its own way.
        while kill.run.poll() is None and not kill.ground.runs:
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            limit = now(kill.run.pid) + kill.chance.randrange(spare)
            resource.prlimit(kill.run.pid, kind, (limit, limit))

    return strike


def entered(holder: int, folder: Path) -> list[str]:
    """Return words before a command that runs in this folder, inside that process's mounts."""
    return ["nsenter", f"--mount=/proc/{holder}/ns/mnt", "env", f"--chdir={folder}"]


def _address_space_bytes(pid: int) -> int:
    return resource.getpagesize() * int(Path(f"/proc/{pid}/statm").read_text().split()[0])


def _in_mounts(kill: Kill, *words: str) -> int:
    entered = ["nsenter", f"--mount=/proc/{kill.holder}/ns/mnt"]
    return subprocess.run([*entered, *words], stderr=subprocess.DEVNULL, check=False).returncode


def _fill_disk(kill: Kill) -> None:
    """Leave no free page where the runs are; the run is then copied to where there is room."""
    runs, spare = f"/proc/{kill.holder}/root{kill.ground.folder}/runs", 4096 * kill.chance.randrange(3)
    # Writes between the two calls would leave the file system too small for its content.
    kill.run.send_signal(signal.SIGSTOP)
    try:
        about = os.statvfs(runs)
        size = (about.f_blocks - about.f_bfree) * about.f_bsize + spare
        is_made = _in_mounts(kill, "mount", "-o", f"remount,size={size}", f"{kill.ground.folder}/runs") == 0
    finally:
        kill.run.send_signal(signal.SIGCONT)
    kill.note["full"] = is_made


PROTECTED_LIMIT_S = 30.0
"""Limit for the end of a process on a busy machine."""


def _write_protect(kill: Kill) -> None:
    """Kill the run, resume it on a read-only disk, which is refused in words, then copy it elsewhere."""
    kill.run.kill()
    kill.run.wait()
    folder = kill.ground.folder
    deadline = time.monotonic() + PROTECTED_LIMIT_S
    # A process that the lab has just forked has its files until it becomes another program, or ends.
    while _in_mounts(kill, "mount", "-o", "remount,ro", f"{folder}/runs") != 0:
        if time.monotonic() > deadline:
            raise RuntimeError("what the runs are on cannot be made read-only here")
        time.sleep(0.05)
    made = sorted(Path(f"/proc/{kill.holder}/root{folder}/runs").glob("*/run.json"))
    kill.note["refused"] = None
    if made:
        resumed = kill.ground.start("--resume", f"runs/{made[0].parent.name}", before=entered(kill.holder, folder))
        kill.note["refused"] = resumed.wait(RUN_LIMIT_S)


# A run near its end may be asked too late; Python then has a fraction of a second's work left.
ENDING_S = 2.0


class Means(NamedTuple):
    """Way in which a run is struck."""

    strike: Callable[[Kill], None]
    statuses: tuple[int, ...]
    """Possible exit statuses; 0 if the run ended first, or was not meant to end."""
    kinds: frozenset[str] = frozenset(KINDS)
    needs: str = ""
    """Kind of place: `terminal`, `mounts` or `shim`."""
    is_unnoticed: bool = False
    """True if a struck run must end as any other."""
    is_to_end: bool = False
    """True if the run is asked to end, and may not go on."""
    is_swept: bool = False
    """True if no process is left that could remove anything, so that the next measuring command must."""

    def was_lost(self, late: bool, status: int, lived_s: float) -> bool:
        """Return whether a run that was asked to end went on to its own end for this long."""
        return self.is_to_end and not late and status == 0 and lived_s > ENDING_S

    def has_struck(self, kill: Kill, status: int) -> bool:
        """Return whether the strike affected the run.

        The run or a part ended by it, or its effect continues next to the run. A run that ended well before the signal
        came, or never needed more of the limited resource, was not struck.
        """
        if "part" in kill.note:
            return kill.note["part"] is not None
        if "refused" in kill.note:
            return kill.note["refused"] is not None
        if kill.note.get("full") is False:
            return False
        if "asked" in kill.note:
            return bool(kill.note["asked"])
        return status != 0 or self.is_unnoticed


GUARD = r"^\S*tollbar-engine guard "
# A killed part is a failed trial, or an unproved cell; a shortage is an error in words.
HARMED = (0, 1, 2, 3)
MEANS: dict[str, Means] = {
    "SIGKILL of the lab": Means(_signals(signal.SIGKILL), (0, -signal.SIGKILL)),
    "SIGKILL of the engine": Means(_part(r"^\S*tollbar-engine (op|load|store|serve)\b"), HARMED),
    "SIGKILL of a guard": Means(_part(GUARD), HARMED),
    "SIGKILL of all guards": Means(_several(GUARD, with_lab=False), HARMED),
    "SIGKILL of lab and guards": Means(_several(GUARD), (0, -signal.SIGKILL)),
    "SIGKILL of all at once": Means(_several(r"^\S*tollbar"), (0, -signal.SIGKILL), is_swept=True),
    "SIGSTOP, then SIGKILL": Means(_signals(signal.SIGSTOP, signal.SIGKILL), (0, -signal.SIGKILL)),
    "SIGKILL of the keeper": Means(_part(r"^\S*tollbar-engine keep "), HARMED, SERVED | {"sqlite"}),
    "SIGKILL of a server": Means(
        _part(r"^(?!\S*tollbar-engine)\S*(nginx|apache2|httpd|samba|smbd|winbindd|slapd|krb5kdc|gssproxy)"),
        HARMED,
        WITH_SERVERS_OF_OTHERS,
    ),
    "SIGKILL of a database": Means(_part(r"^\S*(postgres|mariadbd)"), HARMED, WITH_DATABASES),
    "SIGTERM": Means(_signals(signal.SIGTERM), (0, -signal.SIGTERM), is_to_end=True),
    "SIGINT": Means(_signals(signal.SIGINT), (0, 130, -signal.SIGINT), is_to_end=True),
    "SIGINT twice": Means(_signals(signal.SIGINT, signal.SIGINT), (0, 130, -signal.SIGINT), is_to_end=True),
    "SIGTERM twice": Means(_signals(signal.SIGTERM, signal.SIGTERM), (0, -signal.SIGTERM), is_to_end=True),
    # With its default action, however the bench itself was started.
    "SIGHUP": Means(_signals(signal.SIGHUP), (0, -signal.SIGHUP), needs="terminal"),
    "SIGQUIT": Means(_quit, (0, -signal.SIGQUIT)),
    "closed terminal": Means(_hang_up, (0, -signal.SIGHUP), needs="terminal"),
    "power loss": Means(_lose_power, (0, -signal.SIGKILL)),
    "clock set": Means(_set_clock, (0,), needs="shim", is_unnoticed=True),
    "slow disk": Means(_slow_disk, (0,), needs="shim", is_unnoticed=True),
    "suspended": Means(_suspend, HARMED, is_unnoticed=True),
    "disk full": Means(_fill_disk, HARMED, needs="mounts"),
    "disk read-only": Means(_write_protect, (0, -signal.SIGKILL), needs="mounts"),
    # The lab's Rust libraries end the process when they get no memory, with a message.
    "memory limit": Means(_run_out_of(resource.RLIMIT_AS, _address_space_bytes, 4 << 20), (*HARMED, -signal.SIGABRT)),
    "descriptors": Means(
        _run_out_of(resource.RLIMIT_NOFILE, lambda pid: max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1, 6), HARMED
    ),
}
