"""Parts of a study's document that combine several cells: contrasts, tables, factors and scaling."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from tollbar.analysis import CrossCell, CrossTableResult, FactorsResult
from tollbar.core.intervals import Interval
from tollbar.report.json_forms.form import Ends, Form, Number, Value, Values, high_of, low_of, of, within
from tollbar.report.json_forms.parts import RatioForm, WhereForm, names_of, names_of_all
from tollbar.results import Row


class ContrastForm(Form):
    setting: str
    value: Annotated[Value, within(lambda contrast, run: run.named(contrast.setting, contrast.value))]
    for_value: Annotated[Value, within(lambda contrast, run: run.named(contrast.setting, contrast.for_value))] = Field(
        alias="for"
    )
    where: Annotated[dict[str, list[Value]], within(lambda contrast, run: names_of_all(contrast.where, run))]
    low: Annotated[Number, low_of()]
    high: Annotated[Number, high_of()]
    least: Number
    most: Number
    pairs: int
    verdict: str
    more_blocks: int | None


class _TableCellForm(Form):
    column: Annotated[Value, within(lambda cell, run: run.named(cell.columns, cell.row.coordinates[cell.columns]))]
    ratio: Annotated[Number, of("found.ratio.estimate")]
    low: Annotated[Number, low_of("found.ratio")]
    high: Annotated[Number, high_of("found.ratio")]
    verdict: Annotated[str | None, of("found.verdict")]
    more_blocks: Annotated[int | None, of("found.more_blocks")]
    cost: Annotated[Number, of("found.cost.estimate")]
    cost_interval: Annotated[Ends, of("found.cost")]
    unit: Annotated[str, of("found.unit")]
    is_over: Annotated[bool, of("found.is_over")]
    outcome: Annotated[str, of("row.outcome")]
    reason: Annotated[str | None, of("found.reason")]


# The keys of the last base are the first ones.
class TableCellForm(WhereForm, _TableCellForm):
    """Cell of a table, with its coordinates."""


class _TableCell(NamedTuple):
    columns: str
    found: CrossCell

    @property
    def row(self) -> Row:
        return self.found.row


class _TableRow(NamedTuple):
    result: CrossTableResult
    row: Value

    @property
    def cells(self) -> Sequence[_TableCell]:
        found = [self.result.at(self.row, column) for column in self.result.columns]
        return [_TableCell(self.result.table.columns, cell) for cell in found if cell]


class TableRowForm(Form):
    row: Annotated[Value, within(lambda one, run: run.named(one.result.table.rows, one.row))]
    cells: list[TableCellForm]


class StudyTableForm(Form):
    title: Annotated[str, of("table.title")]
    rows_are: Annotated[str, of("table.rows")]
    columns_are: Annotated[str, of("table.columns")]
    metric: Annotated[str | None, of("table.metric")]
    over: Annotated[Values, within(lambda result, run: names_of(result.table.over, run))]
    where: Annotated[Values, within(lambda result, run: names_of(result.table.where, run))]
    rows: Annotated[list[TableRowForm], of(lambda result: [_TableRow(result, row) for row in result.rows])]


class FactorCostForm(WhereForm):
    cost: Annotated[float, of("cost.estimate")]
    interval: Annotated[Ends, of("cost")]


class FactorPartForm(Form):
    factors: list[str]
    added: Annotated[float, of("added.estimate")]
    interval: Annotated[Ends, of("added")]


class _FactorCost(NamedTuple):
    row: Row
    cost: Interval


class FactorsForm(Form):
    factors: Annotated[dict[str, tuple[Value, Value]], within(lambda _, run: names_of_all(run.study.factors, run))]
    at: Annotated[Values, within(lambda result, run: names_of(_without_factors(result, run.study.factors), run))]
    costs: Annotated[list[FactorCostForm], of(lambda result: [_FactorCost(*one) for one in result.reckoned])]
    parts: list[FactorPartForm]
    beyond: Annotated[Number, of("beyond.estimate")]
    beyond_interval: Annotated[Ends, of("beyond")]
    ratio: Annotated[Number, of("ratio.estimate")]
    low: Annotated[Number, low_of("ratio")]
    high: Annotated[Number, high_of("ratio")]
    noisy: Annotated[bool | None, of("beyond.is_noisy")]
    verdict: str
    reason: str | None


class ScalingSideForm(RatioForm):
    verdict: str
    noisy: Annotated[bool | None, of("ratio.is_noisy")]


class ScalingForm(WhereForm):
    threads: int
    verdict: str
    reason: str | None
    cpu: ScalingSideForm
    elapsed: ScalingSideForm


def _without_factors(result: FactorsResult, factors: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in result.rows[0].coordinates.items() if name not in factors}
