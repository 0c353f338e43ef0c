"""Visits: the chunks of each cell's trials, as the numbers that costs are made of."""

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
from tollbar.core.visits import Frame, Visits, column
from tollbar.results import Row

# Largest difference, in units of `threshold`, between the shares that probes miss in two cells of a ratio. No interval
# includes this bias; a fifth of the threshold moves no verdict by itself. Also the limit for selection bias.
_MOST_MISSED = 0.2


@dataclass(frozen=True, slots=True)
class Told:
    """Successful chunks of a cell's trials, with the properties that do not depend on the amount measured."""

    trials: Sequence[tuple[Trial, Chunks]]
    """Trials that have successful chunks."""
    frame: Frame
    operations: np.ndarray
    wall_ns: np.ndarray
    begins: np.ndarray
    """True if the probe before the chunk was quick."""
    ends: np.ndarray
    """True if the probe after the chunk was quick."""
    quiet: np.ndarray
    """True if all probes of the chunk were quick, and no other program used the core."""
    first: np.ndarray
    """True if the chunk was its round's first try."""

    def each(self, amount: Callable[[Trial, Chunks], Iterable[float]]) -> np.ndarray:
        """Return the amount of something that each chunk spent, given by trial."""
        return column((amount(trial, chunks) for trial, chunks in self.trials), float)


Amount = Callable[[Told], np.ndarray]
"""Function that returns the amount of something that each chunk spent."""


def spent(told: Told) -> np.ndarray:
    """Return the study's cost of each chunk, in nanoseconds."""
    return told.each(lambda trial, chunks: chunks.paid(trial.paid_by))


def elapsed(told: Told) -> np.ndarray:
    """Return the elapsed nanoseconds of each chunk."""
    return told.wall_ns


