"""Trust: how far this run can be believed, in sentences that say what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from tollbar.judge.costs import ByBlock, Ledger
from tollbar.judge.decisions import Terms
from tollbar.measure import Outcome, Trial
from tollbar.results import StudyRun
from tollbar.stats import fewest_blocks

# Ratios within a block outlive any drift, but a machine that changes by a tenth is not at rest.
_MUCH_DRIFT = 0.10
# Time taken by the hypervisor is not in the CPU account, but the caches that the others leave behind are.
_MUCH_STEAL = 0.05
# The same of other programs on this machine: what they do to the caches is paid for by whoever comes after.
_MUCH_HELD_UP = 0.10


def drift(ledger: Ledger) -> float | None:
    """The cells' median change of cost from the first to the last third of the blocks, as a ratio.

    None where no cell has three blocks.
    """
    changes = [_change(ledger.costs(row)) for row in ledger.rows if len(ledger.costs(row)) >= 3]
    return median(changes) if changes else None


def warnings(
    study_run: StudyRun, ledger: Ledger, terms: Terms, *, noise_floor: float | None, drift: float | None
) -> tuple[str, ...]:
    """What a reader should know before believing the verdicts, each with what would help."""
    blocks = ledger.blocks()
    if not blocks:
        return ("Nothing was measured: see the cells' reasons.",)
    trials = [trial for row in ledger.rows for trial in (*row.trials, *row.twins)]
    return (
        *_on_blocks(study_run, ledger, blocks, terms),
        *_on_noise(terms, noise_floor, len(blocks)),
        *_on_drift(drift),
        *_on_steal(trials),
        *_on_contention(trials),
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
            f" run at least {fewest}, or 20 as by default."
        )


def _on_noise(terms: Terms, noise_floor: float | None, blocks: int) -> Iterator[str]:
    if noise_floor is None:
        # With too few blocks that has been said already.
        if blocks >= fewest_blocks(terms.confidence):
            yield "No baseline was measured twice, so the noise is not known and no verdict is given."
    elif noise_floor > terms.margin:
        yield (
            f"The baseline against itself came out as ×{noise_floor:.3f}, beyond the {terms.worth:.1%} that this"
            " study asks about: nothing held against it can be called free. Quiet the machine or add blocks."
        )


def _on_drift(drift: float | None) -> Iterator[str]:
    if drift is None or 1 / (1 + _MUCH_DRIFT) <= drift <= 1 + _MUCH_DRIFT:
        return
    way = f"rose by {drift - 1:.0%}" if drift > 1 else f"fell by {1 - drift:.0%}"
    yield (
        f"The cells' cost {way} from the first third of the blocks to the last. Ratios are formed within"
        " blocks and stand; for costs in nanoseconds let the machine come to rest and run again."
    )


def _on_steal(trials: Sequence[Trial]) -> Iterator[str]:
    robbed = sum(trial.steal_ns > _MUCH_STEAL * trial.wall_ns for trial in trials)
    if robbed:
        yield (
            f"In {robbed:,} of {_count(len(trials), 'trial')} the hypervisor gave others more than"
            f" {_MUCH_STEAL:.0%} of the time: a quieter host, or more blocks, would narrow the intervals."
        )


def _on_contention(trials: Sequence[Trial]) -> Iterator[str]:
    loads = [trial.load for trial in trials if trial.load is not None]
    held_up = sum(max(load.server_held_up, load.client_held_up) > _MUCH_HELD_UP for load in loads)
    if held_up:
        yield (
            f"In {held_up:,} of {_count(len(loads), 'trial')} the server or its client stood for more than"
            f" {_MUCH_HELD_UP:.0%} of the time while other programs had its core. CPU time per request is right,"
            " and dearer by what that did to the caches: end the other programs, or add blocks."
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


def _change(costs: ByBlock) -> float:
    ordered = [costs[block] for block in sorted(costs)]
    third = len(ordered) // 3
    return median(ordered[-third:]) / median(ordered[:third])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
