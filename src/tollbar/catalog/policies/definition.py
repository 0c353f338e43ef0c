"""What a policy is: rules with clause, source and date, as its file has them; and what it says of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from tollbar.catalog.families import Degree, Standing, Value
from tollbar.core.patterns import MOST_LETTERS
from tollbar.core.units import quoted
from tollbar.core.wire import Wire

PLACES = ("provider", "server", "op")
"""Coordinates that are no settings of a family: what performs a cell, behind which server, and what it does."""

KINDS = ("standing", "strength", "only", "never", "mitigates", "at_least", "cannot_say")
"""What a rule may ask, of which each asks one."""

Unlisted = Literal["not approved", "cannot say"]
"""What a policy makes of what it does not list, by its own word."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
OneOrMore = BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
"""Accepts one word where a list may be written."""
Names = Annotated[tuple[str, ...], OneOrMore, Field(min_length=1)]


def _of_limited_length(patterns: tuple[str, ...]) -> tuple[str, ...]:
    long = next((one for one in patterns if len(one) > MOST_LETTERS), None)
    if long is not None:
        what = f"`{quoted(long)}` has {len(long):,} letters; a pattern must have at most {MOST_LETTERS}"
        raise ValueError(f"{what}, for example `sha-*`")
    return patterns


Patterns = Mapping[str, tuple[str, ...]]
"""Coordinates, each with patterns of which one fits."""
_Patterns = dict[str, Annotated[Names, AfterValidator(_of_limited_length)]]


class Ruling(StrEnum):
    """What a rule, or a whole policy, says of a cell."""

    MEETS = "meets"
    BREAKS = "breaks"
    CANNOT_SAY = "cannot say"


class Rule(Wire):
    """One thing that a policy asks; of `standing` … `cannot_say` it has exactly one."""

    id: str
    clause: Text
    families: Names = Field(alias="family")
    source: Text
    checked: bool
    """Whether the clause itself was read for this project, or is known by what others quote of it."""
    where: _Patterns = Field(default_factory=dict)
    """The cells that it is about; empty: all of these families."""
    standing: Standing | None = None
    """At least."""
    strength: int | None = Field(default=None, gt=0)
    """Bits, at least."""
    only: _Patterns = Field(default_factory=dict)
    never: _Patterns = Field(default_factory=dict)
    mitigates: dict[str, Degree] = Field(default_factory=dict)
    """How far a threat is to be mitigated at least."""
    at_least: tuple[dict[str, Value], ...] = ()
    """Parameters, of one of these sets each at least so large, as the file writes them."""
    cannot_say: Text | None = None
    """What Tollbar does not see and the clause asks for."""
    unlisted: Unlisted
    """Of a rule with `only`: what others than these are."""
    should: bool = False
    """Whether it is advice, which a cell may leave and still meet the policy."""
    ours: bool = False
    """Whether it is this project that says which choices the clause means."""
    begins: date | None = Field(default=None, alias="from")
    ends: date | None = Field(default=None, alias="until")
    """The last day."""
    absent: tuple[str, ...] = ()
    """Values that it names and the families have not."""
    note: str | None = None

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Rule:
        asks = [kind for kind in KINDS if getattr(self, kind) not in (None, {}, ())]
        if len(asks) != 1:
            known = ", ".join(f"`{kind.replace('_', '-')}`" for kind in KINDS)
            raise ValueError(f"the rule `{self.id}` asks {len(asks)} things: one of {known}")
        for threat, degree in self.mitigates.items():
            if degree is Degree.NO:
                raise ValueError(f"the rule `{self.id}` asks nothing about {threat}: `yes`, or at least `partly`")
        if not all(self.at_least):
            raise ValueError(f"the rule `{self.id}` has a set in `at-least` that asks nothing")
        if self.begins and self.ends and self.ends < self.begins:
            raise ValueError(f"the rule `{self.id}` ends before it begins")
        return self

    @property
    def is_of_providers(self) -> bool:
        """Whether it says of which providers its policy says nothing, where there are others: nothing breaks it."""
        every = {"*", "?*"} & {*self.where.get("provider", ())}
        return self.cannot_say is not None and {*self.where} == {"provider"} and not every

    def holds(self, on: date) -> bool:
        """Whether it is in force on this day."""
        return (self.begins is None or self.begins <= on) and (self.ends is None or on <= self.ends)


