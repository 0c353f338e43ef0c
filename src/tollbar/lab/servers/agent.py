"""Agent: starts and stops components on its machine for a lab on another one.

`python -m tollbar.lab.servers.agent` reads lines of JSON on standard input and answers each on standard output, over
any transport: ssh, a namespace, Ray. It has the machine's own sandbox, guard and keeper, and all of it ends when its
input ends or is silent for a minute. `… agent probe` becomes the probe of the measuring core.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

from tollbar import __version__
from tollbar.catalog import servers
from tollbar.catalog.libraries import Provider, engine_build
from tollbar.catalog.servers import Component, Installed, NotStarted, Server, remote
from tollbar.core import machine, proc
from tollbar.core.errors import TollbarError, interrupts_kept
from tollbar.core.records import Outcome
from tollbar.core.runner import confined, engine
from tollbar.core.runner.confined import Account
from tollbar.core.runner.process import Ended, Process
from tollbar.lab.servers import handing, loading, masking, shipping
from tollbar.lab.servers.configuration import Endpoint, Rendered, Request
from tollbar.lab.servers.driver import free_port
from tollbar.lab.servers.guarded import end_of
from tollbar.lab.servers.running import PortTaken, Running
from tollbar.lab.servers.sandbox import Sandbox

# It listens right after its start.
ACCOUNTS_LIMIT_S = 10.0

# The lab sends at least an empty line every `nodes.BEAT_S`.
SILENCE_S = 60.0
MOST_READ_BYTES = 1 << 20

Said = dict[str, Any]
ASKED = ("hello", "find", "endpoint", "start", "prove", "fault", "complaint", "log", "end", "stop")
"""Requests that a lab may send to an agent."""


class Agent:
    """Components that the agent has started, by the lab's names of their work directories."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._lab_directory = ""
        self._addresses: Sequence[str] = ()
        self._running: dict[str, Running] = {}
        self._accounts: Process | None = None
        self._core = machine.measuring_core()
        machine.keep_off(self._core)

    def hello(self, version: str, build: str, addresses: Sequence[str], directory: str, token: str) -> Said:
        """Begin the session. Raises TollbarError for a lab of another version, and for a foreign address."""
        ours = f"{__version__} ({engine_build()})"
        if (theirs := f"{version} ({build})") != ours:
            raise TollbarError(f"it has Tollbar {ours}; the lab has {theirs}")
        for address in addresses:
            if not remote.is_here(address):
                raise TollbarError(f"{address} is not an address of that machine")
        self._addresses, self._lab_directory = addresses, directory
        seeing = confined.seeing_groups()
        account = Account(os.geteuid(), seeing) if seeing and confined.has_accounts() else None
        self._accounts = Process((str(engine()), "account"), core=machine.client_core(self._core), account=account)
        self._accounts.say({"listen": f"{addresses[0]}:0", "token": token})
        try:
            listening = json.loads(self._accounts.hear(ACCOUNTS_LIMIT_S))["listening"]
        except Ended as ended:
            raise TollbarError(f"its account agent cannot be started: {ended.reason}") from None
        return {
            "accounts": listening,
            "host": socket.gethostname(),
            "directory": str(self._sandbox.directory),
            "core": self._core,
            "boot_id": proc.boot_id(),
            "fingerprint": machine.fingerprint(),
        }

    def find(self, server: str) -> Said:
        """Return the installed programs of a server or a service. Raises NotStarted."""
        found = self._found(server)
        programs = {name: str(path) for name, path in found.programs.items()}
        tools = {name: dict(paths) for name, paths in found.tools.items()}
        return {"versions": dict(found.versions), "programs": programs, "tools": tools, "places": dict(found.places)}

    def endpoint(self, server: str, component: str) -> Said:
        """Return a free endpoint of a component. Raises NotStarted if its fixed port is in use."""
        asked = self._component(server, component)
        address = next((one for one in self._addresses if not asked.port or _is_free(one, asked.port)), None)
        if address is None:
            raise NotStarted(
                Outcome.UNSUPPORTED,
                f"port {asked.port} is in use on {' and '.join(self._addresses)}, perhaps by another directory of the"
                f" run; add an address of that machine, for example --roles"
                f" {asked.role}={'+'.join(self._addresses)}+ADDRESS",
            )
        ports = {name: free_port(address) for name in asked.ports}
        return {"address": address, "port": asked.port or free_port(address), "ports": ports}

    def start(
        self,
        server: str,
        component: str,
        name: str,
        settings: Said,
        provider: Said,
        rendered: Said,
        environment: Said,
        endpoint: Said,
        files: shipping.Bundle,
    ) -> Said:
        """Start a component in the work directory of this name, and return when it is ready. Raises NotStarted."""
        sandbox, found, asked = self._sandbox, self._found(server), self._component(server, component)
        shipping.unpack(files, sandbox.directory, self._lab_directory)
        told = Rendered(**shipping.renamed(rendered, self._lab_directory, str(sandbox.directory)))
        work_dir = sandbox.directory / name
        work_dir.mkdir()
        work_dir.chmod(0o711)
        request = Request(found, _provider(provider), settings)
        account = self._account(server, asked, told)
        told = handing.lay_out(sandbox, request, asked, told, work_dir, account)
        running = self._running[name] = Running(
            asked,
            found.programs[component],
            told,
            sandbox=sandbox,
            work_dir=work_dir,
            endpoint=Endpoint(**endpoint),
            cores=() if self._core is None else (self._core,),
            environment=shipping.renamed(environment, self._lab_directory, str(sandbox.directory)),
            account=account,
            reaches=request.reaches(asked),
        )
        try:
            running.wait_until_ready()
        except BaseException:
            running.end()
            raise
        store = sandbox.given_by(work_dir)
        handing.collect(work_dir, told.files, asked.gives, store)
        files = shipping.packed([store] if asked.gives else [], sandbox.directory)
        return {"pid": running.pid, "said": dict(running.said), "files": files}

    def prove(self, pid: int, server: str, provider: Said, encrypted: bool, cpu: str) -> Said:
        """Return the libraries that the server has loaded, with digests.

        Raises NotStarted if they are not the provider's.
        """
        found, asked = self._found(server), _provider(provider)
        mask = masking.mask(found, asked, cpu)
        proved = {**loading.prove(found, asked, pid, encrypted=encrypted), **(mask.prove(pid) if mask else {})}
        mapped = (path for paths in proc.tls_libraries(proc.tree(pid)).values() for path in paths)
        return {"proved": proved, "digests": {path: loading.digest(path) for path in mapped}}

    def fault(self, name: str) -> str | None:
        """Return how a component ended by itself; None: it runs."""
        return self._running[name].fault()

    def complaint(self, name: str) -> str | None:
        """Return why a component could not serve a request."""
        return self._running[name].complaint()

    def log(self, name: str) -> str:
        """Return the end of a component's log."""
        with suppress(OSError):
            return end_of(self._running[name].log).decode(errors="replace")
        return ""

    def end(self, name: str) -> str | None:
        """End a component; its directory stays."""
        return self._running[name].end()

    def stop(self, name: str) -> str | None:
        """End a component and remove its directory."""
        running = self._running.pop(name, None)
        return running.stop() if running else None

    def close(self) -> None:
        """End the account agent, which the sandbox does not manage."""
        if self._accounts is not None:
            self._accounts.kill()

    def _account(self, server: str, component: Component, told: Rendered) -> Account | None:
        """Return the account of a component, which may connect to the sockets of all components started before it."""
        own = self._sandbox.account_of(f"{server}/{component.name}")
        shared = (one.account for one in self._running.values() if one.component == told.account)
        account = next(shared, own) if told.account else own
        return account and replace(account, groups=handing.groups(self._running.values()))

    def _component(self, server: str, component: str) -> Component:
        return next(one for one in _server(server).components if one.name == component)

    def _found(self, server: str) -> Installed:
        return servers.here(_server(server))


