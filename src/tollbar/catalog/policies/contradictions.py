"""Contradictions between policies: pairs of rules that no cell can meet together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, product

from tollbar.catalog.families import Family, cells_of
from tollbar.catalog.policies.definition import Policy, Rule, Ruling
from tollbar.catalog.policies.judging import ruling_of


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two rules with their policies. Each can be met, but no cell of the family meets both."""

    policy: str
    rule: Rule
    other_policy: str
    other_rule: Rule


def contradictions(policies: Sequence[Policy], family: Family, on: date) -> tuple[Contradiction, ...]:
    """Return the contradictions of these policies in a family on a day, independent of measurements."""
    return tuple(
        Contradiction(policy, rule, other_policy, other)
        for one, another in combinations(policies, 2)
        for (policy, rule), (other_policy, other) in product(_in_force(one, family, on), _in_force(another, family, on))
        if policy != other_policy and _exclude_each_other(rule, other, family)
    )


def _in_force(policy: Policy, family: Family, on: date) -> Iterator[tuple[str, Rule]]:
    for part in policy.all_of_it:
        if on < part.dated:
            continue
        for rule in part.rules:
            if family.name in rule.families and rule.holds(on) and not rule.should and not rule.cannot_say:
                yield part.name, rule


def _exclude_each_other(one: Rule, other: Rule, family: Family) -> bool:
    names, others = ({*rule.where, *rule.only, *rule.never} for rule in (one, other))
    name_values = (one.only or one.never) and (other.only or other.never)
    # Rules on different settings can always be met separately; rules on bits or standing concern no setting.
    if name_values and names.isdisjoint(others):
        return False
    absent = {name: _absent(name, one, other) for name in names | others}
    # Only the name is known of a value that the family does not have.
    if any(absent.values()) and not name_values:
        return False
    varied = {
        name: (*(family.settings[name].values or ()), *absent[name])
        for name in names | others
        if name in family.settings and family.settings[name].values
    }
    broken = [
        (ruling_of(one, family, cell) is Ruling.BREAKS, ruling_of(other, family, cell) is Ruling.BREAKS)
        for cell in cells_of(family, varied)
    ]
    by_one, by_other = zip(*broken, strict=True)
    return all(map(any, broken)) and not all(by_one) and not all(by_other)


def _absent(name: str, *rules: Rule) -> tuple[str, ...]:
    """Return the values of a coordinate that rules demand and the family does not have: they can meet a rule."""
    return tuple(dict.fromkeys(one for rule in rules for one in rule.only.get(name, ()) if one in rule.absent))
