"""Judgement of a cell by a policy: each rule separately, then all of them together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date

from tollbar.catalog.families import Degree, Family, SettingValue, Standing, Value, fits, open_at
from tollbar.catalog.policies.definition import PLACES, Except, Judged, Patterns, Policy, Rule, RuleFinding, Ruling
from tollbar.core.errors import TollbarError, nearest, unknown
from tollbar.core.patterns import is_like

Cell = Mapping[str, Value]
Found = tuple[Ruling, str]

_DEGREES = list(Degree)
# The null choice protects nothing, and no authority gives it or a reference a standing.
STANDINGS = (
    Standing.NULL, Standing.REFERENCE, Standing.BROKEN, Standing.DISALLOWED, Standing.DEPRECATED, Standing.ACCEPTABLE,
    Standing.RECOMMENDED,
)  # fmt: skip
_MET = (Ruling.MEETS, "")
ANY_NUMBER = ("", "*", "?*")
"""Patterns that any number fits: absent, any or none, any."""
_DAY = re.compile(r"([0-9]{4})(-[0-9]{2})?")


def judged(policy: Policy, family: Family, coordinates: Cell, on: date, *, by_governed: bool = False) -> Judged:
    """Return the judgement of a policy, with all that it extends, on a cell on a day.

    A setting that applies there and is not among the coordinates is unknown, and not at its default. The same holds for
    a provider, unless `by_governed`: then a missing provider is assumed to be one that the policy covers.
    """
    if on < policy.dated:
        return Judged(policy, on, Ruling.CANNOT_SAY, (), _silence(policy, family, on))
    is_governed = by_governed and "provider" not in coordinates
    every = _findings(policy, family, coordinates, on)
    findings = tuple(one for one in every if not (is_governed and one.rule.is_of_providers))
    counted = [one.ruling for one in findings if not one.rule.should and not one.excepted]
    missing = None
    if Ruling.BREAKS in counted:
        ruling = Ruling.BREAKS
    elif later := [part for part in policy.all_of_it if on < part.dated and part.has_rules_on(family.name)]:
        # Its rules must be met too, and the earlier ones are not known.
        ruling, missing = Ruling.CANNOT_SAY, f"it extends {later[0].name}, which is dated {later[0].dated}"
    elif Ruling.CANNOT_SAY in counted:
        ruling = Ruling.CANNOT_SAY
    elif not findings and not policy.is_place:
        ruling, missing = Ruling.CANNOT_SAY, _silence(policy, family, on)
    elif family.choices[str(coordinates["choice"])].standing is Standing.NULL:
        ruling, missing = Ruling.CANNOT_SAY, "it protects nothing, and no rule requires protection"
    else:
        ruling = Ruling.MEETS
    return Judged(policy, on, ruling, findings, missing)


def _silence(policy: Policy, family: Family, on: date) -> str:
    if on < policy.dated:
        return f"this edition is dated {policy.dated}"
    return "it has no rule on this" if policy.is_about(family.name) else f"it has no rule on the family {family.name}"


def _findings(policy: Policy, family: Family, cell: Cell, on: date) -> Iterator[RuleFinding]:
    parts, whole = tuple(policy.all_of_it), _whole(family, cell)
    # An exception applies to the rules of its own policy, and of those that this one extends.
    excepts = [
        (one, {of.name for of in part.all_of_it})
        for part in parts
        for one in part.excepts
        if fits(as_cells_have_them(one.where, family), whole)
    ]
    for part in parts:
        for rule in part.rules:
            if on < part.dated or not rule.holds(on) or family.name not in rule.families:
                continue
            found = _ruling(rule, family, cell, part.word)
            if found is not None:
                ids = (rule.id, f"{part.name}:{rule.id}")
                own = [one for one, of in excepts if part.name in of and one.rule in ids]
                yield RuleFinding(part.name, rule, *found, *_excepted(found[0], own, on))


def _excepted(ruling: Ruling, own: list[Except], on: date) -> tuple[Except | None, Except | None, Except | None]:
    """Return the exceptions of a rule: the one in force, the ended one, and the unneeded one.

    The first two are of a rule that is not met, the third of one that is. Each may be None.
    """
    holds = next((one for one in own if on <= one.until), None)
    if ruling is Ruling.MEETS:
        return None, None, holds
    return holds, None if holds else next(iter(own), None), None


def _whole(family: Family, cell: Cell) -> Cell:
    """Return a cell with the parameters that are part of its choice."""
    return {**cell, **family.choices[str(cell["choice"])].setting}


def as_cells_have_them(patterns: Patterns, family: Family) -> Patterns:
    """Return patterns with numbers as in cells: a file has `19 MiB` and `2^17`, a cell bytes and a plain number.

    Raises ValueError for a value that its setting does not have.
    """
    return {name: tuple(_as_cells_have_it(one, name, family) for one in some) for name, some in patterns.items()}


def _as_cells_have_it(pattern: str, name: str, family: Family) -> str:
    setting = family.settings.get(name)
    is_number = setting is not None and (setting.unit is not None or setting.is_count)
    return str(setting.read(pattern)) if setting and is_number and pattern not in ANY_NUMBER else pattern


def _ruling(rule: Rule, family: Family, cell: Cell, word: str | None = None) -> Found | None:
    """Return the finding of a rule on a cell; None if the rule does not cover such cells.

    `word` is the policy's word for a violation.
    """
    parameters, where = _whole(family, cell), as_cells_have_them(rule.where, family)
    unknown = [name for name in where if name not in parameters and _is_open(name, family, cell)]
    unseen = [why for name, patterns in where.items() if (why := _unseen(name, patterns, family, cell))]
    known = {n: some for n, some in where.items() if n not in unknown and not _unseen(n, some, family, cell)}
    if not fits(known, parameters):
        return None
    if unknown or unseen:
        return Ruling.CANNOT_SAY, "; ".join([*unseen, *([_not_given(unknown)] if unknown else [])])
    if rule.cannot_say:
        return Ruling.CANNOT_SAY, rule.cannot_say
    if rule.strength is not None:
        return _strength(rule.strength, family, cell)
    if rule.standing is not None:
        return _standing(rule.standing, family, cell)
    if rule.mitigates:
        return _mitigates(rule.mitigates, family, cell)
    if rule.at_least:
        return _at_least(rule, family, parameters)
    return _named(rule, family, cell, parameters, word)


def ruling_of(rule: Rule, family: Family, cell: Cell) -> Ruling | None:
    """Return the ruling of one rule on a cell; None: it does not cover such cells."""
    found = _ruling(rule, family, cell)
    return found[0] if found else None


def _named(rule: Rule, family: Family, cell: Cell, parameters: Cell, word: str | None) -> Found | None:
    """Return the finding of a rule with `only` or `never`; None if none of its coordinates applies there."""
    found: list[Found] = []
    for name, patterns in as_cells_have_them(rule.only or rule.never, family).items():
        if name not in parameters:
            if _is_open(name, family, cell):
                found.append((Ruling.CANNOT_SAY, _not_given([name])))
            continue
        value = str(parameters[name])
        if unseen := _unseen(name, patterns, family, cell):
            found.append((Ruling.CANNOT_SAY, unseen))
        elif any(is_like(value, pattern) for pattern in patterns) != bool(rule.only):
            what = value if name == "choice" else f"{name} {value}"
            if rule.only and rule.unlisted == "cannot say":
                found.append((Ruling.CANNOT_SAY, f"{what} is not listed"))
            else:
                found.append((Ruling.BREAKS, f"{what} is {word or ('not approved' if rule.only else 'refused')}"))
        else:
            found.append(_MET)
    return _worst(found) if found else None


def _unseen(name: str, patterns: tuple[str, ...], family: Family, cell: Cell) -> str | None:
    """Return the required work that this cell does elsewhere, unless the rule names that itself, or None."""
    elsewhere = family.done_elsewhere(name, cell)
    return f"{name} {cell[name]}: {elsewhere}" if elsewhere and str(cell[name]) not in patterns else None


def _strength(least: int, family: Family, cell: Cell) -> Found:
    strength = family.strength_of(cell)
    if strength is not None and strength < least:
        return Ruling.BREAKS, f"{strength} bits, under {least}"
    unknown = _without(family, cell, lambda value: value.strength is not None)
    if unknown:
        return Ruling.CANNOT_SAY, _not_given(unknown)
    return _MET if strength is not None else (Ruling.CANNOT_SAY, "its strength in bits is not known")


def open_for_standing(family: Family, cell: Cell) -> list[str]:
    """Return the missing settings whose values would decide the cell's standing."""
    choice = family.choices[str(cell["choice"])]
    levels = choice.levels if choice.is_set_by_study else ()
    parameters = {name for level in levels for name in level.at_least if name not in cell}
    return sorted({*parameters, *_without(family, cell, lambda value: value.standing is not None)})


