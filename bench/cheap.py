"""Cheap and quick: the overhead of the lab itself."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import ENGINE, TOLLBAR, Figure, timed, unmeasured
from bench.studies import Unmeasured
from tollbar.catalog import libraries
from tollbar.core.records import CONTRACT

STARTS = 30
START_GOAL_MS = 8.0
# 10 to 20 ms of it are a warm-up that finds the cost steady.
LAB_GOAL_MS = 40.0
HELP_GOAL_S = 0.15
MEMORY_GOAL_BYTES = 150 * 1024**2
QUICK_GOAL_S = 60.0


def figures() -> Iterator[Figure]:
    """Yield engine start, the lab's share of a trial, help, memory and the quick set."""
    for provider in libraries.resolve(["libcrypto", "libcrypto:psycopg"]):
        yield from _starts(provider.name, provider.path)
    help_s = median(timed(TOLLBAR, "--help").wall_s for _ in range(10))
    yield Figure("cheap: tollbar --help", f"at most {HELP_GOAL_S} s", f"{help_s:.2f} s", help_s <= HELP_GOAL_S)
    yield from _quick()


def _quick() -> Iterator[Figure]:
    """Yield the overhead, memory and time of a run of the quick set; all are missed if a cell failed."""
    with tempfile.TemporaryDirectory() as folder:
        quick = timed(TOLLBAR, "run", "--json", cwd=Path(folder))
        lab_ms = _lab_ms(Path(folder) / json.loads(quick.out)["run"]) if quick.status == 0 else inf
    found = (
        Figure(
            "cheap: the lab adds to a trial (median)",
            f"at most {LAB_GOAL_MS:.0f} ms",
            f"{lab_ms:.1f} ms",
            lab_ms <= LAB_GOAL_MS,
        ),
        Figure(
            "cheap: memory of the lab, report included",
            "under 150 MB",
            f"{quick.memory_bytes / 1024**2:.0f} MB",
            0 < quick.memory_bytes < MEMORY_GOAL_BYTES,
        ),
        Figure(
            "quick: `tollbar run`, report included",
            f"at most {QUICK_GOAL_S:.0f} s",
            f"{quick.wall_s:.0f} s",
            quick.wall_s <= QUICK_GOAL_S,
        ),
    )
    why = f"`tollbar run` ended with status {quick.status}"
    yield from (one if quick.status == 0 else unmeasured(one.what, why, one.goal) for one in found)


def _starts(name: str, path: str | None) -> Iterator[Figure]:
    """Yield an engine's proof of a signature, without a warm-up, and a session with one chunk, with a warm-up."""
    goal = f"at most {START_GOAL_MS:.0f} ms"
    what = f"cheap: engine start, RSA-2048 key loaded, a signature proved, {name}"
    session = f"cheap: engine start, RSA-2048 key loaded, warm-up, a chunk of one signature, {name}"
    try:
        start_ms = median(_start_ms(path) for _ in range(STARTS))
        yield Figure(what, goal, f"{start_ms:.1f} ms", start_ms <= START_GOAL_MS)
    except Unmeasured as why:
        yield unmeasured(what, why, goal)
    try:
        yield Figure(session, "(for comparison)", f"{median(_session_ms(path) for _ in range(STARTS)):.1f} ms", None)
    except Unmeasured as why:
        yield unmeasured(session, why)


def _start_ms(path: str | None) -> float:
    """Return the time of process, library, key, one signature and its proof.

    Raises Unmeasured.
    """
    took_ms, said = _asked(_task("verify", path))
    if not said[-1].get("proof"):
        raise Unmeasured("the engine proved nothing")
    return took_ms


def _session_ms(path: str | None) -> float:
    """Return the time of process, library, key, warm-up, one signature and the end.

    Raises Unmeasured.
    """
    took_ms, said = _asked(_task("measure", path), {"advance": {"operations": 1}})
    if len(said) != 3 or not said[1].get("operations"):
        raise Unmeasured("the engine measured nothing")
    return took_ms


def _task(mode: str, path: str | None) -> Mapping[str, Any]:
    key = files("tollbar.catalog.families") / "keys" / "rsa-2048.pem"
    return {
        "contract": CONTRACT,
        "mode": mode,
        "family": "signature",
        "op": "sign",
        "choice": "rsa-2048",
        "provider": {"kind": "libcrypto", "path": path},
        "inputs": {"private_key_pem": key.read_text()},
    }


def _asked(*lines: Mapping[str, Any]) -> tuple[float, list[dict[str, Any]]]:
    """Return the milliseconds of an engine's whole life, and its answers.

    Raises Unmeasured if it refused.
    """
    start = time.perf_counter()
    # A refusal ends with status 0 too: the last line shows whether the task was done.
    done = subprocess.run(
        [ENGINE, "op"], input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True
    )
    took_ms = (time.perf_counter() - start) * 1e3
    said = [json.loads(line) for line in done.stdout.splitlines()]
    last = said[-1] if said else {}
    if done.returncode or last.get("outcome") != "ok":
        raise Unmeasured(last.get("reason", f"the engine ended with status {done.returncode} and no outcome"))
    return took_ms, said


def _lab_ms(run: Path) -> float:
    """Return the time of a batch outside of chunks for each trial: start, warm-up, probes, commit, end."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        rows = database.execute(
            "select study, started_s, count(*), max(load is not null) from trial group by study, block, batch"
            " order by 2"
        ).fetchall()
        spent_ns: dict[float, float] = defaultdict(float)
        for started_s, values in database.execute(
            "select started_s, by_round from trial join observation on trial = id where metric = 'wall'"
        ):
            spent_ns[started_s] += sum(json.loads(values))
    gaps = [
        (after[1] - before[1] - spent_ns[before[1]] / 1e9) / before[2]
        for before, after in pairwise(rows)
        # Trials that start and stop a server belong to the part `servers`.
        if before[0] == after[0] != "password-hashes" and not before[3]
    ]
    return float(median(gaps)) * 1e3
