"""Shared variances: the ratios of one study share degrees of freedom (Smyth 2004, moderated t).

With four blocks a variance has three degrees of freedom, for which Student's quantile is two thirds larger than the
normal one. Rows of one study are measured in the same way, so their variances are similar: they are treated as draws
from one scaled inverse chi-square law. Its scale and degrees of freedom are estimated from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

from tollbar.core.intervals import Interval, exp, student

# Fewer ratios do not show how variances differ.
_FEWEST = 3
# With more, 96 % intervals of four blocks cover in less than 93 % of cases if rows share a noisy baseline.
_MOST_FREEDOM = 10.0
# Limit of the shared degrees of freedom, as a multiple of a ratio's own.
_MOST_TIMES = 2.0
# A variance that exceeds the shared one in fewer than one case of ten is kept as it is: intervals of rows that vary ten
# times as much then cover in 88 to 96 % of cases, and in 82 to 90 % with one case of two hundred.
_UNLIKE = NormalDist().inv_cdf(0.90)


@dataclass(frozen=True, slots=True)
class Spread:
    """Law of a study's variances: those of the logarithm of one block's ratio."""

    variance: float
    freedom: float
    """Degrees of freedom that it adds to a row: at most ten, fewer from few or dissimilar rows."""

    def moderate(self, ratio: Interval, scale: float = 1.0) -> Interval:
        """Return the interval with its own and the shared variance, weighted by their degrees of freedom.

        `scale` is the variance of such a ratio by its design, as a multiple of the law's. Unchanged if the ratio has no
        variance, or one too large for this law.
        """
        own, shared_variance = _variance(ratio), scale * self.variance
        if own is None or _is_unlike(own / shared_variance, ratio.freedom, self.freedom):
            return ratio
        lent = min(self.freedom, _MOST_TIMES * ratio.freedom)
        freedom = round(ratio.freedom + lent, 1)
        pooled = (ratio.freedom * own + lent * shared_variance) / (ratio.freedom + lent)
        half = student(freedom, ratio.confidence) * math.sqrt(pooled / _blocks(ratio))
        low, high = ratio.estimate * math.exp(-half), ratio.estimate * exp(half)
        return Interval(ratio.estimate, low, high, ratio.confidence, ratio.n, ratio.moments, freedom)


def shared(ratios: Sequence[Interval], scales: Sequence[float] | None = None) -> Spread | None:
    """Return the law of these ratios' variances, each over its scale; None if there are too few.

    Intervals must be Student's on the logarithm, with the degrees of freedom of their effective number of blocks less
    one. Rows with a variance too large for the law are excluded from it.
    """
    by_design = scales or [1.0] * len(ratios)
    known = [
        (own / scale, one.freedom) for one, scale in zip(ratios, by_design, strict=True) if (own := _variance(one))
    ]
    found, used = _fitted(known), known
    # Excluding rows changes the law, and the law decides which are excluded: three rounds settle it.
    for _ in range(3):
        if found is None:
            return None
        alike = [
            (own, freedom) for own, freedom in known if not _is_unlike(own / found.variance, freedom, found.freedom)
        ]
        if alike == used:
            break
        found, used = _fitted(alike), alike
    return found


def are_unlike(ratios: Sequence[Interval]) -> bool:
    """Return whether these ratios differ by more than chance, at the confidence of their intervals (Welch 1951).

    Ratios without an interval do not count; False if fewer than two have one.
    """
    errors = [_error(one) for one in ratios]
    known = [(math.log(r.estimate), e, r.freedom) for r, e in zip(ratios, errors, strict=True) if e is not None]
    if len(known) < 2:
        return False
    number = len(known)
    weights = [error**-2 for _, error, _ in known]
    whole = math.fsum(weights)
    middle = math.fsum(w * log for w, (log, _, _) in zip(weights, known, strict=True)) / whole
    between = math.fsum(w * (log - middle) ** 2 for w, (log, _, _) in zip(weights, known, strict=True)) / (number - 1)
    unsure = math.fsum((1 - w / whole) ** 2 / freedom for w, (_, _, freedom) in zip(weights, known, strict=True))
    scale = 1 + 2 * (number - 2) / (number**2 - 1) * unsure
    large = NormalDist().inv_cdf(max(one.confidence for one in ratios))
    return _snedecor(between / scale, number - 1, (number**2 - 1) / (3 * unsure)) > large


def _fitted(known: Sequence[tuple[float, float]]) -> Spread | None:
    if len(known) < _FEWEST:
        return None
    halves = [freedom / 2 for _, freedom in known]
    logs = [math.log(own) - _digamma(half) + math.log(half) for (own, _), half in zip(known, halves, strict=True)]
    # Variance of the logarithms beyond the part that their own few degrees of freedom explain.
    beyond = variance(logs) - fmean(map(_trigamma, halves))
    most = min(_MOST_FREEDOM, 2.0 * (len(known) - 1))
    freedom = 2 * _inverse_trigamma(beyond, most / 2)
    return Spread(math.exp(fmean(logs) + _digamma(freedom / 2) - math.log(freedom / 2)), freedom)


def _variance(ratio: Interval) -> float | None:
    """Return the variance of the logarithm of one block's ratio; None if the interval does not determine it."""
    error = _error(ratio)
    return None if error is None else error**2 * _blocks(ratio)


def _error(ratio: Interval) -> float | None:
    """Return the standard error of a ratio's logarithm; None if its interval is open or a point."""
    if not (ratio.is_bounded and ratio.low > 0 and math.isfinite(ratio.freedom)) or ratio.high <= ratio.low:
        return None
    return math.log(ratio.high / ratio.low) / 2 / student(ratio.freedom, ratio.confidence)


def _blocks(ratio: Interval) -> float:
    """Return Kish's effective number of blocks."""
    return ratio.freedom + 1


def _is_unlike(quotient: float, of: float, over: float) -> bool:
    """Return whether a quotient of two variances is too large for them to follow one law."""
    return _snedecor(quotient, of, over) > _UNLIKE


def _snedecor(quotient: float, of: float, over: float) -> float:
    """Return the standard normal score of a value of Snedecor's F distribution (Paulson 1942).

    Its upper tail of 4 % is 3.8 to 4.5 % with three degrees of freedom or more below.
    """
    one, other, root = 2 / (9 * of), 2 / (9 * over), math.cbrt(quotient)
    return ((1 - other) * root - (1 - one)) / math.sqrt(other * root**2 + one)


def _digamma(x: float) -> float:
    step = 1e-4 * x
    return (math.lgamma(x + step) - math.lgamma(x - step)) / (2 * step)


def _trigamma(x: float) -> float:
    step = 1e-3 * x
    return (math.lgamma(x + step) - 2 * math.lgamma(x) + math.lgamma(x - step)) / step**2


def _inverse_trigamma(wanted: float, most: float) -> float:
    """Return the argument at which the falling trigamma function has this value, between a quarter and `most`."""
    low, high = 0.25, most
    if _trigamma(high) >= wanted:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _trigamma(middle) > wanted else (low, middle)
    return low
