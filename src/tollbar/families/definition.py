"""What a family of choices is: its choices, its settings, and what each of them is worth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from math import prod
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass as read_dataclass

from tollbar import units
from tollbar.metrics import Metric
from tollbar.wire import KEYS

Value = str | int | float
"""A coordinate's value: a word or a number. Numbers of settings are whole (sizes are bytes, shares are percent), and so
is every number that can be, so that equal ones are one text; arrivals a second may be a fraction."""


def whole(number: float) -> int | float:
    """The number as a whole one where it is: 200.0 and 200 are one coordinate."""
    return int(number) if number == int(number) else number


class Standing(StrEnum):
    """What the authorities say of a choice today."""

    RECOMMENDED = "recommended"
    ACCEPTABLE = "acceptable"
    DEPRECATED = "deprecated"
    DISALLOWED = "disallowed"
    BROKEN = "broken"
    NULL = "null"

    @property
    def words(self) -> str:
        """For people; the null choice protects nothing and has none."""
        return "no protection" if self is Standing.NULL else str(self)

    def is_above(self, other: Standing) -> bool:
        """Whether it is better than another one; neither is the null choice's."""
        return WORST_FIRST.index(self) > WORST_FIRST.index(other)


WORST_FIRST = (
    Standing.BROKEN, Standing.DISALLOWED, Standing.DEPRECATED, Standing.ACCEPTABLE, Standing.RECOMMENDED,
)  # fmt: skip


class Degree(StrEnum):
    """How far a threat is mitigated, the least first."""

    NO = "no"
    PARTLY = "partly"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Mitigation:
    """Whether a threat is mitigated, and on what condition where it is so only partly."""

    degree: Degree
    condition: str | None = None
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Coordinates, each with the patterns of which one must fit: where this is so. Empty: everywhere."""


Mitigations = Mapping[str, tuple[Mitigation, ...]]
"""What is said of each threat: of several statements the first whose coordinates fit counts; the last always fits."""


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Authority:
    """Who says so, where, in what words, and when that was looked up; as a family's file has it."""

    by: str
    where: str
    says: str
    seen: date
    checked: bool = False
    """Whether the clause itself was read for this project, or is carried over unread."""


@dataclass(frozen=True, slots=True)
class ThreatSource:
    """What the statements on a threat rest on, for some choices."""

    of: tuple[str, ...]
    """Patterns of the choices' names."""
    authority: Authority


@dataclass(frozen=True, slots=True)
class Threat:
    """Something that may happen to the users of a family."""

    name: str
    title: str
    sources: tuple[ThreatSource, ...] = ()

    def authority_for(self, choice: str) -> tuple[Authority, ...]:
        """Where it comes from what is said of this threat and this choice."""
        return tuple(s.authority for s in self.sources if _is_one_of(choice, s.of))


