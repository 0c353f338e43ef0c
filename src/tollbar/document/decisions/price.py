"""The JSON document of `tollbar price`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Literal

from pydantic import Field

from tollbar.document.schema import Ends, Form, Number, Values
from tollbar.inventory.pricing import Line, Priced, Pricing
from tollbar.inventory.replacing import Cost
from tollbar.inventory.unmeasured import CHOICE
from tollbar.judge.choosing import Reason
from tollbar.policies import Ruling


class ReasonForm(Form):
    what: str
    """What breaks the rule, or what is missing."""
    policy: str | None
    """The policy that the rule stands in; null where it is about none."""
    rule: str | None
    """Its id."""
    clause: str | None
    """Of the policy's source."""
    excepted_until: date | None
    """The last day of the exception by which it need not meet the rule."""
    exception_ended: date | None
    """The last day of the exception by which it needed not to meet it."""


class CostForm(Form):
    where: Values
    """Where both were measured: the operation, sizes, the provider."""
    ratio: Number
    """CPU time of the first replacement over that of the asset; null where there is none."""
    interval: Ends
    """Of the ratio."""
    noisy: bool | None
    """Whether the core was quiet in too few blocks, so that all samples count; null where there is no ratio."""
    verdict: str
    """`costs`, `saves`, `free`, `unclear` (not told apart) or `not measured`, as of a toll."""
    reason: str | None
    """Why there is no ratio."""


class UseForm(Form):
    family: str
    """The family of choices."""
    cell: Values
    """The choice, and the settings that the inventory says."""
    standing: str
    """Of the cell, as far as it is said."""
    standing_is_sure: bool
    """Whether nothing that is not given decides it or could lower it."""
    ruling: str
    """`meets`, `breaks` or `cannot say`, by all policies that have a rule on the family; where none has, the last."""
    rulings: dict[str, str]
    """The same of each of these policies."""
    reasons: list[ReasonForm]
    """Why it breaks a policy, or why that cannot be said; and the rules that it need not meet, by an exception."""
    advice: list[ReasonForm]
    """Advice of the policies that it does not follow; it meets them all the same."""
    mitigates: dict[str, str]
    """Of each threat of the family: `yes`, `partly` or `no`; empty for a choice that no lab measures."""
    replacements: list[Values]
    """The cheapest that was measured of what meets the policies, with what was not told apart from it."""
    own: Values | None
    """The asset's own cell that these are set beside: all it leaves open is the same in both; null: there is none."""
    qualifying: list[str]
    """Choices of the family that meet the policies in no bad standing and that the asset's platform has."""
    costs: list[CostForm]
    """Of the first replacement, by operation."""
    unpriced: str | None
    """Why there is no cost, where something is to be replaced."""
    instead: str | None
    """The way to meet the rules that it breaks without replacing it."""


class LineForm(Form):
    kind: str
    """Its `assetType`; `cipher-suite` for one of a protocol."""
    name: str
    """Of the first such asset."""
    names: int
    """How many names they have."""
    count: int
    """How many assets are alike in all that is known of them here."""
    places: list[str]
    """Where they occur, each once."""
    ruling: str
    """`meets`, `breaks` or `cannot say`."""
    uses: list[UseForm]
    """What it is an instance of; several where the inventory does not say which."""
    reason: str | None
    """Why it cannot be said which choice it is; its use is then the best that it may be, where even that breaks a
    policy."""
    bad_standing: bool
    """Whether it is broken or disallowed by its standing, whatever the policies have rules on."""


class BrokenForm(Form):
    policy: str
    """The policy that the rule stands in."""
    rule: str
    """Its id."""
    clause: str
    """Of the policy's source."""
    assets: int
    """How many break it."""


class UngovernedForm(Form):
    policy: str
    """The policy that the rule stands in."""
    rule: str
    """Its id."""
    providers: list[str]
    """Patterns of their names."""
    what: str
    """What it cannot say of them."""


class ContradictionForm(Form):
    family: str
    """The family in which nothing meets both."""
    policies: list[str]
    """The two policies."""
    clauses: list[str]
    """The clause of each."""


