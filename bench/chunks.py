"""Chunks: what their beginning costs in caches that others have used, and what one choice leaves to the next one's.

Two equal sessions of the same work. One is advanced after something else had the core, the other after itself: the
ratio of their undisturbed costs is the bias that is left. With the unclocked beginning of a chunk, and without it. Then
requests a second and response times by chunks beside one long load. About three minutes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from math import log
from statistics import median

import numpy as np

from bench.figures import Figure
from bench.studies import half_width
from tollbar import machine, plan, study, workloads
from tollbar.beds import proc
from tollbar.beds.sandbox import Sandbox
from tollbar.measure.heat import STRETCH_S
from tollbar.plan import Cell
from tollbar.runner import LoadRecord, Session
from tollbar.stats import Visit, undisturbed_ratio
from tollbar.workloads.request import load_record

BLOCKS = 12
ROUNDS = 12
CHUNK_S = 0.005
LIMIT_S = 60.0
RATE_GOAL = 0.03
LONG_S = 1.0

OPERATIONS = """
question  = "What?"
family    = "{family}"
choices   = ["{choice}"]
providers = ["libcrypto"]
baseline  = "{choice}"
[vary]
op = ["{op}"]
{vary}
"""
# How each work is named here, and where it is found among the families.
WORK = {
    "SHA-256 of 4 KiB": OPERATIONS.format(family="digest", choice="sha-256", op="hash", vary='bytes = ["4 KiB"]'),
    "RSA-2048 sign": OPERATIONS.format(family="signature", choice="rsa-2048", op="sign", vary='bytes = ["32 B"]'),
    "AES-256-GCM of 1 MiB": OPERATIONS.format(
        family="cipher", choice="aes-256-gcm", op="encrypt", vary='bytes = ["1 MiB"]'
    ),
    "Argon2id": OPERATIONS.format(family="password-hash", choice="argon2id-owasp-19m", op="hash", vary="").replace(
        '"libcrypto"', '"rustcrypto"'
    ),
    "an nginx handshake": """
question  = "What?"
family    = "tls"
beds      = ["nginx"]
choices   = ["tls-1.3"]
baseline  = "tls-1.3"
[vary]
op           = ["connect"]
certificate  = ["ecdsa-p256"]
key-exchange = ["x25519"]
bytes        = ["4 KiB"]
[load]
users   = [8]
request = { get = "/bytes/{bytes}" }
""",
}
# What is measured, and what had the core before.
AFTER = (
    ("SHA-256 of 4 KiB", "AES-256-GCM of 1 MiB"),
    ("RSA-2048 sign", "AES-256-GCM of 1 MiB"),
    ("AES-256-GCM of 1 MiB", "RSA-2048 sign"),
    ("an nginx handshake", "AES-256-GCM of 1 MiB"),
    ("SHA-256 of 4 KiB", "RSA-2048 sign"),
    ("SHA-256 of 4 KiB", "Argon2id"),
    ("SHA-256 of 4 KiB", "SHA-256 of 4 KiB"),
)


def figures() -> Iterator[Figure]:
    """Bias after each other work, with and without the unclocked beginning; then rates."""
    core = _core()
    machine.keep_off(core)
    for what, before in AFTER:
        yield Figure(
            f"chunks: {what} after {before}, over after itself",
            "(for comparison)",
            "; ".join(_bias(what, before, lead=lead) for lead in (True, False)),
            None,
        )
    yield from _rates()


@cache
def _core() -> int | None:
    """The measuring core, as it was before this process kept off it."""
    return machine.measuring_core()


def _bias(what: str, before: str, *, lead: bool) -> str:
    after, alone = [], []
    source = random.Random(what + before)
    for block in range(BLOCKS):
        with ExitStack() as stack:
            other = _session(stack, before, block, lead=True)
            one, same = (_session(stack, what, block, lead=lead) for _ in range(2))
            logs: tuple[list[float], list[float]] = ([], [])
            for _ in range(ROUNDS):
                turns = [(other, one, logs[0]), (same, same, logs[1])]
                source.shuffle(turns)
                for first, then, into in turns:
                    first.advance(CHUNK_S, 1, LIMIT_S)
                    chunk = then.advance(CHUNK_S, 1, LIMIT_S)
                    paid_ns = sum(part.cpu_ns for part in chunk.observed.components.values()) or chunk.cpu_ns
                    into.append(log(paid_ns / chunk.operations))
        after.append(Visit(block, 0, np.arange(ROUNDS), np.array(logs[0])))
        alone.append(Visit(block, 0, np.arange(ROUNDS), np.array(logs[1])))
    ratio = undisturbed_ratio(after, alone)
    beginning = "with an unclocked beginning" if lead else "without"
    return f"{ratio.estimate - 1:+.2%} ± {half_width(ratio.low, ratio.high):.2%} {beginning}"


def _cell(text: str) -> Cell:
    (one,) = plan.make([study.read("chunks", text, where="bench")], seed=1).studies
    return one.cells[0]


def _session(stack: ExitStack, name: str, seed: int, *, lead: bool) -> Session:
    cell = _cell(WORK[name])
    core = _core()
    sandbox = stack.enter_context(Sandbox()) if cell.bed else None
    work = stack.enter_context(workloads.of(cell).up(cell, seed, sandbox, core))
    task = dict(work.task)
    if not lead:
        task |= {"load": {**task["load"], "lead": False}} if "load" in task else {"lead": False}
    session = stack.enter_context(Session(work.command, task, core=work.core))
    session.ready(LIMIT_S)
    return session


def _rates() -> Iterator[Figure]:
    """Requests a second and response times: the stretch that trials end with, and one long load."""
    found: dict[str, list[LoadRecord]] = {"stretch": [], "long": []}
    for block in range(BLOCKS):
        with ExitStack() as stack:
            session = _session(stack, "an nginx handshake", block, lead=True)
            for _ in range(ROUNDS):
                session.advance(CHUNK_S, 16, LIMIT_S)
            if (core := _core()) is not None:
                proc.keep_on(session.pid, machine.client_core(core))
            for name, seconds in (("stretch", STRETCH_S), ("long", LONG_S)):
                found[name].append(load_record(None, session.advance(seconds, 16, LIMIT_S), ()))
    long = found.pop("long")
    for name, records in found.items():
        for what, of in (
            ("requests a second", lambda load: load.requests_per_s),
            ("median response time", lambda load: load.latency_at(0.5)),
            ("99 % response time", lambda load: load.latency_at(0.99)),
        ):
            off = median(of(one) / of(other) for one, other in zip(records, long, strict=True)) - 1
            judged = what != "99 % response time"
            yield Figure(
                f"chunks: {what} by {name}, over one load of {LONG_S:.0f} s",
                f"within {RATE_GOAL:.0%}" if judged else "(for comparison)",
                f"{off:+.1%}",
                abs(off) <= RATE_GOAL if judged else None,
            )
