"""Readers and name servers that are silent: Ctrl-C and SIGTERM end each wait for them."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import socket
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from conftest import command
from patience import PATIENCE_S
from tollbar.core import hosts, output
from tollbar.core.errors import TollbarError
from tollbar.lab.tls import url

PIPE_BYTES = 4096
# Each with the stream or file that nothing reads from.
BLOCKED: Mapping[str, tuple[str, Sequence[str]]] = {
    "a page of help": ("stdout", ["run", "--help"]),
    "an export": ("stdout", ["export", "RUN"]),
    "a run": ("stderr", ["run", "STUDY", "--no-report", "--blocks", "500"]),
    "an export to a pipe": ("PIPE", ["export", "RUN", "--output", "PIPE"]),
    "cells to a pipe": ("PIPE", ["export", "RUN", "--format", "json", "--output", "PIPE"]),
    "a report to a pipe": ("PIPE", ["report", "RUN", "--output", "PIPE"]),
}


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Yield both ends of a named pipe with room for one page, from which nothing is read."""
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(tmp_path / "pipe", os.O_WRONLY)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    yield reading, writing
    os.close(reading)
    os.close(writing)


def unread(handle: int) -> int:
    """Return the number of bytes in a pipe."""
    found = array.array("i", [0])
    fcntl.ioctl(handle, termios.FIONREAD, found)
    return found[0]


@pytest.mark.share(4)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", BLOCKED)
def test_a_signal_ends_a_command_whose_reader_stopped_reading(
    fake_runs: Path, fake_study: Path, tmp_path: Path, pipe: tuple[int, int], what: str, number: signal.Signals
) -> None:
    reading, writing = pipe
    where, words = BLOCKED[what]
    names = {"RUN": str(fake_runs / "one"), "STUDY": str(fake_study), "PIPE": str(tmp_path / "pipe")}
    if where == "stderr":
        os.write(writing, b"x" * PIPE_BYTES)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | (
        {where: writing} if where != "PIPE" else {}
    )
    with ExitStack() as stack:
        one = stack.enter_context(
            subprocess.Popen([command(), *(names.get(word, word) for word in words)], cwd=tmp_path, **streams)
        )
        stack.callback(one.kill)
        while one.poll() is None and (unread(reading) < PIPE_BYTES or not _waits(one.pid)):
            time.sleep(0.05)
        one.send_signal(number)
        assert (130 if number == signal.SIGINT else -signal.SIGTERM) == one.wait(PATIENCE_S)


def _waits(pid: int) -> bool:
    """Return whether a process waits, and uses no CPU time in the meantime."""
    first = _used(pid)
    time.sleep(0.5)
    return first is not None and first == _used(pid)


def _used(pid: int) -> str | None:
    """Return the CPU time of a waiting process; None if it does not wait."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return " ".join(fields[11:13]) if fields[0] == "S" else None


def test_last_words_are_written_as_long_as_somebody_reads(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = pipe
    monkeypatch.setattr(output.Output, "is_ending", True)
    monkeypatch.setattr(output, "LAST_WAIT_S", 0.0)
    with output.Output(os.dup(writing), "w") as out:
        assert 5 == out.write(b"words")
        assert b"words" == os.read(reading, 100)
        assert PIPE_BYTES == out.write(b"x" * 3 * PIPE_BYTES)
        assert out.fault is None
        # The pipe is full now.
        assert 9 == out.write(b"unwritten")
        assert isinstance(out.fault, TimeoutError)
        assert PIPE_BYTES == len(os.read(reading, 2 * PIPE_BYTES))
        assert 4 == out.write(b"more")
        assert 0 == unread(reading)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Replace the system's look-up by one that ends for no signal, until this event."""
    asked, answered = threading.Event(), threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        # On the main thread, a real look-up would keep Ctrl-C waiting.
        assert threading.current_thread() is not threading.main_thread()
        asked.set()
        answered.wait(PATIENCE_S)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield asked
    answered.set()


def test_ctrl_c_ends_the_wait_for_a_name_server(silent: threading.Event) -> None:
    def press() -> None:
        silent.wait(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        url.addresses_of("http://silent.test/")


def test_a_silent_name_server_is_one_line(silent: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "LIMIT_S", 0.01)
    with pytest.raises(TollbarError, match=r"the host `silent\.test` has no address: no name server answered within"):
        url.addresses_of("http://silent.test/")


def test_a_cluster_is_looked_up_within_the_limit(silent: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    on_ray = pytest.importorskip("tollbar.cluster.on_ray")
    monkeypatch.setattr(hosts, "LIMIT_S", 0.01)
    with pytest.raises(TollbarError, match="no cluster answers at this address: no name server answered"):
        on_ray._check_reached("silent.test:6379", "--cluster ray:silent.test:6379")


def test_a_number_that_is_no_port_is_the_error_of_the_caller() -> None:
    with pytest.raises(OverflowError):
        hosts.addresses("127.0.0.1", 1 << 70)


def test_an_error_of_a_look_up_is_that_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(TollbarError, match="Name or service not known"):
        url.addresses_of("http://nowhere.test/")