class Document(Form):
    schema_: Literal[3] = Field(default=3, alias="schema")
    """the number of this form"""
    inventory: str
    """the file"""
    version: str
    """the version of CycloneDX"""
    of: str | None
    """what it is the inventory of"""
    others: int
    """components that are no cryptographic assets"""
    unread: list[str]
    """places with cryptographic assets that are not read, because these are no part of what the inventory is of"""
    policies: list[str]
    """those that were named"""
    on: str
    """the day that was asked about"""
    runs: list[str]
    """the runs whose costs are used"""
    assets: int
    """how many there are, each cipher suite of a protocol one"""
    mapped: int
    """how many are instances of a choice"""
    rulings: dict[str, int]
    """how many have each ruling"""
    bad_unrefused: int
    """assets that are broken or disallowed by their standing, and that no policy here refuses"""
    broken: list[BrokenForm]
    """each rule that is broken, the one that most assets break first"""
    ungoverned: list[UngovernedForm]
    """rules that say of which providers a policy says nothing; no asset names one, and each is judged as by another"""
    contradictions: list[ContradictionForm]
    """rules of two policies that nothing of a family meets together"""
    lines: list[LineForm]
    """a line for assets that are alike, what breaks a policy first, with its `uses`, or the `reason` why it has none"""


def document(pricing: Pricing) -> Document:
    """The document of this answer."""
    inventory = pricing.inventory
    return Document(
        inventory=str(inventory.path),
        version=inventory.version,
        of=inventory.of,
        others=inventory.others,
        unread=list(inventory.unread),
        policies=[one.name for one in pricing.policies],
        on=pricing.on.isoformat(),
        runs=[run.name for run in pricing.runs],
        assets=len(inventory.assets),
        mapped=pricing.mapped,
        rulings={ruling.value: pricing.count(ruling) for ruling in Ruling},
        bad_unrefused=pricing.bad_unrefused,
        broken=[
            BrokenForm(policy=policy, rule=rule, clause=clause, assets=count)
            for (policy, rule, clause), count in pricing.broken.items()
        ],
        ungoverned=[
            UngovernedForm(
                policy=policy,
                rule=rule.id,
                providers=list(rule.where["provider"]),
                what=rule.cannot_say or "",
            )
            for policy, rule in pricing.of_providers
        ],
        contradictions=[
            ContradictionForm(
                family=family.name,
                policies=[one.policy, one.other_policy],
                clauses=[one.rule.clause, one.other_rule.clause],
            )
            for family, one in pricing.contradictions
        ],
        lines=[*_lines(pricing.lines)],
    )


def _lines(lines: Sequence[Line]) -> Iterator[LineForm]:
    # Thousands of names may have one use.
    uses = {id(one): _use(one) for one in {id(one): one for line in lines for one in line.uses}.values()}
    for line in lines:
        yield LineForm(
            kind=line.kind,
            name=line.name,
            names=line.names,
            count=line.count,
            places=list(line.places),
            ruling=line.ruling.value,
            uses=[uses[id(one)] for one in line.uses],
            reason=line.reason,
            bad_standing=line.is_bad,
        )


def _use(priced: Priced) -> UseForm:
    use = priced.use
    return UseForm(
        family=use.family.name,
        cell=dict(use.coordinates),
        standing=use.family.standing_of(use.coordinates).value,
        standing_is_sure=priced.is_standing_sure,
        ruling=priced.ruling.value,
        rulings={one.policy.name: one.ruling.value for one in priced.found.judged},
        reasons=_reasons([*priced.reasons, *priced.found.excepted]),
        advice=_reasons(priced.found.advice),
        mitigates={}
        if any(one.coordinate == CHOICE for one in use.unmeasured)
        else {name: one.degree.value for name, one in use.family.mitigations_of(use.coordinates).items()},
        replacements=[dict(one.coordinates) for one in priced.replacements],
        own=dict(priced.own.coordinates) if priced.own else None,
        qualifying=list(priced.qualifying),
        costs=[_cost(one) for one in priced.costs],
        unpriced=priced.unpriced,
        instead=priced.instead,
    )


def _reasons(reasons: Sequence[Reason]) -> list[ReasonForm]:
    return [
        ReasonForm(
            what=one.what,
            policy=one.policy,
            rule=one.rule.id if one.rule else None,
            clause=one.rule.clause if one.rule else None,
            excepted_until=one.excepted and one.excepted.until,
            exception_ended=one.ended and one.ended.until,
        )
        for one in reasons
    ]


def _cost(cost: Cost) -> CostForm:
    ratio = cost.toll.ratio
    return CostForm(
        where=dict(cost.where),
        ratio=ratio.estimate if ratio else None,
        interval=(ratio.low, ratio.high) if ratio and ratio.is_bounded else None,
        noisy=ratio.is_noisy if ratio else None,
        verdict=cost.toll.verdict.value,
        reason=cost.toll.reason,
    )
