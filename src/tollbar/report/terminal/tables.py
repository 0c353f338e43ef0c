"""Terminal layout of a run's results."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.text import Text

from tollbar.core.errors import one_line
from tollbar.core.words import left_out
from tollbar.report.blocks import Brief, Listing, Table
from tollbar.report.terminal import layout
from tollbar.report.terminal.streams import is_verbose, stdout, table_width

# More would keep the answer from the screen; the report has them all.
MOST_NOTES = 3

if TYPE_CHECKING:
    # Modules that are slow to import are imported where they are needed: a check of policies needs no judge.
    from tollbar.analysis import Comparison, Judgement
    from tollbar.report.sections.published.lines import Published


def show_judgement(judgement: Judgement, *, everything: bool = False, asked: bool = False) -> None:
    """Print published figures next to measured ones, then every study's answer, as wide as there is room.

    `asked`: the user typed the question, which is not repeated.
    """
    from tollbar.report.page import briefs
    from tollbar.report.sections.published.lines import together

    for part in together(judgement):
        show_published(part)
    for brief in briefs(judgement, everything=everything):
        show_brief(replace(brief, question="") if asked else brief, everything=everything)


def show_brief(brief: Brief, *, everything: bool = False) -> None:
    """Print a study, or the answer of a decision, as wide as there is room: the answer, its tables, then notes."""
    width = table_width()
    _print([Text("")])
    if brief.question:
        _say(brief.question, width, "dim", indent="")
    _say(brief.headline, width, "bold", indent="")
    for listing in brief.listings:
        _show_listing(listing, width)
    if brief.how:
        _print([Text("")])
    for line in brief.how:
        _say(line, width, "dim", indent="")
    notes = [
        *((fact, "") for fact in brief.missing),
        *((f"warning: {warning}", "yellow") for warning in brief.warnings),
        *((note, "dim") for note in brief.notes),
    ]
    shown = notes if everything or is_verbose() else notes[:MOST_NOTES]
    for text, style in shown:
        _say(text, width, style)
    for line in left_out(len(notes) - len(shown), "note", "`--verbose`, or the report"):
        _say(line, width, "dim")
    for code in brief.codes:
        _print([Text(""), Text(code.label, "bold"), *map(Text, code.text.split("\n"))])


def show_listing(listing: Listing) -> None:
    """Print a section of a study."""
    _show_listing(listing, table_width())


def show_published(part: Published) -> None:
    """Print the claims of a source with their measurements."""
    from tollbar.report.sections.published import source_listing

    _show_listing(source_listing(part), table_width())


def show_comparison(comparison: Comparison, notes: Sequence[str] = ()) -> None:
    """Print two runs' costs and ratios side by side, upgrades, their agreement, and these notes."""
    from tollbar.report.changes import comparison_notes, comparison_tables

    width = table_width()
    for table in comparison_tables(comparison).values():
        _say(table.caption, width, "bold", indent="")
        _print(layout.lines([replace(table, caption="")], width))
        _print([Text("")])
    for note in (*comparison_notes(comparison), *notes):
        _say(note, width)


def show_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a table with a column for each name that any of the rows has."""
    from rich import box
    from rich.table import Table as RichTable

    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(escape(one_line(name)), overflow="fold")
    for row in rows:
        table.add_row(*("" if row.get(name) is None else escape(one_line(str(row[name]))) for name in names))
    stdout().print(table)


def _show_listing(listing: Listing, width: int) -> None:
    tables, caption = _fitted(listing, width)
    if listing.title or tables:
        _print([Text("")])
    if listing.title:
        _say(listing.title, width, "bold")
    for sentence in listing.sentences:
        _say(sentence, width)
    if caption:
        _say(caption, width, "dim")
    for table in tables:
        _print(layout.lines(table, width))
    for note in listing.notes:
        _say(note, width, "dim")


def _fitted(listing: Listing, width: int) -> tuple[list[Sequence[Table]], str]:
    """Return the tables for the available width, those with the same columns together, and their caption.

    A listing with a short caption takes shorter cells, and is split into parts if necessary.
    """
    if not listing.short_caption:
        return ([listing.tables] if listing.tables else []), ""
    whole = all(layout.fits(table, width) for table in listing.tables)
    tables = listing.tables if whole else [_shortened(table) for table in listing.tables]
    caption = listing.caption if whole else listing.short_caption
    return [[part] for table in tables for part in layout.parts(table, width)], caption


def _shortened(table: Table) -> Table:
    rows = [[replace(cell, says=cell.short or cell.says) for cell in row] for row in table.rows]
    return replace(table, rows=rows)


def _print(lines: Iterable[Text]) -> None:
    """Print lines unchanged: a terminal may be narrower than a single number, and must not cut it."""
    for line in lines:
        stdout().print(line, soft_wrap=True)


def _say(text: str, width: int, style: str = "", indent: str = "  ") -> None:
    """Print a sentence in lines of this width, as few as possible."""
    found = textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    _print(Text(line, style) for line in found)
