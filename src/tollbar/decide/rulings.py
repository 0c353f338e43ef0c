"""Requirements on a choice, and the rulings of policies and threats on a cell by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from tollbar.analysis.ledger import Ledger
from tollbar.catalog import families, policies
from tollbar.catalog.families import Degree, Family, Standing, Value
from tollbar.catalog.policies import Except, Judged, Policy, Rule, RuleFinding, Ruling
from tollbar.core.intervals import Interval
from tollbar.results import Row

Coordinates = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Requirements on a choice."""

    family: Family
    policies: tuple[Policy, ...]
    threats: Mapping[str, Degree]
    """Smallest degree of mitigation of each threat."""
    on: date
    today: date
    standing: Standing | None = None
    """Lowest accepted standing, whatever the policies require; None: any."""
    by_governed: bool = False
    """True if a provider that is not given counts as one that the policies govern."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why a candidate does not qualify, or why its ruling is open."""

    what: str
    """Violation of the rule, or the missing fact."""
    policy: str | None = None
    rule: Rule | None = None
    """Rule of the policy; None: the reason is a threat, or no rule covers such cells."""
    ended: Except | None = None
    """The exception that it had until that ended."""
    excepted: Except | None = None
    """The exception by which the rule need not be met."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Cell with its rulings and its cost."""

    coordinates: Coordinates
    judged: tuple[Judged, ...]
    """By each policy."""
    broken: tuple[Reason, ...]
    missing: tuple[Reason, ...]
    advice: tuple[Reason, ...]
    """Advice of a policy that it does not follow, and meets it all the same."""
    excepted: tuple[Reason, ...]
    """Rules that it does not meet and need not, by an exception that holds."""
    conditions: Mapping[str, str]
    """Conditions of the threats that the cell mitigates in part, where that is enough."""
    row: Row | None = None
    cost: Interval | None = None
    """Nanoseconds per operation; None where it was not measured. Quiet, if all of its place are; noisy
    else, as all of them."""
    unmeasured: str | None = None
    """Reason why the cell was not measured."""

    @property
    def ruling(self) -> Ruling:
        """Return whether the candidate meets, breaks, or cannot be judged by what is wanted."""
        if self.broken:
            return Ruling.BREAKS
        return Ruling.CANNOT_SAY if self.missing else Ruling.MEETS


def wanted(
    family: str,
    policy_names: Iterable[str] = (),
    threats: Iterable[str] = (),
    on: str | None = None,
    *,
    today: date | None = None,
    standing: Standing | None = None,
) -> Wanted:
    """Return the requirements from words: `THREAT`, or `THREAT=partly` if a condition is enough, and a day.

    A day is written `2032-01-01`. A policy without an edition is the newest.

    Raises TollbarError with the nearest family, policy, threat or day.
    """
    known = families.family(family)
    now = today or date.today()
    found = policies.named(policy_names)
    mitigated = dict(policies.threat_wanted(known, word) for word in threats)
    return Wanted(known, found, mitigated, now if on is None else policies.day(on), now, standing)


def candidate(
    wanted: Wanted, coordinates: Coordinates, row: Row | None = None, ledger: Ledger | None = None
) -> Candidate:
    """Return the rulings of policies and threats on a cell on the day in question."""
    judged = tuple(
        policies.judged(policy, wanted.family, coordinates, wanted.on, by_governed=wanted.by_governed)
        for policy in wanted.policies
    )
    broken = [_reason(one) for said in judged for one in said.broken]
    missing = [_reason(one) for said in judged for one in said.unknown]
    missing += [Reason(said.missing, said.policy.name) for said in judged if said.missing]
    standing = wanted.family.standing_of(coordinates)
    if wanted.standing and policies.is_worse(standing, wanted.standing):
        broken.append(Reason(f"{standing.words}, below {wanted.standing.words}"))
    conditions: dict[str, str] = {}
    for threat, degree in wanted.threats.items():
        ruling, why = policies.does(wanted.family, coordinates, threat, degree)
        if ruling is not Ruling.MEETS:
            (broken if ruling is Ruling.BREAKS else missing).append(Reason(why))
        elif condition := wanted.family.mitigations_of(coordinates)[threat].condition:
            conditions[threat] = condition
    return Candidate(
        coordinates,
        judged,
        tuple(broken),
        tuple(missing),
        advice=tuple(_reason(one) for said in judged for one in said.advice),
        excepted=tuple(_reason(one) for said in judged for one in said.findings if one.excepted),
        conditions=conditions,
        row=row,
        cost=ledger.best_cost(row) if ledger and row else None,
        unmeasured=ledger.why_unmeasured(row) if ledger and row else None,
    )


def _reason(of: RuleFinding) -> Reason:
    return Reason(of.why, of.policy, of.rule, of.ended, of.excepted)


def ruled_on(wanted: Wanted) -> set[str]:
    """Return the coordinates named by the policies' rules for the family."""
    return {
        name
        for policy in wanted.policies
        for part in policy.all_of_it
        for rule in part.rules
        for name in (*rule.where, *rule.only, *rule.never)
        if wanted.family.name in rule.families
    }


def turned_on(wanted: Wanted) -> set[str]:
    """Return the coordinates that the policies' rules name or a threat depends on."""
    found = ruled_on(wanted)
    for threat in wanted.threats:
        said = [one for choice in wanted.family.choices.values() for one in choice.mitigates.get(threat, ())]
        for setting in wanted.family.settings.values():
            of_values = [one for value in setting.about.values() for one in value.mitigates.get(threat, ())]
            found |= {setting.name} if of_values else set()
            said += of_values
        found |= {name for one in said for name in one.when}
    return found


def lacks(one: Candidate) -> tuple[int, int]:
    """Return the number of broken rules, and of rules whose ruling is open."""
    return len(one.broken), len(one.missing)
