"""Noise: what this lab makes of a true ×1.00, from cells that were measured beside themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tollbar.judge.costs import Ledger
from tollbar.results import Row
from tollbar.stats import Interval

# How unlikely so many twins apart must be where the intervals are as wide as they should be: the warning speaks of
# a fault of the lab, which must not happen by chance in one study of twenty.
_BY_CHANCE = 0.01


def noise_of(ledger: Ledger, twinned: Row | None) -> Interval | None:
    """A cell's twins over itself; None where it was not measured twice in blocks enough to tell."""
    ratio = ledger.undisturbed_ratio(twinned, twinned) if twinned and twinned.twins else None
    return ratio if ratio is not None and ratio.is_bounded else None


def twins(ledger: Ledger) -> tuple[tuple[Row, Interval], ...]:
    """Everything that was measured beside itself, with its twin's cost over its own."""
    found = [(row, ledger.undisturbed_ratio(row, row)) for row in ledger.twinned]
    return tuple((row, ratio) for row, ratio in found if ratio is not None)


def worst_noise(ledger: Ledger) -> Interval | None:
    """Of a study's twins those that came out furthest apart; None where nothing was measured twice."""
    return max(_known(ledger, ledger.twinned), key=apart, default=None)


OfTwins = Callable[[Row], Interval | None]
"""What the ratio of a cell's twins is, by something else than the study's cost."""


def noise_for(ledger: Ledger, rows: Sequence[Row], of_twins: OfTwins | None = None) -> Interval | None:
    """The twins that say what noise may do to a ratio of these cells: those of their baselines, and of their kind.

    Of several those whose interval reaches furthest; the study's own where these cells have none.
    """
    against = {row.against for row in rows}
    own = [twinned for twinned in ledger.twinned if twinned.against in against]
    found = _known(ledger, own, of_twins) or _known(ledger, ledger.twinned, of_twins)
    return max(found, key=reach, default=None)


def floor_for(ledger: Ledger, rows: Sequence[Row], of_twins: OfTwins | None = None) -> float | None:
    """How far noise alone may take a ratio of these cells; None where nothing was measured twice."""
    noise = noise_for(ledger, rows, of_twins)
    return None if noise is None else reach(noise)


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
    """How many twins' intervals exclude that they cost what they cost, and of how many; None where that may be.

    One in twenty may by chance. Too many are one that excludes it when the error is shared among all, or so many that
    chance would make them in less than one study of a hundred.
    """
    twinned = [row for row in ledger.twinned if noise_of(ledger, row) is not None]
    outside = [row for row in twinned if _excludes_one(noise_of(ledger, row))]
    if not outside:
        return None
    shared = 1 - (1 - ledger.confidence) / len(twinned)
    strictly = any(_excludes_one(ledger.undisturbed_ratio(row, row, shared)) for row in outside)
    chance = _at_least(len(outside), len(twinned), 1 - ledger.confidence)
    return (len(outside), len(twinned)) if strictly or chance < _BY_CHANCE else None


def _excludes_one(noise: Interval | None) -> bool:
    return noise is not None and not noise.low <= 1 <= noise.high


def _at_least(number: int, of: int, probability: float) -> float:
    return math.fsum(math.comb(of, k) * probability**k * (1 - probability) ** (of - k) for k in range(number, of + 1))


def _known(ledger: Ledger, twinned: Sequence[Row], of_twins: OfTwins | None = None) -> list[Interval]:
    noises = [of_twins(row) if of_twins else noise_of(ledger, row) for row in twinned]
    return [noise for noise in noises if noise is not None and noise.is_bounded]
