"""Break-even points: the share of hits from which a cache, whose misses cost more, pays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tollbar.analysis.ledger import Ledger
from tollbar.analysis.verdicts import Toll
from tollbar.catalog.families import Family, Value
from tollbar.core.intervals import Interval
from tollbar.results import Row


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Share of hits from which a cache costs less than working without it."""

    setting: str
    row: Row
    """Cell without the cache."""
    line: tuple[Row, ...]
    """Cells with the cache, at several shares."""
    tolls: tuple[Toll, ...]
    """Tolls of these cells against `row`, the least share first."""
    at: Interval | None
    """Share in the setting's unit, at which both cost the same; None if the cost does not fall with the share.

    Outside the possible values if the cache never pays, or always. None, too, if no block has all of these cells.
    """


def break_evens(ledger: Ledger, family: Family) -> tuple[BreakEven, ...]:
    """Return one result for each cell without a cache (`breaks_even_with`) and each line of cells compared with it."""
    return tuple(
        BreakEven(
            name,
            row,
            line,
            tuple(ledger.compare(one, row) for one in line),
            ledger.crossing([float(one.coordinates[name]) for one in line], line, row),
        )
        for name, setting in family.settings.items()
        if setting.breaks_even_with
        for row, line in _lines(ledger, name, dict(setting.breaks_even_with))
    )


def _lines(ledger: Ledger, name: str, without: dict[str, object]) -> Iterator[tuple[Row, tuple[Row, ...]]]:
    """Yield each measured cell without the cache, with each line of comparable cells that have it.

    The cells of a line differ from the cell only in the values of `without`, and from each other only in the setting.
    """
    rows = [row for row in ledger.rows if ledger.why_unmeasured(row) is None]
    cached = [row for row in rows if name in row.coordinates]
    # Cells with the cache by their values of the names of a cell without it: few cells have other names than the rest.
    by_names: dict[tuple[str, ...], dict[tuple[Value | None, ...], list[Row]]] = {}
    for row in rows:
        if any(row.coordinates.get(other) != value for other, value in without.items()):
            continue
        names = tuple(other for other in row.coordinates if other not in without)
        if names not in by_names:
            by_names[names] = defaultdict(list)
            for one in cached:
                by_names[names][tuple(one.coordinates.get(other) for other in names)].append(one)
        lines: dict[frozenset[tuple[str, object]], list[Row]] = {}
        for one in by_names[names].get(tuple(row.coordinates[other] for other in names), ()):
            own = frozenset((n, v) for n, v in one.coordinates.items() if n not in row.coordinates and n != name)
            lines.setdefault(own, []).append(one)
        ordered = (sorted(line, key=lambda one: float(one.coordinates[name])) for line in lines.values())
        yield from ((row, tuple(line)) for line in ordered if len(line) > 1)
