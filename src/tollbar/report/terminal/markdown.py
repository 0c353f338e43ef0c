"""Markdown of a run, for a pull request: the terminal's tables, with every column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tollbar.core.markdown import escaped
from tollbar.report.blocks import Brief, Column, Listing, Table, TableCell
from tollbar.report.terminal.streams import print_plain

if TYPE_CHECKING:
    from tollbar.analysis import Comparison, Judgement


def show_markdown(judgement: Judgement, *, everything: bool = False) -> None:
    """Print published claims and their results, then every study's answer, as Markdown."""
    from tollbar.report.page import briefs
    from tollbar.report.sections.published import source_listing
    from tollbar.report.sections.published.lines import together

    for part in together(judgement):
        print_markdown((f"### {escaped(part.heading)}", "", *_listing(replace(source_listing(part), title=""))))
    for brief in briefs(judgement, everything=everything):
        show_brief_markdown(brief)


def show_brief_markdown(brief: Brief) -> None:
    """Print the brief form of a study, or of the answer to a decision, as Markdown."""
    print_markdown(brief_lines(brief))


def show_listing_markdown(listing: Listing) -> None:
    """Print a section of a study as Markdown."""
    print_markdown(_listing(listing))


def show_comparison_markdown(
    comparison: Comparison, notes: Sequence[str] = (), headlines: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> None:
    """Print two runs' costs and ratios side by side as Markdown, after each run's headline of the study."""
    from tollbar.report.changes import comparison_notes, comparison_tables

    for study, table in comparison_tables(comparison).items():
        print_markdown((f"### {escaped(table.caption)}", ""))
        print_markdown(_items(headlines.get(study, ())))
        print_markdown(table_lines([replace(table, caption="")]))
    print_markdown(_items([*comparison_notes(comparison), *notes]))


def print_markdown(lines: Iterable[str]) -> None:
    """Print lines unchanged, for another program to lay out."""
    for line in lines:
        print_plain(line)


def table_lines(tables: Sequence[Table], heads: str = "") -> Iterator[str]:
    """Yield one Markdown table of tables with the same columns; their captions have a column of their own."""
    tables = [table for table in tables if table.rows]
    if not tables:
        return
    columns = list(tables[0].columns)
    rows = [row for table in tables for row in table.rows]
    kept = [n for n in range(len(columns)) if any(row[n].says for row in rows)]
    captioned = any(table.caption for table in tables)
    shown = [*([Column(heads)] if captioned else []), *(columns[n] for n in kept)]
    yield _line(escaped(column.title) for column in shown)
    yield _line("---:" if column.number else "---" for column in shown)
    for table in tables:
        for row in table.rows:
            first = [escaped(table.caption)] if captioned else []
            yield _line([*first, *(_cell(row[n]) for n in kept)])
    yield ""


def _cell(cell: TableCell) -> str:
    below = (small for small in (cell.interval, cell.small) if small)
    return escaped(cell.says) + "".join(f"<br><sub>{escaped(small)}</sub>" for small in below)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def brief_lines(brief: Brief) -> Iterator[str]:
    """Yield the Markdown of a brief form."""
    yield from (f"### {escaped(brief.question)}", "", f"**{escaped(brief.headline)}**", "")
    yield from _items(brief.paragraphs)
    for line in brief.how:
        yield from (escaped(line), "")
    for listing in brief.listings:
        yield from _listing(listing)
    yield from _items([*brief.missing, *brief.notes, *(f"warning: {warning}" for warning in brief.warnings)])
    for code in brief.codes:
        yield from (f"**{escaped(code.label)}**", "", "```", code.text, "```", "")


def _listing(listing: Listing) -> Iterator[str]:
    if listing.title:
        yield from (f"**{escaped(listing.title)}**", "")
    yield from _items(listing.sentences)
    if listing.caption:
        yield from (escaped(listing.caption), "")
    yield from table_lines(listing.tables, listing.heads)
    yield from _items(listing.notes)


def _items(sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield from (f"- {escaped(sentence)}" for sentence in sentences)
        yield ""