def _standing(least: Standing, family: Family, cell: Cell) -> Found:
    standing = family.standing_of(cell)
    if is_worse(standing, least):
        return Ruling.BREAKS, f"{standing.words}, below {least.words}"
    unknown = open_for_standing(family, cell)
    return (Ruling.CANNOT_SAY, _not_given(unknown)) if unknown else _MET


def _mitigates(wanted: Mapping[str, Degree], family: Family, cell: Cell) -> Found:
    return _worst([does(family, cell, threat, degree) for threat, degree in wanted.items()])


def does(family: Family, cell: Cell, threat: str, wanted: Degree) -> Found:
    """Return whether a cell mitigates a threat to the wanted degree.

    Partial mitigation depends on unseen conditions.
    """
    done = family.mitigations_of(cell)[threat]
    title = family.threats[threat].title
    if _DEGREES.index(done.degree) < _DEGREES.index(wanted):
        if done.degree is Degree.PARTLY:
            return Ruling.CANNOT_SAY, f"{threat}: {done.condition}"
        return Ruling.BREAKS, f"nothing against {threat}: {title}"
    unknown = _without(family, cell, lambda value: threat in value.mitigates)
    return (Ruling.CANNOT_SAY, _not_given(unknown)) if unknown else _MET


def is_worse(standing: Standing, least: Standing) -> bool:
    """Return whether a standing is below another."""
    return STANDINGS.index(standing) < STANDINGS.index(least)


