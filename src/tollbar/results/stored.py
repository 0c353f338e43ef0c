"""Checks of the values in a run's tables against those that Tollbar writes: SQLite keeps any value in any column."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any, cast

from tollbar.catalog.families import LOADS, Value
from tollbar.core.errors import printable, printable_in
from tollbar.core.records.load import MOST
from tollbar.results.observations import Count, packed, refuse_more
from tollbar.study.plan.grid import MOST_COMBINATIONS

# Types that SQLite may report for a value, by table and column.
_TYPES: Mapping[str, Mapping[str, str]] = {
    "cell": {
        **dict.fromkeys(("study", "key", "coordinates", "title", "standing"), "text"),
        **dict.fromkeys(("accepted", "refused", "not_tried"), "text"),
        **dict.fromkeys(("against", "server_version", "outcome", "reason"), "text null"),
        "position": "integer",
        "known_answers": "integer",
        "strength": "integer null",
    },
    "batch": {"study": "text", **dict.fromkeys(("block", "batch"), "integer"), "started_s": "real"},
    "trial": {
        **dict.fromkeys(("study", "cell", "outcome", "paid_by"), "text"),
        **dict.fromkeys(("id", "repeat", "block", "batch", "ord", "memory_bytes", "steal_ns"), "integer"),
        **dict.fromkeys(("reason", "load"), "text null"),
        "started_s": "real",
        "machine_load": "real",
    },
    "observation": {"trial": "integer", **dict.fromkeys(("component", "metric", "by_round"), "text")},
    "left_out": dict.fromkeys(("study", "coordinates", "because"), "text"),
    "event": {"at_s": "real", "what": "text"},
    "set_aside": {
        **dict.fromkeys(("study", "cell", "reason"), "text"),
        **dict.fromkeys(("ord", "failed", "trials"), "integer"),
        "at_s": "real",
        "tried_again_s": "real null",
    },
}
# Larger numbers cannot be counts; times and loads of Tollbar are never negative.
_LIMITS = {"integer": (-MOST, MOST), "real": (0, MOST)}
# Documents of JSON in a column: a real one has some kB, and reading one takes some hundred times its size.
_PROVED = ("accepted", "refused", "not_tried")
_DOCUMENTS = ("coordinates", *_PROVED, "paid_by", "load")
MOST_DOCUMENT = 1 << 20
# Four times the kept output of a failed server, which may be a reason.
MOST_OF_TEXT = 64 << 10
# Limit of all texts in memory: those of the largest plan, or four bytes a letter within 300 MiB.
MOST_LETTERS = 48 << 20
# Names in a series: each is a column of an export, next to which every row has a cell.
_NAMES = ("component", "metric")
MOST_OF_NAME, MOST_NAMES = 200, 1000
"""Limits of a name of a component or a metric, and of their pairs. A run of the set `sources` has 19."""
_NOT_KEPT = ("observation", "event")
# Column of an event that nothing reads.
_UNREAD = ("what",)
# A run has an event each time that it is resumed.
MOST_EVENTS = 10_000
# A value of a series is a number of at most 24 letters, and a comma.
_LETTERS_OF_VALUE = 30
_VALUES = "length(by_round) - length(replace(by_round, ',', '')) + 1"
# Rows read at once, because all texts of a run together take as much memory as their values.
_ROWS_AT_ONCE = 1000
_MOST_AS_ONE = 1 << 20
# Three times those of any cell. Reports compare the cells of a study coordinate by coordinate.
MOST_COORDINATES = 100
MOST_CELLS = 1_500
"""Limit of the cells of a run, more than twice those of the set `sources`; `run` begins no larger one.

To judge and print this number takes 5 s.
"""
MOST_COORDINATES_OF_ALL, MOST_KINDS = 30_000, 40
"""Limits of the coordinates of all cells of a study, and of the different sets of their names.

Cells are compared in each coordinate. A study of all families has far fewer.
"""
# Cells times tables: each is printed. Studies that ship have at most 230.
MOST_TABLED = 10_000
# Each row of an export repeats them; a real one has some 300 letters.
MOST_OF_COORDINATES = 16 << 10
# A report has it in each table and chart: 600 titles of 60 kB took 460 MB.
MOST_OF_TITLE = 1000
_TITLES = ("title", "server_version")
MOST_PROVED = 1 << 20
"""Limit of the letters of all cells' known answers and refusals. The set `sources` has 180,000.

Each word becomes an object, and then part of a JSON document: 3,400,000 words took 1.7 GB.
"""
MOST_OF_BECAUSE = 4 << 20
"""Limit of the letters of all reasons of combinations in memory; longer ones are cut.

