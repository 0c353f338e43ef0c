"""Trust: how far this run can be believed, in sentences that say what to do about it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median

from tollbar.judge.costs import Ledger, Visits
from tollbar.judge.decisions import Terms
from tollbar.judge.lattice import lattice
from tollbar.judge.noise import apart, reach, twins_apart
from tollbar.judge.verdicts import Toll
from tollbar.measure import Outcome, Trial
from tollbar.results import StudyRun
from tollbar.stats import Interval, fewest_blocks
from tollbar.study.definition import DEFAULT_MEASURE

# Sides of a ratio are milliseconds apart and outlive any drift, but a machine that changes by a tenth is not at rest.
_MUCH_DRIFT = 0.10
# Time taken by the hypervisor is not in the CPU account, but the caches that the others leave behind are.
_MUCH_STEAL = 0.05
# The same of other programs on this machine: what they do to the caches is paid for by whoever comes after.
_MUCH_HELD_UP = 0.10


def drift(ledger: Ledger) -> float | None:
    """The cells' median change of their typical cost from the first to the last third of the blocks, as a ratio.

    None where no cell has three blocks.
    """
    changes = [change for row in ledger.rows if (change := _change(ledger.visits(row))) is not None]
    return median(changes) if changes else None


def warnings(
    study_run: StudyRun,
    ledger: Ledger,
    terms: Terms,
    *,
    noise: Interval | None,
    drift: float | None,
    tolls: Sequence[Toll],
) -> tuple[str, ...]:
    """What a reader should know before believing the verdicts, each with what would help."""
    blocks = ledger.blocks()
    if not blocks:
        return ("Nothing was measured: see the cells' reasons.",)
    trials = [trial for row in ledger.rows for trial in (*row.trials, *row.twins)]
    return (
        *_on_blocks(study_run, ledger, blocks, terms),
        *_on_noise(terms, noise, len(blocks)),
        *_on_twins(ledger),
        *_on_neighbours(tolls),
        *_on_lattices(ledger),
        *_on_drift(drift),
        *_on_steal(trials),
        *_on_contention(trials),
        *_on_reopened(trials),
        *_on_failures(ledger),
    )


def _on_blocks(study_run: StudyRun, ledger: Ledger, blocks: Sequence[int], terms: Terms) -> Iterator[str]:
    planned = study_run.study.measure.blocks
    last = blocks[-1]
    visits = [{trial.block for trial in row.trials} for row in ledger.rows if row.outcome is Outcome.OK]
    whole = len(blocks) - any(last not in visited for visited in visits)
    if whole < planned or whole < len(blocks):
        yield (
            f"The run was cut short: {whole} of {max(planned, len(blocks))} blocks are whole;"
            " `tollbar run --resume RUN` goes on where it stopped."
        )
    fewest = fewest_blocks(terms.confidence)
    if len(blocks) < fewest:
        yield (
            f"{_count(len(blocks), 'block')} cannot carry an interval, so that every toll is unclear:"
            f" run at least {fewest}, or {DEFAULT_MEASURE.blocks} as by default."
        )


def _on_noise(terms: Terms, noise: Interval | None, blocks: int) -> Iterator[str]:
    if noise is None:
        # With too few blocks that has been said already.
        if blocks >= fewest_blocks(terms.confidence):
            yield "No baseline was measured twice, so the noise is not known and no verdict is given."
    elif reach(noise) > terms.margin:
        yield (
            f"A baseline against itself came out as ×{apart(noise):.3f}, and may be as far from ×1 as"
            f" ×{reach(noise):.3f}, beyond the {terms.worth:.1%} that this study asks about: nothing held against it"
            " can be called free. Quiet the machine or add blocks."
        )


def _on_twins(ledger: Ledger) -> Iterator[str]:
    found = twins_apart(ledger)
    if found is not None:
        outside, of = found
        yield (
            f"{outside:,} of {_count(of, 'baseline')} measured beside itself came out with an interval that excludes"
            " ×1, more than chance allows: intervals are too narrow here, and nothing nearer to ×1 than the noise floor"
            " is to be believed."
        )


def _on_neighbours(tolls: Sequence[Toll]) -> Iterator[str]:
    measured = [toll for toll in tolls if toll.ratio is not None and toll.row is not toll.against]
    more = sum(toll.suffers == "more" for toll in measured)
    less = sum(toll.suffers == "less" for toll in measured)
    if more or less:
        yield (
            f"What else ran on this machine made {more:,} of {_count(len(measured), 'cell')} dearer by more than their"
            f" baseline, and {less:,} by less: their typical ratios, as disturbed, stand beside the undisturbed ones"
            " that verdicts are made from."
        )


def _on_lattices(ledger: Ledger) -> Iterator[str]:
    found: Mapping[str, list[str]] = defaultdict(list)
    for row in ledger.rows:
        cause = lattice(row.trials)
        if cause is not None:
            found[cause].append(row.title)
    for cause, titles in found.items():
        cells = ", ".join(titles[:3]) + (" …" if len(titles) > 3 else "")
        yield (
            f"Chunk times of {_count(len(titles), 'cell')} ({cells}) are multiples of a tick, by {cause}:"
            " their intervals are tight and wrong. Do not use these numbers."
        )


def _on_drift(drift: float | None) -> Iterator[str]:
    if drift is None or 1 / (1 + _MUCH_DRIFT) <= drift <= 1 + _MUCH_DRIFT:
        return
    way = f"rose by {drift - 1:.0%}" if drift > 1 else f"fell by {1 - drift:.0%}"
    yield (
        f"The cells' cost {way} from the first third of the blocks to the last. Ratios are made of"
        " chunks milliseconds apart and stand; for typical costs let the machine come to rest and run again."
    )


def _on_steal(trials: Sequence[Trial]) -> Iterator[str]:
    # The trials of a heat took their turns on one core, and each says what was stolen in all of that time.
    wall_ns: dict[tuple[int, int], int] = defaultdict(int)
    steal_ns: dict[tuple[int, int], int] = defaultdict(int)
    for trial in trials:
        heat = trial.block, trial.heat
        wall_ns[heat] += trial.wall_ns
        steal_ns[heat] = max(steal_ns[heat], trial.steal_ns)
    robbed = sum(steal_ns[heat] > _MUCH_STEAL * wall_ns[heat] for heat in wall_ns)
    if robbed:
        yield (
            f"In {robbed:,} of {_count(len(wall_ns), 'heat')} the hypervisor gave others more than"
            f" {_MUCH_STEAL:.0%} of the time: a quieter host, or more blocks, would narrow the intervals."
        )


def _on_contention(trials: Sequence[Trial]) -> Iterator[str]:
    loads = [trial.load for trial in trials if trial.load is not None]
    run_queue_wait = sum(max(load.server_run_queue_wait, load.client_run_queue_wait) > _MUCH_HELD_UP for load in loads)
    if run_queue_wait:
        yield (
            f"In {run_queue_wait:,} of {_count(len(loads), 'trial')} the server or its client stood for more than"
            f" {_MUCH_HELD_UP:.0%} of the time while other programs had its core. CPU time per request is right,"
            " and dearer by what that did to the caches: end the other programs, or add blocks."
        )


def _on_reopened(trials: Sequence[Trial]) -> Iterator[str]:
    loads = [trial.load for trial in trials if trial.load is not None]
    reopened = sum(load.reopened for load in loads)
    if reopened:
        among = sum(load.reopened > 0 for load in loads)
        yield (
            f"The server closed {_count(reopened, 'connection')} that its clients kept, in {among:,} of"
            f" {_count(len(loads), 'trial')}, and they were opened again: requests there cost what that costs besides."
            " Let the server keep connections for longer, or measure new ones."
        )


def _on_failures(ledger: Ledger) -> Iterator[str]:
    failed = [
        trial
        for row in ledger.rows
        if row.outcome is Outcome.OK
        for trial in (*row.trials, *row.twins)
        if trial.outcome is not Outcome.OK
    ]
    if failed:
        reasons = sorted({trial.reason or str(trial.outcome) for trial in failed})
        yield (
            f"{_count(len(failed), 'trial')} of cells that otherwise went well"
            f" left no cost ({'; '.join(reasons[:3])}): see the run's events."
        )


def _change(visits: Visits) -> float | None:
    by_block: dict[int, list[float]] = defaultdict(list)
    for visit in visits:
        by_block[visit.block].append(float(visit.logs.mean()))
    third = len(by_block) // 3
    if not third:
        return None
    logs = [fmean(by_block[block]) for block in sorted(by_block)]
    return math.exp(median(logs[-third:]) - median(logs[:third]))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