def threat_wanted(family: Family, word: str, *, where: str | None = None) -> tuple[str, Degree]:
    """Return a threat and its required degree from a word.

    `THREAT` requires full, `THREAT=partly` conditional mitigation. Raises TollbarError with the nearest threat.
    """
    name, _, degree = word.partition("=")
    if not family.threats:
        raise TollbarError(
            f"the family {family.name} has no threats; `{name}` cannot be required of it",
            where=where,
            hint="`tollbar list threats` lists families and threats",
        )
    if name not in family.threats:
        raise unknown("threat", name, family.threats, where=where)
    degrees = (Degree.YES, Degree.PARTLY)
    if degree and degree not in degrees:
        what = f"`{degree}` must be `yes` or `partly`, for example `{name}=partly`"
        raise TollbarError(what, where=where, hint=nearest(degree, degrees))
    return name, Degree(degree or Degree.YES)


def _at_least(rule: Rule, family: Family, parameters: Cell) -> Found:
    wanted = [{name: family.settings[name].read(value) for name, value in one.items()} for one in rule.at_least]
    unknown = sorted({name for one in wanted for name in one if name not in parameters})
    if any(all(n in parameters and int(parameters[n]) >= int(least) for n, least in one.items()) for one in wanted):
        return _MET
    # Missing parameters may be large enough, unless a given one is too small for every set.
    if any(all(n not in parameters or int(parameters[n]) >= int(least) for n, least in one.items()) for one in wanted):
        return Ruling.CANNOT_SAY, _not_given(unknown)
    names = dict.fromkeys(name for one in wanted for name in one if name in parameters)
    has = family.with_names({name: parameters[name] for name in names})
    asked = " or ".join(map(family.with_names, wanted))
    return Ruling.BREAKS, f"{has}: less than {asked}"


def _worst(found: list[Found]) -> Found:
    order = [Ruling.BREAKS, Ruling.CANNOT_SAY, Ruling.MEETS]
    return min(found, key=lambda one: order.index(one[0]))


def _is_open(name: str, family: Family, cell: Cell) -> bool:
    """Return whether a missing coordinate applies to this cell; places do, because each cell has them."""
    is_place = name in PLACES and (name != "server" or bool(family.servers))
    return name not in cell and (is_place or name in open_at(family, cell))


def _without(family: Family, cell: Cell, says: Callable[[SettingValue], bool]) -> list[str]:
    """Return the missing settings of which some value would matter."""
    return [n for n, s in open_at(family, cell).items() if any(says(value) for value in s.about.values())]


def _not_given(names: list[str]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not given"


def day(said: str) -> date:
    """Return the date of a text. Raises TollbarError with the expected format."""
    try:
        return date.fromisoformat(said)
    except ValueError:
        match = _DAY.fullmatch(said)
        near = f"did you mean `{match[1]}{match[2] or '-01'}-01`?" if match else "for example `--date 2032-01-01`"
        raise TollbarError(f"`{said}` is not a date; it must be written as YYYY-MM-DD", hint=near) from None
