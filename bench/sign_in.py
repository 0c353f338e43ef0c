"""Signing in: the load client's cost compared with the server's, and a directory's start. Two minutes, at first
three."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from unittest.mock import patch

from bench.figures import Figure
from bench.studies import Document, Unmeasured, measured
from tollbar.catalog import libraries, servers
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import Request
from tollbar.lab.servers.sandbox import Sandbox

STUDY = """
question  = "What does each scheme cost client and server?"
family    = "web-auth"
servers      = ["httpd"]
providers = ["libcrypto"]
choices   = ["anonymous", "basic", "digest", "kerberos"]
baseline  = "anonymous"

[vary]
op               = ["request"]
store            = ["sql"]
password-hash    = ["sha-1"]
digest-algorithm = ["md5"]
directory        = ["samba"]
groups           = [0]
transport        = ["clear"]

[load]
users      = [5]
connection = "new"
request    = { get = "/bytes/{bytes}" }
expect     = { bytes = "{bytes}" }

[measure]
blocks = 4
"""
PLAIN_GOAL = 1.3
BUILT_GOAL_S, READY_GOAL_S = 30.0, 3.0
ACCOUNTS = 10_000


def figures() -> Iterator[Figure]:
    """Yield client compared with server, scheme by scheme; then the start of a new directory, and of a prepared one."""
    yield from _clients()
    yield from _directory()


def _clients() -> Iterator[Figure]:
    study = measured(STUDY)
    plain_us = _cpu_us(study, "anonymous", "client-cpu")
    for scheme in ("basic", "digest"):
        times = _cpu_us(study, scheme, "client-cpu") / plain_us
        yield Figure(
            f"sign-in: the client's CPU time for a request with {scheme}, beside a plain one",
            f"at most {PLAIN_GOAL} times",
            f"{times:.2f} times {plain_us:.0f} µs",
            times <= PLAIN_GOAL,
        )
    client_us, server_us = (_cpu_us(study, "kerberos", metric) for metric in ("client-cpu", "server-cpu"))
    yield Figure(
        "sign-in: the client's CPU time for a request with a ticket at hand",
        "less than the server's",
        f"{client_us:.0f} of {server_us:.0f} µs",
        client_us < server_us,
    )


def _cpu_us(study: Document, choice: str, metric: str) -> float:
    """Return the CPU microseconds of one request, of all components together.

    Raises Unmeasured.
    """
    for row in study["results"]:
        if (row["choice"], row["metric"], row.get("component")) == (choice, metric, None) and row["value"] is not None:
            return float(row["value"]) / 1e3
    raise Unmeasured(f"no {metric} of {choice}")


def _directory() -> Iterator[Figure]:
    """Yield the start of Samba with all accounts, in a cache of its own: the second start unpacks the first's state."""
    request = Request(
        servers.here(servers.all_servers()["embedded"]),
        libraries.resolve(["libcrypto"])[0],
        {"choice": "none", "accounts": ACCOUNTS},
        sizes=(4096,),
        services=(servers.service("samba"),),
    )
    # The next parts use the user's cache again.
    with TemporaryDirectory() as cache, patch.dict(os.environ, XDG_CACHE_HOME=cache):
        for what, goal_s in (("made", BUILT_GOAL_S), ("ready from what is kept", READY_GOAL_S)):
            began_s = time.monotonic()
            with Sandbox() as sandbox, driver.start(sandbox, request):
                took_s = time.monotonic() - began_s
            name = f"sign-in: Samba with {ACCOUNTS:,} accounts, {what}"
            yield Figure(name, f"at most {goal_s:.0f} s", f"{took_s:.1f} s", took_s <= goal_s)
