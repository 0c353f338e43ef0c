"""Results of the judge in all layouts: the report, the tables and the document accept everything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from report_example import digests, judgement
from served_example import arrivals, asked_only, handshakes
from tollbar import analysis
from tollbar.analysis import Judgement
from tollbar.report import html, json_forms
from tollbar.report.groups import all_metric, by_row, cost_metric
from tollbar.report.sections.cpu import bars
from tollbar.report.terminal import show_judgement, streams


@pytest.fixture(scope="module")
def judged() -> Judgement:
    """Return the examples' trials, judged by the judge."""
    return judgement([analysis.judge_study(s.study) for s in (digests(), handshakes(), arrivals(), asked_only())])


def test_all_that_the_judge_gives_is_shown(
    judged: Judgement, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html.write(judged, tmp_path / "report.html")
    streams.stdout.cache_clear()
    show_judgement(judged, everything=True)
    streams.stdout.cache_clear()
    shown = capsys.readouterr().out
    found = json.loads(json.dumps(json_forms.of_run(judged), allow_nan=False))
    page = (tmp_path / "report.html").read_text("utf-8")
    for study, written in zip(judged.studies, found["studies"], strict=True):
        name = study.study.study.name
        table = page.partition(f"<caption>Every cell of the study {name},")[2].partition("</table>")[0]
        assert len(study.study.rows) == len(re.findall("<tr[ >]", table)) - 1
        assert study.study.study.question in shown
        assert len(study.tolls) == len(written["tolls"])


def test_the_parts_of_what_the_judge_gives_are_found(judged: Judgement) -> None:
    for study in judged.studies:
        cost, all_samples = (by_row(study, name) for name in (cost_metric(study), all_metric(study)))
        assert cost
        assert cost.keys() == all_samples.keys()
    served = judged.studies[1]
    assert {"httpd", "embedded"} == {bar.row.server for bar in bars(served)}
    assert {2, 3} == {len(bar.parts) for bar in bars(served)}
