"""Forms: keys are read from a value by their sources, and a missing source is an error."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

import pytest

from tollbar.core.intervals import Interval
from tollbar.report.json_forms.form import OMITTED, Bounded, Ends, Form, Number, high_of, low_of, of, within

KNOWN, OPEN = Interval(1.0, 0.9, 1.1, 0.96, 12), Interval(1.0, 0.0, inf, 0.96, 3)


@dataclass
class _Cell:
    name: str
    ratio: Interval | None = None
    limit: str | None = None


class _CellForm(Form):
    kind: Literal["cell"] = "cell"
    name: str
    at: Annotated[str, within(lambda cell, run: f"{run}/{cell.name}")]
    ratio: Annotated[Number, of("ratio.estimate")]
    low: Annotated[Number, low_of("ratio")]
    high: Annotated[Number, high_of("ratio")]
    ends: Annotated[Ends, of("ratio")]
    bounded: Annotated[Bounded, of("ratio")]
    is_long: Annotated[bool, of(lambda cell: len(cell.name) > 3)]
    limit: Annotated[str | None, OMITTED, of("limit")] = None


class _ListForm(Form):
    cells: list[_CellForm]


class _RenamedForm(Form):
    name: Annotated[str | None, of("ratio.title")]


@dataclass
class _List:
    cells: tuple[_Cell, ...]


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (KNOWN, {"ratio": 1.0, "low": 0.9, "high": 1.1, "ends": [0.9, 1.1], "bounded": [0.9, 1.1]}),
        (OPEN, {"ratio": 1.0, "low": None, "high": None, "ends": [None, None], "bounded": None}),
        (None, {"ratio": None, "low": None, "high": None, "ends": None, "bounded": None}),
    ],
)
def test_an_open_end_is_null(ratio: Interval | None, expected: dict[str, object]) -> None:
    found = _ListForm.read(_List((_Cell("one", ratio),)), "run").model_dump(mode="json")
    assert {"kind": "cell", "name": "one", "at": "run/one", **expected, "is_long": False} == found["cells"][0]


def test_a_key_that_is_omitted_is_there_where_it_has_a_value() -> None:
    assert "core" == _CellForm.read(_Cell("one", limit="core"), "run").model_dump()["limit"]
    assert "limit" not in _CellForm.model_json_schema(mode="serialization")["required"]


def test_a_renamed_attribute_is_an_error_and_no_null() -> None:
    assert _RenamedForm.read(_Cell("one")).name is None
    with pytest.raises(AttributeError, match="title"):
        _RenamedForm.read(_Cell("one", KNOWN))


def test_a_document_that_is_read_back_is_the_same() -> None:
    found = _ListForm.read(_List((_Cell("one", KNOWN), _Cell("other", OPEN))), "run").model_dump(mode="json")
    assert found == _ListForm.model_validate(found).model_dump(mode="json")
