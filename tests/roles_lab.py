"""Studies of servers on other machines, and a trial of one of them with observations from outside.

roles_lab.py STUDY CHOICE ROLES…     prints one JSON object: the load client's record of a chunk, a capture, and the
                                     processes' own clocks
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tollbar import study
from tollbar.catalog.servers.places import read_places
from tollbar.core import machine, proc
from tollbar.core.runner import Session
from tollbar.lab import measure, workloads
from tollbar.lab.servers.nodes import Node
from tollbar.study import plan

TOLLBAR = Path(sys.executable).with_name("tollbar")
LIMIT_S = 180.0

STUDY = """
question = "What does a handshake cost with a server on another machine?"
family   = "tls"
servers     = ["embedded"]
providers = ["aws-lc"]
baseline = "plaintext"
choices  = ["plaintext", "tls-1.3"]
[load]
users   = [2]
request = { get = "/bytes/{bytes}" }
expect  = { status = 200, bytes = "{bytes}" }
connection = "new"
[measure]
cost   = "server-cpu"
chunk  = "5 ms"
rounds = 2
blocks = 2
"""
SIGN_IN = """
question = "What does authentication cost with database and directory on machines of their own?"
family   = "web-auth"
servers     = ["httpd"]
providers = ["libcrypto"]
choices  = ["anonymous", "basic"]
baseline = { choice = "anonymous", op = "request" }
[vary]
op        = ["request"]
accounts  = [1000]
VARIED
[load]
users   = [2]
request = { get = "/bytes/{bytes}" }
expect  = { status = 200, bytes = "{bytes}" }
connection = "new"
"""

ALL_PROTOCOLS = 3
DEVICE = "hub0"


@dataclass
class Seen:
    """Packets and bytes of a connection."""

    sent: int = 0
    received: int = 0
    round_trips: int = 0
    highest: dict[bool, int] = field(default_factory=dict)
    asks: bool = False


class Capture(threading.Thread):
    """Capture of TCP with payload between this machine and others, from a packet socket."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.connections: dict[int, Seen] = defaultdict(Seen)
        self._port = port
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS))
        self._socket.bind((DEVICE, ALL_PROTOCOLS))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self._socket.settimeout(0.5)

    def run(self) -> None:
        """Record packets until no more come."""
        while True:
            try:
                self._take(self._socket.recv(1 << 17))
            except TimeoutError:
                return

    def _take(self, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            return
        head = (packet[0] & 15) * 4
        total = struct.unpack_from("!H", packet, 2)[0]
        source, target, sequence = struct.unpack_from("!HHI", packet, head)
        flags, length = packet[head + 13], total - head - (packet[head + 12] >> 4) * 4
        if self._port not in (source, target):
            return
        outward = target == self._port
        seen = self.connections[source if outward else target]
        if flags & 2:
            seen.asks = outward
            seen.round_trips += not outward
        elif length:
            new = sequence + length > seen.highest.get(outward, -1)
            seen.highest[outward] = max(seen.highest.get(outward, -1), sequence + length)
            if not new:
                return
            seen.round_trips += not outward and seen.asks
            seen.asks = outward
            if outward:
                seen.sent += length
            else:
                seen.received += length


def whole_ns(nodes: list[Node]) -> int:
    """Return the CPU time of all processes on these machines, except the agents and those that read accounts."""
    total = 0
    for node in nodes:
        pids = proc.tree(node._process.pid)
        words = {pid: _words(pid) for pid in pids}
        own = [pid for pid in pids if b"tollbar.lab.servers.agent" in words[pid] or b"account" in words[pid]]
        total += proc.cpu_ns(pid for pid in pids if pid not in own and b"keep" not in words[pid])
    return total


def _words(pid: int) -> list[bytes]:
    """Return the command of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def main(path: str, choice: str, *roles: str) -> dict[str, Any]:
    planned = plan.make(study.load([path]), seed=1)
    cell = next(cell for one in planned.studies for cell in one.cells if cell.choice.name == choice)
    core = machine.measuring_core()
    with measure.sandbox_for(planned, None, read_places(roles)) as sandbox:
        assert sandbox is not None
        with workloads.of(cell).up(cell, 1, sandbox, core) as work:
            # Without a lead: the clocks that are read here are read before the chunk.
            work.task["load"]["lead"] = False
            port = int(work.task["load"]["address"].rpartition(":")[2])
            with Session(work.command, work.task, core=work.core, account=work.account) as session:
                session.ready(60)
                capture = Capture(port)
                capture.start()
                before_ns = whole_ns([*sandbox.nodes.values()])
                chunk = session.advance(0.2, 16, 60)
                after_ns = whole_ns([*sandbox.nodes.values()])
                capture.join()
                last = session.finish()
    seen = capture.connections.values()
    return {
        "operations": chunk.operations,
        "components": {name: one.cpu_ns for name, one in chunk.observed.components.items()},
        "whole_ns": after_ns - before_ns,
        "network": {name: chunk.observed.value_of(f"network-{name}") for name in ("sent", "received", "round-trips")},
        "captured": {
            "sent": sum(one.sent for one in seen),
            "received": sum(one.received for one in seen),
            "round-trips": sum(one.round_trips for one in seen),
        },
        "round_trip_ns": dict(last.load.round_trip_ns) if last.load else {},
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
