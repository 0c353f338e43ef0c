"""Ways: what a reader may choose between in one place of a study, the cheapest first.

A place is what a reader is given (an operation, a size, a server, a processor), a way what a reader chooses there
(a choice, and the settings that come with it). Costs of different places are no alternatives to one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar.families import Standing, Value
from tollbar.judge import Measurement, StudyJudgement, Verdict
from tollbar.present.cells import at_one_load, at_spot, by_row, cost_metric, covers, is_baseline, spot, varying
from tollbar.present.charts import IN_GOOD_STANDING
from tollbar.present.pairs import Pairs
from tollbar.present.words import LOADS
from tollbar.results import Row

# What a reader has, whatever there is to choose.
GIVEN = ("op", "bed", "cpu", "transport")


@dataclass(frozen=True, slots=True)
class Way:
    """One cell that was measured, as something to choose."""

    row: Row
    cost: float
    """Nanoseconds per operation, undisturbed."""

    @property
    def is_good(self) -> bool:
        """Whether it is recommended or acceptable."""
        return self.row.standing in IN_GOOD_STANDING


@dataclass(frozen=True, slots=True)
class Place:
    """The ways that are alternatives to one another."""

    at: Mapping[str, Value]
    """The coordinates that they share, of those in which the study's places differ."""
    ways: Sequence[Way]
    """The cheapest first. The null choice is none of them."""
    null: Way | None
    """The same without any protection."""
    is_of_one_choice: bool = False
    """Whether the study asks who performs each choice best, so that a choice is what a reader has."""

    @property
    def good(self) -> list[Way]:
        """Those that are recommended or acceptable; all, where they are one choice that a reader has anyway."""
        return [way for way in self.ways if way.is_good or self.is_of_one_choice]

    @property
    def others(self) -> list[Way]:
        """Those that are deprecated or worse."""
        return [way for way in self.ways if not (way.is_good or self.is_of_one_choice)]


def is_of_one_standing(study: StudyJudgement) -> bool:
    """Whether all choices protect alike, so that the study is about the way of calling one and the same."""
    return len({row.standing for row in study.rows if row.standing is not Standing.NULL}) == 1


def options(study: StudyJudgement) -> list[str]:
    """The coordinates that a reader chooses: those that a cell need not share with its baseline.

    Which library performs a choice is a place, and so is what baselines differ in; unless all choices protect
    alike: then the study is about the ways of having one and the same, and nearly all is one of them.
    """
    rows = study.rows
    settings = study.about.family.settings
    by_key = {row.key: row for row in rows}
    shared = set(varying(by_key[key] for key in dict.fromkeys(r.against for r in rows) if key in by_key))
    if is_of_one_standing(study):
        shared = {n for n in shared if n in GIVEN or (n in settings and settings[n].is_size)}
    # A baseline that names no choice asks something else than which one to take.
    chosen = (set(study.about.baseline) or {"choice"}) | study.about.family.parameters
    return [n for n in varying(rows) if n not in ("op", *LOADS) and (n in chosen or n not in shared)]


def naming(study: StudyJudgement, chosen: Sequence[str]) -> list[str]:
    """What tells ways apart by name: not the library, where the rest of what protects says it already."""
    rest = [name for name in chosen if name != "provider"]
    by_rest: dict[tuple[Value | None, ...], set[Value | None]] = {}
    for row in study.rows:
        if row.standing is not Standing.NULL:
            by_rest.setdefault(spot(row, rest), set()).add(row.coordinates.get("provider"))
    return rest if rest and all(len(found) == 1 for found in by_rest.values()) else list(chosen)


def places(study: StudyJudgement, pairs: Pairs) -> list[Place]:
    """Every place in which something was measured, in the study's order, at the highest load that all cells have."""
    study = at_one_load(study).study
    cost = by_row(study, cost_metric(study))
    chosen = options(study)
    given = [n for n in varying(study.rows) if n not in chosen]
    measured = [row for row in study.rows if row.key in cost]
    nulls = [row for row in measured if row.standing is Standing.NULL]
    found: dict[tuple[Value | None, ...], list[Way]] = {}
    for row in measured:
        if row.standing is not Standing.NULL:
            found.setdefault(spot(row, given), []).append(_way(row, cost))
    return [
        Place(
            at=at_spot(given, where),
            ways=(ranked := _ranked(ways, pairs)),
            null=_beside([_way(row, cost) for row in nulls if covers(spot(row, given), where)], ranked),
            is_of_one_choice="choice" in given,
        )
        for where, ways in found.items()
    ]


def _way(row: Row, cost: Mapping[str, Measurement]) -> Way:
    return Way(row, cost[row.key].value)


def _beside(nulls: Sequence[Way], ranked: Sequence[Way]) -> Way | None:
    """Of the null choices in a place, the one that has most in common with what is cheapest in good standing."""
    best = next((way for way in ranked if way.is_good), ranked[0])
    return max(nulls, key=lambda null: len(null.row.coordinates.items() & best.row.coordinates.items()), default=None)


def _ranked(ways: Sequence[Way], pairs: Pairs) -> list[Way]:
    """By cost; a way that is judged to cost less than the first one stands before it, whatever the two costs say.

    A verdict rests on the two side by side and a cost on one alone, so that the two may differ by little.
    """
    ranked = sorted(ways, key=lambda way: way.cost)
    # Where the baseline is as good as the cheapest, its name is the same in every run, and the verdicts are about it.
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
