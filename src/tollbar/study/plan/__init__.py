"""Plan: every cell of every study, its baseline, and the order of visits."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tollbar.catalog import libraries, servers
from tollbar.catalog.families import Value
from tollbar.catalog.libraries import Broken, Provider, look_up
from tollbar.catalog.servers import Installed, Server
from tollbar.core.errors import TollbarError
from tollbar.core.limits import SEED
from tollbar.study import MOST_STUDIES, Coordinates, Study
from tollbar.study.plan.cells import Cell, key_of
from tollbar.study.plan.grid import MOST_CLAIMED, Grid, GridPlace, Spent
from tollbar.study.plan.labels import labels
from tollbar.study.plan.pairs import claimed, matching, tabled


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

    def measured_as(self, studies: Sequence[Study]) -> Plan:
        """Return the plan of the same cells for these studies, which differ from its own only in `measure`."""
        pairs = zip(self.studies, studies, strict=True)
        return replace(self, studies=tuple(replace(planned, study=study) for planned, study in pairs))

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


def make(studies: Sequence[Study], *, seed: int, named_libraries: Sequence[str] = ()) -> Plan:
    """Return the plan of these studies. Raises TollbarError for an unavailable provider or a study without cells."""
    try:
        SEED.check(seed)
    except ValueError as error:
        raise TollbarError(f"`--seed`: {error}") from error
    if len(studies) > MOST_STUDIES:
        what = f"{len(studies):,} studies; a run has at most {MOST_STUDIES}"
        raise TollbarError(what, hint="measure them in several runs")
    names = [study.name for study in studies]
    for name in names:
        if names.count(name) > 1:
            raise TollbarError(
                f"the study `{name}` is given twice; each study must have its own name", hint="remove one"
            )
    spent = Spent()
    return Plan(tuple(_plan(study, spent, *look_up(study.providers, named_libraries)) for study in studies), seed)


def _plan(study: Study, spent: Spent, providers: Sequence[Provider], broken: tuple[Broken, ...]) -> StudyPlan:
    grid = Grid(study, providers, broken, spent)
    kept: dict[str, GridPlace] = {}
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
    spent.claimed += len(kept) * (len(study.claims) + len(study.tables))
    if spent.claimed > MOST_CLAIMED:
        what = f"more than {MOST_CLAIMED:,} comparisons of cells with claims and tables"
        raise TollbarError(what, where=study.name, hint="measure it in several runs")
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
