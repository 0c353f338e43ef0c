"""Quotient: the quickest throughput-bound probe over the quickest chain, alone and with a neighbour on another core.

The first figure is listed by processor in `src/tollbar/analysis/quotients.toml`. Alone means without another busy
program on this machine; other guests of its host are not known. A minute.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from bench.figures import Figure, unmeasured
from tollbar.analysis.quotients import by_chain_ns
from tollbar.core import machine
from tollbar.core.moments import CHAIN, PROBE, quickness_of
from tollbar.core.runner import Session, Stopped, engine

PARTS = 8
READINGS = 2_000
_READY_LIMIT_S, _LIMIT_S = 30.0, 10.0
_BUSY = "while True: pass"


def figures(parts: int = PARTS, readings: int = READINGS) -> Iterator[Figure]:
    """Yield the quotient alone, in several parts of the time, and next to a busy program on each other core."""
    core = machine.measuring_core()
    if core is None:
        yield unmeasured("quotient", "there is no core to measure on")
        return
    machine.keep_off(core)
    fingerprint = machine.fingerprint()
    name = f"{fingerprint['cpu']}, {fingerprint['family']}"
    yield _figure(f"quotient: {name}, alone", core, parts, readings)
    for other in sorted(machine.CORES - {core}):
        with _busy(other):
            yield _figure(f"quotient: {name}, next to a busy core {other}", core, parts, readings)
    listed = by_chain_ns(fingerprint, 1.0)
    yield Figure(f"quotient: {name}, listed", "(for comparison)", f"{listed:.3f}" if listed else "no row", None)


@contextmanager
def _busy(core: int) -> Iterator[None]:
    command = ["taskset", "-c", str(core), sys.executable, "-c", _BUSY]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


def _figure(what: str, core: int, parts: int, readings: int) -> Figure:
    found = [part for _ in range(parts) if (part := _part(core, readings))]
    if not found:
        return unmeasured(what, "each of its sessions ended")
    each = sorted(_quickest(probes) / _quickest(chains) for probes, chains in found)
    probes, chains = ([*chain.from_iterable(some)] for some in zip(*found, strict=True))
    said = (
        f"{_quickest(probes) / _quickest(chains):.3f}; by part {each[0]:.3f} to {each[-1]:.3f};"
        f" probe {_quickest(probes) / 1e3:.1f} µs, chain {_quickest(chains) / 1e3:.1f} µs;"
        f" {quickness_of(probes).quick_share:.0%} of probes quick"
    )
    return Figure(what, "(for comparison)", said, None)


def _part(core: int, readings: int) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return readings of both in turn, or None if a session ended: a guest's clock may stop during a reading."""
    command = (str(engine()), "op")
    try:
        with Session(command, PROBE, core=core) as probe, Session(command, CHAIN, core=core) as dependent:
            both = (probe, dependent)
            for session in both:
                session.ready(_READY_LIMIT_S)
            found = [[float(one.advance(0.0, 1, _LIMIT_S).cpu_ns) for one in both] for _ in range(readings)]
    except Stopped:
        return None
    return [ns for ns, _ in found], [ns for _, ns in found]


def _quickest(readings: Sequence[float]) -> float:
    return quickness_of(readings).quickest_ns
