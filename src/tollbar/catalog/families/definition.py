"""Definition of a family: its choices and settings, and the resulting properties of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.catalog.families.choices import Choice
from tollbar.catalog.families.coordinates import Value, fits, is_one_of
from tollbar.catalog.families.settings import Setting, SettingValue
from tollbar.catalog.families.standing import (
    UNMITIGATED,
    WORST_FIRST,
    Authority,
    Mitigation,
    Standing,
    Threat,
    least_of,
    statement_at,
)
from tollbar.core.metrics import Metric
from tollbar.core.wire import KEYS, Strict

DEFAULT_PROVIDERS = ("libcrypto",)
"""Provider of families that name none: the system's own libcrypto."""

Part = Choice | SettingValue
"""Part of a cell that its family has facts about."""


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Default(Strict):
    """Choice of an expert without further requirements, as in a family's file."""

    choice: str
    reason: str
    authority: tuple[Authority, ...]
    setting: dict[str, Value] = field(default_factory=dict)
    """Settings of the default; all others have their own defaults."""


@dataclass(frozen=True, slots=True)
class Family:
    """Kind of choice, such as digests or TLS."""

    name: str
    title: str
    operations: tuple[str, ...]
    strength_means: str | None
    settings: Mapping[str, Setting]
    choices: Mapping[str, Choice]
    threats: Mapping[str, Threat] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics that its runners observe in addition to those of every runner."""
    folder: Path | None = None
    """Folder that it was read from; None if it was not read from a folder."""
    providers: tuple[str, ...] = DEFAULT_PROVIDERS
    """Providers of a study that names none."""
    load: bool = True
    """True if a study describes the users of its servers; else the runner sends its own requests."""
    servers: tuple[str, ...] = ()
    """Servers of a study that names none, for a family that only servers perform."""
    built_in: tuple[str, ...] = ()
    """Parts of the engine that perform only this family."""
    is_self_test: bool = False
    """True if it tests the lab, and its choices are not about security."""
    default: Default | None = None
    """Recommended choice; None if the family names none, such as families of old runs."""

    def typed(self, name: str, value: Value) -> str:
        """Return a coordinate's value as a person types it in a command: `4KiB`, `600000`, `sha-256`."""
        setting = self.settings.get(name)
        return str(value) if setting is None else setting.typed(value)

    def with_names(self, values: Mapping[str, Value]) -> str:
        """Return values of settings behind their names: `iterations 600,000, memory 19 MiB`."""
        return ", ".join(f"{name} {self.settings[name].words(value)}" for name, value in values.items())

    @property
    def parameters(self) -> frozenset[str]:
        """Settings that are parameters of a choice, to be set together with it."""
        own = [choice for choice in self.choices.values() if choice.is_set_by_study]
        return frozenset(
            name
            for name, setting in self.settings.items()
            if set(setting.only) == {"choice"} and any(setting.applies({"choice": choice.name}) for choice in own)
        )

    @property
    def null(self) -> Choice:
        """Choice that takes the same path and does nothing."""
        return next(c for c in self.choices.values() if c.standing is Standing.NULL)

    def parts_of(self, coordinates: Mapping[str, Value]) -> tuple[Part, ...]:
        """Return the choice at these coordinates, and the values of its settings that the family has facts about."""
        choice = self.choices[str(coordinates["choice"])].at(coordinates)
        return (choice, *self.values_at(coordinates))

    def standing_of(self, coordinates: Mapping[str, Value]) -> Standing:
        """Return the worst standing of a cell's parts: a cell with a broken part is broken.

        Missing parameters and settings are assumed to be good ones, so this is the best possible standing of the cell.
        """
        found = [part.standing for part in self.parts_of(coordinates) if part.standing is not None]
        return Standing.NULL if Standing.NULL in found else min(found, key=WORST_FIRST.index)

    def lowered_by(self, coordinates: Mapping[str, Value]) -> str | None:
        """Return the setting whose value alone determines a cell's standing; None if its choice already has it."""
        of_all, of_choice = self.standing_of(coordinates), self.choices[str(coordinates["choice"])].at(coordinates)
        if of_choice.standing is of_all:
            return None
        by_setting = {name: self._value_at(name, coordinates) for name in self.settings}
        return next(name for name, value in by_setting.items() if value is not None and value.standing is of_all)

    def strength_of(self, coordinates: Mapping[str, Value]) -> int | None:
        """Return the least strength of a cell's parts, in bits; None if no part has one."""
        return min((part.strength for part in self.parts_of(coordinates) if part.strength is not None), default=None)

    def mitigations_of(self, coordinates: Mapping[str, Value], *, of_choice: bool = False) -> Mapping[str, Mitigation]:
        """Return a cell's mitigation of each threat of the family; with `of_choice`, that of its choice alone.

        If values of its settings decide a threat, the least of their statements holds; else the choice's. The null
        choice mitigates nothing.
        """
        choice = self.choices[str(coordinates["choice"])]
        values = () if of_choice else self.values_at(coordinates)
        found: dict[str, Mitigation] = {}
        for threat in self.threats:
            said = [statement_at(value.mitigates[threat], coordinates) for value in values if threat in value.mitigates]
            by_choice = choice.mitigates.get(threat, UNMITIGATED)
            found[threat] = least_of(said) if said else statement_at(by_choice, coordinates)
        return found

    def contradiction(self, coordinates: Mapping[str, Value]) -> str | None:
        """Return a contradiction between values that are possible by themselves, or None."""
        for name, setting in self.settings.items():
            for other, least in setting.least_each.items():
                if name in coordinates and other in coordinates:
                    needed = least * int(coordinates[other])
                    if int(coordinates[name]) < needed:
                        has, each = setting.words(coordinates[name]), setting.words(least)
                        return (
                            f"`{name}` is {has}; {coordinates[other]} `{other}` need at least"
                            f" {setting.words(needed)} ({each} each)"
                        )
        return None

    def default_at(self, name: str, coordinates: Mapping[str, Value]) -> Value:
        """Return the default of a setting there, or the supported value with the best standing if that is unsupported.

        `coordinates` may be those of an incomplete cell.
        """
        setting = self.settings[name]
        default, others = setting.default, setting.values or ()
        if not self._refusal(name, {**coordinates, name: default}):
            return default

        def rank(value: Value) -> int:
            known = self._value_at(name, {**coordinates, name: value})
            return WORST_FIRST.index(known.standing if known and known.standing else Standing.RECOMMENDED)

        possible = [value for value in others if not self._refusal(name, {**coordinates, name: value})]
        return max(possible, key=rank, default=default)

    def why_unsupported(self, coordinates: Mapping[str, Value]) -> str | None:
        """Return why a cell is unsupported, with supported values of its settings; None if it is supported."""
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
        """Return whether a setting may have this value there."""
        return self._refusal(name, {**coordinates, name: value}) is None

    def _refusal(self, name: str, coordinates: Mapping[str, Value]) -> str | None:
        return next(_refusals(self.settings[name], coordinates[name], coordinates), None)

    def values_at(self, coordinates: Mapping[str, Value]) -> list[SettingValue]:
        """Return the values of a cell's settings that the family has facts about there."""
        found = (self._value_at(name, coordinates) for name, setting in self.settings.items() if setting.about)
        return [value for value in found if value is not None]

    def done_elsewhere(self, name: str, coordinates: Mapping[str, Value]) -> str | None:
        """Return the work that this coordinate moves elsewhere, where it is not measured, or None."""
        value = self._value_at(name, coordinates) if name in self.settings else None
        return value.elsewhere if value is not None else None

    def _value_at(self, name: str, coordinates: Mapping[str, Value]) -> SettingValue | None:
        value = self.settings[name].about.get(str(coordinates[name])) if name in coordinates else None
        return value if value is not None and fits(value.only, coordinates) else None


def _refusals(of: Choice | Setting, value: Value, coordinates: Mapping[str, Value]) -> Iterator[str]:
    """Yield the reasons against this choice, or this value of a setting, there."""
    for one in of.unsupported:
        if is_one_of(str(value), one.values) and fits(one.where, coordinates):
            yield one.because
