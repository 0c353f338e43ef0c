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
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from tollbar.core.arrays import grouped, np
from tollbar.core.intervals import CONFIDENCE, FEWEST_BLOCKS, Interval, Moments, student
from tollbar.core.visits import Pairs, Sums, Visit, Visits


def cost(of: Iterable[Visit], moments: Moments, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the mean cost of an operation in these moments; None if there were none, or if nothing was spent.

    Its interval allows for drift: costs of neighbouring blocks are correlated, because the machine's state outlasts a
    block.
    """
    return _interval([Visits.of(of).by_block(moments)], moments, confidence, drifts=True)


def ratio(
    of: Iterable[Visit], over: Iterable[Visit], moments: Moments, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the first mean cost over the second; None if one of them has none in these moments."""
    return ratio_of(Pairs(Visits.of(of), Visits.of(over)), moments, confidence=confidence)


def ratio_of(pairs: Pairs, moments: Moments, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the first cell's mean cost over the second's; None if one of them has none in these moments.

    Paired within rounds, if the two met in at least half of the blocks of the side with fewer blocks, and in
    `FEWEST_BLOCKS` if that side has as many. Otherwise all rounds of each are compared, and each block is left out of
    both sides at once.
    """
    apart = [side.by_block(moments) for side in (pairs.of, pairs.over)]
    together = pairs.sums(moments)
    blocks_of_lesser = min(len(side) for side in apart)
    enough = 2 * len(together[0]) >= blocks_of_lesser and len(together[0]) >= min(FEWEST_BLOCKS, blocks_of_lesser)
    return _interval(together if enough else apart, moments, confidence)


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
    # (side, block, spent | operations | weight)
    table = _table(sides)
    number = table.shape[1]
    whole = table.sum(axis=1)
    if (whole <= 0).any():
        return None
    value = float(statistic(whole))
    n = min(len(side) for side in sides)
    # Sums of each side without each block in turn.
    left = whole[:, np.newaxis] - table
    if n < FEWEST_BLOCKS or (left <= 0).any():
        return Interval(shown(value), shown(-math.inf), math.inf, confidence, n, moments)
    without = statistic(left.swapaxes(0, 1))
    if not np.isfinite(without).all():
        return Interval(shown(value), shown(-math.inf), math.inf, confidence, n, moments)
    deviations = without - without.mean()
    variance = (number - 1) / number * float((deviations**2).sum())
    weights = table[:, :, 2]
    # Kish's effective number of blocks, equal to their number if all weigh the same.
    effective = float((weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)).min())
    if drifts:
        independent = _independent(deviations)
        variance *= number * (number - 1) / independent / (number - number / independent)
        effective = min(effective, max(independent, _FEWEST_INDEPENDENT))
    freedom = round(max(effective - 1.0, 1.0), 1)
    half = student(freedom, confidence) * math.sqrt(variance)
    if shown is math.exp and half > _WIDEST:
        return Interval(shown(value), shown(-math.inf), math.inf, confidence, n, moments)
    return Interval(shown(value), shown(value - half), shown(value + half), confidence, n, moments, freedom)


def _table(sides: Sequence[Sums]) -> np.ndarray:
    """Return the sums of each side in the blocks that any of them has; zeros for a block that it does not have."""
    first, *others = sides
    if all(np.array_equal(first.blocks, other.blocks) for other in others):
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
