"""Workload of requests: a server that is started for the trial, and its load client.

In the general one a request triggers the operation of the family, which the embedded server performs by the same code
as a runner. A family with other servers overrides their configuration, and the kinds of client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tollbar.catalog import families, servers
from tollbar.catalog.families import Standing, Value
from tollbar.catalog.servers import Installed, NotStarted, Server, Unavailable
from tollbar.catalog.servers.remote import Remote
from tollbar.core import machine, proc
from tollbar.core.errors import TollbarError
from tollbar.core.metrics import NETWORK
from tollbar.core.records import (
    CLIENT,
    Outcome,
    Proven,
    failed,
)
from tollbar.core.runner import confined, engine
from tollbar.core.runner.confined import Account
from tollbar.lab.servers import driver, handing, loading
from tollbar.lab.servers.configuration import Request, rendered
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.servers.scenario import exchange_of
from tollbar.lab.workloads import Given, Shown, Work, Workload, unproven
from tollbar.lab.workloads.operation import OperationWorkload
from tollbar.lab.workloads.request_work import RequestWork, Target, with_fault
from tollbar.study import NOT_SETTINGS, Load, is_paced
from tollbar.study.plan.cells import Cell
from tollbar.study.scenario import WireScenario

# Connections, a handful of them refused, of which one or two may have to reach a limit.
PROOF_LIMIT_S = 60.0
# Time after which a server without an answer counts as stalled.
REQUEST_LIMIT_S = 10.0
# A closed load has this number of requests for each user, so that users are not all in their first one.
REQUESTS_A_USER = 2

Client = dict[str, Any]
"""Kind of client of a load task, with its share of all."""


class RequestWorkload(Workload):
    """Request that makes the server perform the family's operation."""

    def serves(self, cell: Cell) -> bool:
        """Return whether the cell has a server, without which there are no requests."""
        return cell.server is not None

    def request(self, cell: Cell, found: Installed, seed: int, sandbox: Sandbox | None) -> Request:
        """Return the request for the server; without a sandbox, for display. Raises NotStarted."""
        if cell.provider.kind not in found.server.performs:
            raise NotStarted(
                Outcome.UNSUPPORTED, f"{found.server.title} does not perform operations of {cell.provider.kind}"
            )
        # These are part of the server's configuration, not of the contract.
        operation = {
            name: value for name, value in cell.task("measure", seed).items() if name not in ("contract", "threads")
        }
        return Request(
            found,
            cell.provider,
            settings_of(cell),
            words={"operations": [operation]},
            check=lambda pid: loading.prove(found, cell.provider, pid, encrypted=False),
        )

    def clients(self, cell: Cell, sandbox: Sandbox | None) -> list[Client]:
        """Return the kinds of client with their shares; without a sandbox, for display."""
        return [{"share": 100, "tls": None}]

    def host(self, cell: Cell) -> str:
        """Return the server's host name for its clients."""
        return cell.server.host if isinstance(cell.server, Remote) else "localhost"

    def connection(self, cell: Cell) -> str:
        """Return the default of the study: a `new` connection for each operation, or one for each `user`."""
        return "new" if cell.coordinates["op"] == "connect" else "user"

    def exchange(self, cell: Cell, server: Target, sandbox: Sandbox | None) -> dict[str, Any] | None:
        """Return the sign-in of its users, or None; without a sandbox, for display."""
        return None

    def proven_alone(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof without a server: the operation by known answers, as everywhere."""
        return OperationWorkload().prove(cell, seed, given)

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof that the server does what the cell demands, and refuses what it should."""
        alone = self.proven_alone(cell, seed, given)
        if alone.outcome is not Outcome.OK:
            return alone
        try:
            with self._server(cell, seed, given.sandbox, None) as server:
                task, account = self._handed(cell, "verify", seed, server, given.sandbox)
                record = given.ask(command(), task, limit_s=PROOF_LIMIT_S, core=machine.client_core(), account=account)
                record = with_fault(record, server)
        except NotStarted as error:
            return unproven(cell, error.outcome, error.reason)
        if record.outcome is Outcome.OK and record.proof is None:
            record = failed("the load client verified nothing")
        if record.outcome is not Outcome.OK or record.proof is None:
            return unproven(cell, record.outcome, record.reason)
        refused = (*record.proof.refused, *alone.refused)
        if cell.standing is not Standing.NULL and not refused:
            return unproven(cell, Outcome.FAILED, "no proof: no wrong input was tried and refused")
        accepted, not_tried = (*record.proof.accepted, *alone.accepted), (*record.proof.not_tried, *alone.not_tried)
        return Proven(cell.study, cell.key, Outcome.OK, None, alone.known_answers, accepted, refused, not_tried)

    @contextmanager
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> Iterator[Work]:
        """Start a fresh server on `core`, and yield the work of its load client. Raises NotStarted."""
        cores = _cores(cell, core)
        if cores or isinstance(cell.server, Remote) or (sandbox is not None and sandbox.nodes):
            # A server with a core for each thread, or on another machine, starts on its final cores.
            begins_on = None
        with self._server(cell, seed, sandbox, core, begins_on) as server:
            in_rounds, in_phase = _client_cores(cell, server, core)
            task, account = self._handed(cell, "measure", seed, server, sandbox)
            yield RequestWork(
                command(),
                {**task, "load": {**task["load"], "threads": len(cores), "cores": [*cores]}} if cores else task,
                in_rounds,
                account=account,
                paid_on=_paid_on(cell, server, core),
                metrics=(*families.family(cell.family).metrics, *(NETWORK if _is_elsewhere(cell, server) else ())),
                fewest=fewest_of(cell),
                # A throughput phase needs the client on a separate core, and several threads leave none.
                settles=not cores,
                phase_core=in_phase,
                begins_on=begins_on,
                paid_elsewhere=_paid_elsewhere(server),
                cores=cores,
                threads=cell.threads,
                components=server.components,
                component=CLIENT,
                server=server,
            )

    def shown(self, cell: Cell, seed: int) -> Shown:
        """Return the load client's task, and the configuration of the server."""
        try:
            task = self._task(cell, "measure", seed, Remote("", "ADDRESS:PORT", {"web": 0}), None)
            return Shown(command(), task, self._configuration(cell, seed))
        except NotStarted as error:
            return Shown(command(), {"impossible": error.reason}, error.reason)

    def _configuration(self, cell: Cell, seed: int) -> str | None:
        if isinstance(cell.server, Remote) or cell.server is None:
            return None
        found = servers.find(cell.server)
        return found.reason if isinstance(found, Unavailable) else rendered(self.request(cell, found, seed, None))

    @contextmanager
    def _server(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, begins_on: int | None = None
    ) -> Iterator[Target]:
        """Yield the server of a cell: started here, or one that is already up."""
        if isinstance(cell.server, Remote):
            if (fault := cell.server.fault()) is not None:
                raise NotStarted(Outcome.FAILED, fault)
            yield cell.server
            return
        assert cell.server is not None
        assert sandbox is not None, "servers need a sandbox"
        request = replace(self.request(cell, servers.here(cell.server), seed, sandbox), cores=_cores(cell, core))
        if request.cores and sandbox is not None and sandbox.nodes:
            reason = "`threads` needs the server and its load client on one machine; leave out `--roles`"
            raise NotStarted(Outcome.UNSUPPORTED, reason)
        if request.cores and request.services:
            behind = " and ".join(service.server.name for service in request.services)
            raise NotStarted(
                Outcome.UNSUPPORTED, f"{behind}, which {cell.server.name} calls, runs on one core; use `threads=1`"
            )
        with driver.start(sandbox, request, core, begins_on=begins_on) as server:
            yield server

    def account_like(self, cell: Cell) -> str | None:
        """Return the component whose account its client needs in root's lab; None: the client has its own."""
        return None

    def _handed(
        self, cell: Cell, mode: str, seed: int, server: Target, sandbox: Sandbox | None
    ) -> tuple[dict[str, Any], Account | None]:
        """Return the load client's task, with its own copies of the files that it reads, and its account."""
        task = self._task(cell, mode, seed, server, sandbox)
        if cell.load is not None and cell.load.scenario is not None:
            task["load"]["exchange"] = _scenario(cell, cell.load.scenario)
        account = server.client_account(self.account_like(cell))
        if sandbox is None:
            return task, account
        if account is None and (own := sandbox.account_of("client")):
            # The server is the user's own, and its answers are not trusted.
            account = replace(own, groups=confined.seeing_groups())
        return handing.own_copies(sandbox, task, handing.client_folder(sandbox, account), account), account

    def _task(self, cell: Cell, mode: str, seed: int, server: Target, sandbox: Sandbox | None) -> dict[str, Any]:
        """Return the load client's task: address, requests, number of users, and the expected answers."""
        assert cell.load is not None
        load, at = cell.load, cell.coordinates
        expected = None if load.expected_bytes is None else int(load.expected_bytes.format_map(dict(at)))
        return cell.task(mode, seed) | {
            "load": {
                "address": server.address,
                "host": self.host(cell),
                "clients": self.clients(cell, sandbox),
                **_shape(load, at, cell.threads),
                "connection": load.connection or self.connection(cell),
                "request": {
                    "method": "GET",
                    "paths": [_path(cell, load)],
                    "headers": [],
                    "unique_query": load.unique_query,
                },
                "exchange": self.exchange(cell, server, sandbox)
                if load.scenario is None
                else exchange_of(load.scenario, str(at["step"]), is_shown=True),
                "expect": {"status": load.status, "bytes": expected},
                "is_lab": not isinstance(cell.server, Remote),
                "components": {name: pid for name, pid in server.components.items() if name not in server.nodes},
                "elsewhere": _elsewhere(server),
                "request_limit_s": REQUEST_LIMIT_S,
            }
        }


def _scenario(cell: Cell, scenario: WireScenario) -> dict[str, Any]:
    """Return the scenario of a cell with its secrets, which are read for each task. Raises NotStarted."""
    try:
        return exchange_of(scenario, str(cell.coordinates["step"]))
    except TollbarError as error:
        raise NotStarted(Outcome.FAILED, str(error)) from error


def _paid_on(cell: Cell, server: Target, core: int | None) -> int | None:
    """Return the one core that pays the cost; for a user's own server, if it is kept on one."""
    if not isinstance(cell.server, Remote):
        return core if server.components.keys() - server.nodes.keys() else None
    if core is None:
        return None
    return proc.only_core(server.components.values()) if server.components else machine.client_core()


def _is_elsewhere(cell: Cell, server: Target) -> bool:
    """Return whether the load client sends its requests to another machine.

    Services behind the frontend do not count.
    """
    return isinstance(cell.server, Server) and cell.server.frontend.name in server.nodes


def _paid_elsewhere(server: Target) -> tuple[tuple[str, ...], ...]:
    """Return the commands of the probes of other machines' paying cores, one for each core."""
    return tuple({node.measured_on: node.probe for node in server.nodes.values()}.values())


def _elsewhere(server: Target) -> list[dict[str, Any]]:
    """Return the machines that the load client asks for accounts, with their components."""
    places: dict[str, dict[str, Any]] = {}
    for name, node in server.nodes.items():
        at = node.said["accounts"]
        place = places.setdefault(at, {"address": at, "token_file": node.token_file, "components": {}})
        place["components"][name] = server.components[name]
    return [*places.values()]


def _path(cell: Cell, load: Load) -> str:
    if load.get is not None:
        return load.get.format_map(dict(cell.coordinates))
    assert isinstance(cell.server, Remote), "only a URL says by itself what is asked for"
    return cell.server.path


def _cores(cell: Cell, core: int | None) -> tuple[int, ...]:
    """Return the core of each thread of server and load, the measuring core `core` first; empty without threads."""
    if "threads" not in cell.coordinates:
        return ()
    return machine.cores_for(cell.threads, max(machine.CORES) if core is None else core)


def _shape(load: Load, at: Mapping[str, Value], threads: int) -> dict[str, Any]:
    """Return the shape of the load; each of several threads has as many users as a single one."""
    return {
        "shape": "open" if is_paced(at) else "closed",
        "users": load.users[0] if load.is_open else threads * int(at["users"]),
        "rate_hz": float(at.get("rate", 0)),
        "utilisation": float(at.get("utilisation", 0)) / 100,
        "think_s": load.think_s,
    }


def _client_cores(cell: Cell, server: Target, core: int | None) -> tuple[int | None, int | None]:
    """Return the load client's cores in rounds, and in the throughput phase if that differs.

    `core` is the measuring core. A client on another core has other neighbours. Whenever they slow it, the server
    sleeps and pays for being woken across cores, which is not part of a choice's cost. On the server's core the server
    runs when the client blocks, takes all that is pending, and hardly sleeps.
    """
    apart = machine.client_core(core)
    if isinstance(cell.server, Remote) or cell.coordinates.get("client") == "apart" or "web" in server.nodes:
        # The lab does not control the cores of a user's own server, or those of another machine.
        return apart, None
    # None: there is one core for all.
    return core, None if core is None else apart


def fewest_of(cell: Cell) -> int:
    """Return the least number of requests of a chunk, as far as users determine it."""
    users = cell.coordinates.get("users")
    return REQUESTS_A_USER * cell.threads * users if isinstance(users, int) else 1


def settings_of(cell: Cell) -> dict[str, str | int]:
    """Return the choice and the settings of a cell, as plain words and numbers."""
    settings = {name: value for name, value in cell.coordinates.items() if name not in NOT_SETTINGS}
    # Numbers of settings are whole.
    plain = {name: value if isinstance(value, str) else int(value) for name, value in settings.items()}
    return {"choice": cell.choice.name, **plain}


def command() -> tuple[str, ...]:
    """Return the command of the load client."""
    return (str(engine()), "load")
