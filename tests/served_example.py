"""Hand-made judgements of studies of servers: TLS handshakes, and a service at several rates."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp

import by_hand
from tollbar.analysis import Limit, Measurement, StudyJudgement
from tollbar.catalog import families
from tollbar.catalog.families import Value
from tollbar.catalog.servers.remote import Remote
from tollbar.core.records import CLIENT, Chunk, ComponentRecord, LoadRecord, Negotiated, Outcome, Trial
from tollbar.results import Row, StudyRun
from tollbar.study import Load, Measure, Study

BLOCKS, ROUNDS = 8, 10
CONFIDENCE = 0.96
USERS = (1, 4, 16)
CHUNK_NS = 30_000_000
TRIAL_NS = ROUNDS * CHUNK_NS
# Factors by which neighbours raise costs: arithmetic suffers less than work that lives in the caches.
NOISY = {"plaintext": 1.20, "tls-1.2": 1.12, "tls-1.3": 1.19}
NO_NGINX = "not available here: nginx is not installed; to install it: apt-get install nginx-light"
WRONG_LENGTH = "3 of 300 requests failed: wrong length 3 (first: expected 4096 bytes, got 10)"
OPENSSL = "openssl 3.0.19"
URL = "https://localhost:8443/"
SERVERS = {"embedded": "embedded 0.1.0", "httpd": "httpd 2.4.71", URL: URL}

# (choice, certificate, key exchange, DHE parameters): microseconds of server and client CPU for a request.
_Kind = tuple[str, str | None, str | None, str | None]
MATRIX: Mapping[_Kind, tuple[float, float]] = {
    ("plaintext", None, None, None): (31, 24),
    **{
        ("tls-1.2", certificate, "rsa", None): costs
        for certificate, costs in (("rsa-1024", (193, 282)), ("rsa-2048", (384, 265)), ("rsa-3072", (1824, 344)))
    },
    **{
        ("tls-1.2", certificate, "dhe", parameters): costs
        for certificate, parameters, costs in (
            ("rsa-1024", "modp-1024", (549, 846)),
            ("rsa-2048", "modp-1024", (699, 830)),
            ("rsa-2048", "modp-2048", (3051, 4277)),
            ("rsa-3072", "modp-1024", (2349, 1049)),
            ("rsa-3072", "modp-3072", (8460, 14_299)),
        )
    },
    **{
        ("tls-1.2", certificate, "ecdhe-p256", None): costs
        for certificate, costs in (
            ("rsa-1024", (347, 463)),
            ("rsa-2048", (562, 153)),
            ("rsa-3072", (2066, 250)),
            ("rsa-4096", (4823, 374)),
            ("ecdsa-p256", (278, 190)),
        )
    },
    **{
        ("tls-1.3", certificate, "x25519", None): costs
        for certificate, costs in (("rsa-2048", (536, 155)), ("ecdsa-p256", (262, 193)))
    },
    ("tls-1.3", "ecdsa-p256", "x25519mlkem768", None): (311, 231),
}  # fmt: skip
FAILED: _Kind = ("tls-1.2", "rsa-4096", "ecdhe-p256", None)
ELSEWHERE: Sequence[_Kind] = (
    ("plaintext", None, None, None),
    ("tls-1.2", "rsa-2048", "ecdhe-p256", None),
    ("tls-1.3", "ecdsa-p256", "x25519", None),
)
_SUITES = {"rsa": "AES128-GCM-SHA256", "dhe": "DHE-RSA-AES128-GCM-SHA256", "ecdhe-p256": "ECDHE-AES128-GCM-SHA256"}


@dataclass(frozen=True, slots=True)
class _Cell:
    coordinates: Mapping[str, Value]
    server_us: float
    client_us: float
    components: Mapping[str, float]
    """Shares of the server's CPU time."""
    outcome: Outcome = Outcome.OK
    reason: str | None = None


