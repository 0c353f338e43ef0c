"""JSON document of two compared runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated, Any, NamedTuple, get_args

from tollbar.analysis import Comparison, Increase
from tollbar.analysis.comparison import Changed, RowChange
from tollbar.core.intervals import Interval
from tollbar.report.json_forms.form import Document, Ends, Form, Number, ends_of, of
from tollbar.report.json_forms.parts import RatioForm, WhereForm
from tollbar.results import Row


class LeftOutRowsForm(Form):
    study: str
    reason: str
    rows: int


class _StudyKey(Form):
    study: str


class _Gone(NamedTuple):
    study: str
    row: Row
    reason: str | None


# The keys of the last base are the first ones.
class GoneForm(WhereForm, _StudyKey):
    reason: str | None


class _Increased(NamedTuple):
    study: str
    row: Row
    found: Increase


class IncreaseForm(WhereForm, _StudyKey):
    quantity: Annotated[str, of("found.quantity")]
    change: Annotated[RatioForm, of(lambda increased: _change(increased.found.change))]


class RatiosForm(WhereForm):
    """Ratios of a row in both runs."""

    other: Annotated[WhereForm, of("other_row")]
    ratios: Annotated[list[Number], of(lambda pair: [pair.one.estimate, pair.other.estimate])]
    intervals: Annotated[list[Ends], of(lambda pair: [pair.one, pair.other])]
    change: Annotated[RatioForm | None, of(lambda pair: _change(pair.ratio_change))]
    relative_difference: Number
    overlap: bool | None


class CostsForm(WhereForm):
    """Costs of a row in both runs."""

    other: Annotated[WhereForm, of("other_row")]
    costs: Annotated[list[Number], of(lambda pair: [pair.cost.estimate, pair.other_cost.estimate])]
    intervals: Annotated[list[Ends], of(lambda pair: [pair.cost, pair.other_cost])]
    change: Annotated[RatioForm | None, of(lambda pair: _change(pair.cost_change))]


class _StudyPairs(NamedTuple):
    study: str
    without_partner: tuple[int, int]
    unmatched: Sequence[Sequence[Row]]
    pairs: Sequence[RowChange]


class ComparedStudyForm(Form):
    study: str
    without_partner: list[int]
    unmatched: list[list[WhereForm]]
    tolls: Annotated[list[RatiosForm], of(lambda study: [one for one in study.pairs if one.one and one.other])]
    costs: Annotated[list[CostsForm], of(lambda study: [one for one in study.pairs if one.cost and one.other_cost])]


class _Compared(NamedTuple):
    found: Comparison
    increases: Sequence[Increase]
    above: float | None


class ComparisonDocument(Document):
    runs: Annotated[list[str], of(lambda compared: [compared.found.one, compared.found.other])]
    fingerprint_differences: Annotated[list[str], of("found.fingerprint_differences")]
    upgrades: Annotated[list[str], of("found.upgrades")]
    median_difference: Annotated[Number, of("found.median_difference")]
    overlapping: Annotated[Number, of("found.overlapping")]
    left_out: Annotated[list[LeftOutRowsForm], of("found.left_out")]
    gone: Annotated[list[GoneForm], of(lambda compared: _gone(compared.found))]
    tellable: Annotated[dict[str, int], of(lambda compared: _tellable(compared.found, compared.above))]
    increases: Annotated[list[IncreaseForm], of(lambda compared: _increases(compared.increases))]
    studies: Annotated[list[ComparedStudyForm], of(lambda compared: _studies(compared.found))]


def of_comparison(
    comparison: Comparison, increases: Sequence[Increase] = (), above: float | None = None
) -> dict[str, Any]:
    """Return the document of two runs' costs and ratios side by side, and of increases beyond the allowed share."""
    return ComparisonDocument.read(_Compared(comparison, increases, above)).model_dump(mode="json")


def _change(change: Interval | None) -> RatioForm | None:
    """Return the ratio of the second over the first, with its interval."""
    if change is None:
        return None
    low, high = ends_of(change)
    return RatioForm(ratio=change.estimate, low=low, high=high)


def _gone(found: Comparison) -> Sequence[_Gone]:
    return [
        _Gone(study, row, found.failures.get((study, row.key))) for study, rows in found.gone.items() for row in rows
    ]


def _tellable(found: Comparison, above: float | None) -> Mapping[str, int]:
    return {quantity: found.tellable(quantity, above or inf) for quantity in get_args(Changed)}


def _increases(found: Sequence[Increase]) -> Sequence[_Increased]:
    return [_Increased(one.study, one.pair.row, one) for one in found]


def _studies(found: Comparison) -> Sequence[_StudyPairs]:
    return [_StudyPairs(name, found.alone[name], found.unmatched[name], pairs) for name, pairs in found.studies.items()]
