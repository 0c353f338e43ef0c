"""A setting: what a study may vary within a family, which values it may have, and what is known of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tollbar.catalog.families.coordinates import Unsupported, Value, fits
from tollbar.catalog.families.standing import Authority, Mitigations, Standing
from tollbar.core import spelling, units
from tollbar.core.errors import nearest

Unit = Literal["bytes", "memory", "percent", "power-of-two"]
"""What a number is: the size of the data in bytes, memory that an operation takes in bytes, a share in percent, or a
power of two, which may be written `2^17`."""
IN_BYTES = ("bytes", "memory")
MOST_BYTES = 1 << 30
"""Limit of a setting in bytes that says no other: the engine takes no task of more."""
MOST = 10_000_000
"""Limit of a setting that is a number and says no other, such as the rows of a table: more take hours to make."""


class NotAValue(ValueError):
    """A word that is none of a setting's values."""

    def __init__(self, what: str, word: str, known: Collection[str]) -> None:
        super().__init__(what)
        self.what = what
        self._word, self._known = word, known

    # A search for similar names takes a millisecond, and an inventory may have thousands of such words.
    @property
    def hint(self) -> str | None:
        return nearest(self._word, self._known)

    def __str__(self) -> str:
        return f"{self.what}; {self.hint}" if self.hint else self.what


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

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.unit is not None or self.is_count

    def applies(self, coordinates: Mapping[str, Value], *, only: Mapping[str, tuple[str, ...]] | None = None) -> bool:
        """Whether the setting means anything at these coordinates (`choice`, `provider`, `op`, …).

        `only` are those of its conditions that count, by default all.
        """
        return fits(self.only if only is None else only, coordinates)

    def read(self, value: object) -> Value:
        """A study's value for this setting. Raises ValueError in words that fit behind the key's name."""
        if not isinstance(value, str | int):
            raise ValueError(f"`{units.quoted(value)}` is neither a word nor a whole number")
        if self.is_share:
            return _percent(value)
        if self.is_number:
            number = units.size_bytes(value, self._likely(value)) if self.unit in IN_BYTES else units.count(value)
            self._check(number, value)
            return number
        if self.values is None or value in self.values:
            return value
        by_text = {str(one): one for one in self.values}
        found = spelling.find(str(value), by_text) if isinstance(value, str) else None
        if found is None:
            what = f"`{units.quoted(value)}` is not one of the values of `{self.name}`"
            raise NotAValue(what, units.quoted(value), by_text)
        return by_text[found]

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

    def typed(self, value: Value) -> str:
        """Return a value as a person types it in a command: `46MiB`, `600000`. Blanks part words, and commas values."""
        return self.words(value).replace(" ", "").replace(",", "")

    def _likely(self, value: str | int) -> tuple[str, ...]:
        """Return the units that a number without one may have: `65536` is KiB of memory, as in hash strings."""
        text = str(value)
        is_large = text.isdecimal() and len(text) > len("4096") - 1
        if self.unit != "memory":
            return units.IN_BYTES
        return units.IN_MEMORY[::-1] if is_large else units.IN_MEMORY

    def _check(self, number: int, said: str | int) -> None:
        """Raises ValueError for a number that is out of bounds, or between two values."""
        if self.least is not None and number < self.least:
            raise ValueError(f"`{said}` is too small: {self.words(self.least)} at least")
        if self.most is not None and number > self.most:
            raise ValueError(f"`{units.quoted(said)}` is too large: {self.words(self.most)} at most")
        if self.unit == "power-of-two" and number & (number - 1):
            below = number.bit_length() - 1
            near = " or ".join(f"`2^{power}` ({1 << power:,})" for power in (below, below + 1))
            raise ValueError(f"`{said}` is not a power of two, as {near} is")
        if number % self.multiple_of:
            around = (number - number % self.multiple_of, number + -number % self.multiple_of)
            near = " or ".join(f"`{self.typed(value)}`" for value in around)
            raise ValueError(f"`{said}` is {number:,} B, no multiple of {self.words(self.multiple_of)}: {near}")


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


def _percent(value: str | int) -> int:
    # A fraction of one is no percentage, and needs no unit.
    share = (float(value) if re.fullmatch(r"0(\.\d+)?", str(value)) else units.share(value)) * 100
    if abs(share - round(share)) > 1e-9 or not 0 <= share <= 100:
        raise ValueError(f"`{value}` is not a whole share from 0 % to 100 %")
    return round(share)
