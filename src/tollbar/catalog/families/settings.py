"""Settings: the coordinates that a study may vary within a family, with the known facts about their values."""

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
"""Unit of a number: data or memory size in bytes, a share in percent, or a power of two, such as `2^17`."""
IN_BYTES = ("bytes", "memory")
MOST_BYTES = 1 << 30
"""Default limit of a setting in bytes: the engine accepts no larger task."""
MOST = 10_000_000
"""Default limit of a setting that is a number, such as the rows of a table: more take hours to make."""


class NotAValue(ValueError):
    """Raised for a word that is not one of a setting's values."""

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
    """Coordinate that a study may vary within a family, with the conditions under which it applies."""

    name: str
    title: str
    values: tuple[Value, ...] | None
    unit: Unit | None
    default: Value
    only: Mapping[str, tuple[str, ...]]
    about: Mapping[str, SettingValue] = field(default_factory=dict)
    """Facts about its values, by the value as text; most settings protect nothing and have none."""
    in_words: Mapping[str, str] = field(default_factory=dict)
    """Nouns for values that make no sense in a sentence, by the value as text: `no AES instructions` for `no-aes`."""
    least: int | None = None
    most: int | None = None
    multiple_of: int = 1
    least_each: Mapping[str, int] = field(default_factory=dict)
    """Least amount for each one of another setting."""
    unsupported: tuple[Unsupported, ...] = ()
    """Unsupported values; the first entry that fits counts."""
    how: bool = False
    """True if it is a way of performing the operation, although it has facts.

    Costs are compared at one of its values, unless a policy or a threat depends on it.
    """
    breaks_even_with: Mapping[str, Value] = field(default_factory=dict)
    """Reference values, whose cost is undercut from some share on.

    Costs fall linearly with this share.
    """

    @property
    def is_size(self) -> bool:
        """True if it is the size of the data of an operation."""
        return self.unit == "bytes"

    @property
    def is_share(self) -> bool:
        return self.unit == "percent"

    @property
    def is_count(self) -> bool:
        """True if any whole number within its bounds is a value, written as such."""
        return self.unit is None and self.values is None and isinstance(self.default, int)

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return self.unit is not None or self.is_count

    def applies(self, coordinates: Mapping[str, Value], *, only: Mapping[str, tuple[str, ...]] | None = None) -> bool:
        """Return whether the setting applies at these coordinates (`choice`, `provider`, `op`, …).

        `only` are the conditions to test, by default all.
        """
        return fits(self.only if only is None else only, coordinates)

    def read(self, value: object) -> Value:
        """Return a study's value for this setting. Raises ValueError with a message that follows the key's name."""
        if not isinstance(value, str | int):
            raise ValueError(f"`{units.quoted(value)}` must be a word or a whole number, for example `{self.default}`")
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
        """Return a value as a person writes it: `46 MiB`, `50 %`, `2^17`, `600,000`, `native`."""
        if isinstance(value, str):
            return value
        number = int(value)
        if self.unit in IN_BYTES:
            return units.show_size(number)
        if self.is_share:
            return f"{number} %"
        return f"2^{number.bit_length() - 1}" if self.unit == "power-of-two" else f"{number:,}"

    def typed(self, value: Value) -> str:
        """Return a value as a person types it in a command: `46MiB`, `600000`.

        Blanks separate words, and commas values.
        """
        return self.words(value).replace(" ", "").replace(",", "")

    def _likely(self, value: str | int) -> tuple[str, ...]:
        """Return the units that a number without one may have: `65536` is KiB of memory, as in hash strings."""
        text = str(value)
        is_large = text.isdecimal() and len(text) > len("4096") - 1
        if self.unit != "memory":
            return units.IN_BYTES
        return units.IN_MEMORY[::-1] if is_large else units.IN_MEMORY

    def _check(self, number: int, said: str | int) -> None:
        """Raise ValueError for a number that is out of bounds, or between two values."""
        if self.least is not None and number < self.least:
            raise ValueError(f"`{said}` is too small; it must be at least {self.words(self.least)}")
        if self.most is not None and number > self.most:
            raise ValueError(f"`{units.quoted(said)}` is too large; it must be at most {self.words(self.most)}")
        if self.unit == "power-of-two" and number & (number - 1):
            below = number.bit_length() - 1
            near = " or ".join(f"`2^{power}` ({1 << power:,})" for power in (below, below + 1))
            raise ValueError(f"`{said}` must be a power of two, for example {near}")
        if number % self.multiple_of:
            around = (number - number % self.multiple_of, number + -number % self.multiple_of)
            near = " or ".join(f"`{self.typed(value)}`" for value in around)
            raise ValueError(
                f"`{said}` ({number:,} B) must be a multiple of {self.words(self.multiple_of)}, for example {near}"
            )


@dataclass(frozen=True, slots=True)
class SettingValue:
    """Facts about one value of a setting that protects or weakens something."""

    name: str
    title: str
    spec: str | None
    strength: int | None
    strength_from: str | None
    standing: Standing | None
    authority: tuple[Authority, ...]
    mitigates: Mitigations
    """Mitigations of the threats that this value decides."""
    only: Mapping[str, tuple[str, ...]]
    """Coordinates at which these facts hold; empty: wherever the setting has this value."""
    note: str | None
    raises: tuple[str, ...] = ()
    """Threats that this value mitigates more than its choice; it may only mitigate others less."""
    elsewhere: str | None = None
    """Work that is then done elsewhere and not measured, so that the operation differs from that with other values."""


def _percent(value: str | int) -> int:
    # A fraction of one is not a percentage, and needs no unit.
    share = (float(value) if re.fullmatch(r"0(\.\d+)?", str(value)) else units.share(value)) * 100
    if abs(share - round(share)) > 1e-9 or not 0 <= share <= 100:
        raise ValueError(f"`{value}` must be a whole percentage from 0 % to 100 %, for example `50 %`")
    return round(share)


def read_values(given: Mapping[str, Value], settings: Mapping[str, Setting]) -> dict[str, Value]:
    """Return values as read by their settings; those without a setting are unchanged."""
    return {name: settings[name].read(value) if name in settings else value for name, value in given.items()}
