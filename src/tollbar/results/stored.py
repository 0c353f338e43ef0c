"""What stands in a run's tables, held against what Tollbar writes: SQLite keeps any value in any column."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from functools import cache

from tollbar.errors import printable, printable_in
from tollbar.families import Value

# By table and column, the types that SQLite may have of it.
_TYPES: Mapping[str, Mapping[str, str]] = {
    "cell": {
        **dict.fromkeys(("study", "key", "coordinates", "title", "standing"), "text"),
        **dict.fromkeys(("accepted", "refused", "not_tried"), "text"),
        **dict.fromkeys(("against", "server", "outcome", "reason"), "text null"),
        "position": "integer",
        "known_answers": "integer",
        "strength": "integer null",
    },
    "trial": {
        **dict.fromkeys(("study", "cell", "outcome", "paid_by"), "text"),
        **dict.fromkeys(("id", "twin", "block", "heat", "ord", "memory_bytes", "steal_ns"), "integer"),
        **dict.fromkeys(("reason", "load"), "text null"),
        "started_s": "real",
        "machine_load": "real",
    },
    "observation": {"trial": "integer", **dict.fromkeys(("component", "metric", "by_round"), "text")},
    "left_out": dict.fromkeys(("study", "coordinates", "because"), "text"),
    "set_aside": {
        **dict.fromkeys(("study", "cell", "reason"), "text"),
        **dict.fromkeys(("ord", "failed", "trials"), "integer"),
        "at_s": "real",
        "tried_again_s": "real null",
    },
}


def refuse_odd(database: sqlite3.Connection) -> None:
    """Raises ValueError where a value is of a type that Tollbar does not write there, and sqlite3.Error."""
    for table, columns in _TYPES.items():
        types = ", ".join(f"typeof({column})" for column in columns)
        for found in database.execute(f"select distinct {types} from {table}"):
            for (column, may_be), one in zip(columns.items(), found, strict=True):
                if one not in may_be.split():
                    raise ValueError(f"`{column}` of a {table} is {one}")


@cache
def words(text: str) -> tuple[str, ...]:
    """A list of words, of which a run's trials and cells have few different ones. Raises ValueError."""
    said = json.loads(text)
    if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
        raise ValueError("not a list of words")
    return tuple(map(printable, said))


def coordinates(text: str) -> Mapping[str, Value]:
    """What a cell is, or those that were left out are. Raises ValueError."""
    said = json.loads(text)
    if not isinstance(said, dict) or not all(type(value) in (str, int, float) for value in said.values()):
        raise ValueError("coordinates that are none")
    return printable_in(said)
