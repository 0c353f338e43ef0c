"""Definition of a policy: its file's rules with clause, source and date, and its judgement of a cell."""

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
"""Coordinates that are not settings of a family: the provider of a cell, its server, and its operation."""

KINDS = ("standing", "strength", "only", "never", "mitigates", "at_least", "cannot_say")
"""Kinds of requirement, of which each rule has one."""

Unlisted = Literal["not approved", "cannot say"]
"""Ruling of a policy on unlisted values, in its own words."""

MOST_TEXT = 1_000
"""Limit of a text of a policy, seven times the longest that ships: it is printed with each cell that breaks a rule."""

MOST_NAME = 100
"""Limit of the letters of a rule's id, and of a policy's `word`, which are in each finding."""

MOST_ABSENT = 1_000
"""Limit of the values of a rule that the families do not have."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_TEXT)]
Title = Annotated[str, StringConstraints(max_length=MOST_TEXT)]
Name = Annotated[str, StringConstraints(max_length=MOST_NAME)]
OneOrMore = BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
"""Validator that accepts one word instead of a list."""
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
    """Ruling of a rule, or a whole policy, on a cell."""

    MEETS = "meets"
    BREAKS = "breaks"
    CANNOT_SAY = "cannot say"

    @property
    def words(self) -> str:
        """Ruling for people."""
        return "undecided" if self is Ruling.CANNOT_SAY else self.value


class Rule(Wire):
    """Single requirement of a policy; it has exactly one of `standing` … `cannot_say`."""

    id: Name
    clause: Text
    families: Names = Field(alias="family")
    source: Text
    checked: bool
    """True if the clause itself was read for this project; else it is quoted from others."""
    where: _Patterns = Field(default_factory=dict)
    """Coordinates of the cells that it covers; empty: all of these families."""
    standing: Standing | None = None
    """Least standing."""
    strength: int | None = Field(default=None, gt=0)
    """Least strength in bits."""
    only: _Patterns = Field(default_factory=dict)
    never: _Patterns = Field(default_factory=dict)
    mitigates: dict[str, Degree] = Field(default_factory=dict)
    """Least mitigation of each threat."""
    at_least: tuple[dict[str, Value], ...] = ()
    """Sets of least parameters, of which one must be met, as the file writes them."""
    cannot_say: Text | None = None
    """Part of the clause that Tollbar cannot see."""
    unlisted: Unlisted
    """Ruling of a rule with `only` on other values."""
    should: bool = False
    """True if it is advice, which a cell may ignore and still meet the policy."""
    ours: bool = False
    """True if this project decides which choices the clause means."""
    begins: date | None = Field(default=None, alias="from")
    ends: date | None = Field(default=None, alias="until")
    """Last day."""
    absent: Annotated[tuple[str, ...], Field(max_length=MOST_ABSENT)] = ()
    """Values that it names and the families do not have."""
    note: Title | None = None

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Rule:
        asks = [kind for kind in KINDS if getattr(self, kind) not in (None, {}, ())]
        if len(asks) != 1:
            known = ", ".join(f"`{kind.replace('_', '-')}`" for kind in KINDS)
            raise ValueError(f"the rule `{self.id}` has {len(asks)} requirements; it must have exactly one of {known}")
        for threat, degree in self.mitigates.items():
            if degree is Degree.NO:
                raise ValueError(f"the rule `{self.id}` requires nothing for {threat}; it must be `yes` or `partly`")
        if not all(self.at_least):
            raise ValueError(
                f"the rule `{self.id}` has an empty set in `at-least`; each needs a value, for example `{{ n = 2 }}`"
            )
        if self.begins and self.ends and self.ends < self.begins:
            raise ValueError(f"the rule `{self.id}` ends before it begins; `until` must not be before `from`")
        return self

    @property
    def is_of_providers(self) -> bool:
        """True if it only states that its policy does not cover these providers, so that nothing breaks it."""
        every = {"*", "?*"} & {*self.where.get("provider", ())}
        return self.cannot_say is not None and {*self.where} == {"provider"} and not every

    @property
    def patterns(self) -> int:
        """Number of its patterns."""
        return sum(sum(map(len, part.values())) for part in (self.where, self.only, self.never))

    @property
    def letters(self) -> int:
        """Number of the letters that a finding of it repeats."""
        texts = (self.id, self.clause, self.source, self.cannot_say, self.note)
        return sum(len(text or "") for text in texts)

    def holds(self, on: date) -> bool:
        """Return whether it is in force on this day."""
        return (self.begins is None or self.begins <= on) and (self.ends is None or on <= self.ends)


class Except(Wire):
    """Temporary exception of some cells from a rule."""

    rule: str
    """Id of the rule; `POLICY:ID` if several policies have a rule of this id."""
    where: _Patterns = Field(default_factory=dict)
    because: Text
    until: date
    """Last day."""


class NotJudged(Wire):
    """Requirement of the source that Tollbar cannot see."""

    clause: Text
    what: Text


class About(Wire):
    """Table `policy` of a file: the edition, and the defaults of its rules."""

    title: Title
    by: Title
    edition: Name
    dated: date = Field(alias="date")
    """Date of the edition, from which its rules hold."""
    source: Text
    seen: date
    checked: bool = False
    unlisted: Unlisted = "cannot say"
    word: Name | None = None
    """Word of its source for a broken rule; None: `not approved` for unlisted values, else `refused`."""
    extends: tuple[str, ...] = ()
    """Policies that it extends, each by name or by its path from the file's folder."""
    not_judged: tuple[NotJudged, ...] = ()
    note: Title | None = None