With 45,000 combinations, as many as a plan may have, each has 93 letters.
"""
MOST_LEFT_OUT = 500_000
"""Limit of the coordinates of all combinations that were left out: 45,000, the most of a plan, have 11 each.

Each has a colon, and some values have one too.
"""
MOST_SET_ASIDE = 10_000
"""Limit of the quarantines of a run: each cell is tried again, and may be quarantined, whenever it is resumed."""
MOST_PAYING = 8 << 20
"""Limit of the letters of all lists of the components that trials pay for: some 60 of a trial, and each a text."""
MOST_OF_REASONS = 2 << 20
"""Limit of the letters of all cells' reasons in memory; longer ones are cut, because a report repeats and escapes them.

With a hundred cells each has 20,000 letters, more than the kept output of a failed server.
"""


def refuse_odd(database: sqlite3.Connection, files_bytes: int) -> Mapping[str, int]:
    """Return the number of rows of each table; no query of a run returns more than those of the tables it reads.

    `files_bytes` is the size of the database and its logs: a log may claim any number of pages. Raises ValueError for a
    value of a type, or a number of a size, that Tollbar does not write there, and if the same pages were read as many
    rows; and sqlite3.Error.
    """
    (pages,), (page_bytes,) = (database.execute(f"pragma {name}").fetchone() for name in ("page_count", "page_size"))
    most_bytes = min(pages * page_bytes, files_bytes)
    # Rows of a few bytes take more time for each byte than a run's.
    some_events = f"select 1 from event not indexed limit {MOST_EVENTS + 1}"
    (events,) = database.execute(f"select count(*) from ({some_events})").fetchone()
    if events > MOST_EVENTS:
        raise ValueError(f"more than {MOST_EVENTS:,} events, the limit of a run")
    (series,) = database.execute("select count(*) from observation not indexed").fetchone()
    refuse_more(Count(series=series))
    found = {table: _rows_in(database, table, columns, most_bytes) for table, columns in _TYPES.items()}
    rows = {table: count for table, (count, _) in found.items()}
    # Limits are checked before anything is parsed.
    refuse_more(counted(database))
    letters = sum(count for table, (_, count) in found.items() if table not in _NOT_KEPT)
    if letters > MOST_LETTERS:
        raise ValueError(f"{letters:,} letters of its texts; a run has at most {MOST_LETTERS:,}")
    pairs = f"select distinct component, metric from observation not indexed limit {MOST_NAMES + 1}"
    (names,) = database.execute(f"select count(*) from ({pairs})").fetchone()
    if names > MOST_NAMES:
        raise ValueError(f"more than {MOST_NAMES:,} metrics of components, the limit of a run")
    words = "+".join(f"length({column})" for column in _PROVED)
    (proved,) = database.execute(f"select total({words}) from cell not indexed").fetchone()
    if proved > MOST_PROVED:
        raise ValueError(f"{int(proved):,} letters of known answers of all cells; a run has at most {MOST_PROVED:,}")
    (paying,) = database.execute("select total(length(paid_by)) from trial not indexed").fetchone()
    if paying > MOST_PAYING:
        raise ValueError(
            f"{int(paying):,} letters of the components that trials pay for; a run has at most {MOST_PAYING:,}"
        )
    colons = "length(coordinates) - length(replace(coordinates, ':', ''))"
    (left_out,) = database.execute(f"select total({colons}) from left_out not indexed").fetchone()
    refuse_more_left_out(int(left_out))
    # A batch has at least one trial, and a cell is quarantined because of its trials.
    set_aside = min(rows["trial"], MOST_SET_ASIDE)
    most = {"cell": MOST_CELLS, "left_out": MOST_COMBINATIONS, "batch": rows["trial"], "set_aside": set_aside}
    for table, most_rows in most.items():
        if rows[table] > most_rows:
            raise ValueError(f"{rows[table]:,} rows of a {table}; a run has at most {most_rows:,}")
    return rows


def refuse_more_left_out(colons: int) -> None:
    """Raise ValueError for more coordinates of combinations that were left out than a run may have."""
    if colons > MOST_LEFT_OUT:
        what = f"{colons:,} coordinates of combinations that were left out"
        raise ValueError(f"{what}; a run has at most {MOST_LEFT_OUT:,}")


def counted(database: sqlite3.Connection) -> Count:
    """Return the size of a run. Each value of a series but the last is followed by a comma."""
    # A subquery with a limit is run once for each row: without it, each use of a value would count its commas again.
    series = f"select length(by_round) as letters, {_VALUES} as number from observation not indexed limit -1"
    is_too_long = f"letters > {_LETTERS_OF_VALUE} * number"
    read = f"select total(number), coalesce(max(number), 0), total({is_too_long}), count(*) from ({series})"
    values, of_series, too_long, number = database.execute(read).fetchone()
    if too_long:
        raise ValueError("`by_round` of a observation is out of range")
    trials, letters = database.execute(
        "select count(*), coalesce(sum(length(load)), 0) from trial not indexed"
    ).fetchone()
    return Count(int(values), int(of_series), int(trials), int(letters), int(number))


def _rows_in(database: sqlite3.Connection, table: str, columns: Mapping[str, str], most_bytes: int) -> tuple[int, int]:
    """Return the number of rows of a table, and of the letters in them. Raises ValueError, and sqlite3.Error."""
    looks = [f"count(*), {' + '.join(_length(one) for one, kinds in columns.items() if 'text' in kinds)}"]
    if "id" in columns:
        looks.append("count(distinct id) < count(*)")
    looks += [f"total({_is_odd(column, kinds)})" for column, kinds in columns.items()]
    rows, text_bytes, *odd = database.execute(f"select {', '.join(looks)} from {table} not indexed").fetchone()
    if rows + text_bytes > most_bytes or ("id" in columns and odd.pop(0)):
        raise ValueError(f"more rows of a {table} than its file can hold")
    for (column, kinds), count in zip(columns.items(), odd, strict=True):
        if count:
            odd_one = f"select typeof({column}) from {table} not indexed where {_is_odd(column, kinds)} limit 1"
            ((kind,),) = database.execute(odd_one)
            reason = kind if kind not in kinds.split() else "out of range"
            raise ValueError(f"`{column}` of a {table} is {reason}")
    return int(rows), int(text_bytes)


def _length(column: str) -> str:
    return f"total(length({column}))"


def _is_odd(column: str, kinds: str) -> str:
    """Return an SQL expression that is true for a value of another type, or a number or document of another size."""
    of_kinds = ", ".join(f"'{kind}'" for kind in kinds.split())
    is_odd = f"typeof({column}) not in ({of_kinds})"
    for kind, (least, most) in _LIMITS.items():
        if kind in kinds.split():
            is_odd += f" or {column} not between {least} and {most}"
    if "text" in kinds and column != "by_round" and column not in _UNREAD:
        is_odd += f" or length({column}) > {_most_of(column)}"
    return f"({is_odd})"


def _most_of(column: str) -> int:
    if column in _NAMES:
        return MOST_OF_NAME
    if column == "coordinates":
        return MOST_OF_COORDINATES
    if column in _TITLES:
        return MOST_OF_TITLE
    return MOST_DOCUMENT if column in _DOCUMENTS else MOST_OF_TEXT


def rows_of(read: sqlite3.Cursor, most: int) -> Iterator[list[Any]]:
    """Yield all rows of a query, some at a time. Raises ValueError if they are more than the table has."""
    while rows := read.fetchmany(_ROWS_AT_ONCE):
        most -= len(rows)
        if most < 0:
            raise ValueError("more rows than the table has")
        yield rows


def series(texts: Sequence[str]) -> list[Any]:
    """Return the numbers in each of these texts, as a list each. Raises ValueError."""
    # Values of other kinds take many times the memory of their text.
    if len(texts) > 1 and sum(map(len, texts)) > _MOST_AS_ONE:
        return [values for text in texts for values in series([text])]
    together = ",".join(texts)
    is_each_a_list = all(map(str.startswith, texts, repeat("["))) and all(map(str.endswith, texts, repeat("]")))
    if not is_each_a_list or {together.count("["), together.count("]")} != {len(texts)} or "{" in together:
        raise ValueError("must have a value for each round")
    # One text, because tens of thousands of short ones take twice as long to parse.
    return [packed(values) for values in json.loads(f"[{together}]")]


@cache
def words(text: str) -> tuple[str, ...]:
    """Return a list of words; cached, because a run has few different ones. Raises ValueError."""
    said = json.loads(text)
    if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
        raise ValueError("must be a list of words")
    return tuple(map(printable, said))


def coordinates(text: str) -> Mapping[str, Value]:
    """Return the coordinates of a cell, or of a combination that was left out. Raises ValueError."""
    said = json.loads(text)
    if not isinstance(said, dict) or not all(_is_value(value) for value in said.values()):
        raise ValueError("the coordinates of a cell must be names with values")
    if any(isinstance(said.get(name), str) for name in LOADS):
        raise ValueError("the load of a cell must be a number")
    if len(said) > MOST_COORDINATES:
        raise ValueError(f"a cell with {len(said):,} coordinates; at most {MOST_COORDINATES} are read")
    # The text is printable already, and only an escape puts another character into it.
    return printable_in(said) if "\\" in text else said


def _is_value(value: object) -> bool:
    """Return whether this is a coordinate's value: a word, or a number that a document of JSON can have."""
    return type(value) is str or (type(value) in (int, float) and -MOST <= cast("float", value) <= MOST)
