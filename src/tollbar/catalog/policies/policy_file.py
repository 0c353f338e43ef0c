"""Reading a policy's file: from TOML to a `Policy`, or a one-line error with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tollbar.catalog import families
from tollbar.catalog.families import Family
from tollbar.catalog.policies.definition import PLACES, About, Except, Patterns, Policy, Rule
from tollbar.catalog.policies.judging import as_cells_have_them
from tollbar.core.errors import TollbarError, nearest, unknown
from tollbar.core.patterns import is_like
from tollbar.core.wire import Wire, read

MOST_RULES = 1_000
"""Limit of the rules of a policy and its bases, with exceptions and sets of `at-least`.

Rules count for each of their families. The longest shipped policy has some forty.
"""

MOST_PATTERNS = 2_000
"""Limit of the patterns of a policy, counted for each family of their rules: making one takes up to 0.4 ms. The largest
shipped policy has 124."""

MOST_EXTENDED = 64
"""Limit of the policies that one file extends, each of which is a file to read."""


class _PolicyFile(Wire):
    policy: About
    rule: tuple[Rule, ...] = ()
    except_: tuple[Except, ...] = Field(default=(), alias="except")

    @field_validator("rule", mode="before")
    @classmethod
    def _as_the_policy_says(cls, rules: object, info: ValidationInfo) -> object:
        """Give each rule the defaults of its policy."""
        about: About | None = info.data.get("policy")
        if about is None or not isinstance(rules, list):
            return rules
        given = {"source": about.source, "checked": about.checked, "unlisted": about.unlisted}
        return [given | rule if isinstance(rule, dict) else rule for rule in rules]

    @model_validator(mode="after")
    def _has_each_id_once(self) -> _PolicyFile:
        name, count = max(Counter(rule.id for rule in self.rule).items(), key=itemgetter(1), default=("", 0))
        if count > 1:
            raise ValueError(f"`rule`: two rules have the id `{name}`; each id must be unique")
        return self


def read_policy(path: Path, extended: Callable[[str, Path], Policy]) -> Policy:
    """Return the policy in a file.

    `extended` finds a policy that it extends, by name or by path from the file's folder. Raises TollbarError with the
    file, the key and the nearest valid one.
    """
    file = read(path, _PolicyFile)
    about = file.policy
    if len(about.extends) > MOST_EXTENDED:
        what = f"`extends`: the policy extends more than {MOST_EXTENDED} others, which is the limit"
        raise TollbarError(what, where=str(path), hint="name each policy once; their rules may be in one file")
    policy = Policy.model_construct(
        **dict(about),
        name=path.name.removesuffix(".toml"),
        rules=file.rule,
        excepts=file.except_,
        bases=tuple(extended(name, path) for name in about.extends),
    )
    _refuse_many(policy, str(path))
    _check_excepts(policy, str(path))
    return policy


def _refuse_many(policy: Policy, where: str) -> None:
    """Raise TollbarError if checking each rule and each pattern in each family would take more than seconds."""
    parts = tuple(policy.all_of_it)
    rules, excepts = [rule for part in parts for rule in part.rules], [one for part in parts for one in part.excepts]
    patterns = sum(len(rule.families) * rule.patterns for rule in rules)
    patterns += sum(len(some) for one in excepts for some in one.where.values())
    counted = sum(len(rule.families) * (1 + len(rule.at_least)) for rule in rules) + len(excepts)
    if counted > MOST_RULES or patterns > MOST_PATTERNS:
        what = (
            f"more than {MOST_RULES:,} rules or {MOST_PATTERNS:,} patterns of them, which is the limit; each counts for"
            " each family of the rule, and an exception or a set of `at-least` as a rule"
        )
        raise TollbarError(what, where=where, hint="split it into several policies, and name each with `--policy`")


def _check_excepts(policy: Policy, where: str) -> None:
    known = Counter(
        name for part in policy.all_of_it for rule in part.rules for name in (rule.id, f"{part.name}:{rule.id}")
    )
    for one in policy.excepts:
        if one.rule not in known:
            raise unknown("rule", one.rule, known, where=f"{where}: `except.rule`")
        if known[one.rule] > 1:
            of = [name for name in known if name.endswith(f":{one.rule}")]
            hint = f"for example {' or '.join(of)}"
            raise TollbarError(
                f"several policies have a rule `{one.rule}`; it needs the policy's name",
                where=f"{where}: `except.rule`",
                hint=hint,
            )


def check(policy: Policy, where: str) -> None:
    """Raise TollbarError if a policy names an unknown family, coordinate, value or threat."""
    known: dict[str, Family] = {}
    for rule in policy.rules:
        for name in rule.families:
            # Searching a family's file takes 1 ms.
            family = known.get(name) or families.family(name, where=f"{where}: `{rule.id}`")
            known[name] = family
            for complaint, hint in _complaints(rule, family):
                raise TollbarError(complaint, where=f"{where}: `{rule.id}`", hint=hint)
    by_name = {
        name: rule for part in policy.all_of_it for rule in part.rules for name in (rule.id, f"{part.name}:{rule.id}")
    }
    for one in policy.excepts:
        rule = by_name[one.rule]
        of = [(rule, known.get(f) or families.family(f)) for f in rule.families]
        found = [next(_of_patterns("where", one.where, family, rule.absent), None) for rule, family in of]
        # An exception from a rule on several families may concern one of them.
        if None not in found:
            complaint, hint = next(filter(None, found))
            raise TollbarError(complaint, where=f"{where}: `except` of `{one.rule}`", hint=hint)


def _of_patterns(
    key: str, patterns: Patterns, family: Family, absent: tuple[str, ...]
) -> Iterator[tuple[str, str | None]]:
    """Yield the faults of coordinates and their patterns."""
    there = _coordinates(family)
    for name, some in patterns.items():
        if name not in there:
            yield f"`{key}`: the family {family.name} has no setting `{name}`", nearest(name, there)
            continue
        values = _values(family, name)
        for pattern in some:
            if values is None:
                yield from _of_number(key, name, pattern, family)
            elif pattern not in absent and not any(is_like(value, pattern) for value in values):
                yield f"`{key}.{name}`: the family {family.name} has no `{pattern}`", nearest(pattern, values)


def _of_number(key: str, name: str, pattern: str, family: Family) -> Iterator[tuple[str, str | None]]:
    """Yield the faults of a number's pattern: it is one value as the file writes it, or matches any number."""
    try:
        as_cells_have_them({name: (pattern,)}, family)
    except ValueError as error:
        is_open = any(character in pattern for character in "*?[")
        hint = '`at-least` sets the least number, for example `at-least = [{ bytes = "64 B" }]`' if is_open else None
        yield f"`{key}.{name}`: {f'`{pattern}` must be a number' if is_open else error}", hint


