"""Coordinates of cells: their values, patterns of these, and unsupported combinations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.core.patterns import is_like
from tollbar.core.wire import KEYS, Strict

Value = str | int | float
"""Value of a coordinate: a word or a number.

Numbers of settings are whole (sizes are bytes, shares are percent). Every integral number is an int, so that equal ones
have one text; arrivals a second may be a fraction.
"""


def whole(number: float) -> int | float:
    """Return the number as an int if it is integral: 200.0 and 200 are one coordinate."""
    return number if isinstance(number, float) and not number.is_integer() else int(number)


def fits(only: Mapping[str, tuple[str, ...]], coordinates: Mapping[str, Value]) -> bool:
    """Return whether each of these coordinates fits one of its patterns; the empty pattern fits a missing one."""
    # A large study makes some hundred thousand calls; `all` takes half as long again, or more.
    for name, patterns in only.items():  # noqa: SIM110
        if not is_one_of(str(coordinates.get(name, "")), patterns):
            return False
    return True


@lru_cache(maxsize=1 << 14)
def is_one_of(word: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a word fits one of these patterns."""
    return word in patterns or any(is_like(word, one) for one in _open(patterns))


@cache
def _open(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns with wildcards: a cell is compared with thousands of patterns, and few have them."""
    return tuple(one for one in patterns if any(character in one for character in "*?["))


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Unsupported(Strict):
    """Place in which a choice, or values of a setting, are not supported, and the reason; as in a family's file."""

    where: dict[str, tuple[str, ...]]
    """Coordinates, each with the patterns of which one must fit."""
    because: str
    values: tuple[str, ...] = ("*",)
    """Patterns of the setting's values; `*` for a choice."""
