"""System calls of running processes, by strace: their numbers, and the bytes that go through sockets."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tollbar.core import proc

# Attaching takes milliseconds for each process; a server with many may be slow on a busy machine.
ATTACH_LIMIT_S = 20.0
POLL_S = 0.005
# The last answer arrives before strace has written the end of the call that sent it.
WRITTEN_S = 0.2
# Longer than any statement, because messages to a database are parsed.
WHOLE_STRING_BYTES = 1 << 20
# A descriptor is followed by its description, in which `>` never comes before a comma or bracket.
CALL = re.compile(r"\d+ +(\w+)\((\d*)(?:<(.*?)>(?=[,)]))?(.*)$")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)$")
# A runner's reads of accounts are the lab's own work; whole strings are in hexadecimal.
ACCOUNTS = ("/proc/", "".join(rf"\x{byte:02x}" for byte in b"/proc/"))
SENDING = ("write", "writev", "sendto", "sendmsg", "sendfile", "sendfile64")
RECEIVING = ("read", "readv", "recvfrom", "recvmsg")
SOCKETS = ("TCP", "UNIX")


@dataclass
class Traced:
    """Observations of some processes."""

    calls: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    received: int = 0
    said: bytearray = field(default_factory=bytearray)
    """Sent bytes, if whole strings were requested."""


@contextmanager
def attached(root: int, file: Path, *, whole: bool = False) -> Iterator[None]:
    """Trace all processes of a component, and their children, into a file.

    Raises TimeoutError.
    """
    deadline = time.monotonic() + ATTACH_LIMIT_S
    while (watching := _attach(below(root), file, deadline, whole=whole)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"strace did not attach to all of {below(root)} within {ATTACH_LIMIT_S:.0f} s")
    try:
        yield
        time.sleep(WRITTEN_S)
    finally:
        _let_go(watching)


def _attach(pids: Sequence[int], file: Path, deadline: float, *, whole: bool) -> subprocess.Popen[bytes] | None:
    """Return an strace that traces each of these, or None if one of them ended meanwhile or time is over."""
    words = ["strace", "-f", "-yy", "-o", str(file), "-s", str(WHOLE_STRING_BYTES if whole else 0)]
    words += ["-xx"] if whole else []
    watching = subprocess.Popen([*words, *(f"--attach={pid}" for pid in pids)], stderr=subprocess.DEVNULL)
    while not all(_tracers(pid) == {watching.pid} for pid in pids):
        gone = any(not _tracers(pid) for pid in pids)
        if gone or watching.poll() is not None or time.monotonic() > deadline:
            _let_go(watching)
            return None
        time.sleep(POLL_S)
    return watching


def _let_go(watching: subprocess.Popen[bytes]) -> None:
    """Interrupt strace, which detaches and writes its buffer."""
    watching.send_signal(signal.SIGINT)
    watching.wait(ATTACH_LIMIT_S)


def below(root: int) -> tuple[int, ...]:
    """Return the processes of a component without its root, the guard, which only waits for them."""
    return proc.tree(root)[1:]


def read(file: Path, is_counted: Callable[[str], bool] = lambda about: True, *, is_session: bool = False) -> Traced:
    """Return the calls of a trace, and the bytes of those sockets whose description is counted.

    For a session only calls between the line that requests a chunk and the chunk's own line count.
    """
    traced = Traced()
    waiting: dict[tuple[str, str], str] = {}
    for line in file.read_text(errors="replace").splitlines():
        if match := RESUMED.match(line):
            pid, name, rest = match.groups()
            _transfer(traced, name, waiting.pop((pid, name), ""), rest, is_counted)
            continue
        match = CALL.match(line)
        if match is None:
            continue
        name, descriptor, about, rest = match.groups()
        if is_session and name == "write" and descriptor == "1":
            return traced
        if is_session and name == "read" and descriptor == "0":
            traced = Traced()
            continue
        # The engine prints its counts on standard error.
        if name == "write" and descriptor == "2":
            continue
        if any(account in line for account in ACCOUNTS):
            continue
        traced.calls[name] += 1
        if rest.endswith("<unfinished ...>"):
            waiting[line.split()[0], name] = about or ""
        _transfer(traced, name, about or "", rest, is_counted)
    return traced


def _transfer(traced: Traced, name: str, about: str, rest: str, is_counted: Callable[[str], bool]) -> None:
    """Add the bytes that a call has sent or received."""
    result = re.search(r"= (\d+)(?: \(.*\))?$", rest)
    if result is None or not about.startswith(SOCKETS) or not is_counted(about):
        return
    if name in SENDING:
        traced.sent += int(result[1])
        text = "".join(re.findall(r'"((?:\\x[0-9a-f]{2})*)"', rest)).replace("\\x", "")
        traced.said += bytes.fromhex(text)[: int(result[1])]
    elif name in RECEIVING:
        traced.received += int(result[1])


def _tracers(pid: int) -> set[int]:
    """Return the tracers of a process's threads, 0 for none; empty if it has ended."""
    found = set()
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):
            lines = (line.split() for line in status.read_text().splitlines())
            found |= {int(words[1]) for words in lines if words[:1] == ["TracerPid:"]}
    return found


# A client's requests to a database are counted by its messages: executed statements, prepared or not.


def statements(database: str, said: bytes) -> int:
    """Return the number of executed statements in the bytes sent to a database."""
    return sum(1 for kind in MESSAGES[database](said) if kind in RUNNING[database])


def _of_postgresql(said: bytes) -> Iterator[int]:
    """Yield kinds of messages: a byte each, then a length that counts itself."""
    at = 0
    while at + 5 <= len(said):
        yield said[at]
        at += 1 + int.from_bytes(said[at + 1 : at + 5], "big")


def _of_mariadb(said: bytes) -> Iterator[int]:
    """Yield kinds of commands: after a length of three bytes and a number."""
    at = 0
    while at + 5 <= len(said):
        yield said[at + 4]
        at += 4 + int.from_bytes(said[at : at + 3], "little")


MESSAGES: Mapping[str, Callable[[bytes], Iterable[int]]] = {"postgresql": _of_postgresql, "mariadb": _of_mariadb}
# Execute and Query; COM_STMT_EXECUTE and COM_QUERY.
RUNNING = {"postgresql": b"EQ", "mariadb": b"\x17\x03"}
