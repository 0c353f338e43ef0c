"""Repeatable: studies whole and twice, with the others between; and `digests` once more while a busy loop comes and
goes on the other core. An hour and a half on two cores that do nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import TOLLBAR, Figure, Finished, timed
from bench.studies import halves
from bench.true import _speed
from tollbar import machine

DIGESTS = ("md5", "sha1", "sha256", "sha512", "sha3-256", "blake2b512")
TOLL_KNOWN = 0.01
UNTOLD_GOAL = 2
LEAST_OVERLAP = 0.95
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


@dataclass(frozen=True, slots=True)
class Goal:
    """What two runs of a study or a set should reach."""

    tolls: float
    """Median over cells of the relative difference of the two runs' tolls."""
    costs: float | None = None
    """The same of their costs."""
    minutes: float | None = None
    """How long one run may take."""


GOALS = {
    "tls-certificates": Goal(0.015, 0.03, 9),
    "web-authentication": Goal(0.02, None, 15),
    "encrypted-columns": Goal(0.015, None, 10),
    "digests": Goal(0.002, 0.004),
}


def figures() -> Iterator[Figure]:
    """How long, how well known, and how far two runs are from each other in tolls and in costs."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        first = {name: _run(name, here) for name in GOALS}
        for name, (done, studies) in first.items():
            yield from _known(name, done, studies)
        second = {name: _run(name, here)[1] for name in GOALS}
        for name, (_, studies) in first.items():
            yield from _two(name, "twice, with other work between", studies, second[name], 1.0)
        with _disturbance():
            disturbed = _run("digests", here)[1]
        yield from _two("digests", "and under a busy loop", second["digests"], disturbed, DISTURBED)
    before, after = (_speed_ratios() for _ in range(2))
    off = median(abs(b / a - 1) for a, b in zip(before, after, strict=True))
    yield Figure("repeatable: `openssl speed` twice, six hashes, ratios", "(for comparison)", f"{off:.2%}", None)


def _run(study: str, folder: Path) -> tuple[Finished, Sequence[Document]]:
    done = timed(TOLLBAR, "run", study, "--json", "--no-report", cwd=folder)
    return done, json.loads(done.out)["studies"]


def _known(name: str, done: Finished, studies: Sequence[Document]) -> Iterator[Figure]:
    """How long a run took, how well its tolls are known, and which claims it could not judge."""
    minutes = GOALS[name].minutes
    if minutes is not None:
        took = done.wall_s / 60
        yield Figure(f"quick: `{name}` whole", f"at most {minutes:.0f} min", f"{took:.1f} min", took <= minutes)
    half = median(half for study in studies for half in halves(study["tolls"]))
    yield Figure(
        f"quick: `{name}`, its median toll", f"known to ± {TOLL_KNOWN:.0%}", f"± {half:.2%}", half <= TOLL_KNOWN
    )
    claims = [claim for study in studies for claim in study["claims"]]
    untold = [claim["says"] for claim in claims if claim["verdict"] == "cannot tell"]
    if claims:
        yield Figure(
            f"quick: `{name}`, claims of {len(claims)} that end in *cannot tell*",
            f"at most {UNTOLD_GOAL}",
            f"{len(untold)}{': ' + '; '.join(untold) if untold else ''}",
            len(untold) <= UNTOLD_GOAL,
        )


def _two(study: str, how: str, one: Sequence[Document], other: Sequence[Document], times: float) -> Iterator[Figure]:
    goals = GOALS[study]
    tolls = list(_both(_tolls(one), _tolls(other)))
    costs = list(_both(_costs(one), _costs(other)))
    for what, pairs, goal in (("tolls", tolls, goals.tolls), ("costs", costs, goals.costs)):
        if goal is None:
            continue
        off = sorted(abs(b["at"] / a["at"] - 1) for a, b in pairs)
        yield Figure(
            f"repeatable: `{study}` {how}, {what}",
            f"median difference at most {times * goal:.1%}",
            f"{median(off):.2%} over {len(off)} cells (9 of 10 within {off[len(off) * 9 // 10]:.2%})",
            median(off) <= times * goal,
        )
    overlap = sum(a["low"] <= b["high"] and b["low"] <= a["high"] for a, b in tolls) / len(tolls)
    yield Figure(
        f"repeatable: `{study}` {how}, intervals of tolls that overlap",
        f"at least {LEAST_OVERLAP:.0%}",
        f"{overlap:.1%}",
        overlap >= LEAST_OVERLAP,
    )


def _tolls(studies: Sequence[Document]) -> dict[str, dict[str, float]]:
    tolls = [(study["study"], toll) for study in studies for toll in study["tolls"]]
    return _by_cell([(of, toll) for of, toll in tolls if not toll["twin"]], "ratio")


def _costs(studies: Sequence[Document]) -> dict[str, dict[str, float]]:
    metrics = ("cpu", "server-cpu")
    rows = [(study["study"], row) for study in studies for row in study["results"]]
    return _by_cell([(of, row) for of, row in rows if row["metric"] in metrics and not row.get("component")], "value")


def _by_cell(rows: Sequence[tuple[str, Document]], name: str) -> dict[str, dict[str, float]]:
    return {
        json.dumps([of, row["choice"], row["provider"], row["bed"], row["setting"]], sort_keys=True): {
            "at": row[name],
            "low": row["low"],
            "high": row["high"],
        }
        for of, row in rows
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
