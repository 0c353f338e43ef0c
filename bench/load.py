"""Load: our client compared with wrk, h2load, ab and `openssl s_time` at one nginx, and its saturation.

About two minutes. Load clients on one core, servers on another, all over loopback.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench import clients
from bench.clients import Contender, Measured, Spoilt, in_turn, ours, ratio
from bench.figures import ENGINE, Figure, unmeasured
from tollbar.catalog import libraries, servers
from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers import Installed, NotStarted, Unavailable
from tollbar.core import machine, proc
from tollbar.core.errors import TollbarError
from tollbar.core.records import LoadRecord, Outcome
from tollbar.core.runner import Session, Stopped
from tollbar.lab import tls
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads.request_work import load_record

USERS = 16
BYTES = 4096
PATH = f"/bytes/{BYTES}"
# For one round: half a second each on an idle machine.
REQUESTS = 60_000
HANDSHAKES = 1000
CONNECTIONS = 10_000
# A process's open files besides its connections.
OTHER_FILES = 200

KEEP_ALIVE_GOAL = 0.85
HANDSHAKE_GOAL = 0.45
S_TIME_GOAL = 0.35
BUSY_GOAL = 0.95
BUSY_ROUNDS = 5
MEMORY_GOAL_BYTES = 20_000
EMBEDDED_GOAL = 1.0

Settings = Mapping[str, str | int]
PLAINTEXT: Settings = {"choice": "plaintext", "bytes": BYTES}
TLS_12: Settings = {"choice": "tls-1.2", "key-exchange": "ecdhe-p256", "bytes": BYTES}
TLS_13: Settings = {"choice": "tls-1.3", "key-exchange": "x25519", "bytes": BYTES}
CERTIFICATES = ("rsa-2048", "rsa-3072", "rsa-4096", "ecdsa-p256")


@dataclass(frozen=True, slots=True)
class Handshake:
    """Full handshake, with each client's options for it."""

    name: str
    settings: Settings
    to_ab: tuple[str, ...]
    to_s_time: tuple[str, ...]

    @property
    def what(self) -> str:
        return f"load: client CPU a handshake, {self.name}, ours over"


def _of_tls_12(name: str, settings: Settings, suite: str) -> Handshake:
    return Handshake(name, settings, ("-f", "TLS1.2", "-Z", suite), ("-tls1_2", "-cipher", suite))


TODAY = (
    Handshake("TLS 1.3 X25519, ECDSA P-256", {**TLS_13, "certificate": "ecdsa-p256"}, ("-f", "TLS1.3"), ("-tls1_3",)),
    _of_tls_12("TLS 1.2 ECDHE P-256, RSA-2048", {**TLS_12, "certificate": "rsa-2048"}, "ECDHE-RSA-AES128-GCM-SHA256"),
)
STATIC_RSA = _of_tls_12(
    "static RSA-2048", {**TLS_12, "certificate": "rsa-2048", "key-exchange": "rsa"}, "AES128-GCM-SHA256"
)


def figures() -> Iterator[Figure]:
    """Yield client CPU for a request and for a handshake, saturation, connections held, and the embedded server."""
    try:
        nginx, embedded = contestant_of("nginx", "libcrypto"), contestant_of("embedded", "aws-lc")
        with Sandbox() as sandbox:
            yield from _keep_alive(nginx, sandbox)
            for handshake in TODAY:
                yield from _handshake(nginx, sandbox, handshake)
            yield from _static_rsa(nginx, sandbox)
            yield _saturation(nginx, sandbox)
            yield _memory(nginx, sandbox, PLAINTEXT, "in clear", judged=True)
            yield _memory(nginx, sandbox, {**TLS_13, "certificate": "ecdsa-p256"}, "TLS 1.3", judged=False)
            yield _embedded(nginx, embedded, sandbox)
    except (NotStarted, Spoilt, TollbarError) as error:
        yield unmeasured("load: what is left of it", error)


@dataclass(frozen=True, slots=True)
class Contestant:
    """Installed server, and the library it runs on."""

    found: Installed
    provider: Provider

    def start(self, sandbox: Sandbox, settings: Settings) -> StartedServer:
        """Start the server.

        Raises NotStarted.
        """
        return driver.start(
            sandbox, tls.request(sandbox, self.found, self.provider, settings), machine.measuring_core()
        )


def contestant_of(name: str, provider: str) -> Contestant:
    found = servers.find(servers.all_servers()[name])
    if isinstance(found, Unavailable):
        raise Spoilt(found.reason)
    return Contestant(found, libraries.resolve([provider])[0])


