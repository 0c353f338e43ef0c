"""First sentences of `choose`: the answer with its cost, the savings of a cheaper choice, the gains of a stronger one.

The answer is that of a study's headline: the family's default if it qualifies and was measured, else the qualifying
choice that protects as it does, in the best standing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tollbar.analysis import Toll
from tollbar.analysis.decisions import jointly
from tollbar.catalog.families import Family, Value, default_cell, is_default
from tollbar.catalog.policies import Ruling
from tollbar.core.words import capitalised, counted, enumeration, few, more
from tollbar.decide.choose.answered import Answered, all_of, place_name
from tollbar.decide.choose.nothing import nothing_sentences
from tollbar.decide.choosing import Choosing
from tollbar.decide.rulings import Candidate, candidate
from tollbar.decide.shared import reason_words
from tollbar.report.costs import COST_WORDS, one_words
from tollbar.report.names import place_of
from tollbar.report.numbers import amount, marked
from tollbar.report.sections.steps import Steps
from tollbar.report.standings import standing_words
from tollbar.report.ways import Place, Way, answered, of_default
from tollbar.results import Row

# More names than this would hide the answer.
MOST_NAMES = 2


class Qualifying(Steps):
    """Qualifying choices of one place, compared with the answer among them."""

    noun = "qualifying option{}"

    def __init__(self, choosing: Choosing, names: Sequence[str]) -> None:
        self.names, self._compare, self._cheapest = names, choosing.compare, choosing.cheapest
        family = choosing.wanted.family
        self.by_key = {one.row.key: one for rank in choosing.ranks for one in rank.candidates if one.row}
        ways = [
            Way(_judged(family, one.row), one.cost.estimate, one.cost.is_noisy)
            for one in self.by_key.values()
            if one.row and one.cost
        ]
        super().__init__(
            family, choosing.threshold, [way.row for way in ways], names, lambda row: place_of(family, row.shown, names)
        )
        self.place = answered(Place(choosing.where, ways, None), family, ())

    @property
    def answer(self) -> Candidate:
        """Candidate that is the answer; if the data pick it, with an interval that is wide enough for that."""
        assert self.place.answer is not None
        found = self.by_key[self.place.answer.row.key]
        if self.place.default is None or found is self._cheapest or found.cost is None:
            return found
        return replace(found, cost=jointly(found.cost, len(self.by_key)))

    def pair(self, row: Row, best: Row) -> Toll | None:
        toll = self._compare(row, best)
        return None if toll.ratio is None else toll

    def differing(self, differ: Mapping[str, Value]) -> str:
        words = place_of(self.family, differ, [name for name in self.names if name in differ])
        return f"with {words}" if words else ""


def _judged(family: Family, row: Row) -> Row:
    """Return a row with its standing and strength of today: a run has those of its day."""
    at = row.coordinates
    return replace(row, standing=family.standing_of(at), strength=family.strength_of(at))


def first_sentences(of: Answered, names: Sequence[str]) -> str:
    """Return the answer, why it is not the default, and what cheaper and stronger choices change."""
    if not of.qualifies:
        return " ".join(nothing_sentences(of, names))
    first = next((one for one in of.places if one.priced), None)
    if first is not None:
        return " ".join(f"{capitalised(one)}." for one in _sentences(of, first, names))
    found = {name: one for name, (_, one) in of.candidates(names).items() if one.ruling is Ruling.MEETS}
    if of.places and not any(place.qualifies for place in of.places):
        were = "was" if len(found) == 1 else "were"
        return f"Nothing that was measured qualifies; {enumeration(few([*found], MOST_NAMES))} would, and {were} not."
    if of.is_unpriced:
        return _without_costs(of, [*found.values()], names)
    reasons = {one.unmeasured for one in found.values() if one.unmeasured}
    why = f": {next(iter(reasons))}" if len(reasons) == 1 else ""
    return f"{counted(len(found), 'choice')} would qualify, and none of them could be measured here{why}."


def _sentences(of: Answered, first: Choosing, names: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of a measured answer, without full stops."""
    steps = Qualifying(first, names)
    place, one = steps.place, steps.answer
    assert place.answer is not None
    assert one.cost is not None
    row = place.answer.row
    properties = [standing_words(row.standing)]
    properties += [f"{row.strength} bits"] if steps.has_strengths and row.strength is not None else []
    at = f" ({place_name(of, first)})" if len(of.places) > 1 else ""
    cost = marked(amount(one.cost.estimate), one.cost.is_noisy)
    each = one_words(first.where.get("op"))
    open_to = f"; {steps.open_to(place, place.gives_up)}" if place.gives_up else ""
    yield f"{steps.label(row)} ({', '.join(properties)}): {cost} of {COST_WORDS[first.cost].cpu} {each}{at}{open_to}"
    if place.default is not None and (default := steps.default_words(place)):
        yield _why_not(of, default, place.default)
    until = min((held.excepted.until for held in one.excepted if held.excepted), default=None)
    if until:
        yield f"it qualifies by an exception, until {until}"
    yield steps.ranked(place, "it")
    yield from steps.next_ones(place) if len(place.ways) > 1 else ()


def _why_not(of: Answered, words: str, default: Mapping[str, Value]) -> str:
    """Return why a family's default is not the answer: the rule it breaks, or that it was not measured."""
    reasons = candidate(of.wanted, default)
    if found := reasons.broken or reasons.missing:
        others = f", and {more(len(found) - 1, 'reason')}" if len(found) > 1 else ""
        return f"the default, {words}, does not qualify: {reason_words(found[0])}{others}"
    family = of.wanted.family
    every = [*(one for place in of.places for one in all_of(place)), *of.unmeasured]
    same = [one for one in every if is_default(family, one.coordinates, of_default(family))]
    if not same:
        return f"the default, {words}, is not among the choices that were asked for"
    why = next((f": {one.unmeasured}" for one in same if one.unmeasured), "")
    return f"the default, {words}, was not measured{why}"


def _without_costs(of: Answered, found: Sequence[Candidate], names: Sequence[str]) -> str:
    """Return whether the family's default qualifies, and the number of qualifying candidates."""
    family = of.wanted.family
    qualify = "qualifies" if len(found) == 1 else "qualify"
    count = f"Of the cells near what was asked {len(found)} {qualify}; nothing was measured."
    if family.default is None:
        return count
    deciding = of_default(family)
    same = next((one for one in found if is_default(family, one.coordinates, deciding)), None)
    if same is not None:
        return f"{place_of(family, same.coordinates, names)}, the default, qualifies. {count}"
    default = default_cell(family, found[0].coordinates, deciding)
    # The settings that are given may be all that keeps the default out.
    apart = [
        name for name in family.settings if name in deciding and default.get(name) != found[0].coordinates.get(name)
    ]
    words = place_of(family, default, [*names, *(name for name in apart if name not in names and name in default)])
    return f"{capitalised(_why_not(of, words, default))}. {count}"
