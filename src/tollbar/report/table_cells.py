"""Cells of the result tables: coordinates, ratios and standings; and the order in which columns leave a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from tollbar.analysis import StudyJudgement, Verdict
from tollbar.catalog.families import LOADS
from tollbar.core.intervals import Interval
from tollbar.report.blocks import DASH, Table, TableCell
from tollbar.report.coordinates import Form, value_words
from tollbar.report.numbers import NOISY_MARK, bracket, marked, times
from tollbar.report.standings import CALLED_OUT, IN_GOOD_STANDING, STANDINGS, standing_words
from tollbar.results import Row

# Order in which columns leave if there is no room for all.
BAR, ALL_RATIO, STANDING, INTERVAL, OTHERS, SPEED = range(1, 7)


def has_marks(tables: Iterable[Table]) -> bool:
    """Return whether a cell of these tables has the noise mark, which then needs an explanation."""
    cells = (cell for table in tables for row in table.rows for cell in row)
    return any(NOISY_MARK in f"{cell.says}{cell.small or ''}" for cell in cells)


def coordinate_cell(study: StudyJudgement, name: str, row: Row) -> TableCell:
    """Return the cell of a row's coordinate, or `does not apply`."""
    value = row.shown.get(name)
    brief = TableCell(value_words(study.about.family, name, value, Form.TABLE))
    if value is None:
        return TableCell("does not apply", brief=brief)
    says = f"{value:,}" if name in LOADS and value else value_words(study.about.family, name, value)
    return TableCell(says, None if isinstance(value, str) else float(value), brief=brief)


def ratio_cell(ratio: Interval | None) -> TableCell:
    """Return the cell of a ratio with its interval."""
    return DASH if ratio is None else TableCell(times(ratio.estimate), ratio.estimate, interval=bracket(ratio))


def with_ends(
    of: Interval | None,
    words: Callable[[float], str] = times,
    ends: Callable[[Interval], str] = bracket,
    *,
    missing: TableCell = DASH,
    good: bool | None = None,
) -> tuple[TableCell, TableCell]:
    """Return a number, marked if it is noisy, and its interval for a column of its own."""
    if of is None:
        return missing, missing
    return TableCell(marked(words(of.estimate), of.is_noisy), of.estimate, good=good), TableCell(ends(of))


def standing_cell(row: Row) -> TableCell:
    """Return the cell of a standing; one that must be seen moves to the row's name if its column has no room."""
    says, called_out = standing_words(row.standing), row.standing in CALLED_OUT
    return TableCell(
        says,
        float(STANDINGS.index(row.standing)),
        standing=row.standing,
        stays=says if called_out else None,
        good=False if called_out else None,
    )


def bar(ratio: float, threshold: float, widest: float) -> float:
    """Return the length of a ratio's bar, from minus one to one, on a logarithmic scale whose end is `widest`.

    Zero within the threshold: a bar there would show a difference that no verdict supports.
    """
    return 0.0 if 1 / (1 + threshold) <= ratio <= 1 + threshold else math.log(ratio) / widest


def good_news(verdict: Verdict, row: Row) -> bool | None:
    """Return whether a verdict is good news: a saving is only for a recommended or acceptable choice."""
    if verdict is Verdict.COSTS:
        return False
    return True if verdict is Verdict.SAVES and row.standing in IN_GOOD_STANDING else None
