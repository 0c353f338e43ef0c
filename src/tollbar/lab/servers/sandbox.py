"""Sandbox: the private directory of the servers of one run, which is removed when the run ends.

A small process, the keeper, makes and keeps the directory, and outlives the lab until it has removed it. The next run
sweeps the leftovers of a power cut.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import selectors
import shutil
import stat
import subprocess
import threading
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from tollbar.core import control_groups
from tollbar.core.errors import TollbarError
from tollbar.core.files import is_replaceable, write
from tollbar.core.runner import start_engine
from tollbar.core.runner.confined import ACCOUNTS, Account, Numbers, has_accounts, take_numbers
from tollbar.lab.servers import leftovers
from tollbar.lab.servers.leftovers import PREFIX as PREFIX

# Folder of the standard error of servers and commands.
LOGS = "logs"
# Configurations of servers have paths without quotes, and colons and semicolons separate the paths of a list.
USABLE = re.compile(r"[A-Za-z0-9/._+-]+")
# The keeper itself tries for ten seconds to remove a directory.
REMOVED_LIMIT_S = 12.0


class Ending(Protocol):
    """Anything that runs and can be ended."""

    def end(self) -> str | None:
        """End it. Return the processes that remain, in words."""


class Sandbox:
    """Directory for servers, as a context that removes it.

    `logs` receives copies of rendered configurations and error logs, in a folder for each server.
    """

    def __init__(self, logs: Path | None = None) -> None:
        self.logs = logs
        self.directory = Path(folder_for_all(), PREFIX + secrets.token_hex(4))
        self._accounts: dict[str, Account] = {}
        self._numbers: Numbers | None = None
        """Numbers of the accounts; None: everything has the lab's account."""
        self.groups = control_groups.OfRun(self.directory.name)
        """Control groups, one for each component."""
        self.running: list[Ending] = []
        """Programs that must end before the directory is removed."""
        self.shared: dict[Hashable, Any] = {}
        """Components of the run (`running.Shared`), by their keys."""
        self.nodes: dict[str, Any] = {}
        """Machines of roles (`nodes.Node`), by role; components of other roles are started on this machine."""
        self.peers: tuple[str, ...] = ()
        """Networks from which components are accessed if some are on other machines."""
        self._keeper: subprocess.Popen[bytes] | None = None
        self._hold: IO[bytes] | None = None
        self._work_dirs = itertools.count(1)
        self._naming = threading.Lock()
        self.starting = threading.Lock()
        """Lock for the moment in which one of several threads makes something that all of them use."""

    def __enter__(self) -> Sandbox:
        leftovers.sweep()
        leftovers.note(self.directory.parent)
        keeper = start_engine(
            ["keep", str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # In another process group than the lab, so that a signal to the lab's group does not end the keeper.
            start_new_session=True,
        )
        self._keeper = keeper
        if first_line(keeper, leftovers.MADE_LIMIT_S) != b"ready":
            assert keeper.stdin is not None
            keeper.stdin.close()
            error = keeper.stderr.read().decode(errors="replace").strip() if keeper.stderr else ""
            self._let_go()
            leftovers.remove_unkept(self.directory)
            raise TollbarError(error or "the keeper did not report that it is ready", where=str(self.directory))
        try:
            self._hold = leftovers.hold(self.directory)
            if has_accounts():
                self._numbers = take_numbers()
            for folder, mode in (
                (self.documents, 0o755),
                (self.documents / "bytes", 0o755),
                (self.directory / LOGS, 0o711),
            ):
                folder.mkdir()
                folder.chmod(mode)
            # Document of the readiness probe.
            self.lay_out(0)
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = [left for running in self.running[::-1] if (left := running.end())]
        self._let_go()
        self.groups.remove()
        # The keeper may have been killed.
        shutil.rmtree(self.directory, ignore_errors=True)
        if left:
            raise TollbarError("; ".join(left))
        if self.directory.exists():
            raise TollbarError("the directory of the run could not be removed", where=str(self.directory))

    def check_nodes(self) -> None:
        """Raise TollbarError if a machine of a role is lost."""
        for node in self.nodes.values():
            node.check()

    def work_dir(self, name: str) -> Path:
        """Return a new directory for one start of one server. It is the lab's until the lab has written all files."""
        work_dir = self.directory / f"{name}-{next(self._work_dirs)}"
        work_dir.mkdir()
        # Clients and servers behind it pass through to its sockets.
        work_dir.chmod(0o711)
        return work_dir

    def log_of(self, work_dir: Path, name: str) -> Path:
        """Return the log of a program in this directory, in a folder where the program cannot plant a link."""
        return self.directory / LOGS / f"{work_dir.name}-{name}.log"

    def given_by(self, work_dir: Path) -> Path:
        """Return the folder of the files that this directory's component gives to others; only the lab writes it."""
        return self.directory / f"{work_dir.name}-given"

    def copies_of(self, folder: Path) -> Path:
        """Return the folder of the copies of files for the processes of this folder; only the lab writes it."""
        return self.directory / f"{folder.name}-copies"

    def account_of(self, name: str) -> Account | None:
        """Return the account of the component or client of this name, the same for the whole run.

        None if the lab is not root's, or may not give accounts: then all share the lab's. Raises TollbarError if a run
        needs too many.
        """
        if self._numbers is None:
            return None
        with self._naming:
            if name not in self._accounts:
                if len(self._accounts) == len(self._numbers.free):
                    raise TollbarError(
                        f"the run has more than {ACCOUNTS} components, the limit", hint="measure fewer servers at once"
                    )
                self._accounts[name] = Account(self._numbers.free[len(self._accounts)])
            return self._accounts[name]

    def folder_of(self, name: str) -> Path:
        """Return the path of a folder for the whole run; its first user makes it."""
        return self.directory / re.sub(r"[^A-Za-z0-9.-]+", "-", name)

    @property
    def documents(self) -> Path:
        """Root of the documents."""
        return self.directory / "documents"

    def lay_out(self, size: int) -> None:
        """Add the document `bytes/SIZE`, of that many bytes."""
        path = self.documents / "bytes" / str(size)
        if not path.exists():
            # Two servers may make it at the same moment; both versions are complete and equal.
            line = b"tollbar measures what security choices cost\n"
            write(path, (line * (size // len(line) + 1))[:size], 0o644)

    def _let_go(self) -> None:
        """Close the keeper's standard input, so that it removes the directory, and wait for it."""
        keeper = self._keeper
        if keeper is None:
            return
        for pipe in (keeper.stdin, keeper.stdout, keeper.stderr):
            if pipe is not None:
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            wait(keeper, REMOVED_LIMIT_S)
        self._keeper = None
        if self._hold is not None:
            self._hold.close()
        if self._numbers is not None:
            # Last: the keeper has ended all processes of these accounts.
            self._numbers.release()


def wait(process: subprocess.Popen[bytes], limit_s: float) -> int:
    """Wait for the end of a process without polling. Raises subprocess.TimeoutExpired."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # On an old kernel, or if the process was already reaped, Popen polls.
        return process.wait(limit_s)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(handle, selectors.EVENT_READ)
            if not selector.select(limit_s):
                raise subprocess.TimeoutExpired(process.args, limit_s)
    finally:
        os.close(handle)
    return process.wait()


def first_line(process: subprocess.Popen[bytes], limit_s: float) -> bytes | None:
    """Return the first line on standard output, or the data instead of one; None if nothing came within the limit."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        # A line this short arrives whole.
        return os.read(process.stdout.fileno(), 4096).strip() if selector.select(limit_s) else None


def folder_for_all() -> str:
    """Return the folder for temporary files, if servers can use its name, else a usual one.

    For root it is one that others can enter but not replace.
    """
    candidates = [Path(leftovers.temporary_folder()), *map(Path, leftovers.USUAL)]
    candidates = [one for one in candidates if _is_usable(one)] or candidates
    if os.geteuid() == 0:
        candidates = [one for one in candidates if not is_replaceable(one)] or candidates
        candidates = [one for one in candidates if others_can_pass(one)] or candidates
    return str(candidates[0])


def _is_usable(folder: Path) -> bool:
    """Return whether servers can have paths in this folder, for example in a configuration or a list of libraries."""
    return USABLE.fullmatch(str(folder)) is not None and os.access(folder, os.W_OK | os.X_OK)


def others_can_pass(folder: Path) -> bool:
    """Return whether every account can reach files in this folder."""
    here = folder.resolve()
    with suppress(OSError):
        return all(path.stat().st_mode & stat.S_IXOTH for path in (here, *here.parents))
    return False
