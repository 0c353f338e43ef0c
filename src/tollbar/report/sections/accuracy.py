"""Circumstances of a run in one line: machine, date, quiet share of the core, and median half-width of the tolls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from tollbar.analysis import Judgement, StudyJudgement
from tollbar.core.words import counted
from tollbar.report.groups import real_tolls
from tollbar.report.numbers import NOISY_MARK, percent, percent_of

# Not those of a locale: the report is in English.
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


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


def run_line(judgement: Judgement) -> str:
    """Return `AMD EPYC, 2 cores, Linux 6.18 · 27 November 2026 · 11 questions · the core quiet 61 % …`."""
    run, studies = judgement.run, judgement.studies
    accurate = accuracy_words(accuracy(studies))
    parts = (
        machine_words(run.fingerprint),
        date_words(run.started),
        counted(len(studies), "question"),
        quiet_range_words(studies),
        f"a typical ratio is known to {accurate}" if accurate else "",
        f"most ratios are noisy ({NOISY_MARK}): repeat on an idle machine" if _is_mostly_noisy(studies) else "",
    )
    return " · ".join(filter(None, parts))


def _is_mostly_noisy(studies: Sequence[StudyJudgement]) -> bool:
    noisy = [toll.ratio.is_noisy for study in studies for toll in real_tolls(study) if toll.ratio is not None]
    return sum(noisy) > len(noisy) / 2


def machine_words(fingerprint: Mapping[str, Any]) -> str:
    """Return `AMD EPYC, 2 cores, Linux 6.18`; empty without a fingerprint."""
    cpu, cores, kernel = (fingerprint.get(name) for name in ("cpu", "cores", "kernel"))
    parts = (
        cpu if isinstance(cpu, str) else "",
        counted(cores, "core") if isinstance(cores, int) else "",
        f"Linux {kernel.partition('-')[0]}" if isinstance(kernel, str) else "",
    )
    return ", ".join(filter(None, parts))


def date_words(started: str) -> str:
    """Return `27 November 2026`; the text itself if it is not a date of ISO 8601."""
    try:
        began = datetime.fromisoformat(started)
    except ValueError:
        return started
    return f"{began.day} {MONTHS[began.month - 1]} {began.year}"


# The doubt about a first run, and its end.
FIRST_RUN = "only a second run shows whether another program slowed all of it"


def quiet_range_words(studies: Sequence[StudyJudgement]) -> str:
    """Return `the core quiet 61 % of the time`, or the lowest and the highest share of several studies."""
    if any(study.trust.may_have_neighbour for study in studies):
        return f"first run on this processor: {FIRST_RUN}"
    shares = sorted(round(share, 2) for study in studies if (share := study.trust.quiet_share) is not None)
    if not shares:
        return "quiet share of the core not known (no probe on it)"
    least, most = percent(shares[0]), percent(shares[-1])
    return f"the core quiet {least if least == most else f'{least} to {most}'} of the time"
