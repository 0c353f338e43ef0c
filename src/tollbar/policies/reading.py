"""Reading a policy's file: TOML in, a `Policy` out, or one line that says what is wrong where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from tollbar import families
from tollbar.errors import TollbarError, nearest, unknown
from tollbar.families import Degree, Family, Standing, Value
from tollbar.patterns import MOST_LETTERS, is_like
from tollbar.policies.definition import PLACES, Except, NotJudged, Patterns, Policy, Rule, Unlisted
from tollbar.policies.judging import as_cells_have_them
from tollbar.units import quoted
from tollbar.wire import Wire, read

KINDS = ("standing", "strength", "only", "never", "mitigates", "at_least", "cannot_say")
"""What a rule may ask, of which each asks one."""

MOST_RULES = 1_000
"""Limit of the rules of a policy with those it extends, each counted for each of its families, with its exceptions and
its sets of `at-least`: the longest that ships has some forty."""

MOST_PATTERNS = 10_000
"""Limit of the patterns of a policy, each counted for each family of its rule: to make one takes 0.1 ms."""

MOST_EXTENDED = 64
"""Limit of the policies that one extends, directly or through others: each is a file that is read."""


def _of_limited_length(said: tuple[str, ...]) -> tuple[str, ...]:
    long = next((one for one in said if len(one) > MOST_LETTERS), None)
    if long is not None:
        what = f"`{quoted(long)}` has {len(long):,} letters; a pattern must have at most {MOST_LETTERS}"
        raise ValueError(f"{what}, for example `sha-*`")
    return said


_Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda said: (said,) if isinstance(said, str) else said), Field(min_length=1)
]
_Patterns = dict[str, Annotated[_Names, AfterValidator(_of_limited_length)]]


class _WireRule(Wire):
    id: str
    clause: _Said
    family: _Names
    source: _Said | None = None
    checked: bool | None = None
    where: _Patterns = {}
    standing: Standing | None = None
    strength: int | None = Field(default=None, gt=0)
    only: _Patterns = {}
    never: _Patterns = {}
    mitigates: dict[str, Degree] = {}
    at_least: tuple[dict[str, Value], ...] = ()
    cannot_say: _Said | None = None
    unlisted: Unlisted | None = None
    should: bool = False
    ours: bool = False
    begins: date | None = Field(default=None, alias="from")
    ends: date | None = Field(default=None, alias="until")
    absent: tuple[str, ...] = ()
    note: str | None = None

    @model_validator(mode="after")
    def _asks_one_thing(self) -> _WireRule:
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


class _WireExcept(Wire):
    rule: str
    where: _Patterns = {}
    because: _Said
    until: date


class _WireNotJudged(Wire):
    clause: _Said
    what: _Said


class _WirePolicy(Wire):
    title: str
    by: str
    edition: str
    dated: date = Field(alias="date")
    source: _Said
    seen: date
    checked: bool = False
    unlisted: Unlisted = "cannot say"
    word: str | None = None
    extends: tuple[str, ...] = ()
    not_judged: tuple[_WireNotJudged, ...] = ()
    note: str | None = None


class _WireFile(Wire):
    policy: _WirePolicy
    rule: tuple[_WireRule, ...] = ()
    except_: tuple[_WireExcept, ...] = Field(default=(), alias="except")


def read_policy(path: Path, extended: Callable[[str, Path], Policy]) -> Policy:
    """The policy in a file. `extended` finds one that it extends by name, or by its path from the file's folder.

    Raises TollbarError that names the file, the key and the nearest right one.
    """
    wire = read(path, _WireFile)
    about = wire.policy
    try:
        rules = tuple(_rule(one, about) for one in wire.rule)
        ids = [rule.id for rule in rules]
        name, count = max(Counter(ids).items(), key=itemgetter(1), default=("", 0))
        if count > 1:
            raise ValueError(f"`rule`: two have the id `{name}`")
    except ValueError as error:
        raise TollbarError(str(error), where=str(path)) from error
    if len(about.extends) > MOST_EXTENDED:
        what = f"`extends`: the policy extends more than {MOST_EXTENDED} others, which is the limit"
        raise TollbarError(what, where=str(path), hint="name each policy once; their rules may be in one file")
    policy = Policy(
        name=path.name.removesuffix(".toml"),
        title=about.title,
        by=about.by,
        edition=about.edition,
        dated=about.dated,
        source=about.source,
        seen=about.seen,
        rules=rules,
        not_judged=tuple(NotJudged(**dict(one)) for one in about.not_judged),
        excepts=tuple(Except(**dict(one)) for one in wire.except_),
        extends=tuple(extended(name, path) for name in about.extends),
        note=about.note,
    )
    _refuse_many(policy, str(path))
    _check_excepts(policy, str(path))
    return policy


def _refuse_many(policy: Policy, where: str) -> None:
    """Raise TollbarError where looking at each rule and each pattern in each family would take more than seconds."""
    parts = tuple(policy.all_of_it)
    rules, excepts = [rule for part in parts for rule in part.rules], [one for part in parts for one in part.excepts]
    patterns = sum(
        len(rule.families) * sum(map(len, part.values()))
        for rule in rules
        for part in (rule.where, rule.only, rule.never)
    ) + sum(len(some) for one in excepts for some in one.where.values())
    counted = sum(len(rule.families) * (1 + len(rule.at_least)) for rule in rules) + len(excepts)
    if counted > MOST_RULES or patterns > MOST_PATTERNS:
        what = (
            f"more than {MOST_RULES:,} rules or {MOST_PATTERNS:,} patterns of them, which is the limit; each counts for"
            " each family of the rule, and an exception or a set of `at-least` as a rule"
        )
        raise TollbarError(what, where=where, hint="split it into several policies, and name each with `--policy`")


def _rule(wire: _WireRule, about: _WirePolicy) -> Rule:
    given = dict(wire) | {
        "source": wire.source or about.source,
        "checked": about.checked if wire.checked is None else wire.checked,
        "unlisted": wire.unlisted or about.unlisted,
        "families": wire.family,
        "word": about.word,
    }
    del given["family"]
    return Rule(**given)


def _check_excepts(policy: Policy, where: str) -> None:
    known = Counter(
        name for part in policy.all_of_it for rule in part.rules for name in (rule.id, f"{part.name}:{rule.id}")
    )
    for one in policy.excepts:
        if one.rule not in known:
            raise unknown("rule", one.rule, known, where=f"{where}: `except.rule`")
        if known[one.rule] > 1:
            of = [name for name in known if name.endswith(f":{one.rule}")]
            hint = f"say which: {' or '.join(of)}"
            raise TollbarError(f"several policies have a rule `{one.rule}`", where=f"{where}: `except.rule`", hint=hint)


def check(policy: Policy, where: str) -> None:
    """Raises TollbarError where a policy names a family, a coordinate, a value or a threat that there is not."""
    known: dict[str, Family] = {}
    for rule in policy.rules:
        for name in rule.families:
            # To look for a family's file takes 1 ms.
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
        # Of a rule on several families an exception may be of one.
        if None not in found:
            complaint, hint = next(filter(None, found))
            raise TollbarError(complaint, where=f"{where}: `except` of `{one.rule}`", hint=hint)


def _of_patterns(
    key: str, patterns: Patterns, family: Family, absent: tuple[str, ...]
) -> Iterator[tuple[str, str | None]]:
    """What is wrong with coordinates and their patterns."""
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
    """What is wrong with a pattern of a number: but for those of any number it is one value, as the file writes it."""
    try:
        as_cells_have_them({name: (pattern,)}, family)
    except ValueError as error:
        is_open = any(character in pattern for character in "*?[")
        hint = "`at-least` asks for numbers from one on" if is_open else None
        yield f"`{key}.{name}`: {f'`{pattern}` is no number' if is_open else error}", hint


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
                    yield f"`at-least.{name}`: it is no number", "`only` asks for values by name"
            except ValueError as error:
                yield f"`at-least.{name}`: {error}", None


def _coordinates(family: Family) -> list[str]:
    parameters = [name for choice in family.choices.values() for name in choice.setting]
    return ["choice", *PLACES, *family.settings, *parameters]


def _values(family: Family, name: str) -> list[str] | None:
    """The values that a coordinate may have; None: any."""
    if name == "choice":
        return [*family.choices]
    if name == "op":
        return [*family.operations]
    setting = family.settings.get(name)
    return None if setting is None or setting.values is None else [*map(str, setting.values)]
