"""The load client's core: shared with the server in rounds, separate in the throughput phase."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import here, lacking
from tollbar import study
from tollbar.catalog.servers.remote import Remote
from tollbar.core import machine, proc
from tollbar.core.errors import TollbarError
from tollbar.core.records import ChunkRecord, LoadRecord, Observed, Outcome, Record, Steady, Totals, Trial
from tollbar.core.runner import Session
from tollbar.lab import workloads
from tollbar.lab.measure import batch, members
from tollbar.lab.measure.rounds import Rounds
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import request
from tollbar.lab.workloads.request_work import RequestWork, load_record
from tollbar.study import plan
from tollbar.study.plan.batches import Batch, Visit
from tollbar.study.plan.cells import Cell

SERVED = """
question  = "What does a hash cost?"
family    = "digest"
providers = ["libcrypto"]
choices   = ["none"]
servers      = ["embedded"]
load      = {{ users = [2], {load}request = {{ get = "/op/digest/{{choice}}?bytes={{bytes}}" }} }}
vary      = {{ op = ["hash"], bytes = ["16 B"] }}
measure   = {{ rounds = 2 }}
"""
OF_URL = """
question  = "What does TLS cost?"
family    = "tls"
url       = "http://127.0.0.1:{port}/"
choices   = ["plaintext"]
vary      = {{ op = ["request"] }}
load      = {{ {load} }}
"""
SIGN_IN = """
question  = "What does it cost to know who asks?"
family    = "web-auth"
providers = ["libcrypto"]
choices   = ["{choice}"]
servers      = ["{server}"]
load      = {{ request = {{ get = "/bytes/{{bytes}}" }} }}
[vary]
op        = ["request"]
accounts  = [1000]
transport = ["clear"]
{settings}
"""
# Components behind the server and the way they are reached: services of run and trial, a proxy, another server.
BEHIND = {
    "postgresql-accounts": ("httpd", "basic", 'store = ["sql"]\npassword-hash = ["bcrypt"]'),
    "mit": ("httpd", "kerberos", 'directory = ["mit"]\ngroups = [50]\nruns = ["in-server"]'),
    "gssproxy": ("httpd", "kerberos", 'directory = ["mit"]\ngroups = [50]\nruns = ["gssproxy"]'),
    "authenticator": ("nginx", "kerberos", 'directory = ["mit"]\ngroups = [50]\nruns = ["auth-request"]'),
}

Cores = frozenset[int]


@pytest.fixture
def core() -> Iterator[int]:
    """Yield the measuring core while the lab keeps off it."""
    cores, core = os.sched_getaffinity(0), machine.measuring_core()
    if core is None:
        lacking("one core has no other beside it")
    machine.keep_off(core)
    yield core
    os.sched_setaffinity(0, cores)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Cores, Cores]]:
    """Record each chunk's length, the client's cores and the servers' cores."""
    found: list[tuple[float, Cores, Cores]] = []
    servers: list[StartedServer] = []
    start, advance = driver.start, Session.advance

    def started(*given: Any, **more: Any) -> StartedServer:
        servers.append(start(*given, **more))
        return servers[-1]

    def advanced(session: Session, seconds: float, *more: Any, **named: Any) -> ChunkRecord:
        roots = [pid for server in servers for pid in server.components.values()]
        # The probe and the chain are asked for one operation without a time.
        if seconds or more[0] > 1:
            found.append((seconds, cores_of(session.pid), cores_of(*roots)))
        return advance(session, seconds, *more, **named)

    monkeypatch.setattr(request.driver, "start", started)
    monkeypatch.setattr(Session, "advance", advanced)
    return found


def cores_of(*roots: int) -> Cores:
    """Return the cores that any thread of these process trees may use."""
    threads = []
    for pid in (pid for root in roots for pid in proc.tree(root)):
        # Some of a database's processes end meanwhile, by themselves.
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with suppress(FileNotFoundError, ProcessLookupError):
                    threads.append(Path(f"/proc/{pid}/task/{thread}/status").read_text())
    lists = (text.split("Cpus_allowed_list:")[1].split("\n")[0].strip() for text in threads)
    ranges = (part.partition("-") for one in lists for part in one.split(","))
    return frozenset(n for low, _, high in ranges for n in range(int(low), int(high or low) + 1))


def cells(text: str) -> Sequence[Cell]:
    """Return the cells of a study."""
    return plan.make([study.read("some", text, where="some.toml")], seed=1).studies[0].cells


def measured(text: str, core: int | None) -> Trial:
    """Return a trial of a study's one cell, with its throughput phase."""
    (cell,) = cells(text)
    (one,) = plan.make([study.read("some", text, where="some.toml")], seed=1).studies
    with Sandbox() as sandbox:
        visits = (Visit(cell, repeat=False, block=0, batch=0),)
        batch_ = Batch("some", 0, 0, visits)
        (trial,) = batch.measure(batch_, one.study.measure, 1, first_order=0, core=core, sandbox=sandbox)
    return trial


