"""The one driver of all servers: renders, starts, asks for readiness, proves what was loaded, stops.

What cannot be started is a `NotStarted` with an outcome and a reason in the server's own words, and never a
hang: every wait has a limit.
"""

from __future__ import annotations

import re
import secrets
import shutil
import socket
import time
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from tollbar.catalog.servers import Component, NotStarted
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome
from tollbar.core.runner import confined
from tollbar.core.runner.confined import Account
from tollbar.lab.servers import handing
from tollbar.lab.servers.configuration import (
    ADDRESS,
    Endpoint,
    Location,
    Rendered,
    Request,
    readable,
    render,
    rendered,
    shown,
)
from tollbar.lab.servers.guarded import end_of
from tollbar.lab.servers.nodes import Elsewhere, Node
from tollbar.lab.servers.running import POLL_S, PortTaken, Running, Shared
from tollbar.lab.servers.sandbox import Sandbox

__all__ = ["NotStarted", "Request", "Sandbox", "StartedServer", "rendered", "start"]

# Another program may take a port after it was found free and before the server has it; hardly five times in a row.
PORTS_TRIED = 5
# That a server has ended is noticed within this.
NOTICED_S = 0.1


def start(
    sandbox: Sandbox, request: Request, core: int | None = None, *, begins_on: int | None = None
) -> StartedServer:
    """Starts a server for one trial, and what has to stand behind it, on this core, and returns when it answers.

    `begins_on`: where the trial's own components are at first; those of the whole run serve others on `core` meanwhile.
    Raises NotStarted.
    """
    request = replace(request, documents=sandbox.documents)
    server = StartedServer(sandbox, replace(request, peers=sandbox.peers) if sandbox.peers else request)
    try:
        for size in request.sizes:
            sandbox.lay_out(size)
        server._start(core, core if begins_on is None else begins_on)
    except OSError as error:
        # No room on the disk, no more processes.
        server._stop(failed=True)
        raise NotStarted(Outcome.FAILED, f"{request.found.server.title} cannot be started: {error}") from error
    except BaseException:
        server._stop(failed=True)
        raise
    return server


