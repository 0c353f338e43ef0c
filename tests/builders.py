"""Studies, rows and trials with given costs, for tests that want verdicts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from tollbar.catalog.families import Choice, Family, Setting, Standing, Value
from tollbar.core.records import RUNNER, Chunk, Outcome, Trial
from tollbar.results import Row, Run, StudyRun
from tollbar.study import Claim, Measure, Study
from tollbar.study.plan.cells import Cell

# The number is large, so that rounding a chunk's CPU time to whole nanoseconds costs a millionth of a nanosecond per
# operation. It is no round number and differs between chunks, so that no times are multiples of a tick.
OPERATIONS = 1_037_003
# Chunks of a trial of one cost, as many as a short study has rounds.
ROUNDS = 4
# Time of the probes around a chunk on a quiet core.
QUIET_NS = (25_000.0, 25_000.0)


def row_of(cell: Cell, costs: Sequence[float], repeats: Sequence[float], missing: str | None = None) -> Row:
    """Return the row of a planned cell: trials of these costs, or the reason for none; a baseline has A/A pairs."""
    return Row(
        key=cell.key,
        coordinates=cell.coordinates,
        provider=cell.provider.name,
        title=cell.choice.title,
        standing=cell.standing,
        strength=cell.strength,
        against=cell.against,
        outcome=Outcome.UNSUPPORTED if missing else Outcome.OK,
        reason=missing,
        trials=() if missing else trials(costs),
        repeats=trials(repeats, repeat=True) if cell.is_baseline else (),
        server_version=f"{cell.coordinates['server']} 1.0" if "server" in cell.coordinates else None,
    )


def trial(
    cost_ns: float | Sequence[float],
    *,
    block: int = 0,
    batch: int = 0,
    repeat: bool = False,
    outcome: Outcome = Outcome.OK,
    steal: float = 0.0,
) -> Trial:
    """Return a trial of this cost in every chunk, or of these costs.

    `steal`: the share of its wall time that others got.
    """
    costs_ns = [cost_ns] * ROUNDS if isinstance(cost_ns, (int, float)) else list(cost_ns)
    chunks = tuple(chunk(number, each, block=block) for number, each in enumerate(costs_ns))
    return Trial(
        study="study",
        cell="cell",
        repeat=repeat,
        block=block,
        batch=batch,
        order=block,
        started_s=float(block),
        outcome=outcome,
        reason=None if outcome is Outcome.OK else "the runner fell over",
        chunks=chunks,
        paid_by=(RUNNER,),
        memory_bytes=0,
        steal_ns=round(steal * sum(chunk.wall_ns for chunk in chunks)),
        machine_load=1.0,
    )


def chunk(number: int, cost_ns: float, *, block: int = 0, probes_ns: tuple[float, float] | None = QUIET_NS) -> Chunk:
    """Return a chunk of this cost per operation, in this round, between two probes, by default quiet ones."""
    operations = OPERATIONS + 17 * number + block
    cpu_ns = round(cost_ns * operations)
    return Chunk(number, operations, cpu_ns, {RUNNER: cpu_ns}, probes_ns=probes_ns)


def trials(costs_ns: Sequence[float | Sequence[float]], *, repeat: bool = False) -> tuple[Trial, ...]:
    """Return one trial for each block, in block order."""
    return tuple(trial(cost, block=block, repeat=repeat) for block, cost in enumerate(costs_ns))


def row(
    coordinates: Mapping[str, Value],
    costs_ns: Sequence[float | Sequence[float]] = (),
    *,
    against: str | None = None,
    repeats_ns: Sequence[float | Sequence[float]] = (),
    standing: Standing = Standing.ACCEPTABLE,
    outcome: Outcome = Outcome.OK,
    reason: str | None = None,
) -> Row:
    """Return a row whose key is its coordinates' values; by default it is a baseline if A/A pairs are given."""
    full = {"choice": "x", "provider": "openssl 3.0.19", **coordinates}
    key = row_key(coordinates)
    return Row(
        key=key,
        coordinates=full,
        provider=str(full["provider"]),
        title=key,
        standing=standing,
        strength=None,
        against=key if repeats_ns and against is None else against,
        outcome=outcome,
        reason=reason,
        trials=trials(costs_ns),
        repeats=trials(repeats_ns, repeat=True),
    )


