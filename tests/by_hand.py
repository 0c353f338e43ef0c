"""What a judge would make of trials that are made by hand: intervals over blocks, without an estimator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import exp, log
from statistics import fmean, stdev

from tollbar.families import Value
from tollbar.judge import Measurement, StudyJudgement, Toll, Trust, Verdict
from tollbar.records import Chunk, Outcome, Trial
from tollbar.results import Row, StudyRun
from tollbar.stats import FEWEST_BLOCKS, Interval

CELLS_A_HEAT = 4
# Close enough to an interval over a dozen blocks for an example.
_HALF_WIDTHS = 2.6

Disturbed = Mapping[str, float]
"""By how much neighbours raise each cell's cost, by its key."""


def key(coordinates: Mapping[str, Value]) -> str:
    """A cell's key."""
    return " ".join(f"{name}={value}" for name, value in sorted(coordinates.items()))


def heats(against: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The heats of a block that each cell is in, given each one's baseline: a few cells in each, and the baseline."""
    found: dict[str, tuple[int, ...]] = {}
    number = 0
    for baseline in dict.fromkeys(against.values()):
        cells = [one for one, its in against.items() if its == baseline and one != baseline]
        first = number
        for i in range(0, max(1, len(cells)), CELLS_A_HEAT):
            found |= dict.fromkeys(cells[i : i + CELLS_A_HEAT], (number,))
            number += 1
        found[baseline] = tuple(range(first, number))
    return found


def trials(
    study: str,
    cell: str,
    *,
    twin: bool,
    blocks: int,
    heats: Sequence[int],
    chunks: Callable[[int], Sequence[Chunk]],
    paid_by: Sequence[str],
    chance: random.Random,
    memory: int = 0,
) -> Iterator[Trial]:
    """One trial in each block for each of its heats; of a twin in the first of them."""
    for block in range(blocks):
        for heat in heats[:1] if twin else heats:
            yield Trial(
                study=study,
                cell=cell,
                twin=twin,
                block=block,
                heat=heat,
                order=block,
                started_s=1.8e9 + block,
                outcome=Outcome.OK,
                reason=None,
                chunks=tuple(chunks(block)),
                paid_by=tuple(paid_by),
                memory_bytes=memory + chance.randrange(4096) if memory else 0,
                steal_ns=10_000_000 if (block + heat) % 4 == 0 else 0,
                machine_load=1.25 if block else 0.5,
            )


def judged(
    run: StudyRun,
    disturbed: Disturbed,
    *,
    confidence: float,
    beside: Callable[[Row], Iterable[Measurement]],
) -> StudyJudgement:
    """Costs, tolls and the noise of rows whose undisturbed cost is their typical one over `disturbed`."""
    metric, worth = run.study.measure.cost, run.study.worth
    by_key = {row.key: row for row in run.rows}
    noise = {row.key: interval(_apart(row.twins, row.trials), confidence) for row in run.rows if row.twins}
    measurements: list[Measurement] = []
    for row in run.rows:
        if row.trials:
            typical = interval(by_block(row.trials), confidence)
            measurements += [
                measurement(row, metric, "ns/op", scaled(typical, 1 / disturbed[row.key])),
                measurement(row, f"{metric}-typical", "ns/op", typical),
                *beside(row),
            ]
    tolls = tuple(
        _toll(row, by_key[row.against], disturbed, metric, worth, noise.get(row.against))
        for row in run.rows
        if row.against
    )
    worst = max(noise.values(), key=_floor, default=None)
    blocks = len({trial.block for row in run.rows for trial in row.trials})
    return StudyJudgement(
        study=run,
        confidence=confidence,
        noise_floor=_floor(worst) if worst else None,
        noise=worst,
        measurements=tuple(measurements),
        tolls=tolls,
        contrasts=(),
        claims=(),
        drift=0.996,
        trust=Trust(blocks, blocks, run.study.measure.blocks, FEWEST_BLOCKS, heats=2 * blocks, stolen_heats=1),
    )


def by_block(trials: Iterable[Trial]) -> dict[int, float]:
    """The mean logarithm of the chunks' costs in each block."""
    logs: dict[int, list[float]] = {}
    for trial in trials:
        logs.setdefault(trial.block, []).extend(log(trial.cost_of(chunk)) for chunk in trial.chunks)
    return {block: fmean(found) for block, found in logs.items()}


def interval(logs: Mapping[int, float], confidence: float) -> Interval:
    """An interval over blocks, of their logarithms."""
    half = _HALF_WIDTHS * stdev(logs.values()) / len(logs) ** 0.5
    middle = fmean(logs.values())
    return Interval(exp(middle), exp(middle - half), exp(middle + half), confidence, len(logs))


def scaled(interval: Interval, by: float) -> Interval:
    """The same interval of so many times the quantity."""
    return Interval(interval.estimate * by, interval.low * by, interval.high * by, interval.confidence, interval.n)


def measurement(row: Row, metric: str, unit: str, of: Interval, **more: object) -> Measurement:
    """One metric of one cell."""
    return Measurement(row, metric, unit, of.estimate, of.low, of.high, of.n, **more)  # type: ignore[arg-type]


def verdict(ratio: Interval, worth: float) -> Verdict:
    """What this ratio of costs comes to."""
    if ratio.low > 1 + worth:
        return Verdict.COSTS
    if ratio.high < 1 / (1 + worth):
        return Verdict.SAVES
    return Verdict.FREE if ratio.low > 1 / (1 + worth) and ratio.high < 1 + worth else Verdict.UNCLEAR


def _apart(trials: Iterable[Trial], others: Iterable[Trial]) -> dict[int, float]:
    own, theirs = by_block(trials), by_block(others)
    return {block: own[block] - theirs[block] for block in own}


def _floor(noise: Interval) -> float:
    return max(noise.estimate, 1 / noise.estimate)


def _toll(row: Row, against: Row, disturbed: Disturbed, metric: str, worth: float, noise: Interval | None) -> Toll:
    ratio = typical = difference = more = suffers = None
    found = Verdict.NOT_MEASURED
    if row.trials and against.trials:
        assert noise is not None
        typical = interval(_apart(row.twins if row is against else row.trials, against.trials), noise.confidence)
        apart = disturbed[row.key] / disturbed[against.key]
        ratio = scaled(typical, 1 / apart)
        own, others = (exp(fmean(by_block(of.trials).values())) / disturbed[of.key] for of in (row, against))
        difference = own - others
        found = verdict(ratio, worth)
        more = 25 if found is Verdict.UNCLEAR else None
        suffers = "more" if apart > 1 + worth else "less" if apart < 1 / (1 + worth) else None
    return Toll(
        row=row,
        against=against,
        metric=metric,
        ratio=ratio,
        typical=typical,
        difference=difference,
        verdict=found,
        noise_floor=_floor(noise) if noise and ratio else None,
        more_blocks=more,
        reason=None if ratio else row.reason or against.reason,
        suffers=suffers,  # type: ignore[arg-type]
        noise=noise,
    )
