"""Nodes: machines with a role, reached through agents that start components for the lab."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from tollbar import __version__
from tollbar.catalog.libraries import Provider, engine_build
from tollbar.catalog.servers import Component, Installed, NotStarted
from tollbar.catalog.servers.places import CLIENT, RoleMachine
from tollbar.core import machine, proc
from tollbar.core.errors import TollbarError
from tollbar.core.files import write
from tollbar.core.records import Outcome
from tollbar.core.runner.process import Ended, Process
from tollbar.lab.servers import answers, handing, loading, shipping
from tollbar.lab.servers.configuration import LOOPBACK, Endpoint, Location, Request, render
from tollbar.lab.servers.running import PortTaken
from tollbar.lab.servers.sandbox import Sandbox

# Time to start Python and find the engine, on a busy machine.
HELLO_LIMIT_S = 60.0
# A directory's preparation takes minutes, and has its own limit.
START_LIMIT_S = 600.0
ANSWER_LIMIT_S = 60.0
# An agent ends after a minute of silence, so a few beats may be late.
BEAT_S = 15.0
# Limit of a TCP connection to the account agent, which tests the network after a failure.
REACHED_LIMIT_S = 3.0
TOKEN_BYTES = 32


@dataclass(slots=True)
class Node:
    """Machine that starts components for the lab. A failure of the machine itself raises TollbarError."""

    place: RoleMachine
    sandbox: Sandbox
    _process: Process
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)
    _beating: threading.Thread | None = None
    said: Mapping[str, Any] = field(default_factory=dict)
    token_file: str = ""

    def __repr__(self) -> str:
        return f"<Node {self.where}>"

    @property
    def where(self) -> str:
        """Role and address, for people."""
        return f"{self.place.role} ({self.place.address})"

    @property
    def about(self) -> dict[str, Any]:
        """Description that a run keeps of the machine."""
        own = {"address": self.place.address, "host": self.said["host"], "fingerprint": self.said["fingerprint"]}
        return {**own, "is_simulated": self.said["boot_id"] == proc.boot_id()}

    @property
    def probe(self) -> tuple[str, ...]:
        """Command of the probe of its measuring core."""
        return (*self.place.agent, "probe")

    @property
    def measured_on(self) -> tuple[str, int | None]:
        """Boot and core, because simulated machines on one host may share a core."""
        return self.said["boot_id"], self.said["core"]

    def hello(self, token: str) -> None:
        """Begin the session. Raises TollbarError if the machine is not the named one."""
        asked = {"version": __version__, "build": engine_build(), "addresses": self.place.addresses}
        directory = str(self.sandbox.directory)
        self.said = self._ask("hello", limit_s=HELLO_LIMIT_S, **asked, directory=directory, token=token)
        self.keep_up()

    def keep_up(self) -> None:
        """Send keep-alive lines to the agent from now on, whatever it waits for."""

        def beat() -> None:
            machine.keep_off(machine.measuring_core())
            while not self._closing.wait(BEAT_S):
                self._process.beat()

        self._beating = threading.Thread(target=beat, daemon=True)
        self._beating.start()

    def ask(self, what: str, *, limit_s: float = ANSWER_LIMIT_S, **arguments: Any) -> Any:
        """Return the answer to a request.

        Raises NotStarted and PortTaken as the agent does, and TollbarError if the machine fails.
        """
        return self._ask(what, limit_s=limit_s, **arguments)

    def _ask(self, what: str, *, limit_s: float, **arguments: Any) -> Any:
        with self._lock:
            try:
                self._process.say({what: arguments})
                said = json.loads(self._process.hear(limit_s))
            except (Ended, ValueError, RecursionError) as error:
                raise self._lost(getattr(error, "reason", str(error)).replace("the runner", "its agent")) from None
        try:
            # Converted first, because a text may contain these words.
            said = dict(said)
            if "not_started" in said:
                outcome, reason = answers.why_not(said["not_started"])
                raise NotStarted(outcome, f"on {self.where}: {reason}")
            if "port_taken" in said:
                raise PortTaken
            if "error" in said:
                raise TollbarError(f"the machine of the role {self.where}: {answers.printable(said['error'])}")
            return answers.answer(what, said["done"], f"the machine of the role {self.where}")
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise self._lost(f"its agent gave an invalid answer to `{what}`") from None

    def check(self) -> None:
        """Raise TollbarError if the machine, or the network to it, is lost."""
        if not self._process.answers_within(0.0):
            address, _, port = self.said["accounts"].rpartition(":")
            try:
                socket.create_connection((address, int(port)), REACHED_LIMIT_S).close()
                return
            except OSError as error:
                raise self._lost(f"it cannot be reached: {error}") from None
        raise self._lost("its agent has ended")

    def found(self, found: Installed) -> Installed:
        """Return the server as installed on the machine.

        Raises NotStarted, also if its programs have other versions, because rows name the lab's.
        """
        said = self.ask("find", server=found.server.name)
        for component, version in found.versions.items():
            if (there := said["versions"].get(component)) != version:
                program = found.programs[component].name
                raise NotStarted(
                    Outcome.UNSUPPORTED,
                    f"on {self.where}: {program} has version {there}, but must have {version} as on this machine",
                )
        programs = {name: Path(path) for name, path in said["programs"].items()}
        return Installed(found.server, said["versions"], programs, said["tools"], said["places"])

    def start(
        self, request: Request, component: Component, locations: Mapping[str, Location], environment: Mapping[str, str]
    ) -> Elsewhere:
        """Start a component on the machine. Raises NotStarted, and PortTaken if another endpoint will do."""
        server = request.found.server.name
        of_lab = request
        request = replace(request, found=self.found(request.found))
        endpoint = self._endpoint(component, self.ask("endpoint", server=server, component=component.name))
        # Its directory has the same name on both machines; the one here stays empty.
        work_dir = self.sandbox.work_dir(f"{server}-{component.name}")
        store = self.sandbox.given_by(work_dir)
        locations = {**locations, component.name: Location(work_dir, endpoint, store)}
        configured = render(request, component, locations)
        texts = [*shipping.texts_of(asdict(configured)), *environment.values()]
        try:
            files = shipping.packed(shipping.named(texts, self.sandbox.directory), self.sandbox.directory)
        except TollbarError as error:
            raise NotStarted(Outcome.UNSUPPORTED, f"{component.name} on another machine: {error}") from error
        said = self.ask(
            "start",
            limit_s=START_LIMIT_S,
            server=server,
            component=component.name,
            name=work_dir.name,
            settings=dict(request.settings),
            provider=_said_of(request.provider),
            rendered=asdict(configured),
            environment=dict(environment),
            endpoint=asdict(endpoint),
            files=files,
        )
        # A krb5.conf can name modules to load, so others read the lab's own rendering of its configuration.
        rendered = render(of_lab, component, locations).files
        handing.collect(work_dir, rendered, component.gives, store)
        shipping.take(said["files"], store, component.gives, self.said["directory"])
        return Elsewhere(self, component.name, work_dir, endpoint, said["pid"], said["said"])

    def _endpoint(self, component: Component, said: Mapping[str, Any]) -> Endpoint:
        """Return the endpoint.

        Raises TollbarError for an address that is not the machine's, because other configurations name it.
        """
        endpoint = Endpoint(**said)
        ports = (endpoint.port, *endpoint.ports.values())
        is_right = endpoint.address in self.place.addresses and endpoint.ports.keys() == set(component.ports)
        if not is_right or not all(0 < port < 65536 for port in ports):
            what = f"{component.name} must listen on an address and the ports of its role, not at {said}"
            raise TollbarError(f"the machine of the role {self.where}: {what}")
        return endpoint

    def prove(self, request: Request, pid: int) -> Mapping[str, str]:
        """Return the libraries that the frontend has loaded. Raises NotStarted if they are not the cell's."""
        said = self.ask(
            "prove",
            pid=pid,
            server=request.found.server.name,
            provider=_said_of(request.provider),
            encrypted=request.is_encrypted,
            cpu=str(request.settings.get("cpu", "native")),
        )
        proved: Mapping[str, str] = said["proved"]
        needs_one = request.is_encrypted and request.provider.kind == "libcrypto"
        if lacking := answers.lacks_digest(proved, said["digests"], needs_one=needs_one):
            raise NotStarted(Outcome.UNSUPPORTED, f"on {self.where}: the agent sent no digest of {lacking}")
        for path, digest in said["digests"].items():
            if not digest or digest != loading.digest(path):
                reason = f"on {self.where}: {path} differs from the file on this machine; install the same version"
                raise NotStarted(Outcome.UNSUPPORTED, reason)
        return proved

    def close(self) -> None:
        """End the agent, and with it all that it started."""
        self._closing.set()
        if self._beating is not None:
            self._beating.join(ANSWER_LIMIT_S)
        self._process.end_input()
        try:
            self._process.how_it_ends(ANSWER_LIMIT_S)
        except Ended:
            pass
        finally:
            self._process.kill()

    def _lost(self, why: str) -> TollbarError:
        return TollbarError(
            f"the machine of the role {self.where} is lost: {why}",
            hint="committed results are safe; once the machine is back, continue with `tollbar run --resume RUN`",
        )


