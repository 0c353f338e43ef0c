"""Places of a run's rows: those that one choice is between, since they share all that decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from tollbar.catalog.families import Value
from tollbar.decide.rulings import Coordinates, Wanted, turned_on
from tollbar.results import Row


def by_place(wanted: Wanted, rows: Sequence[Row]) -> list[tuple[Coordinates, list[Row]]]:
    """Return the rows by place: one operation, server, load, and value of each setting that decides nothing.

    A row without such a setting, such as padding for a signature by a curve, is in the place of each value. Rows whose
    work is done elsewhere, such as the hash of a signed message, are not compared with rows that do it.
    """
    settings = wanted.family.settings
    of_standing = {name for name, setting in settings.items() if setting.about and not setting.how}
    deciding = {"choice", *wanted.family.parameters, *of_standing, *turned_on(wanted)} - {"op", "server"}
    names = [name for name in dict.fromkeys(name for row in rows for name in row.coordinates) if name not in deciding]
    apart: dict[tuple[tuple[str, Value], ...], list[Row]] = {(): []}
    for row in rows:
        at = row.coordinates
        apart.setdefault(tuple((n, at[n]) for n in settings if wanted.family.done_elsewhere(n, at)), []).append(row)
    places = [some for some in apart.values() if some]
    # Rows without a server or a load are another place; the provider comes last because it is judged within one place.
    for name in sorted(names, key=lambda one: (one in settings, one == "provider")):
        places = [part for place in places for part in _parts(place, name, is_setting=name in settings)]
    # Shared coordinates belong to the place, whether they decide something or not.
    names = [*dict.fromkeys((*names, "provider", *(name for elsewhere in apart for name, _ in elsewhere)))]
    differ = [name for name in names if len({row.coordinates[name] for row in rows if name in row.coordinates}) > 1]
    return [(_common(place, names, differ), place) for place in places if place]


def _parts(rows: list[Row], name: str, *, is_setting: bool) -> Iterator[list[Row]]:
    """Yield the rows by their values of one coordinate; rows without a setting are in every part."""
    values = dict.fromkeys(row.coordinates.get(name) for row in rows if not is_setting or name in row.coordinates)
    if len(values) < 2 or (name == "provider" and _is_each_by_one(rows)):
        yield rows
        return
    for value in values:
        yield [row for row in rows if row.coordinates.get(name, value if is_setting else None) == value]


def _is_each_by_one(rows: Iterable[Row]) -> bool:
    """Return true if each choice has only one provider: a second provider is then no second place."""
    return len({(row.choice, row.coordinates["provider"]) for row in rows}) == len({row.choice for row in rows})


def _common(rows: Sequence[Row], names: Iterable[str], differ: Collection[str]) -> Coordinates:
    """Return the coordinates that these rows share and that distinguish their place from others."""
    found: dict[str, Value] = {}
    for name in names:
        values = [row.coordinates[name] for row in rows if name in row.coordinates]
        if len(set(values)) == 1 and (name in differ or len(values) == len(rows)):
            found[name] = values[0]
    return found
