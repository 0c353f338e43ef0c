"""Interim looks: the size of a run each time it was judged."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tollbar.core.errors import TollbarError
from tollbar.results.database import SPACES, opened
from tollbar.results.directory import RESULTS
from tollbar.results.run_json import about


def present(directory: Path) -> dict[str, tuple[int, int]]:
    """Return the number of blocks and of trials of each study that has any. Raises TollbarError."""
    path = directory / RESULTS
    try:
        with opened(path) as database:
            return reach(database)
    except (sqlite3.Error, OSError) as error:
        raise TollbarError(f"the results cannot be read: {error}".translate(SPACES), where=str(path)) from error


def reach(database: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """Return the number of blocks and of trials of each study that has any, from an open database."""
    rows = database.execute("select study, count(distinct block), count(*) from trial not indexed group by study")
    return {study: (blocks, trials) for study, blocks, trials in rows}


def looks(noted: Sequence[Mapping[str, int]], present: tuple[int, int] | None) -> list[Mapping[str, int]]:
    """Return the looks, with one at this (blocks, trials) added: a look that cannot be noted counts too."""
    if present is None or any(look["trials"] == present[1] for look in noted):
        return [*noted]
    return [*noted, {"blocks": present[0], "trials": present[1]}]


def is_noted(directory: Path) -> bool:
    """Return whether a look at the present state of a run is noted. Writes nothing; False if it cannot be read."""
    try:
        with opened(directory / RESULTS) as database:
            found = reach(database)
    except (TollbarError, OSError, sqlite3.Error):
        return False
    studies: Mapping[str, Any] = about(directory)["studies"]
    return all(
        looks(entry["interim_looks"], found.get(name)) == entry["interim_looks"] for name, entry in studies.items()
    )
