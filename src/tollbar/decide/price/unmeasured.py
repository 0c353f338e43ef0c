"""Choices that no lab measures: they are weaker than the measured ones, or of another size.

A family of the product has measured choices alone. Here a copy of it gets one more choice, or one more value of a
setting, so that policies judge it as any other; it never meets a policy, because no policy lists it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from tollbar.catalog.families import Family, SettingValue, Standing, fits
from tollbar.core import wire
from tollbar.core.patterns import is_like
from tollbar.decide.price.table import table

_TABLE = Path(__file__).with_name("unmeasured.toml")
CHOICE = "choice"
_SIZE, _CURVE, _MODULUS, _NOTHING = "{size}", "{curve}", "{modulus}", "{nothing}"
# The strength of the smallest measured curve, and the least that SP 800-131A allows.
_LEAST_CURVE, _LEAST = 128, 112
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
    """True if an authority may approve the choice, so that a list with others of its algorithm refuses nothing."""
    is_judged_only: bool = False
    """True if no asset is mapped to the choice by name, and it only limits the judgement."""
    listed_with: str | None = None
    """Pattern of values of which a list that need not refuse this one has at least one; None: any list may have it."""
    same_as: str | None = None
    """Family and choice of another family whose refusal by name refuses this one too: MySQL's `AES_ENCRYPT` is ECB."""

    def added_to(self, family: Family) -> Family:
        """Return a copy of the family that has it."""
        if self.coordinate != CHOICE:
            setting = family.settings[self.coordinate]
            known = _value(self)
            values = (*(setting.values or ()), self.value)
            added = replace(setting, values=values, about={**setting.about, self.value: known})
            return replace(family, settings={**family.settings, self.coordinate: added})
        near = family.choices[self.no_better_than or _likest(family, self.value)]
        is_near = self.strength is None and self.no_better_than is not None
        choice = replace(
            near,
            name=self.value,
            title=self.title,
            strength=near.strength if is_near else self.strength,
            strength_from=None,
            standing=self.standing,
            authority=(),
            answers=(),
            note=self.because,
            levels=(),
            setting={},
        )
        # The parameters of the choice that it is like are its own.
        settings = {
            name: replace(one, only={**one.only, CHOICE: (*one.only[CHOICE], self.value)})
            if CHOICE in one.only and fits({CHOICE: one.only[CHOICE]}, {CHOICE: near.name})
            else one
            for name, one in family.settings.items()
        }
        return replace(family, choices={**family.choices, self.value: choice}, settings=settings)

    @property
    def title(self) -> str:
        """Return the printed name: `DES-CFB`, `Blowfish`, `TLS 1.0`."""
        if self.value.startswith(("tls-", "ssl-")):
            return self.value.upper().replace("-", " ")
        if self.value.startswith(("oaep", "rsakem")):
            return f"RSA-{self.value.removeprefix('rsa').upper()}"
        cipher, with_, rest = self.value.partition(" with ")
        if with_:
            return f"{cipher.upper()}{with_}{rest}"
        is_word = self.value.isalpha() and len(self.value) > _LONGEST_ABBREVIATION
        return self.value.capitalize() if is_word else self.value.upper()

    @property
    def sentence(self) -> str:
        """Return the sentence that keeps the choice from meeting a policy."""
        return f"Tollbar's family {self.family} does not measure {self.title}: {self.because}"


def find(family: Family, coordinate: str, value: str) -> Unmeasured | None:
    """Return the unmeasured choice or value of this name; None: it is not known here either."""
    for row in _rows().get((family.name, coordinate), ()):
        if not any(is_like(value, pattern) for pattern in row.pattern):
            continue
        size = _size(value)
        if row.no_better_than == _SIZE:
            if size is None:
                return None
            sizes = _of_size(family, value)
            larger = [name for name, bits in sizes.items() if bits > size]
            # A size above all others has the standing of the largest, which may be disallowed in any size.
            near = larger[0] if larger else [*sizes][-1]
            standing = _standing(size, family.choices[near].standing)
            return Unmeasured(
                family.name,
                coordinate,
                value,
                larger[0] if larger else None,
                _strength(size) if not larger else min(_strength(size), (family.choices[near].strength or 0) - 8),
                standing,
                row.because,
                row.listed,
            )
        if row.no_better_than in (_CURVE, _MODULUS, _NOTHING):
            of_modulus = None if size is None else _strength(size)
            strength = {_CURVE: _of_curve(value), _MODULUS: of_modulus}.get(row.no_better_than, row.strength)
            is_weak = strength is not None and strength < _LEAST_CURVE
            return Unmeasured(
                family.name,
                coordinate,
                value,
                _least_curve(family, value) if is_weak and row.no_better_than == _CURVE else None,
                strength,
                Standing(row.standing) if strength is None or strength >= _LEAST else Standing.DISALLOWED,
                row.because,
                row.listed,
                row.judged_only,
                row.listed_with,
            )
        near = row.no_better_than.replace("{1}", value.split("-")[1] if "{1}" in row.no_better_than else "")
        known = near in (family.choices if coordinate == CHOICE else family.settings[coordinate].values or ())
        standing = Standing(row.standing)
        return (
            Unmeasured(
                family.name,
                coordinate,
                value,
                near,
                row.strength,
                standing,
                row.because,
                row.listed,
                row.judged_only,
                row.listed_with,
                row.same_as,
            )
            if known
            else None
        )
    return None


