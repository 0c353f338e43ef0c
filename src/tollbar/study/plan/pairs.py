"""Pairs of cells that a study compares: those of its claims and tables, and those that differ in one coordinate.

They are used to draw batches, so that such pairs are measured close together, and to judge them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from tollbar.catalog.families import Standing, Value
from tollbar.core.errors import TollbarError
from tollbar.study import Claim, Coordinates, CrossTable, Study, matches


class Placed(Protocol):
    """Planned cell, or a row of a run."""

    @property
    def coordinates(self) -> Coordinates: ...
    @property
    def standing(self) -> Standing: ...


P = TypeVar("P", bound=Placed)

MOST_PAIRS, MOST_PAIRS_OF_CELL = 1_000, 2
"""Limit of the pairs of cells that one claim, table or set of factors may compare, and as many more for each cell.

Usually each cell is compared with one. Two choices without common settings are compared in all pairs of their cells.
"""

# Choices are compared by their tolls, and comparing the costs of two operations answers no question.
NOT_CONTRASTED = ("choice", "op")


def claimed(claim: Claim, cells: Sequence[P]) -> Iterator[tuple[P, P, Mapping[str, Value]]]:
    """Yield every two cells that the claim is about, and their common coordinates beyond the claim's.

    They are equal in all that the claim does not name. A setting that does not apply to one of the two (a key size, for
    a password hash) is ignored. Nothing for a claim that compares no two.
    """
    if not claim.is_judged:
        return
    for of, over in _alike(matching(cells, claim.of), matching(cells, claim.over), {*claim.of, *claim.over}):
        # Coordinates that the claim leaves open on either side; where it leaves both open they are equal.
        at = {n: v for n, v in over.coordinates.items() if n not in claim.over}
        at |= {n: v for n, v in of.coordinates.items() if n not in claim.of}
        yield of, over, at


def tabled(table: CrossTable, cells: Sequence[P]) -> list[tuple[P, list[P]]]:
    """Return every cell of a table with the cells that it is compared with: one, in a planned table.

    The list is empty if the table prints costs, and if no cell differs only in the coordinates that the table names.
    """
    shown = [cell for cell in _within(cells, table.where) if {table.rows, table.columns} <= cell.coordinates.keys()]
    elsewhere = {name: value for name, value in table.where.items() if name not in table.over}
    overs = _within(matching(cells, table.over), elsewhere) if table.over else []
    found: dict[int, list[P]] = defaultdict(list)
    for of, over in _alike(shown, overs, table.over):
        found[id(of)].append(over)
    return [(cell, found[id(cell)]) for cell in shown]


def factored(study: Study, cells: Sequence[P]) -> list[tuple[P, ...]]:
    """Return the cells of all combinations of a study's factors, for each place where all were planned.

    In counting order: first without any, then with the first factor alone, with the second, with these two, …, and last
    with all.
    """
    if not study.factors:
        return []
    by_number: dict[int, list[P]] = defaultdict(list)
    for cell in cells:
        at = cell.coordinates
        if all(at.get(name) in levels for name, levels in study.factors.items()):
            levels = enumerate(study.factors.items())
            by_number[sum((at[name] == both[1]) << bit for bit, (name, both) in levels)].append(cell)
    whole = (1 << len(study.factors)) - 1
    groups = []
    common = _common([cell for some in by_number.values() for cell in some], study.factors)
    buckets = [_buckets(by_number[number], common) for number in range(whole)]
    lasts = _buckets(by_number[whole], common)
    _refuse_more(cells, sum(len(some.get(place, ())) * len(all_) for some in buckets for place, all_ in lasts.items()))
    for last in by_number[whole]:
        # A factor's own settings do not apply to cells without it.
        place = tuple(last.coordinates[name] for name in common)
        alike = [[one for one in some.get(place, ()) if _agree(one, last, study.factors)] for some in buckets]
        if all(len(some) == 1 for some in alike):
            groups.append((*(one for (one,) in alike), last))
    return groups


def _agree(one: Placed, other: Placed, but: Collection[str]) -> bool:
    """Return whether two cells agree in all common coordinates except these."""
    at = other.coordinates
    return all(at.get(name, value) == value for name, value in one.coordinates.items() if name not in but)


def _within(cells: Sequence[P], where: Coordinates) -> list[P]:
    """Return the cells whose coordinates have these values, as far as they have these coordinates."""
    return [
        cell
        for cell in cells
        if all(matches(cell.coordinates[n], (v,)) for n, v in where.items() if n in cell.coordinates)
    ]


def _alike(ofs: Sequence[P], overs: Sequence[P], named: Collection[str]) -> Iterator[tuple[P, P]]:
    """Yield every two of these that are equal in all coordinates that are not named."""
    common = _common((*ofs, *overs), named)
    buckets = _buckets(overs, common)
    _refuse_more([*ofs, *overs], sum(len(buckets.get(tuple(of.coordinates[n] for n in common), ())) for of in ofs))
    for of in ofs:
        for over in buckets.get(tuple(of.coordinates[name] for name in common), ()):
            if all(over.coordinates.get(n, v) == v for n, v in of.coordinates.items() if n not in named):
                yield of, over


def _common(cells: Sequence[Placed], but: Collection[str]) -> list[str]:
    """Return the coordinates that all of these cells have, except these."""
    first = cells[0].coordinates if cells else {}
    return [name for name in first if name not in but and all(name in cell.coordinates for cell in cells)]


def _buckets(cells: Sequence[P], common: Sequence[str]) -> Mapping[tuple[Value, ...], Sequence[P]]:
    """Return cells by their values of these, so that a thousand cells are not all compared with one another."""
    found: dict[tuple[Value, ...], list[P]] = defaultdict(list)
    for cell in cells:
        found[tuple(cell.coordinates[name] for name in common)].append(cell)
    return found


def _refuse_more(cells: Sequence[Placed], pairs: int) -> None:
    most = MOST_PAIRS + MOST_PAIRS_OF_CELL * len(cells)
    if pairs > most:
        what = f"a claim, a table or the factors compare {pairs:,} pairs of {len(cells):,} cells; the limit is {most:,}"
        raise TollbarError(what, hint="name the values of more settings, for example in `of`, `over` and `where`")


def matching(cells: Sequence[P], where: Coordinates) -> list[P]:
    """Return the cells whose coordinates have these values."""
    return [cell for cell in cells if all(matches(cell.coordinates.get(n), (v,)) for n, v in where.items())]


def contrasted(study: Study, cells: Sequence[P]) -> Iterator[tuple[str, P, P]]:
    """Yield every two cells that differ in one coordinate only: its name, the cell, and its reference.

    The reference has the first existing value in the study's order: each value is compared with the first, and not with
    every other. The null choice is left out, because its settings have no effect.
    """
    real = [cell for cell in cells if cell.standing is not Standing.NULL]
    for name in _names(study, real):
        order = {value: place for place, value in enumerate(values(study, name, real))}
        if len(order) < 2:
            continue
        beside: dict[frozenset[tuple[str, Value]], dict[Value, P]] = defaultdict(dict)
        for cell in real:
            if name in cell.coordinates:
                rest = frozenset(item for item in cell.coordinates.items() if item[0] != name)
                beside[rest][cell.coordinates[name]] = cell
        for by_value in beside.values():
            first, *others = sorted(by_value, key=order.__getitem__)
            yield from ((name, by_value[value], by_value[first]) for value in others)


def values(study: Study, name: str, cells: Sequence[Placed]) -> list[Value]:
    """Return the cells' values of a coordinate, in the study's order and then as they come."""
    present = dict.fromkeys(cell.coordinates[name] for cell in cells if name in cell.coordinates)
    declared = [value for value in study.vary.get(name, ()) if value in present]
    return list(dict.fromkeys([*declared, *present]))


def _names(study: Study, cells: Sequence[Placed]) -> list[str]:
    """Return the coordinates to contrast: the varied ones in the study's order, then the others as they come."""
    names = dict.fromkeys([*study.vary, *(name for cell in cells for name in cell.coordinates)])
    settings = study.family.settings
    # More bytes obviously cost more, and each choice's curve over sizes reports how much.
    sizes = {name for name in names if name in settings and settings[name].is_size}
    return [name for name in names if name not in NOT_CONTRASTED and name not in sizes]
