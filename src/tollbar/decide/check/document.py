"""`tollbar check --json`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated

from tollbar.catalog.families import Part
from tollbar.catalog.policies import CheckedUse, Judged, RuleFinding, SetOn
from tollbar.decide.check.checked import Check
from tollbar.report.json_forms.form import Document, Form, Number, Values, high_of, low_of, of, within


class RuleForm(Form):
    """A rule that is not simply met, or has an exception that is not needed."""

    rule: Annotated[str, of("rule.id")]
    policy: str
    clause: Annotated[str, of("rule.clause")]
    source: Annotated[str, of("rule.source")]
    checked: Annotated[bool, of("rule.checked")]
    verdict: Annotated[str, of("ruling")]
    why: str
    advice: Annotated[bool, of("rule.should")]
    excepted_until: Annotated[date | None, of("excepted.until")]
    exception_ended: Annotated[date | None, of("ended.until")]
    exception_not_needed: Annotated[date | None, of("unneeded.until")]


class PolicyForm(Form):
    policy: Annotated[str, of("policy.name")]
    verdict: Annotated[str, of("ruling")]
    missing: str | None
    rules: Annotated[list[RuleForm], of(lambda judged: _not_simply_met(judged))]


class ThreatForm(Form):
    threat: str
    wanted: str
    verdict: str
    why: str


class UseForm(Form):
    use: Annotated[str, of("use.name")]
    family: Annotated[str, of("use.family.name")]
    setting: Annotated[Values, of("use.cell")]
    verdict: Annotated[str, of("ruling")]
    policies: Annotated[list[PolicyForm], of("judged")]
    threats: Annotated[list[ThreatForm], of(lambda checked: _threats(checked))]
    standing: str
    standing_committed: Annotated[str | None, of("use.standing")]
    fell: Annotated[list[str], of(lambda checked: _authorities(checked.fell))]
    missing: str | None


class BudgetForm(Form):
    budget: Annotated[str, of("budget.name")]
    family: Annotated[str, of("budget.family")]
    choice: Annotated[str, of("budget.choice")]
    against: Annotated[str, of("budget.against")]
    setting: Annotated[Values, of("budget.setting")]
    verdict: Annotated[str, of("found")]
    reason: str | None
    limit: Annotated[Number, of("budget.at_most")]
    ratio: Annotated[Number, of("ratio.estimate")]
    low: Annotated[Number, low_of("ratio")]
    high: Annotated[Number, high_of("ratio")]
    confidence: Annotated[Number, of("ratio.confidence")]
    blocks: Annotated[int, of(lambda checked: checked.ratio.n if checked.ratio else 0)]
    noisy: Annotated[bool | None, of("ratio.is_noisy")]
    libraries: list[str]
    ratio_when_set: Annotated[Number, of("budget.set_on.ratio")]
    libraries_when_set: Annotated[list[str], of(lambda checked: _libraries_when_set(checked.budget.set_on))]
    new_limit: Annotated[Number, within(lambda checked, check: checked.new_limit if check.is_accepted else None)]


class CheckDocument(Document):
    file: Annotated[str, of(lambda check: str(check.path))]
    """the checked file"""
    on: date
    """the day that policies were asked about"""
    breaks: bool
    """whether something is not as it is to be: the status is then 1"""
    leaves_open: bool
    """whether something cannot be said, cannot be told, is not judged here, or is within its limit by a noisy ratio,
    and no further from it than neighbours may move it: with `--strict` the status is then 3"""
    accepted: Annotated[bool, of("is_accepted")]
    """whether standings and limits were to be written into the file: those are that are other than the file's"""
    uses: list[UseForm]
    """each use: its `verdict` (`meets`, `breaks`, `cannot say`), that of each of its `policies` with the `rules` that
    are not simply met, of each threat, and its `standing` next to the file's; `fell`: the authority of a worse one,
    and its place. A rule has the last day of its exception (`excepted_until`), of an ended one (`exception_ended`), or
    of one that is not needed because the rule is met (`exception_not_needed`)"""
    budgets: list[BudgetForm]
    """each budget: `verdict` (`within`, `over`, `cannot tell`, `not measured`, `not judged here`) with the `reason` why
    it is open or not sure, the `ratio` and its interval next to the `limit`, and with `--accept` the `new_limit`, if
    one was written"""
    run: Annotated[str | None, of(lambda check: str(check.run) if check.run else None)]
    """the directory of the run"""


def document(check: Check) -> CheckDocument:
    """Return the document of a check."""
    return CheckDocument.read(check, check)


def _not_simply_met(judged: Judged) -> Sequence[RuleFinding]:
    return [one for one in judged.findings if one.ruling != "meets" or one.unneeded]


def _threats(checked: CheckedUse) -> Sequence[ThreatForm]:
    return [
        ThreatForm(threat=threat, wanted=checked.use.threats[threat], verdict=ruling, why=why)
        for threat, (ruling, why) in checked.threats.items()
    ]


def _authorities(fell: Part | None) -> Sequence[str]:
    return [f"{said.by}, {said.where}: {said.says}" for said in fell.authority] if fell else []


def _libraries_when_set(set_on: SetOn | None) -> Sequence[str]:
    return set_on.libraries if set_on else ()
