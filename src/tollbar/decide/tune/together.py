"""Concurrent hashes: one runner for each, which begins the next hash as soon as one has ended.

The runners are not pinned, and so have all cores of this process, as the threads of a server would.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import fmean, median, quantiles
from typing import Any

from tollbar.core.records import ChunkRecord
from tollbar.core.runner import Session

# Each is a process, a guard, and pipes whose size the kernel lets a user raise for about sixty in all.
MOST_AT_ONCE = 48
READY_LIMIT_S = 120.0
HASH_LIMIT_S = 120.0
# Fewest hashes of each runner: fewer would mostly be beginnings and ends.
FEWEST = 4


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Measured time of one hash at a concurrency."""

    at_once: int
    hashes: int
    """Number of hashes measured."""
    median_s: float
    p95_s: float
    cpu_s: float
    """CPU time of one, on average."""
    cores: float
    """Average number of cores whose time the hashes had."""


def alone_s(command: tuple[str, ...], task: Mapping[str, Any]) -> float:
    """Return the CPU seconds of one hash by itself, as the runner's warm-up finds it.

    Raises Stopped.
    """
    with Session(command, task) as session:
        ready = session.ready(READY_LIMIT_S)
        return ready.operation_ns / 1e9 or session.advance(0.0, 1, HASH_LIMIT_S).cpu_ns / 1e9


def elapsed(command: tuple[str, ...], task: Mapping[str, Any], at_once: int, for_s: float) -> Elapsed:
    """Return the times of `at_once` concurrent hashes, measured for `for_s` and at least `FEWEST` each.

    Raises Stopped; leaves nothing behind.
    """
    with ExitStack() as runners:
        sessions = [runners.enter_context(Session(command, task)) for _ in range(at_once)]
        with ThreadPoolExecutor(at_once) as threads:
            try:
                list(threads.map(lambda session: session.ready(READY_LIMIT_S), sessions))
                until_s = time.monotonic() + for_s
                waited = [threads.submit(_hash_on, session, until_s) for session in sessions]
                found = [future.result() for future in waited]
            except BaseException:
                # The threads are waited for, and each of them for the hash that is under way.
                for session in sessions:
                    session.terminate()
                raise
    # From the first that was done on there were fewer at once.
    end_s = min(hashes[-1][0] for hashes in found)
    chunks = [chunk for hashes in found for ended_s, chunk in hashes if ended_s <= end_s]
    walls_s = [chunk.wall_ns / 1e9 for chunk in chunks]
    cpu_s = fmean(chunk.cpu_ns / 1e9 for chunk in chunks)
    tail_s = quantiles(walls_s, n=20, method="inclusive")[-1]
    return Elapsed(at_once, len(chunks), median(walls_s), tail_s, cpu_s, at_once * cpu_s / fmean(walls_s))


def _hash_on(session: Session, until_s: float) -> list[tuple[float, ChunkRecord]]:
    """Hash after hash, each with the moment at which it ended."""
    found: list[tuple[float, ChunkRecord]] = []
    while time.monotonic() < until_s or len(found) < FEWEST:
        chunk = session.advance(0.0, 1, HASH_LIMIT_S)
        found.append((time.monotonic(), chunk))
    return found
