"""Hand-made trials, judged as those of a run.

Their quiet costs are their typical costs divided by the given disturbance, where a run has measured both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tollbar.analysis import Measurement, StudyJudgement, Toll, Trust, Verdict
from tollbar.analysis.decisions import Terms, decide, more_blocks, reach, suffers
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.noise import largest_difference, worst_noise
from tollbar.analysis.tolls import tolls
from tollbar.catalog.families import Value
from tollbar.core import stats
from tollbar.core.arrays import np
from tollbar.core.intervals import FEWEST_BLOCKS, Interval, Moments
from tollbar.core.records import Chunk, Outcome, Trial
from tollbar.core.visits import Visit
from tollbar.results import Row, StudyRun

CELLS_A_BATCH = 4

Disturbed = Mapping[str, float]
"""Factor by which neighbours raise each cell's cost, by its key."""


def key(coordinates: Mapping[str, Value]) -> str:
    """Return a cell's key."""
    return " ".join(f"{name}={value}" for name, value in sorted(coordinates.items()))


def batches(against: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """Return the batches of a block that each cell is in, given its baseline: a few cells and the baseline in each."""
    found: dict[str, tuple[int, ...]] = {}
    number = 0
    for baseline in dict.fromkeys(against.values()):
        cells = [one for one, its in against.items() if its == baseline and one != baseline]
        first = number
        for i in range(0, max(1, len(cells)), CELLS_A_BATCH):
            found |= dict.fromkeys(cells[i : i + CELLS_A_BATCH], (number,))
            number += 1
        found[baseline] = tuple(range(first, number))
    return found


def trials(
    study: str,
    cell: str,
    *,
    repeat: bool,
    blocks: int,
    batches: Sequence[int],
    chunks: Callable[[int], Sequence[Chunk]],
    paid_by: Sequence[str],
    chance: random.Random,
    memory: int = 0,
) -> Iterator[Trial]:
    """Yield one trial in each block for each batch; a repeat is in the first batch alone."""
    for block in range(blocks):
        for batch in batches[:1] if repeat else batches:
            yield Trial(
                study=study,
                cell=cell,
                repeat=repeat,
                block=block,
                batch=batch,
                order=block,
                started_s=1.8e9 + block,
                outcome=Outcome.OK,
                reason=None,
                chunks=tuple(chunks(block)),
                paid_by=tuple(paid_by),
                memory_bytes=memory + chance.randrange(4096) if memory else 0,
                steal_ns=10_000_000 if (block + batch) % 4 == 0 else 0,
                machine_load=1.25 if block else 0.5,
            )


def judged(
    run: StudyRun,
    noisy: Disturbed,
    *,
    beside: Callable[[Row], Iterable[Measurement]],
) -> StudyJudgement:
    """Return costs, tolls and the noise of rows whose quiet cost is their typical one divided by `noisy`."""
    metric, terms = run.study.measure.cost, Terms.of(run)
    ledger = Ledger(run.rows, terms, metric, run.study.family)
    costs: dict[str, Interval] = {}
    measurements: list[Measurement] = []
    for row in run.rows:
        all_samples = ledger.all_samples(row)
        if all_samples is not None:
            costs[row.key] = scaled(all_samples, 1 / noisy[row.key])
            measurements += [
                measurement(row, metric, "ns/op", costs[row.key]),
                measurement(row, f"{metric}-all", "ns/op", all_samples),
                *beside(row),
            ]
    return StudyJudgement(
        study=run,
        confidence=terms.confidence,
        noise_floor=largest_difference(ledger),
        noise=worst_noise(ledger),
        measurements=tuple(measurements),
        tolls=tuple(_quieter(toll, noisy, costs, terms) for toll in tolls(ledger, run.study.baseline)),
        contrasts=(),
        claims=(),
        drift=0.996,
        trust=_trust(run, ledger),
    )


def _trust(run: StudyRun, ledger: Ledger) -> Trust:
    blocks = len(ledger.blocks())
    return Trust(blocks, blocks, run.study.measure.blocks, FEWEST_BLOCKS, batches=2 * blocks, stolen_batches=1)


def _quieter(toll: Toll, noisy: Disturbed, costs: Mapping[str, Interval], terms: Terms) -> Toll:
    """Return a toll, noisy because no core was probed, with the ratio of these quiet costs."""
    if toll.ratio is None:
        return toll
    ratio = scaled(toll.ratio, noisy[toll.against.key] / noisy[toll.row.key])
    floor = reach(toll.noise) if toll.noise else None
    verdict = decide(ratio, floor, terms)
    return replace(
        toll,
        ratio=ratio,
        difference=(ratio.estimate - 1) * costs[toll.against.key].estimate,
        verdict=verdict,
        more_blocks=more_blocks(ratio, floor, terms) if verdict is Verdict.UNCLEAR else None,
        suffers=suffers(ratio, toll.all_samples, terms),
    )


def interval(values: Mapping[int, float], confidence: float) -> Interval:
    """Return an interval over blocks with one value in each."""
    one = np.ones(1)
    visits = [
        Visit(block, 0, np.zeros(1, int), np.array([value]), one, one > 0, one > 0) for block, value in values.items()
    ]
    found = stats.cost(visits, Moments.ALL, confidence=confidence)
    assert found is not None
    return found


def scaled(interval: Interval, by: float) -> Interval:
    """Return the interval of the scaled quantity, as if the core had been quiet."""
    return replace(
        interval,
        estimate=interval.estimate * by,
        low=interval.low * by,
        high=interval.high * by,
        moments=Moments.QUIET,
    )


def measurement(row: Row, metric: str, unit: str, of: Interval, **more: object) -> Measurement:
    """Return one metric of one cell."""
    return Measurement(row, metric, unit, of.estimate, of.low, of.high, of.n, moments=of.moments, **more)  # type: ignore[arg-type]