@dataclass(frozen=True, slots=True)
class Answer:
    """A known answer: with these inputs, and these settings instead of the cell's, the result is this."""

    inputs: Mapping[str, str]
    expected: str
    setting: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Level:
    """What a choice with parameters is worth from these on, and who says so."""

    at_least: Mapping[str, int]
    """Empty: what it is worth below all other levels."""
    standing: Standing
    authority: tuple[Authority, ...]

    def is_met(self, parameters: Mapping[str, Value]) -> bool:
        """Whether each of these parameters is as large as the level wants it."""
        return all(int(parameters.get(name, 0)) >= least for name, least in self.at_least.items())


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Where a choice, or values of a setting, cannot be had, and why."""

    values: tuple[str, ...]
    """Patterns of the setting's values; of a choice `*`."""
    where: Mapping[str, tuple[str, ...]]
    """Coordinates, each with the patterns of which one must fit."""
    because: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a family."""

    name: str
    title: str
    spec: str
    year: int | None
    strength: int | None
    strength_from: str | None
    standing: Standing
    authority: tuple[Authority, ...]
    answers: tuple[Answer, ...]
    setting: Mapping[str, Value]
    """Settings that are part of the choice itself, such as a password hash's parameters."""
    inputs: Mapping[str, str]
    """What every task of this choice carries, such as its test key."""
    note: str | None
    mitigates: Mitigations = field(default_factory=dict)
    """For each threat of the family, unless a setting's value has its own word on it."""
    unanswered: tuple[str, ...] = ()
    """Operations whose result is new each time, so that no known answer can come."""
    levels: tuple[Level, ...] = ()
    """What it is worth by its parameters: the first that is met counts, the last always is. Its own standing and
    authority are then those at its default parameters."""
    memory: tuple[Value, ...] = ()
    """Sizes and parameters whose product is the memory that one operation takes, in bytes; empty: not worth saying."""
    unsupported: tuple[Unsupported, ...] = ()

    @property
    def is_set_by_study(self) -> bool:
        """Whether its parameters are settings of a study, which decide what it is worth."""
        return bool(self.levels) and not self.setting

    @property
    def worth(self) -> str:
        """Its standing for people."""
        return "by its settings" if self.is_set_by_study else self.standing.words

    def at(self, coordinates: Mapping[str, Value]) -> Choice:
        """The choice with the standing and the authority that it has with these parameters."""
        parameters = {**coordinates, **self.setting}
        level = next((one for one in self.levels if one.is_met(parameters)), None)
        return self if level is None else replace(self, standing=level.standing, authority=level.authority)

    def memory_bytes(self, coordinates: Mapping[str, Value]) -> int:
        """The memory that one operation takes with these parameters, in bytes; 0: not worth saying."""
        parameters = {**coordinates, **self.setting}
        factors = [int(parameters.get(str(factor), factor)) for factor in self.memory]
        return prod(factors) if factors else 0

    def answers_of(self, operation: str) -> tuple[Answer, ...]:
        """The known answers that this operation must meet."""
        return () if operation in self.unanswered else self.answers


@dataclass(frozen=True, slots=True)
class SettingValue:
    """What is known of one value of a setting, where it protects something or weakens it."""

    name: str
    title: str
    spec: str | None
    strength: int | None
    strength_from: str | None
    standing: Standing | None
    authority: tuple[Authority, ...]
    mitigates: Mitigations
    """For the threats that this value decides."""
    only: Mapping[str, tuple[str, ...]]
    """Where all this is so; empty: wherever the setting has this value."""
    note: str | None
    raises: tuple[str, ...] = ()
    """The threats against which this value does more than its choice: against all others it may only do less."""
    elsewhere: str | None = None
    """What of the work is then done elsewhere, and not seen: it is another operation than with any other value."""


Unit = Literal["bytes", "memory", "percent", "power-of-two"]
"""What a number is: the size of the data in bytes, memory that an operation takes in bytes, a share in percent, or a
power of two, which may be written `2^17`."""
IN_BYTES = ("bytes", "memory")