@cache
def handshakes() -> StudyJudgement:
    """Return a matrix of 17 cells by three numbers of users on one server, some on another, some without a server."""
    study = _study(
        "tls-certificates",
        "What does a TLS handshake cost the server, by certificate and key exchange?",
        Load(USERS, (), 0.0, "new", "/bytes/{bytes}", False, 200, "{bytes}"),
        servers=("embedded", "httpd", "nginx"),
    )
    return _judged(study, list(_handshakes()), seed=5)


@cache
def arrivals() -> StudyJudgement:
    """Return an open loop: three rates, two choices, one server of two components."""
    study = _study(
        "tls-at-rates",
        "How long does a user wait for an answer, with and without TLS?",
        Load((64,), (100.0, 400.0, 1600.0), 0.0, "user", "/bytes/{bytes}", False, 200, "{bytes}"),
        servers=("embedded",),
    )
    cells = [
        _Cell(_at(kind, "embedded") | {"rate": rate}, server, client, {"web": 0.7, "directory": 0.3})
        for kind, server, client in ((ELSEWHERE[0], 31, 24), (ELSEWHERE[2], 44, 33))
        for rate in (100, 400, 1600)
    ]
    return _judged(study, cells, seed=6)


@cache
def asked_only() -> StudyJudgement:
    """Return the same load on the user's own server, whose processes are unknown."""
    study = _study(
        "theirs",
        "What does asking this server cost the client?",
        Load(USERS, (), 0.0, "new", "/", False, 200, None),
        servers=(),
    )
    study = replace(study, remotes=(Remote(URL, "127.0.0.1:8443"),), measure=replace(study.measure, cost="client-cpu"))
    cells = [_Cell(_at(kind, URL) | {"users": users}, *MATRIX[kind], {}) for kind in ELSEWHERE for users in USERS]
    return _judged(study, cells, seed=7)


def _handshakes() -> Iterator[_Cell]:
    for kind, (server, client) in MATRIX.items():
        for users in USERS:
            at = _at(kind, "embedded") | {"users": users}
            failed = kind == FAILED and users == 16
            outcome, reason = (Outcome.FAILED, WRONG_LENGTH) if failed else (Outcome.OK, None)
            yield _Cell(at, server * (1 + 0.3 / users), client * (1 + 0.3 / users), {"web": 1.0}, outcome, reason)
    for kind in ELSEWHERE:
        for users in USERS:
            server, client = MATRIX[kind]
            at = _at(kind, "httpd") | {"users": users}
            yield _Cell(at, server + 100, client, {"web": 0.9, "directory": 0.1})
            here = _at(kind, "nginx") | {"users": users}
            yield _Cell(here, 0, 0, {}, Outcome.UNSUPPORTED, NO_NGINX)


def _at(kind: _Kind, server: str) -> dict[str, Value]:
    choice, certificate, exchange, parameters = kind
    at: dict[str, Value] = {"choice": choice, "provider": OPENSSL, "server": server, "op": "connect"}
    said = {"certificate": certificate, "key-exchange": exchange, "dh-parameters": parameters}
    at |= {name: value for name, value in said.items() if value is not None}
    return at | ({"cipher": "aes-128-gcm"} if certificate else {}) | {"bytes": 4096}


def _study(name: str, question: str, load: Load, servers: tuple[str, ...]) -> Study:
    return Study(
        name=name,
        text=f'question = "{question}"\nfamily = "tls"\n',
        question=question,
        family=families.family("tls"),
        source="Published comparison of TLS certificates, 2014",
        choices=("plaintext", "tls-1.2", "tls-1.3"),
        providers=("libcrypto",),
        servers=servers,
        load=load,
        vary={},
        baseline={"choice": "plaintext"},
        leave_out=(),
        measure=Measure("server-cpu", 0.005, ROUNDS, BLOCKS),
        threshold=0.03,
        claims=(),
        notes=(),
    )


