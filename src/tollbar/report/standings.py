"""Standings: their order, their words, and those that a reader must see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tollbar.catalog.families import Standing

if TYPE_CHECKING:
    # Answers without measurements do without the judge, which takes longer to import than all else.
    from tollbar.results import Row

STANDINGS = tuple(Standing)
# Standings that must be printed next to every name that has one.
CALLED_OUT = (Standing.DEPRECATED, Standing.DISALLOWED, Standing.BROKEN)
# Standings of choices for today: only these make the frontier.
IN_GOOD_STANDING = (Standing.RECOMMENDED, Standing.ACCEPTABLE)


def worst(rows: Iterable[Row]) -> Standing | None:
    """Return the worst standing of these cells' options; None without any: nulls and references are no options."""
    found = [row.standing for row in rows if row.standing.is_of_option]
    return max(found, key=STANDINGS.index, default=None)


def standing_words(standing: Standing) -> str:
    """Return a standing for people."""
    return standing.words
