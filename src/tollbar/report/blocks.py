"""Blocks of a page: tables, charts, legends and sentences as values, which are only laid out.

Texts may have backticks around code, as families and studies write it; they contain no markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from tollbar.catalog.families import Standing
from tollbar.core.words import counted, more
from tollbar.report.standings import STANDINGS, standing_words

if TYPE_CHECKING:
    from tollbar.analysis import ClaimVerdict, Verdict
    from tollbar.results import Row

# Further panels are drawn when the reader unfolds them: a thousand cells must not make a page slow.
MOST_PANELS = 6


class Block(Protocol):
    """Block of a page. Its kind selects the layout."""

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class TableCell:
    """Cell of a table: its text, its sort key if that is a number, and a second, smaller line."""

    says: str
    sorts: float | None = None
    small: str | None = None
    interval: str | None = None
    """Interval of the number: on a page below it, in a terminal in a column of its own if there is room."""
    mark: str | None = None
    """Mark before the text, which adds no information to it."""
    standing: Standing | None = None
    """Standing whose symbol precedes the text."""
    verdict: Verdict | ClaimVerdict | None = None
    """Verdict that the text is, if it is one."""
    bar: float | None = None
    """Bar in place of text: below zero for less than the baseline, above for more, at most one."""
    stays: str | None = None
    """Text appended to the row's name if there is no room for this cell's column."""
    good: bool | None = None
    """True for good news, False for bad news of a verdict; None if it is neither."""
    short: str | None = None
    """Text if there is no room for `says`."""
    brief: TableCell | None = None
    """Cell for a terminal, if that differs."""
    link: str | None = None
    """Target of the link that the text is on a page."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table."""

    title: str
    number: bool = False
    leaves: int | None = None
    """Order of leaving if there is no room for all columns, the least number first; None: it never leaves."""
    names: bool = False
    """True if it is a part of the row's name."""
    key: str = ""
    """Name by which code finds the column, whatever its title; empty for a column that is only laid out."""


@dataclass(frozen=True, slots=True)
class Pick:
    """Column of a table as a terminal has it."""

    key: str
    title: str
    leaves: int | None = None
    of: Literal["cell", "interval", "bar"] = "cell"


def numbers(*titles: str, leaves: int | None = None) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(title, True, leaves) for title in titles)


def texts(*titles: str, leaves: int | None = None) -> tuple[Column, ...]:
    """Return columns of text."""
    return tuple(Column(title, leaves=leaves) for title in titles)


def row_names(*titles: str) -> tuple[Column, ...]:
    """Return columns of text that together name a row."""
    return tuple(Column(title, names=True) for title in titles)


@dataclass(frozen=True, slots=True)
class Table:
    """Table with a caption, whose first column names its rows."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[TableCell]]
    sortable: bool = False
    names: Sequence[str] = ()
    """Name of each row, for links to it."""

    def index(self, key: str) -> int:
        """Return the index of the column with this key."""
        return next(number for number, column in enumerate(self.columns) if column.key == key)

    def picked(self, picks: Sequence[Pick], groups: Iterable[tuple[str, Iterable[int]]]) -> tuple[Table, ...]:
        """Return the tables of a terminal: a table with these columns for each group of rows, by its caption."""
        at = [self.index(pick.key) for pick in picks]
        columns = [
            Column(
                pick.title,
                number=self.columns[n].number and not self.columns[n].names and pick.of == "cell",
                leaves=pick.leaves,
                names=self.columns[n].names and pick.of == "cell",
                key=pick.key,
            )
            for n, pick in zip(at, picks, strict=True)
        ]
        return tuple(
            Table(
                caption,
                columns,
                [[_part(self.rows[row][n], pick) for n, pick in zip(at, picks, strict=True)] for row in rows],
            )
            for caption, rows in groups
        )


def _part(cell: TableCell, pick: Pick) -> TableCell:
    if pick.of == "interval":
        return TableCell(cell.interval or "")
    if pick.of == "bar":
        return TableCell("", bar=cell.bar, verdict=cell.verdict, good=cell.good)
    return cell.brief or (
        cell if cell.interval is None and cell.bar is None else replace(cell, interval=None, bar=None)
    )


DASH = TableCell("–")


def count_cell(number: int) -> TableCell:
    """Return a cell with a count."""
    return TableCell(f"{number:,}", float(number))


def of_values(caption: str, values: Mapping[str, Any]) -> Table:
    """Return a table of names and values, nested names joined by a space."""
    rows = [(TableCell(name), TableCell(value)) for name, value in _flat(values)]
    return Table(caption, (Column("name"), Column("value")), rows)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        title = f"{prefix}{name}".replace("_", " ").replace("-", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{title} ")
        elif isinstance(value, list | tuple):
            yield title, ", ".join(str(v) for v in value) or "none"
        elif value is None:
            yield title, "not known"
        else:
            yield title, {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart: its title, its description in words, and the data that it is drawn from."""

    title: str
    description: str
    data: object
    """Data of one of the types of `chart`, `load` and `cpu`."""
    letters: int = 0
    """Number of letters of the longest name next to its rows."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    kind: ClassVar[str] = "paragraph"
    says: str
    role: Literal["", "answer", "note"] = ""


@dataclass(frozen=True, slots=True)
class Items:
    """List of sentences."""

    kind: ClassVar[str] = "items"
    items: Sequence[str]


PanelLayout = Literal["", "panels", "panels wide", "panels three", "panels timeline", "panels strength"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Charts side by side."""

    kind: ClassVar[str] = "figures"
    charts: Sequence[Chart]
    layout: PanelLayout = "panels"
    """Layout; empty: one chart, as wide as the page."""
    letters: int = 0
    """Letters of the longest name next to rows, in all panels of which these are some."""


