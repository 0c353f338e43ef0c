"""Grid of a study: every combination of its choices, providers, servers and settings."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from tollbar.catalog import servers
from tollbar.catalog.families import OF_A_LOAD, Value, fits, whole
from tollbar.catalog.libraries import Broken, Provider
from tollbar.catalog.servers import Server
from tollbar.catalog.servers.remote import Remote
from tollbar.core.errors import TollbarError, unknown
from tollbar.study import Coordinates, Study
from tollbar.study.plan.cells import Cell, key_of

# Limits of all studies of a plan together: four seconds to plan, and days to measure.
MOST_COMBINATIONS = 45_000
"""Limit of the combinations of choices, providers and varied values. The set `sources` has 26,000."""
MOST_COMPARISONS = 3_500_000
"""Limit of the combinations times the values of `leave-out`, the claims and the tables of their study, in 1 us each.

The set `sources` has 2,800,000.
"""
MOST_CLAIMED = 400_000
"""Limit of the cells times the claims and tables of their study, in 6 us each. The set `sources` has 13,000."""


@dataclass(slots=True)
class Spent:
    """Work for the studies of a plan so far, each number with a limit."""

    combinations: int = 0
    comparisons: int = 0
    claimed: int = 0


class GridPlace(NamedTuple):
    """A combination of a study, before its baseline is known."""

    provider: Provider
    server: Server | Remote | None
    coordinates: Coordinates


class Grid:
    """Combinations of a study, with its exclusions and baseline."""

    def __init__(
        self,
        study: Study,
        providers: Sequence[Provider],
        broken: Sequence[Broken],
        spent: Spent | None = None,
    ) -> None:
        self.study = study
        self._spent = Spent() if spent is None else spent
        self.providers = providers
        self.broken = broken
        # Resolved once, because every cell uses them.
        self._leave_out = [
            replace(one, where={name: self._meant(name, values) for name, values in one.where.items()})
            for one in study.leave_out
        ]
        self._fixed = {name: self._meant(name, (value,)) for name, value in study.baseline.items()}
        self._known: dict[tuple[tuple[str, Value], ...], str] = {}
        left_out = sum(len(values) for one in study.leave_out for values in one.where.values())
        self._compared = left_out + len(study.claims) + len(study.tables)

    def places(self) -> Iterator[GridPlace]:
        """Yield each combination of the study once, without settings that do not apply to it."""
        study, family = self.study, self.study.family
        known: set[tuple[tuple[str, Value], ...]] = set()
        for name, (server, provider), op in itertools.product(
            study.choices, self.performers(), study.vary.get("op", family.operations)
        ):
            at: dict[str, Value] = {"choice": name, "provider": provider.spec, "op": op}
            at |= {"server": server.name} if server else {}
            varied = self._varied(at)
            combined = prod(map(len, varied.values()))
            self._spent.combinations += combined
            self._spent.comparisons += combined * self._compared
            if self._spent.combinations > MOST_COMBINATIONS:
                raise TollbarError(
                    f"more than {MOST_COMBINATIONS:,} combinations of choices, providers and `vary`",
                    where=study.name,
                    hint="vary less at once, or measure it in several runs",
                )
            if self._spent.comparisons > MOST_COMPARISONS:
                what = f"more than {MOST_COMPARISONS:,} comparisons of combinations with leave-outs, claims and tables"
                raise TollbarError(what, where=study.name, hint="measure it in several runs")
            for values in itertools.product(*varied.values()):
                coordinates = self.normal({**at, **dict(zip(varied, values, strict=True))})
                if (alike := tuple(coordinates.items())) in known:
                    continue
                known.add(alike)
                yield GridPlace(provider, server, coordinates)

    def cell(self, place: GridPlace, against: str | None) -> Cell:
        """Return the cell of this place, compared with the one of this key."""
        family, coordinates = self.study.family, place.coordinates
        return Cell(
            study=self.study.name,
            family=family.name,
            choice=family.choices[str(coordinates["choice"])],
            provider=place.provider,
            server=place.server,
            load=self.study.load,
            coordinates=coordinates,
            standing=family.standing_of(coordinates),
            strength=family.strength_of(coordinates),
            against=against,
        )

    def _varied(self, at: Coordinates) -> dict[str, tuple[Value, ...]]:
        """Return the varied values at a choice, provider and operation; settings that do not apply have one value.

        Otherwise a study of many settings has thousands of combinations for each cell.
        """
        settings = self.study.family.settings
        may_apply: set[str] = set()
        for name, setting in settings.items():
            known = {
                on: patterns
                for on, patterns in setting.only.items()
                if on not in may_apply and (on in settings or on in ("choice", "provider", "op", "server"))
            }
            if fits(known, at):
                may_apply.add(name)
        varied = {**self.study.vary, **_loads(self.study)}
        varied.pop("op", None)
        return {n: values[:1] if n in settings and n not in may_apply else values for n, values in varied.items()}

    def normal(self, wanted: Coordinates) -> dict[str, Value]:
        """Return coordinates in the family's order, without settings that do not apply, and with defaults.

        For a user's server only the given settings are known, so defaults are not added.
        """
        family = self.study.family
        coordinates: dict[str, Value] = {
            n: wanted[n] for n in ("choice", "provider", "server", "op", "threads") if n in wanted
        }
        for name, setting in family.settings.items():
            if setting.only and not setting.applies(coordinates):
                continue
            if name in wanted:
                coordinates[name] = wanted[name]
            elif not self.study.remotes:
                coordinates[name] = family.default_at(name, {**wanted, **coordinates})
        return coordinates | {n: wanted[n] for n in OF_A_LOAD if n in wanted}

    def performers(self) -> Iterator[tuple[Server | Remote | None, Provider]]:
        """Yield each server with each provider that it can run on, or just the providers."""
        if not self.study.servers:
            yield from itertools.product(self.study.remotes or (None,), self.providers)
            return
        for name in self.study.servers:
            server = servers.all_servers()[name]
            yield from ((server, provider) for provider in self.providers if provider.kind in server.runs_on)

    def left_out(self, coordinates: Coordinates) -> str | None:
        return next((one.because for one in self._leave_out if one.covers(coordinates)), None)

    def baseline_of(self, coordinates: Coordinates, kept: Collection[str]) -> str | None:
        """Return the key of the cell with the same coordinates except those of the baseline."""
        # A setting that does not apply to this cell has its default there, or else the first value of the study.
        firsts = {name: values[0] for name, values in self.study.vary.items()}
        for open_ in ({}, firsts):
            for values in itertools.product(*self._fixed.values()):
                wanted = {**open_, **coordinates, **dict(zip(self._fixed, values, strict=True))}
                key = self._key_at(wanted)
                if key in kept:
                    return key
        return None

    def _key_at(self, wanted: Coordinates) -> str:
        """Return the key of a cell at these coordinates; all choices at one place share a baseline."""
        items = tuple(wanted.items())
        if items not in self._known:
            self._known[items] = key_of(self.normal(wanted))
        return self._known[items]

    def _meant(self, name: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the providers that match these specs, patterns or names; other coordinates are unchanged."""
        if name != "provider":
            return values
        found: dict[Value, None] = {}
        for value in map(str, values):
            meant = [one.spec for one in self.providers if one.is_called(value)]
            passed_over = [one.spec for one in self.broken]
            if not meant and value not in passed_over and "*" not in value:
                known = [*passed_over, *(one.spec for one in self.providers)]
                raise unknown("provider", value, known, where=self.study.name)
            found |= dict.fromkeys(meant)
        return tuple(found)


def _loads(study: Study) -> dict[str, tuple[Value, ...]]:
    """Return the varied coordinates of the load."""
    if study.load is None:
        return {}
    where: dict[str, tuple[Value, ...]] = {"client": study.load.clients} if study.load.clients else {}
    if study.load.scenario is not None:
        where["step"] = study.load.scenario.measured
    if study.load.rates_hz:
        return {"rate": tuple(whole(rate) for rate in study.load.rates_hz), **where}
    if study.load.utilisations:
        return {"utilisation": study.load.utilisations, **where}
    return {"users": study.load.users, **where}
