"""What /proc shows of a server's processes: which they are, what they listen on, what they loaded."""

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
# Of the clocks that a process has, the one that counts nanoseconds.
CPUCLOCK_SCHED = 2
# The kernel's number of the call that removes System V shared memory.
IPC_RMID = 0
# A flag of a thread that ends, of the kernel's include/linux/sched.h: see proc(5).
PF_EXITING = 0x4
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_LIBRARY = re.compile(r"/lib(ssl|crypto)[^/]*\.so[^/]*$")


def start_time(pid: int) -> int | None:
    """When the process started, in ticks since boot: with its id, a name that is never given again.

    None where there is no such process, or one that has ended and was not waited for yet.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields and _runs(fields) else None


def runs(pid: int) -> bool:
    """Return whether a thread of the process runs that has not begun to end.

    Of a process that ends, the kernel closes the files after it has set this mark on all threads.
    """
    stats = (_read(f"/proc/{pid}/task/{thread}/stat").rpartition(")")[2].split() for thread in _threads(pid))
    return any(not int(fields[6]) & PF_EXITING for fields in stats if len(fields) > 6)


def cpu_ns(pids: Iterable[int]) -> int:
    """CPU time of these processes, all threads and those that ended included, in nanoseconds.

    Of their children that ended and were waited for, by the kernel's clock ticks: some `TICK_NS` too little. A process
    that is gone counts nothing.
    """
    total = 0
    for pid in pids:
        fields = _stat(pid)
        # The clock of another process has a number that its id makes: see clock_getcpuclockid(3).
        with suppress(OSError):
            total += time.clock_gettime_ns((~pid << 3) | CPUCLOCK_SCHED)
            total += (int(fields[13]) + int(fields[14])) * TICK_NS if fields else 0
    return total


def boot_id() -> str:
    """Which start of the machine this is: ticks are counted anew after each."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def tree(root: int) -> tuple[int, ...]:
    """The process and all below it, as far as they were seen."""
    found = [root]
    for pid in found:
        found += _children(pid)
    return tuple(found)


def keep_on(root: int, core: int) -> None:
    """Keeps every thread of the process, and of all below it, on this core. Raises OSError where one cannot be."""
    kept: set[int] = set()
    # What one of them starts meanwhile may have its old core, so that they are looked through again.
    while new := {thread for pid in tree(root) for thread in _threads(pid)} - kept:
        for thread in new:
            # One that has ended is on no core.
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, {core})
        kept |= new


def only_core(pids: Iterable[int]) -> int | None:
    """The one core that all these processes and all below them are kept on; None: they may move, or are on several."""
    cores: set[int] = set()
    for pid in pids:
        for one in tree(pid):
            with suppress(OSError):
                cores |= os.sched_getaffinity(one)
    return cores.pop() if len(cores) == 1 else None


def run_queue_wait_ns(root: int) -> int:
    """For how long the threads of the process, and of all below it, would have run and others had their core."""
    threads = (f"/proc/{pid}/task/{thread}" for pid in tree(root) for thread in _threads(pid))
    scheduled = (_read(f"{thread}/schedstat").split() for thread in threads)
    # Time on a core, time in the queue for one, times it got one; nothing where the kernel does not tell.
    return sum(int(fields[1]) for fields in scheduled if len(fields) > 1)


def end_session(leader: int, limit_s: float) -> bool:
    """Kill what is left of the session that this process, which has ended, once began. False: a process is left.

    The memory that these processes have shared is removed with them: PostgreSQL has no time to do it.

    The kernel gives the session's id to no other process while there is one in the session. Afterwards it may; then
    a process of that id runs, and is quiet.
    """
    deadline = time.monotonic() + limit_s
    ended: set[int] = set()
    while start_time(leader) is None and (killed := _kill(lambda pid: _is_of_session(pid, leader))):
        ended |= killed
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    # Processes of other sessions that have mapped it end by themselves a moment later.
    while ended and remove_segments(ended) and time.monotonic() < deadline:
        time.sleep(0.002)
    return True


def writers(folder: Path) -> tuple[int, ...]:
    """Return every process whose standard error is a file in this folder: those that a run has started in it."""
    folder = folder.resolve()
    return tuple(pid for pid in _all_pids() if _writes_in(pid, folder))


def end_writers(folder: Path) -> set[int]:
    """Kill every process whose standard error is a file in this folder, and return which those were."""
    folder = folder.resolve()
    return _kill(lambda pid: _writes_in(pid, folder))


