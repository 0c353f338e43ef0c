"""Each cell's cost, block by block: the one place where trials become numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tollbar.measure import Outcome, Trial
from tollbar.results import Row

ByBlock = Mapping[int, float]
"""A number for each block that has one."""


def cost(trial: Trial) -> float:
    """CPU nanoseconds per operation: the mean over the whole trial.

    Not the median of its batches, which would leave out what comes now and then but is paid all the same
    (a collector, a rehash, a refilled pool). A disturbed trial is met by the ranks over blocks instead.
    """
    return trial.cost_ns


class Ledger:
    """What every cell of a study cost in each of its blocks, worked out once."""

    def __init__(self, rows: Sequence[Row], metric: str = "cpu") -> None:
        self.rows = rows
        self.metric = metric
        self.by_key: Mapping[str, Row] = {row.key: row for row in rows}
        self._first = {row.key: _by_block(row.trials) for row in rows if row.outcome is Outcome.OK}
        self._twin = {row.key: _by_block(row.twins) for row in rows if row.outcome is Outcome.OK}
        self._first_logs = {key: _logs(costs) for key, costs in self._first.items()}
        self._twin_logs = {key: _logs(costs) for key, costs in self._twin.items()}

    def costs(self, row: Row) -> ByBlock:
        """Nanoseconds per operation in each block where the cell's trial ended well."""
        return self._first.get(row.key, {})

    def twin_costs(self, row: Row) -> ByBlock:
        """The same for a baseline's second trials."""
        return self._twin.get(row.key, {})

    def logs(self, row: Row) -> ByBlock:
        """Natural logarithms of `costs`."""
        return self._first_logs.get(row.key, {})

    def log_ratios(self, row: Row, against: Row) -> ByBlock:
        """Logarithms of one cell's cost over another's, in each block that has both.

        Of a baseline only the first visit counts, though there are two. Their mean would make intervals
        a tenth narrower where noise is symmetric; but then the two sides no longer have one distribution,
        and with a few slow trials the interval misses on one side up to three times as often as it says.
        """
        if row.key == against.key:
            return less(self._twin_logs.get(row.key, {}), self.logs(row))
        return less(self.logs(row), self.logs(against))

    def blocks(self) -> tuple[int, ...]:
        """Every block in which some cell was measured, in order."""
        return tuple(sorted(set().union(*self._first.values())))

    def why_nothing(self, row: Row) -> str | None:
        """Why this cell has no cost, or None if it has one."""
        if row.outcome is not Outcome.OK:
            return row.reason or f"the cell's outcome was `{row.outcome}`"
        if not self._first[row.key]:
            return row.reason or "none of its trials was completed"
        return None


def less(values: ByBlock, others: ByBlock) -> ByBlock:
    """The differences, in each block that has both."""
    return {block: value - others[block] for block, value in values.items() if block in others}


def mean_by_block(series: Sequence[ByBlock]) -> ByBlock:
    """The mean over several series, in the blocks that all of them have.

    A block that lacks one of them would hold the mean of something else. Only where no block has them all
    is that taken, since nothing at all would be worse.
    """
    if len(series) == 1:
        return series[0]
    blocks = set(series[0]).intersection(*series[1:])
    if not blocks:
        return {block: _mean([s[block] for s in series if block in s]) for block in set().union(*series)}
    return {block: _mean([s[block] for s in series]) for block in blocks}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _by_block(trials: Iterable[Trial]) -> ByBlock:
    # A trial too short for the clock to see has no cost that a ratio could be made of.
    return {t.block: cost(t) for t in trials if t.outcome is Outcome.OK and t.operations > 0 and t.cpu_ns > 0}


def _logs(costs: ByBlock) -> ByBlock:
    return {block: math.log(value) for block, value in costs.items()}
