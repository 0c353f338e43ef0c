"""Rulings of each shipped policy as text: `python tests/policy_table.py > tests/golden/policies.txt`.

For every family that a policy has rules on: each choice with its settings at their defaults, by the system's own
library; if that does not meet the policy, the nearest cell of the choice that does; then each value of a setting that
decides something, if its ruling differs from that of the cell it varies. On the day of the review, and on each later
day on which a rule begins to hold, the rulings that have changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from tollbar.catalog.families import Family, Value, at_defaults, families
from tollbar.catalog.policies import Judged, Policy, Ruling, judged, policy, shipped

REVIEWED = date(2026, 11, 23)

# Policies of a system rule on its own libraries.
SYSTEM = {"provider": "libcrypto"}

Cell = Mapping[str, Value]


def table() -> str:
    """Return the table of all policies, one after the other."""
    return "\n".join(line for name in shipped() for line in _of_policy(policy(name)))


def _of_policy(one: Policy) -> Iterator[str]:
    before: dict[str, list[str]] = {}
    for day in (REVIEWED, *(turn for turn in one.turns if turn > REVIEWED)):
        yield f"# {one.name}, {day}"
        for family in families().values():
            if one.is_about(family.name):
                lines = list(_of_family(one, family, day))
                if before.get(family.name) != lines:
                    yield from (family.name, *lines)
                before[family.name] = lines
        yield ""


def _of_family(one: Policy, family: Family, day: date) -> Iterator[str]:
    said: dict[str, list[str]] = {}
    for choice in family.choices:
        default = at_defaults(family, {"choice": choice, **SYSTEM})
        bases = {choice: default}
        if judged(one, family, default, day).ruling is not Ruling.MEETS:
            nearest = _nearest(one, family, default, day)
            apart = [f"{name}={value}" for name, value in nearest.items() if default.get(name) != value]
            if apart and judged(one, family, nearest, day).ruling is Ruling.MEETS:
                bases[" ".join([choice, *apart])] = nearest
        for label, base in bases.items():
            words = _words(judged(one, family, base, day))
            said.setdefault(words, []).append(label)
            for name, value, cell in _others(one, family, base):
                other = _words(judged(one, family, cell, day))
                if other != words and cell != default:
                    said.setdefault(other, []).append(f"{label} {name}={value}")
    for words in sorted(said):
        yield f"  {words}: {', '.join(dict.fromkeys(said[words]))}"


def _others(one: Policy, family: Family, base: Cell) -> Iterator[tuple[str, Value, Cell]]:
    """Yield the cells that differ in one setting by which the policy decides."""
    for name, values in _deciding(one, family).items():
        for value in values:
            # A setting that this one depends on: `dh-parameters` mean something with DHE.
            only = family.settings[name].only if name in family.settings else {}
            needs = {n: some[0] for n, some in only.items() if n in family.settings and some[0]}
            cell = at_defaults(family, {**base, **({} if name in base else needs), name: value})
            if cell.get(name) == value and cell != base:
                yield name, value, cell


def _deciding(one: Policy, family: Family) -> dict[str, tuple[Value, ...]]:
    """Return the values of each setting by which the policy decides; of providers, one that is not the system's."""
    rules = [rule for part in one.all_of_it for rule in part.rules if family.name in rule.families]
    named = {name for rule in rules for name in (*rule.where, *rule.only, *rule.never)}
    of_bits = any(rule.strength for rule in rules)
    found = {
        setting.name: setting.values or ()
        for setting in family.settings.values()
        if setting.name in named or (of_bits and any(value.strength is not None for value in setting.about.values()))
    }
    return found | ({"provider": ("aws-lc",)} if "provider" in named else {})


def _nearest(one: Policy, family: Family, default: Cell, day: date) -> Cell:
    """Return the cell whose settings have the fewest violations of the policy."""

    def lacks(cell: Cell) -> tuple[int, int]:
        found = judged(one, family, cell, day)
        return len(found.broken), len(found.unknown)

    at = default
    for name in _deciding(one, family):
        others = [cell for other, _, cell in _others(one, family, at) if other == name]
        at = min((at, *(cell for cell in others if family.why_unsupported(cell) is None)), key=lacks)
    return at


def _words(found: Judged) -> str:
    counted = [one.rule.id for one in found.broken or found.unknown]
    missing = [found.missing] if found.missing else []
    advice = [f"against advice {one.rule.id}" for one in found.advice]
    return ", ".join([f"{found.ruling} {' '.join([*counted, *missing])}".strip(), *advice])


if __name__ == "__main__":
    print(table())
