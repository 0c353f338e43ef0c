"""The JSON document of `choose`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal

from pydantic import Field

from tollbar.document.schema import Form, Number, Values, ends_of
from tollbar.judge.choosing import Candidate, Choosing, Reason
from tollbar.policies import Policy
from tollbar.present.blocks import Brief
from tollbar.present.decisions.choose import Answered, contradictions


class ReasonForm(Form):
    what: str
    policy: str | None
    rule: str | None
    clause: str | None
    source: str | None
    checked: bool | None
    ours: bool | None
    excepted_until: date | None
    exception_ended: date | None


class CandidateForm(Form):
    choice: str
    setting: Values
    standing: str
    strength: int | None
    ruling: str
    cost: Number
    low: Number
    high: Number
    noisy: bool | None
    over_cheapest: Number
    over_cheapest_low: Number
    over_cheapest_high: Number
    over_cheapest_noisy: bool | None
    verdict: str | None
    not_measured: str | None
    broken: list[ReasonForm]
    missing: list[ReasonForm]
    advice: list[ReasonForm]
    excepted: list[ReasonForm]
    conditions: dict[str, str]


class RankForm(Form):
    place: int
    candidates: list[CandidateForm]


class PlaceForm(Form):
    study: str | None
    where: Values
    cost: str
    ranks: list[RankForm]
    unpriced: list[CandidateForm]
    refused: list[CandidateForm]
    cannot_say: list[CandidateForm]
    dropping: list[CandidateForm]
    nearest: list[CandidateForm]


class PolicyForm(Form):
    name: str
    title: str
    by: str
    edition: str
    date: date
    source: str
    not_judged: list[dict[str, str]]


class ContradictionForm(Form):
    policies: list[str]
    rules: list[str]
    clauses: list[str]
    checked: list[bool]


class Document(Form):
    number: Literal[3] = Field(default=3, alias="schema")
    """the number of this form"""
    question: str
    """what was asked, in words"""
    headline: str
    """the answer in one line"""
    family: str
    """the family that is chosen from"""
    policies: list[PolicyForm]
    """each policy that must be met, with what it extends: `name`, `title`, `by`, `edition`, `date`, `source`, and
    what it asks that is `not_judged`"""
    threats: dict[str, str]
    """each threat that must be mitigated, and how far at least: `yes` or `partly`"""
    on: date
    """the day that is judged"""
    costs_from: str
    """where the costs are from"""
    places: list[PlaceForm]
    """costs are compared within one place (`where`, in one `study` of a run, of CPU time as `cost` says): what
    qualifies by `ranks`, each with its `place`; what qualifies without a cost (`unpriced`); what is `refused`, and of
    what it `cannot_say`; what is `dropping` out by that day; where nothing qualifies, the `nearest`. A candidate has
    its cost in nanoseconds and of which `moments` that is, its ratio to the cheapest that qualifies (`over_cheapest`,
    `verdict`: those of what qualifies hold together), and the rules that it has `broken`, that are `missing` something,
    whose `advice` it does not follow, or from which it is `excepted`, each with its clause, whether that was read
    (`checked`), and the last day of the exception that holds (`excepted_until`) or holds no more
    (`exception_ended`)"""
    unmeasured: list[CandidateForm]
    """what was judged by the same rules and has no cost"""
    contradictions: list[ContradictionForm]
    """rules of two policies that nothing meets together"""


def made(of: Answered, said: Brief) -> Document:
    """The document of an answer."""
    wanted = of.wanted
    parts = {part.name: part for policy in wanted.policies for part in policy.all_of_it}
    return Document(
        question=said.question,
        headline=said.headline,
        family=wanted.family.name,
        policies=[_policy(one) for one in parts.values()],
        threats={name: str(degree) for name, degree in wanted.threats.items()},
        on=wanted.on,
        costs_from=of.source,
        places=[_place(of, place) for place in of.places],
        unmeasured=[_candidate(of, None, one) for one in of.unmeasured],
        contradictions=[
            ContradictionForm(
                policies=[one.policy, one.other_policy],
                rules=[one.rule.id, one.other_rule.id],
                clauses=[one.rule.clause, one.other_rule.clause],
                checked=[one.rule.checked, one.other_rule.checked],
            )
            for one in contradictions(of)
        ],
    )


def _policy(one: Policy) -> PolicyForm:
    not_judged = [{"clause": each.clause, "what": each.what} for each in one.not_judged]
    return PolicyForm(
        name=one.name,
        title=one.title,
        by=one.by,
        edition=one.edition,
        date=one.dated,
        source=one.source,
        not_judged=not_judged,
    )


def _place(of: Answered, place: Choosing) -> PlaceForm:
    def many(some: Sequence[Candidate]) -> list[CandidateForm]:
        return [_candidate(of, place, one) for one in some]

    return PlaceForm(
        study=place.study,
        where=dict(place.where),
        cost=place.cost,
        ranks=[RankForm(place=rank.number, candidates=many(rank.candidates)) for rank in place.ranks],
        unpriced=many(place.unpriced),
        refused=many(place.refused),
        cannot_say=many(place.unsaid),
        dropping=many(place.dropping),
        nearest=many(place.nearest),
    )


def _candidate(of: Answered, place: Choosing | None, one: Candidate) -> CandidateForm:
    family, cost = of.wanted.family, one.cost
    toll = place.beside_cheapest(one) if place else None
    ratio = toll.ratio if toll else None
    (low, high), (over_low, over_high) = ends_of(cost), ends_of(ratio)
    setting: Mapping[str, object] = {n: v for n, v in one.coordinates.items() if n != "choice"}
    return CandidateForm(
        choice=str(one.coordinates["choice"]),
        setting=dict(setting),
        standing=str(family.standing_of(one.coordinates)),
        strength=family.strength_of(one.coordinates),
        ruling=str(one.ruling),
        cost=cost.estimate if cost else None,
        low=low,
        high=high,
        noisy=cost.is_noisy if cost else None,
        over_cheapest=ratio.estimate if ratio else None,
        over_cheapest_low=over_low,
        over_cheapest_high=over_high,
        over_cheapest_noisy=ratio.is_noisy if ratio else None,
        verdict=str(toll.verdict) if toll else None,
        not_measured=one.unmeasured,
        broken=[_reason(each) for each in one.broken],
        missing=[_reason(each) for each in one.missing],
        advice=[_reason(each) for each in one.advice],
        excepted=[_reason(each) for each in one.excepted],
        conditions=dict(one.conditions),
    )


def _reason(of: Reason) -> ReasonForm:
    rule = of.rule
    return ReasonForm(
        what=of.what,
        policy=of.policy,
        rule=rule.id if rule else None,
        clause=rule.clause if rule else None,
        source=rule.source if rule else None,
        checked=rule.checked if rule else None,
        ours=rule.ours if rule else None,
        excepted_until=of.excepted and of.excepted.until,
        exception_ended=of.ended and of.ended.until,
    )
