"""Tables as lines of a terminal: whole if there is room, else without the least important columns, else stacked.

No cell is ever cut: a column leaves as a whole, or a row takes two lines, the first of which has its name.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.cells import cell_len
from rich.text import Text

from tollbar.core.errors import one_line
from tollbar.report.blocks import Column, Table, TableCell

GAP = "  "
INDENT = " "
NOTE_INDENT = "     "
# Letters, which a bar fills by halves: its largest length on either side of the middle.
HALF_BAR = 6
BAR_WIDTH = 2 * HALF_BAR + 1
# Below this width, rows are stacked rather than lose more than their bars.
STACKS_BELOW = 100
# Colours of words, which carry the meaning alone.
STYLES: Mapping[str, str] = {
    "costs": "red",
    "free": "cyan",
    "unclear": "yellow",
    "still true": "green",
    "inverted": "red",
    "cannot tell": "yellow",
}
GOOD_OR_BAD = {True: "green", False: "red"}
# Values that need the name of their setting.
BARE = ("on", "off", "yes", "no")


def lines(tables: Sequence[Table], width: int) -> Iterator[Text]:
    """Yield the lines of tables with the same columns, one below the other, none wider than `width`.

    Each table's caption is above its rows. A line that cannot be shorter, such as a single word or number, may be
    wider: nothing is cut.
    """
    rows = [row for table in tables for row in table.rows]
    if not rows:
        return
    layout = _chosen(tables[0].columns, rows, width)
    yield from layout.head()
    for number, table in enumerate(tables):
        if table.caption:
            if number:
                yield Text("")
            yield Text(f"{INDENT}{one_line(table.caption)}", "bold")
        for row in table.rows:
            yield from layout.row(row)


def parts(table: Table, width: int) -> list[Table]:
    """Return the table, or several with some of its columns each, so that none is wider than `width`."""
    names = [n for n, column in enumerate(table.columns) if column.names]
    found: list[list[int]] = [[]]
    for number in (n for n in range(len(table.columns)) if n not in names):
        if found[-1] and not fits(_of(table, [*names, *found[-1], number]), width):
            found.append([])
        found[-1].append(number)
    return [_of(table, [*names, *some]) for some in found]


def fits(table: Table, width: int) -> bool:
    """Return whether all of a table has room, each row in one line."""
    return _Layout(table.columns, table.rows, (), False, width).width <= width


def _of(table: Table, columns: Sequence[int]) -> Table:
    rows = [[row[n] for n in columns] for row in table.rows]
    return replace(table, columns=[table.columns[n] for n in columns], rows=rows)


def _chosen(columns: Sequence[Column], rows: Sequence[Sequence[TableCell]], width: int) -> _Layout:
    """Return the first layout that fits, from a whole table on; if none fits, the one that needs the least room."""
    leaving = sorted({column.leaves for column in columns if column.leaves is not None})
    flat = [_Layout(columns, rows, leaving[:gone], False, width) for gone in range(len(leaving) + 1)]
    stacked = [_Layout(columns, rows, leaving[:gone], True, width) for gone in range(len(leaving) + 1)]
    first = flat if width >= STACKS_BELOW else flat[:2]
    return next((one for one in (*first, *stacked) if one.width <= width), stacked[-1])


@dataclass(frozen=True)
class _Layout:
    """Layout of a table: without the columns that have `gone`, its rows in one line or stacked."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[TableCell]]
    gone: Sequence[int]
    stacked: bool
    room: int

    @cached_property
    def shown(self) -> list[int]:
        """Columns in the line of figures."""
        return [
            number
            for number, column in enumerate(self.columns)
            if column.leaves not in self.gone and not (self.stacked and column.names) and self._has_words(number)
        ]

    @cached_property
    def widths(self) -> list[int]:
        return [
            max(
                cell_len(one_line(self.columns[n].title)), *(cell_len(self._written(row, n).plain) for row in self.rows)
            )
            for n in self.shown
        ]

    @cached_property
    def width(self) -> int:
        indent = NOTE_INDENT if self.stacked else INDENT
        return len(indent) + sum(self.widths) + len(GAP) * (len(self.widths) - 1)

    def head(self) -> Iterator[Text]:
        titles = [Text(one_line(self.columns[n].title)) for n in self.shown]
        if self.stacked:
            names = [column.title for n, column in enumerate(self.columns) if column.names and self._has_words(n)]
            yield from _wrapped(Text(" · ".join(names), "bold"), self.room, INDENT)
        line = self._line(titles)
        line.stylize("bold")
        yield line
        yield Text(INDENT + "─" * (min(self.room, max(self.width, 20)) - len(INDENT)), "dim")

    def row(self, row: Sequence[TableCell]) -> Iterator[Text]:
        if self.stacked:
            yield from _wrapped(Text(self._name(row)), self.room, INDENT)
        yield self._line([self._written(row, n) for n in self.shown])
        for cell in row:
            if cell.small:
                yield from _wrapped(Text(cell.small, "dim"), self.room, NOTE_INDENT)

    def _line(self, cells: Sequence[Text]) -> Text:
        line = Text(NOTE_INDENT if self.stacked else INDENT)
        for place, (number, cell, width) in enumerate(zip(self.shown, cells, self.widths, strict=True)):
            space = " " * (width - cell_len(cell.plain))
            line.append(GAP if place else "")
            line.append_text(Text(space) + cell if self.columns[number].number else cell + Text(space))
        line.rstrip()
        return line

    def _name(self, row: Sequence[TableCell]) -> str:
        """Return `tls-1.3 · nginx 1.22.1 · users 5`: the heading precedes values that need it."""
        said = []
        for number, (column, cell) in enumerate(zip(self.columns, row, strict=True)):
            if column.names and cell.says:
                bare = any(_is_bare(other[number].says) for other in self.rows)
                said.append(f"{column.title} {cell.says}" if bare else cell.says)
        return " · ".join(said) + self._stays(row)

    def _has_words(self, number: int) -> bool:
        """Return whether any row has text in this column: a heading over nothing is left out."""
        return any(row[number].says or row[number].bar is not None for row in self.rows)

    def _stays(self, row: Sequence[TableCell]) -> str:
        """Return the remains, behind the name, of columns that have gone."""
        kept = [
            cell.stays
            for column, cell in zip(self.columns, row, strict=True)
            if column.leaves is not None and column.leaves in self.gone and cell.stays
        ]
        return f" ({', '.join(kept)})" if kept else ""

    def _written(self, row: Sequence[TableCell], number: int) -> Text:
        cell = row[number]
        if cell.bar is not None:
            return Text(drawn(cell.bar), _style(cell))
        is_name = not self.stacked and number == next((n for n, c in enumerate(self.columns) if c.names), None)
        return Text(one_line(f"{cell.says}{self._stays(row)}" if is_name else cell.says), _style(cell))


def drawn(share: float) -> str:
    """Return the bar of a share: to the right for more expensive, to the left for cheaper; the middle is ×1.

    Drawn in halves of a letter, rounded.
    """
    halves = round(abs(share) * 2 * HALF_BAR)
    whole, half = divmod(halves, 2)
    if share < 0:
        return ("▐" * half + "█" * whole).rjust(HALF_BAR) + "│" + " " * HALF_BAR
    return " " * HALF_BAR + "│" + ("█" * whole + "▌" * half).ljust(HALF_BAR)


def _style(cell: TableCell) -> str:
    if cell.good is not None:
        return GOOD_OR_BAD[cell.good]
    return STYLES.get(cell.verdict, "") if cell.verdict else ""


def _is_bare(value: str) -> bool:
    return value in BARE or value.replace(",", "").isdigit()


def _wrapped(text: Text, width: int, indent: str) -> Iterator[Text]:
    """Return the text in lines of this width at most, broken at spaces; a longer word has a line of its own."""
    # Further lines are indented, so that a long name does not look like two rows.
    found = textwrap.wrap(
        text.plain,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (Text(line, text.style) for line in found)
