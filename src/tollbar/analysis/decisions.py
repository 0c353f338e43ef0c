"""Decisions: from an interval to a verdict, and the distance of an unclear interval from its verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from tollbar.analysis.verdicts import Verdict
from tollbar.core.intervals import CONFIDENCE, FEWEST_BLOCKS, Interval, Moments, student
from tollbar.results import StudyRun

# A study of fifty times the length to settle one row is not worth running: that row is too near the margin.
_HOPELESS = 50
# Least error of one look: from the fiftieth on a double cannot distinguish a smaller error from zero, and all such
# looks together spend less than 1e-10.
_LEAST_ERROR = 2.0**-52
# The first look is usually the only one, so it gets this share of the error of all looks. With many blocks its
# intervals of 96 % are a twentieth wider than those of 95 %.
_FIRST_LOOK = 0.80


@dataclass(frozen=True, slots=True)
class Terms:
    """Rules for a study's verdicts: the threshold and the confidence."""

    threshold: float
    """Smallest difference that matters, as a share."""
    interim_looks: int
    """Number of times the run was judged, this time included."""

    @classmethod
    def of(cls, study_run: StudyRun) -> Terms:
        return cls(study_run.study.threshold, max(1, len(study_run.interim_looks)))

    @property
    def margin(self) -> float:
        """Ratio 1 + `threshold`: ratios between its inverse and itself are too small to matter."""
        return 1 + self.threshold

    @property
    def confidence(self) -> float:
        """Confidence of every interval of this study.

        A run that is judged, found unclear and given more blocks has a second chance to be wrong. The first look may be
        wrong in 4 of 100, and each later one spends half of what is left of 5: 0.5, 0.25, 0.125 … For any number of
        looks, the chance that the interval at *any* of them misses, on either side, stays below 0.05.
        """
        return _confidence(self.interim_looks)

    @property
    def next_confidence(self) -> float:
        """Confidence of every interval if blocks were added now."""
        return _confidence(self.interim_looks + 1)


def decide(ratio: Interval, floor: float | None, terms: Terms) -> Verdict:
    """Return the verdict on a ratio of costs, where noise alone may make ratios of up to `floor`: see `reach`.

    Without a floor (the baseline had no repeat, or too few) the noise is unknown, and the verdict is unclear.
    """
    if floor is None:
        return Verdict.UNCLEAR
    if 1 / terms.margin <= ratio.low and ratio.high <= terms.margin:
        return Verdict.FREE if floor <= terms.margin else Verdict.UNCLEAR
    bar = max(terms.margin, floor)
    if ratio.low > bar:
        return Verdict.COSTS
    if ratio.high < 1 / bar:
        return Verdict.SAVES
    return Verdict.UNCLEAR


def apart(noise: Interval) -> float:
    """Return the distance of A/A pairs from one, as a ratio above it."""
    return max(noise.estimate, 1 / noise.estimate)


def reach(noise: Interval) -> float:
    """Return the largest ratio that noise alone may make: the far end of the A/A pairs' interval, as a ratio above one.

    The estimate would be too small: A/A pairs at ×1.000 whose interval reaches to ×1.02 do not exclude that this lab
    measures equal costs as ×1.02.
    """
    return max(noise.high, 1 / noise.low if noise.low > 0 else math.inf)


def suffers(ratio: Interval, all_samples: Interval | None, terms: Terms) -> Literal["more", "less"] | None:
    """Return whether disturbance raises one cell's cost `more` or `less` than the other's; None if neither.

    The two ratios differ by more than the threshold, and each is outside the other's interval.
    """
    if all_samples is None or ratio.moments is Moments.ALL or not (ratio.is_bounded and all_samples.is_bounded):
        return None
    change = all_samples.estimate / ratio.estimate
    if change > terms.margin and all_samples.estimate > ratio.high and all_samples.low > ratio.estimate:
        return "more"
    if change < 1 / terms.margin and all_samples.estimate < ratio.low and all_samples.high < ratio.estimate:
        return "less"
    return None


def jointly(ratio: Interval, comparisons: int) -> Interval:
    """Return the interval of one of `comparisons` ratios: jointly they miss no more often than one ratio did.

    Bonferroni: each has the allowed error divided by their number. Intervals are Student's over blocks, in logarithms,
    so that it is wider by the ratio of the two quantiles.
    """
    if comparisons < 2 or not ratio.is_bounded:
        return ratio
    confidence = 1 - (1 - ratio.confidence) / comparisons
    freedom = ratio.freedom if math.isfinite(ratio.freedom) else max(ratio.n - 1.0, 1.0)
    wider = student(freedom, confidence) / student(freedom, ratio.confidence)
    low, high = (ratio.estimate * (end / ratio.estimate) ** wider for end in (ratio.low, ratio.high))
    return Interval(ratio.estimate, low, high, confidence, ratio.n, ratio.moments, ratio.freedom)


def more_blocks(ratio: Interval, floor: float | None, terms: Terms) -> int | None:
    """Return the approximate number of further blocks that would decide an unclear ratio; None if it is hopeless.

    If the estimate is the truth, the interval's width and the noise floor shrink as one over the square root of the
    blocks, and start a little wider because the next look must be paid for.
    """
    fewest = FEWEST_BLOCKS
    if not ratio.is_bounded:
        return max(fewest - ratio.n, 1)
    if floor is None:
        return None
    wider = _quantile(terms.next_confidence) / _quantile(terms.confidence)
    half_width = wider * math.log(ratio.high / ratio.low) / 2
    noise = wider * math.log(floor)
    margin = math.log(terms.margin)
    effect = abs(math.log(ratio.estimate))
    # Each pair: the available room, and the width that must shrink to fit into it.
    to_be_free = ((margin - effect, half_width), (margin, noise))
    to_be_found = ((effect - margin, half_width), (effect, half_width + noise))
    shrink = min(
        room / width if width else math.inf for room, width in (to_be_free if effect < margin else to_be_found)
    )
    if shrink <= 0:
        return None
    more = max(math.ceil(ratio.n / shrink**2) - ratio.n, fewest - ratio.n, 1)
    return more if more <= _HOPELESS * ratio.n else None


def _confidence(interim_looks: int) -> float:
    allowed = 1 - CONFIDENCE
    first = _FIRST_LOOK * allowed
    return 1 - (first if interim_looks == 1 else max(math.ldexp(allowed - first, 1 - interim_looks), _LEAST_ERROR))


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
