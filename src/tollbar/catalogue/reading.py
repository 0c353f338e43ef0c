"""Reading a family's file: TOML in, a `Family` out, or one line that says what is wrong where."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tollbar.catalogue.definition import (
    Answer,
    Authority,
    Choice,
    Degree,
    Family,
    Mitigation,
    Setting,
    SettingValue,
    Standing,
    Threat,
    Value,
)
from tollbar.errors import TollbarError


class _Wire(BaseModel):
    # Kebab-case keys; nothing unknown is let through.
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


class _WirePartly(_Wire):
    partly: str


_WireMitigations = dict[str, Literal["yes", "no"] | _WirePartly]


class _WireChoice(_Wire):
    title: str
    spec: str
    year: int | None = None
    strength: int | None = None
    strength_from: str | None = None
    standing: Standing
    authority: tuple[_WireAuthority, ...] = ()
    answers: tuple[_WireAnswer, ...] = ()
    mitigates: _WireMitigations = {}
    setting: dict[str, Value] = {}
    key: str | None = None
    note: str | None = None
    varies: tuple[str, ...] = ()


class _WireValue(_Wire):
    title: str
    spec: str | None = None
    strength: int | None = None
    strength_from: str | None = None
    standing: Standing | None = None
    authority: tuple[_WireAuthority, ...] = ()
    mitigates: _WireMitigations = {}
    only: dict[str, tuple[str, ...]] = {}
    note: str | None = None


class _WireSetting(_Wire):
    title: str
    unit: Literal["bytes", "percent"] | None = None
    values: tuple[Value, ...] | None = None
    default: Value
    only: dict[str, tuple[str, ...]] = {}
    value: dict[str, _WireValue] = {}


class _WireThreat(_Wire):
    title: str


class _WireHead(_Wire):
    title: str
    operations: tuple[str, ...]
    unanswered: tuple[str, ...] = ()
    strength_means: str | None = None

    @model_validator(mode="after")
    def _knows_its_operations(self) -> _WireHead:
        for operation in self.unanswered:
            if operation not in self.operations:
                raise ValueError(f"`unanswered`: the family has no operation `{operation}`")
        return self


class _WireFamily(_Wire):
    family: _WireHead
    threat: dict[str, _WireThreat] = {}
    setting: dict[str, _WireSetting] = {}
    choice: dict[str, _WireChoice]


def read_family(path: Traversable) -> Family:
    """Reads one family's file. Raises TollbarError that names file, key and what is wrong."""
    try:
        wire = _WireFamily.model_validate(tomllib.loads(path.read_text("utf-8")))
        root = files("tollbar.catalogue")
        head = wire.family
        found = Family(
            name=path.name.removesuffix(".toml"),
            title=head.title,
            operations=head.operations,
            strength_means=head.strength_means,
            settings={name: _setting(name, s) for name, s in wire.setting.items()},
            choices={name: _choice(name, c, head, root) for name, c in wire.choice.items()},
            threats={name: Threat(name, t.title) for name, t in wire.threat.items()},
        )
        for complaint in _complaints(found):
            raise ValueError(complaint)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise TollbarError(_first_fault(error), where=str(path)) from error
    return found


def _first_fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"`{'.'.join(str(part) for part in fault['loc'])}`: {fault['msg']}"
    return str(error)


def _complaints(family: Family) -> Iterator[str]:
    """What does not fit together in a family whose every key is right."""
    if sum(c.standing is Standing.NULL for c in family.choices.values()) != 1:
        yield 'a family has exactly one choice with `standing = "null"`'
    for choice in family.choices.values():
        yield from _unknown_threats(f"choice.{choice.name}", choice.mitigates, family)
        for operation in choice.varies:
            if operation not in family.operations:
                yield f"`choice.{choice.name}.varies`: the family has no operation `{operation}`"
        if choice.standing is Standing.NULL:
            if choice.mitigates:
                yield f"`choice.{choice.name}.mitigates`: the null choice mitigates nothing"
            continue
        for threat in family.threats:
            if threat not in choice.mitigates:
                yield f"`choice.{choice.name}.mitigates`: nothing is said of the threat `{threat}`"
    for setting in family.settings.values():
        for name, value in setting.about.items():
            key = f"setting.{setting.name}.value.{name}"
            if name not in {str(v) for v in setting.values or ()}:
                yield f"`{key}`: the setting has no such value"
            if value.standing is Standing.NULL:
                yield f"`{key}.standing`: only a choice is null"
            yield from _unknown_threats(key, value.mitigates, family)


def _unknown_threats(key: str, mitigates: Mapping[str, Mitigation], family: Family) -> Iterator[str]:
    return (f"`{key}.mitigates`: the family has no threat `{name}`" for name in mitigates if name not in family.threats)


def _setting(name: str, wire: _WireSetting) -> Setting:
    setting = Setting(
        name=name,
        title=wire.title,
        values=wire.values,
        is_size=wire.unit == "bytes",
        default=wire.default,
        only=wire.only,
        is_share=wire.unit == "percent",
        about={value: _value(value, v) for value, v in wire.value.items()},
    )
    if wire.unit is None:
        return setting
    return replace(setting, default=setting.read(wire.default))


def _value(name: str, wire: _WireValue) -> SettingValue:
    return SettingValue(
        name=name,
        title=wire.title,
        spec=wire.spec,
        strength=wire.strength,
        strength_from=wire.strength_from,
        standing=wire.standing,
        authority=_authorities(wire.authority),
        mitigates=_mitigations(wire.mitigates),
        only=wire.only,
        note=wire.note,
    )


def _choice(name: str, wire: _WireChoice, head: _WireHead, root: Traversable) -> Choice:
    inputs = {"private_key_pem": (root / "keys" / wire.key).read_text("ascii")} if wire.key else {}
    return Choice(
        name=name,
        title=wire.title,
        spec=wire.spec,
        year=wire.year,
        strength=wire.strength,
        strength_from=wire.strength_from,
        standing=wire.standing,
        authority=_authorities(wire.authority),
        answers=tuple(_answer(name, a, root) for a in wire.answers),
        setting=wire.setting,
        inputs=inputs,
        note=wire.note,
        mitigates=_mitigations(wire.mitigates),
        varies=wire.varies,
        unanswered=head.unanswered,
    )


def _authorities(wire: tuple[_WireAuthority, ...]) -> tuple[Authority, ...]:
    return tuple(Authority(a.by, a.where, a.says, a.seen, a.checked) for a in wire)


def _mitigations(wire: _WireMitigations) -> dict[str, Mitigation]:
    return {
        threat: Mitigation(Degree.PARTLY, said.partly) if isinstance(said, _WirePartly) else Mitigation(Degree(said))
        for threat, said in wire.items()
    }


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
