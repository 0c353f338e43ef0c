"""Each cell's cost, from the chunks of its trials: the one place where trials become numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tollbar import stats
from tollbar.families import Family
from tollbar.judge.decisions import Terms
from tollbar.metrics import BACKGROUND, Metric
from tollbar.moments import Quickness, quickness_of
from tollbar.records import Chunk, Outcome, Trial
from tollbar.results import Row
from tollbar.stats import Interval, Moments, Visit

Visits = tuple[Visit, ...]
Amount = Callable[[Trial, Chunk], float]
"""What a chunk spent altogether of something."""


def spent(trial: Trial, chunk: Chunk) -> float:
    """Of the study's cost, in nanoseconds."""
    return sum(chunk.cpu_ns.get(name, 0) for name in trial.paid_by)


class Ledger:
    """What every cell of a study cost, worked out once, with intervals of one confidence."""

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
        self.observed_metrics = (BACKGROUND, *(family.metrics.values() if family else ()))
        """What runners may observe in their chunks: any, and the family's own."""
        self.by_key: Mapping[str, Row] = {row.key: row for row in rows}
        self.twinned = tuple(row for row in rows if row.twins)
        """Those that were measured beside themselves: the baselines, and one cell of each other kind of work."""
        self.confidence = terms.confidence
        self.quickness = quickness or quickness_of(readings(rows))
        measured = [row for row in rows if row.outcome is Outcome.OK]
        self._visits = {row.key: self.visits_of(row.trials) for row in measured}
        self._twins = {row.key: self.visits_of(row.twins) for row in measured if row.twins}
        self._ratios: dict[tuple[Moments, str, str, float], Interval | None] = {}
        self._costs: dict[tuple[Moments, str], Interval | None] = {}

    def visits(self, row: Row) -> Visits:
        """The chunks of a cell's trials that ended well."""
        return self._visits.get(row.key, ())

    def twins(self, row: Row) -> Visits:
        """The same of a baseline's trials beside itself."""
        return self._twins.get(row.key, ())

    def undisturbed(self, row: Row) -> Interval | None:
        """Nanoseconds per operation while the core is left alone, as far as it was; None where nothing was measured."""
        return self._best(self._cost, row)

    def typical(self, row: Row) -> Interval | None:
        """Nanoseconds per operation as disturbed; None where nothing was measured."""
        return self._cost(Moments.AS_DISTURBED, row)

    def undisturbed_ratio(self, row: Row, against: Row, confidence: float | None = None) -> Interval | None:
        """One cell's undisturbed cost over another's; a baseline's over itself is its twin's over its own.

        None where no block has both. Where the core was not left alone in blocks enough it is the ratio as disturbed,
        and says so.
        """
        return self._best(self._ratio, row, against, confidence or self.confidence)

    def quiet_blocks(self, row: Row, against: Row) -> int:
        """How many blocks have undisturbed rounds of both."""
        found = self._ratio(Moments.UNDISTURBED, row, against, self.confidence)
        return found.n if found else 0

    def typical_ratio(self, row: Row, against: Row) -> Interval | None:
        """The same as disturbed."""
        return self._ratio(Moments.AS_DISTURBED, row, against, self.confidence)

    def observed(self, row: Row, metric: Metric) -> Interval | None:
        """What its runners observed of a metric, on average; None where they did not."""
        return stats.cost(self.observing(row.trials, metric), Moments.AS_DISTURBED, confidence=self.confidence)

    def observing(self, trials: Iterable[Trial], metric: Metric, component: str = "") -> Visits:
        """The chunks of these trials at what was observed in them; of the whole, or of a component."""
        key = component, metric.name
        return self.visits_of(
            [trial for trial in trials if any(key in chunk.observed for chunk in trial.chunks)],
            lambda _, chunk: chunk.observed.get(key, 0.0),
            is_per_operation=metric.is_per_operation,
        )

    def sides(self, row: Row, against: Row) -> tuple[Visits, Visits]:
        """The visits that a ratio of these two is made of: none where no block has both."""
        own = self.twins(row) if row.key == against.key else self.visits(row)
        others = self.visits(against)
        return ((), ()) if {v.block for v in own}.isdisjoint(v.block for v in others) else (own, others)

    def visits_of(self, trials: Iterable[Trial], amount: Amount = spent, *, is_per_operation: bool = True) -> Visits:
        """The chunks of those trials that ended well, at what each spent of something: on its operations, or itself."""
        made = []
        for trial in trials:
            chunks = [chunk for chunk in trial.chunks if chunk.operations > 0]
            if trial.outcome is not Outcome.OK or not chunks:
                continue
            made.append(
                Visit(
                    trial.block,
                    trial.heat,
                    rounds=np.array([chunk.round for chunk in chunks]),
                    costs=np.array([amount(trial, chunk) for chunk in chunks], float),
                    operations=np.array([chunk.operations if is_per_operation else 1 for chunk in chunks]),
                    quiet=np.array([self._is_quiet(chunk) for chunk in chunks]),
                    first=np.array([not chunk.is_made_up for chunk in chunks]),
                )
            )
        return tuple(made)

    def one_a_trial(self, trials: Iterable[Trial], value: Callable[[Trial], float]) -> Visits:
        """One value of each trial. What was not seen is no value."""
        one = np.ones(1)
        return tuple(
            Visit(trial.block, trial.heat, np.zeros(1, int), np.array([of]), one, one > 0, one > 0)
            for trial in trials
            if (of := value(trial)) > 0
        )

    def blocks(self) -> tuple[int, ...]:
        """Every block in which some cell was measured, in order."""
        return tuple(sorted({visit.block for visits in self._visits.values() for visit in visits}))

    def why_unmeasured(self, row: Row) -> str | None:
        """Why this cell has no cost, or None if it has one."""
        if row.outcome is not Outcome.OK:
            return row.reason or f"the cell's outcome was `{row.outcome}`"
        if not self.visits(row):
            return row.reason or "none of its trials was completed"
        if self.typical(row) is None:
            return "its clock saw no CPU time in any chunk"
        return None

    def _is_quiet(self, chunk: Chunk) -> bool:
        return chunk.probes_ns is not None and all(self.quickness.is_quick(probe_ns) for probe_ns in chunk.probes_ns)

    def _best(self, of: Callable[..., Interval | None], *what: object) -> Interval | None:
        """Undisturbed, where the core was left alone in blocks enough; else as disturbed."""
        disturbed = of(Moments.AS_DISTURBED, *what)
        if not self.quickness.was_ever_quiet:
            return disturbed
        return stats.best(of(Moments.UNDISTURBED, *what), disturbed)

    def _cost(self, moments: Moments, row: Row) -> Interval | None:
        key = (moments, row.key)
        if key not in self._costs:
            self._costs[key] = stats.cost(self.visits(row), moments, confidence=self.confidence)
        return self._costs[key]

    def _ratio(self, moments: Moments, row: Row, against: Row, confidence: float) -> Interval | None:
        key = (moments, row.key, against.key, confidence)
        if key not in self._ratios:
            own, others = self.sides(row, against)
            self._ratios[key] = stats.ratio(own, others, moments, confidence=confidence) if own else None
        return self._ratios[key]


def readings(rows: Iterable[Row], *, unselected: bool = False) -> list[float]:
    """Nanoseconds of the probes beside these rows' chunks; or of those alone for which no moment was waited for."""
    return [
        probe_ns
        for row in rows
        for trial in row.all_trials
        for chunk in trial.chunks
        if chunk.probes_ns and not (unselected and chunk.is_made_up)
        # Those within a long chunk are its slowest, which say less of all moments.
        for probe_ns in (chunk.probes_ns[0], chunk.probes_ns[-1])
    ]
