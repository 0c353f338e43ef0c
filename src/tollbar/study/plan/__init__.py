"""Plan: every cell of every study, its baseline, and the order of visits."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

from tollbar.catalog import libraries, servers
from tollbar.catalog.families import OF_A_LOAD, Answer, Choice, Standing, Value, fits, whole
from tollbar.catalog.libraries import Broken, Provider, look_up
from tollbar.catalog.servers import Installed, Server, Unavailable
from tollbar.catalog.servers.remote import Remote
from tollbar.core.errors import TollbarError, unknown
from tollbar.core.limits import SEED
from tollbar.core.records import CONTRACT
from tollbar.study import NOT_SETTINGS, Coordinates, Load, Study
from tollbar.study.plan.labels import labels
from tollbar.study.plan.pairs import claimed, matching, tabled

Task = Mapping[str, Any]
"""Task of the runner contract."""

# A study of this size takes some four seconds to plan, and days to measure. The largest shipped one has 9,000.
MOST_COMBINATIONS = 45_000
# Each combination is compared with each value of `leave-out`, each claim and each table, in 2 us and more.
MOST_COMPARISONS = 2_000_000
# `json.dumps` makes a new encoder for each call, and a large study has a hundred thousand keys.
_KEYS = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell of a study: one choice × provider × setting."""

    study: str
    family: str
    choice: Choice
    provider: Provider
    server: Server | Remote | None
    """Server through which it is measured; None if the provider itself is measured."""
    load: Load | None
    coordinates: Coordinates
    standing: Standing
    """Worst standing of its choice and its settings."""
    strength: int | None
    """Least strength of its choice and its settings, in bits."""
    against: str | None
    """Key of its baseline: its own if it is a baseline, None if there is none."""
    key: str = field(init=False, repr=False, compare=False)
    """Canonical text of its coordinates, cached because each round of a batch uses it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key_of(self.coordinates))

    @property
    def is_baseline(self) -> bool:
        return self.against == self.key

    @property
    def server_version(self) -> str | None:
        """Server through which it is measured: `nginx 1.22.1`, or the URL of a user's own."""
        if self.server is None:
            return None
        found = servers.find(self.server) if isinstance(self.server, Server) else self.server
        return found.name if isinstance(found, Unavailable) else found.server_version

    @property
    def memory_bytes(self) -> int:
        """Memory of one operation by its parameters, in bytes; 0 if negligible."""
        return self.choice.memory_bytes(self.coordinates)

    @property
    def threads(self) -> int:
        """Number of threads that perform it at once."""
        return int(self.coordinates.get("threads", 1))

    def task(self, mode: str, seed: int, answer: Answer | None = None) -> dict[str, Any]:
        """Return the task for this cell, with a known answer's inputs and settings if one is given."""
        own = {name: value for name, value in self.coordinates.items() if name not in NOT_SETTINGS}
        inputs = dict(self.choice.inputs)
        if answer is not None:
            inputs |= {**answer.inputs, "expected_hex": answer.expected}
        return {
            "contract": CONTRACT,
            "mode": mode,
            "family": self.family,
            "op": self.coordinates["op"],
            "choice": self.choice.name,
            "provider": self.provider.in_task,
            "setting": {**own, **self.choice.setting, **(answer.setting if answer else {})},
            "inputs": inputs,
            "seed": seed,
            **({"threads": self.threads} if "threads" in self.coordinates else {}),
        }


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Cells of one study."""

    study: Study
    cells: tuple[Cell, ...]
    left_out: tuple[tuple[Coordinates, str], ...]
    broken: tuple[Broken, ...] = ()
    """Libraries that match a pattern of the study, but cannot be used."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run will do."""

    studies: tuple[StudyPlan, ...]
    seed: int

    @property
    def receipts(self) -> Mapping[str, Mapping[str, Any]]:
        """Code of every provider, by its spec; `name` is its name in rows."""
        providers = {cell.provider.spec: cell.provider for cell in self.cells}
        names = libraries.names(providers.values())
        return {spec: {**one.receipt, "path": one.path, "name": names[spec]} for spec, one in providers.items()}

    @property
    def servers(self) -> Mapping[str, Mapping[str, str]]:
        """Program and version of every server, by its name; if it is not installed, the reason and a remedy."""
        found = {cell.server: servers.find(cell.server) for cell in self.cells if isinstance(cell.server, Server)}
        return {
            server.name: {"version": one.version, "program": str(one.programs[server.frontend.name])}
            if isinstance(one, Installed)
            else {"unavailable": one.reason}
            for server, one in found.items()
        }

    @property
    def broken(self) -> Mapping[str, str]:
        """Libraries of the studies that cannot be used: path and reason."""
        return {one.path or one.spec: one.reason for study in self.studies for one in study.broken}

    @property
    def cells(self) -> Sequence[Cell]:
        """Cells of all studies."""
        return [cell for study in self.studies for cell in study.cells]

    @property
    def labels(self) -> Mapping[tuple[str, str], str]:
        """Name of each cell for people, by its study and its key."""
        found = {study.study.name: labels(study.study, study.cells) for study in self.studies}
        return {(name, key): label for name, some in found.items() for key, label in some.items()}


