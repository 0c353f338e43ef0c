"""Trust: conditions to know before believing the verdicts, counted over a study's trials."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from tollbar.analysis.decisions import apart, jointly
from tollbar.analysis.lattice import lattice
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.noise import repeats_apart
from tollbar.analysis.probes import ends_of
from tollbar.analysis.visits import settled
from tollbar.core.arrays import np
from tollbar.core.intervals import FEWEST_BLOCKS, Interval, Moments
from tollbar.core.moments import Known
from tollbar.core.records import Chunks, LoadRecord, Outcome, Trial
from tollbar.core.visits import Visits, column
from tollbar.core.warming import trend
from tollbar.results import Row, StudyRun

# Sides of a ratio are milliseconds apart and tolerate any drift, but a machine that changes by a tenth is not at rest.
MUCH_DRIFT = 0.10
# The hypervisor's time is not in the CPU account, but the caches that other guests leave behind are.
MUCH_STEAL = 0.05
# Limit for other programs on this machine: the next process on the core pays for their use of the caches.
MUCH_WAIT = 0.10
# In simulations a neighbour that slowed throughput-bound work throughout moved ratios of unlike work by up to this.
STEADY_NEIGHBOUR = 1.15


@dataclass(frozen=True, slots=True)
class Trust:
    """Events during a study's trials that the verdicts do not show, in counts."""

    blocks: int
    """Number of blocks in which some cell was measured."""
    whole_blocks: int
    """Number of blocks in which every cell was visited."""
    planned_blocks: int
    fewest_blocks: int
    """Number of blocks that an interval needs."""
    repeats_apart: tuple[int, int] | None = None
    """Number of A/A pairs whose intervals exclude one, and of all pairs; None if chance explains it."""
    cells: int = 0
    """Number of cells that have a cost."""
    quiet_share: float | None = None
    """Share of unselected moments in which the core was quiet; None: no core was probed."""
    never_quiet: int = 0
    """Number of measured cells whose core was quiet in too few blocks, or too briefly: their costs are noisy."""
    varying: tuple[str, ...] = ()
    """Titles of cells whose operations vary, so that quiet chunks would be the cheap ones: all chunks count."""
    slower_than_known: float | None = None
    """Duration of the quickest probes over that on a quiet core, unless a quiet core explains it.

    If set, all moments were disturbed, or the machine has changed.
    """
    known_by: Known | None = None
    """Evidence for the duration of a quiet core's probe; None: no core was probed, or roles have all machines."""
    lattices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Titles of cells whose chunk times are multiples of a tick, by the cause."""
    batches: int = 0
    stolen_batches: int = 0
    """Number of batches in which the hypervisor gave much of the time to others."""
    loads: int = 0
    phases: int = 0
    """Number of phases in which rates and response times were taken."""
    contended_loads: int = 0
    """Number of phases in which other programs used the server's or the client's core for much of the time."""
    reopened_loads: int = 0
    """Number of loads in which the server closed connections that its clients kept."""
    reopened_connections: int = 0
    failed_trials: int = 0
    """Number of failed trials of cells that were measured by other trials."""
    failures: tuple[str, ...] = ()
    """Reasons of failure, each once."""
    trend: tuple[str, Interval] | None = None
    """Cell whose ratio changes most from a trial's first to its last round, and the factor of that change."""
    still_warming: tuple[str, ...] = ()
    """Titles of cells whose ratio changes within trials by more than `threshold`, and by more than chance explains."""

    @property
    def may_have_neighbour(self) -> bool:
        """True if a steady neighbour cannot be excluded: the duration of a quiet core's probe is unknown."""
        return self.known_by is Known.NOTHING


def drift(ledger: Ledger) -> float | None:
    """Return the median over cells of the change of their cost of all samples, last third of the blocks over the first.

    None if no cell has three blocks.
    """
    changes = [change for row in ledger.rows if (change := _change(ledger.visits(row))) is not None]
    return median(changes) if changes else None


def is_near(ratio: Interval, limit: float, *of: Trust) -> bool:
    """Return whether a steady neighbour may have moved a ratio across a limit, if a study cannot exclude one."""
    return (
        any(one.may_have_neighbour for one in of)
        and ratio.low <= limit * STEADY_NEIGHBOUR
        and ratio.high * STEADY_NEIGHBOUR > limit
    )


def trust(study_run: StudyRun, ledger: Ledger) -> Trust:
    """Return the events during a study's trials that the verdicts do not show."""
    trends = list(_trends(ledger))
    trials = [trial for row in ledger.rows for trial in row.all_trials]
    loads = [trial.load for trial in trials if trial.load is not None]
    # In rounds the server and its client wait for each other on the core that they share.
    waits = [max(_others(load), load.client_run_queue_wait) for load in settled(trials)]
    blocks = ledger.blocks()
    batches, stolen_batches = _stolen(trials)
    good = (row for row in ledger.rows if row.outcome is Outcome.OK)
    failed = [trial for row in good for trial in row.all_trials if trial.outcome is not Outcome.OK]
    return Trust(
        blocks=len(blocks),
        whole_blocks=_whole(ledger, blocks),
        planned_blocks=study_run.study.measure.blocks,
        fewest_blocks=FEWEST_BLOCKS,
        repeats_apart=repeats_apart(ledger),
        cells=sum(bool(ledger.visits(row)) for row in ledger.rows),
        quiet_share=_quiet_share(ledger),
        never_quiet=sum(_was_never_quiet(row, ledger) for row in ledger.rows),
        varying=tuple(row.title for row in ledger.rows if ledger.visits(row) and row.key in ledger.varying),
        slower_than_known=ledger.quickness.slower_than_known,
        known_by=ledger.quickness.known_by if ledger.quickness.is_known else None,
        lattices=_lattices(ledger),
        batches=batches,
        stolen_batches=stolen_batches,
        loads=len(loads),
        phases=len(waits),
        contended_loads=sum(wait > MUCH_WAIT for wait in waits),
        reopened_loads=sum(load.reopened > 0 for load in loads),
        reopened_connections=sum(load.reopened for load in loads),
        failed_trials=len(failed),
        failures=tuple(sorted({trial.reason or str(trial.outcome) for trial in failed})),
        trend=max(trends, key=lambda one: apart(one[1]), default=None),
        still_warming=tuple(title for title, found in trends if _is_trend(found, len(trends), ledger.terms.threshold)),
    )


