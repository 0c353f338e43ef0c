"""A cell that is measured through a server: started for the trial, proved by what it accepts and refuses, and asked
by a load client on another core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from tollbar import beds, libraries, machine
from tollbar.beds import NotStarted, Unavailable, driver, tls
from tollbar.beds.certificates import Certificates, UnmadeCertificates
from tollbar.beds.configuration import rendered
from tollbar.beds.sandbox import Sandbox
from tollbar.families import Standing
from tollbar.measure import primitive
from tollbar.measure.trial import Ask, Proven, unproven
from tollbar.plan import Cell, Service
from tollbar.runner import ChunkRecord, LoadRecord, Outcome, Record, Steady, Totals, engine
from tollbar.study import NOT_SETTINGS

# Connections, a handful of them refused, of which one or two may have to run into a limit.
PROOF_LIMIT_S = 60.0
# How long an answer may take before the server is said to have stalled.
REQUEST_LIMIT_S = 10.0


class _Server(Protocol):
    """What a load needs to know of a server."""

    @property
    def address(self) -> str: ...
    @property
    def components(self) -> Mapping[str, int]: ...
    def fault(self, within_s: float = 0.0) -> str | None: ...


def prove(
    cell: Cell, service: Service, seed: int, met: primitive.VerifiedAnswers, sandbox: Sandbox | None, ask: Ask
) -> Proven:
    """Has the server do what the cell says, and refuse what it should."""
    performed = None
    if _is_performed(cell):
        # What the server does for each request is proved as it is everywhere, by known answers.
        performed = primitive.prove(cell, seed, met, ask)
        if performed.outcome is not Outcome.OK:
            return performed
    try:
        with _server(cell, service, seed, sandbox, None) as server:
            task = _load_task(cell, service, "verify", seed, server, _certificates(sandbox))
            record = ask(command(), task, limit_s=PROOF_LIMIT_S, core=machine.client_core())
            record = _with_fault(record, server)
    except NotStarted as error:
        return unproven(cell, error.outcome, error.reason)
    if record.outcome is not Outcome.OK:
        return unproven(cell, record.outcome, record.reason)
    if record.proof is None:
        return unproven(cell, Outcome.FAILED, "the load client verified nothing")
    accepted = (*record.proof.accepted, *(performed.accepted if performed else ()))
    refused = (*record.proof.refused, *(performed.refused if performed else ()))
    if cell.standing is not Standing.NULL and not refused:
        return unproven(cell, Outcome.FAILED, "no proof: nothing wrong was tried and refused")
    known = performed.known_answers if performed else 0
    not_tried = (*record.proof.not_tried, *(performed.not_tried if performed else ()))
    return Proven(cell.study, cell.key, Outcome.OK, None, known, accepted, refused, not_tried)


@contextmanager
def up(cell: Cell, service: Service, seed: int, sandbox: Sandbox | None, core: int | None) -> Iterator[Asked]:
    """A fresh server on `core`, and what its load client is told. Raises NotStarted."""
    with _server(cell, service, seed, sandbox, core) as server:
        yield Asked(server, _load_task(cell, service, "measure", seed, server, _certificates(sandbox)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A server that is up, and the task of the load client that asks it."""

    server: _Server
    task: dict[str, Any]

    def with_fault(self, record: Record) -> Record:
        """The record of a load that failed, with what became of the server if it was that which ended."""
        return _with_fault(record, self.server)

    def contradiction(self, chunk: ChunkRecord) -> str | None:
        """What cannot be so in a chunk without an error: every answer was right, and every component was at work."""
        seen = chunk.observed
        wrong = sum(seen.errors.values())
        if wrong:
            return f"{wrong} of {seen.requests} requests failed"
        if seen.requests != chunk.operations:
            return f"{chunk.operations} right answers to {seen.requests} requests"
        if seen.components.keys() != self.server.components.keys():
            return f"an account of {sorted(seen.components)}, where the server is {sorted(self.server.components)}"
        if seen.components and not any(one.cpu_ns for one in seen.components.values()):
            return "the server's processes used no CPU time, which cannot be"
        return None