@dataclass(frozen=True, slots=True)
class CostBar:
    """Choice in a small chart."""

    name: str
    standing: Standing
    cost: str
    share: float
    """Share of the largest cost among them."""
    is_told: bool
    """True if it is judged to differ from the first; otherwise it is drawn hollow."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices to take: the answer in a line, alternatives with their gains, and their costs."""

    kind: ClassVar[str] = "choices"
    says: str
    steps: Sequence[str] = ()
    bars: Sequence[CostBar] = ()
    """Bars of recommended or acceptable choices in one place, the answer first; empty if there is no second one."""
    caption: str = ""
    """Caption of the bars: their place, and the number of further choices."""


@dataclass(frozen=True, slots=True)
class Key:
    """Meaning of a mark in a chart."""

    says: str
    standing: Standing | None = None
    mark: str | None = None
    line: int | None = None
    part: int | None = None
    """Number of a part. Exactly one of standing, mark, line and part is set."""


@dataclass(frozen=True, slots=True)
class Legend:
    kind: ClassVar[str] = "legend"
    keys: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Folded:
    """Content that a reader unfolds."""

    kind: ClassVar[str] = "folded"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Boxed:
    """Content in a box of its own."""

    kind: ClassVar[str] = "boxed"
    role: Literal["tolls", "protects", "warnings"]
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Section:
    """Title with the blocks below it; its name is that of links to it."""

    kind: ClassVar[str] = "section"
    title: str
    blocks: Sequence[Block]
    name: str = ""
    label: str = ""
    """A study's name, small next to its question."""


@dataclass(frozen=True, slots=True)
class Code:
    kind: ClassVar[str] = "code"
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands, by their purpose."""

    kind: ClassVar[str] = "commands"
    commands: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Listing:
    """Section that page, terminal and Markdown have: sentences, tables, and notes on these."""

    kind: ClassVar[str] = "listing"
    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    """Tables with equal columns."""
    heads: str = ""
    """Coordinate or kind that these tables' captions are values of."""
    caption: str = ""
    short_caption: str = ""
    """Caption in a terminal without room for the whole cells; if empty, no table and caption are shortened."""
    notes: Sequence[str] = ()
    whole: Sequence[Block] = ()
    """Blocks of a page in place of all these, such as charts and tables with every column; empty: the same."""
    name: str = ""

    @property
    def blocks(self) -> Sequence[Block]:
        """Blocks of the section on a page."""
        if self.whole:
            return self.whole
        return (
            Items(self.sentences),
            *([Paragraph(self.caption, "note")] if self.caption else []),
            *(replace(table, caption=table.caption or counted(len(table.rows), "row")) for table in self.tables),
            *(Paragraph(note, "note") for note in self.notes),
        )


@dataclass(frozen=True, slots=True)
class Brief:
    """Brief form of a study for terminal and Markdown, and the whole answer to a decision."""

    question: str
    headline: str
    paragraphs: Sequence[str] = ()
    """Paragraphs that a terminal leaves out."""
    how: Sequence[str] = ()
    """Cost and baseline of the ratios, their certainty, and coordinates that all rows share."""
    listings: Sequence[Listing] = ()
    missing: Sequence[str] = ()
    """Unmeasured cells, and cells without a comparison."""
    notes: Sequence[str] = ()
    """Number and place of further results."""
    warnings: Sequence[str] = ()
    codes: Sequence[Code] = ()
    """Lines to paste elsewhere, which no layout wraps."""


def figures(charts: Sequence[Chart], layout: PanelLayout = "panels") -> Iterator[Block]:
    """Yield the first panels, and the others folded."""
    letters = max((chart.letters for chart in charts), default=0)
    yield Figures(charts[:MOST_PANELS], layout, letters)
    rest = charts[MOST_PANELS:]
    if rest:
        yield Paragraph(f"{MOST_PANELS} of {counted(len(charts), 'panel')} drawn; the others unfold below.", "note")
        yield Folded(more(len(rest), "panel"), [Figures(rest, layout, letters)])


def folds(summary: str, table: Table, folds: bool) -> tuple[Block]:
    return (Folded(summary, [table]),) if folds else (table,)


def standing_keys(rows: Iterable[Row]) -> list[Key]:
    found = {row.standing for row in rows}
    return [Key(standing_words(one), standing=one) for one in STANDINGS if one in found]


def part_keys(parts: Sequence[str]) -> Legend:
    return Legend([Key(part, part=number) for number, part in enumerate(parts)])
