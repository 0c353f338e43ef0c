"""The mix that cores are wanted for, read from TOML: how often a second each cell is performed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field

from tollbar import study
from tollbar.catalog import families, policies
from tollbar.catalog.families import Family, Value, at_defaults, settings_at
from tollbar.catalog.libraries import normal
from tollbar.catalog.policies import Policy
from tollbar.core import units, wire
from tollbar.core.errors import TollbarError, nearest
from tollbar.core.files import read_text
from tollbar.core.wire import Wire

Read = TypeVar("Read")
Said = Mapping[str, str | int | float]

# Operations a second; beyond them a rate is a slip, and sums with it are no numbers.
LEAST_RATE, MOST_RATE = 1e-6, 1e9

MOST_TERMS = 200
# Larger numbers cannot be divided by: a float ends at 10^308.
_MOST_MACHINES = 1_000_000
"""Limit of the terms of a mix: to read and size one takes some 2 ms, and with the costs of a run more."""

# Name of a term; a check's study and its directory have it too.
_NAME = re.compile(r"\w[\w .-]*")

A_MIX = 'a mix is a TOML file with a table for each kind of work: `[term.logins]` with `rate = "20 /s"`'
DESCRIBED = "docs/size.md describes a mix under `tollbar size`; docs/mix.toml is an example"

ITS_OWN = "nothing"
"""Value for a term from which no cell is subtracted, because no other term has its requests."""
RESUMPTION = "resumption"
USUAL_RESUMPTION = "ticket"


@dataclass(frozen=True, slots=True)
class Part:
    """A cell of a term."""

    wanted: Mapping[str, Value]
    """Coordinates that the mix gives; other settings are at their defaults."""
    share: float
    """Number of times it is performed in each operation of the term; negative where it is subtracted."""


@dataclass(frozen=True, slots=True)
class Term:
    """Operations of one kind, at a rate per second."""

    name: str
    family: Family
    rate_per_s: float
    parts: tuple[Part, ...]
    at_once: float | None
    """Number of operations under way at a time, where the mix gives it."""
    resumed: float | None
    """The share of the connections that resume a session."""

    @property
    def main(self) -> Part:
        """Return the term's cell, or that of a full handshake."""
        return self.parts[0]

    @property
    def is_served(self) -> bool:
        return "server" in self.main.wanted or bool(self.family.servers)

    @property
    def null(self) -> Part | None:
        """Return the part that is subtracted."""
        return next((part for part in self.parts if part.share < 0), None)

    @property
    def is_asked(self) -> bool:
        """Return true if a load client can request the term, so that its server can have the mix's idle time."""
        return self.is_served and self.family.load

    def words(self, utilisation: float) -> tuple[str, ...]:
        """Return the words of `tollbar ask` for the costs of all its cells, at a core's utilisation."""
        choices = dict.fromkeys(str(part.wanted["choice"]) for part in self.parts)
        names = dict.fromkeys(name for part in self.parts for name in part.wanted if name != "choice")
        values = {
            name: dict.fromkeys(
                self.family.typed(name, part.wanted[name]) for part in self.parts if name in part.wanted
            )
            for name in names
        }
        said = [f"{name}={','.join(some)}" for name, some in values.items()]
        return (*choices, *said, *(load_words(utilisation) if self.is_asked else ()))


@dataclass(frozen=True, slots=True)
class Mix:
    """Workload mix to be sized."""

    path: Path
    terms: tuple[Term, ...]
    utilisation: float
    """The share of the cores' time that is to be used at most, all machines that are left being up."""
    survive: int
    """Number of machines that may fail."""
    cores_each: int | None
    """Number of cores of a machine."""
    policies: tuple[Policy, ...]


def load_words(utilisation: float) -> tuple[str, str]:
    """Return the load of a mix: clients on other machines, and the utilisation of the servers' core."""
    return f"utilisation={round(100 * utilisation)}%", "client=apart"


class _Off(Wire):
    choice: str
    setting: Said = Field(default_factory=dict)


