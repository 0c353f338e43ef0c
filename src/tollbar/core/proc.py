"""Processes of a server as /proc shows them: their tree, CPU time, sockets and libraries."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

LISTENING = "0A"
# The process clock that counts nanoseconds.
CPUCLOCK_SCHED = 2
# The kernel's command number for removing System V shared memory.
IPC_RMID = 0
# Flag of an ending thread, from the kernel's include/linux/sched.h; see proc(5).
PF_EXITING = 0x4
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_LIBRARY = re.compile(r"/lib(ssl|crypto)[^/]*\.so[^/]*$")


def start_time(pid: int) -> int | None:
    """Return the start time of the process in ticks since boot; with its id it is a unique name.

    Returns None if there is no such process, or only a zombie.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields and _runs(fields) else None


def runs(pid: int) -> bool:
    """Return whether a thread of the process is running and not ending.

    The kernel marks all threads of an ending process before it closes its files.
    """
    stats = (_read(f"/proc/{pid}/task/{thread}/stat").rpartition(")")[2].split() for thread in _threads(pid))
    return any(not int(fields[6]) & PF_EXITING for fields in stats if len(fields) > 6)


def cpu_ns(pids: Iterable[int]) -> int:
    """Return the CPU time of these processes, including ended threads, in nanoseconds.

    Their children that ended and were waited for count in clock ticks, so up to `TICK_NS` is missing. A process that is
    gone counts zero.
    """
    total = 0
    for pid in pids:
        fields = _stat(pid)
        # The clock id of another process is computed from its process id; see clock_getcpuclockid(3).
        with suppress(OSError):
            total += time.clock_gettime_ns((~pid << 3) | CPUCLOCK_SCHED)
            total += (int(fields[13]) + int(fields[14])) * TICK_NS if fields else 0
    return total


def boot_id() -> str:
    """Return the id of this boot of the machine; tick counts start again at each boot."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def tree(root: int) -> tuple[int, ...]:
    """Return the process and all its visible descendants."""
    found = [root]
    for pid in found:
        found += _children(pid)
    return tuple(found)


def keep_on(root: int, core: int) -> None:
    """Pin every thread of the process and of its descendants to this core. Raises OSError if one cannot be pinned."""
    kept: set[int] = set()
    # New processes may inherit the old core, so the tree is searched again until none is new.
    while new := {thread for pid in tree(root) for thread in _threads(pid)} - kept:
        for thread in new:
            # A thread that has ended needs no core.
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, {core})
        kept |= new


def only_core(pids: Iterable[int]) -> int | None:
    """Return the one core that all these processes and their descendants are pinned to; None if there are several."""
    cores: set[int] = set()
    for pid in pids:
        for one in tree(pid):
            with suppress(OSError):
                cores |= os.sched_getaffinity(one)
    return cores.pop() if len(cores) == 1 else None


def run_queue_wait_ns(root: int) -> int:
    """Return the time that the threads of the process and its descendants waited for a core, in nanoseconds."""
    threads = (f"/proc/{pid}/task/{thread}" for pid in tree(root) for thread in _threads(pid))
    scheduled = (_read(f"{thread}/schedstat").split() for thread in threads)
    # Time on a core, time in the queue, number of time slices; empty if the kernel does not report them.
    return sum(int(fields[1]) for fields in scheduled if len(fields) > 1)


def end_session(leader: int, limit_s: float) -> bool:
    """Kill the remaining processes of the session of this ended leader. Return False if a process remains.

    Their System V shared memory is removed as well: PostgreSQL, when killed, leaves it behind.

    The kernel does not reuse the session's id while the session has a process. If it is reused afterwards, a process of
    that id runs, and nothing is killed.
    """
    deadline = time.monotonic() + limit_s
    ended: set[int] = set()
    while start_time(leader) is None and (killed := _kill(lambda pid: _is_of_session(pid, leader))):
        ended |= killed
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    # Processes of other sessions that map the memory end by themselves a moment later.
    while ended and remove_segments(ended) and time.monotonic() < deadline:
        time.sleep(0.002)
    return True


def writers(folder: Path) -> tuple[int, ...]:
    """Return the processes whose standard error is a file in this folder: those that a run started."""
    folder = folder.resolve()
    return tuple(pid for pid in _all_pids() if _writes_in(pid, folder))


def end_writers(folder: Path) -> set[int]:
    """Kill every process whose standard error is a file in this folder. Return their ids."""
    folder = folder.resolve()
    return _kill(lambda pid: _writes_in(pid, folder))


def remove_segments(makers: Collection[int], owners: Collection[int] = ()) -> int:
    """Remove the unused System V shared memory whose maker has ended.

    A segment is removed if its maker is among `makers` or its owner among `owners`: a maker that ended by itself is
    known only by its account. Returns the number of segments of these makers that are still used.
    """
    shmctl = ctypes.CDLL(None, use_errno=True).shmctl
    used = 0
    for line in _read("/proc/sysvipc/shm").splitlines()[1:]:
        # Key, id, permissions, size, maker, last user, number of attached processes, owner.
        fields = line.split()
        maker, is_used = int(fields[4]), fields[6] != "0"
        if not is_used and (maker in makers or (int(fields[7]) in owners and not Path(f"/proc/{maker}").exists())):
            shmctl(int(fields[1]), IPC_RMID, None)
        elif maker in makers:
            used += 1
    return used


def _writes_in(pid: int, folder: Path) -> bool:
    with suppress(OSError):
        return Path(os.readlink(f"/proc/{pid}/fd/2")).is_relative_to(folder)
    return False


def _kill(is_meant: Callable[[int], bool]) -> set[int]:
    """Kill every process that satisfies `is_meant`. Return their ids."""
    killed = set()
    for pid in _all_pids():
        with suppress(OSError):
            # The handle precedes the test, so a reused process id cannot be killed by mistake.
            handle = os.pidfd_open(pid)
            try:
                if is_meant(pid):
                    killed.add(pid)
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)
    return killed


def listens(pids: Iterable[int], address: str, port: int) -> bool:
    """Return whether one of these processes has the socket that accepts connections to this address and port."""
    sockets = listeners(address, port)
    return any(_has(pid, sockets) for pid in pids)


def listeners(address: str, port: int) -> frozenset[str]:
    """Return the sockets that accept connections to this address and port: those bound there, else to any address."""
    bound: dict[IPv4Address | IPv6Address, set[str]] = defaultdict(set)
    for version in ("", "6"):
        for line in _read(f"/proc/net/tcp{version}").splitlines()[1:]:
            fields = line.split()
            # Listeners come first; after a heavy load thousands of other lines follow.
            if fields[3] != LISTENING:
                break
            at, _, of = fields[1].rpartition(":")
            if int(of, 16) == port:
                bound[_address(at)].add(f"socket:[{fields[9]}]")
    wanted, anywhere = ip_address(address), (IPv4Address(0), IPv6Address(0))
    return frozenset(next((bound[at] for at in (wanted, *anywhere) if at in bound), ()))


def holders(sockets: frozenset[str]) -> tuple[int, ...]:
    """Return the processes that have one of these sockets, among those whose files this user may see."""
    return tuple(pid for pid in _all_pids() if _has(pid, sockets))


def shows_files(pid: int) -> bool:
    """Return whether this user may see the open files of the process."""
    return os.access(f"/proc/{pid}/fd", os.R_OK)


def program(pid: int) -> str:
    """Return the name of the process's program, as the kernel keeps it: its first 15 letters."""
    return _read(f"/proc/{pid}/comm").strip()


