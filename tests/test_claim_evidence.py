"""Evidence next to an inverted claim: the run's measurements of its two cells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import claim, row, study_run
from builders import study as study_of
from tollbar.analysis import ClaimVerdict, Measurement, judge_study
from tollbar.report.sections.published.evidence import evidence
from tollbar.report.sections.published.lines import Line
from tollbar.study import Claim

PLACES = {"a": ("service", "no", 100.0), "b": ("machine", "yes", 210.0), "c": ("service", "yes", 205.0)}
OF = {"api": "service", "digest": "no"}
OVER = {"api": "machine", "digest": "yes"}


def line_of(said: Claim, verdict: ClaimVerdict | None = None) -> Line:
    """Return the result of a claim about three cells, which two settings distinguish."""
    rows = [row({"choice": "baseline"}, [100.0] * 6, repeats_ns=[100.0] * 6)]
    rows += [
        row({"choice": "x", "api": api, "digest": digest}, [cost + 0.01 * n for n in range(6)])
        for api, digest, cost in PLACES.values()
    ]
    judged = judge_study(study_run(rows, (6,), study_of(claims=[said])))
    parts = [
        Measurement(one, "cpu", "ns/op", share * cost, 0.0, 0.0, 6, component=component)
        for one, (_, _, cost) in zip(rows[1:], PLACES.values(), strict=True)
        for component, share in (("web", 0.9), ("proxy", 0.1), ("directory", 0.001))
    ]
    judged = replace(judged, measurements=(*judged.measurements, *parts))
    (result,) = judged.claims
    return Line(judged.about, judged, replace(result, verdict=verdict or result.verdict))


def test_an_inverted_claim_has_its_components_and_its_settings_one_at_a_time() -> None:
    line = line_of(claim(OF, OVER, order="less"))
    assert ClaimVerdict.INVERTED is line.result.verdict
    said = evidence(line)
    assert said is not None
    assert "CPU time of web 90.0 ns over 189 ns" in said
    assert "CPU time of proxy 10.0 ns over 21.0 ns" in said
    # Less than a hundredth of the CPU time.
    assert "directory" not in said
    # The study has no cell of the first account with the other's setting, and the reverse.
    assert "with digest `yes` in place of `no`, all else equal, ×\u00a02.05 of the CPU time" in said
    assert "with api" not in said


@pytest.mark.parametrize("verdict", [ClaimVerdict.STILL_TRUE, ClaimVerdict.SMALLER, ClaimVerdict.CANNOT_TELL])
def test_other_claims_need_none(verdict: ClaimVerdict) -> None:
    assert evidence(line_of(claim(OF, OVER, order="less"), verdict)) is None


def test_a_difference_where_none_was_published_is_explained_too() -> None:
    equal, greater = (line_of(claim(OF, OVER, ratio)) for ratio in (1.0, 1.5))
    assert [ClaimVerdict.LARGER] * 2 == [line.result.verdict for line in (equal, greater)]
    assert evidence(equal) is not None
    assert evidence(greater) is None


def test_nothing_is_said_where_nothing_else_was_measured() -> None:
    line = line_of(claim({**OF, "digest": "yes"}, OVER, order="more"), ClaimVerdict.INVERTED)
    assert line.judged is not None
    bare = replace(line.judged, measurements=tuple(one for one in line.judged.measurements if one.component is None))
    assert evidence(replace(line, judged=bare)) is None
    assert evidence(replace(line, judged=None)) is None
