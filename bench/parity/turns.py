"""Waits and receives of servers, counted by the kernel while server and client run as they are measured.

strace stops a process at every call. Its client runs meanwhile and has the next request ready before the server looks
for it: counted by strace, a server that does more work waits less. The kernel's tracepoints stop nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.parity import trace

TRACING = Path("/sys/kernel/tracing")
WAITS = ("epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select")
RECEIVES = ("recvfrom", "recvmsg", "read", "readv")
CALLS = (*WAITS, *RECEIVES)
# At the ends of a chunk a server may wait once more or once less: 1 of 400 changes no printed digit.
OPERATIONS = 400
# Lines of some 100 bytes, of the components alone.
BUFFER_KIB = 16384
# `tollbar-engine-123     [001] d..3.   12.345678: sys_recvfrom(fd: 5, ...`
CALL = re.compile(r"-(\d+) +\[\d+\] .*?: sys_(\w+)\(")
LOST = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")


def can_count() -> bool:
    """Return whether the kernel counts for this process: as root, with its trace files mounted."""
    return os.access(TRACING / "instances", os.W_OK) and (TRACING / "events/syscalls").is_dir()


@contextmanager
def counted(components: Mapping[str, int], found: Counter[str]) -> Iterator[None]:
    """Count the calls of each component's processes and their children while the context lasts: `database: recvfrom`.

    `found` gets the calls by the component's name; the root of a component is its guard's process. Raises OSError.
    """
    instance = TRACING / "instances" / f"tollbar-{os.getpid()}"
    instance.mkdir()
    try:
        of = {thread: name for name, root in components.items() for thread in _threads(root)}
        (instance / "buffer_size_kb").write_text(str(BUFFER_KIB))
        (instance / "options/event-fork").write_text("1")
        (instance / "set_event_pid").write_text(" ".join(map(str, of)))
        for call in CALLS:
            if (enable := instance / f"events/syscalls/sys_enter_{call}/enable").exists():
                enable.write_text("1")
        yield
        (instance / "tracing_on").write_text("0")
        of |= {thread: name for name, root in components.items() for thread in _threads(root)}
        found.update(calls((instance / "trace").read_text(), of))
    finally:
        (instance / "events/enable").write_text("0")
        instance.rmdir()


def calls(text: str, of: Mapping[int, str]) -> Counter[str]:
    """Return the calls of the threads of each component, by name; `of` has the component of a thread.

    A process that ended meanwhile counts for its component if there is only one.
    """
    if (lost := LOST.search(text)) and lost[1] != lost[2]:
        raise OSError(f"the kernel's buffer holds {lost[1]} of {lost[2]} calls")
    only = next(iter({*of.values()})) if len({*of.values()}) == 1 else None
    found = Counter[str]()
    for thread, call in CALL.findall(text):
        if (name := of.get(int(thread), only)) is not None:
            found[f"{name}: {call}"] += 1
    return found


def _threads(root: int) -> Iterator[int]:
    for pid in trace.below(root):
        yield from (int(task.name) for task in Path(f"/proc/{pid}/task").glob("*"))
