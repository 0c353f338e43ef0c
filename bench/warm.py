"""Warm: the time until the runners of other platforms are steady, and whether they stay so. About two minutes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np

from bench.figures import Figure, unmeasured
from tollbar import study
from tollbar.catalog import runners
from tollbar.core import machine
from tollbar.core.runner import Session
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

READY_GOAL_S = 3.0
DRIFT_GOAL = 0.01
CHUNKS, PART = 300, 60
CHUNK_S = 0.005
LIMIT_S = 120.0
# Quiet quantile of these few chunks.
QUANTILE = 0.2
SIGNATURES = """
question  = "What?"
family    = "rsa-api"
choices   = ["key-cached", "key-from-pem"]
providers = [{providers}]
baseline  = "key-cached"
[vary]
op     = ["sign", "verify"]
digest = ["implicit"]
"""


def figures() -> Iterator[Figure]:
    """Yield for each platform: seconds until it is ready, and its first chunks over its last ones, operations apart."""
    for platform in runners.all_platforms().values():
        if platform.lacks:
            yield unmeasured(f"warm: {platform.title}", f"not available here: {platform.lacks}", "ready")
            continue
        text = SIGNATURES.format(providers=f'"{platform.name}"')
        (one,) = plan.make([study.read("warm", text, where="bench")], seed=1).studies
        found = [_session(cell) for cell in one.cells]
        ready_s = max(ready for ready, _ in found)
        yield Figure(
            f"warm: {platform.title}, start to ready, the slowest of {len(found)} routes",
            f"<= {READY_GOAL_S:g} s",
            f"{ready_s:.1f} s",
            ready_s <= READY_GOAL_S,
        )
        drift = median(abs(drift - 1) for _, drift in found)
        yield Figure(
            f"warm: {platform.title}, first {PART} chunks over the last of {CHUNKS}, median of {len(found)} routes",
            f"within {DRIFT_GOAL:.0%}",
            f"{drift:.1%} ({', '.join(f'{drift:.3f}' for _, drift in found)})",
            drift <= DRIFT_GOAL,
        )


def _session(cell: Cell) -> tuple[float, float]:
    """Return the seconds until it is ready, and the cost of its first chunks over that of its last ones."""
    start_s = time.monotonic()
    with Session(cell.provider.runner, cell.task("measure", 1), core=machine.measuring_core()) as session:
        session.ready(LIMIT_S)
        ready_s = time.monotonic() - start_s
        chunks = [session.advance(CHUNK_S, 1, LIMIT_S) for _ in range(CHUNKS)]
        session.finish()
    costs = [chunk.cpu_ns / chunk.operations for chunk in chunks]
    first, last = (float(np.quantile(part, QUANTILE)) for part in (costs[:PART], costs[-PART:]))
    return ready_s, first / last
