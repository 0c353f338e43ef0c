"""How much is tried of a product, or of many moments: a share by default, the whole where that is asked for.

Each push has the whole; a person at two cores, who waits for it, a share that still has every value of everything.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

IS_WHOLE = os.environ.get("TOLLBAR_WHOLE") == "1"
T = TypeVar("T")


def of(share: T, whole: T) -> T:
    """The one by default, the other where the whole is asked for: of kills, repetitions, or what is looked at."""
    return whole if IS_WHOLE else share


def spread(rows: int, number: int) -> set[int]:
    """The numbers of so many of these rows, from the first on."""
    return {row * rows // number for row in range(min(rows, number))} if rows > number else {*range(rows)}


def each_once(rows: Sequence[Sequence[Hashable]]) -> set[int]:
    """The numbers of few rows that have, in each column, every value of that column, and each about as often."""
    had: Counter[tuple[int, Hashable]] = Counter()
    chosen: set[int] = set()

    def gain(number: int) -> tuple[int, int, int]:
        of = [had[cell] for cell in enumerate(rows[number])]
        return of.count(0), -sum(of), -number

    while rows and gain(best := max(range(len(rows)), key=gain))[0]:
        chosen.add(best)
        had.update(enumerate(rows[best]))
    return chosen
