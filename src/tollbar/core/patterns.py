"""Patterns of names, as in a shell: `sha-*`; and `rsa-<2048`, a name that ends in a smaller number.

The others match as those of `fnmatch`, which makes a regular expression of each. That takes up to 4 ms for a hundred
letters, and those of a file of 1 MiB took seconds to minutes. Here, reading a pattern takes some microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MOST_LETTERS = 100
"""Limit of a pattern."""

_MOST_KEPT = 2**14
# Longer numbers are no size of a key, and reading one of thousands of digits takes long.
_SMALLER = re.compile(r"<([1-9][0-9]{0,8})$")
_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,9}$")

_Set = tuple[bool, tuple[tuple[str, str], ...]]
"""Letters that one place of a name may have: whether they are excluded, and their ranges."""

_Part = str | tuple[_Set, ...]
"""Part of a pattern without `*`: plain letters, or a set for each letter."""

_ANY: _Set = True, ()


def is_pattern(word: str) -> bool:
    """Return whether a word is a pattern and not a name."""
    return any(letter in word for letter in "*?[")


def is_like(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern. A pattern longer than `MOST_LETTERS` matches only itself."""
    if name == pattern:
        return True
    if len(pattern) > MOST_LETTERS:
        return False
    if "<" in pattern and (most := _SMALLER.search(pattern)):
        number = _NUMBER.search(name)
        is_smaller = number is not None and int(number[0]) < int(most[1])
        return number is not None and is_smaller and is_like(name[: number.start()], pattern[: most.start()])
    if not is_pattern(pattern):
        return False
    first, *middle = _parts(pattern)
    if not middle:
        return len(name) == len(first) and _is_at(name, 0, first)
    last = middle.pop()
    at, end = len(first), len(name) - len(last)
    if end < at or not _is_at(name, 0, first) or not _is_at(name, end, last):
        return False
    for part in middle:
        # The leftmost place leaves the most letters for the other parts.
        found = _place(name, part, at, end)
        if found is None:
            return False
        at = found + len(part)
    return True


def matches(value: object, patterns: Sequence[object]) -> bool:
    """Return whether a coordinate's value matches one of these, in which a word may contain `*`."""
    # A word always matches itself, because a URL may contain an address in brackets.
    return value is not None and any(value == one or is_like(str(value), str(one)) for one in patterns)


def _is_at(name: str, at: int, part: _Part) -> bool:
    if isinstance(part, str):
        return name.startswith(part, at)
    letters = name[at : at + len(part)]
    return all(
        any(low <= letter <= high for low, high in ranges) != is_excluded
        for letter, (is_excluded, ranges) in zip(letters, part, strict=True)
    )


def _place(name: str, part: _Part, start: int, end: int) -> int | None:
    """Return the first place of a part between two places of a name; None: there is none."""
    if isinstance(part, str):
        found = name.find(part, start, end)
        return found if found >= 0 else None
    return next((at for at in range(start, end - len(part) + 1) if _is_at(name, at, part)), None)


@lru_cache(_MOST_KEPT)
def _parts(pattern: str) -> tuple[_Part, ...]:
    """Return the parts between the `*` of a pattern."""
    found: list[_Part] = []
    sets: list[_Set] = []
    at, is_plain = 0, True
    start = 0

    def end_part(end: int) -> None:
        found.append(pattern[start:end] if is_plain else tuple(sets))

    while at < len(pattern):
        letter = pattern[at]
        closing = _closing(pattern, at) if letter == "[" else None
        if letter == "*":
            end_part(at)
            sets, is_plain, start = [], True, at + 1
        elif letter == "?":
            sets.append(_ANY)
            is_plain = False
        elif closing is not None:
            sets.append(_set(pattern[at + 1 : closing]))
            is_plain = False
            at = closing
        else:
            sets.append((False, ((letter, letter),)))
        at += 1
    end_part(at)
    return tuple(found)


def _closing(pattern: str, opening: int) -> int | None:
    """Return the place of the `]` that ends a set; None: the `[` is a letter."""
    # A `]` at the beginning of a set is one of its letters.
    first = opening + (2 if pattern[opening + 1 : opening + 2] == "!" else 1)
    found = pattern.find("]", first + 1)
    return found if found >= 0 else None


def _set(inside: str) -> _Set:
    """Return the letters between the brackets of a set."""
    is_excluded = inside.startswith("!")
    letters: Sequence[str] = inside[1:] if is_excluded else inside
    ranges = []
    at = 0
    while at < len(letters):
        is_range = letters[at + 1 : at + 2] == "-" and at + 2 < len(letters)
        ranges.append((letters[at], letters[at + 2] if is_range else letters[at]))
        at += 3 if is_range else 1
    return is_excluded, tuple(ranges)
