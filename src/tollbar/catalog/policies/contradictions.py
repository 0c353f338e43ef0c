"""Contradictions between policies: pairs of rules that no cell can meet together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, product
from math import prod

from tollbar.catalog.families import Family, Value, cells_of
from tollbar.catalog.policies.definition import Policy, Rule, Ruling
from tollbar.catalog.policies.judging import ruling_of
from tollbar.core.errors import TollbarError

MOST_COMPARED = 100_000
"""Limit of the pairs of rules that are compared, and of the rulings on cells for that: a ruling takes some 10 us. All
shipped policies together have 1,700 pairs in the family with most."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two rules with their policies. Each can be met, but no cell of the family meets both."""

    policy: str
    rule: Rule
    other_policy: str
    other_rule: Rule


def contradictions(policies: Sequence[Policy], family: Family, on: date) -> tuple[Contradiction, ...]:
    """Return the contradictions of these policies in a family on a day, independent of measurements.

    Raises TollbarError if there are too many pairs of rules to compare.
    """
    rules = [[*_in_force(one, family, on)] for one in policies]
    pairs = sum(len(one) * len(another) for one, another in combinations(rules, 2))
    if pairs > MOST_COMPARED:
        raise _too_many(f"{pairs:,} pairs of rules", family)
    rulings = _Rulings(family)
    return tuple(
        Contradiction(policy, rule, other_policy, other)
        for one, another in combinations(rules, 2)
        for (policy, rule), (other_policy, other) in product(one, another)
        if policy != other_policy and _exclude_each_other(rule, other, rulings)
    )


def _too_many(count: str, family: Family) -> TollbarError:
    what = f"the policies need {count} of the family {family.name} to be compared; the limit is {MOST_COMPARED:,}"
    return TollbarError(what, where="--policy", hint="name fewer policies at once, or policies of fewer rules")


def _in_force(policy: Policy, family: Family, on: date) -> Iterator[tuple[str, Rule]]:
    for part in policy.all_of_it:
        if on < part.dated:
            continue
        for rule in part.rules:
            if family.name in rule.families and rule.holds(on) and not rule.should and not rule.cannot_say:
                yield part.name, rule


Varied = tuple[tuple[str, tuple[Value, ...]], ...]


class _Rulings:
    """Rulings of rules on the cells of a family, each computed once."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._found: dict[tuple[int, Varied], Sequence[bool]] = {}
        self._count = 0

    def broken(self, rule: Rule, varied: Varied) -> Sequence[bool]:
        """Return whether the rule is broken by each cell with these values of settings. Raises TollbarError."""
        key = id(rule), varied
        if key not in self._found:
            self._count += len(self.family.choices) * prod(len(values) for _, values in varied)
            if self._count > MOST_COMPARED:
                raise _too_many(f"{self._count:,} rulings on cells", self.family)
            cells = cells_of(self.family, dict(varied))
            self._found[key] = [ruling_of(rule, self.family, cell) is Ruling.BREAKS for cell in cells]
        return self._found[key]


def _exclude_each_other(one: Rule, other: Rule, rulings: _Rulings) -> bool:
    names, others = ({*rule.where, *rule.only, *rule.never} for rule in (one, other))
    name_values = (one.only or one.never) and (other.only or other.never)
    # Rules on different settings can always be met separately; rules on bits or standing concern no setting.
    if name_values and names.isdisjoint(others):
        return False
    absent = {name: _absent(name, one, other) for name in names | others}
    # Only the name is known of a value that the family does not have.
    if any(absent.values()) and not name_values:
        return False
    settings = rulings.family.settings
    varied = tuple(
        (name, (*(settings[name].values or ()), *absent[name]))
        for name in sorted(names | others)
        if name in settings and settings[name].values
    )
    by_one, by_other = rulings.broken(one, varied), rulings.broken(other, varied)
    return all(map(any, zip(by_one, by_other, strict=True))) and not all(by_one) and not all(by_other)


def _absent(name: str, *rules: Rule) -> tuple[str, ...]:
    """Return the values of a coordinate that rules demand and the family does not have: they can meet a rule."""
    return tuple(dict.fromkeys(one for rule in rules for one in rule.only.get(name, ()) if one in rule.absent))
