"""One component that runs: a tree of processes under a guard, from its start to the last of them."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tollbar.beds import Component, NotStarted, proc
from tollbar.beds.configuration import ADDRESS, Rendered
from tollbar.beds.sandbox import Sandbox, wait
from tollbar.runner import Outcome, engine

READY_LIMIT_S = 10.0
# Loopback refuses at once, so asking costs microseconds; a start takes some ten milliseconds.
POLL_S = 0.002
# A server that was asked to stop and has not by then is killed: nothing in it is worth waiting for.
TERM_GRACE_S = 2.0
# The guard itself gives up after ten seconds.
KILLED_S = 12.0
# The end of a server's talk, which is where it says why it gave up.
KEPT_LOG_BYTES = 16 * 1024
# However a program words it, the system's own words are in it; some write them small.
PORT_TAKEN = "ddress already in use"
# The guard's status when a process outlived SIGKILL.
NOT_ENDED = 125
# Asks in clear for a document that is always there; a server under TLS answers this with an error.
READINESS_PROBE = b"GET /bytes/0 HTTP/1.0\r\n\r\n"


class PortTaken(Exception):
    """Somebody else has the port: another will do."""


class Running:
    """A component, started. Its processes end with the lab, whatever becomes of that."""

    def __init__(
        self,
        component: Component,
        program: Path,
        rendered: Rendered,
        *,
        sandbox: Sandbox,
        work_dir: Path,
        port: int,
        core: int | None,
        environment: Mapping[str, str],
    ) -> None:
        self.port = port
        self.work_dir = work_dir
        self.log = work_dir / f"{component.name}.log"
        self.said: Mapping[str, Any] = {}
        """What it said on standard output when it was ready."""
        self._component = component
        self._sandbox = sandbox
        self._program = program
        rendered.write(work_dir)
        pinned = ["--core", str(core)] if core is not None else []
        guard = [str(engine()), "guard", "--tree", "--child-of", str(os.getpid()), "--stop", component.stop, *pinned]
        with open(self.log, "ab") as log, _standard_input(rendered.stdin) as stdin:
            self._process = subprocess.Popen(
                [*guard, "--", str(program), *rendered.arguments],
                stdin=stdin,
                stdout=subprocess.PIPE if component.ready == "line" else log,
                stderr=log,
                cwd=work_dir,
                env={**_plain_environment(work_dir), **environment, **rendered.environment},
                # Ctrl-C in the terminal is for the lab, which then stops its servers.
                start_new_session=True,
                # Workers that run as somebody else read what the server makes for them.
                umask=0o022,
            )
        sandbox.running.append(self)

    @property
    def pid(self) -> int:
        """The root of the process tree."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Returns when the server says so itself. Raises NotStarted, or PortTaken."""
        deadline = time.monotonic() + READY_LIMIT_S
        if self._component.ready == "line":
            self._hear_line(deadline)
        else:
            self._hear_answer(deadline)

    def fault(self) -> str | None:
        """How it ended, if it did; None: it runs."""
        status = self._process.poll()
        if status is None:
            return None
        how = f"was ended by {_signal_name(status)}" if status > 128 or status < 0 else f"ended with status {status}"
        last = self._talk().splitlines()[-1:]
        return ": ".join([f"{self._program.name} {how}", *last])

    def stop(self) -> str | None:
        """Ends it, politely and then not, and removes its work_dir. Says what could not be ended."""
        # Once asks, twice kills.
        for limit_s in (TERM_GRACE_S, KILLED_S):
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    wait(self._process, limit_s)
        status = self._process.poll()
        # Somebody killed the guard itself: those it would have seen out are nobody's.
        left = status is not None and status < 0 and not proc.end_session(self.pid, KILLED_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self.work_dir, ignore_errors=True)
        # Last: what Ctrl-C interrupts here is ended with the sandbox.
        if self in self._sandbox.running:
            self._sandbox.running.remove(self)
        if left or status is None or status == NOT_ENDED:
            return f"a process of {self._program.name} could not be ended (it is of session {self.pid})"
        return None

    def _hear_answer(self, deadline: float) -> None:
        while True:
            if self._process.poll() is not None:
                raise self._why_it_ended()
            try:
                with socket.create_connection((ADDRESS, self.port), max(0.001, deadline - time.monotonic())) as probe:
                    # Whoever else listens there would answer as well.
                    if not proc.listens(proc.tree(self.pid), self.port):
                        raise PortTaken
                    if self._answers(probe, deadline):
                        return
            except OSError:
                # Refused, or reset.
                pass
            if time.monotonic() > deadline:
                raise NotStarted(Outcome.TIMED_OUT, f"{self._program.name} was not ready within {READY_LIMIT_S:.0f} s")
            time.sleep(POLL_S)

    def _answers(self, probe: socket.socket, deadline: float) -> bool:
        """Whether any byte comes. Hanging up is none: httpd listens before it has read all it is told."""
        probe.sendall(READINESS_PROBE)
        with selectors.DefaultSelector() as selector:
            selector.register(probe, selectors.EVENT_READ)
            while time.monotonic() < deadline and self._process.poll() is None:
                # In between, looks whether it still lives.
                if selector.select(0.05):
                    return bool(probe.recv(1))
        return False

    def _hear_line(self, deadline: float) -> None:
        assert self._process.stdout is not None
        heard = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not heard.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    reason = f"{self._program.name} was not ready within {READY_LIMIT_S:.0f} s"
                    raise NotStarted(Outcome.TIMED_OUT, reason)
                read = os.read(self._process.stdout.fileno(), 1 << 16)
                if not read:
                    break
                heard += read
        self._read_line(heard)

    def _read_line(self, heard: bytes) -> None:
        """`{"listening": …}`, or why not: `{"outcome": …, "reason": …}`."""
        try:
            said = json.loads(heard)
            if "listening" in said:
                self.said = said
                return
            outcome, reason = Outcome(said["outcome"]), str(said["reason"])
        except (ValueError, KeyError, TypeError):
            with suppress(subprocess.TimeoutExpired):
                wait(self._process, TERM_GRACE_S)
            raise self._why_it_ended() from None
        if PORT_TAKEN in reason:
            raise PortTaken
        raise NotStarted(outcome, reason)

    def _why_it_ended(self) -> NotStarted | PortTaken:
        talk = self._talk()
        if PORT_TAKEN in talk:
            return PortTaken()
        for refusal in self._component.refusals:
            # One line may be the effect of another, and which is which depends on the library.
            words = dict.fromkeys(match.group(1).strip() for match in refusal.finditer(talk))
            if words:
                return NotStarted(Outcome.UNSUPPORTED, f"{self._program.name} refuses: {'; '.join(words)}")
        return NotStarted(Outcome.FAILED, self.fault() or f"{self._program.name} said nothing that could be read")

    def _talk(self) -> str:
        """The end of what it said, without the paths of its work_dir, which mean nothing to anybody."""
        with suppress(OSError), open(self.log, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - KEPT_LOG_BYTES))
            text = log.read().decode(errors="replace").strip()
            return text.replace(f"{self.work_dir}/", "").replace(f"{self.work_dir.parent}/", "")
        return ""


def _plain_environment(work_dir: Path) -> dict[str, str]:
    """Nothing of the user's: a server behaves the same for everybody."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C",
        "TMPDIR": str(work_dir),
    }


def _standard_input(text: str | None) -> IO[bytes]:
    """What a server reads: from memory, because there may be keys in it."""
    if text is None:
        return open(os.devnull, "rb")
    file = open(os.memfd_create("stdin"), "w+b")  # noqa: SIM115
    file.write(text.encode())
    file.seek(0)
    return file


def _signal_name(status: int) -> str:
    with suppress(ValueError):
        return signal.Signals(status - 128 if status > 0 else -status).name
    return f"signal {status}"
