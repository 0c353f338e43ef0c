"""Cores for a mix, from measured costs: sums of rates times costs, with their intervals.

A cost is the quiet CPU time of all parties; where a load client is used, of the server's side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from statistics import median
from typing import Any

from tollbar.analysis.ledger import Quantity
from tollbar.catalog.families import Value, at_defaults
from tollbar.catalog.libraries import normal
from tollbar.catalog.policies import Policy
from tollbar.core import machine
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Interval, Moments
from tollbar.decide.rulings import Candidate, Wanted, candidate
from tollbar.decide.size.mix import Mix, Part, Term, every_part
from tollbar.decide.size.summing import Cell, Source, summed
from tollbar.decide.size.swapping import PLACES, Swap, in_order, swaps
from tollbar.results import Row, Run
from tollbar.study import USUAL_USERS, default_load, is_paced

_USUAL_SERVER = "embedded"
# Properties of users' requests that are not coordinates, by their names in a study file. Another value is another cost.
_REQUESTS = {
    "get": "load.request.get",
    "unique_query": "load.request.unique",
    "status": "load.expect.status",
    "connection": "load.connection",
    "think_s": "load.think",
}


@dataclass(frozen=True)
class SizedTerm:
    """Cores and memory of a term."""

    term: Term
    cells: tuple[Cell, ...]
    cores: Interval
    judged: Candidate
    """Candidate with the rulings of the mix's policies on the term's cell."""
    memory_bytes: float | None
    """Memory of all operations under way at once; None where an operation's is not known."""
    swaps: tuple[Swap, ...]
    """The measured ones, as `swapping.in_order` has them."""
    is_at_load: bool
    """True if its servers, if any, had the idle time of the mix's servers and no client on their core."""

    @property
    def cell(self) -> Cell:
        return self.cells[0]


@dataclass(frozen=True)
class Sized:
    """Cores of a mix, or the cells that were not measured."""

    mix: Mix
    runs: tuple[Run, ...]
    terms: tuple[SizedTerm, ...] = ()
    cores: Interval | None = None
    """Cores of all terms, at the mix's utilisation; None where a cell was not measured."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Nearest row of these runs by unmeasured term, or the reason why there is none."""

    def share(self, of: SizedTerm) -> float | None:
        """Return a term's share of all cores, both of the same moments; None where a cell was not measured."""
        if self.cores is None:
            return None
        if of.cores.moments is self.cores.moments is Moments.QUIET:
            return of.cores.estimate / self.cores.estimate
        cells = [cell for one in self.terms for cell in one.cells]
        own, every = (summed(some, Moments.ALL) for some in (of.cells, cells))
        return own.estimate / every.estimate

    def machines(self, cores: float) -> int | None:
        """Return the number of the mix's machines for these cores, those that may fail included."""
        each = self.mix.cores_each
        if each is None or not math.isfinite(cores):
            return None
        return max(1, math.ceil(cores / each)) + self.mix.survive


def size(mix: Mix, runs: Sequence[Run], today: date) -> Sized:
    """Return the cores of a mix by these runs.

    Raises TollbarError if the runs are of different machines, if one has unlike machines, if a term has several
    providers of which none is its family's, or if a cost is not above zero.
    """
    _refuse_other_machines(runs)
    sources = [Source(run, one) for run in runs for one in run.studies if one.study.measure.cost != "client-cpu"]
    percent = round(100 * mix.utilisation)
    terms = tuple(_by_one_provider(mix, sources, term, percent) for term in mix.terms)
    wanted = [*every_part(terms)]
    # Cells of one study are summed block by block, so the study with most of the mix's cells comes first.
    held = {id(one): sum(1 for term, part in wanted if _rows(one, term, part, percent)) for one in sources}
    sources.sort(key=lambda one: -held[id(one)])
    found: list[SizedTerm] = []
    missing: dict[str, str] = {}
    for term in terms:
        cells = [_cell(mix, sources, term, part) for part in term.parts]
        there = [cell for cell in cells if cell is not None]
        if len(there) < len(cells):
            part = next(part for part, cell in zip(term.parts, cells, strict=True) if cell is None)
            missing[term.name] = _nearest(sources, term, part)
        else:
            found.append(_sized(mix, term, there, today))
    if missing:
        return Sized(mix, tuple(runs), tuple(found), None, missing)
    return Sized(mix, tuple(runs), tuple(found), summed(cell for one in found for cell in one.cells))


