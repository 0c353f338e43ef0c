"""Consistency of a family's statements on its threats, by choice and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tollbar.catalog.families.cells import at_defaults
from tollbar.catalog.families.coordinates import Value
from tollbar.catalog.families.definition import Family
from tollbar.catalog.families.standing import Degree, Mitigations, Standing
from tollbar.core.errors import nearest
from tollbar.core.patterns import is_like

_DEGREES = list(Degree)


def complaints(family: Family) -> Iterator[str]:
    """Yield the contradictions: a source of no choice, an unknown coordinate, an undeclared rise."""
    for threat in family.threats.values():
        for pattern in (pattern for source in threat.sources for pattern in source.of):
            if not any(is_like(name, pattern) for name in family.choices):
                known = nearest(pattern, family.choices)
                yield f"`threat.{threat.name}.authority.of`: no such choice: `{pattern}`; {known}"
    for choice in family.choices.values():
        yield from _unknown_coordinates(f"choice.{choice.name}", choice.mitigates, family)
    for setting in family.settings.values():
        for value in setting.about.values():
            key = f"setting.{setting.name}.value.{value.name}"
            yield from _unknown_coordinates(key, value.mitigates, family)
            for threat_name in value.raises:
                if threat_name not in value.mitigates:
                    yield f"`{key}.raises`: the value needs `mitigates` for the threat `{threat_name}`"
    for choice in family.choices.values():
        for cell, name, value_name in _cells(family, choice.name):
            for threat_name in raised(family, cell):
                yield (
                    f"`setting.{name}.value.{value_name}.mitigates.{threat_name}`: cannot be more than"
                    f" `choice.{choice.name}` has, unless `raises` of the value names the threat"
                )


def raised(family: Family, coordinates: Mapping[str, Value]) -> list[str]:
    """Return the threats that a cell mitigates further than its choice, without a value that `raises` them."""
    choice = family.choices[str(coordinates["choice"])]
    if choice.standing is Standing.NULL:
        return []
    with_values = family.mitigations_of(coordinates)
    by_choice = family.mitigations_of(coordinates, of_choice=True)
    allowed = {threat for value in family.values_at(coordinates) for threat in value.raises}
    return [
        threat
        for threat in family.threats
        if threat not in allowed
        and _DEGREES.index(with_values[threat].degree) > _DEGREES.index(by_choice[threat].degree)
    ]


def _cells(family: Family, choice: str) -> Iterator[tuple[Mapping[str, Value], str, str]]:
    """Yield the choice at its defaults, with each setting's value that has facts."""
    for setting in family.settings.values():
        for value in setting.about.values():
            cell = at_defaults(family, {"choice": choice, setting.name: value.name})
            if setting.name in cell:
                yield cell, setting.name, value.name


def _unknown_coordinates(key: str, mitigates: Mitigations, family: Family) -> Iterator[str]:
    known = ["choice", "provider", "server", "op", *family.settings]
    for threat, said in mitigates.items():
        for name in (name for one in said for name in one.when if name not in known):
            yield f"`{key}.mitigates.{threat}.when`: the family has no setting `{name}`; {nearest(name, known)}"
