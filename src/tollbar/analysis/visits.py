"""Visits: the chunks of each cell's trials, as numbers that costs are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tollbar.analysis.decisions import Terms
from tollbar.analysis.grain import Grain, grain_of
from tollbar.analysis.probes import probes_of, readings
from tollbar.analysis.selection import falls, unselected
from tollbar.catalog.families import Family
from tollbar.core.arrays import np
from tollbar.core.metrics import BACKGROUND, NETWORK, Metric
from tollbar.core.moments import Quickness, quickness_of, without_slices
from tollbar.core.records import Chunks, LoadRecord, Outcome, Trial
from tollbar.core.stats import Visit
from tollbar.results import Row

Visits = tuple[Visit, ...]
Amount = Callable[[Trial, Chunks], Sequence[float]]
"""What each chunk of a trial spent altogether of something."""
# The largest difference between what probes miss of two cells that a ratio may have, in `threshold`. No interval holds
# this bias; a fifth of what matters moves no verdict by itself. The same of costs that quiet moments select.
_MOST_MISSED = 0.2


def spent(trial: Trial, chunks: Chunks) -> Sequence[float]:
    """Of the study's cost, in nanoseconds."""
    return chunks.paid(trial.paid_by)


@dataclass(frozen=True, slots=True)
class _Told:
    """A trial's chunks that went well, and what they tell whatever they spent: one entry for each chunk."""

    chunks: Chunks
    operations: np.ndarray
    rounds: np.ndarray
    wall_ns: np.ndarray
    begins: np.ndarray
    """Whether the probe before it was quick."""
    ends: np.ndarray
    """The same of the probe after it."""
    quiet: np.ndarray
    """The same of all its probes."""
    first: np.ndarray
    """Whether it was its round's first try."""