def _keep_alive(nginx: Contestant, sandbox: Sandbox) -> Iterator[Figure]:
    """Compare plain requests of 4 KiB on kept connections."""
    with nginx.start(sandbox, PLAINTEXT) as server:
        url = f"http://{server.address}{PATH}"
        measured = in_turn(
            {
                "ours": partial(ours, load_of(server, sandbox, PLAINTEXT, "user"), REQUESTS),
                "wrk": partial(clients.wrk, url, USERS, 1),
                "h2load": partial(clients.h2load, url, USERS, REQUESTS),
                "ab": partial(clients.ab, url, USERS, REQUESTS, "-k"),
            }
        )
    what = f"load: client CPU a keep-alive request of 4 KiB, {USERS} connections, ours over"
    yield _beside(what, measured, "wrk", KEEP_ALIVE_GOAL)
    yield _beside(what, measured, "h2load", 1.0, below=True)
    yield _beside(what, measured, "ab", 1.0, below=True)


def _handshake(nginx: Contestant, sandbox: Sandbox, handshake: Handshake) -> Iterator[Figure]:
    """Compare a connection with a full handshake, 4 KiB, and its end."""
    with nginx.start(sandbox, handshake.settings) as server:
        load = load_of(server, sandbox, handshake.settings, "new")
        measured = in_turn({"ours": partial(ours, load, HANDSHAKES), **_rivals(server, handshake)})
    yield _beside(handshake.what, measured, "ab", HANDSHAKE_GOAL)
    yield _beside(handshake.what, measured, "s_time", S_TIME_GOAL)


def _static_rsa(nginx: Contestant, sandbox: Sandbox) -> Iterator[Figure]:
    """Compare handshakes for which ours needs a libssl.

    It is the newest installed one, as in the lab, and the system's, which the others use.
    """
    newest = libraries.libcryptos().get("psycopg")
    with nginx.start(sandbox, STATIC_RSA.settings) as server:
        load = load_of(server, sandbox, STATIC_RSA.settings, "new")
        measured = in_turn(
            {
                "ours": partial(ours, _on(newest, load), HANDSHAKES),
                "ours on the system's": partial(ours, _on(None, load), HANDSHAKES),
                **_rivals(server, STATIC_RSA),
            }
        )
    library = libraries.resolve(["libcrypto:psycopg" if newest else "libcrypto"])[0].name
    for rival in ("ab", "s_time"):
        yield _beside(f"{STATIC_RSA.what} (on {library})", measured, rival, 1.0)
    if newest:
        name = "ours on the system's"
        yield _beside(f"{STATIC_RSA.what} (on {nginx.provider.name}, as ab)", measured, "ab", None, one=name)


def _rivals(server: StartedServer, handshake: Handshake) -> dict[str, Contender]:
    return {
        "ab": partial(clients.ab, f"https://{server.address}{PATH}", USERS, HANDSHAKES, *handshake.to_ab),
        "s_time": partial(clients.s_time, server.address, PATH, 1, *handshake.to_s_time),
    }


def _saturation(nginx: Contestant, sandbox: Sandbox) -> Figure:
    """Return the figure of the server's busy time.

    It works, or waits for its core while another program has it. Other programs use the client's core too, and can only
    take from the server's load, so the best round of each cell counts.
    """
    wanted: dict[str, list[float]] = {}
    had: dict[str, list[float]] = {}
    for _ in range(BUSY_ROUNDS):
        for certificate in CERTIFICATES:
            for protocol in (TLS_12, TLS_13):
                settings = {**protocol, "certificate": certificate}
                name = f"{certificate}, {protocol['choice']}"
                with nginx.start(sandbox, settings) as server:
                    works, waits = _shares(server, load_of(server, sandbox, settings, "new"))
                wanted.setdefault(name, []).append(works + waits)
                had.setdefault(name, []).append(works)
    worst = min(wanted, key=lambda name: max(wanted[name]))
    share = max(wanted[worst])
    waited = share - had[worst][wanted[worst].index(share)]
    aside = f", {waited:.0%} of it waiting while others had its core" if waited > 0.01 else ""
    return Figure(
        f"load: one-core nginx kept busy by {USERS} users, best of {BUSY_ROUNDS} rounds, worst of {len(wanted)} cells",
        f"at least {BUSY_GOAL:.0%}",
        f"{share:.1%} ({worst}{aside}); the lowest median {min(map(median, wanted.values())):.1%}",
        share >= BUSY_GOAL,
    )


def _shares(server: StartedServer, load: Mapping[str, Any]) -> tuple[float, float]:
    """Return the shares of a time well inside the load in which the server works, and waits for its core.

    Raises Spoilt.
    """
    with ThreadPoolExecutor(1) as beside:
        loaded = beside.submit(_asked, load, 0.6)
        time.sleep(0.2)
        before = _scheduled_ns(server)
        time.sleep(0.3)
        after = _scheduled_ns(server)
        loaded.result()
    wall_ns = after[2] - before[2]
    return (after[0] - before[0]) / wall_ns, (after[1] - before[1]) / wall_ns


