"""Rules of two policies that nothing can meet together: one asks for what the other refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, product

from tollbar.families import Family, cells_of
from tollbar.policies.definition import Policy, Rule, Ruling
from tollbar.policies.judging import ruling_of


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two rules, each with the policy that it stands in. Each can be met, and no cell of the family meets both."""

    policy: str
    rule: Rule
    other_policy: str
    other_rule: Rule


def contradictions(policies: Sequence[Policy], family: Family, on: date) -> tuple[Contradiction, ...]:
    """What of these policies nothing in a family can meet together on a day, whatever was measured of it."""
    return tuple(
        Contradiction(policy, rule, other_policy, other)
        for one, another in combinations(policies, 2)
        for (policy, rule), (other_policy, other) in product(_in_force(one, family, on), _in_force(another, family, on))
        if policy != other_policy and _exclude_each_other(rule, other, family)
    )


def _in_force(policy: Policy, family: Family, on: date) -> Iterator[tuple[str, Rule]]:
    for part in policy.all_of_it:
        for rule in part.rules:
            if family.name in rule.families and rule.holds(on) and not rule.should and not rule.cannot_say:
                yield part.name, rule


def _exclude_each_other(one: Rule, other: Rule, family: Family) -> bool:
    names, others = ({*rule.where, *rule.only, *rule.never} for rule in (one, other))
    # Rules on two settings can always be met, each by its own; what asks for bits or a standing is on no setting.
    if (one.only or one.never) and (other.only or other.never) and names.isdisjoint(others):
        return False
    varied = {name: ("*",) for name in names | others if name in family.settings and family.settings[name].values}
    broken = [
        (ruling_of(one, family, cell) is Ruling.BREAKS, ruling_of(other, family, cell) is Ruling.BREAKS)
        for cell in cells_of(family, varied)
    ]
    by_one, by_other = zip(*broken, strict=True)
    return all(map(any, broken)) and not all(by_one) and not all(by_other)
