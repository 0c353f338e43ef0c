"""Cells of the tables of results: coordinates, ratios and standings; and in which order columns leave a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from tollbar.analysis import StudyJudgement, Verdict
from tollbar.catalog.families import LOADS
from tollbar.core.stats import Interval
from tollbar.report.blocks import DASH, Table, TableCell
from tollbar.report.coordinates import Form, value_words
from tollbar.report.numbers import NOISY_MARK, bracket, marked, times
from tollbar.report.standings import CALLED_OUT, IN_GOOD_STANDING, STANDINGS, standing_words
from tollbar.results import Row

# In which order columns leave where there is no room for all.
BAR, ALL_RATIO, STANDING, INTERVAL, OTHERS, SPEED = range(1, 7)


def has_marks(tables: Iterable[Table]) -> bool:
    """Whether a cell of these tables has that mark, which is to be explained then."""
    cells = (cell for table in tables for row in table.rows for cell in row)
    return any(NOISY_MARK in f"{cell.says}{cell.small or ''}" for cell in cells)


def coordinate_cell(study: StudyJudgement, name: str, row: Row) -> TableCell:
    """A coordinate of a row; one that means nothing there does not apply."""
    value = row.shown.get(name)
    brief = TableCell(value_words(study.about.family, name, value, Form.TABLE))
    if value is None:
        return TableCell("does not apply", brief=brief)
    says = f"{value:,}" if name in LOADS and value else value_words(study.about.family, name, value)
    return TableCell(says, None if isinstance(value, str) else float(value), brief=brief)


def ratio_cell(ratio: Interval | None) -> TableCell:
    """A ratio with its interval."""
    return DASH if ratio is None else TableCell(times(ratio.estimate), ratio.estimate, interval=bracket(ratio))


def with_ends(
    of: Interval | None,
    words: Callable[[float], str] = times,
    ends: Callable[[Interval], str] = bracket,
    *,
    missing: TableCell = DASH,
    good: bool | None = None,
) -> tuple[TableCell, TableCell]:
    """A number that is marked where it is noisy, and its interval in a column of its own."""
    if of is None:
        return missing, missing
    return TableCell(marked(words(of.estimate), of.is_noisy), of.estimate, good=good), TableCell(ends(of))


def standing_cell(row: Row) -> TableCell:
    """The standing; one that must be met stays with the row's name where its column has no room."""
    says, called_out = standing_words(row.standing), row.standing in CALLED_OUT
    return TableCell(
        says,
        float(STANDINGS.index(row.standing)),
        standing=row.standing,
        stays=says if called_out else None,
        good=False if called_out else None,
    )


def bar(ratio: float, threshold: float, widest: float) -> float:
    """How long a bar of this ratio is, from minus one to one, on the logarithmic scale that `widest` is the end of.

    Nought within what the study ignores: a bar there would show what no verdict says.
    """
    return 0.0 if 1 / (1 + threshold) <= ratio <= 1 + threshold else math.log(ratio) / widest


def good_news(verdict: Verdict, row: Row) -> bool | None:
    """A choice that protects nothing, or not any more, is no good news however little it costs."""
    if verdict is Verdict.COSTS:
        return False
    return True if verdict is Verdict.SAVES and row.standing in IN_GOOD_STANDING else None
