"""Selection of test cases: a share of a product by default, the whole on request.

The share is for a person at two cores. Continuous integration has at least a case of every test: it sets
`TOLLBAR_EVERY_TEST=1`. The whole, `TOLLBAR_WHOLE=1`, takes half an hour.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

IS_WHOLE = os.environ.get("TOLLBAR_WHOLE") == "1"
HAS_EVERY_TEST = IS_WHOLE or os.environ.get("TOLLBAR_EVERY_TEST") == "1"
# The fractional parts of its multiples are far apart, whatever their number.
GOLDEN = (5**0.5 - 1) / 2
T = TypeVar("T")


def of(share: T, whole: T) -> T:
    """Return `share` by default and `whole` on request: a number of kills, repetitions or looks."""
    return whole if IS_WHOLE else share


def diverse(rows: Sequence[Sequence[Hashable]], number: int | None = None) -> set[int]:
    """Return the numbers of rows that have each value of each column as early as possible.

    `number` rows, or as many as that takes. Values appear about equally often. Among equal rows distant ones are taken,
    since neighbours in a table differ least.
    """
    had: Counter[tuple[int, Hashable]] = Counter()
    chosen: set[int] = set()

    def gain(row: int) -> tuple[int, int, float]:
        times = [had[cell] for cell in enumerate(rows[row])]
        return times.count(0), -sum(times), -(row * GOLDEN % 1)

    while len(chosen) < min(len(rows) if number is None else number, len(rows)):
        best = max({*range(len(rows))} - chosen, key=gain)
        if number is None and not gain(best)[0]:
            break
        chosen.add(best)
        had.update(enumerate(rows[best]))
    return chosen
