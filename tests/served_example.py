"""Studies measured through servers, made by hand and judged by the judge: TLS handshakes, and a service at rates."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp

from tollbar import catalogue, judge
from tollbar.catalogue import Value
from tollbar.judge import StudyJudgement
from tollbar.measure import Outcome, Trial
from tollbar.results import Row, StudyRun
from tollbar.runner import ComponentRecord, LoadRecord, Negotiated, Slice
from tollbar.study import Load, Measure, Study

BLOCKS = 8
USERS = (1, 4, 16)
TRIAL_NS = 300_000_000
SLICES = 10
NO_NGINX = "not available here: nginx is not installed; to have it: apt-get install nginx-light"
WRONG_LENGTH = "3 of 300 requests failed: wrong length 3 (first: expected 4096 bytes, got 10)"
EMBEDDED, HTTPD = "embedded 0.1.0 (openssl 3.0.19)", "httpd 2.4.71 (openssl 3.0.19)"

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
    """A matrix of 17 cells by three numbers of users on one server, some on another, none on a third."""
    study = _study(
        "tls-certificates",
        "What does a TLS handshake cost the server, by certificate and key exchange?",
        Load(USERS, (), 0.0, "new", "/bytes/{bytes}", False, 200, "{bytes}"),
        beds=("embedded", "httpd", "nginx"),
    )
    return _judged(study, list(_handshakes()), seed=5)


@cache
def arrivals() -> StudyJudgement:
    """An open loop: three rates, two choices, one server of two components."""
    study = _study(
        "tls-at-rates",
        "How long does a user wait for an answer, with and without TLS?",
        Load((64,), (100.0, 400.0, 1600.0), 0.0, "user", "/bytes/{bytes}", False, 200, "{bytes}"),
        beds=("embedded",),
    )
    cells = [
        _Cell(_at(kind, "embedded", EMBEDDED) | {"rate": rate}, server, client, {"web": 0.7, "directory": 0.3})
        for kind, server, client in ((ELSEWHERE[0], 31, 24), (ELSEWHERE[2], 44, 33))
        for rate in (100, 400, 1600)
    ]
    return _judged(study, cells, seed=6)


@cache
def asked_only() -> StudyJudgement:
    """The same load on a server that the user has: nothing is known of its processes."""
    study = _study(
        "theirs",
        "What does asking this server cost the client?",
        Load(USERS, (), 0.0, "new", "/", False, 200, None),
        beds=(),
    )
    study = replace(study, url="https://localhost:8443/", measure=replace(study.measure, cost="client-cpu"))
    cells = [
        _Cell(_at(kind, "url", "url") | {"users": users}, *MATRIX[kind], {}) for kind in ELSEWHERE for users in USERS
    ]
    return _judged(study, cells, seed=7)


def _handshakes() -> Iterator[_Cell]:
    for kind, (server, client) in MATRIX.items():
        for users in USERS:
            at = _at(kind, "embedded", EMBEDDED) | {"users": users}
            failed = kind == FAILED and users == 16
            outcome, reason = (Outcome.FAILED, WRONG_LENGTH) if failed else (Outcome.OK, None)
            yield _Cell(at, server * (1 + 0.3 / users), client * (1 + 0.3 / users), {"web": 1.0}, outcome, reason)
    for kind in ELSEWHERE:
        for users in USERS:
            server, client = MATRIX[kind]
            at = _at(kind, "httpd", HTTPD) | {"users": users}
            yield _Cell(at, server + 100, client, {"web": 0.9, "directory": 0.1})
            here = _at(kind, "nginx", "nginx (openssl 3.0.19)") | {"users": users}
            yield _Cell(here, 0, 0, {}, Outcome.UNSUPPORTED, NO_NGINX)


def _at(kind: _Kind, bed: str, provider: str) -> dict[str, Value]:
    choice, certificate, exchange, parameters = kind
    at: dict[str, Value] = {"choice": choice, "provider": provider, "bed": bed, "op": "connect"}
    said = {"certificate": certificate, "key-exchange": exchange, "dh-parameters": parameters}
    at |= {name: value for name, value in said.items() if value is not None}
    return at | ({"cipher": "aes-128-gcm"} if certificate else {}) | {"bytes": 4096}


def _study(name: str, question: str, load: Load, beds: tuple[str, ...]) -> Study:
    return Study(
        name=name,
        text=f'question = "{question}"\nfamily = "tls"\n',
        question=question,
        family=catalogue.family("tls"),
        source="Published comparison of TLS certificates, 2014",
        choices=("plaintext", "tls-1.2", "tls-1.3"),
        providers=("libcrypto",),
        beds=beds,
        url=None,
        load=load,
        vary={},
        baseline={"choice": "plaintext"},
        leave_out=(),
        measure=Measure("server-cpu", 0.3, 0.05, BLOCKS),
        worth=0.03,
        claims=(),
        notes=(),
    )


def _judged(study: Study, cells: Sequence[_Cell], seed: int) -> StudyJudgement:
    chance = random.Random(seed)
    rows = tuple(_row(study, cell, chance) for cell in cells)
    return judge.judge_study(StudyRun(study, rows, (), (BLOCKS,)))


def _row(study: Study, cell: _Cell, chance: random.Random) -> Row:
    at, family = cell.coordinates, study.family
    kept = ("provider", "bed", "op", "bytes", "users", "rate")
    against = {"choice": "plaintext", **{n: at[n] for n in kept if n in at}}
    ok = cell.outcome is Outcome.OK
    key = _key(at)
    return Row(
        key=key,
        coordinates=at,
        title=family.choices[str(at["choice"])].title,
        standing=family.standing_of(at),
        strength=family.strength_of(at),
        against=_key(against),
        outcome=cell.outcome,
        reason=cell.reason,
        trials=tuple(_trial(study, cell, block, False, chance) for block in range(BLOCKS)) if ok else (),
        twins=tuple(_trial(study, cell, block, True, chance) for block in range(BLOCKS))
        if ok and key == _key(against)
        else (),
        accepted=("the answer", "the certificate that was asked for") if ok else (),
        refused=("another certificate", "another suite") if ok and "certificate" in at else (),
    )


def _key(at: Mapping[str, Value]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(at.items()))


def _trial(study: Study, cell: _Cell, block: int, twin: bool, chance: random.Random) -> Trial:
    load = _load(cell, exp(chance.gauss(0, 0.008)), exp(chance.gauss(0, 0.008)))
    return Trial(
        study=study.name,
        cell=_key(cell.coordinates),
        twin=twin,
        block=block,
        order=block,
        started_s=1.8e9 + block,
        outcome=Outcome.OK,
        reason=None,
        operations=load.requests,
        cpu_ns=load.server_cpu_ns or load.client_cpu_ns,
        wall_ns=load.wall_ns,
        memory_bytes=9 * 1024**2,
        batches=(),
        steal_ns=0,
        machine_load=2.0,
        load=load,
    )


def _load(cell: _Cell, slower_server: float, slower_client: float) -> LoadRecord:
    at = cell.coordinates
    server_us, client_us = cell.server_us * slower_server, cell.client_us * slower_client
    # One core each: whichever side is slower sets the pace, and one user waits for both.
    each_us = 1.08 * max(server_us, client_us) if at.get("users") != 1 else server_us + client_us + 40
    rate = at.get("rate")
    requests = int(TRIAL_NS / 1000 / each_us) if rate is None else int(rate) * TRIAL_NS // 10**9
    waited_us = each_us * int(at.get("users", 1)) * (1 if rate is None else 1 + int(rate) / 500)
    components = {name: round(server_us * share * requests * 1000) for name, share in cell.components.items()}
    return LoadRecord(
        requests=requests,
        wall_ns=TRIAL_NS,
        latency_us=tuple((round(waited_us * k), c) for k, c in _spread(requests)),
        series=tuple(_slice(i, requests, client_us, components) for i in range(SLICES)),
        connections=requests,
        handshakes_full=requests,
        negotiated=_negotiated(at, requests),
        client_libraries=("rustls 0.23.0",) if "certificate" in at else (),
        client_cpu_ns=round(client_us * requests * 1000),
        client_busy=client_us * requests * 1000 / TRIAL_NS,
        components={n: ComponentRecord(cpu_ns=c, memory_bytes=9 * 1024**2) for n, c in components.items()},
    )


def _spread(requests: int) -> list[tuple[float, int]]:
    tail = max(1, requests // 100)
    middle = max(1, requests // 12)
    return [(0.9, requests - middle - tail), (1.6, middle), (3.1, tail)]


def _slice(i: int, requests: int, client_us: float, components: Mapping[str, int]) -> Slice:
    # A server that is warming to its work, for curves that are not flat.
    weight = (0.6, 0.9)[i] if i < 2 else (SLICES - 1.5) / (SLICES - 2)
    return Slice(
        at_ms=TRIAL_NS / 1e6 / SLICES * (i + 1),
        requests=round(requests / SLICES * weight),
        client_cpu_ns=round(client_us * requests * 1000 / SLICES * weight),
        components={name: round(cpu_ns / SLICES * weight) for name, cpu_ns in components.items()},
    )


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
