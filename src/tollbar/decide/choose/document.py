"""The JSON document of `choose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, NamedTuple

from tollbar.analysis import Toll
from tollbar.catalog.policies import Policy
from tollbar.decide.choose.answered import Answered
from tollbar.decide.choose.headline import Qualifying
from tollbar.decide.choose.words import contradictions
from tollbar.decide.choosing import Choosing, Rank
from tollbar.decide.rulings import Candidate
from tollbar.report.blocks import Brief
from tollbar.report.json_forms.form import Document, Form, Number, Source, Values, high_of, low_of, of, within


class ReasonForm(Form):
    what: str
    policy: str | None
    rule: Annotated[str | None, of("rule.id")]
    clause: Annotated[str | None, of("rule.clause")]
    source: Annotated[str | None, of("rule.source")]
    checked: Annotated[bool | None, of("rule.checked")]
    ours: Annotated[bool | None, of("rule.ours")]
    excepted_until: Annotated[date | None, of("excepted.until")]
    exception_ended: Annotated[date | None, of("ended.until")]


class _Placed(NamedTuple):
    """A candidate in the place whose cheapest it is compared with; None: none of it was measured."""

    place: Choosing | None
    found: Candidate

    @property
    def toll(self) -> Toll | None:
        return self.place.beside_cheapest(self.found) if self.place else None


class CandidateForm(Form):
    choice: Annotated[str, of(lambda one: one.found.coordinates["choice"])]
    setting: Annotated[Values, of(lambda one: {n: v for n, v in one.found.coordinates.items() if n != "choice"})]
    standing: Annotated[str, within(lambda one, wanted: wanted.family.standing_of(one.found.coordinates))]
    strength: Annotated[int | None, within(lambda one, wanted: wanted.family.strength_of(one.found.coordinates))]
    ruling: Annotated[str, of("found.ruling")]
    cost: Annotated[Number, of("found.cost.estimate")]
    low: Annotated[Number, low_of("found.cost")]
    high: Annotated[Number, high_of("found.cost")]
    noisy: Annotated[bool | None, of("found.cost.is_noisy")]
    over_cheapest: Annotated[Number, of("toll.ratio.estimate")]
    over_cheapest_low: Annotated[Number, low_of("toll.ratio")]
    over_cheapest_high: Annotated[Number, high_of("toll.ratio")]
    over_cheapest_noisy: Annotated[bool | None, of("toll.ratio.is_noisy")]
    verdict: Annotated[str | None, of("toll.verdict")]
    not_measured: Annotated[str | None, of("found.unmeasured")]
    broken: Annotated[list[ReasonForm], of("found.broken")]
    missing: Annotated[list[ReasonForm], of("found.missing")]
    advice: Annotated[list[ReasonForm], of("found.advice")]
    excepted: Annotated[list[ReasonForm], of("found.excepted")]
    conditions: Annotated[dict[str, str], of("found.conditions")]


def _candidates(of_place: Callable[[Choosing], Sequence[Candidate]]) -> Source:
    return of(lambda place: [_Placed(place, one) for one in of_place(place)])


class _PlacedRank(NamedTuple):
    place: Choosing
    rank: Rank


class RankForm(Form):
    place: Annotated[int, of("rank.number")]
    candidates: Annotated[
        list[CandidateForm], of(lambda one: [_Placed(one.place, each) for each in one.rank.candidates])
    ]


def _answer(place: Choosing) -> _Placed | None:
    return _Placed(place, Qualifying(place, ()).answer) if place.priced else None


def _gives_up(place: Choosing) -> Sequence[str]:
    return Qualifying(place, ()).place.gives_up if place.priced else ()


class PlaceForm(Form):
    study: str | None
    where: Values
    cost: str
    answer: Annotated[CandidateForm | None, of(_answer)]
    gives_up: Annotated[list[str], of(_gives_up)]
    ranks: Annotated[list[RankForm], of(lambda place: [_PlacedRank(place, one) for one in place.ranks])]
    unpriced: Annotated[list[CandidateForm], _candidates(lambda place: place.unpriced)]
    refused: Annotated[list[CandidateForm], _candidates(lambda place: place.refused)]
    cannot_say: Annotated[list[CandidateForm], _candidates(lambda place: place.unsaid)]
    dropping: Annotated[list[CandidateForm], _candidates(lambda place: place.dropping)]
    nearest: Annotated[list[CandidateForm], _candidates(lambda place: place.nearest)]


class PolicyForm(Form):
    name: str
    title: str
    by: str
    edition: str
    date: Annotated[date, of("dated")]
    source: str
    not_judged: Annotated[
        list[dict[str, str]], of(lambda policy: [{"clause": one.clause, "what": one.what} for one in policy.not_judged])
    ]


class ContradictionForm(Form):
    policies: Annotated[list[str], of(lambda two: [two.policy, two.other_policy])]
    rules: Annotated[list[str], of(lambda two: [two.rule.id, two.other_rule.id])]
    clauses: Annotated[list[str], of(lambda two: [two.rule.clause, two.other_rule.clause])]
    checked: Annotated[list[bool], of(lambda two: [two.rule.checked, two.other_rule.checked])]


class _ChooseAnswer(NamedTuple):
    found: Answered
    words: Brief


class ChooseDocument(Document):
    question: Annotated[str, of("words.question")]
    """the question, in words"""
    headline: Annotated[str, of("words.headline")]
    """the answer in one line"""
    family: Annotated[str, of("found.wanted.family.name")]
    """the family that is chosen from"""
    policies: Annotated[list[PolicyForm], of(lambda answer: _policies(answer.found.wanted.policies))]
    """each policy that must be met, and those that it extends: `name`, `title`, `by`, `edition`, `date`, `source`, and
    its requirements that are `not_judged`"""
    threats: Annotated[dict[str, str], of("found.wanted.threats")]
    """each threat that must be mitigated, and how far at least: `yes` or `partly`"""
    on: Annotated[date, of("found.wanted.on")]
    """the day that is judged"""
    costs_from: Annotated[str, of("found.source")]
    """where the costs are from"""
    places: Annotated[list[PlaceForm], of("found.places")]
    """places within which costs are compared (`where`, in one `study` of a run, by the CPU time `cost`): the `answer`,
    with the threats that it `gives_up` compared with the family's default; qualified candidates by `ranks`, each with
    its `place`; qualified ones without a cost (`unpriced`); those that are `refused`, undecided (`cannot_say`), or
    `dropping` out by that day; if none qualifies, the `nearest`. A candidate has its cost in nanoseconds with its
    `moments`, its ratio to the cheapest qualified one (`over_cheapest`, `verdict`; these hold jointly), and the rules
    that it has `broken`, that need a `missing` fact, whose `advice` it does not follow, or from which it is `excepted`,
    each with its clause, whether the clause was read (`checked`), and the last day of an exception (`excepted_until`)
    or of an ended one (`exception_ended`)"""
    unmeasured: Annotated[
        list[CandidateForm], of(lambda answer: [_Placed(None, one) for one in answer.found.unmeasured])
    ]
    """candidates judged by the same rules, without a cost"""
    instead: Annotated[list[CandidateForm], of(lambda answer: [_Placed(None, one) for one in answer.found.instead])]
    """candidates that were not asked for and qualify, if none that was asked for does on a later day"""
    contradictions: Annotated[list[ContradictionForm], of(lambda answer: contradictions(answer.found))]
    """rules of two policies that nothing meets together"""


def made(found: Answered, words: Brief) -> ChooseDocument:
    """Return the document of an answer."""
    return ChooseDocument.read(_ChooseAnswer(found, words), found.wanted)


def _policies(asked: Sequence[Policy]) -> Sequence[Policy]:
    """Return the policies with those that they extend, each once."""
    return [*{part.name: part for policy in asked for part in policy.all_of_it}.values()]
