"""Control groups (cgroup v2): one for each component that the lab starts, so that its CPU time is exact.

`cpu.stat` needs no controller and keeps the CPU time of processes that have ended. Where no group can be made, the
engine walks through the processes of a component, and knows short-lived ones to a clock tick.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PREFIX = "tollbar-"
# Name of a group: the run's directory, and a number.
NAMED = re.compile(rf"({PREFIX}[0-9a-f]{{8}})\.\d+")
# A killed process leaves its group within milliseconds, but the kernel may free it later.
REMOVED_LIMIT_S = 2.0
POLL_S = 0.005


@dataclass
class OfRun:
    """Control groups of one run, named after its directory."""

    name: str
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def make(self) -> Path | None:
        """Make the group of one component; return None if this machine cannot make one."""
        own = usable()
        if own is None:
            return None
        group = own / f"{self.name}.{next(self._numbers)}"
        # The lab may have dropped its privileges since `usable` tested them.
        with suppress(PermissionError):
            group.mkdir()
            return group
        return None

    def remove(self) -> None:
        """Remove the remaining groups of this run."""
        own = usable()
        for group in sorted(own.glob(f"{self.name}.*")) if own else ():
            remove(group)


@cache
def usable() -> Path | None:
    """Return this process's group if groups can be made and entered below it, else None.

    None is made below a group that distributes CPU time, because a component would also be scheduled as a group.
    """
    own = _own()
    if own is None or "cpu" in _read(own / "cgroup.subtree_control").split():
        return None
    tried = own / f"{PREFIX}try-{secrets.token_hex(4)}"
    with suppress(OSError):
        tried.mkdir()
        try:
            is_usable = (
                _read(tried / "cgroup.type").strip() == "domain"
                and "usage_usec " in _read(tried / "cpu.stat")
                and all(os.access(folder / "cgroup.procs", os.W_OK) for folder in (own, tried))
            )
        finally:
            tried.rmdir()
        return own if is_usable else None
    return None


def accounts() -> str:
    """Return the way in which this machine accounts the CPU time of servers."""
    return "control groups" if usable() else "processes"


def all_of_lab(root: Path | None = None) -> list[tuple[Path, str]]:
    """Return each group of this user's runs on this machine, with the name of the run's directory."""
    root = root or _mounted()
    found = (Path(at, name) for at, folders, _ in os.walk(root or os.devnull) for name in folders)
    named = ((group, match[1]) for group in found if (match := NAMED.fullmatch(group.name)))
    return sorted((group, run) for group, run in named if _is_own(group))


def processes(group: Path) -> tuple[int, ...]:
    """Return the ids of the processes in a group."""
    return tuple(map(int, _read(group / "cgroup.procs").split()))


def remove(group: Path) -> bool:
    """Remove a group once its processes have gone. Return False if it remains."""
    deadline = time.monotonic() + REMOVED_LIMIT_S
    while group.exists():
        with suppress(OSError):
            group.rmdir()
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def orphans(known: Iterable[str], older_than_s: float) -> list[Path]:
    """Return empty groups of runs whose directory is not among `known`, if they are older than `older_than_s`."""
    living, latest_s = set(known), time.time() - older_than_s
    groups = (group for group, run in all_of_lab() if run not in living)
    return [one for one in groups if not processes(one) and _changed_s(one) < latest_s]


def _own() -> Path | None:
    mounted = _mounted()
    path = next((line[4:] for line in _read(Path("/proc/self/cgroup")).splitlines() if line.startswith("0::/")), None)
    return mounted / path if mounted is not None and path is not None else None


def _mounted(mounts: Path = Path("/proc/mounts")) -> Path | None:
    """Return the mount point of the unified hierarchy: alone, or below those of version 1."""
    lines = (line.split(" ") for line in _read(mounts).splitlines())
    return next((Path(fields[1]) for fields in lines if len(fields) > 2 and fields[2] == "cgroup2"), None)


def _is_own(group: Path) -> bool:
    with suppress(OSError):
        return group.stat().st_uid == os.geteuid()
    return False


def _changed_s(group: Path) -> float:
    with suppress(OSError):
        return group.stat().st_mtime
    return time.time()


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""
