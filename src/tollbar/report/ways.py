"""Places and ways: cells as alternatives to one another.

A place is given to a reader (an operation, a size, a server, a processor); a way is chosen there (a choice, and the
settings that come with it). Costs of different places are not alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.analysis import Compared, Measurement, StudyJudgement, Verdict
from tollbar.catalog.families import LOADS, Family, Standing, Value, default_cell, given_up, is_default
from tollbar.report.groups import Spot, at_one_load, at_spot, by_row, cost_metric, covers, is_baseline, spot
from tollbar.report.names import varied, varying
from tollbar.report.numbers import amount, marked
from tollbar.report.standings import IN_GOOD_STANDING, STANDINGS
from tollbar.report.view import once
from tollbar.results import Row

# Given by the reader's situation, never part of the choice.
GIVEN = ("op", "server", "threads", "cpu", "transport")


@dataclass(frozen=True, slots=True)
class Way:
    """Measured cell, as an alternative."""

    row: Row
    cost: float
    """Nanoseconds per operation."""
    is_noisy: bool = False
    """True if the cost is of all samples."""

    @property
    def words(self) -> str:
        """Cost in words, marked if it is noisy."""
        return marked(amount(self.cost), self.is_noisy)

    @property
    def is_good(self) -> bool:
        """True if it is recommended or acceptable."""
        return self.row.standing in IN_GOOD_STANDING


@dataclass(frozen=True, slots=True)
class Place:
    """Ways that are alternatives to one another."""

    at: Mapping[str, Value]
    """Coordinates that the ways share, among those in which the study's places differ."""
    ways: Sequence[Way]
    """Ways that are options, the cheapest first."""
    null: Way | None
    """Way without any protection."""
    is_of_one_choice: bool = False
    """True if the study compares performers of each choice, so that the choice is given."""
    answer: Way | None = None
    """Way to take; None if no way is recommended or acceptable.

    The family's default, or else the way that gives up the fewest of its threats, in the best standing, at the least
    cost.
    """
    default: Mapping[str, Value] | None = None
    """Default of the family in this place, if it is not the answer; None: it is, or the family names none."""
    gives_up: tuple[str, ...] = ()
    """Threats that the family's default mitigates further than the answer."""

    @property
    def good(self) -> list[Way]:
        """Ways that are recommended or acceptable; all ways if the choice is given."""
        return [way for way in self.ways if way.is_good or self.is_of_one_choice]

    @property
    def others(self) -> list[Way]:
        """Ways that are deprecated or worse."""
        return [way for way in self.ways if not (way.is_good or self.is_of_one_choice)]


def is_of_one_standing(study: StudyJudgement) -> bool:
    """Return whether all choices have one standing, so that the study compares ways of calling one and the same."""
    return len({row.standing for row in study.rows if row.standing.is_of_option}) == 1


@once
def options(study: StudyJudgement) -> Sequence[str]:
    """Return the coordinates that a reader chooses: those that a cell need not share with its baseline.

    The library that performs a choice belongs to the place, like the coordinates in which baselines differ. If all
    choices have one standing, the study compares ways of having one and the same, and nearly every coordinate is
    chosen.
    """
    rows = study.rows
    settings = study.about.family.settings
    by_key = {row.key: row for row in rows}
    shared = set(varying(by_key[key] for key in dict.fromkeys(r.against for r in rows) if key in by_key))
    if is_of_one_standing(study):
        shared = {n for n in shared if n in GIVEN or (n in settings and settings[n].is_size)}
    # A baseline without a choice asks another question than which choice to take.
    chosen = (set(study.about.baseline) or {"choice"}) | study.about.family.parameters
    return [n for n in varying(rows) if n not in ("op", *LOADS) and (n in chosen or n not in shared)]


def told_by(study: StudyJudgement, chosen: Sequence[str]) -> list[str]:
    """Return the coordinates that name ways: without the library, if the choice or the server implies it.

    A setting may imply it too, such as the call that only one library has, but a reader does not know that.
    """
    names = [name for name in chosen if name in ("choice", "server")]
    libraries: dict[Spot, set[Value | None]] = {}
    for row in study.rows:
        if row.standing.is_of_option:
            libraries.setdefault(spot(row, names), set()).add(row.coordinates.get("provider"))
    is_implied = bool(names) and all(len(found) == 1 for found in libraries.values())
    return [name for name in chosen if name != "provider"] if is_implied else list(chosen)


