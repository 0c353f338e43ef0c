"""Names of a study's cells for progress lines, proofs and messages: the coordinates that distinguish each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tollbar.catalog.families import Family
from tollbar.catalog.libraries import Provider
from tollbar.study import Coordinates, Study

# Their values are names by themselves; a setting's value, such as `0` or `off`, is not.
_WITHOUT_NAME = ("choice", "server", "op")


class Planned(Protocol):
    """Planned cell."""

    @property
    def key(self) -> str: ...
    @property
    def coordinates(self) -> Coordinates: ...
    @property
    def provider(self) -> Provider: ...


def labels(study: Study, cells: Sequence[Planned]) -> Mapping[str, str]:
    """Return a name for each cell of the study, by its key: `form · store=ldap · groups=50`.

    It has the coordinates in which two of the cells differ, as words of `tollbar ask`.
    """
    names = ["choice", *_differing(cells)]
    return {
        cell.key: " · ".join(_words(study.family, cell, name) for name in names if name in cell.coordinates)
        for cell in cells
    }


def _differing(cells: Sequence[Planned]) -> Iterator[str]:
    """Yield the coordinates in which cells differ: by their values, or because only some cells of a choice have one."""
    by_choice: dict[object, list[Coordinates]] = {}
    for cell in cells:
        by_choice.setdefault(cell.coordinates["choice"], []).append(cell.coordinates)
    for name in dict.fromkeys(name for cell in cells for name in cell.coordinates if name != "choice"):
        values = {cell.coordinates[name] for cell in cells if name in cell.coordinates}
        counts = ((sum(name in one for one in same), len(same)) for same in by_choice.values())
        if len(values) > 1 or any(0 < having < all_ for having, all_ in counts):
            yield name


def _words(family: Family, cell: Planned, name: str) -> str:
    if name == "provider":
        return cell.provider.name
    words = family.typed(name, cell.coordinates[name])
    return words if name in _WITHOUT_NAME else f"{name}={words}"
