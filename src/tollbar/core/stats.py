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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from tollbar.core.arrays import grouped, np
from tollbar.core.intervals import CONFIDENCE, FEWEST_BLOCKS, Interval, Moments, student
from tollbar.core.visits import Pairs, Sums, Visit, Visits


def cost(of: Iterable[Visit], moments: Moments, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the mean cost of an operation in these moments; None if there were none, or if nothing was spent.

    Its interval allows for drift: costs of neighbouring blocks are correlated, because the machine's state outlasts a
    block.
    """
    return costs([Visits.of(of).by_block(moments)], moments, confidence=confidence)[0]


def costs(each: Sequence[Sums], moments: Moments, *, confidence: float = CONFIDENCE) -> list[Interval | None]:
    """Return the mean cost of each cell by its sums, as `cost` does. Many together take a fifth of the time."""
    return _intervals([[one] for one in each], moments, confidence, drifts=True)


def ratio(
    of: Iterable[Visit], over: Iterable[Visit], moments: Moments, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the first mean cost over the second; None if one of them has none in these moments."""
    return ratios_of([Pairs(Visits.of(of), Visits.of(over))], moments, confidence=confidence)[0]


def ratios_of(each: Sequence[Pairs], moments: Moments, *, confidence: float = CONFIDENCE) -> list[Interval | None]:
    """Return of each pair the first cell's mean cost over the second's; None without a cost in these moments.

    Paired within rounds, if the two met in at least half of the blocks of the side with fewer blocks, and in
    `FEWEST_BLOCKS` if that side has as many. Otherwise all rounds of each are compared, and each block is left out of
    both sides at once.
    """
    return _intervals([_sides(pairs, moments) for pairs in each], moments, confidence)


def _sides(pairs: Pairs, moments: Moments) -> Sequence[Sums]:
    apart = [side.by_block(moments) for side in (pairs.of, pairs.over)]
    together = pairs.sums(moments)
    blocks_of_lesser = min(len(side) for side in apart)
    enough = 2 * len(together[0]) >= blocks_of_lesser and len(together[0]) >= min(FEWEST_BLOCKS, blocks_of_lesser)
    return together if enough else apart


def added(
    of: Sequence[Iterable[Visit]], weights: Sequence[float], moments: Moments, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the weighted sum of several mean costs, in nanoseconds; it may be negative.

    Taken over the blocks that all have; None without such a block. Its interval allows for drift, as that of a cost.
    """
    sides = _together(of, moments)
    return _interval(sides, moments, confidence, lambda sums: _means(sums) @ weights, float, drifts=True)


def ratio_of_sums(
    of: Sequence[Iterable[Visit]],
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
    line: Sequence[Iterable[Visit]],
    level: Iterable[Visit],
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


def _together(of: Sequence[Iterable[Visit]], moments: Moments) -> list[Sums]:
    """Return the sums of each side over the blocks that all have."""
    sides = [Visits.of(visits).by_block(moments) for visits in of]
    shared = reduce(np.intersect1d, [side.blocks for side in sides])
    return [side.within(shared) for side in sides]


def _means(sums: np.ndarray) -> np.ndarray:
    """Return the mean cost of an operation for each side: (…, side, 3) → (…, side)."""
    found: np.ndarray = sums[..., 0] / sums[..., 1]
    return found


# Limit of half an interval of logarithms. A wider one, as after dozens of looks, says nothing, and its ends exceed a
# double.
_WIDEST = 300.0


Statistic = Callable[[np.ndarray], np.ndarray]
"""Function of the sums of several sides: (…, side, 3) → (…)."""


def _interval(
    sides: Sequence[Sums],
    moments: Moments,
    confidence: float,
    statistic: Statistic,
    shown: Callable[[float], float] = math.exp,
    *,
    drifts: bool = False,
) -> Interval | None:
    """Return a statistic of the sides' sums, with an interval over blocks, as `_intervals` does."""
    return _intervals([sides], moments, confidence, statistic, shown, drifts=drifts)[0]


def _intervals(
    each: Sequence[Sequence[Sums]],
    moments: Moments,
    confidence: float,
    statistic: Statistic | None = None,
    shown: Callable[[float], float] = math.exp,
    *,
    drifts: bool = False,
) -> list[Interval | None]:
    """Return a statistic of the sums of the sides of each comparison, with an interval over blocks.

    By default it is the logarithm of the first side's mean cost, over the second's if there are two. `shown` converts
    the statistic to the reported scale. `drifts` widens the interval according to the correlation of neighbouring
    blocks; a ratio does not need that, because both of its sides drift together.
    """
    tables = [_table(sides) for sides in each]
    of_shape: dict[tuple[int, ...], list[int]] = {}
    for place, table in enumerate(tables):
        of_shape.setdefault(table.shape, []).append(place)
    found: list[Interval | None] = [None] * len(tables)
    for places in of_shape.values():
        jackknifed = _jackknifed(np.array([tables[place] for place in places]), statistic)
        for place, one in zip(places, jackknifed, strict=True):
            if one is not None:
                n = min(len(side) for side in each[place])
                found[place] = _interval_of(one, n, moments, confidence, shown, drifts=drifts)
    return found


@dataclass(frozen=True, slots=True)
class _Jackknifed:
    """Statistic of some sums, and the parts of its interval."""

    value: float
    deviations: np.ndarray | None
    """Deviation from the mean of the statistic without each block; None if it has no value without one of them."""
    effective: float
    """Kish's effective number of blocks, equal to their number if all weigh the same."""


def _jackknifed(tables: np.ndarray, statistic: Statistic | None) -> Iterator[_Jackknifed | None]:
    """Yield the statistic of each table (side, block, spent | operations | weight); None if a sum is not above zero."""
    if not tables.shape[2]:
        yield from [None] * len(tables)
        return
    whole = tables.sum(axis=2)
    is_known = (whole > 0).all(axis=(1, 2))
    # Sums of each side without each block in turn.
    left = whole[:, :, np.newaxis] - tables
    with np.errstate(divide="ignore", invalid="ignore"):
        if statistic is None:
            values, without = _log(whole), _log(left.swapaxes(1, 2))
        else:
            values = np.array([statistic(one) for one in whole])
            without = np.array([statistic(one.swapaxes(0, 1)) for one in left])
        deviations = without - without.mean(axis=1, keepdims=True)
        weights = tables[..., 2]
        effective = (weights.sum(axis=2) ** 2 / (weights**2).sum(axis=2)).min(axis=1)
    is_bounded = (left > 0).all(axis=(1, 2, 3)) & np.isfinite(without).all(axis=1)
    for place in range(len(tables)):
        if is_known[place]:
            apart = deviations[place] if is_bounded[place] else None
            yield _Jackknifed(float(values[place]), apart, float(effective[place]))
        else:
            yield None


def _interval_of(
    found: _Jackknifed,
    n: int,
    moments: Moments,
    confidence: float,
    shown: Callable[[float], float],
    *,
    drifts: bool,
) -> Interval:
    """Return the interval of a statistic by Student's distribution, unbounded with too few blocks."""
    value, deviations, effective = found.value, found.deviations, found.effective
    unbounded = Interval(shown(value), shown(-math.inf), math.inf, confidence, n, moments)
    is_lopsided = moments is Moments.QUIET and effective < _FEWEST_EFFECTIVE
    if n < FEWEST_BLOCKS or is_lopsided or deviations is None:
        return unbounded
    number = len(deviations)
    variance = (number - 1) / number * float((deviations**2).sum())
    if drifts:
        independent = _independent(deviations)
        variance *= number * (number - 1) / independent / (number - number / independent)
        effective = min(effective, max(independent, _FEWEST_INDEPENDENT))
    freedom = round(max(effective - 1.0, 1.0), 1)
    half = student(freedom, confidence) * math.sqrt(variance)
    if shown is math.exp and half > _WIDEST:
        return unbounded
    return Interval(shown(value), shown(value - half), shown(value + half), confidence, n, moments, freedom)


# If nearly all quiet rounds are in one block, Student's distribution has less than one degree of freedom. Held at one,
# intervals of recorded ratios next to neighbours were 24 to 107 %, where all samples had 1 to 5 %.
_FEWEST_EFFECTIVE = 2.0


def _table(sides: Sequence[Sums]) -> np.ndarray:
    """Return the sums of each side in the blocks that any of them has; zeros for a block that it does not have."""
    first, *others = sides
    if all(first.blocks is other.blocks or np.array_equal(first.blocks, other.blocks) for other in others):
        return np.array([side.table for side in sides])
    blocks, _, _ = grouped(np.sort(np.concatenate([side.blocks for side in sides])))
    table = np.zeros((len(sides), len(blocks), 3))
    for place, side in enumerate(sides):
        table[place, np.searchsorted(blocks, side.blocks)] = side.table
    return table


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
