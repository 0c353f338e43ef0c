"""The highest load at which 95 % of the answers come within a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Tollbar
from report_example import digests, judgement
from served_example import arrivals
from tollbar.report import json_forms
from tollbar.report.groups import by_cell, by_row
from tollbar.report.sections.load import P95
from tollbar.report.sections.within import PER_S, reached, within_cells, within_listing

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
    ],
)
def test_a_load_counts_if_each_lower_one_is_within_the_limit(
    p95_s: list[float], highest: int | None, beyond: int | None
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
        for said, row in ((one["highest"], cell.sides.highest), (one["next"], cell.sides.beyond)):
            assert (said is None) is (row is None)
            if row is not None:
                assert (row.coordinates[cell.load], p95[row.key] * PER_S) == (said["load"], said["p95_us"])
    assert json_forms.of_run(judgement([study]))["within"] is None


def test_a_study_of_one_load_has_none() -> None:
    assert within_listing(digests(), 0.05) is None


def test_the_command_says_so(tollbar: Tollbar, own_run: Path) -> None:
    done = tollbar("judge", own_run, "--within", "50ms")
    assert 2 == done.returncode
    assert "`--within` needs a run with several loads" in done.stderr
    for words in (["--within", "50ms", "--json"], ["--within", "50ms", "--markdown"], ["--within", "fast"]):
        assert 2 == tollbar("judge", own_run, *words).returncode
