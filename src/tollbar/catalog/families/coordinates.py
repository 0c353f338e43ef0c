"""Coordinates of cells: what a value of one is, whether it fits patterns, and where it cannot be had."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.core.patterns import is_like
from tollbar.core.wire import KEYS, Strict

Value = str | int | float
"""A coordinate's value: a word or a number. Numbers of settings are whole (sizes are bytes, shares are percent), and so
is every number that can be, so that equal ones are one text; arrivals a second may be a fraction."""


def whole(number: float) -> int | float:
    """The number as a whole one where it is: 200.0 and 200 are one coordinate."""
    return number if isinstance(number, float) and not number.is_integer() else int(number)


def fits(only: Mapping[str, tuple[str, ...]], coordinates: Mapping[str, Value]) -> bool:
    """Whether each of these coordinates fits one of its patterns; the empty pattern fits one that is not there."""
    # Asked some hundred thousand times of a large study; by `all` it takes half as long again, or more.
    for name, patterns in only.items():  # noqa: SIM110
        if not is_one_of(str(coordinates.get(name, "")), patterns):
            return False
    return True


@lru_cache(maxsize=1 << 14)
def is_one_of(word: str, patterns: tuple[str, ...]) -> bool:
    """Whether a word fits one of these patterns."""
    return word in patterns or any(is_like(word, one) for one in _open(patterns))


@cache
def _open(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Those that fit other words than their own: a cell is asked about thousands of patterns, and few are open."""
    return tuple(one for one in patterns if any(character in one for character in "*?["))


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Unsupported(Strict):
    """Where a choice, or values of a setting, cannot be had, and why; as a family's file has it."""

    where: dict[str, tuple[str, ...]]
    """Coordinates, each with the patterns of which one must fit."""
    because: str
    values: tuple[str, ...] = ("*",)
    """Patterns of the setting's values; of a choice `*`."""
