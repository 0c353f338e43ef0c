"""Cells: what each is called, and which stand side by side in a panel, a table or a curve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.families import Value
from tollbar.judge import Measurement, StudyJudgement, Toll
from tollbar.metrics import TYPICAL
from tollbar.present import words
from tollbar.present.words import LOADS
from tollbar.results import Row

# More rows than this in one panel and the eye loses the axis.
MOST_ROWS = 30
# More lines than this and no legend helps.
MOST_LINES = 12

# What this share of the cells have alike is said once, and not in every name.
PREVAILS = 0.8

# Coordinates that rows show with a version.
VERSIONED = ("bed", "provider")

Spot = tuple[Value | None, ...]
Place = Callable[[Mapping[str, Value], Iterable[str]], str]
"""Writes coordinates in words, along the names given."""


def cost_metric(study: StudyJudgement) -> str:
    """The metric that the tolls are about."""
    return study.about.measure.cost


def typical_metric(study: StudyJudgement) -> str:
    """The metric of the same cost as disturbed by whatever else the machine did."""
    return cost_metric(study) + TYPICAL


def by_row(study: StudyJudgement, metric: str) -> dict[str, Measurement]:
    """The measurements of one metric, of all components together, by the row's key."""
    return {m.row.key: m for m in study.measurements if m.metric == metric and m.component is None}


def real_tolls(study: StudyJudgement) -> list[Toll]:
    """The tolls on cost of cells that are not themselves the baseline."""
    metric = cost_metric(study)
    return [t for t in study.tolls if not is_baseline(t.row) and t.metric == metric]


def is_baseline(row: Row) -> bool:
    """Whether other cells are compared with this one."""
    return row.against == row.key


def baseline_words(study: StudyJudgement) -> str:
    """What the tolls are against, as the study names it: `SHA-256`, `RSA-2048 · padding pss`."""
    baseline = study.about.baseline
    named = {name: study.study.named(name, value) for name, value in baseline.items()}
    return words.place(study.about.family, named, baseline) or "the baseline"


def varying(rows: Iterable[Row], always: Sequence[str] = ()) -> tuple[str, ...]:
    """The coordinates with more than one value among these rows: choice, server and provider first, then the rest.

    Those of `always` that any row has stand among them, whatever their values.
    """
    values: dict[str, set[Value]] = {"choice": set(), "bed": set(), "provider": set(), "op": set()}
    for row in rows:
        for name, value in row.coordinates.items():
            values.setdefault(name, set()).add(value)
    # The load comes last: rows of one cell differ in nothing else.
    ordered = [*(n for n in values if n not in LOADS), *(n for n in LOADS if n in values)]
    return tuple(name for name in ordered if len(values[name]) > (0 if name in always else 1))


def places(study: StudyJudgement) -> Place:
    """Gives each place its words, with versions of server and library: `nginx 1.22.1, openssl 3.0.19 · rsa-2048`."""
    family = study.about.family
    versioned = [
        (name, row.coordinates[name], row.shown[name])
        for row in study.rows
        for name in VERSIONED
        if name in row.coordinates
    ]
    named = {(name, value): shown for name, value, shown in versioned}

    def place(coordinates: Mapping[str, Value], names: Iterable[str]) -> str:
        shown = {name: named.get((name, value), value) for name, value in coordinates.items()}
        return words.place(family, shown, names)

    return place


def where_words(study: StudyJudgement, where: Mapping[str, Sequence[Value]], most: int = 4) -> str:
    """What some cells have in common: `at 64 B, on openssl 3.0.19`; each list cut to `most` values."""
    named = {name: [study.study.named(name, value) for value in values] for name, values in where.items()}
    return words.where_words(study.about.family, named, most)


def labels(study: StudyJudgement, names: Sequence[str], *, whole: bool = False) -> Callable[[Row], str]:
    """Gives each row its name along these coordinates: `RSA-2048`, but `RSA-2048 · padding pss`.

    Without what is as in the baseline, unless the `whole` name is wanted, and without what prevails.
    """
    place = places(study)
    silent: Mapping[str, Value] = prevailing(study) | ({} if whole else dict(study.about.baseline))

    def label(row: Row) -> str:
        said = [n for n in names if n == "choice" or n not in silent or row.coordinates.get(n) != silent[n]]
        return place(row.coordinates, said) or row.title

    return label


