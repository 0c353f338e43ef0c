"""Patterns of names, as a shell has them: `sha-*`."""

from __future__ import annotations

from fnmatch import fnmatchcase

MOST_LETTERS = 100
"""Limit of a pattern, because Python's reader of one of a million letters takes 10 s and 500 MB, or hours if all of
them are `[`. No name is so long."""


def is_pattern(word: str) -> bool:
    """Return whether a word is a pattern, and not a name."""
    return any(letter in word for letter in "*?[")


def is_like(name: str, pattern: str) -> bool:
    """Return whether a name fits a pattern. A longer pattern than `MOST_LETTERS` fits itself alone."""
    return name == pattern or (len(pattern) <= MOST_LETTERS and fnmatchcase(name, pattern))
