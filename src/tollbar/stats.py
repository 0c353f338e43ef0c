"""Statistics: what a cell costs while the core is left alone, what it costs as it was, and how well that is known.

A cell's chunks come from several fresh processes, one for each block, and a process keeps its luck (memory layout)
for life. So the block is the unit of every interval.

*Undisturbed*: every pair of chunks is weighed by how near the core was to being left alone just then, which shows in
how near the costs of both sides were to the lowest that they have; its chunks were measured milliseconds apart. How
near is near enough is chosen by what gives the narrowest interval, the bias of believing more disturbed pairs included:
work that suffers alike loses nothing by them, and of unlike work only quiet moments count. Where quiet moments
were few, or all in one block, few blocks carry the weight, and the interval is as wide as those few make it.

A cell whose every chunk was disturbed does not see that in its own. What was measured beside it does: it was measured
at other times too, and cost less then. By how much it did widens the interval.

*Typical*: all chunks alike, paired in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

# What one looks for by custom; a reader who wants another level has the raw chunks.
CONFIDENCE = 0.95
# With three blocks there are two degrees of freedom, and nearly every interval is as wide as the ratio itself.
_FEWEST_BLOCKS = 4
# The lowest cost of a cell, as a quantile.
_LOWEST = 0.05
# By how much a pair may cost more than the lowest and count whole: that is a process's luck, and must not decide which
# processes count.
_LUCK = 0.01
# What counts for half is dearer by that much again. A neighbour makes chunks dearer by a tenth and more as a rule; on
# some machines they scatter by some hundredths without a gap.
_HALF_WEIGHTS = (0.01, 0.02, 0.04, 0.08, 0.16)
# Beyond this a chunk says nothing of how much dearer a disturbance makes the one side than the other.
_MOST_EXCESS = 0.3
# The bias of believing disturbed pairs is worked out as if it grew in a line with how disturbed they were. It does not
# for long, and in simulations half of it covers; all of it is taken where operations vary, whose own disturbance is
# not known.
_BIAS_LEFT = 0.5
# Where nothing disturbs, costs still scatter by some hundredths above their lowest.
_LEFT_ALONE = 0.03
# What one side suffers more than the other, for each unit of excess, where nothing tells: on a core whose neighbour
# came and went, SHA3 cost 1.6 times as much, SHA-256 the same, and most hashes something in between.
_ANY_SLOPE = 1.5
# The variance of the excess below which pairs were disturbed alike, and tell nothing of what a disturbance does.
_NO_SPREAD = 1e-6
# The narrowest of several intervals is a little narrower than it should be: simulations cover as they say with this.
_CHOSEN = 1.05
# A block that carries all of the weight cannot be left out; so much of it can.
_MOST_SHARE = 0.95
# Up to here the null distribution of rank sums is counted out. At 60 blocks the normal approximation of the critical
# rank is off by one part in five hundred, and counting would begin to take longer than the judging.
_EXACT_UP_TO = 60


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval that covers the truth with the stated confidence."""

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    """How many independent blocks it rests on."""

    @property
    def is_bounded(self) -> bool:
        """Whether there were blocks enough to say anything: see `fewest_blocks`."""
        return math.isfinite(self.high)


@dataclass(frozen=True, slots=True)
class Visit:
    """The chunks of one trial: one fresh process."""

    block: int
    heat: int
    rounds: np.ndarray
    """The round of each chunk, ascending. Chunks of one block, heat and round were measured milliseconds apart."""
    logs: np.ndarray
    """Natural logarithms of the cost per operation, one for each chunk."""
    varies: bool = False
    """Whether operations differ from one to the next by nature: then a chunk's own cost says nothing of the moment, and
    what counts is the mean of costs, not of their logarithms."""
    beside: np.ndarray | None = None
    """By how much what was measured beside each chunk, by other cells in the same round, cost more than its lowest in
    the whole study, in logarithms; None where that is not known."""


def undisturbed(of: Sequence[Visit], *, confidence: float = CONFIDENCE) -> Interval:
    """What it costs while the core is left alone. Raises ValueError if there is no visit."""
    blocks, logs = _chunks(of)
    varies = of[0].varies
    own = np.zeros_like(logs) if varies else _excess(logs)
    beside = np.concatenate([_beside(visit) for visit in of])
    # What a disturbed chunk says of the cost is wrong by all of its excess.
    return _quietest(
        blocks, own, beside, lambda weights: _linear(logs, weights, varies), confidence, 1 - varies, slope=1.0
    )


