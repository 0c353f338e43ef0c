"""Tables and charts as plain values, which a report or a terminal lays out.

Texts may hold backticks around what is code, as families and studies write it; nothing here is markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tollbar.families import Standing
from tollbar.judge import ClaimVerdict, Verdict


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell: what is read, what it sorts by if that is a number, and a second, smaller line."""

    says: str
    sorts: float | None = None
    small: str | None = None
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


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column."""

    title: str
    number: bool = False
    leaves: int | None = None
    """Where there is no room for all columns, those with the least number go first; None: it never goes."""
    names: bool = False
    """Whether it is part of what its row is called."""


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

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    sortable: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: what stands above it, what it shows in words, and the data that it is drawn from."""

    title: str
    description: str
    data: object
    """One of the types of `charts`, `loads` and `shares`."""
    letters: int = 0
    """How long the longest name beside its rows is."""


def pairs(caption: str, values: Mapping[str, Any]) -> Table:
    """A table of names and values, nested names joined by a space."""
    rows = [(Cell(name), Cell(value)) for name, value in _flat(values)]
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
