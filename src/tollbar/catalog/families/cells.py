"""Cells of a family alone: the settings that apply at a choice, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tollbar.catalog.families.coordinates import Value, fits
from tollbar.catalog.families.definition import Family
from tollbar.catalog.families.settings import Setting
from tollbar.catalog.families.standing import Standing

LOADS = ("users", "rate", "utilisation")
"""Coordinates of a load's size.

`rate` and `utilisation` of zero are unpaced: users ask as soon as they are answered.
"""
OF_A_LOAD = (*LOADS, "client", "step")
_NOT_SAID = ("op", "server", "provider")


def settings_at(family: Family, coordinates: Mapping[str, Value]) -> Mapping[str, Setting]:
    """Return the settings that may apply at these coordinates, by name, in the family's order.

    A setting that depends on an operation, server or provider outside the coordinates may apply. Other missing
    coordinates that a setting depends on have their defaults.
    """
    return _walked(family, coordinates)[0]


def open_at(family: Family, given: Mapping[str, Value]) -> Mapping[str, Setting]:
    """Return the settings that are not given and may apply there, by name, in the family's order.

    A missing setting that others depend on may have any of its supported values.
    """
    # Possible values of each earlier setting, with "" if it may not apply; None: any.
    may_be: dict[str, tuple[Value, ...] | None] = {name: None for name in _NOT_SAID if name not in given}
    found: dict[str, Setting] = {}
    for name, setting in family.settings.items():
        possible = [
            [fits({on: patterns}, {on: value}) for value in known]
            for on, patterns in setting.only.items()
            if (known := may_be.get(on, (given.get(on, ""),))) is not None
        ]
        if not all(map(any, possible)):
            may_be[name] = ("",)
        elif name not in given:
            found[name] = setting
            is_sure = len(possible) == len(setting.only) and all(map(all, possible))
            can_be = [value for value in setting.values or () if family.can_be(name, value, given)]
            may_be[name] = (*can_be, *(() if is_sure else ("",))) if setting.values else None
    return found


def at_defaults(family: Family, given: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return a cell: the given values, and the defaults of all other settings that may apply there."""
    return _walked(family, given)[1]


def cells_of(family: Family, given: Mapping[str, Sequence[Value]]) -> Sequence[Mapping[str, Value]]:
    """Return every cell of a family's choices with these values; `*` is each value of a setting; others have defaults.

    `choice` may be among the given names. The null choice is excluded. Some cells may be impossible, for example a
    version of TLS without a group: that is not known here.
    """
    names = {str(value) for value in given.get("choice", ("*",))}
    varied = {
        name: (family.settings[name].values or ()) if "*" in values and name in family.settings else tuple(values)
        for name, values in given.items()
        if name != "choice"
    }
    cells: list[dict[str, Value]] = [
        {"choice": choice.name}
        for choice in family.choices.values()
        if choice.standing is not Standing.NULL and {choice.name, "*"} & names
    ]
    for name, values in varied.items():
        if name not in family.settings:
            cells = [{**cell, name: value} for cell in cells for value in values]
    known = [name for name in _NOT_SAID if name in varied]
    # Settings are added one by one: a setting that does not apply would repeat the same cell for each of its values.
    for name, setting in family.settings.items():
        asked = _asked(setting, known)
        apart = [(cell, setting.applies(cell, only=asked)) for cell in cells]
        cells = [
            {**cell, name: value} if is_there else cell
            for cell, is_there in apart
            for value in (varied.get(name) or [family.default_at(name, cell)] if is_there else [""])
        ]
    return cells


def _asked(setting: Setting, known: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the conditions of a setting that count if of `op`, `server` and `provider` only these are known."""
    return {name: patterns for name, patterns in setting.only.items() if name not in _NOT_SAID or name in known}


def _walked(family: Family, given: Mapping[str, Value]) -> tuple[Mapping[str, Setting], dict[str, Value]]:
    there: dict[str, Setting] = {}
    cell = {name: value for name, value in given.items() if name not in family.settings}
    known = [name for name in _NOT_SAID if name in given]
    for name, setting in family.settings.items():
        if setting.applies(cell, only=_asked(setting, known)):
            there[name] = setting
            cell[name] = given[name] if name in given else family.default_at(name, {**given, **cell})
    return there, cell
