"""Supported alternatives to an unsupported cell: the first value of one setting that its provider supports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from tollbar.catalog import families
from tollbar.catalog.families import OF_A_LOAD, Standing, Value, at_defaults
from tollbar.catalog.families.standing import WORST_FIRST
from tollbar.core.records import Outcome, Proven
from tollbar.lab import workloads
from tollbar.study.plan.cells import Cell, key_of


def settings_instead(cell: Cell) -> Iterator[tuple[str, Value, Cell]]:
    """Yield each other value of one setting of a cell, best standing first, with the resulting cell.

    Sizes and free numbers are not changed, because no provider depends on them.
    """
    family = families.family(cell.family)
    found: list[tuple[str, Value, Mapping[str, Value], Standing]] = []
    for name, setting in family.settings.items():
        if name not in cell.coordinates or setting.is_size:
            continue
        for value in setting.values or ():
            at = _complete(cell, {**cell.coordinates, name: value})
            if value == cell.coordinates[name] or family.why_unsupported(at) or family.contradiction(at):
                continue
            found.append((name, value, at, family.standing_of(at)))
    # The null choice has one standing in all of its cells.
    ranks = {standing: -rank for rank, standing in enumerate(WORST_FIRST)}
    for name, value, at, standing in sorted(found, key=lambda one: ranks.get(one[3], 0)):
        yield name, value, replace(cell, coordinates=at, standing=standing)


def _complete(cell: Cell, given: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the coordinates of a cell with another value of one setting, on which other settings may depend."""
    load = {name: value for name, value in given.items() if name in OF_A_LOAD}
    at = at_defaults(families.family(cell.family), {name: one for name, one in given.items() if name not in load})
    return {**at, **load}


class Instead:
    """Advice on supported settings for unsupported cells, each found once by trying."""

    def __init__(self, planned: Collection[tuple[str, str]], prove: Callable[[Cell], Proven]) -> None:
        self._planned = planned
        """Cells of the run by study and key: cells that are measured anyway are not advised."""
        self._prove = prove
        self._found: dict[str, tuple[str, Value] | None] = {}

    def advised(self, cell: Cell, proven: Proven) -> Proven:
        """Return the proof; the reason of an unsupported one ends with a setting that its provider supports.

        For a cell behind a server the family names the values, because each try would start a server.
        """
        if proven.outcome is not Outcome.UNSUPPORTED or not proven.reason or not _is_offered(cell):
            return proven
        if workloads.of(cell).needs_sandbox(cell):
            return proven
        if families.family(cell.family).why_unsupported(cell.coordinates) is not None:
            # The family itself names the values.
            return proven
        sizes = {name for name, one in families.family(cell.family).settings.items() if one.is_number}
        place = key_of({name: value for name, value in cell.coordinates.items() if name not in {*sizes, *OF_A_LOAD}})
        if place not in self._found:
            self._found[place] = self._first(cell)
        if (found := self._found[place]) is None:
            return proven
        words = "`{}={}`".format(*found)
        return replace(proven, reason=f"{proven.reason}; ask with {words}")

    def _first(self, cell: Cell) -> tuple[str, Value] | None:
        for name, value, other in settings_instead(cell):
            if self._prove(other).outcome is Outcome.OK:
                return None if (cell.study, other.key) in self._planned else (name, value)
        return None


def _is_offered(cell: Cell) -> bool:
    """Return whether the provider is usable and offers the choice at all."""
    offers = cell.provider.receipt.get("offers", {}).get(cell.family)
    algorithm = str(cell.choice.setting.get("algorithm", cell.choice.name))
    return cell.provider.fault is None and (offers is None or algorithm in offers or cell.choice.name in offers)