def _judged(study: Study, cells: Sequence[_Cell], seed: int) -> StudyJudgement:
    chance = random.Random(seed)
    keys = {by_hand.key(cell.coordinates): cell for cell in cells}
    against = {key: _against(cell) for key, cell in keys.items()}
    batches = by_hand.batches(against)
    rows = tuple(_row(study, cell, key, against[key], batches[key], chance) for key, cell in keys.items())
    return by_hand.judged(
        StudyRun(study, rows, (), (BLOCKS,)),
        {key: NOISY[str(cell.coordinates["choice"])] for key, cell in keys.items()},
        beside=lambda row: _beside(row, study.measure.cost),
    )


def _against(cell: _Cell) -> str:
    at, kept = cell.coordinates, ("provider", "server", "op", "bytes", "users", "rate")
    return by_hand.key({"choice": "plaintext", **{n: at[n] for n in kept if n in at}})


def _row(study: Study, cell: _Cell, key: str, against: str, batches: Sequence[int], chance: random.Random) -> Row:
    at, family = cell.coordinates, study.family
    ok = cell.outcome is Outcome.OK
    return Row(
        key=key,
        coordinates=at,
        provider=str(at["provider"]),
        title=family.choices[str(at["choice"])].title,
        standing=family.standing_of(at),
        strength=family.strength_of(at),
        against=against,
        outcome=cell.outcome,
        reason=cell.reason,
        trials=tuple(_trials(study, cell, key, False, batches, chance)) if ok else (),
        repeats=tuple(_trials(study, cell, key, True, batches, chance)) if ok and key == against else (),
        accepted=("the answer", "the certificate that was asked for") if ok else (),
        refused=("another certificate", "another suite") if ok and "certificate" in at else (),
        not_tried=("an expired certificate: this server checks none",) if ok and at["server"] == "httpd" else (),
        server_version=SERVERS.get(str(at["server"])),
    )


def _trials(
    study: Study, cell: _Cell, key: str, repeat: bool, batches: Sequence[int], chance: random.Random
) -> Iterator[Trial]:
    noisy = NOISY[str(cell.coordinates["choice"])]
    paid_by = tuple(cell.components) if study.measure.cost == "server-cpu" else (CLIENT,)

    def chunks(block: int) -> Sequence[Chunk]:
        server, client = (noisy * exp(chance.gauss(0, 0.008)) for _ in range(2))
        return [_chunk(cell, number, server, client) for number in range(ROUNDS)]

    for trial in by_hand.trials(
        study.name,
        key,
        repeat=repeat,
        blocks=BLOCKS,
        batches=batches,
        chunks=chunks,
        paid_by=paid_by,
        chance=chance,
        memory=9 * 1024**2,
    ):
        yield replace(trial, load=_load(cell, trial), machine_load=2.0, steal_ns=0)


def _chunk(cell: _Cell, number: int, slower_server: float, slower_client: float) -> Chunk:
    # A server that warms up, for curves that are not flat.
    busy = (0.6, 0.9)[number] if number < 2 else 1.0
    requests = max(2, int(busy * CHUNK_NS / 1000 / _each_us(cell)))
    server_ns = {name: round(cell.server_us * share * 1000) for name, share in cell.components.items()}
    spent = {name: round(each * slower_server) * requests for name, each in server_ns.items()}
    return Chunk(number, requests, CHUNK_NS, {CLIENT: round(cell.client_us * 1000 * slower_client) * requests, **spent})


def _each_us(cell: _Cell) -> float:
    """Return microseconds of elapsed time for a request."""
    rate, users = cell.coordinates.get("rate"), cell.coordinates.get("users")
    if rate is not None:
        return 1e6 / int(rate)
    # One core each: the slower side sets the pace, and a single user waits for both.
    return cell.server_us + cell.client_us + 40 if users == 1 else 1.08 * max(cell.server_us, cell.client_us)


