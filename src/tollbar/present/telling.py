"""What a study's answer is made from: its places and findings, and how one way stands beside another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tollbar.families import Standing, Value
from tollbar.judge import Compared, StudyJudgement, Toll, Verdict
from tollbar.present.chart import frontier
from tollbar.present.groups import Place, Way, is_of_one_standing, options, places, told_by
from tollbar.present.names import (
    cost_words,
    enumeration,
    labels,
    on_one_core,
    place_words,
    quoted,
    standing_words,
    where_words,
)
from tollbar.present.numbers import amount, percent, times
from tollbar.results import Row

# More names than this in one sentence hide the answer: then the least and the greatest speak for the rest.
MOST_NAMES = 3
# A line at the head of a page has room for so many findings; the answer below it has more.
MOST_IN_HEADLINE = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer, and the places where it holds."""

    first: str | None
    """The name of what has the least cost there in good standing; None where nothing is in good standing."""
    places: tuple[Place, ...]

    @property
    def operation(self) -> Value | None:
        """What is done there; None where the study has one operation only."""
        return self.places[0].at.get("op")


class Telling:
    """One study's names, places and pairs, from which its sentences are made."""

    def __init__(self, study: StudyJudgement) -> None:
        self.study = study
        self.pairs = Compared(study)
        self.options = options(study)
        self.places = places(study, self.pairs)
        # That one is the cheapest rests on its comparisons with all others of its place in good standing, of which the
        # sentences tell a few: they hold together.
        self._rests_on = {
            p.good[0].row.key: max(len(p.good) - 1 + (p.null is not None), 1) for p in self.places if p.good
        }
        self.cpu = cost_words(study).cpu
        self.label = labels(study, told_by(study, self.options), whole=True)
        self.place = place_words(study)
        # Where a choice is what a reader has, its standing and strength are none of the answer.
        self.is_of_one_choice = any(place.is_of_one_choice for place in self.places)
        self.is_of_many_choices = self.is_of_one_choice and len(self.places) > MOST_IN_HEADLINE
        self.of_one_standing = self.is_of_one_choice or is_of_one_standing(study)
        bits = {row.strength for row in study.rows if row.standing is not Standing.NULL}
        self.has_strengths = len(bits - {None}) > 1 and not self.is_of_one_choice
        operations = {row.coordinates.get("op") for row in study.rows}
        self.only_operation = operations.pop() if len(operations) == 1 else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The places gathered by their operation and by what has the least cost there, in the study's order."""
        found: dict[tuple[Value | None, str | None], list[Place]] = {}
        for place in self.places:
            name = self.label(place.good[0].row) if place.good else None
            found.setdefault((place.at.get("op"), name), []).append(place)
        # Operations stand together; of each, an answer before none, and what holds in most places first.
        operations = list(dict.fromkeys(operation for operation, _ in found))
        ordered = sorted(found.items(), key=lambda f: (operations.index(f[0][0]), f[0][1] is None, -len(f[1])))
        return tuple(Finding(name, tuple(at)) for (_, name), at in ordered)

    def pair(self, row: Row, best: Row) -> Toll | None:
        """What is judged of a cell against the cheapest of its place, as one of the comparisons that this rests on."""
        return self.pairs.of(row, best, self._rests_on.get(best.key, 1))

    def head(self, place: Place) -> str:
        """Which place of the study it is, where there are several: `encrypt, at 4 KiB, on openssl 3.0.19`."""
        at = {name: (value,) for name, value in place.at.items() if name != "op"}
        return ", ".join(filter(None, (str(place.at.get("op", "")), where_words(self.study, at))))

    def ranked(self, place: Place, name: str, whose: str = "") -> str:
        """How many of its place the first is the cheapest of, or which of them it is not told apart from."""
        standing = "" if self.of_one_standing else " in good standing"
        open_ = self.not_told(place)
        if len(place.good) == 1:
            return f"{whose}{name} is the only one{standing} that was measured"
        if not open_:
            return f"{whose}{name} is the cheapest of {len(place.good)}{standing}"
        least = f"{name} has the least cost, not told apart from {self._few(open_)}"
        # A baseline that is free against a lower cost comes first, and has not the least.
        lower = [way for way in open_ if way.cost < place.good[0].cost]
        if lower:
            least = f"{name} costs the same within {percent(self.study.about.worth)} as {self._few(lower)}"
        return f"{whose}of {len(place.good)}{standing} {least}"

    def not_told(self, place: Place) -> list[Way]:
        """Those in good standing that are not judged to cost more than the first one."""
        best, *rest = place.good
        judged = [(way, self.pair(way.row, best.row)) for way in rest]
        return [way for way, toll in judged if toll is None or toll.verdict is not Verdict.COSTS]

    def _few(self, ways: Sequence[Way]) -> str:
        if len(ways) > MOST_NAMES:
            return f"{len(ways)} of them"
        return enumeration([quoted(self.label(way.row)) for way in ways])

    def above(self, place: Place) -> list[Way]:
        """What costs least of each strength above that of the first, the weakest first."""
        best = place.good[0]
        if not self.has_strengths or best.row.strength is None:
            return []
        found = {(way.row.strength, way.cost): way for way in reversed(place.good) if way.row.strength is not None}
        above = [found[step] for step in frontier([(bits, cost) for bits, cost in found if bits is not None])]
        return [way for way in above if (way.row.strength or 0) > best.row.strength]

    def protection(self, place: Place) -> list[str]:
        """What there is without any protection, and so what protection costs."""
        null, best = place.null, next(iter(place.good), None)
        if null is None:
            return []
        without = f"without any ({self.label(null.row)}) it is {amount(null.cost)}"
        pair = self.pairs.of(best.row, null.row, self._rests_on.get(best.row.key, 1)) if best else None
        if best is None or pair is None:
            return [without]
        costs = f"{amount(best.cost - null.cost)} of it" if best.cost > null.cost else "something"
        said = {
            Verdict.COSTS: f"protection costs {costs}{times_words(pair)}",
            Verdict.FREE: f"protection is free within {percent(self.study.about.worth)}",
            Verdict.UNCLEAR: "whether protection costs anything, the run cannot tell",
            Verdict.SAVES: f"protection costs nothing{times_words(pair)}",
        }[pair.verdict]
        return [f"{said}: {without}"]

    def compared(self, way: Way, best: Way | None) -> str:
        """`ChaCha20-Poly1305 costs 2 µs more (× 1.24)`; with x25519mlkem768 it costs …`."""
        it = "it " if best is not None and way.row.choice == best.row.choice else ""
        return f"{self._named(way, best)} {it}{self._beside(way, best)}"

    def highest(self, way: Way, best: Way | None) -> str:
        """The same of the last way of a place, and whether its cost is the highest there."""
        highest = ", the highest cost measured" if best is None or way.cost >= best.cost else ""
        return f"{self.compared(way, best)}{highest}"

    def _beside(self, way: Way, best: Way | None) -> str:
        """What is judged of one beside the best; its cost alone where nothing is."""
        takes = f"takes {amount(way.cost)}"
        pair = self.pair(way.row, best.row) if best else None
        if best is None or pair is None:
            return takes
        would = "costs" if self._is_good(way) else "would cost"
        apart = abs(way.cost - best.cost)
        # Two costs by themselves may contradict the two side by side; then the ratio speaks alone.
        fits = (way.cost > best.cost) is (pair.verdict is Verdict.COSTS)
        return {
            Verdict.COSTS: f"{would} {f'{amount(apart)} ' if fits else ''}more{times_words(pair)}",
            Verdict.SAVES: (f"would save {amount(apart)}" if fits else f"{would} less") + times_words(pair),
            Verdict.FREE: f"{would} the same within {percent(self.study.about.worth)}",
            Verdict.UNCLEAR: f"{takes} (the run cannot tell whether that is more)",
        }[pair.verdict]

    def _named(self, way: Way, best: Way | None) -> str:
        """By what tells it from the best one where both are of one choice; its standing where it is not good."""
        name = quoted(self.label(way.row))
        if best is not None and way.row.choice == best.row.choice:
            differ = {n: v for n, v in way.row.coordinates.items() if n in self.options}
            differ = {n: v for n, v in differ.items() if best.row.coordinates.get(n) != v}
            on = {n: (v,) for n, v in differ.items() if n in ("bed", "provider")}
            set_to = self.place(differ, [n for n in differ if n not in on])
            where = where_words(self.study, on) + on_one_core(self.study, on)
            name = ", ".join(filter(None, (where, f"with {set_to}" if set_to else ""))) or name
        return name if self._is_good(way) else with_standing(name, way.row)

    def _is_good(self, way: Way) -> bool:
        return way.is_good or self.is_of_one_choice


def with_standing(name: str, row: Row) -> str:
    """`md5 (broken)`."""
    return f"{name} ({standing_words(row.standing)})"


def times_words(pair: Toll) -> str:
    """` (× 1.24)`, where there is a ratio."""
    return f" ({times(pair.ratio.estimate)})" if pair.ratio else ""
