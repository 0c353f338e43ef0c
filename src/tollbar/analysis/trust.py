"""Trust: what a reader has to know before believing the verdicts, counted over a study's trials."""

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
from tollbar.analysis.probes import probes_of
from tollbar.analysis.visits import Visits, settled
from tollbar.core.arrays import np
from tollbar.core.moments import Known
from tollbar.core.records import Chunks, LoadRecord, Outcome, Trial
from tollbar.core.stats import FEWEST_BLOCKS, Interval, Moments
from tollbar.core.warming import trend
from tollbar.results import Row, StudyRun

# Sides of a ratio are milliseconds apart and outlive any drift, but a machine that changes by a tenth is not at rest.
MUCH_DRIFT = 0.10
# Time taken by the hypervisor is not in the CPU account, but the caches that the others leave behind are.
MUCH_STEAL = 0.05
# The same of other programs on this machine: the next process on the core pays for what they did to the caches.
MUCH_WAIT = 0.10
# A neighbour that slowed throughput-bound work throughout moved ratios of unlike work in simulations by up to so much.
STEADY_NEIGHBOUR = 1.15


@dataclass(frozen=True, slots=True)
class Trust:
    """What happened during a study's trials that the verdicts do not show, in counts."""

    blocks: int
    """In which some cell was measured."""
    whole_blocks: int
    """In which every cell was visited."""
    planned_blocks: int
    fewest_blocks: int
    """That can support an interval."""
    repeats_apart: tuple[int, int] | None = None
    """How many A/A pairs exclude that they cost what they cost, and of how many; None where chance explains it."""
    cells: int = 0
    """That have a cost."""
    quiet_share: float | None = None
    """The share of unselected moments in which the core was quiet; None: no core was probed."""
    never_quiet: int = 0
    """Of these: those whose core was quiet in too few blocks, or for too short, so that costs are noisy."""
    varying: tuple[str, ...] = ()
    """Titles of cells whose operations vary, so that quiet chunks would be the cheap ones: all chunks count."""
    slower_than_known: float | None = None
    """How many times as long the quickest probes took as on a quiet core, where a quiet core does not explain it: then
    all moments were disturbed, or the machine has changed."""
    known_by: Known | None = None
    """Evidence for what a quiet core's probe takes; None: no core was probed, or all machines are those of roles."""
    lattices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Titles of the cells whose chunk times are multiples of a tick, by what makes them so."""
    batches: int = 0
    stolen_batches: int = 0
    """In which the hypervisor gave others much of the time."""
    loads: int = 0
    phases: int = 0
    """In which rates and response times were taken."""
    contended_loads: int = 0
    """Of these: in which other programs had the server's or the client's core for much of the time."""
    reopened_loads: int = 0
    """In which the server closed connections that its clients kept."""
    reopened_connections: int = 0
    failed_trials: int = 0
    """Of cells that were measured otherwise."""
    failures: tuple[str, ...] = ()
    """Why, each reason once."""
    trend: tuple[str, Interval] | None = None
    """The cell whose ratio changes most from a trial's first to its last round, and how many times as large it gets."""
    still_warming: tuple[str, ...] = ()
    """Titles of cells whose ratio changes so by more than `threshold`, and by more than chance explains."""

    @property
    def may_have_neighbour(self) -> bool:
        """Whether a steady neighbour cannot be excluded: nothing tells what a quiet core's probe takes."""
        return self.known_by is Known.NOTHING


def drift(ledger: Ledger) -> float | None:
    """The cells' median change of their cost of all samples from the first to the last third of the blocks, as a ratio.

    None where no cell has three blocks.
    """
    changes = [change for row in ledger.rows if (change := _change(ledger.visits(row))) is not None]
    return median(changes) if changes else None


def is_near(ratio: Interval, limit: float, *of: Trust) -> bool:
    """Whether a steady neighbour that one of these studies cannot exclude may have moved a ratio across a limit."""
    return (
        any(one.may_have_neighbour for one in of)
        and ratio.low <= limit * STEADY_NEIGHBOUR
        and ratio.high * STEADY_NEIGHBOUR > limit
    )


def trust(study_run: StudyRun, ledger: Ledger) -> Trust:
    """What happened during the trials that the verdicts do not show."""
    trends = list(_trends(ledger))
    trials = [trial for row in ledger.rows for trial in row.all_trials]
    loads = [trial.load for trial in trials if trial.load is not None]
    # In rounds the server and its client wait for each other, on the one core that they have.
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
    """The change of each ratio to a baseline within trials: a process that is not warm yet gets quicker."""
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
    """For how much of the time other programs had the server's core while it would have run, at most.

    The processes of a server wait for each other too, on the one core that they have; while they use it, no other
    program does.
    """
    return min(load.server_run_queue_wait, max(0.0, 1 - load.server_busy))


def _whole(ledger: Ledger, blocks: Sequence[int]) -> int:
    """How many blocks visited every cell that was not set aside, which is said by itself: one may be cut short."""
    rows = [row for row in ledger.rows if row.outcome is Outcome.OK and row.set_aside is None]
    visits = [{trial.block for trial in row.trials} for row in rows]
    return sum(all(block in visited for visited in visits) for block in blocks)


def _quiet_share(ledger: Ledger) -> float | None:
    share = _share_of_readings(ledger)
    # Quick beside the run's own quickest probe, which was no quick one.
    return 0.0 if share is not None and ledger.quickness.slower_than_known is not None else share


def _share_of_readings(ledger: Ledger) -> float | None:
    """The share of the time of first tries in which the core was quiet; None where no core was probed.

    Each chunk's probes count by its elapsed time: chunks are as long as their work, of which less is done next to a
    neighbour, and a slice is a tenth of a chunk.
    """
    longest_ns = ledger.quickness.longest_quick_ns
    quick_ns = all_ns = 0.0
    for row in ledger.rows:
        for trial in row.all_trials:
            chunks = Chunks.of(trial.chunks)
            probes, wall_ns = probes_of(chunks), np.array(chunks.wall_ns, float)
            counts = ~np.isnan(probes.first_ns) & ~np.array(chunks.made_up, bool)
            quick = sum((ends_ns <= longest_ns).astype(int) for ends_ns in (probes.first_ns, probes.last_ns))
            quick_ns += float((quick / 2 * wall_ns)[counts].sum())
            all_ns += float(wall_ns[counts].sum())
    return quick_ns / all_ns if all_ns else None


def _was_never_quiet(row: Row, ledger: Ledger) -> bool:
    found = ledger.best_cost(row)
    return found is not None and found.moments is Moments.ALL and row.key not in ledger.varying


def _lattices(ledger: Ledger) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in ledger.rows:
        cause = lattice(row.trials)
        if cause is not None:
            found[cause] = (*found.get(cause, ()), row.title)
    return found


def _stolen(trials: Sequence[Trial]) -> tuple[int, int]:
    """How many batches there were, and in how many of them much time was stolen.

    The trials of a batch took their turns on one core, and each says what was stolen in all of that time.
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
    for visit in visits:
        if visit.costs[visit.first].sum() > 0:
            by_block[visit.block].append(math.log(visit.costs[visit.first].sum() / visit.operations[visit.first].sum()))
    third = len(by_block) // 3
    if not third:
        return None
    logs = [fmean(by_block[block]) for block in sorted(by_block)]
    return math.exp(median(logs[-third:]) - median(logs[:third]))
