"""Questions and answers of a tuning: the requirements, the measurements, and parameters or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass, field

from tollbar.catalog.families import Choice, Family, Standing
from tollbar.catalog.libraries import Provider
from tollbar.core.machine import Limits
from tollbar.decide.rulings import Candidate, Wanted
from tollbar.decide.tune.algorithms import Parameters
from tollbar.decide.tune.attackers import Guesses
from tollbar.decide.tune.together import Elapsed


@dataclass(frozen=True, slots=True)
class Asked:
    """Requirements of a tuning."""

    wanted: Wanted
    within_s: float
    """Longest accepted time of one hash at this concurrency."""
    at_once: int
    memory_bytes: float
    """Memory for all hashes together."""
    memory_by: str
    """Origin of the memory limit."""
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
        """Return the memory for one hash."""
        return self.memory_bytes / self.at_once


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured time of a hash with one set of parameters."""

    parameters: Parameters
    memory_bytes: int
    """Memory of one hash; 0: negligible."""
    elapsed: Elapsed


@dataclass(frozen=True, slots=True)
class Tuned:
    """A choice with the parameters that take as long as may be."""

    choice: Choice
    provider: Provider
    candidate: Candidate
    """Candidate with the rulings of the policies: met or open."""
    standing: Standing
    measured: Measured
    is_near: bool
    """True if a hash takes nearly the requested time; a coarse grain or the memory limit may prevent it."""
    beyond: Measured | None
    """The least that was measured and takes longer than the time asked for."""
    guesses: Guesses
    points: tuple[Measured, ...] = ()
    """Measurements of the choice at this concurrency, in order."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A choice without such parameters, and why."""

    choice: Choice
    candidate: Candidate | None = None
    """With the least parameters that meet the policies; or with its defaults, where none do."""
    measured: Measured | None = None
    """Time of the smallest allowed parameters, which is too long."""
    needs_bytes: int | None = None
    """Memory that the smallest parameters need at this concurrency, which is too much."""
    reason: str | None = None
    """Reason why nothing could be measured."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Results of a tuning, those with the fewest guesses for an attacker first."""

    asked: Asked
    tuned: tuple[Tuned, ...]
    """Results that meet the policies."""
    unsaid: tuple[Tuned, ...]
    """Results that break no rule, but miss a fact that a ruling needs."""
    missed: tuple[Missed, ...]
    nearest: Missed | None = field(default=None)
    """Choice that exceeds the time by the least, if nothing is found."""
