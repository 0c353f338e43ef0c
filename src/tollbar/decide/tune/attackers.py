"""Guesses a second of an attacker's card, as published and as its memory could feed; the two are never merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from tollbar.catalog.families import Family
from tollbar.core.errors import TollbarError, unknown
from tollbar.core.wire import Wire, read
from tollbar.decide.tune.algorithms import ALGORITHMS, Parameters

FILE = Path(__file__).with_name("attackers.toml")


class Card(Wire):
    """A graphics card."""

    title: str
    bytes_per_second: float
    """Bandwidth of the card's memory."""
    source: str
    seen: date
    checked: bool


class Moved(Wire):
    """Bytes that a guess reads and writes, with the source."""

    rule: str
    source: str
    seen: date
    checked: bool


class Rate(Wire):
    """Guesses a second, as published, with the parameters that they are of."""

    card: str
    choice: str
    tool: str
    parameters: dict[str, str | int]
    per_second: float
    source: str
    dated: date | None = None
    """Date of the publication, if it has one."""
    seen: date
    checked: bool
    """True if the source was read, false if it is known by quotations."""


class Attackers(Wire):
    """The file."""

    card: dict[str, Card]
    moved: dict[str, Moved]
    rate: tuple[Rate, ...]


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses a second of an attacker against one choice with its parameters, on one card."""

    card: Card
    published: float | None
    """The fastest that was published, scaled by the work; None: nothing was."""
    rate: Rate | None
    by_memory: float | None
    """Guesses that the card's memory could feed; None: memory is no limit."""


@cache
def attackers() -> Attackers:
    """Return the cards and rates of the file.

    Raises TollbarError for a rate of an unknown card or choice.
    """
    found = read(FILE, Attackers)
    for rate in found.rate:
        for kind, name, known in (("card", rate.card, found.card), ("choice", rate.choice, ALGORITHMS)):
            if name not in known:
                raise unknown(kind, name, known, where=str(FILE))
    if not found.card:
        raise TollbarError("the file must have at least one card", where=str(FILE))
    return found


def guesses(family: Family, choice: str, parameters: Parameters, card: str) -> Guesses:
    """Return the card's guesses against one choice with these parameters."""
    known, algorithm = attackers(), ALGORITHMS[choice]

    def scaled(rate: Rate) -> float:
        return rate.per_second * algorithm.work(_read(family, rate.parameters)) / algorithm.work(parameters)

    of_choice = [rate for rate in known.rate if (rate.card, rate.choice) == (card, choice)]
    fastest = max(of_choice, key=scaled, default=None)
    one = known.card[card]
    by_memory = one.bytes_per_second / algorithm.moved(parameters) if algorithm.moved else None
    return Guesses(one, scaled(fastest) if fastest else None, fastest, by_memory)


def _read(family: Family, said: Mapping[str, str | int]) -> Parameters:
    return {name: int(family.settings[name].read(value)) for name, value in said.items()}
