"""Cells as a family by itself has them: which settings mean anything at a choice, and what they are by default."""

from __future__ import annotations

from collections.abc import Mapping

from tollbar.families.definition import Family, Setting, Value

_NOT_SAID = ("op", "bed", "provider")


def settings_at(family: Family, coordinates: Mapping[str, Value]) -> Mapping[str, Setting]:
    """The settings that may mean something at these coordinates, by name, in the family's order.

    Where the operation, the server or the provider decides and is not among the coordinates, the setting may. What a
    setting depends on and is not there has its default.
    """
    return _walked(family, coordinates)[0]


def at_defaults(family: Family, given: Mapping[str, Value]) -> Mapping[str, Value]:
    """A cell: what is given, and all other settings that may mean something there at their defaults."""
    return _walked(family, given)[1]


def _walked(family: Family, given: Mapping[str, Value]) -> tuple[Mapping[str, Setting], dict[str, Value]]:
    there: dict[str, Setting] = {}
    cell = {name: value for name, value in given.items() if name not in family.settings}
    known = [name for name in _NOT_SAID if name in given]
    for name, setting in family.settings.items():
        asked = {n: patterns for n, patterns in setting.only.items() if n not in _NOT_SAID or n in known}
        if setting.applies(cell, only=asked):
            there[name] = setting
            cell[name] = given.get(name, setting.default)
    return there, cell