def undisturbed_ratio(
    of: Sequence[Visit], over: Sequence[Visit], *, confidence: float = CONFIDENCE, is_same_work: bool = False
) -> Interval:
    """The one's undisturbed cost over the other's. Raises ValueError if either has no visit.

    `is_same_work`: what disturbs them makes both dearer alike, so that disturbed pairs say as much as quiet ones.
    """
    paired = _pairs(of, over)
    if paired is None:
        return quotient(undisturbed(of, confidence=confidence), undisturbed(over, confidence=confidence))
    blocks, one, other, beside = paired
    varies = of[0].varies, over[0].varies
    own = np.zeros_like(one)
    for logs, side_varies in zip((one, other), varies, strict=True):
        own += 0.0 if side_varies else _excess(logs)

    def differences(weights: np.ndarray) -> np.ndarray:
        linear: np.ndarray = _linear(one, weights, varies[0]) - _linear(other, weights, varies[1])
        return linear

    slope = 0.0
    if not is_same_work:
        bias_left = 1.0 if any(varies) else _BIAS_LEFT
        slope = bias_left * _slope(blocks, np.minimum(own + beside, _MOST_EXCESS), differences(np.ones_like(one)))
    return _quietest(blocks, own, beside, differences, confidence, 2 - sum(varies), slope=slope)


def typical(of: Sequence[Visit], *, confidence: float = CONFIDENCE) -> Interval:
    """What it cost as it was disturbed. Raises ValueError if there is no visit."""
    blocks, logs = _chunks(of)
    return _exponential(_ranked(blocks, _linear(logs, np.ones_like(logs), of[0].varies), confidence))


def typical_ratio(of: Sequence[Visit], over: Sequence[Visit], *, confidence: float = CONFIDENCE) -> Interval:
    """The one's cost over the other's as disturbed, paired within rounds where the two shared heats."""
    paired = _pairs(of, over)
    if paired is None:
        return quotient(typical(of, confidence=confidence), typical(over, confidence=confidence))
    blocks, one, other, _ = paired
    alike = np.ones_like(one)
    return _exponential(
        _ranked(blocks, _linear(one, alike, of[0].varies) - _linear(other, alike, over[0].varies), confidence)
    )


def fewest_blocks(confidence: float = CONFIDENCE) -> int:
    """The fewest blocks that can carry an interval of an undisturbed cost."""
    return _FEWEST_BLOCKS


def _chunks(of: Sequence[Visit]) -> tuple[np.ndarray, np.ndarray]:
    """(block, logarithm of the cost) of all chunks."""
    if not of:
        raise ValueError("an interval needs at least one visit")
    return (
        np.concatenate([np.full(len(visit.logs), visit.block) for visit in of]),
        np.concatenate([visit.logs for visit in of]),
    )


