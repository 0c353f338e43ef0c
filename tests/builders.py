"""Studies, rows and trials made by hand, for tests that have costs and want verdicts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from tollbar.catalogue import Choice, Family, Setting, Standing, Value
from tollbar.measure import Outcome, Trial
from tollbar.results import Row, Run, StudyRun
from tollbar.study import Claim, Measure, Study

# So many that rounding a trial's CPU time to whole nanoseconds is a millionth of a nanosecond per operation.
OPERATIONS = 1_000_000


def trial(
    cost_ns: float, *, block: int = 0, twin: bool = False, outcome: Outcome = Outcome.OK, steal: float = 0.0
) -> Trial:
    """One trial of this cost; `steal` is the share of its wall time that went to others."""
    cpu_ns = round(cost_ns * OPERATIONS)
    return Trial(
        study="study",
        cell="cell",
        twin=twin,
        block=block,
        order=block,
        started_s=float(block),
        outcome=outcome,
        reason=None if outcome is Outcome.OK else "the runner fell over",
        operations=OPERATIONS,
        cpu_ns=cpu_ns,
        wall_ns=cpu_ns,
        memory_bytes=0,
        batches=((OPERATIONS, cpu_ns),),
        steal_ns=round(steal * cpu_ns),
        machine_load=1.0,
    )


def trials(costs_ns: Sequence[float], *, twin: bool = False) -> tuple[Trial, ...]:
    """One trial for each block, in block order."""
    return tuple(trial(cost, block=block, twin=twin) for block, cost in enumerate(costs_ns))


def row(
    coordinates: Mapping[str, Value],
    costs_ns: Sequence[float] = (),
    *,
    against: str | None = None,
    twins_ns: Sequence[float] = (),
    standing: Standing = Standing.ACCEPTABLE,
    outcome: Outcome = Outcome.OK,
    reason: str | None = None,
) -> Row:
    """A row whose key is its coordinates' values; a baseline if twins are given and nothing else is said."""
    full = {"choice": "x", "provider": "openssl 3.0.19", **coordinates}
    key = row_key(coordinates)
    return Row(
        key=key,
        coordinates=full,
        title=key,
        standing=standing,
        strength=None,
        against=key if twins_ns and against is None else against,
        outcome=outcome,
        reason=reason,
        trials=trials(costs_ns),
        twins=trials(twins_ns, twin=True),
    )


def row_key(coordinates: Mapping[str, Value]) -> str:
    return " ".join(str(value) for value in coordinates.values())


def family(sizes: Sequence[str] = ("bytes",), words: Sequence[str] = ("api", "digest")) -> Family:
    """A family with these settings and the null choice `none`."""
    settings = {name: Setting(name, name, None, name in sizes, 0, {}) for name in (*sizes, *words)}
    null = Choice("none", "None", "", None, None, None, Standing.NULL, (), (), {}, {}, None)
    return Family("digest", "Digests", ("run",), None, settings, {"none": null})


def study(
    *,
    worth: float = 0.03,
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
        beds=(),
        url=None,
        load=None,
        vary=vary or {},
        baseline={"choice": "none"},
        leave_out=(),
        measure=Measure("cpu", 0.1, 0.02, blocks),
        worth=worth,
        claims=tuple(claims),
        notes=(),
    )


def example(blocks: int = 20) -> list[Row]:
    """A baseline with a twin, a cell at twice its cost, and one at the same."""
    base, twin, double, same = measured([1, 1, 2, 1], lognormal(0.005), random.Random(3), blocks=blocks)
    return [
        row({"choice": "none"}, base, twins_ns=twin, standing=Standing.NULL),
        row({"choice": "double"}, double, against="none"),
        row({"choice": "same"}, same, against="none"),
    ]


def study_run(rows: Sequence[Row], looks: Sequence[int] = (20,), of: Study | None = None) -> StudyRun:
    return StudyRun(of or study(blocks=looks[-1]), tuple(rows), (), tuple(looks))


def run(*studies: StudyRun) -> Run:
    return Run(Path("runs/example"), "example", ("tollbar", "run"), 7, "2026-11-21T06:30:00Z", {}, {}, studies)


def claim(of: Mapping[str, Value], over: Mapping[str, Value], ratio: float | None = None, **changes: str) -> Claim:
    """A claim on throughput that gives a ratio, or an `order`."""
    order = changes.get("order")
    return Claim("says", of, over, changes.get("metric", "throughput"), ratio, order, None)  # type: ignore[arg-type]


Noise = Callable[[random.Random], float]
"""Draws the logarithm of what a trial's cost is multiplied by."""


def lognormal(sigma: float, *, slow: float = 0.0, times: float = 3.0) -> Noise:
    """Lognormal noise; a share `slow` of the trials takes that many times as long besides."""

    def draw(source: random.Random) -> float:
        outlier = math.log(times) if slow and source.random() < slow else 0.0
        return source.gauss(0.0, sigma) + outlier

    return draw


def measured(
    ratios: Sequence[float], noise: Noise, source: random.Random, *, blocks: int, drift: float = 0.10
) -> list[list[float]]:
    """Costs by block of cells with these true ratios to 100 ns, each block visited in a random order.

    The machine drifts in a line, so that the last trial costs `1 + drift` times what the first did.
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
