"""Consistency of a family's choices, settings, threats and metrics."""

from __future__ import annotations

from collections.abc import Iterator

from tollbar.catalog.families.definition import Family
from tollbar.catalog.families.settings import Setting
from tollbar.catalog.families.standing import Mitigations, Standing
from tollbar.core.errors import nearest
from tollbar.core.metrics import METRICS


def complaints(family: Family) -> Iterator[str]:
    """Yield the contradictions of a family whose keys are all valid."""
    if sum(c.standing is Standing.NULL for c in family.choices.values()) != 1:
        yield 'a family must have exactly one choice with `standing = "null"`'
    for choice in family.choices.values():
        yield from _unknown_threats(f"choice.{choice.name}", choice.mitigates, family)
        if choice.standing is Standing.NULL:
            if choice.mitigates:
                yield f"`choice.{choice.name}.mitigates`: the null choice cannot mitigate a threat; remove it"
            continue
        for threat in family.threats:
            if threat not in choice.mitigates:
                yield f'`choice.{choice.name}.mitigates`: needs the threat `{threat}`, for example `{threat} = "no"`'
        for level in choice.levels:
            for name in level.at_least:
                if name not in family.settings:
                    hint = nearest(name, family.settings)
                    yield f"`choice.{choice.name}.level.at-least`: the family has no setting `{name}`; {hint}"
    for metric in family.metrics:
        if metric in METRICS:
            yield f"`metric.{metric}`: the name is reserved, because every family has this metric; use another"
    coordinates = ["choice", "provider", "server", "op", "threads"]
    known = [*coordinates, *family.settings]
    places = {f"choice.{one.name}": one.unsupported for one in family.choices.values()}
    places |= {f"setting.{one.name}": one.unsupported for one in family.settings.values()}
    for key, unsupported in places.items():
        for name in (name for one in unsupported for name in one.where if name not in known):
            yield f"`{key}.unsupported.where`: no such coordinate: `{name}`; {nearest(name, known)}"
    for setting in family.settings.values():
        for name in setting.only:
            if name not in coordinates:
                # Settings are read in order, and one may only depend on earlier ones.
                hint = nearest(name, coordinates)
                yield f"`setting.{setting.name}.only.{name}`: must be the name of a setting above it; {hint}"
        coordinates.append(setting.name)
        for name in setting.least_each:
            if name not in (*family.settings, "users"):
                hint = nearest(name, family.settings)
                yield f"`setting.{setting.name}.least-each`: the family has no setting `{name}`; {hint}"
        for name in setting.breaks_even_with:
            if name not in family.settings:
                hint = nearest(name, family.settings)
                yield f"`setting.{setting.name}.breaks-even-with`: the family has no setting `{name}`; {hint}"
        yield from _contradictions(setting)
        values = {str(value) for value in setting.values or ()}
        for name in setting.in_words:
            if name not in values:
                yield f"`setting.{setting.name}.in-words.{name}`: must be one of the values of the setting"
        for name, value in setting.about.items():
            key = f"setting.{setting.name}.value.{name}"
            if name not in values:
                yield f"`{key}`: must be one of the values of the setting"
            if value.standing is not None and not value.standing.is_of_option:
                yield f"`{key}.standing` cannot be `{value.standing}`; only a choice can"
            yield from _unknown_threats(key, value.mitigates, family)


def _contradictions(setting: Setting) -> Iterator[str]:
    if setting.values is not None and setting.unit is not None:
        yield f"`setting.{setting.name}`: needs either `unit` or `values`"
    elif setting.values is not None and setting.default not in setting.values:
        known = nearest(str(setting.default), map(str, setting.values))
        yield f"`setting.{setting.name}.default`: `{setting.default}` must be one of its `values`; {known}"


def _unknown_threats(key: str, mitigates: Mitigations, family: Family) -> Iterator[str]:
    for name in mitigates:
        if name not in family.threats:
            known = nearest(name, family.threats) or "it has none"
            yield f"`{key}.mitigates`: the family has no threat `{name}`; {known}"
