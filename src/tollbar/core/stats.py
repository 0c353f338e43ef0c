"""Statistics: one estimator of costs and ratios, over moments that are selected independently of the cost.

The cost of an operation is the mean over operations, Σ cost / Σ operations: work done on behalf of some operations,
such as collection, growth or rejection, is part of the cost of all, and a chunk that was ended by time counts by its
operations. A ratio is the ratio of two such means over the same rounds, in which both sides were measured milliseconds
apart.

A process keeps its luck (memory layout) for life, so the block of fresh processes is the unit: intervals come from
leaving one block out (the jackknife), with Student's distribution.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property

from tollbar.core.arrays import grouped, np

# The customary level; a reader who wants another one has the raw chunks.
CONFIDENCE = 0.95
# With three blocks there are two degrees of freedom, and nearly every interval is as wide as the ratio itself.
FEWEST_BLOCKS = 4


class Moments(StrEnum):
    """Selection of the rounds that a number is made of."""

    QUIET = "quiet"
    """Rounds between quiet probes, including made-up ones."""
    ALL = "noisy"
    """The first try of every round, without selection, for a core that was seldom quiet."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimate, and the interval that covers the truth with the given confidence."""

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    """Number of blocks; in a ratio, of the side with fewer."""
    moments: Moments = Moments.QUIET
    freedom: float = math.inf
    """Degrees of freedom of the Student's distribution in use."""

    @property
    def is_noisy(self) -> bool:
        """True if it is made of all samples, because too few were quiet."""
        return self.moments is Moments.ALL

    @property
    def is_bounded(self) -> bool:
        """True if the interval has an upper end: fewer than `FEWEST_BLOCKS` blocks give none."""
        return math.isfinite(self.high)

    @property
    def half_width(self) -> float:
        """Half of the interval on the logarithm, as a share: 0.02 for ± 2 %."""
        return math.sqrt(self.high / self.low) - 1 if self.is_bounded and self.low > 0 else math.inf

    @property
    def inverse(self) -> Interval:
        """The ratio of the same comparison in the other direction."""
        low = 1 / self.high if self.is_bounded else 0.0
        high = 1 / self.low if self.low > 0 else math.inf
        return replace(self, estimate=1 / self.estimate, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Visit:
    """Chunks of one trial, a fresh process. All arrays have one entry for each chunk."""

    block: int
    batch: int
    rounds: np.ndarray
    """Round of each chunk, ascending, the same for all of its slices.

    Chunks of one block, batch and round were measured milliseconds apart.
    """
    costs: np.ndarray
    """Total cost of a chunk's operations, in nanoseconds (or another additive amount)."""
    operations: np.ndarray
    quiet: np.ndarray
    """True if the probes before and after it found the core quiet."""
    first: np.ndarray
    """True if it was its round's first try, so that nothing selected it."""
    _amounts: dict[Moments, np.ndarray] = field(init=False, repr=False, compare=False, default_factory=dict)
    _sums: dict[Moments, np.ndarray] = field(init=False, repr=False, compare=False, default_factory=dict)

    def amounts(self, moments: Moments) -> np.ndarray:
        """Return for each chunk the amount spent, the number of operations, and its weight in its block.

        A quiet chunk weighs as many as its operations, because a slice has a tenth of a chunk's. With all samples, each
        round counts as one operation at its mean cost, shared by the slices of a chunk. A chunk that ends by time has
        more operations in quick moments, and one long operation has not, so weights by operations would differ between
        the sides of a ratio. In addition, chunks that others disturbed have no slices.
        """
        if moments not in self._amounts:
            table = np.ones((len(self.costs), 3))
            if moments is Moments.QUIET:
                table[:, 0], table[:, 1], table[:, 2] = self.costs, self.operations, self.operations
            else:
                table[:, 0] = self.costs / self.operations
                if not self.is_whole:
                    _, round_of, chunks = grouped(self.rounds)
                    table /= chunks[round_of][:, np.newaxis]
            self._amounts[moments] = table
        return self._amounts[moments]

    def sums(self, moments: Moments, only: np.ndarray | None = None) -> np.ndarray:
        """Return the amount spent, the number of operations, and their weight, over the selected chunks.

        With `only`, over these chunks instead. Sums of selected chunks are cached, because each cell of a baseline uses
        them.
        """
        selected = self.selected(moments)
        if only is not None and np.count_nonzero(only) != np.count_nonzero(selected):
            found: np.ndarray = only @ self.amounts(moments)
            return found
        if moments not in self._sums:
            self._sums[moments] = selected @ self.amounts(moments)
        return self._sums[moments]

    @property
    def is_whole(self) -> bool:
        """True if it has one chunk in each round, without slices."""
        return bool((self.rounds[1:] > self.rounds[:-1]).all())

    @property
    def quiet_by_round(self) -> tuple[np.ndarray, np.ndarray]:
        """Rounds with a quiet chunk, and the logarithm of an operation's cost in each."""
        counted = self.quiet & (self.costs > 0)
        rounds, at, _ = grouped(self.rounds[counted])
        spent, operations = (np.bincount(at, some[counted], len(rounds)) for some in (self.costs, self.operations))
        return rounds, np.log(spent / operations)

    def selected(self, moments: Moments) -> np.ndarray:
        """Return which of its chunks count."""
        return self.quiet if moments is Moments.QUIET else self.first


Sums = dict[int, np.ndarray]
"""Sums by block: the amount spent, the number of operations, and their weight."""


class Visits(tuple[Visit, ...]):
    """Visits to one cell, with what each of its costs and ratios needs of them, made once."""

    @classmethod
    def of(cls, visits: Iterable[Visit]) -> Visits:
        """Return the visits; those of this class are returned unchanged."""
        return visits if isinstance(visits, cls) else cls(visits)

    @cached_property
    def blocks(self) -> frozenset[int]:
        """Blocks of the visits."""
        return frozenset(visit.block for visit in self)

    @cached_property
    def by_batch(self) -> Mapping[tuple[int, int], Sequence[Visit]]:
        """Visits by block and batch: two of a baseline that was measured twice there."""
        found = defaultdict(list)
        for visit in self:
            found[visit.block, visit.batch].append(visit)
        return found

    @cached_property
    def quiet_by_batch(self) -> Mapping[tuple[int, int], Sequence[tuple[np.ndarray, np.ndarray]]]:
        """Quiet rounds and logarithms of each visit, by block and batch: a baseline's are compared with many others."""
        return {batch: [visit.quiet_by_round for visit in visits] for batch, visits in self.by_batch.items()}

    @cached_property
    def _by_block(self) -> dict[Moments, Sums]:
        return {}

    def by_block(self, moments: Moments) -> Sums:
        """Return the sums of each block over the chunks of these moments; they must not be changed."""
        if moments not in self._by_block:
            sums: Sums = {}
            for visit in self:
                _add(sums, visit.block, visit.sums(moments))
            self._by_block[moments] = sums
        return self._by_block[moments]


def cost(of: Sequence[Visit], moments: Moments, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the mean cost of an operation in these moments; None if there were none, or if nothing was spent.

    Its interval allows for drift: costs of neighbouring blocks are correlated, because the machine's state outlasts a
    block.
    """
    return _interval([Visits.of(of).by_block(moments)], moments, confidence, drifts=True)


def ratio(
    of: Sequence[Visit], over: Sequence[Visit], moments: Moments, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the first mean cost over the second; None if one of them has none in these moments.

    Paired within rounds, if the two met in at least half of the blocks of the side with fewer blocks, and in
    `FEWEST_BLOCKS` if that side has as many. Otherwise all rounds of each are compared, and each block is left out of
    both sides at once.
    """
    sides = Visits.of(of), Visits.of(over)
    apart = [side.by_block(moments) for side in sides]
    paired = _paired(*sides, moments)
    blocks_of_lesser = min(len(side) for side in apart)
    enough = 2 * len(paired[0]) >= blocks_of_lesser and len(paired[0]) >= min(FEWEST_BLOCKS, blocks_of_lesser)
    return _interval(paired if enough else apart, moments, confidence)


def added(
    of: Sequence[Sequence[Visit]], weights: Sequence[float], moments: Moments, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the weighted sum of several mean costs, in nanoseconds; it may be negative.

    Taken over the blocks that all have; None without such a block. Its interval allows for drift, as that of a cost.
    """
    sides = _together(of, moments)
    return _interval(sides, moments, confidence, lambda sums: _means(sums) @ weights, float, drifts=True)


def ratio_of_sums(
    of: Sequence[Sequence[Visit]],
    above: Sequence[float],
    below: Sequence[float],
    moments: Moments,
    *,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return one weighted sum of mean costs over another, over the blocks that all have.

    None without such a block, or if a sum is not above zero; unbounded if a sum without some block is not.
    """
    sides = _together(of, moments)
    weights = np.array([above, below])

    def logs(sums: np.ndarray) -> np.ndarray:
        both = np.maximum(_means(sums) @ weights.T, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: np.ndarray = np.log(both[..., 0]) - np.log(both[..., 1])
        return found

    found = _interval(sides, moments, confidence, logs)
    return found if found is not None and 0.0 < found.estimate < math.inf else None


def crossing(
    at: Sequence[float],
    line: Sequence[Sequence[Visit]],
    level: Sequence[Visit],
    moments: Moments,
    *,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return the place at which the line through mean costs at the places `at` falls to the cost of `level`.

    Taken over the blocks that all have. None without such a block, or if the line does not fall.
    """
    places = np.array(at, float)
    from_middle = places - places.mean()

    def falls_to(sums: np.ndarray) -> np.ndarray:
        costs = _means(sums)
        slope = costs[..., :-1] @ from_middle / (from_middle @ from_middle)
        above = costs[..., -1] - costs[..., :-1].mean(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: np.ndarray = np.where(slope < 0, places.mean() + above / slope, np.nan)
        return found

    found = _interval(_together([*line, level], moments), moments, confidence, falls_to, float)
    return None if found is None or math.isnan(found.estimate) else found


def best(quiet: Interval | None, noisy: Interval | None) -> Interval | None:
    """Return the quiet interval, or the noisy one if only that has enough blocks or there is no quiet one."""
    if quiet is None or (not quiet.is_bounded and noisy is not None and noisy.is_bounded):
        return noisy
    return quiet


def quotient(one: Interval, other: Interval) -> Interval:
    """Return the ratio of two estimates of different runs: their relative errors add as squares."""
    found = one.estimate / other.estimate
    how = one.confidence, min(one.n, other.n), one.moments, min(one.freedom, other.freedom)
    if not (one.is_bounded and other.is_bounded):
        return Interval(found, 0.0, math.inf, *how)
    half = math.hypot(math.log(one.high / one.low) / 2, math.log(other.high / other.low) / 2)
    return Interval(found, found * math.exp(-half), found * math.exp(half), *how)


def total(parts: Sequence[Interval]) -> Interval:
    """Return the sum of independent estimates, which share no blocks: their variances add.

    Student's distribution has the degrees of freedom of Welch and Satterthwaite. Bounded if all are.
    """
    if len(parts) == 1:
        return parts[0]
    estimate = math.fsum(one.estimate for one in parts)
    confidence, n = max(one.confidence for one in parts), min(one.n for one in parts)
    quiet = all(one.moments is Moments.QUIET for one in parts)
    moments = Moments.QUIET if quiet else Moments.ALL
    if not all(one.is_bounded for one in parts):
        return Interval(estimate, -math.inf, math.inf, confidence, n, moments)
    spread = [(one.high - one.low) / 2 / student(one.freedom, one.confidence) for one in parts]
    variance = math.fsum(one**2 for one in spread)
    if not variance:
        return Interval(estimate, estimate, estimate, confidence, n, moments)
    terms = math.fsum(error**4 / one.freedom for error, one in zip(spread, parts, strict=True))
    freedom = round(max(variance**2 / terms, 1.0), 1) if terms else math.inf
    half = student(freedom, confidence) * math.sqrt(variance)
    return Interval(estimate, estimate - half, estimate + half, confidence, n, moments, freedom)


_NOTHING = np.zeros(3)


def _paired(of: Visits, over: Visits, moments: Moments) -> tuple[Sums, Sums]:
    """Return the sums of both sides over the rounds that both have."""
    one, other = Sums(), Sums()
    for visit, partner in _partners(of, over):
        mine, theirs = visit.selected(moments), partner.selected(moments)
        # The common case: both sides have one chunk in every round of their batch.
        if visit.is_whole and (visit.rounds is partner.rounds or np.array_equal(visit.rounds, partner.rounds)):
            here = there = mine & theirs
        else:
            here = mine & np.isin(visit.rounds, partner.rounds[theirs])
            there = theirs & np.isin(partner.rounds, visit.rounds[here])
        _add(one, visit.block, visit.sums(moments, here))
        _add(other, partner.block, partner.sums(moments, there))
    return one, other


def _partners(of: Visits, over: Visits) -> Iterator[tuple[Visit, Visit]]:
    """Yield pairs of visits that shared a batch; a baseline that was measured twice there makes two pairs."""
    for visit in of:
        for partner in over.by_batch.get((visit.block, visit.batch), ()):
            yield visit, partner


def _add(sums: Sums, block: int, found: np.ndarray) -> None:
    if found[2]:
        sums[block] = sums.get(block, 0.0) + found


def _together(of: Sequence[Sequence[Visit]], moments: Moments) -> list[Sums]:
    """Return the sums of each side over the blocks that all have."""
    sides = [Visits.of(visits).by_block(moments) for visits in of]
    shared = set.intersection(*(set(side) for side in sides))
    return [{block: side[block] for block in shared} for side in sides]


def _means(sums: np.ndarray) -> np.ndarray:
    """Return the mean cost of an operation for each side: (…, side, 3) → (…, side)."""
    found: np.ndarray = sums[..., 0] / sums[..., 1]
    return found


# Limit of half an interval of logarithms. A wider one, as after dozens of looks, says nothing, and its ends exceed a
# double.
_WIDEST = 300.0


def _interval(
    sides: Sequence[Sums],
    moments: Moments,
    confidence: float,
    statistic: Callable[[np.ndarray], np.ndarray] | None = None,
    shown: Callable[[float], float] = math.exp,
    *,
    drifts: bool = False,
) -> Interval | None:
    """Return a statistic of the sides' sums, with an interval over blocks.

    By default it is the logarithm of the first side's mean cost, over the second's if there are two. `shown` converts
    the statistic to the reported scale. `drifts` widens the interval according to the correlation of neighbouring
    blocks; a ratio does not need that, because both of its sides drift together.
    """
    statistic = statistic or _log
    blocks = sorted(set().union(*sides))
    # (side, block, spent | operations | weight)
    table = np.array([[side.get(block, _NOTHING) for block in blocks] for side in sides])
    if not blocks or (table.sum(axis=1) <= 0).any():
        return None
    value = float(statistic(table.sum(axis=1)))
    n = min(len(side) for side in sides)
    # Sums of each side without each block in turn.
    left = table.sum(axis=1, keepdims=True) - table
    if n < FEWEST_BLOCKS or (left <= 0).any():
        return Interval(shown(value), shown(-math.inf), math.inf, confidence, n, moments)
    without = statistic(left.swapaxes(0, 1))
    if not np.isfinite(without).all():
        return Interval(shown(value), shown(-math.inf), math.inf, confidence, n, moments)
    variance = (len(blocks) - 1) / len(blocks) * float(((without - without.mean()) ** 2).sum())
    weights = table[:, :, 2]
    # Kish's effective number of blocks, equal to their number if all weigh the same.
    effective = float((weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)).min())
    if drifts:
        independent = _independent(without - without.mean())
        variance *= len(blocks) * (len(blocks) - 1) / independent / (len(blocks) - len(blocks) / independent)
        effective = min(effective, max(independent, _FEWEST_INDEPENDENT))
    freedom = round(max(effective - 1.0, 1.0), 1)
    half = student(freedom, confidence) * math.sqrt(variance)
    if shown is math.exp and half > _WIDEST:
        return Interval(shown(value), shown(-math.inf), math.inf, confidence, n, moments)
    return Interval(shown(value), shown(value - half), shown(value + half), confidence, n, moments, freedom)


# With a correlation of 0.7 between neighbours, 96 % intervals of costs cover in 90 % of cases with these two at four or
# six blocks and in 94 to 98 % at nine to 24, and in 65 to 80 % without. With independent blocks, intervals are a
# quarter wider, or up to twice as wide.
_FEWEST_INDEPENDENT = 4.0
_MOST_ALIKE = 0.9


def _independent(deviations: np.ndarray) -> float:
    """Return the number of independent blocks equivalent to these correlated ones: an autoregression of one step.

    The estimate of the correlation is raised by its bias, (1 + 3ρ) / n, and by one standard error.
    """
    number, whole = len(deviations), float(deviations @ deviations)
    alike = float(deviations[1:] @ deviations[:-1]) / whole if whole > 0 else 0.0
    alike += (1 + 3 * alike) / number + 1 / math.sqrt(number)
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    return max(number * (1 - alike) / (1 + alike), 1.3)


def _log(sums: np.ndarray) -> np.ndarray:
    """Return the logarithm of the first side's mean cost over the second's: (…, side, 3) → (…)."""
    logs = np.log(sums[..., 0] / sums[..., 1])
    found: np.ndarray = logs[..., 0] - (logs[..., 1] if logs.shape[-1] == 2 else 0.0)
    return found


@cache
def student(freedom: float, confidence: float) -> float:
    """Return the two-sided quantile of Student's distribution at this confidence.

    With t = √ν tan θ the density is proportional to cos(θ)^(ν - 1), which is summed and inverted.
    """
    angles = np.linspace(0.0, math.pi / 2, 20_001)
    middle = (angles[1:] + angles[:-1]) / 2
    share = np.concatenate([[0.0], np.cumsum(np.cos(middle) ** (freedom - 1.0))])
    return math.sqrt(freedom) * math.tan(float(np.interp(confidence * share[-1], share, angles)))
