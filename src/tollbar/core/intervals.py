"""Intervals: an estimate with the range that covers the truth, and Student's distribution, which they all use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from tollbar.core.arrays import np

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

    def times(self, factor: float) -> Interval:
        """Return the same in another unit."""
        return replace(self, estimate=self.estimate * factor, low=self.low * factor, high=self.high * factor)

    @property
    def inverse(self) -> Interval:
        """The ratio of the same comparison in the other direction."""
        low = 1 / self.high if self.is_bounded else 0.0
        high = 1 / self.low if self.low > 0 else math.inf
        return replace(self, estimate=1 / self.estimate, low=low, high=high)


def best(quiet: Interval | None, noisy: Interval | None) -> Interval | None:
    """Return the quiet interval, or the noisy one if only that has enough blocks or there is no quiet one."""
    if quiet is None or (not quiet.is_bounded and noisy is not None and noisy.is_bounded):
        return noisy
    return quiet


def quotient(one: Interval, other: Interval) -> Interval:
    """Return the ratio of two estimates of different runs: their relative errors add as squares."""
    return replace(product(one, other.inverse), moments=one.moments)


def product(one: Interval, other: Interval) -> Interval:
    """Return the product of two estimates: their relative errors add as squares. Quiet if both are."""
    found = one.estimate * other.estimate
    moments = Moments.ALL if one.is_noisy or other.is_noisy else Moments.QUIET
    how = one.confidence, min(one.n, other.n), moments, min(one.freedom, other.freedom)
    if not (one.is_bounded and other.is_bounded and one.low > 0 and other.low > 0):
        return Interval(found, 0.0, math.inf, *how)
    half = math.hypot(math.log(one.high / one.low) / 2, math.log(other.high / other.low) / 2)
    return Interval(found, found * math.exp(-half), found * exp(half), *how)


def exp(power: float) -> float:
    """Return e to this power; infinite where `math.exp` raises OverflowError.

    At the confidence of the fiftieth look, Student's quantile over four blocks is a hundred thousand.
    """
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


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


@cache
def student(freedom: float, confidence: float) -> float:
    """Return the two-sided quantile of Student's distribution at this confidence.

    With t = √ν tan θ the density is proportional to cos(θ)^(ν - 1), which is summed and inverted.
    """
    angles, density = _angles()
    share = np.concatenate([[0.0], np.cumsum(density ** (freedom - 1.0))])
    return math.sqrt(freedom) * math.tan(float(np.interp(confidence * share[-1], share, angles)))


@cache
def _angles() -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the steps of that sum, and the cosine in the middle of each."""
    angles = np.linspace(0.0, math.pi / 2, 20_001)
    return angles, np.cos((angles[1:] + angles[:-1]) / 2)