def _beside(row: Row, metric: str) -> Iterator[Measurement]:
    """Yield the other metrics: the other side's cost, each component's, requests a second and response times."""
    loads = [t.load for t in row.trials if t.load is not None]
    components = list(dict.fromkeys(name for load in loads for name in load.components))
    limit = _limit(loads, "rate" in row.coordinates)

    def of(value: Callable[[LoadRecord], float]) -> by_hand.Interval:
        return by_hand.interval({i: value(load) for i, load in enumerate(loads)}, CONFIDENCE)

    if metric != "client-cpu":
        each = of(lambda load: load.client_cpu_ns / load.requests)
        yield by_hand.measurement(row, "client-cpu", "ns/op", by_hand.scaled(each, 1 / NOISY[row.choice]))
    for name in components if len(components) > 1 else ():
        each = of(lambda load, name=name: load.components[name].cpu_ns / load.requests)  # type: ignore[misc]
        part = by_hand.scaled(each, 1 / NOISY[row.choice])
        yield by_hand.measurement(row, metric, "ns/op", part, component=name)
    yield by_hand.measurement(row, "throughput", "1/s", of(lambda load: load.requests_per_s), limit=limit)
    for name, share in (("latency-p50", 0.5), ("latency-p95", 0.95), ("latency-p99", 0.99)):
        waited = of(lambda load, share=share: load.latency_at(share))  # type: ignore[misc]
        yield by_hand.measurement(row, name, "us", waited, limit=limit)
    if components:
        held = of(lambda load: sum(c.memory_bytes for c in load.components.values()))
        yield by_hand.measurement(row, "server-memory", "B", held)


def _limit(loads: Sequence[LoadRecord], at_a_rate: bool) -> Limit | None:
    if loads[0].client_busy > 0.7:
        return Limit.CLIENT_BOUND
    return Limit.NOT_SATURATED if 0 < loads[0].server_busy < 0.7 and not at_a_rate else None


def _load(cell: _Cell, trial: Trial) -> LoadRecord:
    at = cell.coordinates
    waited_us = _each_us(cell) * int(at.get("users", 1)) * (1 if "users" in at else 1 + int(at["rate"]) / 500)
    spent = {name: sum(chunk.cpu_ns[name] for chunk in trial.chunks) for name in (CLIENT, *cell.components)}
    return LoadRecord(
        requests=trial.operations,
        wall_ns=TRIAL_NS,
        latency_us=tuple((round(waited_us * k), c) for k, c in _spread(trial.operations)),
        connections=trial.operations,
        handshakes_full=trial.operations,
        negotiated=_negotiated(at, trial.operations),
        client_libraries=("rustls 0.23.0",) if "certificate" in at else (),
        client_cpu_ns=spent[CLIENT],
        components={n: ComponentRecord(cpu_ns=spent[n], memory_bytes=9 * 1024**2) for n in cell.components},
    )


def _spread(requests: int) -> list[tuple[float, int]]:
    tail = max(1, requests // 100)
    middle = max(1, requests // 12)
    return [(0.9, requests - middle - tail), (1.6, middle), (3.1, tail)]


def _negotiated(at: Mapping[str, Value], requests: int) -> tuple[Negotiated, ...]:
    if "certificate" not in at:
        return ()
    exchange = str(at["key-exchange"])
    suite = _SUITES.get(exchange, "TLS_AES_128_GCM_SHA256")
    group = "" if exchange == "rsa" else str(at.get("dh-parameters", exchange))
    version = {"tls-1.2": "TLSv1.2", "tls-1.3": "TLSv1.3"}[str(at["choice"])]
    certificate = str(at["certificate"])
    resumed = requests // 4 if at.get("rate") else 0
    found = [(False, requests - resumed), (True, resumed)]
    return tuple(
        Negotiated(version=version, suite=suite, group=group, certificate_key=certificate, resumed=r, count=n)
        for r, n in found
        if n
    )
