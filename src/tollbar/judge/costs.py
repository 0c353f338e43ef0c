"""Each cell's cost, from the chunks of its trials: the one place where trials become numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tollbar import stats
from tollbar.families import Family
from tollbar.judge.decisions import Terms
from tollbar.judge.moments import with_moments
from tollbar.measure import Outcome, Trial
from tollbar.measure.trial import Chunk
from tollbar.metrics import BACKGROUND, Metric
from tollbar.results import Row
from tollbar.stats import Interval, Visit

Visits = tuple[Visit, ...]
Value = Callable[[Trial, Chunk], float]
"""Something per operation that a trial's chunk says."""


class Ledger:
    """What every cell of a study cost, worked out once, with intervals of one confidence."""

    def __init__(self, rows: Sequence[Row], terms: Terms, metric: str = "cpu", family: Family | None = None) -> None:
        self.rows = rows
        self.metric = metric
        self.observed_metrics = (BACKGROUND, *(family.metrics.values() if family else ()))
        """What runners may observe in their chunks: any, and the family's own."""
        self.by_key: Mapping[str, Row] = {row.key: row for row in rows}
        keys = dict.fromkeys(row.against for row in rows)
        self.baselines = tuple(self.by_key[key] for key in keys if key in self.by_key)
        self.confidence = terms.confidence
        measured = [row for row in rows if row.outcome is Outcome.OK]
        self.varying = frozenset(row.key for row in measured if family is not None and _varies(row, family))
        self._visits, self._twins = with_moments(
            {row.key: self.visits_of(row, row.trials) for row in measured},
            {row.key: self.visits_of(row, row.twins) for row in measured if row.twins},
        )
        self._ratios: dict[tuple[object, str, str], Interval | None] = {}
        self._costs: dict[tuple[object, str], Interval | None] = {}

    def visits(self, row: Row) -> Visits:
        """The chunks of a cell's trials that ended well."""
        return self._visits.get(row.key, ())

    def twins(self, row: Row) -> Visits:
        """The same of a baseline's trials beside itself."""
        return self._twins.get(row.key, ())

    def undisturbed(self, row: Row) -> Interval | None:
        """Nanoseconds per operation while the core is left alone; None where nothing was measured."""
        return self._cost(stats.undisturbed, row)

    def typical(self, row: Row) -> Interval | None:
        """Nanoseconds per operation as disturbed; None where nothing was measured."""
        return self._cost(stats.typical, row)

    def undisturbed_ratio(self, row: Row, against: Row) -> Interval | None:
        """One cell's undisturbed cost over another's; a baseline's over itself is its twin's over its own.

        None where no block has both.
        """
        # A baseline beside itself is the same work twice.
        return self._ratio(stats.undisturbed_ratio, row, against, is_same_work=row.key == against.key)

    def typical_ratio(self, row: Row, against: Row) -> Interval | None:
        """The same as disturbed."""
        return self._ratio(stats.typical_ratio, row, against)

    def observed(self, row: Row, metric: Metric) -> Interval | None:
        """What its runners observed of a metric, on average; None where they did not."""
        visits = self.observing(row, metric)
        return stats.typical(visits, confidence=self.confidence) if visits else None

    def observed_ratio(self, row: Row, against: Row, metric: Metric) -> Interval | None:
        """What was observed of one cell over that of another; None where one of them has nothing."""
        own, others = self.observing(row, metric), self.observing(against, metric)
        return stats.typical_ratio(own, others, confidence=self.confidence) if own and others else None

    def observing(self, row: Row, metric: Metric, component: str = "") -> Visits:
        """The chunks of a cell's trials at what was observed in them; of the whole, or of a component."""
        return self.visits_of(row, row.trials, _observed(component, metric))

    def sides(self, row: Row, against: Row) -> tuple[Visits, Visits]:
        """The visits that a ratio of these two is made of: none where no block has both."""
        own = self.twins(row) if row.key == against.key else self.visits(row)
        others = self.visits(against)
        return ((), ()) if {v.block for v in own}.isdisjoint(v.block for v in others) else (own, others)

    def visits_of(self, row: Row, trials: Iterable[Trial], value: Value = Trial.cost_of) -> Visits:
        """The chunks of those of a cell's trials that ended well, at what `value` makes of them.

        A chunk without an operation, or too short for the clock to see, has no cost that a ratio could be made of.
        """
        varies = row.key in self.varying
        made = []
        for trial in trials:
            if trial.outcome is not Outcome.OK:
                continue
            values = [(chunk.round, value(trial, chunk)) for chunk in trial.chunks if chunk.operations > 0]
            seen = [(number, each) for number, each in values if each > 0]
            if seen:
                rounds, costs = zip(*seen, strict=True)
                made.append(Visit(trial.block, trial.heat, np.array(rounds), np.log(costs), varies))
        return tuple(made)

    def blocks(self) -> tuple[int, ...]:
        """Every block in which some cell was measured, in order."""
        return tuple(sorted({visit.block for visits in self._visits.values() for visit in visits}))

    def why_unmeasured(self, row: Row) -> str | None:
        """Why this cell has no cost, or None if it has one."""
        if row.outcome is not Outcome.OK:
            return row.reason or f"the cell's outcome was `{row.outcome}`"
        if not self.visits(row):
            return row.reason or "none of its trials was completed"
        return None

    def _cost(self, of: Callable[..., Interval], row: Row) -> Interval | None:
        key = (of, row.key)
        if key not in self._costs:
            visits = self.visits(row)
            self._costs[key] = of(visits, confidence=self.confidence) if visits else None
        return self._costs[key]

    def _ratio(self, of: Callable[..., Interval], row: Row, against: Row, **how: bool) -> Interval | None:
        key = (of, row.key, against.key)
        if key not in self._ratios:
            own, others = self.sides(row, against)
            self._ratios[key] = of(own, others, confidence=self.confidence, **how) if own else None
        return self._ratios[key]


def _observed(component: str, metric: Metric) -> Value:
    def value(trial: Trial, chunk: Chunk) -> float:
        if metric.is_rare:
            return sum(each.observed.get((component, metric.name), 0.0) for each in trial.chunks) / trial.operations
        seen = chunk.observed.get((component, metric.name), 0.0)
        return seen / chunk.operations if metric.is_per_operation else seen

    return value


def _varies(row: Row, family: Family) -> bool:
    choice = family.choices.get(row.choice)
    return choice is not None and row.coordinates.get("op") in choice.varies