@dataclass(slots=True)
class Elsewhere:
    """Component that runs on another machine; the driver uses it like a `running.Running`."""

    node: Node
    name: str
    work_dir: Path
    """Directory on the lab's machine, for the files that it gives to others."""
    endpoint: Endpoint
    pid: int
    """Process id on its own machine."""
    said: Mapping[str, Any]

    @property
    def log(self) -> Path:
        """Copy of the end of its log."""
        path = self.node.sandbox.log_of(self.work_dir, self.name)
        write(path, str(self.node.ask("log", name=self.work_dir.name)).encode(), 0o600)
        return path

    def fault(self) -> str | None:
        """Return how it ended by itself; None: it runs."""
        fault: str | None = self.node.ask("fault", name=self.work_dir.name)
        return fault and f"on {self.node.where}: {fault}"

    def complaint(self) -> str | None:
        """Return why it could not serve a request."""
        said: str | None = self.node.ask("complaint", name=self.work_dir.name)
        return said

    def end(self) -> str | None:
        """End it."""
        left: str | None = self.node.ask("end", name=self.work_dir.name)
        return left

    def stop(self) -> str | None:
        """End it and remove its directories on both machines."""
        left: str | None = self.node.ask("stop", name=self.work_dir.name)
        for folder in (self.work_dir, self.node.sandbox.given_by(self.work_dir)):
            shutil.rmtree(folder, ignore_errors=True)
        return left


@contextmanager
def reached(places: Sequence[RoleMachine], sandbox: Sandbox) -> Iterator[None]:
    """Keep an agent on each of these machines during this context. Raises TollbarError."""
    token = secrets.token_hex(TOKEN_BYTES)
    token_file = sandbox.directory / "account.token"
    with ExitStack() as stack:
        if places:
            write(token_file, token.encode(), 0o600)
            sandbox.peers = (LOOPBACK, *(str(ip_network(one)) for place in places for one in place.addresses))
        for place in places:
            if place.role == CLIENT:
                continue
            node = Node(place, sandbox, Process(place.agent, is_lab=True), token_file=str(token_file))
            stack.callback(node.close)
            node.hello(token)
            sandbox.nodes[place.role] = node
        try:
            yield
        finally:
            sandbox.nodes.clear()


def _said_of(provider: Provider) -> dict[str, Any]:
    return {name: getattr(provider, name) for name in ("spec", "name", "kind", "path")}
