"""Leftovers: directories and processes of runs whose lab, guards and keeper were killed at the same moment.

No process of such a run is left to remove them. Each measuring command removes them, and `tollbar doctor` lists them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tollbar.core import control_groups, proc
from tollbar.core.files import cache_folder, is_replaceable, write
from tollbar.core.runner.confined import FIRST_ACCOUNT, LAST_ACCOUNT

PREFIX = "tollbar-"
# No other program uses names with eight such digits by chance.
NAMED = re.compile(rf"{PREFIX}[0-9a-f]{{8}}")
# Making a directory takes milliseconds.
MADE_LIMIT_S = 10.0
# A killed process ends within milliseconds, unless the kernel works for it.
ENDED_LIMIT_S = 10.0
POLL_S = 0.01
# Folders of temporary files on every machine. Runs with another TMPDIR note that folder in the user's cache.
USUAL = ("/tmp", "/var/tmp")
KEEPER, LAB = "keeper.json", "lab.json"


@dataclass(frozen=True, slots=True)
class Leftover:
    """Remains of a killed run: its directory, processes and control groups.

    If only a control group is left, `directory` is that group.
    """

    directory: Path
    processes: tuple[int, ...]
    groups: tuple[Path, ...] = ()


def hold(directory: Path) -> IO[bytes]:
    """Write the lab's process into the directory of a run, and lock that file until the lab ends.

    If its keeper is killed, the run goes on and must not be swept. Raises OSError.
    """
    about = {"pid": os.getpid(), "start_time": proc.start_time(os.getpid()), "boot_id": proc.boot_id()}
    write(directory / LAB, json.dumps(about).encode(), 0o600)
    file = open(directory / LAB, "r+b")  # noqa: SIM115 - open for as long as the lab holds the lock
    # On a file system without locks, process and start time decide.
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def note(folder: Path) -> None:
    """Note a folder of temporary files in the user's cache, so that commands with another TMPDIR look there too."""
    if str(folder) in USUAL:
        return
    # Without a cache, only commands with this TMPDIR find the leftovers.
    with suppress(OSError, RuntimeError):
        notes = _notes()
        notes.mkdir(parents=True, exist_ok=True)
        write(notes / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16], os.fsencode(folder), 0o600)


def find(folders: Iterable[Path] | None = None) -> list[Leftover]:
    """Return the leftovers of this user's runs in these folders, by default in all known ones."""
    found = [
        Leftover(one, proc.writers(one), _groups_of(one))
        for one in _of_dead_runs(_folders() if folders is None else folders)
    ]
    return found if folders is not None else found + [Leftover(one, (), (one,)) for one in _orphans()]


def sweep(folders: Iterable[Path] | None = None) -> None:
    """End and remove the leftovers of this user's runs in these folders, by default in all known ones."""
    for directory in _of_dead_runs(_folders() if folders is None else folders):
        groups = _groups_of(directory)
        with suppress(OSError):
            _remove(directory)
        for group in groups:
            control_groups.remove(group)
    for group in _orphans() if folders is None else ():
        control_groups.remove(group)
    if os.geteuid() == 0:
        # No other program has these accounts. A server that ended with its guard is in no list of ended processes.
        proc.remove_segments((), owners=range(FIRST_ACCOUNT, LAST_ACCOUNT + 1))


def _groups_of(directory: Path) -> tuple[Path, ...]:
    return tuple(group for group, run in control_groups.all_of_lab() if run == directory.name)


def _orphans() -> list[Path]:
    """Return control groups of this user without a run's directory in any known folder."""
    directories = (one.name for folder in _folders() for one in folder.glob(f"{PREFIX}*"))
    return control_groups.orphans(directories, MADE_LIMIT_S)


def remove_unkept(directory: Path) -> None:
    """Remove a directory whose keeper was killed before it wrote its name there. It stays if it has other content."""
    with suppress(OSError):
        (directory / f".{KEEPER}").unlink(missing_ok=True)
        directory.rmdir()


def temporary_folder() -> str:
    """Return the folder of temporary files; if none is writable, the first use reports it."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return USUAL[0]


def _notes() -> Path:
    return cache_folder() / "temporary-folders"


def _folders() -> list[Path]:
    """Return the folders in which this user's runs may have made directories."""
    noted: list[str] = []
    with suppress(OSError, RuntimeError):
        for file in sorted(_notes().iterdir()):
            with suppress(OSError):
                folder = os.fsdecode(file.read_bytes())
                if Path(folder).is_dir():
                    noted.append(folder)
                else:
                    file.unlink()
    folders = [*dict.fromkeys(Path(one) for one in (temporary_folder(), *USUAL, *noted))]
    # Root uses no folder in which another user could replace a run by a link, and removes nothing there.
    return [one for one in folders if os.geteuid() != 0 or not is_replaceable(one)]


def _of_dead_runs(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the directories of runs of this user whose lab and keeper are gone."""
    for directory in (one for folder in folders for one in sorted(folder.glob(f"{PREFIX}*"))):
        with suppress(OSError, ValueError, KeyError, TypeError):
            about = directory.lstat()
            # In /tmp, any user may make a directory of that name.
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            files = [file for file in (directory / KEEPER, directory / LAB) if file.exists()]
            if not any(_is_held(file) for file in files) and (files or _is_unkept(directory, about.st_mtime)):
                yield directory


def _is_unkept(directory: Path, changed_s: float) -> bool:
    """Return whether a keeper was killed before this directory was ready; a lab waits for a younger one."""
    is_late = NAMED.fullmatch(directory.name) is not None and time.time() - changed_s > MADE_LIMIT_S
    return is_late and {path.name for path in directory.iterdir()} <= {f".{KEEPER}"}


def _is_held(path: Path) -> bool:
    """Return whether the process that wrote this file lives: its lock is held, or the process runs.

    A process id alone is not enough: the process may be in another container, or of another boot.
    """
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        holder = json.load(file)
    runs = proc.start_time(int(holder["pid"])) == int(holder["start_time"])
    return runs and holder.get("boot_id", proc.boot_id()) == proc.boot_id()


def _remove(directory: Path) -> None:
    """End the processes of a dead run, and remove their shared memory and the directory. Raises OSError."""
    deadline = time.monotonic() + ENDED_LIMIT_S
    ended: set[int] = set()
    while (found := proc.end_writers(directory)) and time.monotonic() < deadline:
        ended |= found
        time.sleep(POLL_S)
    proc.remove_segments(ended)
    # The two files that identify the directory go last, so that the next sweep can finish a killed one.
    for path in directory.iterdir():
        if path.name not in (KEEPER, LAB):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
