"""Sandbox: the private directory of the servers of one run, which is removed when the run ends.

The directory is made and kept by a small process, the keeper, which outlives the lab by the time it takes to remove
it. What a power cut leaves is swept by the next run.
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

# The folder of what servers and commands write to standard error.
LOGS = "logs"
# The keeper itself tries for ten seconds to remove a directory.
REMOVED_LIMIT_S = 12.0


class Ending(Protocol):
    """Something that runs and can be ended."""

    def end(self) -> str | None:
        """Ends it; says what could not be ended."""


class Sandbox:
    """A context: inside it there is a directory for servers, after it there is none.

    `logs` is where rendered configurations and error logs are copied to, in a folder for each server.
    """

    def __init__(self, logs: Path | None = None) -> None:
        self.logs = logs
        self.directory = Path(folder_for_all(), PREFIX + secrets.token_hex(4))
        self._accounts: dict[str, Account] = {}
        self._numbers: Numbers | None = None
        """Of the accounts; None: everything has the lab's."""
        self.groups = control_groups.OfRun(self.directory.name)
        """Control groups, one for each component."""
        self.running: list[Ending] = []
        """What has to end before the directory goes."""
        self.shared: dict[Hashable, Any] = {}
        """The components of the run (`running.Shared`), by what makes each another one."""
        self.nodes: dict[str, Any] = {}
        """The machines of roles (`nodes.Node`), by role; a component of any other role is started here."""
        self.peers: tuple[str, ...] = ()
        """The networks from which components are asked, where some are on other machines."""
        self._keeper: subprocess.Popen[bytes] | None = None
        self._hold: IO[bytes] | None = None
        self._work_dirs = itertools.count(1)
        self._naming = threading.Lock()
        self.starting = threading.Lock()
        """Held for the moment in which one of several threads makes what all of them use."""

    def __enter__(self) -> Sandbox:
        leftovers.sweep()
        leftovers.note(self.directory.parent)
        keeper = start_engine(
            ["keep", str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Not of the lab's group: what ends all of that must not end the keeper.
            start_new_session=True,
        )
        self._keeper = keeper
        if first_line(keeper, leftovers.MADE_LIMIT_S) != b"ready":
            assert keeper.stdin is not None
            keeper.stdin.close()
            error = keeper.stderr.read().decode(errors="replace").strip() if keeper.stderr else ""
            self._let_go()
            leftovers.remove_unkept(self.directory)
            raise TollbarError(error or "the keeper did not say that it is ready", where=str(self.directory))
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
            # What the readiness probe requests.
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
        """Raises TollbarError where a machine of a role is lost."""
        for node in self.nodes.values():
            node.check()

    def work_dir(self, name: str) -> Path:
        """Make a new directory, for one start of one server. It is the lab's until the lab has written all files."""
        work_dir = self.directory / f"{name}-{next(self._work_dirs)}"
        work_dir.mkdir()
        # Clients and servers behind it pass through to its sockets.
        work_dir.chmod(0o711)
        return work_dir

    def log_of(self, work_dir: Path, name: str) -> Path:
        """Return where what runs in this directory writes its log: where it cannot lay a link in the log's place."""
        return self.directory / LOGS / f"{work_dir.name}-{name}.log"

    def given_by(self, work_dir: Path) -> Path:
        """Return the folder of what the component in this directory gives to others; only the lab writes it."""
        return self.directory / f"{work_dir.name}-given"

    def copies_of(self, folder: Path) -> Path:
        """Return the folder of the copies of files for what runs in this one; only the lab writes it."""
        return self.directory / f"{folder.name}-copies"

    def account_of(self, name: str) -> Account | None:
        """Return the account of the component or client of this name, the same for the whole run.

        None for a lab that is not root's, or may not give accounts: everything has its own. Raises TollbarError where
        a run has too many.
        """
        if self._numbers is None:
            return None
        with self._naming:
            if name not in self._accounts:
                if len(self._accounts) == len(self._numbers.free):
                    raise TollbarError(
                        f"more than {ACCOUNTS} components in one run", hint="measure fewer servers at once"
                    )
                self._accounts[name] = Account(self._numbers.free[len(self._accounts)])
            return self._accounts[name]

    def folder_of(self, name: str) -> Path:
        """The place of a folder that is the same for the whole run; the first that needs it makes it."""
        return self.directory / re.sub(r"[^A-Za-z0-9.-]+", "-", name)

    @property
    def documents(self) -> Path:
        """The root of the documents."""
        return self.directory / "documents"

    def lay_out(self, size: int) -> None:
        """Puts `bytes/SIZE`, of that many bytes, among the documents."""
        path = self.documents / "bytes" / str(size)
        if not path.exists():
            # Two servers that want it at the same moment make it twice, and either is whole.
            line = b"tollbar measures what security choices cost\n"
            write(path, (line * (size // len(line) + 1))[:size], 0o644)

    def _let_go(self) -> None:
        """Ends the keeper's standard input, upon which it removes the directory, and waits for it."""
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
            # Last: the keeper has ended what still had one of them.
            self._numbers.release()


def wait(process: subprocess.Popen[bytes], limit_s: float) -> int:
    """Waits for the end of a process without polling. Raises subprocess.TimeoutExpired."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # An old kernel, or it was waited for already: Popen asks again and again.
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
    """The first line on standard output, or what came instead of one; None: nothing within the limit."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        # A line this short arrives whole.
        return os.read(process.stdout.fileno(), 4096).strip() if selector.select(limit_s) else None


def folder_for_all() -> str:
    """Where temporary files go; root's are where others can pass, and cannot put another folder in the place of one."""
    candidates = [Path(leftovers.temporary_folder()), *map(Path, leftovers.USUAL)]
    if os.geteuid() == 0:
        candidates = [one for one in candidates if not is_replaceable(one)] or candidates
        candidates = [one for one in candidates if others_can_pass(one)] or candidates
    return str(candidates[0])


def others_can_pass(folder: Path) -> bool:
    """Whether any account reaches what lies in this folder."""
    here = folder.resolve()
    with suppress(OSError):
        return all(path.stat().st_mode & stat.S_IXOTH for path in (here, *here.parents))
    return False