def _pairs(of: Sequence[Visit], over: Sequence[Visit]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """(block, the one's logarithm, the other's, the excess beside them) of each two chunks measured milliseconds apart.

    None where the two met in less than half of the blocks that the lesser of them has, or in too few for an interval
    that all of its blocks could carry: then all that both have says more than the little that they share.
    """
    if not of or not over:
        raise ValueError("a ratio needs at least one visit on each side")
    partners = {(visit.block, visit.heat): visit for visit in over}
    blocks, ones, others, besides = [], [], [], []
    for visit in of:
        other = partners.get((visit.block, visit.heat))
        if other is None:
            continue
        if len(visit.rounds) == len(other.rounds) and (visit.rounds == other.rounds).all():
            here = there = np.arange(len(visit.rounds))
        else:
            _, here, there = np.intersect1d(visit.rounds, other.rounds, assume_unique=True, return_indices=True)
        blocks.append(np.full(len(here), visit.block))
        ones.append(visit.logs[here])
        others.append(other.logs[there])
        besides.append((_beside(visit)[here] + _beside(other)[there]) / 2)
    met = {int(block[0]) for block in blocks if len(block)}
    blocks_of_lesser = min(len({visit.block for visit in side}) for side in (of, over))
    if 2 * len(met) < blocks_of_lesser or len(met) < min(_FEWEST_BLOCKS, blocks_of_lesser):
        return None
    return np.concatenate(blocks), np.concatenate(ones), np.concatenate(others), np.concatenate(besides)


def _beside(visit: Visit) -> np.ndarray:
    return np.zeros_like(visit.logs) if visit.beside is None else visit.beside


def lowest(logs: np.ndarray) -> float:
    """The lowest cost among these, as a logarithm: not the minimum, which is one lucky chunk."""
    place = int(_LOWEST * (len(logs) - 1))
    return float(np.partition(logs, place)[place])


def _excess(logs: np.ndarray) -> np.ndarray:
    """By how much each chunk cost more than the lowest."""
    excess: np.ndarray = np.maximum(logs - lowest(logs), 0.0)
    return excess


def _weights(excess: np.ndarray, half_weight: float) -> np.ndarray:
    beyond = np.maximum(excess - max(_LUCK, half_weight / 2), 0.0)
    weights: np.ndarray = 1.0 / (1.0 + (beyond / half_weight) ** 2)
    return weights


def _quietest(
    blocks: np.ndarray,
    own: np.ndarray,
    beside: np.ndarray,
    values: Callable[[np.ndarray], np.ndarray],
    confidence: float,
    estimated: int,
    *,
    slope: float,
) -> Interval:
    """The narrowest of the intervals that chunks give when weighed by how disturbed they were, more and less strictly.

    That shows in by how much they cost more than their `own` lowest and what was `beside` them more than its.
    `slope` is by how much the values may be wrong for each unit of it that is let in.
    """
    best, strictest = None, None
    for half_weight in _HALF_WEIGHTS:
        weights = _weights(own + beside, half_weight)
        let_in = float(np.average(own, weights=weights))
        strictest = let_in if strictest is None else strictest
        # Of its own lowest cost a cell does not know whether it is that of a core left alone; what was beside it tells.
        never_left = max(float(np.average(beside, weights=weights)) - _LEFT_ALONE, 0.0)
        bias = slope * (let_in - strictest + never_left)
        found = _weighted(blocks, values(weights), weights, confidence, estimated, bias)
        if best is None or found[2] - found[1] < best[2] - best[1]:
            best = found
    assert best is not None
    return _exponential(best)


def _slope(blocks: np.ndarray, excess: np.ndarray, values: np.ndarray) -> float:
    """By how much values may move with how disturbed their pairs were: a regression's slope and its error over blocks.

    Both are drawn to what is known before anything was seen (`_ANY_SLOPE`), which is all there is where every pair was
    disturbed alike.
    """
    from_mean = excess - excess.mean()
    squares = float((from_mean**2).sum())
    if squares < _NO_SPREAD * len(excess):
        return _ANY_SLOPE
    slope = float((from_mean * (values - values.mean())).sum()) / squares
    _, place = np.unique(blocks, return_inverse=True)
    left = np.bincount(place, from_mean * (values - values.mean() - slope * from_mean))
    error = math.sqrt(float((left**2).sum())) / squares
    believed = _ANY_SLOPE**2 / (_ANY_SLOPE**2 + error**2)
    return math.hypot(slope * believed, error * math.sqrt(believed))


def _linear(logs: np.ndarray, weights: np.ndarray, varies: bool) -> np.ndarray:
    """Values whose weighted mean is the logarithm of the cost that is asked for.

    Of work that varies by nature that is the logarithm of the mean cost: the values are its linearisation.
    """
    if not varies:
        return logs
    costs = np.exp(logs)
    mean = np.average(costs, weights=weights)
    linear: np.ndarray = math.log(mean) + costs / mean - 1.0
    return linear


def _weighted(
    blocks: np.ndarray, values: np.ndarray, weights: np.ndarray, confidence: float, estimated: int, bias: float = 0.0
) -> tuple[float, float, float, float, int]:
    """The weighted mean, with an interval over blocks: each is as independent as the process and the time it had.

    A block counts as much as its quiet chunks weigh. The degrees of freedom are those of as many blocks of equal
    weight as would carry the mean as well (Kish's effective number), less one for the mean, and a half for each of the
    `estimated` lowest costs that the weights rest on, which come from the same chunks. A possible `bias` widens the
    interval as one more error would.
    """
    _, place = np.unique(blocks, return_inverse=True)
    weight = np.bincount(place, weights)
    means = np.bincount(place, weights * values) / weight
    total = weight.sum()
    mean = float((weight * means).sum() / total)
    if len(weight) < _FEWEST_BLOCKS:
        return mean, -math.inf, math.inf, confidence, len(weight)
    effective = float(total**2 / (weight**2).sum())
    freedom = max(effective - 1.0 - estimated / 2, 1.0)
    # By how much the mean would move without each block in turn (the jackknife): of a block that carries most of the
    # weight the mean's own distance from it says little.
    share = np.minimum(weight / total, _MOST_SHARE)
    moves = share * (means - mean) / (1.0 - share)
    variance = float((moves**2).sum()) * max(effective - 1.0, 1.0) / effective
    half = _CHOSEN * student(round(freedom, 1), confidence) * math.sqrt(variance + bias**2)
    return mean, mean - half, mean + half, confidence, len(weight)


def _ranked(blocks: np.ndarray, values: np.ndarray, confidence: float) -> tuple[float, float, float, float, int]:
    """Hodges and Lehmann's estimate over the blocks' means, and Wilcoxon's interval: a block that was three times too
    slow moves a rank and not a sum."""
    _, place = np.unique(blocks, return_inverse=True)
    means = np.bincount(place, values) / np.bincount(place)
    low, estimate, high = signed_rank_interval(means, confidence=confidence)
    return estimate, low, high, confidence, len(means)


def _exponential(found: tuple[float, float, float, float, int]) -> Interval:
    estimate, low, high, confidence, n = found
    return Interval(math.exp(estimate), math.exp(low), math.exp(high), confidence, n)


def quotient(one: Interval, other: Interval) -> Interval:
    """The ratio of two that did not meet: their relative errors add up as squares do."""
    ratio = one.estimate / other.estimate
    n = min(one.n, other.n)
    if not (one.is_bounded and other.is_bounded):
        return Interval(ratio, 0.0, math.inf, one.confidence, n)
    half = math.hypot(math.log(one.high / one.low) / 2, math.log(other.high / other.low) / 2)
    return Interval(ratio, ratio * math.exp(-half), ratio * math.exp(half), one.confidence, n)


@cache
def student(freedom: float, confidence: float) -> float:
    """The quantile of Student's distribution beyond which, on both sides, lies what the confidence leaves.

    With t = √ν tan θ the density is proportional to cos(θ)^(ν - 1), which is summed and inverted.
    """
    angles = np.linspace(0.0, math.pi / 2, 20_001)
    middle = (angles[1:] + angles[:-1]) / 2
    share = np.concatenate([[0.0], np.cumsum(np.cos(middle) ** (freedom - 1.0))])
    return math.sqrt(freedom) * math.tan(float(np.interp(confidence * share[-1], share, angles)))


def signed_rank_interval(values: Sequence[float] | np.ndarray, *, confidence: float) -> tuple[float, float, float]:
    """Low end, Hodges–Lehmann estimate and high end; the ends are infinite where there are too few values."""
    ordered = np.sort(np.asarray(values, dtype=float))
    above, left = _upper_triangle(len(ordered))
    averages = np.sort((ordered[above] + ordered[left]) / 2)
    estimate = float(np.median(averages))
    rank = critical_rank(len(ordered), confidence)
    if rank is None:
        return -math.inf, estimate, math.inf
    return float(averages[rank]), estimate, float(averages[-1 - rank])


@cache
def _upper_triangle(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(size)


@cache
def critical_rank(blocks: int, confidence: float) -> int | None:
    """The largest rank sum that a two-sided test at this confidence rejects; None if it can reject nothing.

    The interval runs from the Walsh average after that many of the smallest to the one before that many of
    the largest.
    """
    one_side = (1 - confidence) / 2
    if blocks > _EXACT_UP_TO:
        mean = blocks * (blocks + 1) / 4
        deviation = math.sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24)
        return math.floor(mean - 0.5 - NormalDist().inv_cdf(1 - one_side) * deviation)
    # `1 - 0.95` is a hair above 0.05, and 2/64 must not fail against 1 - 0.96875: a billionth settles both.
    allowed = one_side * 2**blocks * (1 + 1e-9)
    total = 0
    for rank, count in enumerate(_rank_sum_counts(blocks)):
        total += count
        if total > allowed:
            return rank - 1 if rank else None
    return None


@cache
def _rank_sum_counts(blocks: int) -> tuple[int, ...]:
    """In how many of the 2ⁿ ways to sign the ranks 1 … n the positive ones add up to 0, 1, 2, …"""
    counts = [1]
    for rank in range(1, blocks + 1):
        padding = [0] * rank
        counts = [a + b for a, b in zip(counts + padding, padding + counts, strict=True)]
    return tuple(counts)
