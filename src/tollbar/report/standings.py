"""Standings: their order, their words, and which of them a reader must meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tollbar.catalog.families import Standing

if TYPE_CHECKING:
    # What measures nothing is answered without the judge, which takes longer to import than all else.
    from tollbar.results import Row

STANDINGS = tuple(Standing)
# Standings that a reader must meet beside the name, wherever the name stands.
CALLED_OUT = (Standing.DEPRECATED, Standing.DISALLOWED, Standing.BROKEN)
# What one may choose today: only these make the frontier.
IN_GOOD_STANDING = (Standing.RECOMMENDED, Standing.ACCEPTABLE)


def worst(rows: Iterable[Row]) -> Standing | None:
    """The worst standing of these cells, the null choice left out; None where no other is among them."""
    found = [row.standing for row in rows if row.standing is not Standing.NULL]
    return max(found, key=STANDINGS.index, default=None)


def standing_words(standing: Standing) -> str:
    """A standing for people."""
    return standing.words
