"""Forms that the documents of runs, of sources and of comparisons share: cells, ratios and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from tollbar.report.json_forms.form import OMITTED, Form, Number, Value, Values, high_of, low_of, of, within
from tollbar.results import Row, StudyRun


def _row_of(value: Any) -> Row:
    return value if isinstance(value, Row) else value.row


class WhereForm(Form):
    """Coordinates of a cell: of a row, or of an item that has one."""

    choice: Annotated[str, of(lambda value: _row_of(value).choice)]
    provider: Annotated[str, of(lambda value: _row_of(value).provider)]
    server: Annotated[str | None, of(lambda value: _row_of(value).server)]
    server_version: Annotated[str | None, of(lambda value: _row_of(value).server_version)]
    setting: Annotated[Values, of(lambda value: _row_of(value).setting)]


class RatioForm(Form):
    """Ratio with its interval."""

    ratio: Annotated[Number, of("ratio.estimate")]
    low: Annotated[Number, low_of("ratio")]
    high: Annotated[Number, high_of("ratio")]


class FigureForm(Form):
    value: Annotated[Number, of(lambda figure: figure[0])]
    unit: Annotated[str, of(lambda figure: figure[1])]


class BySourceForm(Form):
    """Figures by the statistic of a study's source."""

    statistic: Annotated[str, within(lambda _, run: run.study.statistic)]
    unit: str
    mean: Number
    error: Number
    deviation: Number
    ratio: Number
    blocks: int


class EndForm(Form):
    """Ratio at one of the two values between which a claim's ratio grows."""

    ratio: Annotated[Number, of("estimate")]
    low: Annotated[Number, low_of()]
    high: Annotated[Number, high_of()]


class ClaimForm(Form):
    says: Annotated[str, of("claim.says")]
    where: Annotated[str | None, of("claim.where")]
    metric: Annotated[str, of("claim.metric")]
    component: Annotated[str | None, of("claim.component")]
    published: Annotated[Number, of("claim.one_ratio")]
    published_range: Annotated[list[Number] | None, of(lambda result: result.claim.ratio or None)]
    order: Annotated[str | None, of("claim.order")]
    grows: Annotated[dict[str, list[Value]], within(lambda result, run: names_of_all(result.claim.grows, run))]
    throughout: Annotated[str | None, of("claim.throughout"), OMITTED] = None
    words: Annotated[str | None, of("claim.words"), OMITTED] = None
    published_figures: Annotated[list[str], of(lambda result: [amount.text for amount in result.claim.published])]
    published_error: Annotated[str | None, of("claim.error.text")]
    published_deviation: Annotated[str | None, of("claim.deviation.text")]
    figures: Annotated[list[FigureForm], of("values")]
    ratio: Annotated[Number, of("ratio.estimate")]
    low: Annotated[Number, low_of("ratio")]
    high: Annotated[Number, high_of("ratio")]
    all_: Annotated[Number, of("all_samples.estimate")] = Field(alias="all")
    ends: Annotated[list[EndForm] | None, of("ends"), OMITTED] = None
    rates: list[Number] | None
    by_source: BySourceForm | None
    verdict: str
    provider: Annotated[Value | None, within(lambda result, run: names_of(result.at, run).get("provider"))]
    server: Annotated[Value | None, within(lambda result, run: names_of(result.at, run).get("server"))]
    setting: Annotated[Values, within(lambda result, run: names_of(_setting(result.at), run))]
    note: Annotated[str | None, of("claim.note")]
    reason: str | None


def names_of(coordinates: Mapping[str, Value], run: StudyRun) -> dict[str, Value]:
    """Return coordinates as rows print them: a provider by its name with the version."""
    return {name: run.named(name, value) for name, value in coordinates.items()}


def names_of_all(coordinates: Mapping[str, tuple[Value, ...]], run: StudyRun) -> dict[str, list[Value]]:
    """Return coordinates of several values as rows print them."""
    return {name: [run.named(name, value) for value in values] for name, values in coordinates.items()}


def _setting(coordinates: Mapping[str, Value]) -> Mapping[str, Value]:
    return {name: value for name, value in coordinates.items() if name not in ("provider", "server")}
