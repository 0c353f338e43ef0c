"""Answer of a study of known ratios: whether the lab measured them."""

from __future__ import annotations

from tollbar.analysis import StudyJudgement
from tollbar.analysis.claims import ClaimResult, ClaimVerdict
from tollbar.core.words import enumeration
from tollbar.report.numbers import bracket, times
from tollbar.report.view import once


@once
def self_test_sentences(study: StudyJudgement) -> tuple[str, ...]:
    """Return the answer of a self-test: each known ratio with the measured one; empty for any other study.

    For example: "Yes: × 2.00 [1.99, 2.01] where × 2 is true, and × 1.00 [1.00, 1.00] where × 1 is true."
    """
    known = [one for one in study.claims if one.claim.ratio is not None]
    if not study.about.family.is_self_test or not known:
        return ()
    verdicts = {one.verdict for one in known}
    if verdicts == {ClaimVerdict.STILL_TRUE}:
        head = "Yes"
    elif verdicts <= {ClaimVerdict.STILL_TRUE, ClaimVerdict.CANNOT_TELL}:
        head = "This run cannot tell"
    else:
        head = "No"
    return (f"{head}: {enumeration([*map(_measured, known)])}.",)


def _measured(one: ClaimResult) -> str:
    assert one.claim.ratio is not None
    true = f"where ×\u00a0{one.claim.ratio[0]:g} is true"
    return f"nothing {true}" if one.ratio is None else f"{times(one.ratio.estimate)} {bracket(one.ratio)} {true}"