@dataclass(frozen=True, slots=True)
class Setting:
    """Something a study may vary within a family, and where it means anything."""

    name: str
    title: str
    values: tuple[Value, ...] | None
    unit: Unit | None
    default: Value
    only: Mapping[str, tuple[str, ...]]
    about: Mapping[str, SettingValue] = field(default_factory=dict)
    """What is known of its values, by the value as text; most settings protect nothing and have none."""
    least: int | None = None
    most: int | None = None
    multiple_of: int = 1
    least_each: Mapping[str, int] = field(default_factory=dict)
    """How much of it there must be for each one of another setting."""
    unsupported: tuple[Unsupported, ...] = ()
    """Of several that fit, the first counts."""
    how: bool = False
    """Whether it says how the operation is done, though something is known of its values: costs are compared at one
    value of it, unless a policy or a threat turns on it."""
    breaks_even_with: Mapping[str, Value] = field(default_factory=dict)
    """Costs fall by this share in a straight line, and are less than the cost at these values from some share on."""

    @property
    def is_size(self) -> bool:
        """Whether it is the size of the data that an operation works on."""
        return self.unit == "bytes"

    @property
    def is_share(self) -> bool:
        return self.unit == "percent"

    @property
    def is_count(self) -> bool:
        """Whether any whole number within its bounds is a value, written as such."""
        return self.unit is None and self.values is None and isinstance(self.default, int)

    def applies(self, coordinates: Mapping[str, Value], *, only: Mapping[str, tuple[str, ...]] | None = None) -> bool:
        """Whether the setting means anything at these coordinates (`choice`, `provider`, `op`, …).

        `only` are those of its conditions that count, by default all.
        """
        return fits(self.only if only is None else only, coordinates)

    def read(self, value: object) -> Value:
        """A study's value for this setting. Raises ValueError in words that fit behind the key's name."""
        if not isinstance(value, str | int):
            raise ValueError(f"`{value}` is neither a word nor a whole number")
        if self.is_share:
            return _percent(value)
        if self.unit is not None or self.is_count:
            number = units.size_bytes(value) if self.unit in IN_BYTES else units.count(value)
            self._check(number, value)
            return number
        if self.values is not None and value not in self.values:
            known = ", ".join(f"`{v}`" for v in self.values)
            raise ValueError(f"`{value}` is not one of {known}")
        return value

    def words(self, value: Value) -> str:
        """A value as a person writes it: `46 MiB`, `50 %`, `2^17`, `600,000`, `native`."""
        if isinstance(value, str):
            return value
        number = int(value)
        if self.unit in IN_BYTES:
            return units.show_size(number)
        if self.is_share:
            return f"{number} %"
        return f"2^{number.bit_length() - 1}" if self.unit == "power-of-two" else f"{number:,}"

    def _check(self, number: int, said: str | int) -> None:
        """Raises ValueError for a number that is out of bounds, or between two values."""
        if self.least is not None and number < self.least:
            raise ValueError(f"`{said}` is too small: {self.words(self.least)} at least")
        if self.most is not None and number > self.most:
            raise ValueError(f"`{said}` is too large: {self.words(self.most)} at most")
        if self.unit == "power-of-two" and number & (number - 1):
            below = number.bit_length() - 1
            near = " or ".join(f"`2^{power}` ({1 << power:,})" for power in (below, below + 1))
            raise ValueError(f"`{said}` is not a power of two, as {near} is")
        if number % self.multiple_of:
            around = (number - number % self.multiple_of, number + -number % self.multiple_of)
            # As it may be typed: commas part values.
            near = " or ".join(f"`{self.words(value).replace(',', '')}`" for value in around)
            raise ValueError(f"`{said}` is {number:,} B, no multiple of {self.words(self.multiple_of)}: {near}")


DEFAULT_PROVIDERS = ("libcrypto",)
"""The system's own."""

