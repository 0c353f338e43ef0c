"""Patterns of names, as in a shell: `sha-*`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

MOST_LETTERS = 100
"""Limit of a pattern: Python takes 10 s and 500 MB for one of a million letters, or hours if all are `[`."""


def is_pattern(word: str) -> bool:
    """Return whether a word is a pattern and not a name."""
    return any(letter in word for letter in "*?[")


def is_like(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern. A pattern longer than `MOST_LETTERS` matches only itself."""
    return name == pattern or (len(pattern) <= MOST_LETTERS and fnmatchcase(name, pattern))


def matches(value: object, patterns: Sequence[object]) -> bool:
    """Return whether a coordinate's value matches one of these, in which a word may contain `*`."""
    # A word always matches itself, because a URL may contain an address in brackets.
    return value is not None and any(value == one or is_like(str(value), str(one)) for one in patterns)
