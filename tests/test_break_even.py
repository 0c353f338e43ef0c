"""Break-even share of remembered requests, reported as far as it was judged."""

from __future__ import annotations

import random
from dataclasses import replace
from math import exp

import pytest

from builders import row, study, study_run
from tollbar.analysis import StudyJudgement, judge_study
from tollbar.catalog import families
from tollbar.report.sections.against import break_even
from tollbar.results import Row

BLOCKS = 12
SHARES = (0, 50, 90, 99)
EACH_TIME_NS = 1000.0


def judged(miss_ns: float, hit_ns: float, *, noise: float = 0.002, repeat: float = 1.0) -> StudyJudgement:
    """Return a study with a cell that verifies each time and a cell for each share of remembered requests."""
    source = random.Random(f"{miss_ns}/{hit_ns}/{noise}")
    at = {"choice": "jwt", "op": "request", "signature": "hs256", "transport": "tls"}

    def measured(cost_ns: float) -> list[float]:
        return [cost_ns * exp(source.gauss(0, noise)) for _ in range(BLOCKS)]

    base = row({**at, "verified": "each-time"}, measured(EACH_TIME_NS), repeats_ns=measured(EACH_TIME_NS * repeat))
    rows: list[Row] = [base]
    for share in SHARES:
        cost = miss_ns + share / 100 * (hit_ns - miss_ns)
        cached = {**at, "verified": "cached", "hit-share": share}
        rows.append(row(cached, measured(cost), against=base.key))
    about = replace(study(blocks=BLOCKS), family=families.family("web-auth"), choices=("jwt",))
    return judge_study(study_run(rows, (BLOCKS,), about))


def said(judgement: StudyJudgement) -> str:
    (one,) = judgement.break_evens
    return break_even(judgement, one)


def test_a_share_from_which_it_pays() -> None:
    """More expensive without hits, cheaper with many: the line crosses at 50 %."""
    words = said(judged(1400.0, 600.0))
    assert "costs less than" in words
    assert "from a hit share of 50 % on [" in words


SAID = {
    "always": (900.0, 500.0, "costs less than credential verified each time at every hit share that was measured"),
    "never": (2000.0, 1500.0, "costs more than credential verified each time at any hit share that was measured"),
    "alike": (1000.0, 1000.0, "was not found to cost less than credential verified each time at any hit share"),
    "late": (1000.0, 800.0, "this run cannot decide from which hit share on"),
}


@pytest.mark.parametrize("name", SAID)
def test_no_place_is_said_that_was_not_judged(name: str) -> None:
    miss_ns, hit_ns, words = SAID[name]
    assert words in said(judged(miss_ns, hit_ns)).replace("Verified cached", "verified cached")
    assert " on [" not in said(judged(miss_ns, hit_ns))


def test_noise_keeps_a_place_from_being_said() -> None:
    assert " on [" not in said(judged(1200.0, 800.0, repeat=1.35))
