"""Groups of cells: in panels and curves, at one load, and by coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.analysis import Measurement, StudyJudgement, Toll
from tollbar.catalog.families import LOADS, Value
from tollbar.core.metrics import ALL_SAMPLES
from tollbar.report.coordinates import column_title, named_value
from tollbar.report.names import PlaceWords, varied, varying
from tollbar.report.view import once
from tollbar.results import Row

# With more rows than this in one panel, the eye loses the axis.
MOST_ROWS = 30
# With more lines than this, no legend helps.
MOST_LINES = 12
Spot = tuple[Value | None, ...]


def cost_metric(study: StudyJudgement) -> str:
    """Return the metric of the tolls."""
    return study.about.measure.cost


def all_metric(study: StudyJudgement) -> str:
    """Return the metric of the same cost over all samples."""
    return cost_metric(study) + ALL_SAMPLES


def by_row(study: StudyJudgement, metric: str) -> Mapping[str, Measurement]:
    """Return the measurements of one metric, of all components together, by the row's key."""
    return _by_metric(study).get(metric, {})


@once
def _by_metric(study: StudyJudgement) -> Mapping[str, Mapping[str, Measurement]]:
    found: dict[str, dict[str, Measurement]] = {}
    for one in study.measurements:
        if one.component is None:
            found.setdefault(one.metric, {})[one.row.key] = one
    return found


@once
def real_tolls(study: StudyJudgement) -> Sequence[Toll]:
    """Return the tolls on cost of cells that are not themselves the baseline."""
    metric = cost_metric(study)
    return [t for t in study.tolls if not is_baseline(t.row) and t.metric == metric]


def is_baseline(row: Row) -> bool:
    """Return whether other cells are compared with this one."""
    return row.against == row.key


def spot(row: Row, names: Iterable[str]) -> Spot:
    """Return a row's values of these coordinates; None for one that does not apply."""
    return tuple(row.coordinates.get(name) for name in names)


def at_spot(names: Iterable[str], where: Spot) -> dict[str, Value]:
    """Return the coordinates of a spot, without those that do not apply."""
    return {name: value for name, value in zip(names, where, strict=True) if value is not None}


