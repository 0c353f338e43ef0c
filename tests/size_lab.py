"""Mixes as texts, and runs of their cells with made-up costs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

from builders import lognormal, measured, row, run, study, study_run
from tollbar.catalog import families
from tollbar.catalog.families import Standing, Value
from tollbar.decide.size import read, size
from tollbar.decide.size.mix import Mix
from tollbar.decide.size.sized import Sized
from tollbar.results import StudyRun

TODAY = date(2026, 11, 23)
BLOCKS = 12
TLS: Mapping[str, Value] = {"op": "connect", "server": "nginx", "certificate": "ecdsa-p256", "users": 8}
HANDSHAKES = {
    "full": {"choice": "tls-1.3", **TLS, "resumption": "none"},
    "resumed": {"choice": "tls-1.3", **TLS, "resumption": "ticket", "resumed": 100},
    "rsa": {"choice": "tls-1.3", **TLS, "resumption": "none", "certificate": "rsa-2048"},
    "rsa resumed": {"choice": "tls-1.3", **TLS, "resumption": "ticket", "resumed": 100, "certificate": "rsa-2048"},
    "bare": {"choice": "plaintext", "op": "connect", "server": "nginx", "users": 8},
}
HANDSHAKE_TERM = """
[term.handshakes]
rate    = "{rate} /s"
family  = "tls"
choice  = "tls-1.3"
op      = "connect"
resumed = "{resumed} %"
off     = {{ choice = "plaintext" }}
"""
LOGIN_TERM = """
[term.logins]
rate   = "20 /s"
family = "web-auth"
choice = "form"
op     = "sign-on"
server    = "embedded"
"""
HASH_TERM = """
[term.hashes]
rate   = "{rate} /s"
family = "digest"
choice = "{choice}"
"""


def mix(tmp_path: Path, text: str) -> Mix:
    (tmp_path / "mix.toml").write_text(text, "utf-8")
    return read(tmp_path / "mix.toml")


def made(
    family: str, cells: Mapping[str, Mapping[str, Value]], costs: Mapping[str, float], seed: int = 0, noise: float = 0.0
) -> StudyRun:
    """Return a study of these cells at these costs in nanoseconds; the first has a repeat."""
    true = [next(iter(costs.values())), *costs.values()]
    repeats, *found = measured([one / 100 for one in true], lognormal(noise), random.Random(seed), blocks=BLOCKS)
    first = next(iter(costs))
    rows = []
    for name, cost in zip(costs, found, strict=True):
        against, own = (None, repeats) if name == first else (rows[0].key, ())
        is_null = cells[name]["choice"] == "plaintext"
        standing = Standing.NULL if is_null else Standing.ACCEPTABLE
        rows.append(row(cells[name], cost, against=against, repeats_ns=own, standing=standing))
    return study_run(rows, (BLOCKS,), replace(study(blocks=BLOCKS), name=family, family=families.family(family)))


def hashes(costs: Mapping[str, float], seed: int = 0, noise: float = 0.0) -> StudyRun:
    cells = {name: {"choice": name, "op": "hash", "bytes": 4096} for name in costs}
    return made("digest", cells, costs, seed, noise)


COSTS = {"full": 300_000.0, "resumed": 100_000.0, "rsa": 600_000.0, "rsa resumed": 101_000.0, "bare": 30_000.0}


def handshakes(costs: Mapping[str, float] = COSTS, seed: int = 0, noise: float = 0.0) -> StudyRun:
    return made("tls", HANDSHAKES, costs, seed, noise)


def sized(of: Mix, *runs: StudyRun) -> Sized:
    return size(of, [run(*runs)] if runs else [], TODAY)