class StartedServer:
    """A server that runs for one trial. A context: outside it nothing of the trial is left."""

    def __init__(self, sandbox: Sandbox, request: Request) -> None:
        self.address = ""
        """Of the frontend."""
        self.components: dict[str, int] = {}
        """The process at the root of each component's tree, on the machine where it runs."""
        self.receipt: dict[str, str] = {}
        """Which server this is, and on which libraries, as found in its processes."""
        self._sandbox = sandbox
        self._request = request
        self._running: dict[str, Running | Elsewhere] = {}
        self._is_ended = False

    def __repr__(self) -> str:
        return f"<Server {self.receipt.get('name', 'not started')} at {self.address}>"

    def __enter__(self) -> StartedServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def configuration(self) -> str:
        """The rendered configuration of the servers, for people: without keys."""
        return shown(self._request, self._locations())

    @property
    def work_dirs(self) -> dict[str, Path]:
        """The directory that each component was started in."""
        return {name: location.work_dir for name, location in self._locations().items()}

    @property
    def logs(self) -> dict[str, Path]:
        """What each component has written to standard error, in a file."""
        return {name: running.log for name, running in self._running.items()}

    @property
    def given(self) -> dict[str, Path]:
        """The folder of what each component gives to others."""
        return {name: location.given for name, location in self._locations().items()}

    @property
    def addresses(self) -> dict[str, str]:
        """Where each component listens, or what its socket's name is made of."""
        return {name: str(location.endpoint) for name, location in self._locations().items()}

    @property
    def nodes(self) -> dict[str, Node]:
        """The machine of each component that is on another one."""
        return {name: one.node for name, one in self._running.items() if isinstance(one, Elsewhere)}

    def client_account(self, like: str | None = None) -> Account | None:
        """Return the account of a client of these components, or of one that needs the account of the component `like`.

        None where the lab is not root.
        """
        running = [one for one in self._running.values() if isinstance(one, Running)]
        own = self._running.get(like) if like else None
        account = own.account if isinstance(own, Running) else self._sandbox.account_of("client")
        groups = (*handing.groups(running), *confined.seeing_groups())
        return account and replace(account, groups=groups)

    def fault(self, within_s: float = 0.0) -> str | None:
        """How a server ended that was not stopped, or that ends within this time; None: all run."""
        deadline = time.monotonic() + within_s
        while True:
            fault = next((fault for running in self._running.values() if (fault := running.fault())), None)
            if fault or time.monotonic() >= deadline:
                return fault
            time.sleep(POLL_S)

    def end(self) -> None:
        """Ends what was started for the trial, each in its own way. Its directories stay until `stop`."""
        self._is_ended = True
        for name in reversed(self._of_trial()):
            self._running[name].end()

    def complaint(self) -> str | None:
        """Why a request could not be served, in the last words of the server nearest to who asks that has any."""
        said = (running.complaint() for running in reversed(self._running.values()))
        return next(filter(None, said), None)

    def stop(self) -> None:
        """Stops what was started for the trial. Raises TollbarError if a process could not be ended."""
        self._stop(failed=not self._is_ended and self.fault() is not None)

    def _start(self, core: int | None, begins_on: int | None) -> None:
        found, provider = self._request.found, self._request.provider
        self._refuse_unreachable()
        for request, component in self._request.parts:
            running = self._component(request, component, core if component.lifetime == "run" else begins_on)
            self.components[component.name] = running.pid
        frontend = self._running[found.server.frontend.name]
        self.address = str(frontend.endpoint)
        try:
            checked = (
                frontend.node.prove(self._request, frontend.pid)
                if isinstance(frontend, Elsewhere)
                else self._request.check(frontend.pid)
            )
        except NotStarted:
            # One that has ended has nothing loaded: that is no answer to what it runs on.
            if (fault := self.fault(NOTICED_S)) is not None:
                raise NotStarted(Outcome.FAILED, fault) from None
            raise
        self.receipt = {
            "name": f"{found.server_version} ({provider.name})",
            "server": found.server_version,
            "program": str(found.programs[found.server.frontend.name]),
            "provider": provider.name,
            **checked,
            **{
                f"component {component.name}": request.found.program_of(component)
                for request, component in self._request.parts
                if component is not found.server.frontend
            },
        }
        self.receipt |= {name: str(said) for name, said in frontend.said.items() if said and name != "listening"}

    def _refuse_unreachable(self) -> None:
        """Raises NotStarted where the frontend is on another machine and something behind it would be with the lab."""
        nodes = self._sandbox.nodes
        here = {component.role for _, component in self._request.parts} - nodes.keys()
        if here and self._request.found.server.frontend.role in nodes:
            roles = sorted(here)
            raise NotStarted(
                Outcome.UNSUPPORTED,
                f"the {' and the '.join(roles)} would listen on this machine's loopback alone, where a web server "
                f"elsewhere cannot reach it: add --roles {','.join(f'{role}=ADDRESS' for role in roles)}",
            )

    def _component(self, request: Request, component: Component, core: int | None) -> Running | Elsewhere:
        """The component, started for this trial, or for the run by the first of its trials."""
        if component.lifetime == "trial":
            running = self._start_one(request, component, core)
        else:
            with self._sandbox.starting:
                shared = self._sandbox.shared.setdefault(self._shared_by(request, component, core), Shared())
            running = shared.running(lambda: self._start_one(request, component, core))
        self._running[component.name] = running
        return running

    def _shared_by(self, request: Request, component: Component, core: int | None) -> Hashable:
        """What makes a component of the run another one."""
        return (
            request.found.server.name,
            component.name,
            request.provider.spec if component.on_provider else None,
            # In words: a value may be a list.
            repr(readable(request, component)),
            # Proofs have no core of their own, and what a trial measures has to be on the servers' core. A machine
            # elsewhere has one core for all.
            None if component.role in self._sandbox.nodes else core,
            # Its configuration may name where those before it are, and they may be other ones.
            tuple(self.work_dirs.items()),
        )

    def _start_one(self, request: Request, component: Component, core: int | None) -> Running | Elsewhere:
        """Starts a component, on another endpoint where its port is taken meanwhile, and waits until it is ready."""
        environment = request.environment if component.programs and component.on_provider else {}
        node: Node | None = self._sandbox.nodes.get(component.role)
        for _ in range(PORTS_TRIED):
            if node is not None:
                with suppress(PortTaken):
                    return node.start(request, component, self._locations(), environment)
                continue
            endpoint = free_endpoint(component)
            work_dir, configured, account = self._work_dir(request, component, endpoint)
            running = Running(
                component,
                request.found.programs[component.name],
                configured,
                sandbox=self._sandbox,
                work_dir=work_dir,
                endpoint=endpoint,
                cores=request.cores or (() if core is None else (core,)),
                environment=environment,
                account=account,
                reaches=request.reaches(component),
            )
            self._running[component.name] = running
            try:
                running.wait_until_ready()
                handing.collect(work_dir, configured.files, component.gives, self._sandbox.given_by(work_dir))
                return running
            except PortTaken:
                running.stop()
            except BaseException:
                # One of the run is not stopped with this trial. Its log is still to be read.
                running.end()
                raise
        raise NotStarted(Outcome.FAILED, f"{PORTS_TRIED} ports were taken by others before the server could")

    def _work_dir(
        self, request: Request, component: Component, endpoint: Endpoint
    ) -> tuple[Path, Rendered, Account | None]:
        """Make a directory for one start of the component, with all that it reads, and say whose it is."""
        work_dir = self._sandbox.work_dir(f"{request.found.server.name}-{component.name}")
        try:
            location = Location(work_dir, endpoint, self._sandbox.given_by(work_dir))
            configured = render(request, component, {**self._locations(), component.name: location})
            account = self._account(request, component, configured)
            return work_dir, handing.lay_out(self._sandbox, request, component, configured, work_dir, account), account
        except BaseException:
            shutil.rmtree(work_dir, ignore_errors=True)
            raise

    def _account(self, request: Request, component: Component, configured: Rendered) -> Account | None:
        """Return the component's account: its own, or that of the component that it names as one it needs to share.

        It may connect to the sockets of all that was started before it.
        """
        before = {name: one for name, one in self._running.items() if isinstance(one, Running)}
        own = self._sandbox.account_of(f"{request.found.server.name}/{component.name}")
        account = before[configured.account].account if configured.account in before else own
        return account and replace(account, groups=handing.groups(before.values()))

    def _stop(self, *, failed: bool) -> None:
        with self._sandbox.starting:
            self._copy_logs(failed=failed)
        left = [self._running.pop(name).stop() for name in reversed(self._of_trial())]
        if any(left):
            raise TollbarError("; ".join(filter(None, left)))

    def _of_trial(self) -> list[str]:
        """The components that were started for the trial, in order."""
        of_trial = [component.name for _, component in self._request.parts if component.lifetime == "trial"]
        return [name for name in of_trial if name in self._running]

    def _copy_logs(self, *, failed: bool) -> None:
        """Keeps configuration and logs of a cell's first start, and of its last that failed."""
        if self._sandbox.logs is None:
            return
        folder = self._sandbox.logs / self._request.found.server.name / self._cell()
        if failed:
            folder /= "failed"
        elif folder.exists():
            return
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "configuration").write_text(self.configuration, "utf-8")
            for name, running in self._running.items():
                text = end_of(running.log)
                if text:
                    (folder / f"{name}.log").write_bytes(text)

    def _cell(self) -> str:
        """A folder's name for this provider and these settings."""
        words = [self._request.provider.spec, *map(str, self._request.settings.values())]
        return re.sub(r"[^A-Za-z0-9.+_-]+", "-", "_".join(words))[:200]

    def _locations(self) -> dict[str, Location]:
        given_by = self._sandbox.given_by
        return {
            name: Location(running.work_dir, running.endpoint, given_by(running.work_dir))
            for name, running in self._running.items()
        }


def free_endpoint(component: Component) -> Endpoint:
    """Where the component can listen at this moment: on 127.0.0.1, or on an address that is drawn for it alone."""
    address = ADDRESS
    if component.address == "own":
        # Of 16 million; those of 127.0 are left to what the user may have there.
        address = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    ports = {name: free_port(address) for name in component.ports}
    return Endpoint(address, component.port or free_port(address), ports)


def free_port(address: str = ADDRESS, port: int = 0) -> int:
    """A port of this address that no socket has at this moment; of this port, OSError where it is taken."""
    with socket.socket() as probe:
        probe.bind((address, port))
        bound: int = probe.getsockname()[1]
        return bound