BATCHES = {
    "operation": """
question  = "What does a hash cost?"
family    = "digest"
providers = ["libcrypto"]
choices   = ["none", "md5", "sha-1", "sha-256"]
baseline  = "none"
""",
    "request": SERVED.format(load="").replace('["none"]', '["none", "md5", "sha-1"]'),
    "postgresql": """
question  = "What do encrypted columns cost?"
family    = "storage"
providers = ["aws-lc"]
servers      = ["postgresql"]
choices   = ["plaintext", "aes-256-gcm"]
baseline  = "plaintext"
vary      = { op = ["read"], rows = [100] }
""",
    "a service of the run": SIGN_IN.format(
        server="httpd", choice="basic", settings='store = ["sql"]\npassword-hash = ["bcrypt"]'
    ).replace('["basic"]', '["anonymous", "basic"]'),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", BATCHES)
def test_what_begins_elsewhere_is_measured_on_the_core(core: int, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Every second member becomes ready on another core; when rounds begin all threads are on the measured one."""
    if name in ("postgresql", "a service of the run"):
        here("postgresql")
    (one,) = plan.make([study.read("some", BATCHES[name], where="some.toml")], seed=1).studies
    begun: list[Cores] = []
    found: list[Cores] = []
    ready, first_tries = Session.ready, Rounds.first_tries

    def become_ready(session: Session, limit_s: float) -> Any:
        said = ready(session, limit_s)
        begun.append(cores_of(session.pid))
        return said

    def tried(rounds: Any) -> None:
        for member in rounds.members:
            found.append(cores_of(member.session.pid, *member.work.components.values()))
        first_tries(rounds)

    monkeypatch.setattr(Session, "ready", become_ready)
    monkeypatch.setattr(Rounds, "first_tries", tried)
    visits = tuple(Visit(cell, repeat=False, block=0, batch=0) for cell in one.cells)
    with Sandbox() as sandbox:
        batch_ = Batch("some", 0, 0, visits)
        trials = batch.measure(batch_, one.study.measure, 1, first_order=0, core=core, sandbox=sandbox)
    assert [(Outcome.OK, None)] * len(visits) == [(trial.outcome, trial.reason) for trial in trials]
    places = [{core}, {machine.client_core(core)}]
    assert [places[number % 2] for number in range(len(visits))] == begun[: len(visits)]
    # The probe is ready last, in a first run together with the chain.
    assert {frozenset({core})} == {frozenset(cores) for cores in begun[len(visits) :]}
    assert [{core}] * len(visits) == found


def test_what_does_not_fit_into_memory_twice_becomes_ready_in_turn(core: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two password hashes that need half of the memory each never run together."""
    begun: list[int | None] = []
    start = members._start
    monkeypatch.setattr(members, "_start", lambda *given: (begun.append(given[4]), start(*given)))
    (one,) = plan.make([study.read("some", BATCHES["operation"], where="some.toml")], seed=1).studies
    visits = tuple(Visit(cell, repeat=False, block=0, batch=0) for cell in one.cells)
    for free, expected in ((0, {None}), (1 << 40, {None, machine.client_core(core)})):
        begun.clear()
        monkeypatch.setattr(machine, "available_memory_bytes", lambda free=free: free)
        monkeypatch.setattr(Cell, "memory_bytes", property(lambda cell: 1024))
        batch.measure(Batch("some", 0, 0, visits), one.study.measure, 1, first_order=0, core=core)
        assert expected == set(begun)


def test_what_has_memory_of_its_own_is_no_place_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages stay in the memory of the core that touched them first."""
    monkeypatch.setattr(machine, "client_core", lambda core=None: 3)
    assert (7, 3) == machine.starting_cores(7)
    monkeypatch.setattr(machine, "_memory_of", lambda core: [f"node{core}"])
    assert (7,) == machine.starting_cores(7)
    assert (None,) == machine.starting_cores(None)


def test_the_client_leaves_the_server_s_core_for_the_phase_alone(
    core: int, seen: list[tuple[float, Cores, Cores]]
) -> None:
    trial = measured(SERVED.format(load=""), core)
    assert (Outcome.OK, None) == (trial.outcome, trial.reason)
    apart = machine.client_core(core)
    # The first chunk reports how many requests fill its time; the others use that number.
    first, later = (0.005, {core}, {core}), (0.0, {core}, {core})
    # Extra rounds are like the rounds before.
    assert [first, later, (members.PHASE_S, {apart}, {core})] == seen[:3]
    assert all(later == each for each in seen[3:])
    assert trial.load is not None
    assert trial.load.requests_per_s > 0 < trial.load.latency_at(0.5)


def test_a_client_that_is_apart_stays_so(core: int, seen: list[tuple[float, Cores, Cores]]) -> None:
    text = SERVED.format(load='client = ["apart"], ')
    assert Outcome.OK == measured(text, core).outcome
    assert 3 <= len(seen)
    assert all(({machine.client_core(core)}, {core}) == (client, server) for _, client, server in seen)
    assert ["apart"] == [cell.coordinates["client"] for cell in cells(text)]


def test_where_there_is_one_core_nothing_moves(
    monkeypatch: pytest.MonkeyPatch, seen: list[tuple[float, Cores, Cores]]
) -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        assert machine.measuring_core() is None
        trial = measured(SERVED.format(load=""), None)
    finally:
        os.sched_setaffinity(0, cores)
    assert (Outcome.OK, None) == (trial.outcome, trial.reason)
    assert [({max(cores)}, {max(cores)})] * 3 == [(client, server) for _, client, server in seen]
    assert trial.load is not None
    assert trial.load.is_settled


def test_a_client_that_cannot_be_moved_has_failed(core: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "client_core", lambda core=None: 4095)
    trial = measured(SERVED.format(load=""), core)
    assert (Outcome.FAILED, None) == (trial.outcome, trial.load)
    assert "its processes cannot be moved to core 4095: Invalid argument" == trial.reason


@pytest.mark.share(0)
@pytest.mark.parametrize("name", BEHIND)
def test_what_answers_the_server_is_on_its_core(core: int, name: str) -> None:
    server, choice, settings = BEHIND[name]
    for needed in {server, name, *(["mit"] if "mit" in settings else [])}:
        here(needed)
    (cell,) = (
        cell
        for cell in cells(SIGN_IN.format(server=server, choice=choice, settings=settings))
        if cell.choice.name == choice and cell.provider.spec == "libcrypto"
    )
    with Sandbox() as sandbox, workloads.of(cell).up(cell, 1, sandbox, core) as work:
        assert isinstance(work, RequestWork)
        found = {component: cores_of(pid) for component, pid in work.server.components.items()}
        assert len(found) > 1
        assert {component: {core} for component in found} == found
        assert (core, machine.client_core(core)) == (work.core, work.phase_core)


def test_a_server_of_the_user_s_own_is_asked_from_another_core(core: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user places that server; Tollbar keeps off its core in rounds and in the throughput phase."""
    monkeypatch.setattr(Remote, "fault", lambda remote: None)
    (cell,) = cells(OF_URL.format(port=1, load="users = [2]"))
    with workloads.of(cell).up(cell, 1, None, core) as work:
        assert (machine.client_core(core), None) == (work.core, work.phase_core)


def test_no_client_is_beside_a_server_of_the_user_s_own() -> None:
    with pytest.raises(TollbarError, match="cannot be `beside` your own server"):
        cells(OF_URL.format(port=1, load='client = ["beside", "apart"]'))
    assert ["apart"] == [c.coordinates["client"] for c in cells(OF_URL.format(port=1, load='client = ["apart"]'))]


def test_waking_asks_from_both_cores_and_nothing_else_says_so() -> None:
    (one,) = plan.make(study.load(["waking"]), seed=1).studies
    places = [(cell.coordinates["op"], cell.coordinates["users"], cell.coordinates["client"]) for cell in one.cells]
    wanted = {(op, n, at) for op in ("request", "connect") for n in (1, 2, 8, 32) for at in ("beside", "apart")}
    assert wanted == {*places}
    assert len(wanted) == len(places)
    for cell in one.cells:
        assert plan.key_of({**cell.coordinates, "client": "beside"}) == cell.against
    shipped = (cell for made in plan.make(study.load(["quick"]), seed=1).studies for cell in made.cells)
    assert not any("client" in cell.coordinates for cell in shipped)


def test_a_load_without_a_phase_has_no_rate() -> None:
    chunk = ChunkRecord(
        operations=3,
        cpu_ns=1000,
        wall_ns=2000,
        observed=Observed(
            requests=3, connections=3, bytes_sent=30, latency_us=((5, 3),), steady=Steady(requests=3, wall_ns=1000)
        ),
    )
    last = Record(outcome=Outcome.OK, load=Totals(client_memory_bytes=7))
    without = load_record(last, None, [chunk, chunk])
    assert (False, 6, 6, 60, 4000, 7) == _told(without)
    assert (0.0, 0.0, None) == (without.requests_per_s, without.latency_at(0.5), without.steady)
    settled = load_record(last, chunk, [chunk, chunk])
    assert (True, 3, 3, 30, 2000, 7) == _told(settled)
    assert (3e6, 5.0) == (settled.requests_per_s, settled.latency_at(0.5))


def _told(load: LoadRecord) -> tuple[Any, ...]:
    counts = (load.requests, load.connections, load.bytes_sent)
    return load.is_settled, *counts, load.wall_ns, load.client_memory_bytes


def test_waits_of_the_phase_are_its_own() -> None:
    chunk = ChunkRecord(operations=1, cpu_ns=1, wall_ns=1000)
    waited = chunk.model_copy(update={"observed": Observed(client_run_queue_wait_ns=300)})
    last = Record(outcome=Outcome.OK, load=Totals.model_validate({"client_run_queue_wait_ns": 10**9}))
    assert 0.3 == load_record(last, waited, [chunk] * 9).client_run_queue_wait
