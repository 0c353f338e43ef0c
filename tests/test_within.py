"""The highest load at which 95 % of the answers come within a limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Tollbar
from report_example import digests, judgement
from served_example import arrivals
from tollbar.analysis import StudyJudgement
from tollbar.cli import runs
from tollbar.cli.layouts import TableFormat
from tollbar.core.records import Outcome
from tollbar.report import json_forms
from tollbar.report.blocks import DASH
from tollbar.report.groups import by_cell, by_row
from tollbar.report.sections.load import P95
from tollbar.report.sections.within import PER_S, UNMEASURED, reached, within_cells, within_listing
from tollbar.report.terminal import streams

ROWS = by_cell(arrivals().study.rows)[0][:3]


@pytest.mark.parametrize(
    ("p95_s", "highest", "beyond"),
    [
        ([0.01, 0.02, 0.03], 2, None),
        ([0.01, 0.02, 0.06], 1, 2),
        # A higher load that is within the limit again is chance, or refuses its users quickly.
        ([0.01, 0.06, 0.02], 0, 1),
        ([0.06, 0.07, 0.08], None, 0),
        ([0.05, 0.05, 0.05], 2, None),
        # Nothing is known of a load that failed, so a higher one does not count.
        ([0.01, None, 0.02], 0, 1),
        ([None, 0.01, 0.02], None, 0),
        ([0.01, 0.02, None], 1, 2),
    ],
)
def test_a_load_counts_if_each_lower_one_is_within_the_limit(
    p95_s: list[float | None], highest: int | None, beyond: int | None
) -> None:
    found = reached(ROWS, p95_s, 0.05)
    assert (None if highest is None else ROWS[highest]) is found.highest
    assert (None if beyond is None else ROWS[beyond]) is found.beyond


def test_each_cell_has_its_highest_load() -> None:
    study = arrivals()
    p95 = {key: one.value / PER_S for key, one in by_row(study, P95).items()}
    limit_s = sorted(p95.values())[len(p95) // 2]
    listing = within_listing(study, limit_s)
    assert listing
    (table,) = listing.tables
    assert len(by_cell(study.rows)) >= len(table.rows) > 1
    assert {"cell", "highest rate", "requests / s", "p95", "next rate", "its p95"} == {c.title for c in table.columns}
    nothing = within_listing(study, min(p95.values()) / 2)
    assert nothing
    assert {"–"} == {row[1].says for row in nothing.tables[0].rows}
    everything = within_listing(study, max(p95.values()))
    assert everything
    assert {"–"} == {row[4].says for row in everything.tables[0].rows}


def test_the_document_has_the_same_loads() -> None:
    study = arrivals()
    p95 = {key: one.value / PER_S for key, one in by_row(study, P95).items()}
    limit_s = sorted(p95.values())[len(p95) // 2]
    document = json_forms.of_run(judgement([study, digests()]), limit_s)
    cells = within_cells(study, limit_s)
    assert [study.about.name] * len(cells) == [one["study"] for one in document["within"]]
    for one, cell in zip(document["within"], cells, strict=True):
        assert cell.load == one["by"]
        assert cell.load not in one["setting"]
        for said, row in ((one["highest"], cell.sides.highest), (one["next"], cell.sides.beyond)):
            assert (said is None) is (row is None)
            if row is not None:
                assert (row.coordinates[cell.load], p95[row.key] * PER_S) == (said["load"], said["p95_us"])
    assert json_forms.of_run(judgement([study]))["within"] is None


def failed_at(study: StudyJudgement, key: str) -> StudyJudgement:
    """Return a study whose row of this key failed and has no measurement."""
    rows = tuple(
        replace(row, outcome=Outcome.FAILED, reason="3 of 300 requests failed") if row.key == key else row
        for row in study.rows
    )
    return replace(
        study,
        study=replace(study.study, rows=rows),
        measurements=tuple(one for one in study.measurements if one.row.key != key),
    )


def test_a_load_that_failed_between_two_good_ones_is_the_next_one() -> None:
    lowest, middle, _ = ROWS
    study = failed_at(arrivals(), middle.key)
    (cell,) = (one for one in within_cells(study, 3600.0) if one.sides.highest and one.sides.highest.key == lowest.key)
    assert cell.sides.beyond
    assert middle.key == cell.sides.beyond.key
    listing = within_listing(study, 3600.0)
    assert listing
    assert ["failed"] == [row[5].says for row in listing.tables[0].rows if row[5] != DASH]
    assert UNMEASURED in listing.notes
    (said,) = (one for one in json_forms.of_run(judgement([study]), 3600.0)["within"] if one["next"] is not None)
    assert {"load": middle.coordinates[cell.load], "p95_us": None, "requests_per_s": None, "failed_trials": 0} == said[
        "next"
    ]


def test_a_load_that_failed_in_part_is_the_next_one() -> None:
    """Its other trials have a 95th percentile within the limit: users that are refused do not wait."""
    lowest, middle, _ = ROWS
    study = arrivals()
    first, *others = middle.trials
    refused = replace(first, outcome=Outcome.FAILED, reason="3 of 300 requests failed")
    rows = [replace(r, trials=(refused, *others)) if r.key == middle.key else r for r in study.rows]
    partly = replace(study, study=replace(study.study, rows=tuple(rows)))
    cells = [one for one in within_cells(partly, 3600.0) if one.sides.beyond]
    assert [(lowest.key, middle.key)] == [
        (one.sides.highest and one.sides.highest.key, one.sides.beyond and one.sides.beyond.key) for one in cells
    ]
    listing = within_listing(partly, 3600.0)
    assert listing
    (said,) = (row[5] for row in listing.tables[0].rows if row[5] != DASH)
    assert said.says != "failed"
    assert f"1 of {len(middle.all_trials)} trials failed" == said.small
    assert UNMEASURED in listing.notes
    (document,) = (one for one in json_forms.of_run(judgement([partly]), 3600.0)["within"] if one["next"])
    assert (0, 1) == (document["highest"]["failed_trials"], document["next"]["failed_trials"])
    assert document["next"]["p95_us"] > 0


def test_a_load_that_cannot_be_measured_here_is_left_out() -> None:
    _, middle, _ = ROWS
    study = failed_at(arrivals(), middle.key)
    rows = [replace(r, outcome=Outcome.UNSUPPORTED) if r.key == middle.key else r for r in study.rows]
    absent = replace(study, study=replace(study.study, rows=tuple(rows)))
    assert all(one.sides.beyond is None for one in within_cells(absent, 3600.0))


def test_a_study_of_one_load_has_none() -> None:
    assert within_listing(digests(), 0.05) is None


@pytest.mark.parametrize("layout", ["terminal", "markdown"])
def test_the_answer_precedes_the_report(
    layout: TableFormat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runs, "judged_run", lambda _: judgement([arrivals()]))
    streams.stdout.cache_clear()
    runs.judge(Path("a-run"), within="50ms", format=layout)
    streams.stdout.cache_clear()
    printed = capsys.readouterr().out
    assert printed.index("95 % of the answers within") < printed.index(arrivals().about.question)


def test_the_command_says_so(tollbar: Tollbar, own_run: Path) -> None:
    done = tollbar("judge", own_run, "--within", "50ms")
    assert 2 == done.returncode
    assert "`--within` needs a run with several loads" in done.stderr
    assert "`run --url` several `--users`" in done.stderr
    assert "" == done.stdout
    for words in (["--within", "50ms", "--json"], ["--within", "50ms", "--markdown"], ["--within", "fast"]):
        assert 2 == tollbar("judge", own_run, *words).returncode
    done = tollbar("judge", own_run, "--within", "0ms")
    assert (2, "") == (done.returncode, done.stdout)
    assert "--within 0ms: must be greater than 0" in done.stderr
