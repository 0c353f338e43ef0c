"""View of an analysed study: derived values are computed once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from report_example import digests, judgement
from tollbar.analysis import StudyJudgement
from tollbar.report import json_forms, page
from tollbar.report.sections.columns import MainTable
from tollbar.report.sections.telling import Telling
from tollbar.report.sections.uses import Uses
from tollbar.report.view import once


def test_all_that_show_a_study_have_one_view_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def noted(kind: type) -> None:
        begin = kind.__init__

        def noting(self: object, study: StudyJudgement) -> None:
            made.append(kind.__name__)
            begin(self, study)

        monkeypatch.setattr(kind, "__init__", noting)

    for kind in (Telling, Uses, MainTable):
        noted(kind)
    shown = judgement([replace(digests())])
    page.page(shown)
    page.briefs(shown)
    page.briefs(shown, everything=True)
    json_forms.of_run(shown)
    assert ["MainTable", "Telling", "Uses"] == sorted(made)


def test_a_study_of_other_rows_has_another_view() -> None:
    @once
    def count(study: StudyJudgement) -> list[int]:
        return [len(study.measurements)]

    study = digests()
    fewer = replace(study, measurements=study.measurements[1:])
    assert count(study) is count(study)
    assert [len(study.measurements) - 1] == count(fewer)