def _scheduled_ns(server: StartedServer) -> tuple[int, int, int]:
    """Return the working and waiting times of the server's processes, and the time of reading."""
    texts = [
        Path(f"/proc/{process}/schedstat").read_text()
        for root in server.components.values()
        for process in proc.tree(root)
    ]
    fields = [text.split() for text in texts]
    return sum(int(field[0]) for field in fields), sum(int(field[1]) for field in fields), time.monotonic_ns()


def _memory(nginx: Contestant, sandbox: Sandbox, settings: Settings, how: str, *, judged: bool) -> Figure:
    """Measure the memory of connections: half of them are used, half are silent."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    room = CONNECTIONS if limit == resource.RLIM_INFINITY else min(CONNECTIONS, limit - OTHER_FILES)
    with nginx.start(sandbox, settings) as server:
        load = load_of(server, sandbox, settings, "user")
        without = _asked(load, 0.5)
        held = _asked(load | {"users": room // 2, "idle": room - room // 2, "request_limit_s": 30.0}, 0.5)
    each = (held.client_memory_bytes - without.client_memory_bytes) / (room - USERS)
    least = "" if room == CONNECTIONS else f" (all that {limit} file descriptors allow)"
    return Figure(
        f"load: client memory a connection, {room} held{least}, half of them idle, {how}",
        f"at most {MEMORY_GOAL_BYTES // 1000} KB" if judged else "(for comparison)",
        f"{each / 1000:.1f} KB",
        each <= MEMORY_GOAL_BYTES if judged else None,
    )


def _embedded(nginx: Contestant, embedded: Contestant, sandbox: Sandbox) -> Figure:
    """Compare both servers, running at once and asked in turn."""
    with nginx.start(sandbox, PLAINTEXT) as one, embedded.start(sandbox, PLAINTEXT) as other:

        def served_by(server: StartedServer) -> float:
            load = _asked(load_of(server, sandbox, PLAINTEXT, "user"), 0.8)
            return load.server_cpu_ns / load.requests / 1e3

        measured = in_turn({"ours": partial(served_by, other), "nginx": partial(served_by, one)})
    what = f"load: server CPU a keep-alive request of 4 KiB, {USERS} connections, the embedded server's over"
    return _beside(what, measured, "nginx", EMBEDDED_GOAL)


def load_of(server: StartedServer, sandbox: Sandbox, settings: Settings, connection: str) -> dict[str, Any]:
    """Return the load of a task as the lab would have it for this server."""
    return {
        "address": server.address,
        "host": "localhost",
        "clients": tls.clients(tls.Settings.read(settings), tls.certificates_of(sandbox)),
        "users": USERS,
        "connection": connection,
        "request": {"paths": [PATH]},
        "expect": {"bytes": BYTES},
        "components": dict(server.components),
    }


def _on(libcrypto: str | None, load: Mapping[str, Any]) -> dict[str, Any]:
    """Return the load with its clients on this libcrypto wherever they need one."""
    kinds = [{**kind, "tls": {**kind["tls"], "libcrypto": libcrypto}} for kind in load["clients"]]
    return {**load, "clients": kinds}


def _asked(load: Mapping[str, Any], duration_s: float) -> LoadRecord:
    """Return the load client's record of one chunk, measured as the lab measures.

    Raises Spoilt.
    """
    task = {"mode": "measure", "seed": 1, "load": load}
    try:
        with Session((ENGINE, "load"), task, core=clients.client_core()) as session:
            session.ready(clients.LIMIT_S)
            chunk = session.advance(duration_s, 1, clients.LIMIT_S)
            last = session.finish()
    except Stopped as stopped:
        raise Spoilt(stopped.record.reason) from None
    if last.outcome is not Outcome.OK:
        raise Spoilt(last.reason)
    return load_record(last, chunk, [])


def _beside(
    what: str,
    measured: Mapping[str, Measured],
    rival: str,
    goal: float | None,
    *,
    one: str = "ours",
    below: bool = False,
) -> Figure:
    """Return the figure of the median ratio within a round, with both contenders' own medians."""
    what = f"{what} {rival}'s"
    said = "(for comparison)" if goal is None else f"{'below' if below else 'at most'} {goal:.2f}"
    for name in (one, rival):
        if fault := measured[name].fault:
            return unmeasured(what, fault, said)
    share = ratio(measured[one], measured[rival])
    here = f"{share:.2f} ({measured[one].median_us:.2f} / {measured[rival].median_us:.2f} µs)"
    return Figure(what, said, here, None if goal is None else share < goal or (share == goal and not below))