class Policy(About):
    """Rules of one edition, and of the policies that it extends."""

    name: str
    rules: tuple[Rule, ...]
    excepts: tuple[Except, ...]
    bases: tuple[Policy, ...]
    """Policies that it extends."""
    is_place: bool = False
    """True for a place of use, whose rules only exclude: a choice that no rule covers meets it."""

    @property
    def all_of_it(self) -> Iterator[Policy]:
        """Policies that it extends, and itself, each once."""
        found: dict[str, Policy] = {}
        visited: set[int] = set()

        def visit(policy: Policy) -> None:
            # Several policies may extend the same one, which is visited with its bases only once.
            if id(policy) in visited:
                return
            visited.add(id(policy))
            for one in policy.bases:
                visit(one)
            found[policy.name] = policy

        visit(self)
        yield from found.values()

    def is_about(self, family: str) -> bool:
        """Return whether it, or a policy that it extends, has a rule on this family."""
        return any(policy.has_rules_on(family) for policy in self.all_of_it)

    def has_rules_on(self, family: str) -> bool:
        """Return whether it has a rule on this family itself."""
        return any(family in rule.families for rule in self.rules)

    @property
    def turns(self) -> tuple[date, ...]:
        """Days on which a rule begins or ceases to hold, in order."""
        found = set()
        for policy in self.all_of_it:
            for rule in policy.rules:
                found |= {rule.begins} if rule.begins else set()
                found |= {rule.ends + timedelta(days=1)} if rule.ends else set()
            found |= {one.until + timedelta(days=1) for one in policy.excepts}
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """Ruling of one rule on a cell."""

    policy: str
    """Policy that contains the rule."""
    rule: Rule
    ruling: Ruling
    why: str
    """Reason: the violation of a broken rule, or the missing information if it cannot be said; else empty."""
    excepted: Except | None = None
    """Exception from the rule that is in force."""
    ended: Except | None = None
    """Exception from the rule that has ended."""
    unneeded: Except | None = None
    """Exception from the rule that is in force although the rule is met."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Judgement of a policy on a cell on a day."""

    policy: Policy
    on: date
    ruling: Ruling
    findings: tuple[RuleFinding, ...]
    """Findings of every rule that is in force and covers such cells."""
    missing: str | None = None
    """Explanation if no rule covers such cells."""

    @property
    def broken(self) -> tuple[RuleFinding, ...]:
        """Broken rules that make the cell break the policy."""
        return self._those(Ruling.BREAKS)

    @property
    def unknown(self) -> tuple[RuleFinding, ...]:
        """Rules that cannot be judged."""
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
