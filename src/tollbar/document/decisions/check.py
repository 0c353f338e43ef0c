"""`tollbar check --json`."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from tollbar.budgets.checked import Check
from tollbar.budgets.judging import CheckedBudget
from tollbar.document.schema import Form, Number, Values, ends_of
from tollbar.policies import CheckedUse, Finding


class RuleForm(Form):
    """A rule that is not simply met, or has an exception that is not needed."""

    rule: str
    policy: str
    clause: str
    source: str
    checked: bool
    verdict: str
    why: str
    advice: bool
    excepted_until: date | None
    exception_ended: date | None
    exception_not_needed: date | None


class PolicyForm(Form):
    policy: str
    verdict: str
    missing: str | None
    rules: list[RuleForm]


class ThreatForm(Form):
    threat: str
    wanted: str
    verdict: str
    why: str


class UseForm(Form):
    use: str
    family: str
    setting: Values
    verdict: str
    policies: list[PolicyForm]
    threats: list[ThreatForm]
    standing: str
    standing_committed: str | None
    fell: list[str]
    missing: str | None


class BudgetForm(Form):
    budget: str
    family: str
    choice: str
    against: str
    setting: Values
    verdict: str
    reason: str | None
    limit: Number
    ratio: Number
    low: Number
    high: Number
    confidence: Number
    blocks: int
    noisy: bool | None
    libraries: list[str]
    ratio_when_set: Number
    libraries_when_set: list[str]
    new_limit: Number


class Document(Form):
    number: Literal[3] = Field(alias="schema")
    """the number of this form"""
    file: str
    """what is checked"""
    on: date
    """the day that policies were asked about"""
    breaks: bool
    """whether something is not as it is to be: the status is then 1"""
    leaves_open: bool
    """whether something cannot be said, cannot be told, is not judged here, or is within its limit by a noisy ratio,
    and no further from it than neighbours may move it: with `--strict` the status is then 3"""
    accepted: bool
    """whether standings and limits were to be written into the file: those are that are other than the file's"""
    uses: list[UseForm]
    """each use: its `verdict` (`meets`, `breaks`, `cannot say`), that of each of its `policies` with the `rules` that
    are not simply met, of each threat, and its `standing`, beside the one that the file has; `fell`: who says the
    worse one, and where. A rule has the last day of the exception by which it need not be met (`excepted_until`), by
    which it needed not (`exception_ended`), or that it does not need, for it is met (`exception_not_needed`)"""
    budgets: list[BudgetForm]
    """each budget: `verdict` (`within`, `over`, `cannot tell`, `not measured`, `not judged here`) with the `reason` why
    it is open or not sure,
    the `ratio` and its interval beside the `limit`, and with `--accept` the `new_limit`, where it was written anew"""
    run: str | None
    """where what was measured is kept"""


def document(check: Check) -> Document:
    """The document of a check."""
    return Document(
        schema=3,
        file=str(check.path),
        on=check.on,
        breaks=check.breaks,
        leaves_open=check.leaves_open,
        accepted=check.is_accepted,
        uses=[_use(one) for one in check.uses],
        budgets=[_budget(one, check) for one in check.budgets],
        run=str(check.run) if check.run else None,
    )


def _use(one: CheckedUse) -> UseForm:
    return UseForm(
        use=one.use.name,
        family=one.use.family.name,
        setting=dict(one.use.cell),
        verdict=one.ruling,
        policies=[
            PolicyForm(
                policy=said.policy.name,
                verdict=said.ruling,
                missing=said.missing,
                rules=[_rule(one) for one in said.findings if one.ruling != "meets" or one.unneeded],
            )
            for said in one.judged
        ],
        threats=[
            ThreatForm(threat=threat, wanted=one.use.threats[threat], verdict=ruling, why=why)
            for threat, (ruling, why) in one.threats.items()
        ],
        standing=one.standing,
        standing_committed=one.use.standing,
        fell=[f"{said.by}, {said.where}: {said.says}" for said in one.fell.authority] if one.fell else [],
        missing=one.missing,
    )


def _rule(of: Finding) -> RuleForm:
    return RuleForm(
        rule=of.rule.id,
        policy=of.policy,
        clause=of.rule.clause,
        source=of.rule.source,
        checked=of.rule.checked,
        verdict=of.ruling,
        why=of.why,
        advice=of.rule.should,
        excepted_until=of.excepted and of.excepted.until,
        exception_ended=of.ended and of.ended.until,
        exception_not_needed=of.unneeded and of.unneeded.until,
    )


def _budget(one: CheckedBudget, check: Check) -> BudgetForm:
    budget, ratio = one.budget, one.ratio
    low, high = ends_of(ratio)
    return BudgetForm(
        budget=budget.name,
        family=budget.family,
        choice=budget.choice,
        against=budget.against,
        setting=dict(budget.setting),
        verdict=one.found,
        reason=one.reason,
        limit=budget.at_most,
        ratio=ratio and ratio.estimate,
        low=low,
        high=high,
        confidence=ratio and ratio.confidence,
        blocks=ratio.n if ratio else 0,
        noisy=ratio.is_noisy if ratio else None,
        libraries=list(one.libraries),
        ratio_when_set=budget.set_on and budget.set_on.ratio,
        libraries_when_set=list(budget.set_on.libraries) if budget.set_on else [],
        new_limit=one.new_limit if check.is_accepted else None,
    )