def remove_segments(makers: Collection[int], owners: Collection[int] = ()) -> int:
    """Remove the System V shared memory that no process uses and whose maker has ended.

    It is removed where its maker is one of these processes or its owner one of these accounts: a maker that ended on
    its own left only its account. Returns the number of segments of these makers that are still used.
    """
    shmctl = ctypes.CDLL(None, use_errno=True).shmctl
    used = 0
    for line in _read("/proc/sysvipc/shm").splitlines()[1:]:
        # Key, id, permissions, size, maker, last user, number of processes that use it, owner.
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
    """Kill every process that is meant, and return which those were."""
    killed = set()
    for pid in _all_pids():
        with suppress(OSError):
            # Opened before it is examined: what is killed is what was seen, and not a process that got its id since.
            handle = os.pidfd_open(pid)
            try:
                if is_meant(pid):
                    killed.add(pid)
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)
    return killed


def listens(pids: Iterable[int], address: str, port: int) -> bool:
    """Whether what takes connections to this address and port is a socket of one of these processes."""
    sockets = listeners(address, port)
    return any(_has(pid, sockets) for pid in pids)


def listeners(address: str, port: int) -> frozenset[str]:
    """What takes connections to this address and port: sockets bound there, else those bound anywhere."""
    bound: dict[IPv4Address | IPv6Address, set[str]] = defaultdict(set)
    for version in ("", "6"):
        for line in _read(f"/proc/net/tcp{version}").splitlines()[1:]:
            fields = line.split()
            # Listeners come first, and after a heavy load there may be thousands of others.
            if fields[3] != LISTENING:
                break
            at, _, of = fields[1].rpartition(":")
            if int(of, 16) == port:
                bound[_address(at)].add(f"socket:[{fields[9]}]")
    wanted, anywhere = ip_address(address), (IPv4Address(0), IPv6Address(0))
    return frozenset(next((bound[at] for at in (wanted, *anywhere) if at in bound), ()))


def holders(sockets: frozenset[str]) -> tuple[int, ...]:
    """Every process that has one of these sockets, of those whose files may be looked at."""
    return tuple(pid for pid in _all_pids() if _has(pid, sockets))


def shows_files(pid: int) -> bool:
    """Whether this user may see which files the process has."""
    return os.access(f"/proc/{pid}/fd", os.R_OK)


def program(pid: int) -> str:
    """The name of what the process runs, as the kernel keeps it: its first 15 letters."""
    return _read(f"/proc/{pid}/comm").strip()


def tls_libraries(pids: Iterable[int]) -> dict[str, tuple[str, ...]]:
    """The files of libssl and libcrypto that these processes have mapped: `{"ssl": …, "crypto": …}`."""
    found: dict[str, set[str]] = {"ssl": set(), "crypto": set()}
    for pid in pids:
        for line in _read(f"/proc/{pid}/maps").splitlines():
            # Address, permissions, offset, device, inode, and the rest is the path, spaces and all.
            path = line.split(maxsplit=5)[5:]
            if path and (library := tls_library(path[0])):
                found[library].add(path[0])
    return {name: tuple(sorted(paths)) for name, paths in found.items()}


def tls_library(path: str) -> str | None:
    """Which of the two a file is, by its name; None: neither."""
    match = _LIBRARY.search(path)
    return match.group(1) if match else None


def data_of(pid: int, library: str) -> bytes:
    """What the variables of this library hold in the process at this moment: nothing where it has not mapped it.

    Raises OSError where this user may not look into the process.
    """
    held, end = [], None
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in _read(f"/proc/{pid}/maps").splitlines():
            # Address, permissions, offset, device, inode, and the path, if there is one.
            place, permissions, _, _, _, path = [*line.split(maxsplit=5), ""][:6]
            start, stop = (int(address, 16) for address in place.split("-"))
            # Variables without a first value are behind the file's pages, in pages of no file.
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
        # The process is gone (in the midst of reading it, perhaps), or the kernel was built without these lists.
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
    # A zombie is only waited for by its parent, which may take its time.
    return fields[0] not in "ZX"


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on: the name before it may hold anything."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > 19 else None


def _address(hexadecimal: str) -> IPv4Address | IPv6Address:
    """An address of /proc/net/tcp, which prints each four bytes as a number of the machine's own byte order."""
    words = [int(hexadecimal[at : at + 8], 16) for at in range(0, len(hexadecimal), 8)]
    address = ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    return getattr(address, "ipv4_mapped", None) or address


def _has(pid: int, sockets: frozenset[str]) -> bool:
    return not sockets.isdisjoint(_open_files(pid)) if sockets else False


def _open_files(pid: int) -> set[str]:
    folder = f"/proc/{pid}/fd"
    links = set()
    # It may end meanwhile, and one of its files may be closed: the others count all the same.
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
