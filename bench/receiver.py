"""Receiver: the cost of a server's receiving in the kernel, which the sender pays on loopback. Two minutes, as root.

On loopback the kernel handles received data inside the sender's call. The work to accept a connection, and to take its
end, is so in the client's account. Here server and client are also joined by a veth pair whose receiving ends have a
kernel thread each (threaded NAPI), and each side's thread is added to that side's account.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

from bench.clients import LIMIT_S, Spoilt
from bench.figures import ENGINE, Figure, unmeasured
from bench.load import PLAINTEXT, TLS_13, Contestant, Settings, contestant_of, load_of
from tollbar.catalog.servers import NotStarted
from tollbar.core import machine, proc
from tollbar.core.errors import TollbarError
from tollbar.core.runner import Session, Stopped
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox

NETWORK, SERVER, CLIENT = "10.78.0", "tbserver", "tbclient"
LOOPBACK, APART = 0, 1
CLONE_NEWNET = 0x40000000
# Constants of `linux/sockios.h` and `linux/ethtool.h`: a veth has a NAPI instance only if it gathers packets (GRO), and
# passes it packets of TCP only if their sender does not leave cutting them to the device (TSO).
SIOCETHTOOL, ETHTOOL_STSO, ETHTOOL_SGRO = 0x8946, 0x1F, 0x2C
# Nearly as on loopback: an answer of 4 KiB is one packet.
LONGEST_BYTES = 65535
# A sysfs has the network devices of the process that mounted it.
THREADED = "mount -t sysfs sysfs /sys && echo 1 >/sys/class/net/$1/threaded"
# Connections of a round, and rounds, whose median counts; the two networks take turns.
CONNECTIONS, ROUNDS = 800, 5
CELLS: Mapping[str, Settings] = {
    "plaintext": PLAINTEXT,
    "tls-1.3, ecdsa-p256": {**TLS_13, "certificate": "ecdsa-p256"},
    "tls-1.3, rsa-2048": {**TLS_13, "certificate": "rsa-2048"},
}
SERVERS = {"nginx": "libcrypto", "embedded": "aws-lc"}


def figures() -> Iterator[Figure]:
    """Yield for each server and cell the server's cost on both networks, and each ratio to plaintext."""
    try:
        for name, provider in SERVERS.items():
            yield from _of(name, contestant_of(name, provider))
    except (NotStarted, Spoilt, Stopped, TollbarError, OSError, subprocess.SubprocessError) as error:
        yield unmeasured("receiver: what is left of it", error)


def _of(name: str, server: Contestant) -> Iterator[Figure]:
    found = {cell: _medians(server, settings) for cell, settings in CELLS.items()}
    for cell, (loopback, apart) in found.items():
        yield Figure(
            f"receiver: server CPU a connection, {cell} on {name}, own receiving over loopback",
            "(for comparison)",
            f"{apart.server_us - loopback.server_us:+.1f} µs ({apart.server_us:.1f} / {loopback.server_us:.1f} µs, "
            f"of which receiving {apart.receiving_us:.1f}; client {apart.client_us:.1f} / {loopback.client_us:.1f} µs)",
            None,
        )
    for cell in list(CELLS)[1:]:
        high, more = (
            found[cell][network].server_us / found["plaintext"][network].server_us for network in (LOOPBACK, APART)
        )
        yield Figure(
            f"receiver: {cell} over plaintext on {name}, loopback's ratio over that with own receiving",
            "(for comparison)",
            f"× {high / more:.2f} (× {high:.2f} / × {more:.2f})",
            None,
        )


def _medians(server: Contestant, settings: Settings) -> tuple[Paid, Paid]:
    """Return the medians on loopback and on the veth pair, in turn, both up.

    Raises Spoilt, NotStarted, Stopped, OSError.
    """
    core = machine.measuring_core()
    with ExitStack() as stack:
        trials = [_trial(stack, server, settings, core, {SERVER: (), CLIENT: ()}, "self")]
        threads, network = stack.enter_context(_joined(core))
        trials.append(_trial(stack, server, settings, core, threads, network))
        rounds = [[_round(trial) for trial in trials] for _ in range(ROUNDS)]
    loopback, apart = ([one[network] for one in rounds] for network in (LOOPBACK, APART))
    return Paid.median(loopback), Paid.median(apart)


@dataclass(frozen=True, slots=True)
class Trial:
    """Server and its client, and the kernel threads that receive for each."""

    server: StartedServer
    session: Session
    threads: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Paid:
    """Microseconds of CPU for one connection."""

    server_us: float
    client_us: float
    receiving_us: float
    """CPU time of the server's kernel threads, a part of the server's."""

    @staticmethod
    def median(rounds: Sequence[Paid]) -> Paid:
        """Return the median of each amount, each by itself."""
        return Paid(*(median(getattr(one, name) for one in rounds) for name in Paid.__slots__))