Part = Choice | SettingValue
"""What a cell is made of, as far as its family says something of it."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of choice."""

    name: str
    title: str
    operations: tuple[str, ...]
    strength_means: str | None
    settings: Mapping[str, Setting]
    choices: Mapping[str, Choice]
    threats: Mapping[str, Threat] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """What its runners observe beside what every runner does."""
    folder: Path | None = None
    """Where it was read from; None: it was not read from a folder."""
    providers: tuple[str, ...] = DEFAULT_PROVIDERS
    """Those of a study that names none."""
    load: bool = True
    """Whether its servers are asked by users whom the study describes, or else by the runner in its own way."""
    beds: tuple[str, ...] = ()
    """The servers of a study that names none, for a family that only servers perform."""
    built_in: tuple[str, ...] = ()
    """Parts of the engine that perform this family and no other."""
    is_rehearsal: bool = False
    """Whether it is there to test the lab, and none of its choices is one of security."""

    @property
    def parameters(self) -> frozenset[str]:
        """The settings that are a choice's parameters: who takes the choice sets them too."""
        own = [choice for choice in self.choices.values() if choice.is_set_by_study]
        return frozenset(
            name
            for name, setting in self.settings.items()
            if set(setting.only) == {"choice"} and any(setting.applies({"choice": choice.name}) for choice in own)
        )

    @property
    def null(self) -> Choice:
        """The choice that walks the same path and does nothing."""
        return next(c for c in self.choices.values() if c.standing is Standing.NULL)

    def parts_of(self, coordinates: Mapping[str, Value]) -> tuple[Part, ...]:
        """The choice at these coordinates, then the values of its settings that the family says something of."""
        choice = self.choices[str(coordinates["choice"])].at(coordinates)
        return (choice, *self.values_at(coordinates))

    def standing_of(self, coordinates: Mapping[str, Value]) -> Standing:
        """The worst standing among a cell's parts: what is broken in one of them is broken."""
        found = [part.standing for part in self.parts_of(coordinates) if part.standing is not None]
        return Standing.NULL if Standing.NULL in found else min(found, key=WORST_FIRST.index)

    def lowered_by(self, coordinates: Mapping[str, Value]) -> str | None:
        """The setting whose value alone gives a cell its standing; None where its choice has that by itself."""
        of_all, of_choice = self.standing_of(coordinates), self.choices[str(coordinates["choice"])].at(coordinates)
        if of_choice.standing is of_all:
            return None
        by_setting = {name: self._value_at(name, coordinates) for name in self.settings}
        return next(name for name, value in by_setting.items() if value is not None and value.standing is of_all)

    def strength_of(self, coordinates: Mapping[str, Value]) -> int | None:
        """The least strength among a cell's parts, in bits; None where nothing in bits is said of any."""
        return min((part.strength for part in self.parts_of(coordinates) if part.strength is not None), default=None)

    def mitigations_of(self, coordinates: Mapping[str, Value], *, of_choice: bool = False) -> Mapping[str, Mitigation]:
        """What a cell does about each threat of the family; or `of_choice`, what its choice by itself does there.

        Where values of its settings have a word on a threat, the least of what they say holds; else what the
        choice says. The null choice mitigates nothing.
        """
        choice = self.choices[str(coordinates["choice"])]
        values = () if of_choice else self.values_at(coordinates)
        found: dict[str, Mitigation] = {}
        for threat in self.threats:
            said = [_first(value.mitigates[threat], coordinates) for value in values if threat in value.mitigates]
            found[threat] = _least(said) if said else _first(choice.mitigates.get(threat, _NOTHING), coordinates)
        return found

    def contradiction(self, coordinates: Mapping[str, Value]) -> str | None:
        """What cannot be at these coordinates, though each of their values can be; None: nothing."""
        for name, setting in self.settings.items():
            for other, least in setting.least_each.items():
                if name in coordinates and other in coordinates:
                    needed = least * int(coordinates[other])
                    if int(coordinates[name]) < needed:
                        has, each = setting.words(coordinates[name]), setting.words(least)
                        return (
                            f"`{name}` is {has}, and {coordinates[other]} `{other}` need"
                            f" {setting.words(needed)} at least, {each} each"
                        )
        return None

    def default_at(self, name: str, coordinates: Mapping[str, Value]) -> Value:
        """What a setting is there unless it is said: its default, or where that is unsupported, what stands best.

        `coordinates` may be those of a cell that is not complete yet.
        """
        setting = self.settings[name]
        default, others = setting.default, setting.values or ()
        if not self._refusal(name, {**coordinates, name: default}):
            return default

        def worth(value: Value) -> int:
            known = self._value_at(name, {**coordinates, name: value})
            return WORST_FIRST.index(known.standing if known and known.standing else Standing.RECOMMENDED)

        possible = [value for value in others if not self._refusal(name, {**coordinates, name: value})]
        return max(possible, key=worth, default=default)

    def why_unsupported(self, coordinates: Mapping[str, Value]) -> str | None:
        """Why a cell cannot be had there, and with which other values of its settings it could; None: it can."""
        choice = self.choices[str(coordinates["choice"])]
        if (refusal := next(_refusals(choice, choice.name, coordinates), None)) is not None:
            return refusal
        reasons, instead = [], dict[str, Value]()
        for name in (name for name in self.settings if name in coordinates):
            if (refusal := self._refusal(name, {**coordinates, **instead})) is not None:
                reasons.append(refusal)
                instead[name] = self.default_at(name, {**coordinates, **instead})
        if not reasons:
            return None
        if any(self._refusal(name, {**coordinates, **instead}) for name in instead):
            return reasons[0]
        return f"{reasons[0]}; ask with {' '.join(f'`{name}={value}`' for name, value in instead.items())}"

    def can_be(self, name: str, value: Value, coordinates: Mapping[str, Value]) -> bool:
        """Whether a setting may have this value there."""
        return self._refusal(name, {**coordinates, name: value}) is None

    def _refusal(self, name: str, coordinates: Mapping[str, Value]) -> str | None:
        return next(_refusals(self.settings[name], coordinates[name], coordinates), None)

    def values_at(self, coordinates: Mapping[str, Value]) -> list[SettingValue]:
        """The values of a cell's settings of which the family says something there."""
        found = (self._value_at(name, coordinates) for name in self.settings)
        return [value for value in found if value is not None]

    def done_elsewhere(self, name: str, coordinates: Mapping[str, Value]) -> str | None:
        """What of the work is done elsewhere by this coordinate of a cell, and not seen; None: nothing."""
        value = self._value_at(name, coordinates) if name in self.settings else None
        return value.elsewhere if value is not None else None

    def _value_at(self, name: str, coordinates: Mapping[str, Value]) -> SettingValue | None:
        value = self.settings[name].about.get(str(coordinates[name])) if name in coordinates else None
        return value if value is not None and fits(value.only, coordinates) else None


