"""The table from facts to choices, and the code points of TLS, as their files have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from tollbar.core import wire

_TABLE = Path(__file__).with_name("mapping.toml")
_CODE_POINTS = Path(__file__).with_name("code-points.toml")


class Counts(StrEnum):
    """Rules that count for a choice in place of an asset whose facts are not all known."""

    ALL = ""
    BUT_STRENGTH = "but strength"


_Patterns = Annotated[
    tuple[re.Pattern[str], ...], BeforeValidator(lambda said: (said,) if isinstance(said, str) else said)
]


class Row(wire.Wire):
    where: dict[str, tuple[str, ...]]
    needs: tuple[str, ...] = ()
    choices: tuple[str, ...] = Field(default=(), alias="is")
    settings: dict[str, tuple[str, ...]] = Field(default={}, alias="with")
    beyond: str | None = None
    cannot_say: str | None = None
    agree: tuple[str, ...] = Field(default=(), alias="and")
    at_best: tuple[str, ...] = ()
    counts: Counts = Counts.ALL


class Length(wire.Wire):
    fact: str
    accepted: str = ""
    sentence: str


class Table(wire.Wire):
    reads: dict[str, tuple[str, ...]]
    says_nothing: dict[str, _Patterns]
    fact: dict[str, dict[str, _Patterns]]
    hides: dict[str, str]
    hash_families: dict[str, tuple[str, ...]]
    curve_sizes: dict[str, tuple[int, ...]]
    curve_sets: dict[str, tuple[str, ...]]
    length: tuple[Length, ...]
    key_sizes: dict[str, tuple[int, ...]]
    agrees: dict[str, tuple[str, ...]]
    not_functions: dict[str, tuple[str, ...]]
    words: dict[str, str]
    not_had: dict[str, str]
    choice: tuple[Row, ...]
    oid: dict[str, str]


class CodePoints(wire.Wire):
    group: dict[str, str]
    scheme: dict[str, str]
    suite: dict[str, str]

    @property
    def of_properties(self) -> Mapping[str, Mapping[str, str]]:
        """Return the code points by the property of a cipher suite."""
        return {"suite": self.suite, "identifiers": self.suite, "group": self.group, "scheme": self.scheme}


@cache
def code_points() -> CodePoints:
    return wire.read(_CODE_POINTS, CodePoints)


@cache
def table() -> Table:
    return wire.read(_TABLE, Table)
