"""Private cluster of simulated nodes on this machine, for trying and testing runs on real ones.

The nodes share the cores of one machine: their results tell nothing about a network or another processor, and they
measure one after the other.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tollbar.cluster.cluster import ClusterNode
from tollbar.cluster.namespaces import Network, network
from tollbar.core import machine
from tollbar.core.errors import TollbarError
from tollbar.lab.servers.guarded import Guarded
from tollbar.lab.servers.sandbox import Sandbox

ROLES = ("client", "web", "database", "directory")
PORT = 6379
STARTED_LIMIT_S = 120.0
# Ray gives a node up that has not started within half a minute, which a machine under load may need.
STARTED_AGAIN = 3
POLL_S = 0.05
KEPT = ("HOME", "XDG_CACHE_HOME", "PATH", "TOLLBAR_PATH")
# The least that Ray takes: nothing but some lines of text is kept there.
STORE_BYTES = 80_000_000


@dataclass(frozen=True, slots=True)
class Simulated:
    """A cluster that is there."""

    network: Network
    address: str
    environment: Mapping[str, str]
    nodes: dict[str, Guarded] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start a node's part of Ray."""
        role = ROLES[[*self.network.spaces].index(name) % len(ROLES)]
        words = (f"--address={self.address}", '--resources={"tollbar": 1}', f"--labels=tollbar.io/role={role}")
        self.nodes[name] = _ray(self.network, name, self.environment, *words)

    def wait_for(self, places: Callable[[], Sequence[ClusterNode]]) -> None:
        """Until all its nodes have joined. Raises TollbarError."""
        count, again = len(self.network.spaces), STARTED_AGAIN

        def have_joined() -> bool:
            nonlocal again
            for name in [name for name, node in self.nodes.items() if again and node.fault()]:
                again -= 1
                self.start(name)
            return sum(one.holds_resource for one in places()) == count

        _until(have_joined, self.nodes.values())


@contextmanager
def simulated(count: int) -> Iterator[Simulated]:
    """Yield a cluster of `count` nodes, `node-1` and so on; this process moves to its network.

    Raises TollbarError.
    """
    with Sandbox() as sandbox:
        made = network(sandbox, [f"node-{number}" for number in range(1, count + 1)])
        # Ray and its client stay off the measured core.
        machine.keep_off(machine.measuring_core())
        token = sandbox.directory / "token"
        token.touch(0o600)
        token.write_text(secrets.token_hex(32))
        ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0"}
        before = {name: os.environ.get(name) for name in ours}
        os.environ |= ours
        address = f"{made.hub.address}:{PORT}"
        # The nodes' user is this one, with the same cache: they are one machine.
        environment = {**ours, **{name: os.environ[name] for name in KEPT if name in os.environ}}
        try:
            head = _ray(made, "hub", environment, "--head", f"--port={PORT}", "--include-dashboard=false")
            made.enter()
            _wait_for(made.hub.address, head)
            cluster = Simulated(made, address, environment)
            for name in made.spaces:
                cluster.start(name)
            yield cluster
        finally:
            for space in [*made.spaces.values(), made.hub]:
                made.end(space)
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _ray(made: Network, name: str, environment: Mapping[str, str], *words: str) -> Guarded:
    space = made.spaces.get(name, made.hub)
    # In it are sockets, whose paths may have 107 letters, of which Ray takes some seventy.
    short = made.sandbox.directory / f"r{space.address.rpartition('.')[2]}"
    common = (
        f"--node-ip-address={space.address}", f"--temp-dir={short}", "--num-cpus=0", "--num-gpus=0",
        f"--object-store-memory={STORE_BYTES}", "--include-log-monitor=false", "--disable-usage-stats", "--block",
    )  # fmt: skip
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    ray = str(Path(sys.executable).with_name("ray"))
    return space.start(
        made.sandbox, "taskset", "--cpu-list", cores, ray, "start", *words, *common, environment=environment
    )


def _wait_for(host: str, head: Guarded) -> None:
    def answers() -> bool:
        with suppress(OSError):
            socket.create_connection((host, PORT), 1.0).close()
            return True
        return False

    _until(answers, [head])


def _until(found: Callable[[], bool], running: Iterable[Guarded]) -> None:
    deadline = time.monotonic() + STARTED_LIMIT_S
    while not found():
        for one in running:
            if fault := one.fault():
                raise TollbarError(f"the simulated cluster did not start: {fault}")
        if time.monotonic() > deadline:
            raise TollbarError(f"the simulated cluster did not start within {STARTED_LIMIT_S:.0f} s")
        time.sleep(POLL_S)
