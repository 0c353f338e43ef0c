"""Storage: the cost of the loop over rows compared with the embedded database. Some seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from statistics import quantiles
from typing import Any

from bench.figures import ENGINE, Figure
from tollbar.core import machine
from tollbar.core.runner import Session

LOOP_GOAL_US = 4.0
CHUNKS, CHUNK_S = 200, 0.005
LIMIT_S = 60.0
# Other programs can only raise costs on a shared machine.
PARTS = 5


def figures() -> Iterator[Figure]:
    """Yield the CPU time of a read: in the loop without a database, and with SQLite.

    The loop makes each row and compares it.
    """
    loop_us, plaintext_us = (_read_us(choice) for choice in ("none", "plaintext"))
    yield Figure(
        "storage: a read by id in SQLite, beyond the library's own (`none`)",
        f"at most {LOOP_GOAL_US:.0f} µs",
        f"{loop_us:.2f} µs",
        loop_us <= LOOP_GOAL_US,
    )
    yield Figure("storage: a read by id in SQLite, plaintext, all of it", "", f"{plaintext_us:.2f} µs", None)


def _read_us(choice: str) -> float:
    """Return the undisturbed CPU microseconds of one read."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Session([ENGINE, "store"], _task(choice, directory), core=machine.measuring_core()) as session,
    ):
        session.ready(LIMIT_S)
        chunks = [session.advance(CHUNK_S, 1, LIMIT_S) for _ in range(CHUNKS)]
        session.finish()
    return quantiles([chunk.cpu_ns / chunk.operations / 1e3 for chunk in chunks], n=PARTS)[0]


def _task(choice: str, directory: str) -> dict[str, Any]:
    return {
        "mode": "measure",
        "family": "storage",
        "op": "read",
        "choice": choice,
        "provider": {"kind": "sqlite"},
        "setting": {},
        "seed": 7,
        "store": {"directory": directory, "server": None},
    }