def _with_unit(key: str, unit: str) -> BeforeValidator:
    """Return a validator that answers a bare number by the text to write, with the unit."""

    def check(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        share = unit == "%" and 0 < value < 1
        number = f"{100 * value if share else value:.6g}" if math.isfinite(value) else "60"
        raise ValueError(f'needs a unit, for example `{key} = "{number} {unit}"`')

    return BeforeValidator(check)


class _Term(Wire):
    rate: Annotated[str, _with_unit("rate", "/s")]
    family: str
    choice: str
    op: str | None = None
    server: str | None = None
    provider: str | None = None
    setting: Said = Field(default_factory=dict)
    resumed: Annotated[str | None, _with_unit("resumed", "%")] = None
    off: _Off | str | None = None
    at_once: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class _Mix(Wire):
    utilisation: Annotated[str, _with_unit("utilisation", "%")] = "60 %"
    survive: Annotated[int, Field(ge=0, le=_MOST_MACHINES)] = 0
    cores_each: Annotated[int, Field(ge=1, le=_MOST_MACHINES)] | None = None
    policy: Annotated[tuple[str, ...], Field(max_length=policies.MOST_NAMED)] = ()


class _MixFile(Wire):
    mix: _Mix = _Mix()
    term: Annotated[dict[str, _Term], Field(max_length=MOST_TERMS)]


def read(path: Path) -> Mix:
    """Return the mix of a file.

    Raises TollbarError with the fault, the term, and the nearest right name.
    """
    said = _file(path)
    if not said.term:
        raise TollbarError(
            "has no term; a mix needs at least one",
            where=str(path),
            hint="add a table `[term.NAME]`, for example `[term.logins]`",
        )
    for name in said.term:
        if not _NAME.fullmatch(name):
            what = f"{name!r} must be a name of letters, digits, `-`, `_`, `.` and spaces"
            raise TollbarError(what, where=f"{path}: term", hint='for example `[term."password logins"]`')
    head, where = said.mix, f"{path}: mix"
    utilisation = _as(units.utilisation, head.utilisation, f"{where}.utilisation") / 100
    if not utilisation:
        raise TollbarError(
            "cannot be `unpaced`; it must be a percentage",
            where=f"{where}.utilisation",
            hint='for example `utilisation = "60 %"`',
        )
    if head.survive and head.cores_each is None:
        raise TollbarError(
            "`survive` needs `cores-each`", where=f"{where}.survive", hint="for example `cores-each = 8`"
        )
    terms = tuple(_term(name, one, f"{path}: term.{name}") for name, one in said.term.items())
    _refuse_shared(said, terms, path)
    found = policies.named(head.policy)
    return Mix(path, terms, utilisation, head.survive, head.cores_each, found)


def _file(path: Path) -> _MixFile:
    """Return the tables of a mix.

    Raises TollbarError; without a nearer hint it names the page that describes mixes.
    """
    text = read_text(path)
    # No TOML begins with a brace, and JSON that others write does.
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        rates = "use `http_reqs` of a k6 summary as the `rate` of a term; " if '"http_reqs"' in text else ""
        raise TollbarError(f"a JSON document is not a mix; {A_MIX}", where=str(path), hint=f"{rates}{DESCRIBED}")
    try:
        return wire.parse(text, _MixFile, where=str(path))
    except TollbarError as error:
        raise TollbarError(error.what, where=error.where, hint=error.hint or DESCRIBED) from error


def _term(name: str, said: _Term, where: str) -> Term:
    family = families.family(said.family, where=f"{where}.family")
    rate = _as(units.per_second, said.rate, f"{where}.rate")
    if not LEAST_RATE <= rate <= MOST_RATE:
        what = f"must be from {LEAST_RATE:f} /s to {MOST_RATE:,.0f} /s, for example `200 /s`"
        raise TollbarError(what, where=f"{where}.rate", hint="for a rate of 0 remove the term")
    if said.op is None and len(family.operations) > 1:
        what = f"is missing; the family {family.name} needs it"
        raise TollbarError(
            what,
            where=f"{where}.op",
            hint=f'for example `op = "{family.operations[0]}"`; known: {", ".join(family.operations)}',
        )
    places = {"op": said.op or family.operations[0], "server": said.server, "provider": said.provider}
    place = {
        coordinate: normal(found) if coordinate == "provider" else found
        for coordinate, found in places.items()
        if found is not None
    }
    for coordinate, found in place.items():
        _values(family, {coordinate: found}, f"{where}.{coordinate}")
    cell = {**_cell(family, said.choice, said.setting, place, where)}
    parts = [Part(cell, 1.0)]
    share = None
    if said.resumed is not None:
        percent = 100 * _as(units.share, said.resumed, f"{where}.resumed")
        # A check measures one cell with this share of resuming clients, in whole percent.
        if not 0 <= percent <= 100 or abs(percent - round(percent)) > 1e-9:
            raise TollbarError(
                f"`{said.resumed}` must be a whole percentage from 0 % to 100 %, for example `80 %`",
                where=f"{where}.resumed",
            )
        share = round(percent) / 100
        if RESUMPTION not in settings_at(family, cell):
            what = f"{said.choice} of {family.name} cannot resume connections here"
            raise TollbarError(
                what, where=f"{where}.resumed", hint='`resumed` needs `family = "tls"` and `op = "connect"`'
            )
        by = cell.get(RESUMPTION, USUAL_RESUMPTION)
        if by == "none":
            hint = f'for example `{RESUMPTION} = "{USUAL_RESUMPTION}"`'
            raise TollbarError("cannot be `none` with `resumed`", where=f"{where}.setting.{RESUMPTION}", hint=hint)
        parts = [Part({**cell, RESUMPTION: "none"}, 1.0 - share), Part({**cell, RESUMPTION: by}, share)]
    if isinstance(said.off, str) and said.off != ITS_OWN:
        hint = f'for example `off = "{ITS_OWN}"`, or `off = {{ choice = "{family.null.name}" }}`'
        raise TollbarError(f"cannot be `{said.off}`", where=f"{where}.off", hint=hint)
    if isinstance(said.off, _Off):
        inner = f"{where}.off"
        if _choice(family, said.off.choice, inner) != family.null.name:
            what = f"must be the null choice of {family.name}, not `{said.off.choice}`"
            raise TollbarError(what, where=inner, hint=f'`off = {{ choice = "{family.null.name}" }}`')
        own = settings_at(family, {**place, "choice": said.off.choice})
        shared = {n: v for n, v in cell.items() if n in own}
        null = {**place, **shared, **_cell(family, said.off.choice, said.off.setting, place, inner)}
        parts.append(Part(null, -1.0))
    return Term(name, family, rate, tuple(parts), said.at_once, share)


def _cell(family: Family, choice: str, setting: Said, place: Mapping[str, Value], where: str) -> dict[str, Value]:
    """Return the given coordinates of a cell, with values of the type that cells have."""
    cell = {"choice": _choice(family, choice, f"{where}.choice"), **place}
    cell |= _values(family, setting, f"{where}.setting")
    known = [name for name in at_defaults(family, cell) if name in family.settings]
    for name in setting:
        if name not in known:
            hint = f"known: {', '.join(known)}"
            raise TollbarError(f"`{name}` does not apply to this cell", where=f"{where}.setting", hint=hint)
    return cell


def _choice(family: Family, name: str, where: str) -> str:
    if name not in family.choices:
        raise TollbarError(
            f"no such choice of {family.name}: `{name}`", where=where, hint=nearest(name, family.choices)
        )
    return name


def _values(family: Family, said: Said, where: str) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in said.items():
        try:
            values = study.coordinates_of(family, [f"{name}={value}"])[name]
        except TollbarError as error:
            raise TollbarError(error.what, where=where, hint=error.hint) from error
        if len(values) > 1 or "*" in str(values[0]):
            raise TollbarError(f"`{name}` must have one value in a term, not `{value}`", where=where)
        setting = family.settings.get(name)
        found[name] = setting.read(values[0]) if setting else values[0]
    return found


def _refuse_shared(said: _MixFile, terms: tuple[Term, ...], path: Path) -> None:
    """Raise TollbarError where terms of several families have the same request in them.

    A handshake is measured with a request after it, and a request with its own path: the sum would have that twice.
    """
    whole = [term for term in terms if term.is_served and said.term[term.name].off is None]
    other = next((term for term in whole if term.family.name != whole[0].family.name), None)
    if other is not None:
        null = other.family.null.name
        raise TollbarError(
            f"has the request path of `term.{whole[0].name}` too; the sum cannot count it twice",
            where=f"{path}: term.{other.name}",
            hint=f'subtract it by `off = {{ choice = "{null}" }}`, or set `off = "{ITS_OWN}"` for separate requests',
        )


def _as(read: Callable[[str], Read], said: str, where: str) -> Read:
    try:
        return read(said)
    except ValueError as error:
        raise TollbarError(str(error), where=where) from error


def every_part(terms: tuple[Term, ...]) -> Iterator[tuple[Term, Part]]:
    """Yield each term with each of its cells."""
    yield from ((term, part) for term in terms for part in term.parts)
