"""Families: the kinds of choice, and the known facts about each choice.

A family is a folder: `family.toml`, its known answers, its keys, and a `workload.py` if its cells need more than the
general workloads. The *cost* of a choice is measured; its *standing* (authorities, strength, threats, and the known
answers that prove it) is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tollbar.catalog.families.cells import LOADS, OF_A_LOAD, at_defaults, cells_of, open_at, settings_at
from tollbar.catalog.families.choices import Answer, Choice, Level
from tollbar.catalog.families.coordinates import Value, fits, whole
from tollbar.catalog.families.definition import DEFAULT_PROVIDERS, Default, Family, Part
from tollbar.catalog.families.family_file import name_of, read_family
from tollbar.catalog.families.made_of import MadeOf, Member
from tollbar.catalog.families.preferred import default_cell, given_up, is_answer, is_default
from tollbar.catalog.families.settings import Setting, SettingValue
from tollbar.catalog.families.standing import Authority, Degree, Mitigation, Mitigations, Standing, Threat, ThreatSource
from tollbar.core import spelling
from tollbar.core.errors import unknown
from tollbar.core.files import folders_with

__all__ = [
    "DEFAULT_PROVIDERS",
    "LOADS",
    "OF_A_LOAD",
    "Answer",
    "Authority",
    "Choice",
    "Default",
    "Degree",
    "Family",
    "Level",
    "MadeOf",
    "Member",
    "Mitigation",
    "Mitigations",
    "Part",
    "Setting",
    "SettingValue",
    "Standing",
    "Threat",
    "ThreatSource",
    "Value",
    "at_defaults",
    "cells_of",
    "default_cell",
    "families",
    "family",
    "fits",
    "given_up",
    "is_answer",
    "is_default",
    "open_at",
    "read_family",
    "settings_at",
    "whole",
]


def families() -> Mapping[str, Family]:
    """Return every family, by name."""
    return {name: _read(folder) for name, folder in _folders().items()}


def family(name: str, *, where: str | None = None) -> Family:
    """Return the family of this name. Raises TollbarError with the nearest names if there is none."""
    known = _folders()
    found = spelling.find(name, known)
    if found is None:
        raise unknown("family", name, known, where=where)
    return _read(known[found])


def _folders() -> Mapping[str, Path]:
    return {name_of(folder): folder for folder in folders_with("family.toml", Path(__file__).parent).values()}


_read = cache(read_family)