def _refuse_other_machines(runs: Sequence[Run]) -> None:
    for run in runs[1:]:
        found = _machines_differ(runs[0], run)
        if found:
            raise TollbarError(
                f"was measured on another machine than {runs[0].name}: {'; '.join(found)}",
                where=str(run.directory),
                hint="size each machine by its own runs; cores of two machines cannot be added",
            )
    for run in runs:
        (name, first), *others = _machines_of(run).items()
        for other, about in others:
            if found := machine.differences(first, about):
                raise TollbarError(
                    f"has costs of different machines, {name} and {other}: {'; '.join(found)}",
                    where=str(run.directory),
                    hint="use a run with all roles on equal machines; cores of two machines cannot be added",
                )


def _machines_of(run: Run) -> dict[str, Mapping[str, Any]]:
    """Return the fingerprint of each machine that has a part of a run's costs.

    The lab's own is left out if all cells are of web servers on a machine of their own.
    """
    found = {f"the role {role}": node["fingerprint"] for role, node in run.nodes.items()}
    is_elsewhere = "web" in run.nodes and all("server" in row.coordinates for one in run.studies for row in one.rows)
    return found if is_elsewhere else {"the lab": run.fingerprint, **found}


def _machines_differ(one: Run, other: Run) -> list[str]:
    """Return the differences between the machines of two runs; a role without a machine is on the run's."""
    found = machine.differences(one.fingerprint, other.fingerprint)
    for role in dict.fromkeys((*one.nodes, *other.nodes)):
        of_role = [run.nodes[role]["fingerprint"] if role in run.nodes else run.fingerprint for run in (one, other)]
        found += [f"{role}: {line}" for line in machine.differences(*of_role)]
    return found


def _by_one_provider(mix: Mix, sources: Sequence[Source], term: Term, percent: int) -> Term:
    """Return the term with a provider that has all its cells: the mix's, else its family's, else the only one."""
    if "provider" in term.main.wanted:
        return term
    of_parts = [
        {str(row.coordinates["provider"]) for source in sources for row in _rows(source, term, part, percent)}
        for part in term.parts
    ]
    found = sorted(set.intersection(*of_parts) or of_parts[0])
    usual = [name for name in map(normal, term.family.providers) if name in found]
    if len(found) > 1 and not usual:
        where = f"{mix.path}: term.{term.name}.provider"
        what = "is missing; the runs have several providers"
        raise TollbarError(
            what, where=where, hint=f'for example `provider = "{found[0]}"`; measured: {", ".join(found)}'
        )
    if not found:
        return term
    said = {"provider": (*usual, *found)[0]}
    return replace(term, parts=tuple(replace(part, wanted={**part.wanted, **said}) for part in term.parts))


def _rows(source: Source, term: Term, part: Part, percent: int) -> list[Row]:
    """Return the measured rows of a study that are this cell, those of the mix's load first, then the most usual."""
    if source.study_run.study.family.name != term.family.name:
        return []
    rows = [row for row in source.study_run.rows if not _differences(source, term, part, row)]
    measured = (row for row in rows if source.ledger.why_unmeasured(row) is None)
    return sorted(measured, key=lambda row: (not _is_as_meant(row, percent), *_unusual(row)))


def _is_as_meant(row: Row, percent: int) -> bool:
    """Return true if the row's server had the mix's idle time, and its client a core of its own."""
    return row.coordinates.get("utilisation") == percent and row.coordinates.get("client") == "apart"


def _differences(source: Source, term: Term, part: Part, row: Row) -> dict[str, tuple[Value, Value]]:
    """Return the differences of a row from the wanted cell; the number of users and their rate are ignored."""
    there: Mapping[str, Value] = {"threads": 1, **row.coordinates}
    wanted: Mapping[str, Value] = {"threads": 1, **part.wanted}
    found = {name: (there.get(name, "–"), value) for name, value in wanted.items() if there.get(name) != value}
    found |= _other_requests(source, term)
    if row.choice not in term.family.choices or term.is_served != ("server" in there):
        return {"choice": (row.choice, part.wanted["choice"]), "server": (there.get("server", "–"), "–"), **found}
    usual = at_defaults(term.family, {**{n: there[n] for n in PLACES if n in there}, **part.wanted})
    return found | {
        name: (there[name], value)
        for name, value in usual.items()
        if name in term.family.settings and name not in part.wanted and name in there and there[name] != value
    }


