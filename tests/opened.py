"""Files that processes open, reported by the kernel (fanotify(7)), and those that another user could change."""

from __future__ import annotations

import ctypes
import os
import select
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

# Constants of <linux/fanotify.h>.
FAN_CLOEXEC, FAN_NONBLOCK, FAN_UNLIMITED_QUEUE = 0x1, 0x2, 0x10
FAN_MARK_ADD, FAN_MARK_MOUNT = 0x1, 0x10
FAN_OPEN, FAN_OPEN_EXEC = 0x20, 0x1000
AT_FDCWD = -100
# Length, version, reserved, length of the metadata, mask, file, process.
EVENT = struct.Struct("=IBBHQii")
# Memory that processes share, if it is a mount of its own.
MOUNTS = ("/", "/tmp", "/dev/shm")

libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Opened:
    """File that a process has opened."""

    program: str
    user: int
    path: str
    why: str
    """Reason: the user or group who could have changed it."""
    group: int | None = None
    """Group whose members could have changed it; None: the reason is no group."""


@dataclass
class Watch:
    """Files that processes below `root` have opened until now."""

    root: int
    opened: int = 0
    """Number of regular files."""
    by_user: dict[int, set[str]] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)
    """Groups that processes had besides their own: each has members of other accounts."""
    found: set[Opened] = field(default_factory=set)
    _is_below: dict[int, bool] = field(default_factory=dict)

    @property
    def of_others(self) -> set[Opened]:
        """Return the files that another unprivileged user could have changed."""
        return {one for one in self.found if one.group is None or one.group != one.user or one.group in self.given}

    def note(self, file: int, pid: int) -> None:
        """Record one file that a process has opened."""
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or not self.is_below(pid):
            return
        user, groups = user_of(pid)
        if user is None:
            return
        self.given |= groups - {0, user}
        path = os.readlink(f"/proc/self/fd/{file}")
        self.opened += 1
        self.by_user.setdefault(user, set()).add(path)
        if why := changed_by(Path(path), about, user):
            group = about.st_gid if why.startswith("group") else None
            self.found.add(Opened(program_of(pid), user, path, why, group))

    def is_below(self, pid: int) -> bool:
        """Return whether this process descends from the root; ended processes are remembered."""
        if pid not in self._is_below:
            at, seen = pid, 0
            while at > 1 and at != self.root and seen < 100:
                at, seen = parent_of(at), seen + 1
            self._is_below[pid] = at == self.root
        return self._is_below[pid]


@contextmanager
def watched(root: int) -> Iterator[Watch]:
    """Record opened files while the context lasts.

    Raises OSError if the kernel refuses this user.
    """
    handle = libc.fanotify_init(FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE, os.O_RDONLY | os.O_CLOEXEC)
    if handle < 0:
        raise OSError(ctypes.get_errno(), "fanotify_init")
    watch, is_over = Watch(root), threading.Event()
    try:
        for mount in filter(os.path.exists, MOUNTS):
            mask = ctypes.c_uint64(FAN_OPEN | FAN_OPEN_EXEC)
            if libc.fanotify_mark(handle, FAN_MARK_ADD | FAN_MARK_MOUNT, mask, AT_FDCWD, mount.encode()) < 0:
                raise OSError(ctypes.get_errno(), f"fanotify_mark {mount}")

        def follow() -> None:
            while not is_over.is_set():
                if select.select([handle], [], [], 0.05)[0]:
                    take_in(handle, watch)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            is_over.set()
            thread.join()
    finally:
        os.close(handle)


def take_in(handle: int, watch: Watch) -> None:
    """Record all pending events."""
    with suppress(BlockingIOError):
        data = os.read(handle, 1 << 16)
        at = 0
        while at < len(data):
            length, _, _, _, _, file, pid = EVENT.unpack_from(data, at)
            at += length
            if file >= 0:
                try:
                    # The process may have ended, and its file may be gone.
                    with suppress(OSError):
                        watch.note(file, pid)
                finally:
                    os.close(file)


def changed_by(path: Path, about: os.stat_result, user: int) -> str | None:
    """Return which other unprivileged user could have changed the file or replaced it, or None."""
    trusted = {0, user}
    if about.st_uid not in trusted:
        return f"it is user {about.st_uid}'s"
    if about.st_mode & stat.S_IWOTH:
        return "every user may write it"
    # An account's own group has other members if the account has sockets for them.
    if about.st_mode & stat.S_IWGRP and about.st_gid != 0 and is_passed_by_groups(path):
        return f"group {about.st_gid} may write it"
    for folder in path.parents:
        with suppress(FileNotFoundError):
            of_folder = folder.stat()
            if of_folder.st_uid not in trusted:
                return f"user {of_folder.st_uid} may replace it in {folder}"
            is_open = of_folder.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if of_folder.st_gid not in trusted else 0))
            if is_open and not of_folder.st_mode & stat.S_ISVTX:
                return f"others may replace it in {folder}"
    return None


def is_passed_by_groups(path: Path) -> bool:
    """Return whether all folders above let users other than their owners pass."""
    with suppress(FileNotFoundError):
        return all(folder.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH) for folder in path.parents)
    return True


def user_of(pid: int) -> tuple[int | None, set[int]]:
    """Return the user whose rights this process has, and its groups; None if it has ended."""
    with suppress(OSError):
        said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
        return int(said["Uid"].split()[1]), {*map(int, said["Groups"].split())}
    return None, set()


def parent_of(pid: int) -> int:
    """Return the parent of this process, or 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def program_of(pid: int) -> str:
    """Return the name of this process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
