"""Publications whose comparisons studies reproduce."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Advice:
    """Recommendation of a publication for an environment, as of its year, and how that is rated today."""

    environment: str
    says: str
    where: str
    """Place in its text."""
    rated: tuple[Mapping[str, str], ...] = ()
    """Choices, or values of settings, whose present standing is printed next to it: each by its `family` and name."""
    note: str | None = None
    """Remark of Tollbar's, not of the publication's."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Sign-on that a publication draws as requests and answers."""

    mode: str
    figure: str
    requests: str
    """Requests and their answers here."""
    study: str
    """Study that counts its round trips."""
    cell: Mapping[str, str]
    """Coordinates of the cell there."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Publication with its system and the studies that reproduce it."""

    name: str
    """Name in studies."""
    title: str
    system: str
    """System that its measurements ran on."""
    differs: str
    """Differences of the setup here."""
    studies: tuple[str, ...]
    """Studies that reproduce it, in the order of its text, each as `load` takes it: `tls-today/tls-records`."""
    elsewhere: tuple[str, ...] = ()
    """Studies that reproduce it differently: without a server, or on other implementations."""
    setup: Mapping[str, str] = field(default_factory=dict)
    """Machine and programs of each role, as the text states them."""
    advice: tuple[Advice, ...] = ()
    """Recommendations by environment, in the order of its text."""
    flows: tuple[Flow, ...] = ()
    by: str | None = None
    year: int | None = None

    @property
    def as_run(self) -> Sequence[str]:
        """Studies that reproduce it as it was run."""
        return [name for name in self.studies if name not in self.elsewhere]

    @property
    def order(self) -> Mapping[str, int]:
        """Position of each of these studies, by its own name."""
        return {name.rpartition("/")[2]: place for place, name in enumerate(self.studies)}

    @property
    def cited(self) -> str:
        """Citation: `Title (author, year)`."""
        about = ", ".join(str(part) for part in (self.by, self.year) if part)
        return f"{self.title} ({about})" if about else self.title


def sources() -> Mapping[str, Publication]:
    """Return the publications that the shipped studies reproduce, by name."""
    text = (files("tollbar.catalog") / "sources.toml").read_text("utf-8")
    found = tomllib.loads(text)
    lists = {name: {key: tuple(said.get(key, ())) for key in ("studies", "elsewhere")} for name, said in found.items()}
    advice = {name: tuple(_advice(**one) for one in said.get("advice", ())) for name, said in found.items()}
    flows = {name: tuple(Flow(**one) for one in said.pop("flow", ())) for name, said in found.items()}
    return {
        name: Publication(name=name, **said | lists[name] | {"advice": advice[name], "flows": flows[name]})
        for name, said in found.items()
    }


def _advice(*, rated: Sequence[Mapping[str, str]] = (), **said: str) -> Advice:
    return Advice(rated=tuple(rated), **said)
