"""The catalogue: which families of choices there are, and what is known about each choice.

One TOML file a family in `families/`, beside this code. What a choice *costs* is measured; what it
is *worth* (its standing with the authorities, its strength, what it protects against, the known answers
that prove it) is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from tollbar.catalogue.definition import (
    Answer,
    Authority,
    Choice,
    Degree,
    Family,
    Mitigation,
    Part,
    Setting,
    SettingValue,
    Standing,
    Threat,
    Value,
)
from tollbar.catalogue.reading import read_family
from tollbar.errors import unknown

__all__ = [
    "Answer",
    "Authority",
    "Choice",
    "Degree",
    "Family",
    "Mitigation",
    "Part",
    "Setting",
    "SettingValue",
    "Standing",
    "Threat",
    "Value",
    "families",
    "family",
    "read_family",
]


def families() -> Mapping[str, Family]:
    """Every family of the catalogue, by name."""
    return _read_families()


def family(name: str) -> Family:
    """The family of this name. Raises TollbarError with the nearest names if there is none."""
    known = families()
    if name not in known:
        raise unknown("family", name, known)
    return known[name]


@cache
def _read_families() -> Mapping[str, Family]:
    folder = files(__name__) / "families"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
    read = [read_family(path) for path in paths]
    return {f.name: f for f in read}
