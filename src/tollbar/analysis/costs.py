"""Costs: each cell's cost, and ratios and sums of costs, with intervals of one confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial

from tollbar.analysis.visits import Visited
from tollbar.core import intervals, stats
from tollbar.core.intervals import Interval, Moments
from tollbar.core.spread import Spread, shared
from tollbar.core.visits import Frame, Meeting, Pairs
from tollbar.results import Row

# A baseline of next to no work is known badly: with one of 0.4 ns [0.03, 6], 24 ms became 20 ms [1, 312].
MOST_OF_BASELINE = 1000.0


class Costs(Visited):
    """Cost of every cell of a study, computed once."""

    @cached_property
    def repeated(self) -> tuple[Row, ...]:
        """Cells with A/A pairs: the baselines, and one cell of each other kind of work."""
        return tuple(row for row in self.rows if row.repeats)

    @cached_property
    def _ratios(self) -> dict[tuple[Moments, str, str, float], Interval | None]:
        return {}

    @cached_property
    def _own_ratios(self) -> dict[tuple[Moments, str, str, float], Interval | None]:
        return {}

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], Pairs]:
        return {}

    @cached_property
    def _meetings(self) -> dict[tuple[Frame, Frame], Meeting]:
        return {}

    @cached_property
    def _costs(self) -> dict[Moments, Mapping[str, Interval | None]]:
        return {}

    @cached_property
    def _spreads(self) -> dict[Moments, Spread | None]:
        return {}

    @cached_property
    def _own_costs(self) -> dict[str, Interval | None]:
        return {}

    @cached_property
    def _best_costs(self) -> dict[str, Interval | None]:
        return {}

    @cached_property
    def _rounds(self) -> dict[str, float]:
        return {}

    def best_cost(self, row: Row) -> Interval | None:
        """Return nanoseconds per operation; None if not measured.

        If both are quiet, this is the baseline's cost times the ratio to it: two costs by themselves are of different
        moments, and cover less often (80 % instead of 94 % at 12 blocks). Otherwise it is the cell's own cost, as it is
        next to a baseline that does next to nothing.
        """
        if row.key not in self._best_costs:
            self._best_costs[row.key] = self._find_best_cost(row)
        return self._best_costs[row.key]

    def _find_best_cost(self, row: Row) -> Interval | None:
        against = self.by_key.get(row.against or "")
        own = self.own_cost(row)
        if own is None or against is None or against.key == row.key:
            return own
        base, ratio = self.own_cost(against), self.best_ratio(row, against)
        if base is None or ratio is None or base.is_noisy or ratio.is_noisy or ratio.estimate > MOST_OF_BASELINE:
            return own
        paired = intervals.product(base, ratio)
        return paired if paired.is_bounded or not own.is_bounded else own

    def own_cost(self, row: Row) -> Interval | None:
        """Return nanoseconds per operation by this cell's samples alone: quiet, or all if too few are quiet.

        None if nothing was measured.
        """
        if row.key not in self._own_costs:
            self._own_costs[row.key] = self._best((row,), self._cost, row)
        return self._own_costs[row.key]

    def all_samples(self, row: Row) -> Interval | None:
        """Return nanoseconds per operation over all samples; None if nothing was measured."""
        return self._cost(Moments.ALL, row)

    def best_ratio(self, row: Row, against: Row, confidence: float | None = None) -> Interval | None:
        """Return one cell's quiet cost over another's; for a baseline over itself, its repeat's cost over its own.

        None if no block has both. If the core was not quiet in enough blocks, or probes miss more of one side than of
        the other, it is the ratio of all samples, and marked as such.
        """
        return self._best((row, against), self._ratio, row, against, confidence or self.confidence)

    def expect(self, of: Iterable[tuple[Row, Row]]) -> None:
        """Find the ratios of these cells together, before they are compared: one by one takes five times as long."""
        pairs = [*of]
        for moments in Moments:
            new = [
                (row, other)
                for row, other in pairs
                if (moments, row.key, other.key, self.confidence) not in self._own_ratios
            ]
            self._find_own_ratios(moments, new, self.confidence)

    def crossing(self, at: Sequence[float], line: Sequence[Row], level: Row) -> Interval | None:
        """Return where the line through the costs of cells at the places `at` falls to the cost of `level`."""
        visits = [self.visits(row) for row in line]
        found = partial(stats.crossing, at, visits, self.visits(level), confidence=self.confidence)
        return self._best((*line, level), found)

    def added(self, rows: Sequence[Row], weights: Sequence[float], moments: Moments | None = None) -> Interval | None:
        """Return the sum of these cells' costs, each times its weight: nanoseconds per operation.

        Uses samples of these `moments`; without them the quiet ones, if there are enough. None if no block holds all
        cells.
        """
        of = [self.visits(row) for row in rows]
        found = partial(stats.added, of, weights, confidence=self.confidence)
        return self._best(rows, found) if moments is None else found(moments)

    def ratio_of_sums(self, rows: Sequence[Row], above: Sequence[float], below: Sequence[float]) -> Interval | None:
        """Return one weighted sum of these cells' costs over another.

        None as for `added`, or if a sum is not above zero.
        """
        of = [self.visits(row) for row in rows]
        found = partial(stats.ratio_of_sums, of, above, below, confidence=self.confidence)
        return self._best(rows, found)

    def _best(self, rows: Sequence[Row], of: Callable[..., Interval | None], *what: object) -> Interval | None:
        """Return the quiet result if the core of these cells was quiet in enough blocks, else the noisy one."""
        is_quiet = self.quickness.was_ever_quiet and self.is_even(rows)
        quiet = of(Moments.QUIET, *what) if is_quiet else None
        if quiet is not None and quiet.is_bounded:
            return quiet
        return intervals.best(quiet, of(Moments.ALL, *what))

    def _cost(self, moments: Moments, row: Row) -> Interval | None:
        if moments not in self._costs:
            # All at once: many together take a fifth of the time.
            sums = [self.visits(one).by_block(moments) for one in self.rows]
            found = stats.costs(sums, moments, confidence=self.confidence)
            self._costs[moments] = dict(zip((one.key for one in self.rows), found, strict=True))
        return self._costs[moments].get(row.key)

    def _ratio(self, moments: Moments, row: Row, against: Row, confidence: float) -> Interval | None:
        """Return the ratio with an interval by its own variance and the shared one.

        Neighbours' states that outlast a run disturb unlike work unequally, and blocks of one run do not show how that
        varies. So the wider interval counts for all samples, except for A/A pairs, whose sides suffer equally. It also
        counts for a ratio with few rounds in each block, which varies more than the others by design.
        """
        key = (moments, row.key, against.key, confidence)
        if key not in self._ratios:
            ratio, spread = self._own_ratio(moments, row, against, confidence), self._spread(moments)
            if ratio and spread:
                may_vary_more = moments is Moments.ALL or self._has_few_rounds(row, against)
                ratio = _moderated(ratio, row, against, spread, may_vary_more=may_vary_more)
            self._ratios[key] = ratio
        return self._ratios[key]

    def _has_few_rounds(self, row: Row, against: Row) -> bool:
        """Return whether another ratio of the study has at least twice as many quiet rounds in a trial.

        Slow operations take part in few rounds, and long chunks are seldom quiet.
        """
        return self._most_rounds >= 2 * min(self._quiet_rounds(row), self._quiet_rounds(against))

    @cached_property
    def _most_rounds(self) -> float:
        against = [(row, self.by_key.get(row.against or "", row)) for row in self.rows]
        return max((min(map(self._quiet_rounds, pair)) for pair in against), default=0.0)

    def _quiet_rounds(self, row: Row) -> float:
        """Return the mean number of quiet rounds of a cell's trials."""
        if row.key not in self._rounds:
            visits = self.visits(row)
            self._rounds[row.key] = float(visits.quiet_rounds[0].lengths.mean()) if visits else 0.0
        return self._rounds[row.key]

    def _own_ratio(self, moments: Moments, row: Row, against: Row, confidence: float) -> Interval | None:
        """Return the ratio with an interval by its own variance alone."""
        key = (moments, row.key, against.key, confidence)
        if key not in self._own_ratios:
            self._find_own_ratios(moments, [(row, against)], confidence)
        return self._own_ratios[key]

    def _find_own_ratios(self, moments: Moments, of: Sequence[tuple[Row, Row]], confidence: float) -> None:
        """Find the ratios of these cells, which takes a fifth of the time for many together."""
        told: dict[tuple[Moments, str, str, float], Pairs] = {}
        for row, against in of:
            key = (moments, row.key, against.key, confidence)
            is_told = moments is Moments.ALL or self.is_even((row, against))
            pairs = self._pairs_of(row, against) if is_told else None
            if pairs is not None:
                told[key] = pairs
            self._own_ratios[key] = None
        self._own_ratios.update(
            zip(told, stats.ratios_of([*told.values()], moments, confidence=confidence), strict=True)
        )

    def _pairs_of(self, row: Row, against: Row) -> Pairs | None:
        """Return the pairs of both sides' visits; None if no block has both cells."""
        key = row.key, against.key
        if key not in self._pairs:
            own, others = self.sides(row, against)
            frames = own.frame, others.frame
            if frames not in self._meetings:
                self._meetings[frames] = Meeting(*frames)
            self._pairs[key] = Pairs(own, others, self._meetings[frames])
        return self._pairs[key] if self._pairs[key].of else None

    def _spread(self, moments: Moments) -> Spread | None:
        """Return the variance that ratios to baselines and those of A/A pairs share in these moments."""
        if moments not in self._spreads:
            against = [(row, self.by_key.get(row.against or "")) for row in self.rows]
            pairs = [(row, other) for row, other in against if other is not None and other.key != row.key]
            pairs += [(row, row) for row in self.repeated]
            self._find_own_ratios(moments, pairs, self.confidence)
            made = [
                (self._own_ratio(moments, row, other, self.confidence), _by_design(row, other)) for row, other in pairs
            ]
            found = [(ratio, scale) for ratio, scale in made if ratio is not None]
            self._spreads[moments] = shared([ratio for ratio, _ in found], [scale for _, scale in found])
        return self._spreads[moments]


def _moderated(ratio: Interval, row: Row, against: Row, spread: Spread, *, may_vary_more: bool) -> Interval:
    """Return the ratio with the interval by the shared variance too, or its own if that counts and is wider."""
    moderated = spread.moderate(ratio, _by_design(row, against))
    is_own_wider = ratio.is_bounded and ratio.high / ratio.low > moderated.high / moderated.low
    return ratio if is_own_wider and may_vary_more and row.key != against.key else moderated


def _by_design(row: Row, against: Row) -> float:
    """Return the variance of a ratio's logarithm, in units of one trial's: a baseline measured twice adds a half."""
    return 1.5 if against.repeats and row.key != against.key else 2.0