def _trends(ledger: Ledger) -> Iterator[tuple[str, Interval]]:
    """Yield the change of each ratio to a baseline within trials: a process that is not warm yet gets faster."""
    for row in ledger.rows:
        against = ledger.by_key.get(row.against or "")
        if against is not None and against.key != row.key:
            found = trend(*ledger.sides(row, against), confidence=ledger.confidence)
            if found is not None:
                yield row.title, found


def _is_trend(found: Interval, among: int, threshold: float) -> bool:
    joint = jointly(found, among)
    return apart(found) > 1 + threshold and not joint.low <= 1 <= joint.high


def _others(load: LoadRecord) -> float:
    """Return an upper bound of the time share in which other programs had the server's core while it could have run.

    The processes of a server also wait for each other on their one core; while they use it, no other program does.
    """
    return min(load.server_run_queue_wait, max(0.0, 1 - load.server_busy))


def _whole(ledger: Ledger, blocks: Sequence[int]) -> int:
    """Return the number of blocks that visited every cell, except quarantined cells: a block may be cut short."""
    rows = [row for row in ledger.rows if row.outcome is Outcome.OK and row.set_aside is None]
    visits = [{trial.block for trial in row.trials} for row in rows]
    return sum(all(block in visited for visited in visits) for block in blocks)


def _quiet_share(ledger: Ledger) -> float | None:
    share = _share_of_readings(ledger)
    # Probes may be quick compared with the run's own quickest, which was not quick itself.
    return 0.0 if share is not None and ledger.quickness.slower_than_known is not None else share


def _share_of_readings(ledger: Ledger) -> float | None:
    """Return the share of the time of first tries in which the core was quiet; None if no core was probed.

    Each chunk's probes count by its elapsed time, because chunks differ in length: next to a neighbour less work is
    done in one, and a slice is a tenth of a chunk.
    """
    longest_ns = ledger.quickness.longest_quick_ns
    each = [Chunks.of(trial.chunks) for row in ledger.rows for trial in row.all_trials]
    ends = [ends_of(chunks) for chunks in each]
    first_ns, last_ns = (column((both[side] for both in ends), float) for side in (0, 1))
    # Whole nanoseconds, so that their sums are exact in any order.
    wall_ns = column((chunks.wall_ns for chunks in each), float)
    counts = ~np.isnan(first_ns) & ~column((chunks.made_up for chunks in each), bool)
    quick = (first_ns <= longest_ns).astype(int) + (last_ns <= longest_ns)
    all_ns = float(wall_ns[counts].sum())
    return float((quick / 2 * wall_ns)[counts].sum()) / all_ns if all_ns else None


def _was_never_quiet(row: Row, ledger: Ledger) -> bool:
    found = ledger.own_cost(row)
    return found is not None and found.moments is Moments.ALL and row.key not in ledger.varying


def _lattices(ledger: Ledger) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in ledger.rows:
        cause = lattice(row.trials)
        if cause is not None:
            found[cause] = (*found.get(cause, ()), row.title)
    return found


def _stolen(trials: Sequence[Trial]) -> tuple[int, int]:
    """Return the number of batches, and the number in which much time was stolen.

    The trials of a batch took turns on one core, and each reports the time stolen during the whole batch.
    """
    wall_ns: dict[tuple[int, int], int] = defaultdict(int)
    steal_ns: dict[tuple[int, int], int] = defaultdict(int)
    for trial in trials:
        batch = trial.block, trial.batch
        wall_ns[batch] += trial.wall_ns
        steal_ns[batch] = max(steal_ns[batch], trial.steal_ns)
    return len(wall_ns), sum(steal_ns[batch] > MUCH_STEAL * wall_ns[batch] for batch in wall_ns)


def _change(visits: Visits) -> float | None:
    by_block: dict[int, list[float]] = defaultdict(list)
    visit_of = visits.frame.visit_of[visits.first]
    spent, operations = (
        np.bincount(visit_of, some[visits.first], len(visits)).tolist() for some in (visits.costs, visits.operations)
    )
    for (block, _), cost_ns, done in zip(visits.frame.places, spent, operations, strict=True):
        if cost_ns > 0:
            by_block[block].append(math.log(cost_ns / done))
    third = len(by_block) // 3
    if not third:
        return None
    logs = [fmean(by_block[block]) for block in sorted(by_block)]
    return math.exp(median(logs[-third:]) - median(logs[:third]))
