"""The tables that a study asks for: a row for each value of one coordinate, a column for each of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tollbar.families import Value
from tollbar.judge import CrossCell, CrossTableResult, StudyJudgement
from tollbar.present import words
from tollbar.present.cells import varying, where_words
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Column, Table, numbers
from tollbar.records import Outcome

# A reason is told in whole where every result is.
REASON_LETTERS = 160

NameOf = Callable[[str, Value], str]
"""Writes a coordinate's value."""


def table(study: StudyJudgement, result: CrossTableResult) -> Table:
    """One of them for a page."""
    return laid_out(study, result, _title_of(study), _cell, _caption(study, result))


def laid_out(
    study: StudyJudgement,
    result: CrossTableResult,
    name: NameOf,
    written: Callable[[CrossCell], Cell],
    caption: str,
) -> Table:
    """Every place of the table; a dash where no cell was planned, and in rows and columns that have no number."""
    about = result.table
    gone = {cell.row.key for _, _, cells in _gone(result) for cell in cells}

    def cell(row: Value, column: Value) -> Cell:
        found = result.at(row, column)
        return Cell("–") if found is None or found.row.key in gone else written(found)

    return Table(
        caption,
        (
            Column(words.column_title(study.about.family, about.rows), names=True),
            *numbers(*(name(about.columns, column) for column in result.columns)),
        ),
        [(Cell(name(about.rows, row)), *(cell(row, column) for column in result.columns)) for row in result.rows],
    )


def where(study: StudyJudgement, result: CrossTableResult) -> dict[str, Value]:
    """Where its cells stand, as far as not all cells of the study stand there."""
    vary = varying(study.rows)
    return {name: value for name, value in result.table.where.items() if name in vary}


def _caption(study: StudyJudgement, result: CrossTableResult) -> str:
    over, at = (
        where_words(study, {name: (value,) for name, value in of.items()})
        for of in (result.table.over, where(study, result))
    )
    times = f", as a multiple of that {over}, all else alike" if over else ""
    sure = f"with {words.percent(study.confidence)} intervals"
    return "; ".join(filter(None, (f"{shown(study, result)}{times}", at, sure)))


def shown(study: StudyJudgement, result: CrossTableResult) -> str:
    """What its numbers are."""
    metric = study.about.family.metrics.get(result.table.metric or "")
    return metric.title if metric else f"{cost_words(study).title}, undisturbed"


def gaps(study: StudyJudgement, result: CrossTableResult, name: NameOf | None = None) -> list[str]:
    """For each row and each column without a number, why, in short."""
    name = name or _title_of(study)
    return [f"{name(side, value)}: {reason_of(cells)}" for side, value, cells in _gone(result)]


def reason_of(group: Sequence[CrossCell]) -> str:
    """What became of the first of these, in short; that there are other reasons is said."""
    outcome = group[0].row.outcome
    reasons = list(dict.fromkeys(cell.reason or "no reason was recorded" for cell in group))
    short = " ".join(reasons[0].split())
    if len(short) > REASON_LETTERS:
        short = f"{short[: REASON_LETTERS - 1].rstrip()}…"
    more = f" (and {words.counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return f"{'not measured' if outcome is Outcome.OK else outcome}: {short}{more}"


def _gone(result: CrossTableResult) -> list[tuple[str, Value, list[CrossCell]]]:
    """The rows, then the columns, none of whose cells was measured: coordinate, value and cells."""
    about = result.table
    lines = [
        (side, value, [cell for cell in result.cells if cell.row.coordinates[side] == value])
        for side, values in ((about.rows, result.rows), (about.columns, result.columns))
        for value in values
    ]
    return [line for line in lines if all(cell.cost is None for cell in line[2])]


def _title_of(study: StudyJudgement) -> NameOf:
    def title(name: str, value: Value) -> str:
        return words.value_words(study.about.family, name, study.study.named(name, value))

    return title


def _cell(cell: CrossCell) -> Cell:
    if cell.cost is None:
        return Cell("not measured" if cell.row.outcome is Outcome.OK else str(cell.row.outcome))
    cost = words.amount(cell.cost.estimate, cell.unit)
    if cell.ratio is None or cell.verdict is None:
        return Cell(cost, small=cell.reason or words.ends(cell.cost.low, cell.cost.high, cell.unit))
    small = f"{words.bracket(cell.ratio)} {cell.verdict}"
    return Cell(words.times(cell.ratio.estimate), small=small, mark=words.VERDICT_MARKS[cell.verdict])
