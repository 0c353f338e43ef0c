"""A server that the user has, as one of the lab: it is up already, and no process of it is Tollbar's."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tollbar.core import proc
from tollbar.core.errors import TollbarError
from tollbar.core.runner.confined import Account

# It opens the socket of a service that it starts on demand, and keeps it: none of the service's work is its own.
SOCKET_ACTIVATION = "systemd"
# What a component of a server cannot be called, for a trial has these besides.
TAKEN = ("client", "runner")


@dataclass(frozen=True, slots=True)
class Remote:
    """What a server of the lab and its process are to others; there is nothing to start."""

    url: str
    address: str = ""
    """`address:port` that the URL was found to stand for."""
    components: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The process at the root of each tree whose CPU time counts; empty: what the server pays is not known."""
    began: Mapping[int, int | None] = field(default_factory=dict, compare=False)
    """When each of them started: the number of one that has ended is given to others."""
    addresses: Mapping[str, str] = field(default_factory=dict, compare=False)
    nodes: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Its processes are known on this machine alone."""
    work_dirs: Mapping[str, Path] = field(default_factory=dict, compare=False)
    given: Mapping[str, Path] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return self.url

    @property
    def server_version(self) -> str:
        """Which server this is, as rows name it."""
        return self.url

    @property
    def host(self) -> str:
        """As its clients call it, with the port where that is said."""
        return self.parts.netloc

    @property
    def path(self) -> str:
        """What is asked for."""
        return (self.parts.path or "/") + (f"?{self.parts.query}" if self.parts.query else "")

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    def fault(self, within_s: float = 0.0) -> str | None:
        """Which of its processes has ended; None: all run, as far as is known."""
        ended = (name for name, pid in self.components.items() if proc.start_time(pid) != self.began[pid])
        return next((f"{name} (process {self.components[name]}) has ended" for name in ended), None)

    def complaint(self) -> str | None:
        """Nothing is known of its log."""
        return None

    def client_account(self, like: str | None = None) -> Account | None:
        """None that it has to share: its clients connect to no socket of a component's."""
        return None


def accounted(remotes: Sequence[Remote], pids: Sequence[int]) -> tuple[Remote, ...]:
    """These servers, each with those of the processes that listen on its address, themselves or by a child.

    Raises TollbarError for a process that is not there, cannot be looked at, or listens on none of the addresses; and
    for one that listens beside them without being named, whose work would be missing.
    """
    for pid in pids:
        if proc.start_time(pid) is None:
            raise TollbarError("there is no such process", where=f"--server-pid {pid}")
        if os.getpid() in proc.tree(pid):
            above = f"{proc.program(pid)} has started Tollbar itself, whose own work would be counted as the server's"
            hint = 'name the server\'s own process, for example `--server-pid "$(cat /run/nginx.pid)"`'
            raise TollbarError(above, where=f"--server-pid {pid}", hint=hint)
        if not proc.shows_files(pid):
            raise TollbarError(
                f"{proc.program(pid)} is another user's: whether it listens there cannot be seen",
                where=f"--server-pid {pid}",
                hint="as root it can; or leave it out, and measure from the client's side alone",
            )
    trees = {pid: proc.tree(pid) for pid in dict.fromkeys(pids)}
    # A worker that was named beside its parent is counted there already.
    roots = [pid for pid in trees if not any(pid in tree for other, tree in trees.items() if other != pid)]
    found = []
    for remote in remotes:
        holding = proc.holders(_sockets(remote)) if pids else ()
        own = [root for root in roots if not set(holding).isdisjoint(trees[root])]
        _refuse_missing(remote, holding, [pid for root in own for pid in trees[root]])
        began = {pid: proc.start_time(pid) for pid in own}
        found.append(Remote(remote.url, remote.address, _named(own), began))
    for root in roots:
        if not any(root in remote.began for remote in found):
            where = " or ".join(remote.address for remote in remotes)
            raise TollbarError(
                f"neither {proc.program(root)} nor a process below it listens on {where}",
                where=f"--server-pid {root}",
            )
    return tuple(found)


def _sockets(remote: Remote) -> frozenset[str]:
    address, _, port = remote.address.rpartition(":")
    address = address.strip("[]").partition("%")[0]
    return proc.listeners(address, int(port)) if is_here(address) else frozenset()


def is_here(address: str) -> bool:
    """Whether it is one of this machine's: no other can be bound to."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe, suppress(OSError):
        probe.bind((address, 0))
        return True
    return False


def _refuse_missing(remote: Remote, holding: Iterable[int], counted: Sequence[int]) -> None:
    missing = [pid for pid in holding if pid not in counted and proc.program(pid) != SOCKET_ACTIVATION]
    if counted and missing:
        # Parents have lower numbers than their children, as a rule.
        first = min(missing)
        raise TollbarError(
            f"{proc.program(first)} (process {first}) listens there too, and its work would not be counted",
            where=remote.url,
            hint=f"--server-pid {first} counts it and all below it",
        )


def _named(roots: Sequence[int]) -> dict[str, int]:
    """The processes by what they run, numbered where that is the same."""
    named: dict[str, int] = {}
    for root in roots:
        program = proc.program(root)
        names = (program, *(f"{program}-{number}" for number in range(2, len(roots) + 3)))
        named[next(name for name in names if name not in (*named, *TAKEN))] = root
    return named
