"""Servers of the user, with the interface of the lab's: they already run, as processes outside Tollbar."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tollbar.core import proc
from tollbar.core.errors import TollbarError, without_values
from tollbar.core.runner.confined import Account

# systemd opens and keeps the socket of a service that it starts on demand, but does none of its work.
SOCKET_ACTIVATION = "systemd"
# Reserved names of components, which a trial has in addition.
TAKEN = ("client", "runner")


@dataclass(frozen=True, slots=True)
class Remote:
    """Server of the user, with the interface of a started server of the lab."""

    url: str
    address: str = ""
    """`address:port` that the URL was resolved to."""
    components: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Process at the root of each tree whose CPU time counts; empty: the server's cost is unknown."""
    began: Mapping[int, int | None] = field(default_factory=dict, compare=False)
    """Start time of each process, because process ids are reused."""
    addresses: Mapping[str, str] = field(default_factory=dict, compare=False)
    nodes: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Empty, because its processes are only known on this machine."""
    work_dirs: Mapping[str, Path] = field(default_factory=dict, compare=False)
    given: Mapping[str, Path] = field(default_factory=dict, compare=False)
    certificate_pem: str | None = field(default=None, compare=False)
    """Verified certificate, which its clients require; None: any."""

    @property
    def name(self) -> str:
        """URL as it is printed and kept, without the values of its query."""
        return without_values(self.url)

    @property
    def server_version(self) -> str:
        """Name of the server in rows."""
        return self.name

    @property
    def host(self) -> str:
        """Host name for its clients, with the port if the URL has one."""
        return self.parts.netloc

    @property
    def path(self) -> str:
        """Path and query of the URL."""
        return (self.parts.path or "/") + (f"?{self.parts.query}" if self.parts.query else "")

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    def fault(self, within_s: float = 0.0) -> str | None:
        """Return which of its processes has ended; None: all run, as far as is known."""
        ended = (name for name, pid in self.components.items() if proc.start_time(pid) != self.began[pid])
        return next((f"{name} (process {self.components[name]}) has ended" for name in ended), None)

    def complaint(self) -> str | None:
        """Return None, because its log is not known."""
        return None

    def client_account(self, like: str | None = None) -> Account | None:
        """Return None, because its clients connect to no component's socket."""
        return None


def accounted(remotes: Sequence[Remote], pids: Sequence[int]) -> tuple[Remote, ...]:
    """Return these servers, each with those of the processes that listen on its address, themselves or by a child.

    Raises TollbarError for a process that does not exist, cannot be examined, or listens on none of the addresses, and
    for an unnamed process that listens as well, because its work would be missing.
    """
    for pid in pids:
        if proc.start_time(pid) is None:
            raise TollbarError(
                "no such process; it must be running on this machine",
                where=f"--server-pid {pid}",
                hint="`pgrep nginx` prints process ids, for example",
            )
        if os.getpid() in proc.tree(pid):
            above = f"{proc.program(pid)} has started Tollbar, whose CPU time would count as the server's"
            hint = 'name the server\'s own process, for example `--server-pid "$(cat /run/nginx.pid)"`'
            raise TollbarError(above, where=f"--server-pid {pid}", hint=hint)
        if not proc.shows_files(pid):
            raise TollbarError(
                f"{proc.program(pid)} belongs to another user, so its listening sockets cannot be read",
                where=f"--server-pid {pid}",
                hint="run Tollbar as root, or remove `--server-pid` to measure the client's CPU time",
            )
    trees = {pid: proc.tree(pid) for pid in dict.fromkeys(pids)}
    # A worker that was named in addition to its parent is already counted there.
    roots = [pid for pid in trees if not any(pid in tree for other, tree in trees.items() if other != pid)]
    found = []
    for remote in remotes:
        holding = proc.holders(_sockets(remote)) if pids else ()
        own = [root for root in roots if not set(holding).isdisjoint(trees[root])]
        _refuse_missing(remote, holding, [pid for root in own for pid in trees[root]])
        began = {pid: proc.start_time(pid) for pid in own}
        found.append(replace(remote, components=_named(own), began=began))
    for root in roots:
        if not any(root in remote.began for remote in found):
            where = " or ".join(remote.address for remote in remotes)
            raise TollbarError(
                f"neither {proc.program(root)} nor a child of it listens on {where}; one of them must",
                where=f"--server-pid {root}",
                hint="`ss -ltnp` lists the listening processes",
            )
    return tuple(found)


def _sockets(remote: Remote) -> frozenset[str]:
    address, _, port = remote.address.rpartition(":")
    address = address.strip("[]").partition("%")[0]
    return proc.listeners(address, int(port)) if is_here(address) else frozenset()


def is_here(address: str) -> bool:
    """Return whether this machine has the address: only own addresses can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe, suppress(OSError):
        probe.bind((address, 0))
        return True
    return False


def _refuse_missing(remote: Remote, holding: Iterable[int], counted: Sequence[int]) -> None:
    missing = [pid for pid in holding if pid not in counted and proc.program(pid) != SOCKET_ACTIVATION]
    if counted and missing:
        # Parents usually have lower numbers than their children.
        first = min(missing)
        raise TollbarError(
            f"{proc.program(first)} (process {first}) also listens there; its CPU time must be counted too",
            where=remote.name,
            hint=f"add `--server-pid {first}`, which counts it and its children",
        )


def _named(roots: Sequence[int]) -> dict[str, int]:
    """Return the processes by the names of their programs, numbered if equal."""
    named: dict[str, int] = {}
    for root in roots:
        program = proc.program(root)
        names = (program, *(f"{program}-{number}" for number in range(2, len(roots) + 3)))
        named[next(name for name in names if name not in (*named, *TAKEN))] = root
    return named
