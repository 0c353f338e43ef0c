"""Repeatable: `tls-certificates` and `digests`, whole and twice, the one before and after the other; and `digests` once
more while a busy loop comes and goes on the other core. Half an hour on two cores that do nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import TOLLBAR, Figure, Finished, timed
from bench.studies import halves
from bench.true import _speed
from tollbar import machine

DIGESTS = ("md5", "sha1", "sha256", "sha512", "sha3-256", "blake2b512")
CERTIFICATES_GOAL_S = 9 * 60.0
TOLL_KNOWN = 0.01
UNTOLD_GOAL = 2
LEAST_OVERLAP = 0.95
# Medians over cells of the relative difference of two runs: (tolls, costs).
GOALS = {"tls-certificates": (0.015, 0.03), "digests": (0.002, 0.004)}
DISTURBED = 2.0
# Comes and goes every few seconds, for as long as its standard input is open.
DISTURBANCE = """
import os, select, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
while not select.select([sys.stdin], [], [], 3.0)[0]:
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        pass
"""

Document = Mapping[str, Any]


def figures() -> Iterator[Figure]:
    """How long, how well known, and how far two runs are from each other in tolls and in costs."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        done, before = _run("tls-certificates", here)
        yield from _certificates(done, before)
        one, other = _run("digests", here)[1], _run("digests", here)[1]
        yield from _two("digests", "twice", one, other, 1.0)
        with _disturbance():
            disturbed = _run("digests", here)[1]
        yield from _two("digests", "and under a busy loop that comes and goes", one, disturbed, DISTURBED)
        after = _run("tls-certificates", here)[1]
        yield from _two("tls-certificates", "twice, with other work between", before, after, 1.0)
    first, second = (_speed_ratios() for _ in range(2))
    off = median(abs(b / a - 1) for a, b in zip(first, second, strict=True))
    yield Figure("repeatable: `openssl speed` twice, six hashes, ratios", "(for comparison)", f"{off:.2%}", None)


def _run(study: str, folder: Path) -> tuple[Finished, Document]:
    done = timed(TOLLBAR, "run", study, "--json", "--no-report", cwd=folder)
    (document,) = json.loads(done.out)["studies"]
    return done, document


def _certificates(done: Finished, study: Document) -> Iterator[Figure]:
    name = "quick: `tls-certificates`"
    minutes = CERTIFICATES_GOAL_S / 60
    yield Figure(
        f"{name} whole",
        f"at most {minutes:.0f} min",
        f"{done.wall_s / 60:.1f} min",
        done.wall_s <= CERTIFICATES_GOAL_S,
    )
    half = median(halves(study["tolls"]))
    yield Figure(f"{name}, its median toll", f"known to ± {TOLL_KNOWN:.0%}", f"± {half:.2%}", half <= TOLL_KNOWN)
    untold = [claim["says"] for claim in study["claims"] if claim["verdict"] == "cannot tell"]
    yield Figure(
        f"{name}, claims of {len(study['claims'])} that end in *cannot tell*",
        f"at most {UNTOLD_GOAL}",
        f"{len(untold)}{': ' + '; '.join(untold) if untold else ''}",
        len(untold) <= UNTOLD_GOAL,
    )


def _two(study: str, how: str, one: Document, other: Document, times: float) -> Iterator[Figure]:
    toll_goal, cost_goal = (times * goal for goal in GOALS[study])
    tolls = list(_both(_tolls(one), _tolls(other)))
    costs = list(_both(_costs(one), _costs(other)))
    for what, pairs, goal in (("tolls", tolls, toll_goal), ("costs", costs, cost_goal)):
        off = sorted(abs(b["at"] / a["at"] - 1) for a, b in pairs)
        yield Figure(
            f"repeatable: `{study}` {how}, {what}",
            f"median difference at most {goal:.1%}",
            f"{median(off):.2%} over {len(off)} cells (9 of 10 within {off[len(off) * 9 // 10]:.2%})",
            median(off) <= goal,
        )
    overlap = sum(a["low"] <= b["high"] and b["low"] <= a["high"] for a, b in tolls) / len(tolls)
    yield Figure(
        f"repeatable: `{study}` {how}, intervals of tolls that overlap",
        f"at least {LEAST_OVERLAP:.0%}",
        f"{overlap:.1%}",
        overlap >= LEAST_OVERLAP,
    )


def _tolls(study: Document) -> dict[str, dict[str, float]]:
    return _by_cell([toll for toll in study["tolls"] if not toll["twin"]], "ratio")


def _costs(study: Document) -> dict[str, dict[str, float]]:
    return _by_cell(
        [row for row in study["results"] if row["metric"] in ("cpu", "server-cpu") and not row.get("component")],
        "value",
    )


def _by_cell(rows: Sequence[Document], name: str) -> dict[str, dict[str, float]]:
    return {
        json.dumps([row["choice"], row["provider"], row["bed"], row["setting"]], sort_keys=True): {
            "at": row[name],
            "low": row["low"],
            "high": row["high"],
        }
        for row in rows
        if row[name] is not None and row["low"] is not None
    }


def _both(
    one: Mapping[str, dict[str, float]], other: Mapping[str, dict[str, float]]
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    yield from ((found, other[cell]) for cell, found in one.items() if cell in other)


@contextmanager
def _disturbance() -> Iterator[None]:
    """A busy loop that comes and goes on another core than the one that is measured on."""
    others = sorted(os.sched_getaffinity(0) - {machine.measuring_core() or 0})
    command = [sys.executable, "-c", DISTURBANCE, str(others[0] if others else 0)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _speed_ratios() -> list[float]:
    rates = [_speed("-bytes", "4096", "-evp", name)[0] for name in DIGESTS]
    return [rate / rates[2] for rate in rates]