def _complaints(rule: Rule, family: Family) -> Iterator[tuple[str, str | None]]:
    for key, patterns in (("where", rule.where), ("only", rule.only), ("never", rule.never)):
        yield from _of_patterns(key, patterns, family, rule.absent)
    for threat in rule.mitigates:
        if threat not in family.threats:
            yield f"`mitigates`: the family {family.name} has no threat `{threat}`", nearest(threat, family.threats)
    for one in rule.at_least:
        for name, value in one.items():
            if name not in family.settings:
                yield f"`at-least`: the family {family.name} has no setting `{name}`", nearest(name, family.settings)
                continue
            try:
                if isinstance(family.settings[name].read(value), str):
                    yield f"`at-least.{name}`: it must be a number", "for values by name use `only`"
            except ValueError as error:
                yield f"`at-least.{name}`: {error}", None


def _coordinates(family: Family) -> list[str]:
    parameters = [name for choice in family.choices.values() for name in choice.setting]
    return ["choice", *PLACES, *family.settings, *parameters]


def _values(family: Family, name: str) -> list[str] | None:
    """Return the possible values of a coordinate; None: any."""
    if name == "choice":
        return [*family.choices]
    if name == "op":
        return [*family.operations]
    setting = family.settings.get(name)
    return None if setting is None or setting.values is None else [*map(str, setting.values)]
