"""Runs of one machine combined: one ratio of several, by random effects on its logarithm.

A run's interval holds for its own boot, its own binaries in memory and its own day. The variance between runs is
estimated as Paule and Mandel do, and the interval is Hartung and Knapp's: Student's, on the weighted mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from statistics import fmean

from tollbar.core.intervals import Interval, student

# With two runs the variance between them has one degree of freedom, and their interval would be seven times as wide as
# that of one run, which assumes that runs differ by no more than their intervals. That assumption counts as this number
# of degrees of freedom: two runs are worth more than one, and with ten runs it is a quarter.
PRIOR_FREEDOM = 3
# Degrees of freedom by which a run's variance moves towards that of the others: weights by variances of three degrees
# of freedom alone make the interval of ten runs miss in 8 of 100.
_SHARED_FREEDOM = 4
# Smallest variance of a logarithm: it avoids a division by zero, and no cost is known as well.
_LEAST_VARIANCE = 1e-12
_HALVINGS = 30
# Others may send a run that states any confidence.
_LEAST_CONFIDENCE = 0.5
# Largest logarithm: beyond it `exp` overflows.
_MOST_LOG = 700.0

_student = cache(student)


@lru_cache(maxsize=4096)
def combined(ratios: tuple[Interval, ...]) -> Interval | None:
    """Return the mean of these runs' ratios with its interval; None where none of them has an interval.

    One ratio is returned as it is. The confidence is the highest of any.
    """
    known = [one for one in ratios if one.is_bounded and one.low > 0 and _LEAST_CONFIDENCE <= one.confidence < 1]
    if len(known) < 2:
        return known[0] if known else None
    logs = [math.log(one.estimate) for one in known]
    own = _variances(known)
    between = _between(logs, own)
    mean, variance = _mean(logs, [one + between for one in own])
    freedom = len(known) - 1 + PRIOR_FREEDOM
    confidence = max(one.confidence for one in known)
    half = _student(freedom, confidence) * math.sqrt(variance)
    return replace(
        known[0],
        estimate=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(min(mean + half, _MOST_LOG)),
        confidence=confidence,
        n=sum(one.n for one in known),
        freedom=float(freedom),
    )


def _variances(ratios: Sequence[Interval]) -> list[float]:
    """Return the variance of the logarithm of each run's ratio, drawn towards the geometric mean of all."""
    freedoms = [one.freedom if math.isfinite(one.freedom) else max(one.n - 1.0, 1.0) for one in ratios]
    halves = [(math.log(one.high) - math.log(one.low)) / 2 for one in ratios]
    own = [
        max((half / _student(freedom, one.confidence)) ** 2, _LEAST_VARIANCE)
        for half, freedom, one in zip(halves, freedoms, ratios, strict=True)
    ]
    # The logarithm of an estimated variance is too small by log(ν/2) - ψ(ν/2), which is 1/ν + 1/3ν² within 1 %.
    shared = math.exp(fmean(math.log(one) + 1 / nu + 1 / (3 * nu**2) for one, nu in zip(own, freedoms, strict=True)))
    return [
        (nu * one + _SHARED_FREEDOM * shared) / (nu + _SHARED_FREEDOM) for one, nu in zip(own, freedoms, strict=True)
    ]


def _mean(logs: Sequence[float], variances: Sequence[float]) -> tuple[float, float]:
    """Return the weighted mean and its variance."""
    whole = math.fsum(1 / one for one in variances)
    return math.fsum(log / one for log, one in zip(logs, variances, strict=True)) / whole, 1 / whole


def _between(logs: Sequence[float], own: Sequence[float]) -> float:
    """Return the variance between runs that makes the squared deviations equal their expectation, at least 0.

    The prior counts as further deviations of the size that the runs' own intervals expect.
    """
    usual = len(own) / math.fsum(1 / one for one in own)

    def excess(between: float) -> float:
        variances = [one + between for one in own]
        mean, _ = _mean(logs, variances)
        found = math.fsum((log - mean) ** 2 / one for log, one in zip(logs, variances, strict=True))
        return found + PRIOR_FREEDOM * usual / (usual + between) - (len(logs) - 1 + PRIOR_FREEDOM)

    return _root(excess, (max(logs) - min(logs)) ** 2)


def _root(falls: Callable[[float], float], most: float) -> float:
    """Return where a falling function is 0, between 0 and this; 0 where it is below from the beginning."""
    if falls(0.0) <= 0:
        return 0.0
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falls(middle) > 0 else (low, middle)
    return high