class Visited:
    """The visits to every cell of a study, made once each, and which of them are quiet."""

    def __init__(
        self,
        rows: Sequence[Row],
        terms: Terms,
        metric: str = "cpu",
        family: Family | None = None,
        quickness: Quickness | None = None,
    ) -> None:
        self.rows = rows
        self.metric = metric
        self.observed_metrics = (BACKGROUND, *NETWORK.values(), *(family.metrics.values() if family else ()))
        """What runners may observe in their chunks: any, and the family's own."""
        self.by_key: Mapping[str, Row] = {row.key: row for row in rows}
        self.terms = terms
        self.confidence = terms.confidence
        self.quickness = quickness or quickness_of(readings(rows))
        self._longest_quick_ns = self.quickness.longest_quick_ns
        # By the trial's identity: rows keep their trials.
        self._told: dict[int, _Told] = {}
        self._visits: dict[str, Visits] = {}
        self._repeats: dict[str, Visits] = {}
        self._missed: dict[str, float] = {}
        self.varying: set[str] = set()
        """Keys of rows whose chunks vary by themselves, as far as they were asked for: none of them is selected."""

    def visits(self, row: Row) -> Visits:
        """The chunks of a cell's trials that ended well."""
        if row.key not in self._visits:
            trials = own.trials if (own := self._measured(row)) else ()
            found = self.visits_of(trials)
            self._visits[row.key] = self._unselected(found, trials)
            if self._visits[row.key] is not found:
                self.varying.add(row.key)
        return self._visits[row.key]

    def repeats(self, row: Row) -> Visits:
        """The same of a baseline's trials beside itself."""
        if row.key not in self._repeats:
            trials = own.repeats if (own := self._measured(row)) else ()
            self._repeats[row.key] = self._unselected(self.visits_of(trials), trials)
        return self._repeats[row.key]

    def sides(self, row: Row, against: Row) -> tuple[Visits, Visits]:
        """Visits of both sides of a ratio; both empty if no block has both cells.

        A baseline that was measured twice in each batch has both trials on its side, except against itself.
        """
        is_repeat = row.key == against.key
        own = self.repeats(row) if is_repeat else self.visits(row)
        others = self.visits(against) if is_repeat else (*self.visits(against), *self.repeats(against))
        return ((), ()) if {v.block for v in own}.isdisjoint(v.block for v in others) else (own, others)

    def visits_of(self, trials: Iterable[Trial], amount: Amount = spent, *, is_per_operation: bool = True) -> Visits:
        """The chunks of those trials that ended well, at what each spent of something: on its operations, or itself."""
        made = []
        for trial, told, quiet in self._told_by(trials):
            costs = np.array(amount(trial, told.chunks), float)
            operations = told.operations if is_per_operation else np.ones(len(costs), int)
            made.append(Visit(trial.block, trial.batch, told.rounds, costs, operations, quiet, told.first))
        return tuple(made)

    def observing(self, trials: Iterable[Trial], metric: Metric, component: str = "") -> Visits:
        """The chunks of these trials at what was observed in them; of the whole, or of a component."""
        key = component, metric.name

        def observed(_: Trial, chunks: Chunks) -> Sequence[float]:
            return [value or 0.0 for value in chunks.observed.get(key, [None] * len(chunks))]

        seen = [trial for trial in trials if key in Chunks.of(trial.chunks).seen]
        return self.visits_of(seen, observed, is_per_operation=metric.is_per_operation)

    def one_a_trial(self, trials: Iterable[Trial], value: Callable[[Trial], float]) -> Visits:
        """One value of each trial. What was not seen is no value."""
        one = np.ones(1)
        return tuple(
            Visit(trial.block, trial.batch, np.zeros(1, int), np.array([of]), one, one > 0, one > 0)
            for trial in trials
            if (of := value(trial)) > 0
        )

    def blocks(self) -> tuple[int, ...]:
        """Every block in which some cell was measured, in order."""
        return tuple(sorted({visit.block for row in self.rows for visit in self.visits(row)}))

    def why_unmeasured(self, row: Row) -> str | None:
        """Why this cell has no cost, or None if it has one."""
        if row.outcome is not Outcome.OK:
            return row.reason or f"the cell's outcome was `{row.outcome}`"
        if not self.visits(row):
            return row.reason or "none of its trials was completed"
        if not any((visit.costs[visit.first] > 0).any() for visit in self.visits(row)):
            return "its clock saw no CPU time in any chunk"
        return None

    def is_even(self, rows: Sequence[Row]) -> bool:
        """Whether probes miss about as much of a neighbour in each of these cells, or in one as in a slice.

        If not, their quiet costs are not of the same moments.
        """
        if len({row.key for row in rows}) == 1 and len(rows) > 1:
            return True
        missed = [self.missed(row) for row in rows]
        if len(missed) == 1:
            missed.append(self.grain.missed_in_slice)
        return max(missed) - min(missed) <= _MOST_MISSED * self.terms.threshold

    def missed(self, row: Row) -> float:
        """Return how much of a neighbour the probes next to a cell's quiet chunks miss, as a share of its cost."""
        if row.key not in self._missed:
            own = self._measured(row)
            found = self._told_by(own.trials) if own else []
            lasts_ns = [told.wall_ns[quiet] for _, told, quiet in found] or [np.zeros(0)]
            operations = [told.operations[quiet] for _, told, quiet in found] or [np.zeros(0)]
            self._missed[row.key] = self.grain.missed_in(np.concatenate(lasts_ns), np.concatenate(operations))
        return self._missed[row.key]

    @cached_property
    def grain(self) -> Grain:
        """How much of a neighbour the probes at a chunk's ends miss, by how long it lasts."""
        trials = (trial for row in self.rows for trial in row.all_trials)
        return grain_of(trials, self._longest_quick_ns)

    def _unselected(self, visits: Visits, trials: Sequence[Trial]) -> Visits:
        """These trials' visits without quiet chunks, if those would be the cheap ones."""
        if not visits:
            return visits
        told = [self._told_of(trial) for trial in trials]
        begins, ends = (np.concatenate(some) for some in ([one.begins for one in told], [one.ends for one in told]))
        return unselected(visits, falls(begins, ends), _MOST_MISSED * self.terms.threshold)

    def _measured(self, row: Row) -> Row | None:
        """The study's own row of this cell, where it was measured."""
        own = self.by_key.get(row.key)
        return own if own is not None and own.outcome is Outcome.OK else None

    def _told_by(self, trials: Iterable[Trial]) -> list[tuple[Trial, _Told, np.ndarray]]:
        """A cell's trials with chunks that went well, what these tell, and which of them are quiet."""
        each = [(trial, told) for trial in trials if (told := self._told_of(trial)).chunks]
        whole = without_slices([(told.rounds, told.wall_ns) for _, told in each])
        return [(trial, told, told.quiet & ~without) for (trial, told), without in zip(each, whole, strict=True)]

    def _told_of(self, trial: Trial) -> _Told:
        """The chunks of a trial that went well, and what they tell whatever they spent."""
        found = self._told.get(id(trial))
        if found is None:
            chunks, longest_ns = Chunks.of(trial.chunks if trial.outcome is Outcome.OK else ()), self._longest_quick_ns
            if min(chunks.operations, default=1) < 1:
                chunks = Chunks.of([chunk for chunk in chunks if chunk.operations > 0])
            probes = probes_of(chunks)
            found = self._told[id(trial)] = _Told(
                chunks,
                np.array(chunks.operations, int),
                np.array(chunks.rounds, int),
                np.array(chunks.wall_ns, float),
                probes.first_ns <= longest_ns,
                probes.last_ns <= longest_ns,
                probes.slowest_ns <= longest_ns,
                ~np.array(chunks.made_up, bool),
            )
        return found


def settled(trials: Iterable[Trial]) -> list[LoadRecord]:
    """What load clients saw in throughput phases, from which alone rates, response times and what limited them are
    taken."""
    return [trial.load for trial in trials if trial.load is not None and trial.load.is_settled]
