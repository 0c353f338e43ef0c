"""Driver of all servers: renders, starts, waits for readiness, proves the loaded libraries, stops.

A failed start raises `NotStarted` with an outcome and a reason in the server's own words, and never hangs: every wait
has a limit.
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

# Another program may take a free port before the server does; hardly five times in a row.
PORTS_TRIED = 5
# Time within which the end of a server is noticed.
NOTICED_S = 0.1


def start(
    sandbox: Sandbox, request: Request, core: int | None = None, *, begins_on: int | None = None
) -> StartedServer:
    """Start a server for one trial with its services on this core, and return when it answers.

    `begins_on` is the first core of the trial's own components; those of the whole run serve others on `core`
    meanwhile. Raises NotStarted.
    """
    request = replace(request, documents=sandbox.documents)
    server = StartedServer(sandbox, replace(request, peers=sandbox.peers) if sandbox.peers else request)
    try:
        for size in request.sizes:
            sandbox.lay_out(size)
        server._start(core, core if begins_on is None else begins_on)
    except OSError as error:
        # The disk is full, or there are too many processes.
        server._stop(failed=True)
        raise NotStarted(Outcome.FAILED, f"{request.found.server.title} cannot be started: {error}") from error
    except BaseException:
        server._stop(failed=True)
        raise
    return server


class StartedServer:
    """Server that runs for one trial, as a context; after it nothing of the trial is left."""

    def __init__(self, sandbox: Sandbox, request: Request) -> None:
        self.address = ""
        """Address of the frontend."""
        self.components: dict[str, int] = {}
        """Process at the root of each component's tree, on its machine."""
        self.receipt: dict[str, str] = {}
        """Identity of the server and its libraries, as found in its processes."""
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
        """Rendered configuration of the servers, for people, without keys."""
        return shown(self._request, self._locations())

    @property
    def work_dirs(self) -> dict[str, Path]:
        """Directory of each component's start."""
        return {name: location.work_dir for name, location in self._locations().items()}

    @property
    def logs(self) -> dict[str, Path]:
        """Log files of the components' standard error."""
        return {name: running.log for name, running in self._running.items()}

    @property
    def given(self) -> dict[str, Path]:
        """Folder of the files that each component gives to others."""
        return {name: location.given for name, location in self._locations().items()}

    @property
    def addresses(self) -> dict[str, str]:
        """Endpoint of each component, from which its socket's name is made."""
        return {name: str(location.endpoint) for name, location in self._locations().items()}

    @property
    def nodes(self) -> dict[str, Node]:
        """Machine of each component that is on another one."""
        return {name: one.node for name, one in self._running.items() if isinstance(one, Elsewhere)}

    def client_account(self, like: str | None = None) -> Account | None:
        """Return the account of a client of these components; None if the lab is not root.

        A client that needs the account of a component names it in `like`.
        """
        running = [one for one in self._running.values() if isinstance(one, Running)]
        own = self._running.get(like) if like else None
        account = own.account if isinstance(own, Running) else self._sandbox.account_of("client")
        groups = (*handing.groups(running), *confined.seeing_groups())
        return account and replace(account, groups=groups)

    def fault(self, within_s: float = 0.0) -> str | None:
        """Return how a component ended by itself, now or within this time; None: all run."""
        deadline = time.monotonic() + within_s
        while True:
            fault = next((fault for running in self._running.values() if (fault := running.fault())), None)
            if fault or time.monotonic() >= deadline:
                return fault
            time.sleep(POLL_S)

    def end(self) -> None:
        """End the trial's components, each in its own way. Their directories stay until `stop`."""
        self._is_ended = True
        for name in reversed(self._of_trial()):
            self._running[name].end()

    def complaint(self) -> str | None:
        """Return why a request could not be served, as logged by the server nearest to the client."""
        said = (running.complaint() for running in reversed(self._running.values()))
        return next(filter(None, said), None)

    def stop(self) -> None:
        """Stop the trial's components. Raises TollbarError if a process could not be ended."""
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
            # A server that has ended has nothing loaded, so its end is the reason to report.
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
        """Raise NotStarted if the frontend is on another machine and one of its services would be on the lab's."""
        nodes = self._sandbox.nodes
        here = {component.role for _, component in self._request.parts} - nodes.keys()
        if here and self._request.found.server.frontend.role in nodes:
            roles = sorted(here)
            raise NotStarted(
                Outcome.UNSUPPORTED,
                f"the {' and the '.join(roles)} would listen only on this machine's loopback, which a web server on"
                f" another machine cannot reach; add --roles {','.join(f'{role}=ADDRESS' for role in roles)}",
            )

    def _component(self, request: Request, component: Component, core: int | None) -> Running | Elsewhere:
        """Return the component, started for this trial, or for the run by the first of its trials."""
        if component.lifetime == "trial":
            running = self._start_one(request, component, core)
        else:
            with self._sandbox.starting:
                shared = self._sandbox.shared.setdefault(self._shared_by(request, component, core), Shared())
            running = shared.running(lambda: self._start_one(request, component, core))
        self._running[component.name] = running
        return running

    def _shared_by(self, request: Request, component: Component, core: int | None) -> Hashable:
        """Return the key of a component of the run: with another key it is another component."""
        return (
            request.found.server.name,
            component.name,
            request.provider.spec if component.on_provider else None,
            # As text, because a value may be a list, which is not hashable.
            repr(readable(request, component)),
            # Proofs have no core, and measured components must be on the servers' core. A machine elsewhere has one
            # core for all.
            None if component.role in self._sandbox.nodes else core,
            # Its configuration may name the directories of earlier components, which may differ.
            tuple(self.work_dirs.items()),
        )

    def _start_one(self, request: Request, component: Component, core: int | None) -> Running | Elsewhere:
        """Start a component and wait until it is ready; if its port is taken meanwhile, try another endpoint."""
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
                # A component of the run is not stopped with this trial, and its log is still needed.
                running.end()
                raise
        reason = f"other programs took {PORTS_TRIED} free ports before the server could listen on them; try again"
        raise NotStarted(Outcome.FAILED, reason)

    def _work_dir(
        self, request: Request, component: Component, endpoint: Endpoint
    ) -> tuple[Path, Rendered, Account | None]:
        """Return a new directory for one start of the component, its configuration, and its account."""
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
        """Return the component's account: its own, or that of the component whose account it shares.

        It may connect to the sockets of all components started before it.
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
        """Return the trial's components, in order of their start."""
        of_trial = [component.name for _, component in self._request.parts if component.lifetime == "trial"]
        return [name for name in of_trial if name in self._running]

    def _copy_logs(self, *, failed: bool) -> None:
        """Keep configuration and logs of a cell's first start, and of its last failed one."""
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
        """Return a folder's name for this provider and these settings."""
        words = [self._request.provider.spec, *map(str, self._request.settings.values())]
        return re.sub(r"[^A-Za-z0-9.+_-]+", "-", "_".join(words))[:200]

    def _locations(self) -> dict[str, Location]:
        given_by = self._sandbox.given_by
        return {
            name: Location(running.work_dir, running.endpoint, given_by(running.work_dir))
            for name, running in self._running.items()
        }


def free_endpoint(component: Component) -> Endpoint:
    """Return a free endpoint of the component: on 127.0.0.1, or on a random address of its own."""
    address = ADDRESS
    if component.address == "own":
        # One of 16 million; 127.0 is left to the user's programs.
        address = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    ports = {name: free_port(address) for name in component.ports}
    return Endpoint(address, component.port or free_port(address), ports)


def free_port(address: str = ADDRESS, port: int = 0) -> int:
    """Return a free port of this address; with `port`, that port. Raises OSError if it is in use."""
    with socket.socket() as probe:
        probe.bind((address, port))
        bound: int = probe.getsockname()[1]
        return bound
