"""Chunks: the bias of a chunk's beginning in caches that other work has used, and of one choice on the next.

Two equal sessions of the same work. One is advanced after other work had the core, the other after itself: the ratio of
their quiet costs is the remaining bias, with the unclocked beginning of a chunk and without it. Then the reading and
the effect of the probes around chunks (`chunks:probe`); and requests a second and response times by the throughput
phase compared with one long load. About eight minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from statistics import median

import numpy as np

from bench import probe, work
from bench.figures import Figure, unmeasured
from bench.studies import Unmeasured, half_width
from bench.work import LIMIT_S
from tollbar.core import machine, proc
from tollbar.core.intervals import Moments, best
from tollbar.core.moments import Quickness, quickness_of
from tollbar.core.records import LoadRecord
from tollbar.core.stats import ratio
from tollbar.core.visits import Visit
from tollbar.lab.measure.members import PHASE_S
from tollbar.lab.measure.probe import Probe
from tollbar.lab.workloads.request_work import load_record

BLOCKS = 12
ROUNDS = 12
CHUNK_S = 0.005
RATE_GOAL = 0.03
LONG_S = 1.0

# The measured work, and the work that had the core before.
AFTER = (
    (work.SHA_2, work.GCM),
    (work.RSA, work.GCM),
    (work.GCM, work.RSA),
    (work.NGINX, work.GCM),
    (work.HTTPD, work.GCM),
    (work.MARIADB, work.GCM),
    (work.POSTGRESQL, work.GCM),
    (work.JAVA, work.GCM),
    (work.SHA_2, work.RSA),
    (work.SHA_2, work.ARGON),
    (work.SHA_2, work.SHA_2),
)


def figures() -> Iterator[Figure]:
    """Yield the bias after each other work, with and without the unclocked beginning; the probe; then rates."""
    yield from beginnings()
    yield from probe.figures()
    yield from rates()


def beginnings(pairs: Sequence[tuple[str, str]] = AFTER, blocks: int = BLOCKS) -> Iterator[Figure]:
    """Yield the remaining effect of caches that other work has used."""
    machine.keep_off(work.core())
    for what, before in pairs:
        name = f"chunks: {what} after {before}, over after itself"
        try:
            here = "; ".join(_bias(what, before, blocks, lead=lead) for lead in (True, False))
        except Unmeasured as why:
            yield unmeasured(name, why)
            continue
        yield Figure(name, "(for comparison)", here, None)


@dataclass(frozen=True, slots=True)
class Timed:
    """Chunk, with the probes before the first work on the core and after the chunk."""

    block: int
    round: int
    spent_ns: float
    operations: int
    probes_ns: tuple[float, float]


def _bias(what: str, before: str, blocks: int, *, lead: bool) -> str:
    """Return the interval of the bias.

    Raises Unmeasured.
    """
    after: list[Timed] = []
    alone: list[Timed] = []
    core = work.core()
    source = random.Random(what + before)
    for block in range(blocks):
        with ExitStack() as stack:
            other = work.running(stack, before, block)
            one, same = (work.running(stack, what, block, lead=lead) for _ in range(2))
            witness = stack.enter_context(Probe(core if core is not None else 0))
            for number in range(ROUNDS):
                turns = [(other, one, after), (same, same, alone)]
                source.shuffle(turns)
                for first, then, into in turns:
                    # No probe between the two, because it would be the last work on the core.
                    before_ns = witness.read() or inf
                    first.chunk(CHUNK_S)
                    chunk = then.chunk(CHUNK_S)
                    probes_ns = before_ns, witness.read() or inf
                    into.append(Timed(block, number, then.spent_ns(chunk), chunk.operations, probes_ns))
    quickness = quickness_of([ns for chunk in (*after, *alone) for ns in chunk.probes_ns])
    sides = _visits(after, quickness), _visits(alone, quickness)
    found = best(*(ratio(*sides, moments) for moments in Moments))
    beginning = "with an unclocked beginning" if lead else "without"
    if found is None:
        raise Unmeasured(f"too few chunks {beginning}")
    how = f", {found.moments}" if found.moments is Moments.ALL else ""
    return f"{found.estimate - 1:+.2%} ± {half_width(found.low, found.high):.2%} {beginning}{how}"


def _visits(chunks: Sequence[Timed], quickness: Quickness) -> list[Visit]:
    own = {block: [one for one in chunks if one.block == block] for block in sorted({one.block for one in chunks})}
    return [
        Visit(
            block,
            0,
            rounds=np.array([one.round for one in found]),
            costs=np.array([one.spent_ns for one in found]),
            operations=np.array([one.operations for one in found]),
            quiet=np.array([all(map(quickness.is_quick, one.probes_ns)) for one in found]),
            first=np.ones(len(found), bool),
        )
        for block, found in own.items()
    ]


def rates(blocks: int = BLOCKS) -> Iterator[Figure]:
    """Yield requests a second and response times, by the trials' throughput phase and by one long load."""
    machine.keep_off(work.core())
    found: dict[str, list[LoadRecord]] = {"phase": [], "long": []}
    for block in range(blocks):
        with ExitStack() as stack:
            session = work.running(stack, work.NGINX, block).session
            for _ in range(ROUNDS):
                session.advance(CHUNK_S, 16, LIMIT_S)
            if (core := work.core()) is not None:
                proc.keep_on(session.pid, machine.client_core(core))
            for name, seconds in (("phase", PHASE_S), ("long", LONG_S)):
                found[name].append(load_record(None, session.advance(seconds, 16, LIMIT_S), ()))
    long = found.pop("long")
    for name, records in found.items():
        figures: dict[str, Callable[[LoadRecord], float]] = {
            "requests a second": lambda load: load.requests_per_s,
            "median response time": lambda load: load.latency_at(0.5),
            "99 % response time": lambda load: load.latency_at(0.99),
        }
        for what, of in figures.items():
            off = median(of(one) / of(other) for one, other in zip(records, long, strict=True)) - 1
            judged = what != "99 % response time"
            yield Figure(
                f"chunks: {what} by {name}, over one load of {LONG_S:.0f} s",
                f"within {RATE_GOAL:.0%}" if judged else "(for comparison)",
                f"{off:+.1%}",
                abs(off) <= RATE_GOAL if judged else None,
            )