def split(study: StudyJudgement, rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Return the coordinates that distinguish the rows of a panel, and those that distinguish the panels.

    Cells with one baseline are compared within a panel: along the choice, along the coordinates that the baseline
    fixes, and along those that do not apply to the baseline. A coordinate that changes a cell's baseline changes its
    panel.
    """
    fixed = study.about.baseline
    rows = list({r.key: r for r in rows}.values())
    by_key = {r.key: r for r in study.rows}
    # Costs of one operation cannot be compared with those of another.
    apart = {"op", *varying(by_key[key] for key in dict.fromkeys(r.against for r in rows) if key in by_key)}
    vary = varying(rows)
    in_rows = [n for n in vary if n == "choice" or n in fixed or n not in apart] or list(vary[:1])
    values = {n: {r.coordinates[n] for r in rows if n in r.coordinates} for n in in_rows}
    spare = sorted((n for n in in_rows if n != "choice" and n not in fixed), key=lambda n: len(values[n]))
    while spare and _largest(rows, [n for n in vary if n not in in_rows]) > MOST_ROWS:
        in_rows.remove(spare.pop())
    if "provider" in vary and "provider" not in in_rows:
        in_panels = [n for n in vary if n not in in_rows and n != "provider"]
        if _largest(rows, in_panels) <= MOST_ROWS:
            in_rows.append("provider")
    return in_rows, [n for n in vary if n not in in_rows]


def _largest(rows: Iterable[Row], names: Sequence[str]) -> int:
    return max(Counter(spot(r, names) for r in rows).values(), default=0)


def load_name(study: StudyJudgement) -> str | None:
    """Return `users` or `rate` if this study's cells differ in it."""
    return next((name for name in LOADS if name in varied(study)), None)


def without_load(row: Row) -> Mapping[str, Value]:
    """Return a cell's coordinates without the load."""
    return {name: value for name, value in row.coordinates.items() if name not in LOADS}


def by_cell(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows of each cell, which differ only in the load; least load first."""
    cells: dict[frozenset[tuple[str, Value]], list[Row]] = {}
    for row in rows:
        cells.setdefault(frozenset(without_load(row).items()), []).append(row)
    return [sorted(found, key=_load) for found in cells.values()]


def _load(row: Row) -> float:
    return float(next((row.coordinates[n] for n in LOADS if n in row.coordinates), 0))


@dataclass(frozen=True, slots=True)
class AtOneLoad:
    """Cells of a study at one load each, and the sentence that names it."""

    study: StudyJudgement
    note: str


@once
def at_one_load(study: StudyJudgement) -> AtOneLoad:
    """Return the cells at the highest load that all of them have; the study itself if there is only one.

    Uses the lowest load if the baseline fixes the client's place: the server's cost for a client on another core shows
    there.
    """
    name = load_name(study)
    if name is None:
        return AtOneLoad(study, "")
    rows = study.rows
    cells = by_cell(rows)
    pick, which = (min, "least") if "client" in study.about.baseline else (max, "most")
    common = set.intersection(*({_load(r) for r in found} for found in cells))
    family = study.about.family
    if common:
        picked = pick(common)
        chosen = [r for found in cells for r in found if _load(r) == picked]
        at = named_value(family, name, chosen[0].coordinates[name])
        note = f"At {at}, the {which} that all cells have; the full table has the others."
    else:
        chosen = [pick(found, key=_load) for found in cells]
        title = column_title(family, name)
        note = f"Each cell at the {which} {title} that it has; the full table has the others."
    kept = {r.key for r in chosen}
    return AtOneLoad(
        replace(
            study,
            study=replace(study.study, rows=tuple(r for r in rows if r.key in kept)),
            measurements=tuple(m for m in study.measurements if m.row.key in kept),
            tolls=tuple(t for t in study.tolls if t.row.key in kept),
        ),
        note,
    )


def facet_names(
    cells: Sequence[Mapping[str, Value]],
    names: Sequence[str],
    first: Sequence[str] = ("server",),
    most: int = MOST_LINES,
) -> tuple[str, ...]:
    """Return the coordinates along which to divide these cells, so that only a few are together.

    Always along those of `first`. Then, while more than `most` are together, along the one that makes the fewest panels
    that are small enough; if there is none, along the one that makes the largest panel smallest.
    """
    found = [name for name in names if name in first]
    left = [name for name in names if name not in first]

    def sizes(more: str) -> list[int]:
        return list(facet_sizes(cells, [*found, more]).values())

    while left and max(facet_sizes(cells, found).values(), default=0) > most:
        enough = [n for n in left if max(sizes(n)) <= most]
        best = min(enough, key=lambda n: len(sizes(n))) if enough else min(left, key=lambda n: max(sizes(n)))
        found.append(best)
        left.remove(best)
    return tuple(found)


def facet_sizes(cells: Sequence[Mapping[str, Value]], names: Sequence[str]) -> Mapping[Spot, int]:
    """Return the number of cells of each facet along these coordinates, in the order of first appearance.

    A cell to which a coordinate does not apply, such as a certificate without TLS, is in the facet of each value.
    """
    spots = [tuple(c.get(n) for n in names) for c in cells]
    distinct = list(dict.fromkeys(spots))
    wholes = [s for s in distinct if not any(other != s and covers(s, other) for other in distinct)]
    return {whole: sum(covers(s, whole) for s in spots) for whole in wholes}


def covers(partial: Spot, whole: Spot) -> bool:
    """Return whether two spots are equal, except for coordinates that do not apply to the first."""
    return all(a is None or a == b for a, b in zip(partial, whole, strict=True))


def panels(place: PlaceWords, rows: Iterable[Row], names: Sequence[str]) -> list[tuple[str, list[Row]]]:
    panels: dict[Spot, list[Row]] = {}
    for row in rows:
        panels.setdefault(spot(row, names), []).append(row)

    def order(where: Spot) -> list[tuple[bool, bool, float]]:
        return [(v is not None, isinstance(v, str), 0 if v is None or isinstance(v, str) else v) for v in where]

    return [(place(at_spot(names, where), names), panels[where]) for where in sorted(panels, key=order)]


# A password hash that is meant to use memory uses megabytes; a buffer or two is kilobytes for any choice.
MEMORY_MATTERS_BYTES = 1024**2


def memory_matters(memory: Iterable[Measurement]) -> bool:
    """Return whether memory belongs to the choice, and is not just the runner's own buffers growing by some pages."""
    return any(m.value >= MEMORY_MATTERS_BYTES for m in memory)
