"""Accuracy of a run: the share of quiet moments and the half-width of its tolls."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tollbar.analysis import StudyJudgement
from tollbar.report.groups import real_tolls
from tollbar.report.numbers import percent, percent_of


def accuracy(studies: Sequence[StudyJudgement]) -> float | None:
    """Return the median half-width of the tolls, as a share of each; None where no toll has an interval."""
    ratios = [toll.ratio for study in studies for toll in real_tolls(study) if toll.ratio is not None]
    widths = [ratio.half_width for ratio in ratios if ratio.is_bounded]
    return median(widths) if widths else None


def accuracy_words(half_width: float | None) -> str:
    """Return `± 2.3 %`; empty without a half-width."""
    return "" if half_width is None else f"±\u00a0{percent_of(half_width)}"


def quiet_share_words(study: StudyJudgement) -> str:
    """Return how much of its time the core was quiet: `the core was quiet 87 % of the time`."""
    share = study.trust.quiet_share
    if share is None:
        return "all costs are noisy: no probe runs on the measured core"
    if study.trust.may_have_neighbour:
        return "quiet share of the core not known: first run on this processor"
    return f"the core was quiet {percent(round(share, 2))} of the time"


def quiet_line(studies: Sequence[StudyJudgement]) -> str:
    """Return `quiet 61 % of the time`, or the least and the greatest share of several studies; empty if not known."""
    if any(study.trust.may_have_neighbour for study in studies):
        return "quiet share not known (first run on this processor)"
    shares = sorted(round(share, 2) for study in studies if (share := study.trust.quiet_share) is not None)
    if not shares:
        return "quiet share not known (no probe on the measured core)"
    least, most = percent(shares[0]), percent(shares[-1])
    return f"quiet {least if least == most else f'{least} to {most}'} of the time"
