"""The one driver of all beds: renders, starts, asks for readiness, proves what was loaded, stops.

What cannot be started is a `NotStarted` with an outcome and a reason in the server's own words, and never a
hang: every wait has a limit.
"""

from __future__ import annotations

import re
import socket
import time
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from tollbar.beds import Component, NotStarted
from tollbar.beds.configuration import ADDRESS, Request, render, rendered, shown
from tollbar.beds.running import KEPT_LOG_BYTES, POLL_S, PortTaken, Running
from tollbar.beds.sandbox import Sandbox
from tollbar.errors import TollbarError
from tollbar.runner import Outcome

__all__ = ["NotStarted", "Request", "Sandbox", "Server", "rendered", "start"]

# Somebody may take a port between our letting go of it and the server's taking it; but hardly five times in a row.
PORTS_TRIED = 5
# That a server has ended is noticed within this.
NOTICED_S = 0.1


def start(sandbox: Sandbox, request: Request, core: int | None = None) -> Server:
    """Starts a bed for one trial, on this core, and returns when it answers. Raises NotStarted."""
    server = Server(sandbox, replace(request, documents=sandbox.documents, account=sandbox.account))
    try:
        for size in request.sizes:
            sandbox.lay_out(size)
        server._start(core)
    except OSError as error:
        # No room on the disk, no more processes.
        server._stop(failed=True)
        raise NotStarted(Outcome.FAILED, f"{request.found.bed.title} cannot be started: {error}") from error
    except BaseException:
        server._stop(failed=True)
        raise
    return server


class Server:
    """A bed that runs for one trial. A context: outside it nothing of the trial is left."""

    def __init__(self, sandbox: Sandbox, request: Request) -> None:
        self.address = ""
        """Of the component that the load talks to."""
        self.components: dict[str, int] = {}
        """The process at the root of each component's tree."""
        self.receipt: dict[str, str] = {}
        """Which server this is, and on which libraries, as found in its processes."""
        self._sandbox = sandbox
        self._request = request
        self._running: dict[str, Running] = {}

    def __repr__(self) -> str:
        return f"<Server {self.receipt.get('name', 'not started')} at {self.address}>"

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def configuration(self) -> str:
        """What the servers were told, for people: without keys."""
        work_dirs = {name: running.work_dir for name, running in self._running.items()}
        return shown(self._request, work_dirs, self._ports())

    def fault(self, within_s: float = 0.0) -> str | None:
        """What became of a server that ended, or does so soon, although nobody asked it to; None: all are there."""
        deadline = time.monotonic() + within_s
        while True:
            fault = next((fault for running in self._running.values() if (fault := running.fault())), None)
            if fault or time.monotonic() >= deadline:
                return fault
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stops what was started for the trial, politely and then not. Raises TollbarError if a process is left."""
        self._stop(failed=self.fault() is not None)

    def _start(self, core: int | None) -> None:
        found, provider = self._request.found, self._request.provider
        for component in found.bed.components:
            self.components[component.name] = self._there(component, core).pid
        frontend = self._running[found.bed.frontend.name]
        self.address = f"{ADDRESS}:{frontend.port}"
        try:
            checked = self._request.check(frontend.pid)
        except NotStarted:
            # One that has ended has nothing loaded: that is no answer to what it runs on.
            if (fault := self.fault(NOTICED_S)) is not None:
                raise NotStarted(Outcome.FAILED, fault) from None
            raise
        self.receipt = {
            "name": f"{found.server} ({provider.name})",
            "server": found.server,
            "program": str(found.programs[found.bed.frontend.name]),
            "provider": provider.name,
            **checked,
        }
        if frontend.said.get("tls"):
            self.receipt["tls"] = str(frontend.said["tls"])

    def _there(self, component: Component, core: int | None) -> Running:
        """The component, started for this trial or by whoever of the run was first."""
        if component.lifetime == "trial":
            return self._start_one(component, core)
        with self._sandbox.starting:
            return self._started_for_run(component) or self._start_one(component, core)

    def _started_for_run(self, component: Component) -> Running | None:
        """The component that an earlier trial of this run has started, if it is still there."""
        running = self._sandbox.shared.get(self._name(component))
        if not isinstance(running, Running) or running.fault():
            return None
        self._running[component.name] = running
        return running

    def _start_one(self, component: Component, core: int | None) -> Running:
        """Starts a component, on another port where somebody was quicker, and waits until it is ready."""
        request = self._request
        programs = request.found.programs
        environment = request.environment if component.programs else {}
        for _ in range(PORTS_TRIED):
            port = free_port()
            work_dir = self._sandbox.work_dir(self._name(component))
            told = render(request, component, work_dir, {**self._ports(), component.name: port})
            running = Running(
                component,
                programs[component.name],
                told,
                sandbox=self._sandbox,
                work_dir=work_dir,
                port=port,
                core=core,
                environment=environment,
            )
            self._running[component.name] = running
            try:
                running.wait_until_ready()
            except PortTaken:
                running.stop()
                continue
            if component.lifetime == "run":
                self._sandbox.shared[self._name(component)] = running
            return running
        raise NotStarted(Outcome.FAILED, f"{PORTS_TRIED} ports were taken by others before the server could")

    def _stop(self, *, failed: bool) -> None:
        with self._sandbox.starting:
            self._copy_logs(failed=failed)
        of_trial = [component.name for component in self._request.found.bed.components if component.lifetime == "trial"]
        left = [self._running.pop(name).stop() for name in reversed(of_trial) if name in self._running]
        if any(left):
            raise TollbarError("; ".join(filter(None, left)))

    def _copy_logs(self, *, failed: bool) -> None:
        """Copies what somebody may want to read: of a cell's first start, and of its last that failed."""
        if self._sandbox.logs is None:
            return
        folder = self._sandbox.logs / self._request.found.bed.name / self._cell()
        if failed:
            folder /= "failed"
        elif folder.exists():
            return
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "configuration").write_text(self.configuration, "utf-8")
            for running in self._running.values():
                text = running.log.read_bytes()[-KEPT_LOG_BYTES:]
                if text:
                    (folder / running.log.name).write_bytes(text)

    def _cell(self) -> str:
        """A folder's name for this provider and these settings."""
        words = [self._request.provider.name, *map(str, self._request.settings.values())]
        return re.sub(r"[^A-Za-z0-9.+_-]+", "-", "_".join(words))[:200]

    def _name(self, component: Component) -> str:
        return f"{self._request.found.bed.name}-{component.name}"

    def _ports(self) -> dict[str, int]:
        return {name: running.port for name, running in self._running.items()}


def free_port() -> int:
    """A loopback port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port
