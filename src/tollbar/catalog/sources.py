"""The published comparisons that studies try again."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Publication:
    """One of them, and what it ran on."""

    name: str
    """As studies name it."""
    title: str
    system: str
    """What it ran on."""
    differs: str
    """What is other here."""
    studies: tuple[str, ...]
    """Those that try it, in the order of its text, each as `load` takes it: `tls-today/tls-records`."""
    elsewhere: tuple[str, ...] = ()
    """Those of them that try it otherwise than it was run: without a server, on other implementations."""
    by: str | None = None
    year: int | None = None

    @property
    def as_run(self) -> Sequence[str]:
        """The studies that try it as it was run."""
        return [name for name in self.studies if name not in self.elsewhere]

    @property
    def order(self) -> Mapping[str, int]:
        """The place of each of these studies, by its own name."""
        return {name.rpartition("/")[2]: place for place, name in enumerate(self.studies)}

    @property
    def cited(self) -> str:
        """`Title (author, year)`."""
        about = ", ".join(str(part) for part in (self.by, self.year) if part)
        return f"{self.title} ({about})" if about else self.title


def sources() -> Mapping[str, Publication]:
    """Those that the shipped studies try, by name."""
    text = (files("tollbar.catalog") / "sources.toml").read_text("utf-8")
    found = tomllib.loads(text)
    lists = {name: {key: tuple(said.get(key, ())) for key in ("studies", "elsewhere")} for name, said in found.items()}
    return {name: Publication(name=name, **said | lists[name]) for name, said in found.items()}
