"""What a run says as Markdown, for a pull request: the terminal's tables, with every column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from tollbar.console.tables import MORE
from tollbar.judge import Comparison, Judgement, StudyJudgement
from tollbar.present import answers, compared, published, terminal, uses, waits
from tollbar.present.published import Part
from tollbar.present.shapes import Cell, Column, Table
from tollbar.present.toll_tables import ROWS_SHOWN, toll_tables
from tollbar.present.warnings import warnings
from tollbar.present.words import counted

# What Markdown would take for markup, or for the end of a cell.
_SPECIAL = re.compile(r"([\\*_<>|#])")


def show_markdown(judgement: Judgement, *, everything: bool = False) -> None:
    """Prints what was published and what became of it, then every study's answer, as Markdown."""
    for part in published.together(judgement):
        print_markdown((f"### {escaped(part.heading)}", "", *_published(part)))
    for study in judgement.studies:
        claims = published.within(judgement, study)
        print_markdown(_study(study, claims, None if everything else ROWS_SHOWN))


def show_comparison_markdown(
    comparison: Comparison, notes: Sequence[str] = (), headlines: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> None:
    """Prints two runs' costs and ratios side by side as Markdown, behind what each run found of the study."""
    for study, table in compared.comparison_tables(comparison).items():
        print_markdown((f"### {escaped(table.caption)}", ""))
        print_markdown(_items(headlines.get(study, ())))
        print_markdown(table_lines([Table("", table.columns, table.rows)]))
    print_markdown(_items([*compared.comparison_notes(comparison), *notes]))


def print_markdown(lines: Iterable[str]) -> None:
    """Prints lines as they are, for another program to lay out."""
    for line in lines:
        print(line)


def table_lines(tables: Sequence[Table], heads: str = "") -> Iterator[str]:
    """One Markdown table of tables that have the same columns; their captions stand in a column of their own."""
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


def escaped(text: str) -> str:
    """The text with nothing in it that Markdown would take for markup, but for code in backticks."""
    parts = text.replace("\n", " ").split("`")
    if len(parts) % 2 == 0:
        return _SPECIAL.sub(r"\\\1", text.replace("`", "'"))
    return "".join(
        f"`{part.replace('|', chr(92) + '|')}`" if number % 2 else _SPECIAL.sub(r"\\\1", part)
        for number, part in enumerate(parts)
    )


def _cell(cell: Cell) -> str:
    return escaped(cell.says) + (f"<br><sub>{escaped(cell.small)}</sub>" if cell.small else "")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _published(part: Part) -> Iterator[str]:
    yield from _items(published.about(part))
    yield from table_lines(published.tables(part), "tried by")
    yield from _items(published.meanings(part))


def _study(study: StudyJudgement, claims: Part | None, most: int | None) -> Iterator[str]:
    tolls = toll_tables(study, most)
    headline, *paragraphs = answers.answer(study)
    yield from (f"### {escaped(study.about.question)}", "", f"**{escaped(headline)}**", "")
    yield from _items(paragraphs)
    yield from (escaped(terminal.how(study)), "")
    if tolls.alike:
        yield from (f"In every row: {escaped(tolls.alike)}", "")
    yield from table_lines(tolls.tables, "at")
    yield from _items([*tolls.marks, *([f"… {counted(tolls.hidden, 'more row')}: {MORE}"] if tolls.hidden else [])])
    for result in study.tables:
        table = terminal.crosstable(study, result)
        yield from (f"**{escaped(result.table.title)}**", "", escaped(table.caption), "")
        yield from table_lines([Table("", table.columns, table.rows)])
        yield from _items(terminal.gaps(study, result))
    sentences = uses.sentences(study)
    if sentences:
        yield from (f"**{uses.TITLE}**", "")
        yield from _items([*sentences, *uses.losses(study)])
    waited = waits.waits_table(study)
    if waited.rows:
        yield from (f"**{waits.TITLE}**", "", escaped(waited.caption), "")
        yield from table_lines([Table("", waited.columns, waited.rows)])
    contrasts = terminal.contrast_tables(study, most)
    if contrasts:
        yield from (f"**{terminal.CONTRASTS}**", "")
        yield from table_lines(contrasts, "setting")
    if claims is not None:
        yield from (f"**{escaped(claims.heading)}**", "", *_published(claims))
    missing = terminal.missing(study)
    more = (
        [f"… {counted(len(missing) - most, 'more reason')}: {MORE}"] if most is not None and len(missing) > most else []
    )
    yield from _items(
        [
            *missing[:most],
            *more,
            *(f"warning: {warning}" for warning in warnings(study)),
        ]
    )


def _items(sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield from (f"- {escaped(sentence)}" for sentence in sentences)
        yield ""