class Visited:
    """Visits to every cell of a study, made once each, with their quiet chunks."""

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
        """Metrics that runners may observe in their chunks: the general ones, and the family's own."""
        self.by_key: Mapping[str, Row] = {row.key: row for row in rows}
        self.terms = terms
        self.confidence = terms.confidence
        self.quickness = quickness or quickness_of(readings(rows))
        self._longest_quick_ns = self.quickness.longest_quick_ns
        # Keyed by the trials' identities: rows keep their trials.
        self._told: dict[tuple[int, ...], Told] = {}
        self._frames: dict[tuple[tuple[tuple[int, int], ...], bytes, bytes], Frame] = {}
        self._visits: dict[str, Visits] = {}
        self._repeats: dict[str, Visits] = {}
        self._both: dict[str, Visits] = {}
        self._missed: dict[str, float] = {}
        self.varying: set[str] = set()
        """Keys of the rows requested until now whose chunks vary by themselves: no quiet chunk of them is selected."""

    def visits(self, row: Row) -> Visits:
        """Return the chunks of a cell's successful trials."""
        if row.key not in self._visits:
            trials = own.trials if (own := self._measured(row)) else ()
            found = self.visits_of(trials)
            self._visits[row.key] = self._unselected(found, trials)
            if self._visits[row.key] is not found:
                self.varying.add(row.key)
        return self._visits[row.key]

    def repeats(self, row: Row) -> Visits:
        """Return the chunks of a baseline's repeat trials."""
        if row.key not in self._repeats:
            trials = own.repeats if (own := self._measured(row)) else ()
            self._repeats[row.key] = self._unselected(self.visits_of(trials), trials)
        return self._repeats[row.key]

    def sides(self, row: Row, against: Row) -> tuple[Visits, Visits]:
        """Return the visits of both sides of a ratio; both empty if no block has both cells.

        A baseline that was measured twice in each batch has both trials on its side, except against itself.
        """
        is_repeat = row.key == against.key
        own = self.repeats(row) if is_repeat else self.visits(row)
        others = self.visits(against) if is_repeat else self._with_repeats(against)
        return (Visits.of(()), Visits.of(())) if own.blocks.isdisjoint(others.blocks) else (own, others)

    def _with_repeats(self, row: Row) -> Visits:
        if row.key not in self._both:
            own, repeats = self.visits(row), self.repeats(row)
            self._both[row.key] = Visits.of([*own, *repeats]) if repeats else own
        return self._both[row.key]

    def visits_of(self, trials: Iterable[Trial], amount: Amount = spent, *, is_per_operation: bool = True) -> Visits:
        """Return the chunks of the successful trials with the amount that each spent, per operation or as a whole."""
        told = self._told_of(trials)
        costs = amount(told)
        operations = told.operations if is_per_operation else np.ones(len(costs), int)
        return Visits(told.frame, costs, operations, told.quiet, told.first)

    def observing(self, trials: Iterable[Trial], metric: Metric, component: str = "") -> Visits:
        """Return the chunks of these trials with the values observed in them, of the whole or of a component."""
        key = component, metric.name

        def observed(told: Told) -> np.ndarray:
            return told.each(
                lambda _, chunks: [value or 0.0 for value in chunks.observed.get(key, [None] * len(chunks))]
            )

        seen = [trial for trial in trials if key in Chunks.of(trial.chunks).seen]
        return self.visits_of(seen, observed, is_per_operation=metric.is_per_operation)

    def one_a_trial(self, trials: Iterable[Trial], value: Callable[[Trial], float]) -> Visits:
        """Return one value of each trial; a trial in which it was not observed is skipped."""
        found = [((trial.block, trial.batch), of) for trial in trials if (of := value(trial)) > 0]
        ones = np.ones(len(found))
        frame = Frame([place for place, _ in found], ones.astype(int), np.zeros(len(found), int))
        return Visits(frame, np.array([of for _, of in found], float), ones, ones > 0, ones > 0)

    def blocks(self) -> tuple[int, ...]:
        """Return every block in which some cell was measured, in order."""
        return tuple(sorted(set[int]().union(*(self.visits(row).blocks for row in self.rows))))

    def why_unmeasured(self, row: Row) -> str | None:
        """Return why this cell has no cost, or None if it has one."""
        if row.outcome is not Outcome.OK:
            return row.reason or f"the cell's outcome was `{row.outcome}`"
        if not self.visits(row):
            return row.reason or "none of its trials was completed"
        if not self.visits(row).has_costs:
            return "it used no measurable CPU time in any chunk"
        return None

    def is_even(self, rows: Sequence[Row]) -> bool:
        """Return whether probes miss about the same share of a neighbour in these cells, or in one cell and a slice.

        If not, their quiet costs are not of the same moments.
        """
        if len({row.key for row in rows}) == 1 and len(rows) > 1:
            return True
        missed = [self.missed(row) for row in rows]
        if len(missed) == 1:
            missed.append(self.grain.missed_in_slice)
        return max(missed) - min(missed) <= _MOST_MISSED * self.terms.threshold

    def missed(self, row: Row) -> float:
        """Return the neighbour's part, as a share of the cell's cost, that the probes next to its quiet chunks miss."""
        if row.key not in self._missed:
            own = self._measured(row)
            told = self._told_of(own.trials if own else ())
            self._missed[row.key] = self.grain.missed_in(told.wall_ns[told.quiet], told.operations[told.quiet])
        return self._missed[row.key]

    @cached_property
    def grain(self) -> Grain:
        """Share of a neighbour that the probes at a chunk's ends miss, by the chunk's duration."""
        trials = (trial for row in self.rows for trial in row.all_trials)
        return grain_of(trials, self._longest_quick_ns)

    def _unselected(self, visits: Visits, trials: Sequence[Trial]) -> Visits:
        """Return these trials' visits, without quiet chunks if those would be the cheap ones."""
        if not visits:
            return visits
        told = self._told_of(trials)
        return unselected(visits, falls(told.begins, told.ends), _MOST_MISSED * self.terms.threshold)

    def _measured(self, row: Row) -> Row | None:
        """Return the study's own row of this cell, if it was measured."""
        own = self.by_key.get(row.key)
        return own if own is not None and own.outcome is Outcome.OK else None

    def _told_of(self, trials: Iterable[Trial]) -> Told:
        """Return the successful chunks of a cell's trials, made once for the same trials."""
        each = [*trials]
        key = tuple(map(id, each))
        if not self._told:
            # All at once: each cell alone would take twice as long.
            self._tell([one for row in self.rows for one in (row.trials, row.repeats)])
        if key not in self._told:
            self._tell([each])
        return self._told[key]

    def _tell(self, cells: Sequence[Sequence[Trial]]) -> None:
        """Tell the successful chunks of the trials of each of these cells."""
        successful = [[(trial, chunks) for trial in each if (chunks := _successful(trial))] for each in cells]
        every = [chunks for trials in successful for _, chunks in trials]
        rounds = column((chunks.rounds for chunks in every), int)
        operations = column((chunks.operations for chunks in every), int)
        wall_ns = column((chunks.wall_ns for chunks in every), float)
        first = ~column((chunks.made_up for chunks in every), bool)
        probes, longest_ns = probes_of(every), self._longest_quick_ns
        begins, ends, quiet = (ns <= longest_ns for ns in (probes.first_ns, probes.last_ns, probes.slowest_ns))
        end = 0
        for each, trials in zip(cells, successful, strict=True):
            lengths = np.array([len(chunks) for _, chunks in trials], int)
            part = slice(end, end := end + int(lengths.sum()))
            frame = self._frame([(trial.block, trial.batch) for trial, _ in trials], lengths, rounds[part])
            self._told[tuple(map(id, each))] = Told(
                trials,
                frame,
                operations[part],
                wall_ns[part],
                begins[part],
                ends[part],
                quiet[part] & ~without_slices(frame.slices, wall_ns[part]),
                first[part],
            )

    def _frame(self, places: Sequence[tuple[int, int]], lengths: np.ndarray, rounds: np.ndarray) -> Frame:
        """Return the frame of these visits, one for all cells of the same batches, so that its parts are made once."""
        key = tuple(places), lengths.tobytes(), rounds.tobytes()
        return self._frames.setdefault(key, Frame(places, lengths, rounds))


def _successful(trial: Trial) -> Chunks:
    """Return the chunks of a trial in which it performed operations."""
    chunks = Chunks.of(trial.chunks if trial.outcome is Outcome.OK else ())
    if min(chunks.operations, default=1) < 1:
        return Chunks.of([chunk for chunk in chunks if chunk.operations > 0])
    return chunks


def settled(trials: Iterable[Trial]) -> list[LoadRecord]:
    """Return the load records of throughput phases, the only source of rates, response times and their limits."""
    return [trial.load for trial in trials if trial.load is not None and trial.load.is_settled]
