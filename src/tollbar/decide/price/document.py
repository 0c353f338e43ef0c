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
    """Reason why the rule is broken, or the missing fact."""
    policy: str | None
    """Policy of the rule; null if the reason is about none."""
    rule: Annotated[str | None, of("rule.id")]
    """Id of the rule."""
    clause: Annotated[str | None, of("rule.clause")]
    """Clause of the policy's source."""
    excepted_until: Annotated[date | None, of("excepted.until")]
    """Last day of the exception by which it need not meet the rule."""
    exception_ended: Annotated[date | None, of("ended.until")]
    """Last day of an ended exception from the rule."""


class CostForm(Form):
    where: Values
    """Place in which both were measured: the operation, sizes, the provider."""
    ratio: Annotated[Number, of("toll.ratio.estimate")]
    """CPU time of the first replacement over that of the asset; null without a measurement."""
    interval: Annotated[Bounded, of("toll.ratio")]
    """Interval of the ratio."""
    noisy: Annotated[bool | None, of("toll.ratio.is_noisy")]
    """Whether the core was quiet in too few blocks, so that all samples count; null without a ratio."""
    verdict: Annotated[str, of("toll.verdict")]
    """`costs`, `saves`, `free`, `unclear` (the run cannot distinguish the two) or `not measured`, as of a toll."""
    reason: Annotated[str | None, of("toll.reason")]
    """Reason for a missing ratio."""


class UseForm(Form):
    family: Annotated[str, of("use.family.name")]
    """Family of choices."""
    cell: Annotated[Values, of("use.coordinates")]
    """Choice, and the settings that the inventory gives."""
    standing: Annotated[str | None, of(lambda priced: priced.use.family.standing_of(priced.use.coordinates))]
    """Standing of the cell, with its missing facts as good as possible; null if only the asset's strength is known."""
    standing_is_sure: Annotated[bool, of("is_standing_sure")]
    """Whether no missing fact could change the standing."""
    ruling: str
    """`meets`, `breaks` or `cannot say`, by all policies with a rule on the family; without one `cannot say`."""
    rulings: dict[str, str]
    """Ruling of each of these policies."""
    reasons: Annotated[list[ReasonForm], of(lambda priced: [*priced.reasons, *priced.found.excepted])]
    """Reasons why it breaks a policy or may break one, and the rules that it need not meet by an exception."""
    advice: Annotated[list[ReasonForm], of("found.advice")]
    """Advice of the policies that it does not follow, although it meets them."""
    mitigates: Annotated[dict[str, str], of(lambda priced: _mitigates(priced))]
    """Mitigation of each threat of the family: `yes`, `partly` or `no`; empty for a choice that no lab measures."""
    replacements: Annotated[list[Values], of(lambda priced: [one.coordinates for one in priced.replacements])]
    """Cheapest measured choices that meet the policies, or that the run cannot distinguish from the cheapest."""
    own: Annotated[Values | None, of("own.coordinates")]
    """Asset's own cell for the comparison, equal in all facts that the asset leaves open; null if there is none."""
    qualifying: list[str]
    """Choices of the family that meet the policies, are not in a bad standing, and exist on the asset's platform."""
    costs: list[CostForm]
    """Costs of the first replacement, by operation."""
    unpriced: str | None
    """Reason for a missing cost, if the asset must be replaced."""
    instead: str | None
    """Way to meet the broken rules without replacing the asset."""


class LineForm(Form):
    kind: str
    """`assetType` of the assets; `cipher-suite` for a suite of a protocol."""
    name: str
    """Name of the first such asset."""
    names: int
    """Number of their names."""
    count: int
    """Number of assets with the same known facts."""
    places: list[str]
    """Places where they occur, each once."""
    ruling: str
    """`meets`, `breaks` or `cannot say`."""
    uses: Annotated[list[UseForm], within(lambda line, uses: [uses[id(one)] for one in line.uses])]
    """Choice of the asset; several if the inventory does not decide."""
    reason: str | None
    """Reason why its choice is not known; its use is then the best possible one, if even that breaks a policy."""
    bad_standing: Annotated[bool, of("is_bad")]
    """Whether it is broken or disallowed by its standing, with or without a policy's rule."""


class BrokenForm(Form):
    policy: str
    """Policy of the rule."""
    rule: str
    """Id of the rule."""
    clause: str
    """Clause of the policy's source."""
    assets: int
    """Number of assets that break it."""


class UngovernedForm(Form):
    policy: str
    """Policy of the rule."""
    rule: str
    """Id of the rule."""
    providers: list[str]
    """Patterns of the providers' names."""
    what: str
    """Rules for these providers that the policy does not have."""


class ContradictionForm(Form):
    family: str
    """Family in which nothing meets both."""
    policies: list[str]
    """Both policies."""
    clauses: list[str]
    """Clause of each."""


class PriceDocument(Document):
    inventory: Annotated[str, of(lambda pricing: str(pricing.inventory.path))]
    """the file"""
    version: Annotated[str, of("inventory.version")]
    """the version of CycloneDX"""
    of_: Annotated[str | None, of("inventory.of")] = Field(alias="of")
    """the product of the inventory"""
    others: Annotated[int, of("inventory.others")]
    """number of components that are not cryptographic assets"""
    unread: Annotated[list[str], of("inventory.unread")]
    """places with cryptographic assets that are not read: these do not belong to the product of the inventory"""
    policies: Annotated[list[str], of(lambda pricing: [one.name for one in pricing.policies])]
    """the named policies"""
    on: date
    """the day of the judgement"""
    runs: Annotated[list[str], of(lambda pricing: [run.name for run in pricing.runs])]
    """the runs whose costs are used"""
    assets: Annotated[int, of(lambda pricing: len(pricing.inventory.assets))]
    """number of assets; each cipher suite of a protocol is one"""
    mapped: int
    """number of assets with a known choice"""
    rulings: Annotated[dict[str, int], of(lambda pricing: {one.value: pricing.count(one) for one in Ruling})]
    """number of assets with each ruling"""
    bad_unrefused: int
    """number of assets that are broken or disallowed by their standing, and refused by no policy here"""
    broken: Annotated[list[BrokenForm], of(lambda pricing: _broken(pricing))]
    """each broken rule, the one with most assets first"""
    ungoverned: Annotated[list[UngovernedForm], of(lambda pricing: _ungoverned(pricing))]
    """rules with providers that a policy does not judge; no asset names one, so each is judged as by another"""
    contradictions: Annotated[list[ContradictionForm], of(lambda pricing: _contradictions(pricing))]
    """rules of two policies that no choice of a family meets together"""
    lines: list[LineForm]
    """a line for assets with the same facts, those that break a policy first, with `uses`, or the `reason` for none"""


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
