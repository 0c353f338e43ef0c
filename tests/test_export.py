"""Rows for other programs: each value in a column of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from report_example import example
from tollbar.analysis import Judgement
from tollbar.catalog.families import families
from tollbar.core.errors import TollbarError
from tollbar.report import json_forms
from tollbar.results import export, free_names, write
from tollbar.results.export import _rows
from tollbar.results.run import Row, StudyRun

# Possible names of a parameter: those of all families and of all columns.
PARAMETERS = sorted(
    {name for family in families().values() for name in family.settings}
    | {name for family in families().values() for choice in family.choices.values() for name in choice.setting}
)


def with_parameters(judged: Judgement, names: list[str]) -> Judgement:
    """Add these parameters to each cell, each with a unique value."""

    def named(one: StudyRun) -> StudyRun:
        own = {name: f"value of {name}" for name in names}
        return replace(one, rows=tuple(replace(row, coordinates={**own, **row.coordinates}) for row in one.rows))

    studies = tuple(replace(one, study=named(one.study)) for one in judged.studies)
    return replace(judged, run=replace(judged.run, studies=tuple(one.study for one in studies)), studies=studies)


def lost(row: dict[str, Any], names: list[str]) -> list[str]:
    return [name for name in names if f"value of {name}" not in row.values()]


def test_no_parameter_takes_the_place_of_a_column() -> None:
    judged = example()
    before = [*json_forms.cell_rows(judged)]
    names = [name for name in (*PARAMETERS, *before[0]) if name not in judged.studies[0].rows[0].coordinates]
    rows = [*json_forms.cell_rows(with_parameters(judged, names))]
    assert [] == [name for row in rows for name in lost(row, names)]
    assert before == [{name: row[name] for name in one} for row, one in zip(rows, before, strict=True)]


def test_no_parameter_takes_the_place_of_a_column_of_chunks() -> None:
    judged = example()
    before = [*_rows(judged.run)]
    names = [name for name in {*PARAMETERS, *before[0]} if name not in judged.studies[0].rows[0].coordinates]
    rows = [*_rows(with_parameters(judged, names).run)]
    assert [] == [name for row in rows for name in lost(row, names)]
    assert before == [{name: row[name] for name in one} for row, one in zip(rows, before, strict=True)]


def test_shipped_families_keep_their_names() -> None:
    columns = {*next(json_forms.cell_rows(example()))} - {*example().studies[0].rows[0].coordinates}
    assert [] == [name for name in PARAMETERS if name in columns]
    assert {"cost": "setting_cost", "bytes": "bytes"} == free_names(["cost", "bytes"], {"cost"})


def test_a_long_reason_is_not_written_for_each_chunk() -> None:
    judged = example()

    def failed(row: Row) -> Row:
        return replace(row, trials=tuple(replace(trial, reason="x" * 60_000) for trial in row.trials))

    studies = [replace(one.study, rows=tuple(map(failed, one.study.rows))) for one in judged.studies]
    reasons = {len(row["reason"] or "") for row in _rows(replace(judged.run, studies=tuple(studies)))}
    assert {0, 1001} >= reasons > {0}


def test_long_texts_of_cells_are_not_repeated_without_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    to = tmp_path / "chunks.csv"
    export(example().run, "csv", to)
    before = to.read_text()
    assert before
    monkeypatch.setattr(sys.modules[export.__module__], "MOST_REPEATED", 1000)
    with pytest.raises(TollbarError, match=r"would repeat .*; the limit is ") as raised:
        export(example().run, "csv", to)
    assert "--per cell" in (raised.value.hint or "")
    assert before == to.read_text()


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_pipe_that_nothing_reads_from_is_one_line(tmp_path: Path, form: str) -> None:
    """Opening such a pipe would wait for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TollbarError, match=r"cannot be written: .*No such device or address"):
        write(lambda: iter([{"a": 1}]), form, pipe)


def test_a_pipe_that_is_read_from_has_the_rows(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(lambda: iter([{"a": 1}]), "csv", pipe)
        assert ["a", "1"] == os.read(reader, 100).decode().split()
    finally:
        os.close(reader)
