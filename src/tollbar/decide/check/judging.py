"""Study of a budget, and the verdict on the budget from its measurement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tollbar import study
from tollbar.analysis import StudyJudgement, Toll
from tollbar.analysis.decisions import jointly, reach
from tollbar.analysis.trust import is_near
from tollbar.catalog import families
from tollbar.catalog.policies import CostBudget, Processor, SetOn
from tollbar.core import method
from tollbar.core.errors import TollbarError, unknown
from tollbar.core.intervals import FEWEST_BLOCKS, Interval, Moments
from tollbar.decide.check.checked import BudgetVerdict, CheckedBudget
from tollbar.study import Study
from tollbar.study.plan import Plan

# Neighbours on a core slow different kinds of work differently: by a third in the cases examined (facts of the probe in
# METHOD.md). A noisy ratio is over a limit only beyond that.
NEIGHBOURS = 1.4
_NEIGHBOURS = "the core was not quiet, and neighbours alone can change a ratio this much"
_MAY_HAVE_NEIGHBOUR = (
    "cannot exclude a steady neighbour, which alone can change a ratio this much: first run on this processor"
)


def left_out(budgets: Sequence[CostBudget], here: Processor, *, accepts: bool) -> tuple[CheckedBudget, ...]:
    """Return the budgets that are not measured: their limits were set on another processor, or by another method.

    A limit of another method is measured where it is to be replaced.
    """
    reasons = ((one, _not_comparable(one.set_on, here, accepts=accepts)) for one in budgets if one.set_on)
    return tuple(CheckedBudget(one, BudgetVerdict.ELSEWHERE, reason) for one, reason in reasons if reason)


def _not_comparable(set_on: SetOn, here: Processor, *, accepts: bool) -> str | None:
    if set_on.processor != here:
        return f"its limit was set on {_differing(set_on.processor, here)}"
    if set_on.method != method.VERSION and not accepts:
        now = f"this is version {method.VERSION}: `tollbar check tolls --accept` measures it again"
        return f"its limit was set by version {set_on.method} of the method, and {now}"
    return None


def _differing(theirs: Processor, here: Processor) -> str:
    """Return the words for the difference of the first of two processors from the second."""
    if theirs.cpu != here.cpu:
        return f"{theirs.cpu}, and this is {here.cpu}"
    if theirs.model != here.model:
        return f"{theirs.cpu} model {theirs.model}, and this is {here.model}"
    one, other = ({*processor.flags.split()} for processor in (theirs, here))
    return f"{theirs.cpu} with other instruction sets: {' '.join(sorted(one ^ other))}"


def study_of(budget: CostBudget) -> Study:
    """Return the study that measures a budget, with the budget's name.

    Raises TollbarError with the table and the nearest name.
    """
    family = families.family(budget.family, where=budget.where)
    for key, choice in (("choice", budget.choice), ("against", budget.against)):
        if choice not in family.choices and "=" not in choice:
            raise unknown(f"choice of {family.name}", choice, family.choices, where=f"{budget.where}: `{key}`")
    words = {name: str(value) for name, value in budget.setting.items()}
    several = next((f"{name}={value}" for name, value in words.items() if "," in value or "*" in value), None)
    if several or "," in budget.against or "=" in budget.choice:
        shown = several or (budget.against if "," in budget.against else budget.choice)
        raise TollbarError(f"`{shown}` must be one value; a budget compares two cells", where=budget.where)
    name, differs, value = budget.against.partition("=")
    if differs:
        if name not in words:
            hint = f'for example `setting = {{ {name} = "…" }}`'
            raise TollbarError(f"`against` has `{name}`, so `setting` needs it too", where=budget.where, hint=hint)
        words[name] = f"{value},{words[name]}"
    choices = [budget.choice] if differs else [budget.choice, budget.against]
    said = [f"{name}={value}" for name, value in words.items()]
    try:
        question = study.of_words(family.name, [*dict.fromkeys(choices), *said], budget.against)
        return study.read(budget.name, question.text(FEWEST_BLOCKS), where=budget.where)
    except TollbarError as error:
        raise TollbarError(error.what, where=budget.where, hint=error.hint) from error


def refuse_other_than_one(planned: Plan, asked: Mapping[str, CostBudget]) -> None:
    """Raise TollbarError if a budget's words give no comparison, or several."""
    for one in planned.studies:
        compared = [cell for cell in one.cells if cell.against not in (None, cell.key)]
        if len(compared) != 1:
            counted = f"{len(compared)} comparisons" if compared else "no comparison"
            what = f"{counted}; a budget must be exactly one"
            providers = ", ".join(sorted({cell.provider.spec for cell in one.cells}))
            hint = f"its cells are of {providers}; add `provider` to `setting`"
            raise TollbarError(what, where=asked[one.study.name].where, hint=hint)


def judged(budget: CostBudget, of: StudyJudgement, among: int) -> CheckedBudget:
    """Return the verdict on a measured budget, as one of `among` that are checked at once."""
    (toll,) = (one for one in of.tolls if one.row.key != one.against.key)
    if toll.ratio is None:
        return CheckedBudget(budget, BudgetVerdict.NOT_MEASURED, toll.reason, toll)
    ratio = jointly(toll.ratio, among)
    found, reason = _found(ratio, budget.at_most, toll)
    if found in (BudgetVerdict.WITHIN, BudgetVerdict.OVER) and is_near(ratio, budget.at_most or math.inf, of.trust):
        found, reason = BudgetVerdict.CANNOT_TELL, _MAY_HAVE_NEIGHBOUR
    noise_reach = reach(toll.noise) if toll.noise else None
    return CheckedBudget(budget, found, reason, toll, ratio, ratio.moments is Moments.ALL, noise_reach)


def _found(ratio: Interval, limit: float | None, toll: Toll) -> tuple[BudgetVerdict, str | None]:
    if limit is None:
        return BudgetVerdict.CANNOT_TELL, "it has no limit yet"
    if not ratio.is_bounded:
        return BudgetVerdict.CANNOT_TELL, "there are too few blocks for an interval"
    is_noisy = ratio.moments is Moments.ALL
    if ratio.high <= limit:
        return BudgetVerdict.WITHIN, _NEIGHBOURS if is_noisy and ratio.high * NEIGHBOURS > limit else None
    if ratio.low <= limit:
        return BudgetVerdict.CANNOT_TELL, "the limit lies within the interval"
    if toll.noise is None:
        return BudgetVerdict.CANNOT_TELL, "there is no A/A pair, so the noise is not known"
    if ratio.estimate <= limit * reach(toll.noise):
        return BudgetVerdict.CANNOT_TELL, "it is over the limit by no more than A/A pairs may differ"
    if is_noisy and ratio.low <= limit * NEIGHBOURS:
        return BudgetVerdict.CANNOT_TELL, _NEIGHBOURS
    return BudgetVerdict.OVER, None
