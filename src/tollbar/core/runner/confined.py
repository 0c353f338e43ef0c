"""Confinement of processes that root's lab starts: an account of their own, and only the needed capabilities.

A lab of another user starts everything under that user's account, and nothing of this applies.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from tollbar.core.errors import TollbarError
from tollbar.core.files import full_path

# No distribution assigns these numbers: systemd's table of user ids (UIDS-GIDS) lists 60578 to 61183 as unused, and its
# newer versions take those below 60706 for greeters.
FIRST_ACCOUNT, LAST_ACCOUNT = 60706, 61183
# Accounts of one run: thirteen components ship, and a user may add the same number.
ACCOUNTS = 32
# Lock files for the accounts of root's runs; no other user may write there.
LOCKS = Path("/run/tollbar-accounts")
# The kernel's numbers of the capabilities that a lab needs to manage other accounts: to give them files and processes,
# to read and remove their files, to inspect, pin and end their processes.
NEEDED = {
    "chown": 0,
    "dac_override": 1,
    "dac_read_search": 2,
    "fowner": 3,
    "kill": 5,
    "setgid": 6,
    "setuid": 7,
    "sys_ptrace": 19,
    "sys_nice": 23,
}
# Needed to drop other capabilities permanently.
CAP_SETPCAP = 8
# Folders of the system's own programs.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
READ_ALL, LOW_PORT = "dac_read_search", "net_bind_service"
# Capabilities that a process may keep, by the kernel's numbers.
KEPT = {READ_ALL: 2, LOW_PORT: 10}


@dataclass(frozen=True, slots=True)
class Account:
    """An unprivileged account of one run: a number without a name on the system."""

    number: int
    """Number of the user and of the user's primary group."""
    groups: tuple[int, ...] = ()
    """Groups of other accounts whose sockets it may connect to."""

    def owns(self, handle: int) -> None:
        """Give the open file or folder to this account. Raises OSError."""
        os.fchown(handle, self.number, self.number)


def has_accounts() -> bool:
    """Return whether this lab can give processes their own accounts: it is root with all needed capabilities.

    Root in a container may miss some, as in Docker, and a user namespace may have no account except root's.
    """
    return (
        os.geteuid() == 0
        and all(_has(capability) for capability in NEEDED.values())
        and all(_has_numbers(Path("/proc/self", name)) for name in ("uid_map", "gid_map"))
        and not _is("/proc/self/setgroups", "deny")
    )


def seeing_groups(mounts: Path = Path("/proc/self/mountinfo")) -> tuple[int, ...]:
    """Return the groups that an account needs to see the processes of others, for accounting their work.

    Empty unless the system hides processes (`hidepid`): then one group sees them, root's by default.
    """
    options: list[str] = []
    with suppress(OSError):
        for line in mounts.read_text().splitlines():
            of_mount, _, of_system = line.partition(" - ")
            if of_mount.split()[4:5] == ["/proc"] and of_system.split()[:1] == ["proc"]:
                options = of_system.split()[-1].split(",")
    named = dict(option.partition("=")[::2] for option in options)
    return () if named.get("hidepid", "0") in ("0", "off") else (int(named.get("gid", "0")),)


@dataclass(slots=True)
class Numbers:
    """Account numbers of one run. No other run has them until they are released."""

    free: range
    _lock: IO[bytes] | None = None

    def release(self) -> None:
        """Release the numbers for other runs; no process may have one of them any more."""
        if self._lock is not None:
            self._lock.close()


def take_numbers(locks: Path = LOCKS) -> Numbers:
    """Take numbers that no other run and no current process has.

    Raises TollbarError if every number is in use.
    """
    blocks = [range(first, first + ACCOUNTS) for first in range(FIRST_ACCOUNT, LAST_ACCOUNT - ACCOUNTS + 2, ACCOUNTS)]
    for block in random.sample(blocks, len(blocks)):
        with suppress(BlockingIOError):
            numbers = Numbers(block, _locked(locks, block))
            # Killed runs leave processes without a lock, so their accounts are checked as well.
            if _users().isdisjoint(block):
                return numbers
            numbers.release()
    raise TollbarError(
        f"all accounts from {FIRST_ACCOUNT} to {LAST_ACCOUNT} are in use; a run of root needs {ACCOUNTS}",
        hint="wait for other runs to end; `tollbar doctor` lists processes that killed runs have left",
    )


