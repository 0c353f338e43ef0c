"""Memory: the effect on quiet costs of a neighbour on another core that copies memory, unseen by this core's probe.

Two minutes. Each work has chunks with the neighbour and without, in turn, in fresh processes of several blocks; the
figures are the ratio of their quiet costs, and the number of chunks with the neighbour that the probe calls quiet.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import inf

import numpy as np

from bench import work
from bench.figures import Figure, unmeasured
from bench.studies import half_width
from tollbar.core import machine
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Moments, best
from tollbar.core.moments import Quickness, quickness_of
from tollbar.core.runner import Stopped
from tollbar.core.stats import ratio
from tollbar.core.visits import Visit
from tollbar.lab.measure.probe import Probe

BLOCKS, ROUNDS = 6, 12
CHUNK_S = 0.005
# A resumed neighbour has filled its caches by then.
UNDER_WAY_S = 0.005
# More than any last-level cache, so that each copy goes to memory.
COPY = "a, b = bytearray(1 << 28), bytes(1 << 28)\nwhile True: a[:] = b"
WORKS = (work.SHA_2, work.GCM, work.SCRYPT, work.ARGON, work.POSTGRESQL)

Timed = tuple[int, int, float, int, tuple[float, float]]
"""Block, round, nanoseconds of all operations, operations, and the probes on both sides."""


def figures() -> Iterator[Figure]:
    """Yield a figure for each work."""
    core = work.core()
    machine.keep_off(core)
    elsewhere = machine.client_core(core) if core is not None else None
    if core is None or elsewhere is None:
        yield unmeasured("memory: a neighbour on another core", "this machine has one core")
        return
    with _neighbour(elsewhere) as neighbour:
        for name in WORKS:
            what = f"memory: {name}, next to copies of memory on another core, over without"
            try:
                yield Figure(what, "(for comparison)", _with_and_without(name, neighbour, core), None)
            except (Stopped, TollbarError) as error:
                yield unmeasured(what, error)


@contextmanager
def _neighbour(core: int) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process on this core that copies memory while it is resumed; it begins stopped."""
    with subprocess.Popen([sys.executable, "-c", COPY]) as process:
        os.sched_setaffinity(process.pid, {core})
        process.send_signal(signal.SIGSTOP)
        try:
            yield process
        finally:
            process.kill()


def _with_and_without(name: str, neighbour: subprocess.Popen[bytes], core: int) -> str:
    seen: dict[bool, list[Timed]] = {False: [], True: []}
    for block in range(BLOCKS):
        with ExitStack() as stack:
            one, probe = work.running(stack, name, block), stack.enter_context(Probe(core))
            for number in range(ROUNDS):
                for is_there in (False, True) if number % 2 else (True, False):
                    if is_there:
                        neighbour.send_signal(signal.SIGCONT)
                        time.sleep(UNDER_WAY_S)
                    before_ns = probe.read() or inf
                    chunk = one.chunk(CHUNK_S)
                    probes_ns = before_ns, probe.read() or inf
                    neighbour.send_signal(signal.SIGSTOP)
                    seen[is_there].append((block, number, one.spent_ns(chunk), chunk.operations, probes_ns))
    quickness = quickness_of([ns for some in seen.values() for *_, probes in some for ns in probes])
    found = best(*(ratio(_visits(seen[True], quickness), _visits(seen[False], quickness), of) for of in Moments))
    if found is None:
        return "too few chunks"
    quiet = {
        is_there: np.mean([all(map(quickness.is_quick, one[-1])) for one in some]) for is_there, some in seen.items()
    }
    shares = f"called quiet: {quiet[True]:.0%} with it, {quiet[False]:.0%} without"
    how = f", {found.moments}" if found.moments is Moments.ALL else ""
    return f"× {found.estimate:.3f} ± {half_width(found.low, found.high):.1%}{how}; {shares}"


def _visits(chunks: list[Timed], quickness: Quickness) -> list[Visit]:
    visits = []
    for block in sorted({one[0] for one in chunks}):
        rounds, costs, operations, probes = zip(*(one[1:] for one in chunks if one[0] == block), strict=True)
        quiet = np.array([all(map(quickness.is_quick, of)) for of in probes])
        all_first = np.ones(len(rounds), bool)
        visits.append(Visit(block, 0, np.array(rounds), np.array(costs), np.array(operations), quiet, all_first))
    return visits
