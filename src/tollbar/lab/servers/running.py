"""Running component: started in a work directory, tested for readiness in its own way, and stopped."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from tollbar.catalog.servers import Component, NotStarted
from tollbar.core import proc
from tollbar.core.records import Outcome
from tollbar.core.runner.confined import Account
from tollbar.lab.servers.configuration import Endpoint, Rendered
from tollbar.lab.servers.guarded import Guarded
from tollbar.lab.servers.sandbox import Sandbox, wait

# Loopback refuses at once, so a try costs microseconds; a start takes some ten milliseconds.
POLL_S = 0.002
# A command is a process; without a pause, it would occupy the core on which the server starts.
COMMAND_POLL_S = 0.02
# The system's own message, which every program includes; some write it in lower case.
PORT_TAKEN = "ddress already in use"
# Quoted characters of an unexpected line.
MOST_QUOTED = 200
# Request in clear for a document that always exists; a TLS server answers it with an error.
READINESS_PROBE = b"GET /bytes/0 HTTP/1.0\r\n\r\n"


class PortTaken(Exception):
    """Raised if another process has the port, so that another endpoint will do."""


class Running(Guarded):
    """Started component. Its processes end with the lab, however the lab ends."""

    def __init__(
        self,
        component: Component,
        program: Path,
        rendered: Rendered,
        *,
        sandbox: Sandbox,
        work_dir: Path,
        endpoint: Endpoint,
        cores: Sequence[int],
        environment: Mapping[str, str],
        account: Account | None,
        reaches: Sequence[str],
    ) -> None:
        self.endpoint = endpoint
        self.account = account
        self.said: Mapping[str, Any] = {}
        """Report on standard output when it was ready."""
        self.component = component.name
        self.has_sockets = component.has_sockets
        self._component = component
        self._ready_command = rendered.ready
        self._ready_bytes = 0
        """Length of its log when it was ready."""
        self._last_words: list[str] = []
        """Last line of the readiness command."""
        self._common: dict[str, Any] = {
            "sandbox": sandbox,
            "work_dir": work_dir,
            "account": account,
            "reaches": reaches,
            "environment": {**environment, **rendered.environment},
        }
        with _standard_input(rendered.stdin) as stdin:
            super().__init__(
                [str(program), *rendered.arguments],
                **self._common,
                log=sandbox.log_of(work_dir, component.name),
                low_port=endpoint.port < 1024,
                stop=component.stop,
                is_accounted=True,
                cores=cores,
                stdin=stdin,
                stdout=subprocess.PIPE if component.ready.by == "line" else None,
            )

    def stop(self) -> str | None:
        """End its processes and remove its directories. Return the processes that remain, in words."""
        left = self.end()
        sandbox = self._sandbox
        for folder in (self.work_dir, sandbox.given_by(self.work_dir), sandbox.copies_of(self.work_dir)):
            shutil.rmtree(folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        return left

    def complaint(self) -> str | None:
        """Return its last logged reason for not serving a request since it was ready, or None."""
        said = self.output(self._ready_bytes)
        matches = [match for pattern in self._component.complaints for match in pattern.finditer(said)]
        last = max(matches, key=lambda match: match.start(), default=None)
        return f"{self.name} said: {last.group(1).strip()}" if last else None

    def wait_until_ready(self) -> None:
        """Wait until the component is ready, by its server's test. Raises NotStarted, or PortTaken."""
        self._wait()
        self._ready_bytes = self.log_bytes()
        # The grace period is for data to write, which it only has once it is ready; earlier, some ignore a stop.
        self._grace_s = self._component.grace

    def _wait(self) -> None:
        by = self._component.ready.by
        deadline = time.monotonic() + self._component.ready.limit
        if by == "line":
            self._read_line(deadline)
            return
        is_ready = {"http": self._answers, "tcp": self._accepts, "command": self._command_succeeds}[by]
        while not is_ready(deadline):
            if self.fault() is not None:
                raise self._why_not()
            if time.monotonic() > deadline:
                raise self._not_ready()
            time.sleep(COMMAND_POLL_S if by == "command" else POLL_S)
        if self.fault() is not None:
            # The command found another server ready.
            raise self._why_not()

    def _accepts(self, deadline: float) -> bool:
        return self._connects(deadline, lambda connection: True)

    def _answers(self, deadline: float) -> bool:
        return self._connects(deadline, lambda connection: self._sends_a_byte(connection, deadline))

    def _connects(self, deadline: float, is_ready: Callable[[socket.socket], bool]) -> bool:
        try:
            at = (self.endpoint.address, self.endpoint.port)
            with socket.create_connection(at, max(0.001, deadline - time.monotonic())) as connection:
                if proc.listens(proc.tree(self.pid), *at):
                    return is_ready(connection)
                # Another program that listens there also accepts and answers; one that has ended does not any more.
                if proc.listeners(*at):
                    raise PortTaken
                return False
        except OSError:
            # The connection was refused or reset.
            return False

    def _sends_a_byte(self, connection: socket.socket, deadline: float) -> bool:
        """Return whether a byte arrives.

        A closed connection does not count: httpd listens before it has read all of its configuration.
        """
        connection.sendall(READINESS_PROBE)
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            while time.monotonic() < deadline and self.fault() is None:
                if selector.select(0.05):
                    return bool(connection.recv(1))
        return False

    def _command_succeeds(self, deadline: float) -> bool:
        log = self._sandbox.log_of(self.work_dir, f"{self._component.name}-ready")
        command = Guarded(self._ready_command, **self._common, log=log)
        with suppress(subprocess.TimeoutExpired):
            succeeds = command.ends_well(deadline)
            self._last_words = command.output().splitlines()[-1:]
            log.unlink(missing_ok=True)
            return succeeds
        return False

    def _not_ready(self) -> NotStarted:
        reason = f"{self.name} was not ready within {self._component.ready.limit:g} s"
        return NotStarted(Outcome.TIMED_OUT, ": ".join([reason, *self._last_words]))

    def _read_line(self, deadline: float) -> None:
        """Read `{"listening": …}`, or the failure: `{"outcome": …, "reason": …}`."""
        stdout = self.process.stdout
        assert stdout is not None
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self._not_ready()
                read = os.read(stdout.fileno(), 1 << 16)
                if not read:
                    break
                line += read
        if not line.endswith(b"\n"):
            # The process may end a moment after its output.
            with suppress(subprocess.TimeoutExpired):
                wait(self.process, max(0.0, deadline - time.monotonic()))
            raise self._why_not()
        try:
            said = json.loads(line)
            if "listening" in said:
                self.said = said
                return
            outcome, reason = Outcome(said["outcome"]), str(said["reason"])
        except (ValueError, KeyError, TypeError, RecursionError):
            shown = line.decode(errors="backslashreplace").strip()[:MOST_QUOTED]
            reason = f"{self.name} printed {shown!r} instead of the address that it listens on"
            raise NotStarted(Outcome.FAILED, reason) from None
        if PORT_TAKEN in reason:
            raise PortTaken
        raise NotStarted(outcome, reason)

    def _why_not(self) -> NotStarted | PortTaken:
        if PORT_TAKEN in self.output():
            return PortTaken()
        return self.why_it_ended(self._component.refusals)


Started = TypeVar("Started")


class Shared:
    """Component of the run: started by the first trial that needs it, and again by the first after it has ended.

    A component that could not be started is not tried again, because every cell that needs it would spend the time of a
    try, usually the whole limit of its readiness.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Any = None
        self._not_started: NotStarted | None = None

    def running(self, start: Callable[[], Started]) -> Started:
        """Return the running component; while one thread starts it, others wait. Raises what `start` raises."""
        with self._lock:
            if self._running is not None and self._running.fault() is not None:
                # End what its guard could not. Its log stays, because its trials report why they failed.
                self._running.end()
                self._running = None
            if self._not_started is not None:
                raise NotStarted(self._not_started.outcome, self._not_started.reason)
            if self._running is None:
                try:
                    self._running = start()
                except NotStarted as error:
                    self._not_started = error
                    raise
            running: Started = self._running
            return running


def _standard_input(text: str | None) -> IO[bytes]:
    """Return the standard input of a server, in memory because it may contain keys."""
    if text is None:
        return open(os.devnull, "rb")
    file = open(os.memfd_create("stdin"), "w+b")  # noqa: SIM115
    file.write(text.encode())
    file.seek(0)
    return file
