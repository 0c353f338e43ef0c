"""Standing of a choice with the authorities, its sources, and its mitigation of each threat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.catalog.families.coordinates import Value, fits
from tollbar.core.wire import KEYS, Strict


class Standing(StrEnum):
    """Judgement of a choice by the authorities today."""

    RECOMMENDED = "recommended"
    ACCEPTABLE = "acceptable"
    DEPRECATED = "deprecated"
    DISALLOWED = "disallowed"
    BROKEN = "broken"
    NULL = "null"
    REFERENCE = "reference"

    @property
    def words(self) -> str:
        """Text for people; the null choice protects nothing, and a reference is measured for comparison only."""
        return {Standing.NULL: "no protection", Standing.REFERENCE: "reference only"}.get(self, str(self))

    @property
    def is_of_option(self) -> bool:
        """True for the standing of an option; null choices and references are never recommended, whatever they cost."""
        return self not in (Standing.NULL, Standing.REFERENCE)

    def is_above(self, other: Standing) -> bool:
        """Return whether it is better than another one; neither may be the null choice's."""
        return WORST_FIRST.index(self) > WORST_FIRST.index(other)


# A cell with a reference as a part is no option either.
WORST_FIRST = (
    Standing.REFERENCE, Standing.BROKEN, Standing.DISALLOWED, Standing.DEPRECATED, Standing.ACCEPTABLE,
    Standing.RECOMMENDED,
)  # fmt: skip


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Authority(Strict):
    """Source of a standing: author, clause, wording, and the day of reading; as in a family's file."""

    by: str
    where: str
    says: str
    seen: date
    checked: bool = False
    """True if the clause itself was read for this project; else it is quoted from others."""


class Degree(StrEnum):
    """Degree of mitigation, the least first."""

    NO = "no"
    PARTLY = "partly"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Mitigation:
    """Mitigation of a threat, with its condition if it is partial."""

    degree: Degree
    condition: str | None = None
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Coordinates at which it holds, each with the patterns of which one must fit. Empty: everywhere."""


Mitigations = Mapping[str, tuple[Mitigation, ...]]
"""Statements on each threat: the first whose coordinates fit counts; the last always fits."""

UNMITIGATED = (Mitigation(Degree.NO),)
"""Statement on a threat that no statement covers."""


@dataclass(frozen=True, slots=True)
class ThreatSource:
    """Source of the statements on a threat, for some choices."""

    of: tuple[str, ...]
    """Patterns of the choices' names."""
    authority: Authority


@dataclass(frozen=True, slots=True)
class Threat:
    """Threat to the users of a family."""

    name: str
    title: str
    sources: tuple[ThreatSource, ...] = ()


def statement_at(said: Sequence[Mitigation], coordinates: Mapping[str, Value]) -> Mitigation:
    """Return the first statement that holds at these coordinates.

    Its condition may contain their values: `{time-to-live}`.
    """
    found = next(one for one in said if fits(one.when, coordinates))
    return replace(found, condition=found.condition.format_map(dict(coordinates))) if found.condition else found


def least_of(said: Sequence[Mitigation]) -> Mitigation:
    """Return the least of these; if several are partial, with all their conditions."""
    least = min((one.degree for one in said), key=list(Degree).index)
    conditions = [one.condition for one in said if one.degree is least and one.condition]
    return Mitigation(least, "; ".join(conditions) or None)