def _trial(
    stack: ExitStack,
    server: Contestant,
    settings: Settings,
    core: int | None,
    threads: Mapping[str, Sequence[int]],
    network: str,
) -> Trial:
    """Start a server in this thread's network, and a client in that of a process.

    Raises as `_medians` does.
    """
    sandbox = stack.enter_context(Sandbox())
    started = stack.enter_context(server.start(sandbox, settings))
    load = {**load_of(started, sandbox, settings, "new"), "users": 1, "lead": False}
    with _in_network(network):
        task = {"mode": "measure", "seed": 1, "load": load}
        session = stack.enter_context(Session((ENGINE, "load"), task, core=core))
    session.ready(LIMIT_S)
    return Trial(started, session, threads)


def _round(trial: Trial) -> Paid:
    own = [pid for root in trial.server.components.values() for pid in proc.tree(root)]
    parts = (own, proc.tree(trial.session.pid), trial.threads[SERVER], trial.threads[CLIENT])
    before = [_ran_ns(pids) for pids in parts]
    done = trial.session.advance(0.0, CONNECTIONS, LIMIT_S).operations
    server, client, receiving, of_client = (
        (_ran_ns(pids) - ran_ns) / done / 1e3 for pids, ran_ns in zip(parts, before, strict=True)
    )
    return Paid(server + receiving, client + of_client, receiving)


def _ran_ns(pids: Sequence[int]) -> int:
    """Return the CPU time of all threads of these processes, kernel threads among them."""
    tasks = (task for pid in pids for task in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(task.read_text().split()[0]) for task in tasks)


@contextmanager
def _joined(core: int | None) -> Iterator[tuple[Mapping[str, Sequence[int]], str]]:
    """Move this thread to a network of its own, joined to a client's by a veth pair.

    Yields the kernel threads that receive for each side, kept on the core, and the process in the client's network.
    Raises OSError, SubprocessError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as home, ExitStack() as stack:
        holder = stack.enter_context(subprocess.Popen(["unshare", "--net", "sleep", "infinity"]))
        stack.callback(holder.kill)
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "no network of its own")
        stack.callback(libc.setns, home.fileno(), CLONE_NEWNET)
        enter = ("nsenter", f"--net=/proc/{holder.pid}/ns/net", "--")
        _until_apart(holder.pid, home)
        _run("ip", "link", "add", SERVER, "type", "veth", "peer", "name", CLIENT, "netns", str(holder.pid))
        for words, device, number in (((), SERVER, 1), (enter, CLIENT, 2)):
            _run(*words, "ip", "address", "add", f"{NETWORK}.{number}/24", "dev", device)
            _run(*words, "ip", "link", "set", device, "mtu", str(LONGEST_BYTES), "up")
            _run(*words, "ip", "link", "set", "lo", "up")
        _gather(SERVER)
        with _in_network(str(holder.pid)):
            _gather(CLIENT)
        for words, device in (((), SERVER), (enter, CLIENT)):
            _run(*words, "unshare", "--mount", "sh", "-c", THREADED, "sh", device)
        threads = {device: _threads_of(device) for device in (SERVER, CLIENT)}
        for thread in (*threads[SERVER], *threads[CLIENT]):
            os.sched_setaffinity(thread, {core} if core is not None else os.sched_getaffinity(0))
        # Servers that are started from here listen where the client reaches them.
        stack.callback(vars(driver).update, ADDRESS=vars(driver)["ADDRESS"])
        vars(driver).update(ADDRESS=f"{NETWORK}.1")
        yield threads, str(holder.pid)


def _until_apart(pid: int, home: IO[bytes]) -> None:
    """Wait until a process has a network of its own."""
    own = os.fstat(home.fileno()).st_ino
    while os.stat(f"/proc/{pid}/ns/net").st_ino == own:
        os.sched_yield()


@contextmanager
def _in_network(process: str) -> Iterator[None]:
    """Put this thread, and processes it starts meanwhile, into the network of a process.

    Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as here, open(f"/proc/{process}/ns/net", "rb") as there:
        if process != "self" and libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "another network cannot be entered")
        try:
            yield
        finally:
            libc.setns(here.fileno(), CLONE_NEWNET)


def _gather(device: str) -> None:
    """Make a device gather packets, and its peer's NAPI instance receive its packets.

    Raises OSError.
    """
    for command, value in ((ETHTOOL_STSO, 0), (ETHTOOL_SGRO, 1)):
        words = ctypes.create_string_buffer(struct.pack("II", command, value))
        request = struct.pack("16sP", device.encode(), ctypes.addressof(words)) + bytes(16)
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def _threads_of(device: str) -> tuple[int, ...]:
    """Return the kernel threads that receive for a device: the kernel names them `napi/DEVICE-NUMBER`.

    Raises OSError.
    """
    names = {int(at.parent.name): at.read_text().strip() for at in Path("/proc").glob("[0-9]*/comm")}
    found = tuple(pid for pid, name in names.items() if name.startswith(f"napi/{device}"[:14]))
    if not found:
        raise OSError(f"the kernel has no thread for {device}")
    return found


def _run(*words: str) -> Any:
    return subprocess.run(words, check=True, capture_output=True, timeout=10)