def _other_requests(source: Source, term: Term) -> dict[str, tuple[Value, Value]]:
    """Return the differences between a study's requests and the default ones."""
    load, usual = source.study_run.study.load, default_load(term.family)
    if load is None:
        return {}
    both = {key: (getattr(load, name), getattr(usual, name)) for name, key in _REQUESTS.items()}
    return {key: (has or "–", wanted or "–") for key, (has, wanted) in both.items() if has != wanted}


def _unusual(row: Row) -> tuple[bool, ...]:
    at = row.coordinates
    return (
        is_paced(at),
        at.get("client") == "apart",
        at.get("server", _USUAL_SERVER) != _USUAL_SERVER,
        at.get("users", USUAL_USERS) != USUAL_USERS,
    )


def _cell(mix: Mix, sources: Sequence[Source], term: Term, part: Part) -> Cell | None:
    weight = term.rate_per_s * part.share * 1e-9 / mix.utilisation
    percent = round(100 * mix.utilisation)
    found = [(source, rows[0]) for source in sources if (rows := _rows(source, term, part, percent))]
    source, row = min(found, key=lambda one: not _is_as_meant(one[1], percent), default=(None, None))
    return Cell(source, row, weight) if source and row else None


def _nearest(sources: Sequence[Source], term: Term, part: Part) -> str:
    """Return why a cell has no cost: its own failure, or else the differences of the nearest measured row, in words."""
    rows = [
        (_differences(source, term, part, row), source.ledger.why_unmeasured(row))
        for source in sources
        if source.study_run.study.family.name == term.family.name
        for row in source.study_run.rows
    ]
    failure = next((why for differing, why in rows if not differing and why is not None), None)
    if failure is not None:
        return f"its measurement failed: {failure}"
    found = [differing for differing, why in rows if why is None]
    if not found:
        return f"no run here has the family {term.family.name}" if sources else "no run is named"
    differing = min(found, key=len)
    return "the nearest that was measured has " + ", ".join(
        f"`{name}={has}` for `{wanted}`" for name, (has, wanted) in differing.items()
    )


def _sized(mix: Mix, term: Term, cells: Sequence[Cell], today: date) -> SizedTerm:
    cores = summed(cells)
    if cores.estimate <= 0:
        what = "the cost without `off` must be greater than 0"
        hint = "measure both in one question and for longer, for example `--for 40s`"
        raise TollbarError(what, where=f"{mix.path}: term.{term.name}", hint=hint)
    wanted = _wanted(mix.policies, term, today)
    judged = candidate(wanted, cells[0].row.coordinates)
    found = in_order(swaps(wanted, term, cells))
    percent = round(100 * mix.utilisation)
    is_at_load = not term.is_asked or all(_is_as_meant(cell.row, percent) for cell in cells)
    return SizedTerm(term, tuple(cells), cores, judged, _memory(term, cells[0]), found, is_at_load)


def _wanted(asked: Sequence[Policy], term: Term, today: date) -> Wanted:
    about = tuple(one for one in asked if one.is_about(term.family.name))
    return Wanted(term.family, about, {}, today, today)


def _memory(term: Term, cell: Cell) -> float | None:
    """Return the memory of all operations under way; None for a server, whose memory per operation is not known."""
    if term.is_served:
        return None
    each = [float(trial.memory_bytes) for trial in cell.row.trials if trial.memory_bytes]
    if not each:
        return None
    at_once = term.at_once
    if at_once is None:
        wall = cell.source.ledger.value(cell.row, Quantity("wall"))
        # Little's law: as many are under way as arrive while one takes.
        at_once = term.rate_per_s * wall[0] * 1e-9 if wall else None
    return None if at_once is None else median(each) * max(1.0, at_once)
