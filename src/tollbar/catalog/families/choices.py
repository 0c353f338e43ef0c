"""A choice: what it is, its standing by its parameters, and the known answers that prove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from tollbar.catalog.families.coordinates import Unsupported, Value
from tollbar.catalog.families.standing import Authority, Mitigations, Standing


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
    """Its standing by its parameters: the first that is met counts, the last always is. Its own standing and
    authority are then those at its default parameters."""
    memory: tuple[Value, ...] = ()
    """Sizes and parameters whose product is the memory that one operation takes, in bytes; empty: not worth saying."""
    unsupported: tuple[Unsupported, ...] = ()

    @property
    def is_set_by_study(self) -> bool:
        """Whether its parameters are settings of a study, which decide its standing."""
        return bool(self.levels) and not self.setting

    @property
    def standing_text(self) -> str:
        """Its standing for people."""
        return "by its settings" if self.is_set_by_study else self.standing.words

    def at(self, coordinates: Mapping[str, Value]) -> Choice:
        """The choice with the standing and the authority that it has with these parameters, at best."""
        if not self.levels:
            return self
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
class Answer:
    """A known answer: with these inputs, and these settings instead of the cell's, the result is this."""

    inputs: Mapping[str, str]
    expected: str
    setting: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Level:
    """The standing of a choice from these parameters on, and the authority for it."""

    at_least: Mapping[str, int]
    """Empty: its standing below all other levels."""
    standing: Standing
    authority: tuple[Authority, ...]

    def is_met(self, parameters: Mapping[str, Value]) -> bool:
        """Whether each of these parameters is as large as the level wants it; one that is not given may be."""
        return all(int(parameters[name]) >= least for name, least in self.at_least.items() if name in parameters)
