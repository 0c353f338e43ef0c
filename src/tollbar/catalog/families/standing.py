"""The standing of a choice with the authorities, its sources, and how far it mitigates each threat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.catalog.families.coordinates import Value, fits, is_one_of
from tollbar.core.wire import KEYS, Strict


class Standing(StrEnum):
    """What the authorities say of a choice today."""

    RECOMMENDED = "recommended"
    ACCEPTABLE = "acceptable"
    DEPRECATED = "deprecated"
    DISALLOWED = "disallowed"
    BROKEN = "broken"
    NULL = "null"

    @property
    def words(self) -> str:
        """For people; the null choice protects nothing and has none."""
        return "no protection" if self is Standing.NULL else str(self)

    def is_above(self, other: Standing) -> bool:
        """Whether it is better than another one; neither is the null choice's."""
        return WORST_FIRST.index(self) > WORST_FIRST.index(other)


WORST_FIRST = (
    Standing.BROKEN, Standing.DISALLOWED, Standing.DEPRECATED, Standing.ACCEPTABLE, Standing.RECOMMENDED,
)  # fmt: skip


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Authority(Strict):
    """Who says so, where, in what words, and when that was looked up; as a family's file has it."""

    by: str
    where: str
    says: str
    seen: date
    checked: bool = False
    """Whether the clause itself was read for this project, or is carried over unread."""


class Degree(StrEnum):
    """How far a threat is mitigated, the least first."""

    NO = "no"
    PARTLY = "partly"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Mitigation:
    """Whether a threat is mitigated, and on what condition where it is so only partly."""

    degree: Degree
    condition: str | None = None
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Coordinates, each with the patterns of which one must fit: where this is so. Empty: everywhere."""


Mitigations = Mapping[str, tuple[Mitigation, ...]]
"""What is said of each threat: of several statements the first whose coordinates fit counts; the last always fits."""

UNMITIGATED = (Mitigation(Degree.NO),)
"""What is said of a threat of which nothing is."""


@dataclass(frozen=True, slots=True)
class ThreatSource:
    """What the statements on a threat rest on, for some choices."""

    of: tuple[str, ...]
    """Patterns of the choices' names."""
    authority: Authority


@dataclass(frozen=True, slots=True)
class Threat:
    """Something that may happen to the users of a family."""

    name: str
    title: str
    sources: tuple[ThreatSource, ...] = ()

    def authority_for(self, choice: str) -> tuple[Authority, ...]:
        """Where it comes from what is said of this threat and this choice."""
        return tuple(s.authority for s in self.sources if is_one_of(choice, s.of))


def statement_at(said: Sequence[Mitigation], coordinates: Mapping[str, Value]) -> Mitigation:
    """The first of these that is so at these coordinates, whose values its condition may say: `{time-to-live}`."""
    found = next(one for one in said if fits(one.when, coordinates))
    return replace(found, condition=found.condition.format_map(dict(coordinates))) if found.condition else found


def least_of(said: Sequence[Mitigation]) -> Mitigation:
    """The least of these; where several are partial, all their conditions."""
    least = min((one.degree for one in said), key=list(Degree).index)
    conditions = [one.condition for one in said if one.degree is least and one.condition]
    return Mitigation(least, "; ".join(conditions) or None)
