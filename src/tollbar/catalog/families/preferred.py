"""Default of a family: the choice of an expert without further requirements, and the cells that are that choice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tollbar.catalog.families.cells import at_defaults
from tollbar.catalog.families.coordinates import Value
from tollbar.catalog.families.definition import Family
from tollbar.catalog.families.standing import Degree, Standing

_DEGREES = list(Degree)


def is_default(family: Family, coordinates: Mapping[str, Value], names: Collection[str]) -> bool:
    """Return whether a cell is its family's default along these coordinates; the others are given.

    A choice with fixed parameters (`argon2id-owasp-19m`) is the default if they are the default's.
    """
    default, choice = family.default, family.choices.get(str(coordinates["choice"]))
    if default is None or choice is None:
        return False
    own = {**coordinates, **choice.setting}
    if "choice" in names and default.choice not in (choice.name, choice.setting.get("algorithm")):
        return False
    wanted = {**_protecting(family, names), **default.setting}
    return all(own[name] == value for name, value in wanted.items() if _counts(name, own, names, choice.setting))


def is_answer(family: Family, choice: str) -> bool:
    """Return whether a choice may be recommended: a null choice and a reference are measured for comparison only."""
    return family.choices[choice].standing.is_of_option


def default_cell(family: Family, coordinates: Mapping[str, Value], names: Collection[str]) -> Mapping[str, Value]:
    """Return the default in the place of a cell: the coordinates in `names` have the default's values."""
    assert family.default is not None
    given = {name: value for name, value in coordinates.items() if name not in names or name not in family.settings}
    wanted = {**_protecting(family, names), **family.default.setting}
    given |= {name: value for name, value in wanted.items() if name in names}
    if "choice" in names:
        given["choice"] = family.default.choice
    return at_defaults(family, given)


def given_up(family: Family, coordinates: Mapping[str, Value], default: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the threats that one cell mitigates less than another, in the family's order."""
    done, wanted = family.mitigations_of(coordinates), family.mitigations_of(default)
    return tuple(
        threat
        for threat in family.threats
        if _DEGREES.index(done[threat].degree) < _DEGREES.index(wanted[threat].degree)
    )


def complaints(family: Family) -> Iterator[str]:
    """Yield the faults of a family's default: an unknown choice or value, or one in bad standing."""
    default = family.default
    if default is None:
        return
    if default.choice not in family.choices:
        yield f"`default.choice`: the family has no choice `{default.choice}`"
        return
    for name in default.setting:
        if name not in family.settings:
            yield f"`default.setting`: the family has no setting `{name}`"
            return
    if not default.authority:
        yield "`default.authority` is missing; a default needs a source"
    standing = family.standing_of(at_defaults(family, {"choice": default.choice, **default.setting}))
    if not standing.is_of_option or not standing.is_above(Standing.DEPRECATED):
        yield f"`default`: the standing is {standing.words}; it must be acceptable or better"


def _protecting(family: Family, names: Collection[str]) -> Mapping[str, Value]:
    """Return the default values of the named settings that a standing or a threat may depend on."""
    settings = (family.settings[name] for name in names if name in family.settings)
    return {one.name: one.default for one in settings if one.about and not one.how}


def _counts(name: str, own: Mapping[str, Value], names: Collection[str], fixed: Mapping[str, Value]) -> bool:
    return name in own and (name in names or name in fixed)
