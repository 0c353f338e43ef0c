"""Material of a study's answer: its places and findings, and the comparison of one way with another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tollbar.analysis import StudyJudgement, Toll, Verdict
from tollbar.catalog.families import Value
from tollbar.report.costs import cost_words
from tollbar.report.names import labels, on_one_core, place_words, where_words
from tollbar.report.numbers import amount, marked, percent
from tollbar.report.sections.steps import Steps, times_words
from tollbar.report.view import once
from tollbar.report.ways import Place, is_of_one_standing, options, pairs_of, places, told_by
from tollbar.results import Row

# Findings for which the headline of a page has room; the answer below it has more.
MOST_IN_HEADLINE = 2

# Above this, next to nothing is done without protection, and a multiple of that tells nothing.
MOST_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Finding:
    """Answer, with the places where it holds."""

    first: str | None
    """Name of the answer there; None if no way is recommended or acceptable."""
    places: tuple[Place, ...]

    @property
    def operation(self) -> Value | None:
        """Operation of its places; None if the study has one operation only."""
        return self.places[0].at.get("op")


class Telling(Steps):
    """Names, places and pairs of one study, from which its sentences are made."""

    def __init__(self, study: StudyJudgement) -> None:
        self.study = study
        self.pairs = pairs_of(study)
        self.places = places(study)
        is_of_one_choice = any(place.is_of_one_choice for place in self.places)
        chosen = options(study)
        super().__init__(
            study.about.family,
            study.about.threshold,
            study.rows,
            chosen,
            labels(study, told_by(study, chosen), whole=True),
            is_of_one_choice=is_of_one_choice,
            of_one_standing=is_of_one_choice or is_of_one_standing(study),
        )
        # An answer rests on its comparisons with all other recommended or acceptable ways of its place, of which the
        # sentences name a few: their intervals hold jointly.
        self._rests_on = {
            p.answer.row.key: max(len(p.good) - 1 + (p.null is not None), 1) for p in self.places if p.answer
        }
        self.cpu = cost_words(study).cpu
        self.place = place_words(study)
        self.is_of_many_choices = self.is_of_one_choice and len(self.places) > MOST_IN_HEADLINE
        operations = {row.coordinates.get("op") for row in study.rows}
        self.only_operation = operations.pop() if len(operations) == 1 else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Places grouped by their operation and by their answer, in the study's order.

        The place of a group with most approved choices comes first, because sentences and charts are about it.
        """
        found: dict[tuple[Value | None, str | None], list[Place]] = {}
        for place in self.places:
            name = self.label(place.answer.row) if place.answer else None
            found.setdefault((place.at.get("op"), name), []).append(place)
        # Operations stay together; in each, answers before none, and those of most places first.
        operations = list(dict.fromkeys(operation for operation, _ in found))
        ordered = sorted(found.items(), key=lambda f: (operations.index(f[0][0]), f[0][1] is None, -len(f[1])))
        return tuple(Finding(name, tuple(sorted(at, key=lambda place: -len(place.good)))) for (_, name), at in ordered)

    def pair(self, row: Row, best: Row) -> Toll | None:
        return self.pairs.of(row, best, self._rests_on.get(best.key, 1))

    def differing(self, differ: Mapping[str, Value]) -> str:
        on = {n: (v,) for n, v in differ.items() if n in ("server", "provider")}
        set_to = self.place(differ, [n for n in differ if n not in on])
        where = where_words(self.study, on) + on_one_core(self.study, on)
        return ", ".join(filter(None, (where, f"with {set_to}" if set_to else "")))

    def head(self, place: Place) -> str:
        """Return the name of the place, if there are several: `encrypt, at 4 KiB, on openssl 3.0.19`."""
        at = {name: (value,) for name, value in place.at.items() if name != "op"}
        return ", ".join(filter(None, (str(place.at.get("op", "")), where_words(self.study, at))))

    def protection(self, place: Place) -> list[str]:
        """Return the cost without any protection, and so that of protection."""
        null, best = place.null, place.answer
        if null is None:
            return []
        without = f"without protection ({self.label(null.row)}) the cost is {null.words}"
        pair = self.pairs.of(best.row, null.row, self._rests_on.get(best.row.key, 1)) if best else None
        if best is None or pair is None:
            return [without]
        apart = marked(amount(best.cost - null.cost), best.is_noisy or null.is_noisy)
        costs = apart if best.cost > null.cost else "something"
        is_multiple = pair.ratio is not None and pair.ratio.estimate <= MOST_TIMES
        said = {
            Verdict.COSTS: f"protection costs {costs}{times_words(pair) if is_multiple else ''}",
            Verdict.FREE: f"protection is free within {percent(self.threshold)}",
            Verdict.UNCLEAR: "this run cannot distinguish the cost of protection from zero",
            Verdict.SAVES: f"protection costs nothing{times_words(pair)}",
        }[pair.verdict]
        return [f"{said}: {without}"]


@once
def telling_of(study: StudyJudgement) -> Telling:
    """Return the study's telling, made once."""
    return Telling(study)