def configuration_of(cell: Cell, seed: int) -> str | None:
    """What the cell's server would be told, for people; None where it has none of its own."""
    if cell.service is None or cell.service.bed is None:
        return None
    found = beds.find(cell.service.bed)
    if isinstance(found, Unavailable):
        return found.reason
    try:
        return rendered(found, cell.provider, _settings(cell), _operations(cell, seed))
    except tls.Impossible as impossible:
        return str(impossible)


def load_task_shown(cell: Cell, seed: int) -> dict[str, Any]:
    """The task of the load client, for people: before there is a server, and without keys."""
    assert cell.service is not None
    server = _UsersServer("ADDRESS:PORT", {"web": 0})
    try:
        return _load_task(cell, cell.service, "measure", seed, server, UnmadeCertificates(Path("certificates")))
    except tls.Impossible as impossible:
        return {"impossible": str(impossible)}


def _load_task(
    cell: Cell, service: Service, mode: str, seed: int, server: _Server, certificates: Certificates | None
) -> dict[str, Any]:
    """Whom to ask for what, as how many, and what to expect."""
    load = service.load
    at = cell.coordinates
    opened = load.connection or ("new" if at["op"] == "connect" else "user")
    expected = None if load.expected_bytes is None else int(load.expected_bytes.format_map(dict(at)))
    return cell.task(mode, seed) | {
        "load": {
            "address": server.address,
            "host": urlsplit(service.url).netloc if service.url else "localhost",
            "clients": _clients(cell, service, certificates),
            "shape": "open" if load.is_open else "closed",
            "users": load.users[0] if load.is_open else at["users"],
            "rate_hz": float(at.get("rate", 0)),
            "think_s": load.think_s,
            "connection": opened,
            "request": {
                "method": "GET",
                "paths": [load.get.format_map(dict(at))],
                "headers": [],
                "unique_query": load.unique_query,
            },
            "expect": {"status": load.status, "bytes": expected},
            "components": dict(server.components),
            "request_limit_s": REQUEST_LIMIT_S,
        }
    }


def command() -> tuple[str, ...]:
    """The load client."""
    return (str(engine()), "load")


def _is_performed(cell: Cell) -> bool:
    """Whether the cell is a primitive that the server performs for each request, and not the server's own doing."""
    return cell.family in cell.provider.receipt.get("offers", {})


def _operations(cell: Cell, seed: int) -> list[dict[str, Any]]:
    """What the server is to perform for each request."""
    if not _is_performed(cell):
        return []
    # They are part of the server's configuration, and no lines of the contract.
    return [{name: value for name, value in cell.task("measure", seed).items() if name != "contract"}]


def _settings(cell: Cell) -> Mapping[str, Any]:
    """What the server and its clients are told about TLS: nothing, where the cell is about something else."""
    if _is_performed(cell):
        return {"choice": "plaintext"}
    settings = {name: value for name, value in cell.coordinates.items() if name not in NOT_SETTINGS}
    return {"choice": cell.choice.name, **settings}


@contextmanager
def _server(cell: Cell, service: Service, seed: int, sandbox: Sandbox | None, core: int | None) -> Iterator[_Server]:
    """The server of a cell: started here, or the user's own, which is only asked."""
    if service.url is not None:
        assert service.address is not None, "a URL has been looked up before anything is asked of it"
        yield _UsersServer(service.address, {})
        return
    assert service.bed is not None
    assert sandbox is not None, "servers need sandbox"
    found = beds.find(service.bed)
    if isinstance(found, Unavailable):
        raise NotStarted(Outcome.UNSUPPORTED, f"not available here: {found.reason}")
    operations = _operations(cell, seed)
    with driver.start(sandbox, found, cell.provider, _settings(cell), operations, core) as server:
        yield server