def fits(only: Mapping[str, tuple[str, ...]], coordinates: Mapping[str, Value]) -> bool:
    """Whether each of these coordinates fits one of its patterns; the empty pattern fits one that is not there."""
    return all(_is_one_of(str(coordinates.get(name, "")), patterns) for name, patterns in only.items())


def _is_one_of(word: str, patterns: tuple[str, ...]) -> bool:
    return word in patterns or any(fnmatchcase(word, one) for one in _open(patterns))


@cache
def _open(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Those that fit other words than their own: a cell is asked about thousands of patterns, and few are open."""
    return tuple(one for one in patterns if any(character in one for character in "*?["))


def _refusals(of: Choice | Setting, value: Value, coordinates: Mapping[str, Value]) -> Iterator[str]:
    """Why this choice, or this value of a setting, cannot be had there."""
    for one in of.unsupported:
        if _is_one_of(str(value), one.values) and fits(one.where, coordinates):
            yield one.because


_NOTHING = (Mitigation(Degree.NO),)


def _first(said: Sequence[Mitigation], coordinates: Mapping[str, Value]) -> Mitigation:
    """The first of these that is so at these coordinates, whose values its condition may say: `{time-to-live}`."""
    found = next(one for one in said if fits(one.when, coordinates))
    return replace(found, condition=found.condition.format_map(dict(coordinates))) if found.condition else found


def _least(said: Sequence[Mitigation]) -> Mitigation:
    """The least of these; where several are partial, all their conditions."""
    least = min((one.degree for one in said), key=list(Degree).index)
    conditions = [one.condition for one in said if one.degree is least and one.condition]
    return Mitigation(least, "; ".join(conditions) or None)


def _percent(value: str | int) -> int:
    # A fraction of one is no percentage, and needs no unit.
    share = (float(value) if re.fullmatch(r"0(\.\d+)?", str(value)) else units.share(value)) * 100
    if abs(share - round(share)) > 1e-9 or not 0 <= share <= 100:
        raise ValueError(f"`{value}` is not a whole share from 0 % to 100 %")
    return round(share)