def whole_labels(study: StudyJudgement) -> Callable[[Row], str]:
    """Gives each row the name that tells its cell from all others of the study, whatever the load."""
    return labels(study, cell_names(study), whole=True)


def cell_names(study: StudyJudgement) -> list[str]:
    """The coordinates that tell the study's cells apart, whatever the load."""
    return [n for n in varying(study.rows) if n not in LOADS] or ["choice"]


def prevailing(study: StudyJudgement) -> dict[str, Value]:
    """The settings that nearly all cells have at their default, with that default."""
    rows = study.rows
    vary = varying(rows)
    found: dict[str, Value] = {}
    for name, setting in study.about.family.settings.items():
        values = [r.coordinates[name] for r in rows if name in r.coordinates]
        if name in vary and not setting.is_size and values.count(setting.default) > PREVAILS * len(values):
            found[name] = setting.default
    return found


def spot(row: Row, names: Iterable[str]) -> Spot:
    """Where a row stands along these coordinates; None where one means nothing there."""
    return tuple(row.coordinates.get(name) for name in names)


def at_spot(names: Iterable[str], where: Spot) -> dict[str, Value]:
    """The coordinates of a spot, without those that mean nothing there."""
    return {name: value for name, value in zip(names, where, strict=True) if value is not None}


def split(study: StudyJudgement, rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Which coordinates tell the rows of a panel apart, and which tell the panels apart.

    What has one baseline is compared within a panel: along the choice, along what the baseline fixes, and along
    what means nothing to the baseline. Whatever gives a cell another baseline gives it another panel.
    """
    fixed = study.about.baseline
    rows = list({r.key: r for r in rows}.values())
    by_key = {r.key: r for r in study.rows}
    # What one operation costs says nothing of another.
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
    """`users` or `rate`, where this study's cells differ in it."""
    return next((name for name in LOADS if name in varying(study.rows)), None)


def without_load(row: Row) -> Mapping[str, Value]:
    """A cell's coordinates but for the load."""
    return {name: value for name, value in row.coordinates.items() if name not in LOADS}


def by_cell(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each cell, which differ in nothing but the load; least load first."""
    cells: dict[frozenset[tuple[str, Value]], list[Row]] = {}
    for row in rows:
        cells.setdefault(frozenset(without_load(row).items()), []).append(row)
    return [sorted(found, key=_load) for found in cells.values()]


def _load(row: Row) -> float:
    return float(next((row.coordinates[n] for n in LOADS if n in row.coordinates), 0))


@dataclass(frozen=True, slots=True)
class AtOneLoad:
    """A study's cells at one load each, and the sentence that says which."""

    study: StudyJudgement
    note: str


def at_one_load(study: StudyJudgement) -> AtOneLoad:
    """The cells at the highest load that all of them have; the study itself where there is only one.

    What a server pays for a client on another core is seen under the lowest.
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
        at = words.named_value(family, name, chosen[0].coordinates[name])
        note = f"At {at}, the {which} that all cells have; the full table has the others."
    else:
        chosen = [pick(found, key=_load) for found in cells]
        title = words.column_title(family, name)
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
    cells: Sequence[Mapping[str, Value]], names: Sequence[str], first: Sequence[str] = ("bed",), most: int = MOST_LINES
) -> tuple[str, ...]:
    """Along which coordinates to divide these cells, so that few stand together.

    Always along the first ones. Then, as long as more than `most` stand together, along whatever makes the fewest
    panels that are small enough; where nothing does, along whatever makes the largest panel smallest.
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
    """How many cells each facet along these coordinates holds, in the order in which they are met.

    What a coordinate means nothing to, such as no TLS to a certificate, stands in the facet of each of its values.
    """
    spots = [tuple(c.get(n) for n in names) for c in cells]
    distinct = list(dict.fromkeys(spots))
    wholes = [s for s in distinct if not any(other != s and covers(s, other) for other in distinct)]
    return {whole: sum(covers(s, whole) for s in spots) for whole in wholes}


def covers(partial: Spot, whole: Spot) -> bool:
    """Whether two spots are one, but for what means nothing to the first."""
    return all(a is None or a == b for a, b in zip(partial, whole, strict=True))
