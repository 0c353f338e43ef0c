"""Reading a policy's file: TOML in, a `Policy` out, or one line that says what is wrong where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from tollbar import families
from tollbar.errors import TollbarError, nearest, unknown
from tollbar.families import Degree, Family, Standing, Value
from tollbar.policies.definition import Except, NotJudged, Policy, Rule, Unlisted
from tollbar.wire import Wire, read

KINDS = ("standing", "strength", "only", "never", "mitigates", "at_least", "cannot_say")
"""What a rule may ask, of which each asks one."""

# A family's settings do not say which servers and providers there are.
_ANY_VALUE = ("provider", "bed")

_Names = Annotated[tuple[str, ...], BeforeValidator(lambda said: (said,) if isinstance(said, str) else said)]
_Patterns = dict[str, _Names]


class _WireRule(Wire):
    id: str
    clause: str = Field(min_length=1)
    family: _Names
    source: str | None = None
    checked: bool | None = None
    where: _Patterns = {}
    standing: Standing | None = None
    strength: int | None = None
    only: _Patterns = {}
    never: _Patterns = {}
    mitigates: dict[str, Degree] = {}
    at_least: tuple[dict[str, Value], ...] = ()
    cannot_say: str | None = None
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
        if self.begins and self.ends and self.ends < self.begins:
            raise ValueError(f"the rule `{self.id}` ends before it begins")
        return self


class _WireExcept(Wire):
    rule: str
    where: _Patterns = {}
    because: str = Field(min_length=1)
    until: date


class _WireNotJudged(Wire):
    clause: str
    what: str


class _WirePolicy(Wire):
    title: str
    by: str
    edition: str
    dated: date = Field(alias="date")
    source: str = Field(min_length=1)
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
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"`rule`: two have the id `{name}`")
    except ValueError as error:
        raise TollbarError(str(error), where=str(path)) from error
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
    _check_excepts(policy, str(path))
    return policy


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
    known = [name for part in policy.all_of_it for rule in part.rules for name in (rule.id, f"{part.name}:{rule.id}")]
    for one in policy.excepts:
        if one.rule not in known:
            raise unknown("rule", one.rule, known, where=f"{where}: `except.rule`")
        if known.count(one.rule) > 1:
            of = [name for name in known if name.endswith(f":{one.rule}")]
            hint = f"say which: {' or '.join(of)}"
            raise TollbarError(f"several policies have a rule `{one.rule}`", where=f"{where}: `except.rule`", hint=hint)


def check(policy: Policy, where: str) -> None:
    """Raises TollbarError where a policy names a family, a coordinate, a value or a threat that there is not."""
    for rule in policy.rules:
        for name in rule.families:
            family = families.family(name, where=f"{where}: `{rule.id}`")
            for complaint, hint in _complaints(rule, family):
                raise TollbarError(complaint, where=f"{where}: `{rule.id}`", hint=hint)
    for one in policy.excepts:
        for name in one.where:
            rules = [r for part in policy.all_of_it for r in part.rules if one.rule.rpartition(":")[2] == r.id]
            there = {n for rule in rules for f in rule.families for n in _coordinates(families.family(f))}
            if name not in there:
                raise unknown("coordinate", name, there, where=f"{where}: `except.where`")


def _complaints(rule: Rule, family: Family) -> Iterator[tuple[str, str | None]]:
    for key, patterns in (("where", rule.where), ("only", rule.only), ("never", rule.never)):
        for name, some in patterns.items():
            there = _coordinates(family)
            if name not in there:
                yield f"`{key}`: the family {family.name} has no setting `{name}`", nearest(name, there)
                continue
            values = _values(family, name)
            for pattern in some:
                if values is not None and pattern not in rule.absent and not any(fnmatch(v, pattern) for v in values):
                    yield f"`{key}.{name}`: the family {family.name} has no `{pattern}`", nearest(pattern, values)
    for threat in rule.mitigates:
        if threat not in family.threats:
            yield f"`mitigates`: the family {family.name} has no threat `{threat}`", nearest(threat, family.threats)
    for one in rule.at_least:
        for name, value in one.items():
            if name not in family.settings:
                yield f"`at-least`: the family {family.name} has no setting `{name}`", nearest(name, family.settings)
                continue
            try:
                family.settings[name].read(value)
            except ValueError as error:
                yield f"`at-least.{name}`: {error}", None


def _coordinates(family: Family) -> list[str]:
    parameters = [name for choice in family.choices.values() for name in choice.setting]
    return ["choice", "op", *_ANY_VALUE, *family.settings, *parameters]


def _values(family: Family, name: str) -> list[str] | None:
    """The values that a coordinate may have; None: any."""
    if name == "choice":
        return [*family.choices]
    if name == "op":
        return [*family.operations]
    setting = family.settings.get(name)
    return None if setting is None or setting.values is None else [*map(str, setting.values)]