def key_of(coordinates: Coordinates) -> str:
    """Return coordinates as canonical text: the same cell has the same key in every run."""
    return _KEYS.encode(dict(coordinates))


def make(studies: Sequence[Study], *, seed: int, named_libraries: Sequence[str] = ()) -> Plan:
    """Return the plan of these studies. Raises TollbarError for an unavailable provider or a study without cells."""
    try:
        SEED.check(seed)
    except ValueError as error:
        raise TollbarError(f"`--seed`: {error}") from error
    names = [study.name for study in studies]
    for name in names:
        if names.count(name) > 1:
            raise TollbarError(
                f"the study `{name}` is given twice; each study must have its own name", hint="remove one"
            )
    return Plan(tuple(_plan(study, *look_up(study.providers, named_libraries)) for study in studies), seed)


def _plan(study: Study, providers: Sequence[Provider], broken: tuple[Broken, ...]) -> StudyPlan:
    grid = _Grid(study, providers, broken)
    kept: dict[str, _Place] = {}
    left_out: dict[str, tuple[Coordinates, str]] = {}
    for place in grid.places():
        key, reason = key_of(place.coordinates), grid.left_out(place.coordinates)
        if reason is None:
            kept.setdefault(key, place)
        else:
            left_out.setdefault(key, (place.coordinates, reason))
    for place in kept.values():
        contradiction = study.family.contradiction(place.coordinates)
        if contradiction:
            hint = "change the values, or exclude the combination with `[[leave-out]]`"
            raise TollbarError(contradiction, where=study.name, hint=hint)
    if not kept:
        raise TollbarError("`[[leave-out]]` excludes every combination; at least one must be left", where=study.name)
    cells = [grid.cell(place, grid.baseline_of(place.coordinates, kept)) for place in kept.values()]
    if not any(cell.is_baseline for cell in cells):
        raise TollbarError(
            f"no cell has the coordinates of the baseline {dict(study.baseline)}; at least one must",
            where=study.name,
            hint="add the baseline to `choices`, `providers` or `[vary]`",
        )
    _refuse_idle_settings(study, [*(cell.coordinates for cell in cells), *(at for at, _ in left_out.values())])
    _refuse_ambiguous_tables(study, cells)
    _refuse_ambiguous_figures(study, cells)
    if study.measure.cells == "claimed":
        needed = _claimed(study, cells)
        left_out |= {cell.key: (cell.coordinates, "No claim is about it.") for cell in cells if cell.key not in needed}
        cells = [cell for cell in cells if cell.key in needed]
    return StudyPlan(study, tuple(cells), tuple(left_out.values()), broken)


def _claimed(study: Study, cells: Sequence[Cell]) -> set[str]:
    """Return the keys of the cells that claims are about, and of their baselines."""
    found: dict[str, Cell] = {}
    for claim in study.claims:
        if claim.untestable is not None:
            continue
        pairs = claimed(claim, cells) if claim.is_judged else ((one, one, {}) for one in matching(cells, claim.of))
        found |= {cell.key: cell for of, over, _ in pairs for cell in (of, over)}
    return {*found, *(cell.against for cell in found.values() if cell.against is not None)}