def tls_libraries(pids: Iterable[int]) -> dict[str, tuple[str, ...]]:
    """Return the files of libssl and libcrypto that these processes have mapped: `{"ssl": …, "crypto": …}`."""
    found: dict[str, set[str]] = {"ssl": set(), "crypto": set()}
    for pid in pids:
        for line in _read(f"/proc/{pid}/maps").splitlines():
            # Address, permissions, offset, device, inode; the rest is the path, which may contain spaces.
            path = line.split(maxsplit=5)[5:]
            if path and (library := tls_library(path[0])):
                found[library].add(path[0])
    return {name: tuple(sorted(paths)) for name, paths in found.items()}


def tls_library(path: str) -> str | None:
    """Return `ssl` or `crypto` for a library's file name, else None."""
    match = _LIBRARY.search(path)
    return match.group(1) if match else None


def data_of(pid: int, library: str) -> bytes:
    """Return the current values of the library's variables in the process; empty if it is not mapped.

    Raises OSError if this user may not read the process's memory.
    """
    held, end = [], None
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in _read(f"/proc/{pid}/maps").splitlines():
            # Address, permissions, offset, device, inode, and the path, if there is one.
            place, permissions, _, _, _, path = [*line.split(maxsplit=5), ""][:6]
            start, stop = (int(address, 16) for address in place.split("-"))
            # Uninitialised variables follow the file's pages, in anonymous pages.
            if "w" in permissions and (path == library or (not path and start == end)):
                end = stop
                memory.seek(start)
                held.append(memory.read(stop - start))
    return b"".join(held)


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        lists = [Path(f"/proc/{pid}/task/{thread}/children").read_text() for thread in threads]
    except (FileNotFoundError, ProcessLookupError):
        # The process ended, perhaps during this read, or the kernel was built without these lists.
        return [other for other in _all_pids() if (_stat(other) or ["", ""])[1] == str(pid)]
    return [int(child) for children in lists for child in children.split()]


def _threads(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
    return []


def _is_of_session(pid: int, leader: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[3] == str(leader) and _runs(fields)


def _runs(fields: list[str]) -> bool:
    # A zombie has ended and only waits for its parent.
    return fields[0] not in "ZX"


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on; the name before it may contain anything."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > 19 else None


def _address(hexadecimal: str) -> IPv4Address | IPv6Address:
    """Return an address of /proc/net/tcp, which prints each four bytes as a number in the machine's byte order."""
    words = [int(hexadecimal[at : at + 8], 16) for at in range(0, len(hexadecimal), 8)]
    address = ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    return getattr(address, "ipv4_mapped", None) or address


def _has(pid: int, sockets: frozenset[str]) -> bool:
    return not sockets.isdisjoint(_open_files(pid)) if sockets else False


def _open_files(pid: int) -> set[str]:
    folder = f"/proc/{pid}/fd"
    links = set()
    # If the process ends or closes a file meanwhile, its other files still count.
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                links.add(os.readlink(f"{folder}/{name}"))
    return links


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError):
        return ""
