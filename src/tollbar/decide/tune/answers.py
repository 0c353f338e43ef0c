"""Questions and answers of a tuning: what is to be found, what was measured, and parameters or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass, field

from tollbar.catalog.families import Choice, Family, Standing
from tollbar.catalog.libraries import Provider
from tollbar.core.machine import Limits
from tollbar.decide.choosing import Candidate, Wanted
from tollbar.decide.tune.algorithms import Parameters
from tollbar.decide.tune.attackers import Guesses
from tollbar.decide.tune.together import Elapsed


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be found."""

    wanted: Wanted
    within_s: float
    """How long one hash may take, while so many are under way."""
    at_once: int
    memory_bytes: float
    """What all of them may take together."""
    memory_by: str
    """What says so."""
    limits: Limits
    choices: tuple[Choice, ...]
    providers: tuple[Provider, ...]
    card: str
    seed: int = 0

    @property
    def family(self) -> Family:
        return self.wanted.family

    @property
    def each_bytes(self) -> float:
        """What one of them may take."""
        return self.memory_bytes / self.at_once


@dataclass(frozen=True, slots=True)
class Measured:
    """One set of parameters, and how long a hash with them took."""

    parameters: Parameters
    memory_bytes: int
    """Of one; 0: not worth saying."""
    elapsed: Elapsed


@dataclass(frozen=True, slots=True)
class Tuned:
    """A choice with the parameters that take as long as may be."""

    choice: Choice
    provider: Provider
    candidate: Candidate
    """What the policies say of it: that it meets them, or that it cannot be said."""
    standing: Standing
    measured: Measured
    is_near: bool
    """Whether it takes nearly the time asked for; its grain may be too coarse, or its memory come to an end."""
    beyond: Measured | None
    """The least that was measured and takes longer than the time asked for."""
    guesses: Guesses
    points: tuple[Measured, ...] = ()
    """All that was measured of it with so many at once, in order."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A choice without such parameters, and why."""

    choice: Choice
    candidate: Candidate | None = None
    """With the least parameters that meet the policies; or with its defaults, where none do."""
    measured: Measured | None = None
    """How long the least parameters take, which is too long."""
    needs_bytes: int | None = None
    """What the least parameters need of memory for so many at once, which is too much."""
    reason: str | None = None
    """Why nothing could be measured."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was found: what an attacker gets least of stands first."""

    asked: Asked
    tuned: tuple[Tuned, ...]
    """What meets the policies."""
    unsaid: tuple[Tuned, ...]
    """What breaks no rule, and something is missing to say more."""
    missed: tuple[Missed, ...]
    nearest: Missed | None = field(default=None)
    """Where nothing is found: what takes the least time too long."""