def _is_free(address: str, port: int) -> bool:
    try:
        free_port(address, port)
    except OSError:
        return False
    return True


def _server(name: str) -> Server:
    found = {**servers.all_servers(), **servers.services()}.get(name)
    if found is None:
        raise NotStarted(Outcome.UNSUPPORTED, f"there is no server `{name}` on that machine")
    return found


def _provider(said: Mapping[str, Any]) -> Provider:
    return Provider(spec=said["spec"], name=said["name"], kind=said["kind"], path=said["path"], runner=(), receipt={})


def answer(agent: Agent, line: bytes) -> Said:
    """Return the answer to one line: `done`, or the reason of a failure."""
    asked: dict[str, Any] = json.loads(line)
    ((name, arguments),) = asked.items()
    does: Callable[..., Any] | None = getattr(agent, name, None) if name in ASKED else None
    if does is None:
        return {"error": f"the agent does not support the request `{name}`"}
    try:
        return {"done": does(**arguments)}
    except NotStarted as error:
        return {"not_started": [error.outcome, error.reason]}
    except PortTaken:
        return {"port_taken": True}
    except (TollbarError, OSError) as error:
        return {"error": str(error)}


def lines_of_lab(handle: int) -> Iterator[bytes]:
    """Yield the lab's lines until its end.

    Raises KeyboardInterrupt in this thread, whatever it does, once the lab has been silent: a cut network does not
    report an end.
    """
    lines: SimpleQueue[bytes | None] = SimpleQueue()

    def listen() -> None:
        rest = b""
        while True:
            if not select.select([handle], [], [], SILENCE_S)[0]:
                signal.pthread_kill(asking, signal.SIGINT)
                return
            read = os.read(handle, MOST_READ_BYTES)
            if not read:
                lines.put(None)
                return
            *whole, rest = (rest + read).split(b"\n")
            for line in filter(None, whole):
                lines.put(line)

    asking = threading.get_ident()
    threading.Thread(target=listen, daemon=True).start()
    while (line := lines.get()) is not None:
        yield line


def main() -> None:
    """Serve the lab on standard input and output, until the input ends or is silent."""
    if sys.argv[1:] == ["probe"]:
        core = machine.measuring_core()
        pinned = ["--core", str(core)] if core is not None else []
        os.execv(engine(), [str(engine()), "guard", *pinned, "--", str(engine()), "op"])
    # A program started in the background may inherit that SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(KeyboardInterrupt), interrupts_kept(), Sandbox() as sandbox:
        agent = Agent(sandbox)
        try:
            for line in lines_of_lab(sys.stdin.fileno()):
                sys.stdout.buffer.write(json.dumps(answer(agent, line)).encode() + b"\n")
                sys.stdout.buffer.flush()
        finally:
            agent.close()


if __name__ == "__main__":
    main()
