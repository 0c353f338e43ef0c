"""Noise: what this lab makes of a true ×1.00, from baselines that were measured beside themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tollbar.judge.costs import Ledger
from tollbar.results import Row
from tollbar.stats import Interval

# How unlikely so many twins apart must be where the intervals are as wide as they should be: the warning speaks of
# a fault of the lab, which must not happen by chance in one study of twenty.
_BY_CHANCE = 0.01


def noise_of(ledger: Ledger, baseline: Row | None) -> Interval | None:
    """A baseline's twins over itself; None where it was not measured twice in blocks enough to tell."""
    ratio = ledger.undisturbed_ratio(baseline, baseline) if baseline else None
    return ratio if ratio is not None and ratio.is_bounded else None


def worst_noise(ledger: Ledger) -> Interval | None:
    """Of a study's baselines the twins that came out furthest apart; None where no baseline was measured twice."""
    return max(_known(ledger, ledger.baselines), key=apart, default=None)


def floor_for(ledger: Ledger, rows: Sequence[Row]) -> float | None:
    """How far noise alone may take a ratio of these cells: what their baselines' twins leave open, or the study's."""
    own = [ledger.by_key[row.against] for row in rows if row.against is not None and row.against in ledger.by_key]
    found = _known(ledger, own) or _known(ledger, ledger.baselines)
    return max((reach(noise) for noise in found), default=None)


def apart(noise: Interval) -> float:
    """How far twins came out from one, as a ratio above it."""
    return max(noise.estimate, 1 / noise.estimate)


def reach(noise: Interval) -> float:
    """How far from one noise alone may have taken a ratio: the far end of the twins' interval.

    Not their estimate: twins at ×1.000 whose interval reaches to ×1.02 leave it open that this lab makes ×1.02 of
    what is equal.
    """
    return max(noise.high, 1 / noise.low if noise.low > 0 else math.inf)


def twins_apart(ledger: Ledger) -> tuple[int, int] | None:
    """How many baselines' intervals exclude that they cost what they cost, and of how many; None where that may be.

    One in twenty may by chance. Too many are one that excludes it when the error is shared among all, or so many that
    chance would make them in less than one study of a hundred.
    """
    baselines = [row for row in ledger.baselines if noise_of(ledger, row) is not None]
    outside = [row for row in baselines if _excludes_one(noise_of(ledger, row))]
    if not outside:
        return None
    shared = 1 - (1 - ledger.confidence) / len(baselines)
    strictly = any(_excludes_one(ledger.undisturbed_ratio(row, row, shared)) for row in outside)
    chance = _at_least(len(outside), len(baselines), 1 - ledger.confidence)
    return (len(outside), len(baselines)) if strictly or chance < _BY_CHANCE else None


def _excludes_one(noise: Interval | None) -> bool:
    return noise is not None and not noise.low <= 1 <= noise.high


def _at_least(number: int, of: int, probability: float) -> float:
    return math.fsum(math.comb(of, k) * probability**k * (1 - probability) ** (of - k) for k in range(number, of + 1))


def _known(ledger: Ledger, baselines: Sequence[Row]) -> list[Interval]:
    noises = [noise_of(ledger, baseline) for baseline in baselines]
    return [noise for noise in noises if noise is not None]
