"""The JSON document of `tollbar price`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated

from pydantic import Field

from tollbar.catalog.policies import Ruling
from tollbar.decide.price.priced import Priced, Pricing
from tollbar.decide.price.unmeasured import CHOICE
from tollbar.report.json_forms.form import Bounded, Document, Form, Number, Values, of, within


class ReasonForm(Form):
    what: str
    """What breaks the rule, or what is missing."""
    policy: str | None
    """The policy that the rule stands in; null where it is about none."""
    rule: Annotated[str | None, of("rule.id")]
    """Its id."""
    clause: Annotated[str | None, of("rule.clause")]
    """Of the policy's source."""
    excepted_until: Annotated[date | None, of("excepted.until")]
    """The last day of the exception by which it need not meet the rule."""
    exception_ended: Annotated[date | None, of("ended.until")]
    """The last day of the exception by which it needed not to meet it."""


class CostForm(Form):
    where: Values
    """Where both were measured: the operation, sizes, the provider."""
    ratio: Annotated[Number, of("toll.ratio.estimate")]
    """CPU time of the first replacement over that of the asset; null where there is none."""
    interval: Annotated[Bounded, of("toll.ratio")]
    """Of the ratio."""
    noisy: Annotated[bool | None, of("toll.ratio.is_noisy")]
    """Whether the core was quiet in too few blocks, so that all samples count; null where there is no ratio."""
    verdict: Annotated[str, of("toll.verdict")]
    """`costs`, `saves`, `free`, `unclear` (the run cannot distinguish the two) or `not measured`, as of a toll."""
    reason: Annotated[str | None, of("toll.reason")]
    """Why there is no ratio."""


class UseForm(Form):
    family: Annotated[str, of("use.family.name")]
    """The family of choices."""
    cell: Annotated[Values, of("use.coordinates")]
    """The choice, and the settings that the inventory says."""
    standing: Annotated[str, of(lambda priced: priced.use.family.standing_of(priced.use.coordinates))]
    """Of the cell, as far as it is said."""
    standing_is_sure: Annotated[bool, of("is_standing_sure")]
    """Whether nothing that is not given decides it or could lower it."""
    ruling: str
    """`meets`, `breaks` or `cannot say`, by all policies that have a rule on the family; where none has, the last."""
    rulings: Annotated[dict[str, str], of(lambda priced: {one.policy.name: one.ruling for one in priced.found.judged})]
    """The same of each of these policies."""
    reasons: Annotated[list[ReasonForm], of(lambda priced: [*priced.reasons, *priced.found.excepted])]
    """Why it breaks a policy, or why that cannot be said; and the rules that it need not meet, by an exception."""
    advice: Annotated[list[ReasonForm], of("found.advice")]
    """Advice of the policies that it does not follow; it meets them all the same."""
    mitigates: Annotated[dict[str, str], of(lambda priced: _mitigates(priced))]
    """Of each threat of the family: `yes`, `partly` or `no`; empty for a choice that no lab measures."""
    replacements: Annotated[list[Values], of(lambda priced: [one.coordinates for one in priced.replacements])]
    """Cheapest measured choices that meet the policies, or that the run cannot distinguish from the cheapest."""
    own: Annotated[Values | None, of("own.coordinates")]
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
    uses: Annotated[list[UseForm], within(lambda line, uses: [uses[id(one)] for one in line.uses])]
    """What it is an instance of; several where the inventory does not say which."""
    reason: str | None
    """Why it cannot be said which choice it is; its use is then the best that it may be, where even that breaks a
    policy."""
    bad_standing: Annotated[bool, of("is_bad")]
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


class PriceDocument(Document):
    inventory: Annotated[str, of(lambda pricing: str(pricing.inventory.path))]
    """the file"""
    version: Annotated[str, of("inventory.version")]
    """the version of CycloneDX"""
    of_: Annotated[str | None, of("inventory.of")] = Field(alias="of")
    """what it is the inventory of"""
    others: Annotated[int, of("inventory.others")]
    """components that are no cryptographic assets"""
    unread: Annotated[list[str], of("inventory.unread")]
    """places with cryptographic assets that are not read, because these are no part of what the inventory is of"""
    policies: Annotated[list[str], of(lambda pricing: [one.name for one in pricing.policies])]
    """those that were named"""
    on: date
    """the day that was asked about"""
    runs: Annotated[list[str], of(lambda pricing: [run.name for run in pricing.runs])]
    """the runs whose costs are used"""
    assets: Annotated[int, of(lambda pricing: len(pricing.inventory.assets))]
    """how many there are, each cipher suite of a protocol one"""
    mapped: int
    """how many are instances of a choice"""
    rulings: Annotated[dict[str, int], of(lambda pricing: {one.value: pricing.count(one) for one in Ruling})]
    """how many have each ruling"""
    bad_unrefused: int
    """assets that are broken or disallowed by their standing, and that no policy here refuses"""
    broken: Annotated[list[BrokenForm], of(lambda pricing: _broken(pricing))]
    """each rule that is broken, the one that most assets break first"""
    ungoverned: Annotated[list[UngovernedForm], of(lambda pricing: _ungoverned(pricing))]
    """rules that say of which providers a policy says nothing; no asset names one, and each is judged as by another"""
    contradictions: Annotated[list[ContradictionForm], of(lambda pricing: _contradictions(pricing))]
    """rules of two policies that nothing of a family meets together"""
    lines: list[LineForm]
    """a line for assets that are alike, what breaks a policy first, with its `uses`, or the `reason` why it has none"""


def document(pricing: Pricing) -> PriceDocument:
    """Return the document of this answer."""
    # Thousands of names may have one use.
    priced = {id(one): one for line in pricing.lines for one in line.uses}
    uses = {key: UseForm.read(one) for key, one in priced.items()}
    return PriceDocument.read(pricing, uses)


def _mitigates(priced: Priced) -> Mapping[str, str]:
    use = priced.use
    if any(one.coordinate == CHOICE for one in use.unmeasured):
        return {}
    return {name: one.degree for name, one in use.family.mitigations_of(use.coordinates).items()}


def _broken(pricing: Pricing) -> Sequence[BrokenForm]:
    return [
        BrokenForm(policy=policy, rule=rule, clause=clause, assets=count)
        for (policy, rule, clause), count in pricing.broken.items()
    ]


def _ungoverned(pricing: Pricing) -> Sequence[UngovernedForm]:
    return [
        UngovernedForm(policy=policy, rule=rule.id, providers=list(rule.where["provider"]), what=rule.cannot_say or "")
        for policy, rule in pricing.of_providers
    ]


def _contradictions(pricing: Pricing) -> Sequence[ContradictionForm]:
    return [
        ContradictionForm(
            family=family.name,
            policies=[one.policy, one.other_policy],
            clauses=[one.rule.clause, one.other_rule.clause],
        )
        for family, one in pricing.contradictions
    ]