def row_key(coordinates: Mapping[str, Value]) -> str:
    return " ".join(str(value) for value in coordinates.values())


def family(sizes: Sequence[str] = ("bytes",), words: Sequence[str] = ("api", "digest")) -> Family:
    """Return a family with these settings and the null choice `none`."""
    settings = {name: Setting(name, name, None, "bytes" if name in sizes else None, 0, {}) for name in (*sizes, *words)}
    null = Choice("none", "None", "", None, None, None, Standing.NULL, (), (), {}, {}, None)
    return Family("digest", "Digests", ("run",), None, settings, {"none": null})


def study(
    *,
    threshold: float = 0.03,
    blocks: int = 20,
    vary: Mapping[str, tuple[Value, ...]] | None = None,
    claims: Sequence[Claim] = (),
) -> Study:
    return Study(
        name="study",
        text="",
        question="What does it cost?",
        family=family(),
        source=None,
        choices=("x",),
        providers=("openssl 3.0.19",),
        servers=(),
        load=None,
        vary=vary or {},
        baseline={"choice": "none"},
        leave_out=(),
        measure=Measure("cpu", 0.005, 10, blocks),
        threshold=threshold,
        claims=tuple(claims),
        notes=(),
    )


def first_blocks(of: Row, blocks: int) -> Row:
    """Return a row as it was after this number of blocks."""
    seen, repeats = (tuple(t for t in some if t.block < blocks) for some in (of.trials, of.repeats))
    return replace(of, trials=seen, repeats=repeats)


def example(blocks: int = 20) -> list[Row]:
    """Return a baseline with a repeat, a cell at twice its cost, and one at the same cost."""
    base, repeat, double, same = measured([1, 1, 2, 1], lognormal(0.005), random.Random(3), blocks=blocks)
    return [
        row({"choice": "none"}, base, repeats_ns=repeat, standing=Standing.NULL),
        row({"choice": "double"}, double, against="none"),
        row({"choice": "same"}, same, against="none"),
    ]


def study_run(rows: Sequence[Row], interim_looks: Sequence[int] = (20,), of: Study | None = None) -> StudyRun:
    return StudyRun(of or study(blocks=interim_looks[-1]), tuple(rows), (), tuple(interim_looks))


def run(*studies: StudyRun) -> Run:
    """Return a run on a processor that earlier runs know: their best probe is this run's."""
    where, started = Path("runs/example"), "2026-11-21T06:30:00Z"
    return Run(where, "example", ("tollbar", "run"), 7, started, {}, {}, studies, best_probe_ns=QUIET_NS[0])


def claim(of: Mapping[str, Value], over: Mapping[str, Value], ratio: float | None = None, **changes: Any) -> Claim:
    """Return a claim on capacity that gives a ratio, or an `order`."""
    both = None if ratio is None else (ratio, ratio)
    return Claim(**{"says": "says", "of": of, "over": over, "ratio": both} | changes)


Noise = Callable[[random.Random], float]
"""Source of the logarithm of a trial's factor."""


def lognormal(sigma: float, *, slow: float = 0.0, times: float = 3.0) -> Noise:
    """Return lognormal noise; a share `slow` of the trials is multiplied further."""

    def draw(source: random.Random) -> float:
        outlier = math.log(times) if slow and source.random() < slow else 0.0
        return source.gauss(0.0, sigma) + outlier

    return draw


def measured(
    ratios: Sequence[float], noise: Noise, source: random.Random, *, blocks: int, drift: float = 0.0
) -> list[list[float]]:
    """Return costs by block of cells with these true ratios to 100 ns, each block visited in a random order.

    The machine drifts linearly, so that the last trial costs `1 + drift` times as much as the first.
    """
    costs: list[list[float]] = [[] for _ in ratios]
    last = blocks * len(ratios) - 1
    place = count()
    for _ in range(blocks):
        for cell in _shuffled(len(ratios), source):
            machine = 1 + drift * next(place) / last
            costs[cell].append(100 * ratios[cell] * machine * math.exp(noise(source)))
    return costs


def _shuffled(number: int, source: random.Random) -> Iterator[int]:
    order = list(range(number))
    source.shuffle(order)
    yield from order
