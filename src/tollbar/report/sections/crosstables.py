"""Tables that a study requests: costs by two coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tollbar.analysis import CrossCell, CrossTableResult, StudyJudgement
from tollbar.catalog.families import Value
from tollbar.core.records import Outcome
from tollbar.core.words import counted
from tollbar.report.blocks import DASH, Column, Items, Listing, Pick, Table, TableCell
from tollbar.report.coordinates import Form, column_title, named_value, value_words
from tollbar.report.costs import cost_words
from tollbar.report.names import varied, where_words
from tollbar.report.numbers import (
    VERDICT_MARKS,
    amount,
    bracket,
    ends_words,
    interval_title,
    percent,
    ratio_words,
    times,
)
from tollbar.report.table_cells import good_news
from tollbar.report.view import once

# Longer reasons are complete only in the table of every result.
REASON_LETTERS = 160
NameOf = Callable[[str, Value], str]
"""Function that returns a coordinate's value in words."""


@once
def study_tables(study: StudyJudgement) -> tuple[Listing, ...]:
    """Return the tables that a study requests, in its order."""
    return tuple(study_table(study, result) for result in study.tables)


def study_table(study: StudyJudgement, result: CrossTableResult) -> Listing:
    """Return a table with a row for each value of one coordinate and a column for each of another.

    A dash marks places where no cell was planned, and rows and columns without any number: the reasons are below the
    table.
    """
    about, title, plain_name = result.table, _title_of(study), _plain_of(study)
    gone = _gone(result)
    without = {cell.row.key for _, _, cells in gone for cell in cells}

    def cell(row: Value, column: Value) -> TableCell:
        found = result.at(row, column)
        return DASH if found is None or found.row.key in without else _cross_cell(found)

    head = column_title(study.about.family, about.rows)
    table = Table(
        _table_caption(study, result),
        (
            Column(head, names=True, key="row"),
            *(Column(title(about.columns, column), True, key=str(column)) for column in result.columns),
        ),
        [
            (
                TableCell(title(about.rows, row), brief=TableCell(plain_name(about.rows, row))),
                *(cell(row, column) for column in result.columns),
            )
            for row in result.rows
        ],
    )
    picks = [Pick("row", head), *(Pick(str(value), plain_name(about.columns, value)) for value in result.columns)]
    short = " · ".join(_brief_caption(study, result))
    return Listing(
        about.title,
        tables=table.picked(picks, [("", range(len(table.rows)))]),
        caption=f"{short} · {interval_title(study)}s",
        short_caption=short,
        notes=_gaps(gone, plain_name),
        whole=[table, Items(_gaps(gone, title))],
    )


def _shows(study: StudyJudgement, result: CrossTableResult) -> str:
    """Return the title of its numbers."""
    metric = study.about.family.metrics.get(result.table.metric or "")
    return metric.title if metric else f"{cost_words(study).title}, quiet"


def _stands(study: StudyJudgement, result: CrossTableResult) -> dict[str, Value]:
    """Return the coordinates of its cells in which the study's cells differ."""
    vary = varied(study)
    return {name: value for name, value in result.table.where.items() if name in vary}


def _table_caption(study: StudyJudgement, result: CrossTableResult) -> str:
    over, at = (
        where_words(study, {name: (value,) for name, value in of.items()})
        for of in (result.table.over, _stands(study, result))
    )
    multiple = f", as a multiple of that {over}, everything else equal" if over else ""
    sure = f"with {percent(study.confidence)} intervals"
    return "; ".join(filter(None, (f"{_shows(study, result)}{multiple}", at, sure)))


def _brief_caption(study: StudyJudgement, result: CrossTableResult) -> list[str]:
    over, at = (
        ", ".join(
            named_value(study.about.family, name, study.study.named(name, value), Form.TABLE)
            for name, value in of.items()
        )
        for of in (result.table.over, _stands(study, result))
    )
    multiple = f", as a multiple of {over}, everything else equal" if over else ""
    return [f"{_shows(study, result)}{multiple}", *([at] if at else [])]


def _gaps(gone: Sequence[tuple[str, Value, list[CrossCell]]], name: NameOf) -> tuple[str, ...]:
    return tuple(f"{name(side, value)}: {_reason_of(cells)}" for side, value, cells in gone)


def _reason_of(group: Sequence[CrossCell]) -> str:
    """Return the outcome of the first of these cells, shortened, and the number of other reasons."""
    outcome = group[0].row.outcome
    reasons = list(dict.fromkeys(cell.reason or "no reason was recorded" for cell in group))
    short = " ".join(reasons[0].split())
    if len(short) > REASON_LETTERS:
        short = f"{short[: REASON_LETTERS - 1].rstrip()}…"
    more = f" (and {counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return f"{'not measured' if outcome is Outcome.OK else outcome}: {short}{more}"


def _gone(result: CrossTableResult) -> list[tuple[str, Value, list[CrossCell]]]:
    """Return the rows, then the columns, without any measured cell: coordinate, value and cells."""
    about = result.table
    lines = [
        (side, value, [cell for cell in result.cells if cell.row.coordinates[side] == value])
        for side, values in ((about.rows, result.rows), (about.columns, result.columns))
        for value in values
    ]
    return [line for line in lines if all(cell.cost is None for cell in line[2])]


def _title_of(study: StudyJudgement) -> NameOf:
    def title(name: str, value: Value) -> str:
        return value_words(study.about.family, name, study.study.named(name, value))

    return title


def _plain_of(study: StudyJudgement) -> NameOf:
    return lambda name, value: value_words(study.about.family, name, study.study.named(name, value), Form.TABLE)


def _cross_cell(cell: CrossCell) -> TableCell:
    if cell.cost is None:
        return TableCell("not measured" if cell.row.outcome is Outcome.OK else str(cell.row.outcome))
    if cell.ratio is None or cell.verdict is None:
        cost = amount(cell.cost.estimate, cell.unit)
        # In place of the interval, the reason why there is no ratio.
        small = cell.reason or ends_words(cell.cost.low, cell.cost.high, cell.unit)
        return TableCell(cost, small=small, brief=TableCell(cost))
    ratio, interval = ratio_words(cell.ratio.estimate), bracket(cell.ratio)
    return TableCell(
        times(cell.ratio.estimate),
        interval=interval,
        small=str(cell.verdict),
        mark=VERDICT_MARKS[cell.verdict],
        brief=TableCell(
            f"{ratio} {interval} {cell.verdict}" if cell.ratio.is_bounded else f"{ratio} {cell.verdict}",
            short=f"{ratio} {cell.verdict}",
            verdict=cell.verdict,
            good=good_news(cell.verdict, cell.row),
        ),
    )
