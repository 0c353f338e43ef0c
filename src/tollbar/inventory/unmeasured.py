"""Choices that no lab measures: they are weaker than the measured ones, or of another size.

A family of the product has measured choices alone. Here a copy of it gets one more choice, or one more value of a
setting, so that policies judge it as any other; it never meets a policy, because no policy lists it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tollbar import wire
from tollbar.families import Family, SettingValue, Standing
from tollbar.patterns import is_like

_TABLE = Path(__file__).with_name("unmeasured.toml")
CHOICE = "choice"
_SIZE = "{size}"
# Digits of a size that is a size: longer ones would be no key's.
_MOST_DIGITS = 5
_LONGEST_ABBREVIATION = 5


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A choice, or a value of a setting, that no lab measures."""

    family: str
    coordinate: str
    """`choice`, or the name of the setting."""
    value: str
    no_better_than: str | None
    """The measured choice or value whose refusal refuses this one too; None: it is stronger than all of them."""
    strength: int | None
    standing: Standing
    because: str
    is_listed: bool
    """Whether an authority may approve it, so that a list without it refuses nothing."""

    def added_to(self, family: Family) -> Family:
        """Return a copy of the family that has it."""
        if self.coordinate != CHOICE:
            setting = family.settings[self.coordinate]
            known = _value(self)
            values = (*(setting.values or ()), self.value)
            added = replace(setting, values=values, about={**setting.about, self.value: known})
            return replace(family, settings={**family.settings, self.coordinate: added})
        near = family.choices[self.no_better_than or [*_of_size(family, self.value)][-1]]
        choice = replace(
            near,
            name=self.value,
            title=self.title,
            strength=near.strength if self.strength is None else self.strength,
            strength_from=None,
            standing=self.standing,
            authority=(),
            answers=(),
            note=self.because,
            levels=(),
            setting={},
        )
        return replace(family, choices={**family.choices, self.value: choice})

    @property
    def title(self) -> str:
        """The name for people: `DES-CFB`, `Blowfish`, `TLS 1.0`."""
        if self.value.startswith(("tls-", "ssl-")):
            return self.value.upper().replace("-", " ")
        is_word = self.value.isalpha() and len(self.value) > _LONGEST_ABBREVIATION
        return self.value.capitalize() if is_word else self.value.upper()

    @property
    def sentence(self) -> str:
        """The sentence that keeps it from meeting a policy."""
        return f"Tollbar's family {self.family} does not measure {self.title}, and no rule names it: {self.because}"


def find(family: Family, coordinate: str, value: str) -> Unmeasured | None:
    """Return the unmeasured choice or value of this name; None: it is not known here either."""
    for row in _rows().get((family.name, coordinate), ()):
        if not is_like(value, row.pattern):
            continue
        size = _size(value)
        if row.no_better_than == _SIZE:
            if size is None:
                return None
            larger = [name for name, bits in _of_size(family, value).items() if bits > size]
            standing = _standing(size, family.choices[larger[0]].standing if larger else Standing.ACCEPTABLE)
            return Unmeasured(
                family.name,
                coordinate,
                value,
                larger[0] if larger else None,
                _strength(size),
                standing,
                row.because,
                row.listed,
            )
        near = row.no_better_than.replace("{1}", value.split("-")[1] if "{1}" in row.no_better_than else "")
        known = near in (family.choices if coordinate == CHOICE else family.settings[coordinate].values or ())
        standing = Standing(row.standing)
        return (
            Unmeasured(family.name, coordinate, value, near, row.strength, standing, row.because, row.listed)
            if known
            else None
        )
    return None


def _of_size(family: Family, value: str) -> Mapping[str, int]:
    """The measured choices of an algorithm by their sizes, the smallest first: `rsa-2048` for `rsa-1536`."""
    prefix = value.rpartition("-")[0]
    found = {
        name: size
        for name in family.choices
        if name.startswith((f"{prefix}-", "ffdhe" if prefix == "dh" else f"{prefix}-"))
        and (size := _size(name)) is not None
    }
    return dict(sorted(found.items(), key=lambda one: one[1]))


def _size(value: str) -> int | None:
    digits = value.rpartition("-")[2].removeprefix("ffdhe")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None


def _strength(bits: int) -> int:
    """The strength of a modulus by SP 800-56B revision 2, appendix D, in steps of 8 bits."""
    work = bits * math.log(2)
    exact = (1.923 * math.cbrt(work * math.log(work) ** 2) - 4.69) / math.log(2)
    return max(0, round(exact / 8) * 8)


def _standing(bits: int, larger: Standing) -> Standing:
    """The standing of a size that is smaller than a measured one; SP 800-131A disallows less than 2,048 bits."""
    if bits < 1024:
        return Standing.BROKEN
    return Standing.DISALLOWED if bits < 2048 else larger


def _value(of: Unmeasured) -> SettingValue:
    return SettingValue(of.value, of.value, None, of.strength, None, of.standing, (), {}, {}, of.because)


class _Row(wire.Wire):
    family: str
    pattern: str
    setting: str | None = None
    no_better_than: str
    strength: int | None = None
    standing: str
    because: str
    listed: bool = False


class _Table(wire.Wire):
    choice: tuple[_Row, ...]


@cache
def _rows() -> Mapping[tuple[str, str], list[_Row]]:
    found: dict[tuple[str, str], list[_Row]] = {}
    for row in _table():
        found.setdefault((row.family, row.setting or CHOICE), []).append(row)
    return found


@cache
def _table() -> tuple[_Row, ...]:
    return wire.read(_TABLE, _Table).choice