def _refuse_idle_settings(study: Study, everywhere: Sequence[Coordinates]) -> None:
    """Raise TollbarError for a varied setting that applies to no cell."""
    for name in study.vary:
        if not any(name in coordinates for coordinates in everywhere):
            only = study.family.settings[name].only
            where = " and ".join(
                f"{key} is {' or '.join(value or 'absent' for value in values)}" for key, values in only.items()
            )
            raise TollbarError(f"`{name}` applies to no cell", where=study.name, hint=f"it needs {where}")


def _refuse_ambiguous_tables(study: Study, cells: Sequence[Cell]) -> None:
    """Raise TollbarError for a table without cells, and for two cells in one place of it."""
    for table in study.tables:
        where = f"{study.name}: table “{table.title}”"
        placed: dict[tuple[Value, Value], Cell] = {}
        shown = tabled(table, cells)
        if not shown:
            raise TollbarError(
                "the table selects no cells", where=where, hint="change `table.where`, which selects them"
            )
        if table.over and not any(overs for _, overs in shown):
            raise TollbarError(f"`table.over` needs a cell that differs only in {dict(table.over)}", where=where)
        for cell, overs in shown:
            first = placed.setdefault((cell.coordinates[table.rows], cell.coordinates[table.columns]), cell)
            for one, other in ((first, cell), *itertools.pairwise(overs)):
                apart = [name for name, value in other.coordinates.items() if one.coordinates.get(name) != value]
                if apart:
                    names = labels(study, cells)
                    what = f"{names[one.key]} and {names[other.key]} have the same place; it must have one cell"
                    raise TollbarError(what, where=where, hint=f"set `{'` and `'.join(apart)}` in `table.where`")


def _refuse_ambiguous_figures(study: Study, cells: Sequence[Cell]) -> None:
    """Raise TollbarError for a figure's series without cells, and for two cells in one place of it."""
    for figure in study.figures:
        for series in figure.series:
            where = f"{study.name}: figure “{figure.title}”: “{series.title}”"
            placed: dict[Value | None, Cell] = {}
            for cell in figure.cells_of(series, cells):
                first = placed.setdefault(figure.place_of(cell.coordinates), cell)
                if first is not cell:
                    apart = [n for n, v in cell.coordinates.items() if first.coordinates.get(n) != v]
                    names = labels(study, cells)
                    raise TollbarError(
                        f"{names[first.key]} and {names[cell.key]} have the same place; it must have one cell",
                        where=where,
                        hint=f"set `{'` and `'.join(apart)}` in `figure.where`, or in its series",
                    )
            if not placed:
                raise TollbarError("the series selects no cells", where=where, hint="change its `where`")


class _Place(NamedTuple):
    """A combination of a study, before its baseline is known."""

    provider: Provider
    server: Server | Remote | None
    coordinates: Coordinates


class _Grid:
    """Combinations of a study, with its exclusions and baseline."""

    def __init__(self, study: Study, providers: Sequence[Provider], broken: Sequence[Broken]) -> None:
        self.study = study
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

    def places(self) -> Iterator[_Place]:
        """Yield each combination of the study once, without settings that do not apply to it."""
        study, family = self.study, self.study.family
        known: set[tuple[tuple[str, Value], ...]] = set()
        combined = 0
        for name, (server, provider), op in itertools.product(
            study.choices, self.performers(), study.vary.get("op", family.operations)
        ):
            at: dict[str, Value] = {"choice": name, "provider": provider.spec, "op": op}
            at |= {"server": server.name} if server else {}
            varied = self._varied(at)
            combined += prod(map(len, varied.values()))
            if combined > MOST_COMBINATIONS:
                raise TollbarError(
                    f"more than {MOST_COMBINATIONS:,} combinations of choices, providers and `vary`",
                    where=study.name,
                    hint="vary less at once, for example in several studies",
                )
            if combined * self._compared > MOST_COMPARISONS:
                what = f"more than {MOST_COMPARISONS:,} comparisons of combinations with leave-outs, claims and tables"
                raise TollbarError(what, where=study.name, hint="split it into several studies")
            for values in itertools.product(*varied.values()):
                coordinates = self.normal({**at, **dict(zip(varied, values, strict=True))})
                if (alike := tuple(coordinates.items())) in known:
                    continue
                known.add(alike)
                yield _Place(provider, server, coordinates)

    def cell(self, place: _Place, against: str | None) -> Cell:
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
