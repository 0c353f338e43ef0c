"""Choices: their properties, their standing by parameters, and the known answers that prove them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from tollbar.catalog.families.coordinates import Unsupported, Value
from tollbar.catalog.families.standing import Authority, Mitigations, Standing


@dataclass(frozen=True, slots=True)
class Choice:
    """Option of a family."""

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
    """Inputs of every task of this choice, such as its test key."""
    note: str | None
    mitigates: Mitigations = field(default_factory=dict)
    """Mitigations by threat of the family, unless a setting's value decides a threat."""
    unanswered: tuple[str, ...] = ()
    """Operations with a new result each time, so that they have no known answer."""
    levels: tuple[Level, ...] = ()
    """Standing by its parameters: the first level that is met counts, and the last always is.

    The choice's own standing and authority are then those at its default parameters.
    """
    memory: tuple[Value, ...] = ()
    """Sizes and parameters whose product is the memory of one operation, in bytes; empty if negligible."""
    unsupported: tuple[Unsupported, ...] = ()
    servers: tuple[str, ...] = ()
    """Servers that alone have it; empty: its providers do."""

    @property
    def is_set_by_study(self) -> bool:
        """True if its parameters are settings of a study, which decide its standing."""
        return bool(self.levels) and not self.setting

    @property
    def standing_text(self) -> str:
        """Standing for people."""
        return "by its settings" if self.is_set_by_study else self.standing.words

    def at(self, coordinates: Mapping[str, Value]) -> Choice:
        """Return the choice with its best possible standing at these parameters, and the authority for it."""
        if not self.levels:
            return self
        parameters = {**coordinates, **self.setting}
        level = next((one for one in self.levels if one.is_met(parameters)), None)
        return self if level is None else replace(self, standing=level.standing, authority=level.authority)

    def memory_bytes(self, coordinates: Mapping[str, Value]) -> int:
        """Return the memory of one operation with these parameters, in bytes; 0 if negligible."""
        parameters = {**coordinates, **self.setting}
        factors = [int(parameters.get(str(factor), factor)) for factor in self.memory]
        return prod(factors) if factors else 0

    def answers_of(self, operation: str) -> tuple[Answer, ...]:
        """Return the known answers that this operation must produce."""
        return () if operation in self.unanswered else self.answers


@dataclass(frozen=True, slots=True)
class Answer:
    """Known answer: the result for these inputs, with these settings instead of the cell's."""

    inputs: Mapping[str, str]
    expected: str
    setting: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Level:
    """Standing of a choice from these parameters on, and the authority for it."""

    at_least: Mapping[str, int]
    """Least parameters; empty for the lowest level, below all others."""
    standing: Standing
    authority: tuple[Authority, ...]

    def is_met(self, parameters: Mapping[str, Value]) -> bool:
        """Return whether each parameter is at least as large as required; a missing one may be."""
        return all(int(parameters[name]) >= least for name, least in self.at_least.items() if name in parameters)
