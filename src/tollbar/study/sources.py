"""The published comparisons that studies try again."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Source:
    """One of them, and what it ran on."""

    name: str
    """As studies name it."""
    title: str
    system: str
    differs: str
    """What is other here."""
    by: str | None = None
    year: int | None = None


def sources() -> Mapping[str, Source]:
    """Those that the shipped studies try, by name."""
    text = (files("tollbar.study") / "sources.toml").read_text("utf-8")
    return {name: Source(name=name, **said) for name, said in tomllib.loads(text).items()}