def listed(family: Family) -> list[str]:
    """Return the unmeasured choices of a family that an authority may approve, as far as they are named."""
    rows = _rows().get((family.name, CHOICE), ())
    return [one for row in rows if row.listed for one in row.pattern if not set(one) & set("*?[")]


def is_of_list(one: Unmeasured, patterns: Sequence[str], family: Family, absent: Sequence[str] = ()) -> bool:
    """Return whether a list has others of the same algorithm: then it need not refuse this one.

    `absent` are values that the list names and the family does not have.
    """
    if one.coordinate != CHOICE:
        return one.listed_with is None or any(is_like(value, one.listed_with) for value in patterns)
    algorithm = algorithm_of(one.value)
    known = [name for name in family.choices if any(is_like(name, pattern) for pattern in patterns)]
    return any(algorithm_of(name) == algorithm for name in (*known, *absent))


def algorithm_of(choice: str) -> str:
    """Return the algorithm of a choice: `ml-kem` of `ml-kem-768`, `dh` of `ffdhe2048`."""
    for algorithm, patterns in _whole().algorithm.items():
        if any(is_like(choice, pattern) for pattern in patterns):
            return algorithm
    return choice.partition("-")[0]


def _likest(family: Family, value: str) -> str:
    """Return the measured choice that is most like a stronger one: the strongest of its algorithm."""
    known = [one for one in family.choices.values() if one.standing.is_of_option]
    same = [one for one in known if algorithm_of(one.name) == algorithm_of(value)]
    return max(same or known, key=lambda one: one.strength or 0).name


# The field of Curve25519 has a bit less than a whole number of bytes, and the strength of 256.
_OF_25519 = 255


def _of_curve(value: str) -> int | None:
    """Return the strength of a curve, half of the bits of its field, for `ecdsa-sect193` or `ecdsa-192-bits`."""
    curve = value.partition("-")[2]
    sizes = table().curve_sizes.get(curve, ())
    digits = curve.removesuffix("-bits")
    bits = sizes[0] if sizes else int(digits) if digits.isascii() and digits.isdigit() else None
    return None if bits is None or len(str(bits)) > _MOST_DIGITS else (bits + (bits == _OF_25519)) // 16 * 8


def _least_curve(family: Family, value: str) -> str:
    return next(name for name in family.choices if is_like(name, f"{value.partition('-')[0]}-p*"))


def _of_size(family: Family, value: str) -> Mapping[str, int]:
    """Return the measured choices of an algorithm by size, the smallest first: `rsa-2048` for `rsa-1536`."""
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
    """Return the strength of a modulus by SP 800-56B revision 2, appendix D, in steps of 8 bits."""
    work = bits * math.log(2)
    exact = (1.923 * math.cbrt(work * math.log(work) ** 2) - 4.69) / math.log(2)
    return max(0, round(exact / 8) * 8)


def _standing(bits: int, larger: Standing) -> Standing:
    """Return the standing of a size below a measured one; SP 800-131A disallows less than 2,048 bits."""
    if bits < 1024:
        return Standing.BROKEN
    return Standing.DISALLOWED if bits < 2048 else larger


def _value(of: Unmeasured) -> SettingValue:
    return SettingValue(of.value, of.value, None, of.strength, None, of.standing, (), {}, {}, of.because)


_Patterns = Annotated[tuple[str, ...], BeforeValidator(lambda said: (said,) if isinstance(said, str) else said)]


class _Row(wire.Wire):
    family: str
    pattern: _Patterns
    setting: str | None = None
    no_better_than: str
    strength: int | None = None
    standing: str
    because: str
    listed: bool = False
    judged_only: bool = False
    listed_with: str | None = None
    same_as: str | None = None


class _Table(wire.Wire):
    algorithm: dict[str, tuple[str, ...]]
    choice: tuple[_Row, ...]


@cache
def _rows() -> Mapping[tuple[str, str], list[_Row]]:
    found: dict[tuple[str, str], list[_Row]] = {}
    for row in _table():
        found.setdefault((row.family, row.setting or CHOICE), []).append(row)
    return found


def _table() -> tuple[_Row, ...]:
    return _whole().choice


@cache
def _whole() -> _Table:
    return wire.read(_TABLE, _Table)