@contextmanager
def one_account() -> Iterator[Account | None]:
    """Yield an account for processes outside of a run; None if the lab's processes have its own account."""
    if not has_accounts():
        yield None
        return
    numbers = take_numbers()
    try:
        yield Account(numbers.free[0])
    finally:
        numbers.release()


def _locked(locks: Path, block: range) -> IO[bytes] | None:
    """Return the lock of these numbers; None if locks are not possible.

    Raises BlockingIOError if another run has it.
    """
    try:
        locks.mkdir(mode=0o700, exist_ok=True)
        if locks.lstat().st_uid != os.geteuid():
            return None
        handle = os.open(locks / str(block.start), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    lock = os.fdopen(handle, "r+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise
    except OSError:
        # The file system does not support locks.
        lock.close()
        return None
    return lock


def _users() -> set[int]:
    """Return the accounts of all processes."""
    used = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            used.add(os.stat(f"/proc/{name}").st_uid)
    return used


def words(
    account: Account | None = None,
    *,
    keeps: Collection[str] = (),
    reaches: Iterable[str | Path] = (),
    dies_with_guard: bool = False,
) -> list[str]:
    """Return the words before a command of root's lab that leave it this account and only the needed capabilities.

    Empty for a lab of another user. Without an account the command stays root's. It keeps the capabilities in `keeps`,
    and the one to read all files if a folder above one of the paths in `reaches` is closed to it.
    """
    if os.geteuid() != 0:
        return []
    number = account.number if account else 0
    kept = {*keeps, *([READ_ALL] if any(not can_reach(path, number) for path in reaches) else [])}
    kept = {name for name in kept if _has(KEPT[name])}
    options = ["--no-new-privs"]
    if account:
        options += [f"--reuid={number}", f"--regid={number}"]
        groups = ",".join(map(str, account.groups))
        options += [f"--groups={groups}" if groups else "--clear-groups"]
        # A change of account clears the guard's parent-death signal. The lab ends a server whose guard was killed, and
        # removes the memory that the server has shared.
        options += ["--pdeathsig=KILL"] if dies_with_guard else []
        options += [f"--{kind}-caps=-all,+{name}" for kind in ("inh", "ambient") for name in sorted(kept)]
    if _may_drop():
        options += ["--bounding-set=" + ",".join(["-all", *(f"+{name}" for name in sorted(kept))])]
    return [_setpriv(), *options, "--"]


@cache
def _setpriv() -> str:
    """Return the path of `setpriv`, which removes rights from a command. Raises TollbarError if it is not installed."""
    found = shutil.which("setpriv", path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")
    if found is None:
        raise TollbarError(
            "`setpriv` is not installed; root's lab takes rights from servers and runners with it",
            hint="install util-linux, or measure as an ordinary user",
        )
    return found


def can_reach(path: str | Path, number: int) -> bool:
    """Return whether a user who is neither root nor in root's groups can reach and read this file."""
    with suppress(OSError):
        for place in (Path(path), full_path(path)):
            for folder in place.absolute().parents:
                if not _may(folder.stat(), number, stat.S_IXUSR, stat.S_IXOTH):
                    return False
        return _may(os.stat(path), number, stat.S_IRUSR, stat.S_IROTH)
    return False


def _may(about: os.stat_result, number: int, own: int, others: int) -> bool:
    return bool(about.st_mode & (own if about.st_uid == number else others))


def _may_drop() -> bool:
    """Return whether this process may drop capabilities of its children: root in a container may not."""
    return _has(CAP_SETPCAP)


def _has(capability: int) -> bool:
    """Return whether this process has a capability, by the kernel's number of it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return bool(effective >> capability & 1)


def _has_numbers(table: Path) -> bool:
    """Return whether the account numbers exist in this user namespace; the initial namespace has no table."""
    with suppress(FileNotFoundError):
        ranges = [[int(number) for number in line.split()] for line in table.read_text().splitlines()]
        return any(first <= FIRST_ACCOUNT and LAST_ACCOUNT < first + count for first, _, count in ranges)
    return True


def _is(path: str, word: str) -> bool:
    with suppress(OSError):
        return Path(path).read_text().strip() == word
    return False