@once
def pairs_of(study: StudyJudgement) -> Compared:
    """Return the comparisons of any two cells of the study."""
    return Compared(study)


@once
def places(study: StudyJudgement) -> Sequence[Place]:
    """Return every place with a measured cell, in the study's order, at the highest load that all cells have."""
    pairs, study = pairs_of(study), at_one_load(study).study
    cost = by_row(study, cost_metric(study))
    chosen = options(study)
    given = [n for n in varied(study) if n not in chosen]
    measured = [row for row in study.rows if row.key in cost]
    nulls = [row for row in measured if row.standing is Standing.NULL]
    found: dict[tuple[Value | None, ...], list[Way]] = {}
    for row in measured:
        if row.standing.is_of_option:
            found.setdefault(spot(row, given), []).append(_way(row, cost))
    for ways in found.values():
        ways.sort(key=lambda way: way.cost)
    pairs.expect((way.row, ways[0].row) for ways in found.values() for way in ways[1:])
    return [
        answered(
            Place(at_spot(given, where), _ranked(ways, pairs), None, is_of_one_choice="choice" in given),
            study.about.family,
            [_way(row, cost) for row in nulls if covers(spot(row, given), where)],
        )
        for where, ways in found.items()
    ]


def answered(place: Place, family: Family, nulls: Sequence[Way]) -> Place:
    """Return the place with its answer, and the null choice that shares most coordinates with it."""
    default = family.default
    null = _beside(nulls, next(iter(place.good), place.ways[0]))
    known = [way for way in place.good if way.row.choice in family.choices]
    if default is None or not known:
        return replace(place, answer=next(iter(place.good), None), null=null)
    names = set(varying([way.row for way in place.ways]))
    here = default_cell(family, known[0].row.coordinates, names)
    answer = next((way for way in known if is_default(family, way.row.coordinates, names)), None)
    answer = answer or min(known, key=lambda way: (len(given_up(family, way.row.coordinates, here)), _rank(way)))
    deciding = of_default(family) - ({"choice"} if place.is_of_one_choice else set())
    wholly = default_cell(family, answer.row.coordinates, deciding)
    if "://" in (answer.row.server or ""):
        # On a server of the user, omitted settings are unknown and give nothing up.
        return replace(place, answer=answer, null=_beside(nulls, answer))
    return replace(
        place,
        answer=answer,
        null=_beside(nulls, answer),
        default=None if is_default(family, answer.row.coordinates, deciding) else wholly,
        gives_up=given_up(family, answer.row.coordinates, wholly),
    )


def of_default(family: Family) -> set[str]:
    """Return the coordinates in which a cell must be its family's default: the choice, and settings that protect."""
    own = family.default.setting if family.default else {}
    return {"choice", *(name for name, one in family.settings.items() if one.about or name in own)}


def _rank(way: Way) -> int:
    """Return the place of a way's standing, the best first. If several are equal, `min` takes the cheapest."""
    return STANDINGS.index(way.row.standing)


def _way(row: Row, cost: Mapping[str, Measurement]) -> Way:
    return Way(row, cost[row.key].value, cost[row.key].is_noisy)


def _beside(nulls: Sequence[Way], best: Way) -> Way | None:
    """Return the null choice of a place that shares most coordinates with the answer."""
    return max(nulls, key=lambda null: len(null.row.coordinates.items() & best.row.coordinates.items()), default=None)


def _ranked(ways: Sequence[Way], pairs: Compared) -> list[Way]:
    """Return ways that are sorted by cost; one that is judged to cost less than the first one precedes it.

    A verdict rests on a comparison and a cost on one cell alone, so that the two may differ a little.
    """
    ranked = [*ways]
    # If the baseline is as good as the cheapest, it comes first: its name is the same in every run, and the verdicts
    # are about it.
    for way in ranked[1:]:
        pair = pairs.of(way.row, ranked[0].row)
        if is_baseline(way.row) and way.is_good and pair is not None and pair.verdict is Verdict.FREE:
            ranked.remove(way)
            ranked.insert(0, way)
            break
    for way in list(ranked[1:]):
        pair = pairs.of(way.row, ranked[0].row)
        if pair is not None and pair.verdict is Verdict.SAVES:
            ranked.remove(way)
            ranked.insert(0, way)
    return ranked
