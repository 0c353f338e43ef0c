"""What a page is made of: tables, charts, legends and sentences as values, which are only laid out.

Texts may hold backticks around what is code, as families and studies write it; nothing here is markup.
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

# The panels beyond these are drawn when the reader unfolds them: a thousand cells must not cost a slow page.
MOST_PANELS = 6


class Block(Protocol):
    """Anything that stands on a page. Its kind says how it is laid out."""

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class TableCell:
    """A table's cell: what is read, what it sorts by if that is a number, and a second, smaller line."""

    says: str
    sorts: float | None = None
    small: str | None = None
    interval: str | None = None
    """Of the number: on a page below it, in a terminal in a column of its own where there is room."""
    mark: str | None = None
    """Stands before the words, and says nothing that they do not say."""
    standing: Standing | None = None
    """Whose symbol stands before the words."""
    verdict: Verdict | ClaimVerdict | None = None
    """What the words are, where they are a verdict."""
    bar: float | None = None
    """A bar in place of words: below nought for less than the baseline, above for more, at most one."""
    stays: str | None = None
    """What stands behind the row's name where there is no room for this cell's column."""
    good: bool | None = None
    """Whether what a verdict finds is good or bad news; None where it is neither."""
    short: str | None = None
    """What is read where there is no room for all that it says."""
    brief: TableCell | None = None
    """What a terminal has in its place, where that is not the same."""
    link: str | None = None
    """Where its words lead on a page."""


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column."""

    title: str
    number: bool = False
    leaves: int | None = None
    """Where there is no room for all columns, those with the least number go first; None: it never goes."""
    names: bool = False
    """Whether it is part of what its row is called."""
    key: str = ""
    """What code finds the column by, whatever its title; empty for one that is only laid out."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A column of a table as a terminal has it."""

    key: str
    title: str
    leaves: int | None = None
    of: Literal["cell", "interval", "bar"] = "cell"


def numbers(*titles: str, leaves: int | None = None) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(title, True, leaves) for title in titles)


def texts(*titles: str, leaves: int | None = None) -> tuple[Column, ...]:
    """Columns of words."""
    return tuple(Column(title, leaves=leaves) for title in titles)


def row_names(*titles: str) -> tuple[Column, ...]:
    """Columns of words that together are what a row is called."""
    return tuple(Column(title, names=True) for title in titles)


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption, whose first column names its rows."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[TableCell]]
    sortable: bool = False
    names: Sequence[str] = ()
    """Of each row, that of links to it."""

    def index(self, key: str) -> int:
        """Where the column of this key stands."""
        return next(number for number, column in enumerate(self.columns) if column.key == key)

    def picked(self, picks: Sequence[Pick], groups: Iterable[tuple[str, Iterable[int]]]) -> tuple[Table, ...]:
        """What a terminal has of it: a table with these columns for each group of rows, by its caption."""
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
    """A number of things."""
    return TableCell(f"{number:,}", float(number))


def of_values(caption: str, values: Mapping[str, Any]) -> Table:
    """A table of names and values, nested names joined by a space."""
    rows = [(TableCell(name), TableCell(value)) for name, value in _flat(values)]
    return Table(caption, (Column("what"), Column("value")), rows)


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
    """One chart: what stands above it, what it shows in words, and the data that it is drawn from."""

    title: str
    description: str
    data: object
    """One of the types of `chart`, `load` and `cpu`."""
    letters: int = 0
    """How long the longest name beside its rows is."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    kind: ClassVar[str] = "paragraph"
    says: str
    role: Literal["", "answer", "note"] = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences."""

    kind: ClassVar[str] = "items"
    items: Sequence[str]


PanelLayout = Literal["", "panels", "panels wide", "panels three", "panels timeline", "panels strength"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Charts side by side."""

    kind: ClassVar[str] = "figures"
    charts: Sequence[Chart]
    layout: PanelLayout = "panels"
    """None: one chart, as wide as the page."""
    letters: int = 0
    """How long the longest name beside rows is, in all panels of which these are some."""


@dataclass(frozen=True, slots=True)
class CostBar:
    """One choice of a small chart."""

    name: str
    standing: Standing
    cost: str
    share: float
    """Of the largest cost among them."""
    is_told: bool
    """Whether it is judged to differ from the first; one that is not is drawn hollow."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What to take: the answer in a line, what may be taken in its place and what that adds, and their costs."""

    kind: ClassVar[str] = "choices"
    says: str
    steps: Sequence[str] = ()
    bars: Sequence[CostBar] = ()
    """Of choices in good standing in one place, the first being the one to take; none where there is no second one."""
    caption: str = ""
    """Of the bars: which place that is, and how many more there are."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a mark in a chart stands for."""

    says: str
    standing: Standing | None = None
    mark: str | None = None
    line: int | None = None
    part: int | None = None
    """One of these is what it is the key of: a standing, a mark of charts, the number of a line, or of a part."""


@dataclass(frozen=True, slots=True)
class Legend:
    kind: ClassVar[str] = "legend"
    keys: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Folded:
    """What a reader unfolds."""

    kind: ClassVar[str] = "folded"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Boxed:
    """What is set apart from the rest."""

    kind: ClassVar[str] = "boxed"
    role: Literal["tolls", "protects", "warnings"]
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Section:
    """A title, and what stands below it; its name is that of links to it."""

    kind: ClassVar[str] = "section"
    title: str
    blocks: Sequence[Block]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    kind: ClassVar[str] = "code"
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands, by what each does."""

    kind: ClassVar[str] = "commands"
    commands: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Listing:
    """A section that page, terminal and Markdown have: sentences, tables, and what is to be known of these."""

    kind: ClassVar[str] = "listing"
    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    """Of the same columns."""
    heads: str = ""
    """What these tables' captions are."""
    caption: str = ""
    short_caption: str = ""
    """Of a terminal that has no room for the cells as they are; where there is none, it has no room for either."""
    notes: Sequence[str] = ()
    whole: Sequence[Block] = ()
    """What a page has in place of all these, such as charts and tables with every column; none: the same."""
    name: str = ""

    @property
    def blocks(self) -> Sequence[Block]:
        """What a page has of it."""
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
    """What terminal and Markdown have of a study, and all that is said in answer to a decision."""

    question: str
    headline: str
    paragraphs: Sequence[str] = ()
    """What a terminal goes without."""
    how: Sequence[str] = ()
    """What the ratios are of, against what, and how sure they are; what all rows have in common."""
    listings: Sequence[Listing] = ()
    missing: Sequence[str] = ()
    """What was not measured, and what is compared with nothing."""
    notes: Sequence[str] = ()
    """What there is more of, and where."""
    warnings: Sequence[str] = ()


def figures(charts: Sequence[Chart], layout: PanelLayout = "panels") -> Iterator[Block]:
    """The first panels, and the rest folded."""
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
