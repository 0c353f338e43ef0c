"""The catalogue: which families of choices there are, and what is known about each choice.

One TOML file a family in `families/`, beside this code. What a choice *costs* is measured; what it
is *worth* (its standing with the authorities, its strength, the known answers that prove it) is here.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatch
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tollbar import units
from tollbar.errors import TollbarError, unknown

Value = str | int
"""A setting's value: a word or a whole number (sizes are bytes)."""


class Standing(StrEnum):
    """What the authorities say of a choice today."""

    RECOMMENDED = "recommended"
    ACCEPTABLE = "acceptable"
    DEPRECATED = "deprecated"
    DISALLOWED = "disallowed"
    BROKEN = "broken"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Authority:
    """Who says so, where, in what words, and when that was looked up."""

    by: str
    where: str
    says: str
    seen: date
    checked: bool
    """Whether the clause itself was read for this catalogue, or is carried over unread."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A known answer: with these inputs, and these settings instead of the cell's, the result is this."""

    inputs: Mapping[str, str]
    expected: str
    setting: Mapping[str, Value]


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


@dataclass(frozen=True, slots=True)
class Setting:
    """Something a study may vary within a family, and where it means anything."""

    name: str
    title: str
    values: tuple[Value, ...] | None
    is_size: bool
    default: Value
    only: Mapping[str, tuple[str, ...]]

    def applies(self, coordinates: Mapping[str, Value]) -> bool:
        """Whether the setting means anything at these coordinates (`choice`, `op`, …)."""
        return all(
            any(fnmatch(str(coordinates.get(name)), pattern) for pattern in patterns)
            for name, patterns in self.only.items()
        )

    def read(self, value: object) -> Value:
        """A study's value for this setting. Raises ValueError in words that fit behind the key's name."""
        if self.is_size:
            if not isinstance(value, str | int):
                raise ValueError(f'`{value}` is not a size, as in "4 KiB"')
            return units.size_bytes(value)
        if self.values is not None and value not in self.values:
            known = ", ".join(f"`{v}`" for v in self.values)
            raise ValueError(f"`{value}` is not one of {known}")
        if not isinstance(value, str | int):
            raise ValueError(f"`{value}` is neither a word nor a whole number")
        return value


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of choice."""

    name: str
    title: str
    operations: tuple[str, ...]
    strength_means: str | None
    settings: Mapping[str, Setting]
    choices: Mapping[str, Choice]

    @property
    def null(self) -> Choice:
        """The choice that walks the same path and does nothing."""
        return next(c for c in self.choices.values() if c.standing is Standing.NULL)


def families() -> Mapping[str, Family]:
    """Every family of the catalogue, by name."""
    return _read_families()


def family(name: str) -> Family:
    """The family of this name. Raises TollbarError with the nearest names if there is none."""
    known = families()
    if name not in known:
        raise unknown("family", name, known)
    return known[name]


@cache
def _read_families() -> Mapping[str, Family]:
    folder = files(__name__) / "families"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
    read = [read_family(path) for path in paths]
    return {f.name: f for f in read}


# What is written in a family's file. Kebab-case keys; nothing unknown is let through.


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))


class _WireAuthority(_Wire):
    by: str
    where: str
    says: str
    seen: date
    checked: bool = False


class _WireAnswer(BaseModel):
    """`of`, `is`, `with` and `source`; every other key is an input of that name for the runner."""

    model_config = ConfigDict(extra="allow", frozen=True)
    of: str | None = None
    is_: str | None = Field(default=None, alias="is")
    with_: dict[str, Value] = Field(default={}, alias="with")
    source: str | None = None
    file: str | None = None


class _WireChoice(_Wire):
    title: str
    spec: str
    year: int | None = None
    strength: int | None = None
    strength_from: str | None = None
    standing: Standing
    authority: tuple[_WireAuthority, ...] = ()
    answers: tuple[_WireAnswer, ...] = ()
    setting: dict[str, Value] = {}
    key: str | None = None
    note: str | None = None


class _WireSetting(_Wire):
    title: str
    unit: Literal["bytes"] | None = None
    values: tuple[Value, ...] | None = None
    default: Value
    only: dict[str, tuple[str, ...]] = {}


class _WireHead(_Wire):
    title: str
    operations: tuple[str, ...]
    strength_means: str | None = None


class _WireFamily(_Wire):
    family: _WireHead
    setting: dict[str, _WireSetting] = {}
    choice: dict[str, _WireChoice]


def read_family(path: Traversable) -> Family:
    """Reads one family's file. Raises TollbarError that names file, key and what is wrong."""
    try:
        wire = _WireFamily.model_validate(tomllib.loads(path.read_text("utf-8")))
        root = files(__name__)
        settings = {name: _setting(name, s) for name, s in wire.setting.items()}
        choices = {name: _choice(name, c, root) for name, c in wire.choice.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise TollbarError(_first_fault(error), where=str(path)) from error
    name = path.name.removesuffix(".toml")
    head = wire.family
    found = Family(name, head.title, head.operations, head.strength_means, settings, choices)
    if sum(c.standing is Standing.NULL for c in choices.values()) != 1:
        raise TollbarError('a family has exactly one choice with `standing = "null"`', where=str(path))
    return found


def _first_fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"`{'.'.join(str(part) for part in fault['loc'])}`: {fault['msg']}"
    return str(error)


def _setting(name: str, wire: _WireSetting) -> Setting:
    is_size = wire.unit == "bytes"
    default = units.size_bytes(wire.default) if is_size else wire.default
    return Setting(name, wire.title, wire.values, is_size, default, wire.only)


def _choice(name: str, wire: _WireChoice, root: Traversable) -> Choice:
    inputs = {"private_key_pem": (root / "keys" / wire.key).read_text("ascii")} if wire.key else {}
    return Choice(
        name=name,
        title=wire.title,
        spec=wire.spec,
        year=wire.year,
        strength=wire.strength,
        strength_from=wire.strength_from,
        standing=wire.standing,
        authority=tuple(Authority(a.by, a.where, a.says, a.seen, a.checked) for a in wire.authority),
        answers=tuple(_answer(name, a, root) for a in wire.answers),
        setting=wire.setting,
        inputs=inputs,
        note=wire.note,
    )


def _answer(choice: str, wire: _WireAnswer, root: Traversable) -> Answer:
    # Post-quantum vectors run to tens of kilobytes: those stand in a file of their own, with the same keys.
    if wire.file:
        return _answer(choice, _WireAnswer.model_validate(json.loads((root / "vectors" / wire.file).read_text())), root)
    if wire.is_ is None:
        raise ValueError(f"choice.{choice}.answers: a known answer says what it `is`")
    inputs = {key.replace("-", "_"): str(value) for key, value in (wire.model_extra or {}).items()}
    if wire.of is not None:
        inputs["of"] = wire.of
    return Answer(inputs, wire.is_, wire.with_)
