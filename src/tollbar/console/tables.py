"""What a run says, laid out for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from tollbar.console import layout
from tollbar.console.streams import stdout, table_width
from tollbar.judge import Comparison, CrossTableResult, Judgement, StudyJudgement
from tollbar.present import answers, compared, published, terminal, uses, waits
from tollbar.present.published import Part
from tollbar.present.shapes import Table
from tollbar.present.toll_tables import ROWS_SHOWN, toll_tables
from tollbar.present.warnings import warnings
from tollbar.present.words import counted

MORE = "`tollbar judge RUN --all`, or the report"


def show_judgement(judgement: Judgement, *, everything: bool = False) -> None:
    """Prints what was published and what became of it, then every study's answer, as wide as there is room."""
    for part in published.together(judgement):
        show_published(part)
    for study in judgement.studies:
        _show_study(study, published.within(judgement, study), table_width(), None if everything else ROWS_SHOWN)


def show_published(part: Part) -> None:
    """Prints what a source published, beside what was measured of it."""
    width = table_width()
    _print([Text("")])
    _say(part.heading, width, "bold")
    for sentence in published.about(part):
        _say(sentence, width)
    tables = published.tables(part)
    # The caption of a table that stands alone would only say the study's name again.
    _print(layout.lines(tables if len(tables) > 1 else [Table("", one.columns, one.rows) for one in tables], width))
    for meaning in published.meanings(part):
        _say(meaning, width, "dim")


def show_comparison(comparison: Comparison, notes: Sequence[str] = ()) -> None:
    """Prints two runs' costs and ratios side by side, what was upgraded, how well they agree, and these notes."""
    width = table_width()
    for table in compared.comparison_tables(comparison).values():
        _say(table.caption, width, "bold", indent="")
        _print(layout.lines([Table("", table.columns, table.rows)], width))
        _print([Text("")])
    for note in (*compared.comparison_notes(comparison), *notes):
        _say(note, width)


def show_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Prints a table with a column for each name that any of the rows has."""
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*("" if row.get(name) is None else escape(str(row[name])) for name in names))
    stdout().print(table)


def _show_study(study: StudyJudgement, claims: Part | None, width: int, most: int | None) -> None:
    _print([Text("")])
    _say(study.about.question, width, "bold", indent="")
    _say(answers.headline(study), width, indent="")
    tolls = toll_tables(study, most)
    _say(terminal.how(study), width, "dim", indent="")
    if tolls.alike:
        _say(f"In every row: {tolls.alike}", width, "dim", indent="")
    if tolls.tables:
        _print([Text("")])
        _print(layout.lines(tolls.tables, width))
        for mark in tolls.marks:
            _say(mark, width, "dim")
        if tolls.hidden:
            _say(f"… {counted(tolls.hidden, 'more row')}: {MORE}", width, "dim")
    for result in study.tables:
        _show_crosstable(study, result, width)
    _show_uses(study, width)
    _show_titled(waits.TITLE, [terminal.in_one_line(waits.waits_table(study))], width)
    contrasts = terminal.contrast_tables(study, most)
    _show_titled(terminal.CONTRASTS, contrasts, width)
    if len(study.contrasts) > sum(len(table.rows) for table in contrasts):
        _say(f"… {len(study.contrasts) - sum(len(table.rows) for table in contrasts):,} more: {MORE}", width, "dim")
    if claims is not None:
        show_published(claims)
    missing = terminal.missing(study)
    for fact in missing[:most]:
        _say(fact, width)
    if len(missing) > len(missing[:most]):
        _say(f"… {counted(len(missing) - len(missing[:most]), 'more reason')}: {MORE}", width, "dim")
    if study.study.left_out:
        _say(f"left out: {counted(len(study.study.left_out), 'combination')}, with reasons in the report", width, "dim")
    for warning in warnings(study):
        _say(f"warning: {warning}", width, "yellow")


def _show_titled(title: str, tables: Sequence[Table], width: int) -> None:
    if any(table.rows for table in tables):
        _print([Text("")])
        _say(title, width, "bold")
        _print(layout.lines(tables, width))


def _show_uses(study: StudyJudgement, width: int) -> None:
    sentences = uses.sentences(study)
    if sentences:
        _print([Text("")])
        _say(uses.TITLE, width, "bold")
    for sentence in sentences:
        _say(sentence, width)
    for loss in uses.losses(study):
        _say(loss, width, "dim")


def _show_crosstable(study: StudyJudgement, result: CrossTableResult, width: int) -> None:
    whole, narrow = (terminal.crosstable(study, result, intervals=intervals) for intervals in (True, False))
    table = whole if layout.fits(whole, width) else narrow
    _print([Text("")])
    _say(result.table.title, width, "bold")
    _say(table.caption, width, "dim")
    for part in layout.parts(table, width):
        _print(layout.lines([Table("", part.columns, part.rows)], width))
    for gap in terminal.gaps(study, result):
        _say(gap, width, "dim")


def _print(lines: Iterable[Text]) -> None:
    """Prints lines as they are: a terminal may be narrower than a number by itself, and must not cut it."""
    for line in lines:
        stdout().print(line, soft_wrap=True)


def _say(text: str, width: int, style: str = "", indent: str = "  ") -> None:
    """Prints a sentence in lines of this width, as few as will do."""
    found = textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    _print(Text(line, style) for line in found)
