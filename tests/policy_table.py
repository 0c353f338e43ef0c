"""What each shipped policy says of each choice, as text: `python tests/policy_table.py > tests/golden/policies.txt`.

Of every family that a policy has rules on: each choice with its settings at their defaults; then each value of a
setting that decides something, where the policy says otherwise of it. On the day of the review, and on each later day
on which a rule begins to hold, what is then other than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from tollbar.families import Family, Value, at_defaults, families
from tollbar.policies import Judged, Policy, judged, policy, shipped

REVIEWED = date(2026, 11, 23)

Cell = Mapping[str, Value]


def table() -> str:
    """All policies, one after the other."""
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
    for label, cell, default in cells(one, family):
        words = _words(judged(one, family, cell, day))
        if default is None or words != _words(judged(one, family, default, day)):
            said.setdefault(words, []).append(label)
    for words in sorted(said):
        yield f"  {words}: {', '.join(said[words])}"


def cells(one: Policy, family: Family) -> Iterator[tuple[str, Cell, Cell | None]]:
    """Each choice's cells with their names: at its defaults, then with each other value beside the one at defaults."""
    rules = [rule for part in one.all_of_it for rule in part.rules if family.name in rule.families]
    named = {name for rule in rules for name in (*rule.where, *rule.only, *rule.never)}
    of_bits = any(rule.strength for rule in rules)
    for choice in family.choices:
        default = at_defaults(family, {"choice": choice})
        yield choice, default, None
        for setting in family.settings.values():
            has_bits = any(value.strength is not None for value in setting.about.values())
            if setting.name not in named and not (of_bits and has_bits):
                continue
            for value in setting.values or ():
                # What the setting depends on, where that is a setting too: `dh-parameters` mean something with DHE.
                needs = {n: some[0] for n, some in setting.only.items() if n in family.settings and some[0]}
                given = {"choice": choice, **({} if setting.name in default else needs), setting.name: value}
                cell = at_defaults(family, given)
                if cell.get(setting.name) == value and cell != default:
                    yield f"{choice} {setting.name}={value}", cell, default


def _words(found: Judged) -> str:
    counted = [one.rule.id for one in found.broken or found.unknown]
    missing = [found.missing] if found.missing else []
    advice = [f"against advice {one.rule.id}" for one in found.advice]
    return ", ".join([f"{found.ruling} {' '.join([*counted, *missing])}".strip(), *advice])


if __name__ == "__main__":
    print(table())