class Except(Wire):
    """A rule that some cells need not meet for a time."""

    rule: str
    """Its id; of several policies with one of this id `POLICY:ID`."""
    where: _Patterns = Field(default_factory=dict)
    because: Text
    until: date
    """The last day."""


class NotJudged(Wire):
    """What the source asks, and Tollbar cannot see."""

    clause: Text
    what: Text


class About(Wire):
    """The table `policy` of a file: the edition, and what its rules have unless they say otherwise."""

    title: str
    by: str
    edition: str
    dated: date = Field(alias="date")
    """Of the edition: its rules hold from that day on."""
    source: Text
    seen: date
    checked: bool = False
    unlisted: Unlisted = "cannot say"
    word: str | None = None
    """How its source calls what breaks a rule; None: `not approved` where it is not listed, else `refused`."""
    extends: tuple[str, ...] = ()
    """The policies that it extends, each by name or by its path from the file's folder."""
    not_judged: tuple[NotJudged, ...] = ()
    note: str | None = None


class Policy(About):
    """Rules of one edition, and of the policies that it extends."""

    name: str
    rules: tuple[Rule, ...]
    excepts: tuple[Except, ...]
    bases: tuple[Policy, ...]
    """The policies that it extends."""

    @property
    def all_of_it(self) -> Iterator[Policy]:
        """The policies that it extends, and itself, each once."""
        found: dict[str, Policy] = {}
        visited: set[int] = set()

        def visit(policy: Policy) -> None:
            # Several may extend one, which has been visited then with all below it.
            if id(policy) in visited:
                return
            visited.add(id(policy))
            for one in policy.bases:
                visit(one)
            found[policy.name] = policy

        visit(self)
        yield from found.values()

    def is_about(self, family: str) -> bool:
        """Whether it has a rule on this family, or one that it extends has."""
        return any(policy.has_rules_on(family) for policy in self.all_of_it)

    def has_rules_on(self, family: str) -> bool:
        """Whether it has a rule on this family itself."""
        return any(family in rule.families for rule in self.rules)

    @property
    def turns(self) -> tuple[date, ...]:
        """The days on which a rule begins to hold, or holds no more, in order."""
        found = set()
        for policy in self.all_of_it:
            for rule in policy.rules:
                found |= {rule.begins} if rule.begins else set()
                found |= {rule.ends + timedelta(days=1)} if rule.ends else set()
            found |= {one.until + timedelta(days=1) for one in policy.excepts}
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What one rule says of a cell."""

    policy: str
    """The one that the rule stands in."""
    rule: Rule
    ruling: Ruling
    why: str
    """Of a rule that is broken, what breaks it; where it cannot be said, what is missing; else empty."""
    excepted: Except | None = None
    """By which it need not be met."""
    ended: Except | None = None
    """By which it needed not to be met, until that ended."""
    unneeded: Except | None = None
    """By which it need not be met, and it is met."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a policy says of a cell on a day."""

    policy: Policy
    on: date
    ruling: Ruling
    findings: tuple[RuleFinding, ...]
    """Of every rule that is in force and about such cells."""
    missing: str | None = None
    """Where no rule is about such cells: that."""

    @property
    def broken(self) -> tuple[RuleFinding, ...]:
        """Rules that make it break the policy."""
        return self._those(Ruling.BREAKS)

    @property
    def unknown(self) -> tuple[RuleFinding, ...]:
        """Rules of which it cannot be said."""
        return self._those(Ruling.CANNOT_SAY)

    @property
    def advice(self) -> tuple[RuleFinding, ...]:
        """Advice that is not followed."""
        return tuple(one for one in self.findings if one.rule.should and one.ruling is Ruling.BREAKS)

    @property
    def ended(self) -> tuple[RuleFinding, ...]:
        """Rules whose exception has ended."""
        return tuple(one for one in self.findings if one.ended)

    def _those(self, ruling: Ruling) -> tuple[RuleFinding, ...]:
        return tuple(one for one in self.findings if one.ruling is ruling and not one.excepted and not one.rule.should)