@dataclass(frozen=True, slots=True)
class _UsersServer:
    """A server that the user has: nothing is known of its processes."""

    address: str
    components: Mapping[str, int]

    def fault(self, within_s: float = 0.0) -> str | None:
        return None


def _certificates(sandbox: Sandbox | None) -> Certificates | None:
    return sandbox.certificates if sandbox else None


def _clients(cell: Cell, service: Service, certificates: Certificates | None) -> list[dict[str, Any]]:
    """The kinds of client that ask, with their shares."""
    if service.url is not None:
        return [{"share": 100, "tls": _any_tls(service.url, str(cell.coordinates["choice"]))}]
    assert certificates is not None, "servers need sandbox"
    kinds = tls.clients(tls.Settings.read(_settings(cell)), certificates)
    for kind in kinds:
        if kind["tls"]:
            # Where rustls cannot speak it: the newest libssl here costs the client a third less than the system's.
            kind["tls"]["libcrypto"] = libraries.libcryptos().get("psycopg")
    return kinds


def _any_tls(url: str, protocol: str) -> dict[str, Any] | None:
    """A client that takes what the server prefers, in the version of TLS that the cell asks for."""
    if urlsplit(url).scheme != "https":
        return None
    anything = {"key_exchange": None, "cipher": None, "signer": None}
    return {"protocol": protocol, "name": urlsplit(url).hostname, **anything}


def _with_fault(record: Record, server: _Server) -> Record:
    """The record of a load that failed, with what became of the server if it was that which ended."""
    if record.outcome is Outcome.OK:
        return record
    fault = server.fault(driver.NOTICED_S)
    return record.model_copy(update={"reason": f"{fault}: {record.reason}"}) if fault else record


def load_record(last: Record | None, stretch: ChunkRecord | None, chunks: Sequence[ChunkRecord]) -> LoadRecord:
    """What a load client saw: requests a second and response times in its stretch, or else in all chunks together."""
    totals = last.load if last and last.load else Totals()
    records = [stretch] if stretch else chunks
    # What is told of the whole session is taken to be spread evenly over it.
    session_ns = sum(record.wall_ns for record in (*chunks, *([stretch] if stretch else [])))
    share = sum(record.wall_ns for record in records) / session_ns if session_ns else 0.0
    observed = [record.observed for record in records]
    components = {
        name: total.model_copy(
            update={
                "cpu_ns": sum(one.components[name].cpu_ns for one in observed if name in one.components),
                "run_queue_wait_ns": sum(
                    one.components[name].run_queue_wait_ns for one in observed if name in one.components
                ),
            }
        )
        for name, total in totals.components.items()
    }
    latencies: Counter[int] = Counter()
    for one in observed:
        latencies.update(dict(one.latency_us))
    steady = [one.steady for one in observed if one.steady]
    return LoadRecord(
        requests=sum(one.requests for one in observed),
        wall_ns=sum(record.wall_ns for record in records),
        steady=Steady(requests=sum(s.requests for s in steady), wall_ns=sum(s.wall_ns for s in steady)),
        latency_us=tuple(sorted(latencies.items())),
        bytes_sent=sum(one.bytes_sent for one in observed),
        bytes_received=sum(one.bytes_received for one in observed),
        connections=sum(one.connections for one in observed),
        handshakes_full=sum(one.handshakes_full for one in observed),
        handshakes_resumed=sum(one.handshakes_resumed for one in observed),
        is_settled=stretch is not None,
        reopened=sum(record.observed.reopened for record in chunks),
        negotiated=totals.negotiated,
        client_libraries=totals.client_libraries,
        client_cpu_ns=sum(record.cpu_ns for record in records),
        client_run_queue_wait_ns=round(share * totals.client_run_queue_wait_ns),
        client_context_switches=round(share * totals.client_context_switches),
        client_memory_bytes=totals.client_memory_bytes,
        components=components,
    )
