"""From a budget to the study that measures it, and from what was measured to whether it is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar import families, method, study
from tollbar.budgets.checked import Found
from tollbar.errors import TollbarError, unknown
from tollbar.judge import StudyJudgement, Toll
from tollbar.judge.decisions import jointly, reach
from tollbar.judge.trust import is_near
from tollbar.plan import Plan
from tollbar.policies import CostBudget, Processor, SetOn
from tollbar.stats import FEWEST_BLOCKS, Interval, Moments
from tollbar.study import Study

# What a limit needs at least beyond the interval that it is made of, and how well a ratio is to be known for one:
# intervals of ± 1 % on both sides, and this between them, leave room to find an increase of 5 %.
PRECISION = 0.01
# Neighbours on a core make unlike work dearer unlike: one kind by a third more than another where it was looked into
# (facts of the probe in METHOD.md). A noisy ratio is over a limit only beyond that.
NEIGHBOURS = 1.4
_NEIGHBOURS = "the core was not quiet, and neighbours alone may move a ratio so far"
_MAY_HAVE_NEIGHBOUR = (
    "cannot exclude a steady neighbour: first run on this processor, and one alone may move a ratio so far"
)
# Limits are written with so many significant figures, rounded up.
_FIGURES = 4


@dataclass(frozen=True, slots=True)
class CheckedBudget:
    """What came of a budget, and why."""

    budget: CostBudget
    found: Found
    reason: str | None = None
    """Why it is not known whether it is kept, or not sure."""
    toll: Toll | None = None
    ratio: Interval | None = None
    """As one of all that are checked at once: together they miss no oftener than one would."""

    @property
    def libraries(self) -> tuple[str, ...]:
        """What performed the two choices, with versions."""
        rows = [self.toll.row, self.toll.against] if self.toll else []
        found = (name for row in rows for name in (row.provider, row.server_version) if name)
        return tuple(dict.fromkeys(found))

    @property
    def is_noisy(self) -> bool:
        """Whether the ratio is noisy."""
        return self.ratio is not None and self.ratio.moments is Moments.ALL

    @property
    def is_sure(self) -> bool:
        """Whether it is not merely within by noisy moments, nearer to its limit than neighbours may move it."""
        return self.found is not Found.WITHIN or self.reason is None

    @property
    def can_be_set(self) -> bool:
        """Whether a limit can be made of what was measured: of quiet moments alone."""
        return self.ratio is not None and self.ratio.is_bounded and self.ratio.moments is Moments.QUIET

    @property
    def new_limit(self) -> float | None:
        """The limit that `--accept` writes; None where none can be made, and where the one there may stay.

        The end of the interval, and as much again as noise may make of equals, at least `PRECISION`: a run in which
        nothing changed then lies below it. One that is kept, and not twice as far away, stays as it is.
        """
        if not self.can_be_set or self.ratio is None:
            return None
        noise = self.toll.noise if self.toll else None
        margin = max(reach(noise) if noise else 1.0, 1 + PRECISION)
        made = _rounded_up(self.ratio.high * margin)
        old, set_on = self.budget.at_most, self.budget.set_on
        is_of_now = set_on is not None and set_on.method == method.VERSION
        if self.found is Found.WITHIN and old is not None and is_of_now and old <= made * margin:
            return None
        return made

    @property
    def finds(self) -> float | None:
        """An increase of this share is found by a run that is as precise, and noisy, as this one; None without a
        limit, and where nothing is known of the noise.

        Its interval must then lie beyond the limit, and the ratio further beyond than noise may make of equals.
        """
        limit = self.new_limit or self.budget.at_most
        noise = self.toll.noise if self.toll else None
        if limit is None or self.ratio is None or not self.ratio.is_bounded or noise is None:
            return None
        return limit * max(self.ratio.high / self.ratio.estimate, reach(noise)) / self.ratio.estimate - 1

    @property
    def is_precise(self) -> bool:
        """Whether a limit that is made of it will find small increases."""
        return self.can_be_set and self.ratio is not None and self.ratio.half_width <= PRECISION


def left_out(budgets: Sequence[CostBudget], here: Processor, *, accepts: bool) -> tuple[CheckedBudget, ...]:
    """Return the budgets that are not measured: their limits were set on another processor, or by another method.

    A limit of another method is measured where it is to be replaced.
    """
    reasons = ((one, _not_comparable(one.set_on, here, accepts=accepts)) for one in budgets if one.set_on)
    return tuple(CheckedBudget(one, Found.ELSEWHERE, reason) for one, reason in reasons if reason)


def _not_comparable(set_on: SetOn, here: Processor, *, accepts: bool) -> str | None:
    if set_on.processor != here:
        return f"its limit was set on {_differing(set_on.processor, here)}"
    if set_on.method != method.VERSION and not accepts:
        now = f"this is version {method.VERSION}: `tollbar check tolls --accept` measures it again"
        return f"its limit was set by version {set_on.method} of the method, and {now}"
    return None


def _differing(theirs: Processor, here: Processor) -> str:
    """In what the first of two processors is another one."""
    if theirs.cpu != here.cpu:
        return f"{theirs.cpu}, and this is {here.cpu}"
    if theirs.model != here.model:
        return f"{theirs.cpu} model {theirs.model}, and this is {here.model}"
    one, other = ({*processor.flags.split()} for processor in (theirs, here))
    return f"{theirs.cpu} with other instruction sets: {' '.join(sorted(one ^ other))}"


def study_of(budget: CostBudget) -> Study:
    """The study that measures a budget, named as it is. Raises TollbarError with the table and the nearest name."""
    family = families.family(budget.family, where=budget.where)
    for key, choice in (("choice", budget.choice), ("against", budget.against)):
        if choice not in family.choices and "=" not in choice:
            raise unknown(f"choice of {family.name}", choice, family.choices, where=f"{budget.where}: `{key}`")
    words = {name: str(value) for name, value in budget.setting.items()}
    several = next((f"{name}={value}" for name, value in words.items() if "," in value or "*" in value), None)
    if several or "," in budget.against or "=" in budget.choice:
        raise TollbarError(f"one value each, not `{several or budget.against}`", where=budget.where)
    name, differs, value = budget.against.partition("=")
    if differs:
        if name not in words:
            hint = f'as in `setting = {{ {name} = "…" }}`'
            raise TollbarError(f"`against` says `{name}`, and `setting` does not", where=budget.where, hint=hint)
        words[name] = f"{value},{words[name]}"
    choices = [budget.choice] if differs else [budget.choice, budget.against]
    said = [f"{name}={value}" for name, value in words.items()]
    try:
        question = study.of_words(family.name, [*dict.fromkeys(choices), *said], budget.against)
        return study.read(budget.name, question.text(FEWEST_BLOCKS), where=budget.where)
    except TollbarError as error:
        raise TollbarError(error.what, where=budget.where, hint=error.hint) from error


def refuse_other_than_one(planned: Plan, asked: Mapping[str, CostBudget]) -> None:
    """Raises TollbarError where a budget's words are about no comparison, or several."""
    for one in planned.studies:
        compared = [cell for cell in one.cells if cell.against not in (None, cell.key)]
        if len(compared) != 1:
            what = "nothing is compared" if not compared else f"{len(compared)} comparisons, of which a budget is one"
            providers = ", ".join(sorted({cell.provider.spec for cell in one.cells}))
            hint = f"its cells are of {providers}: say `provider` in `setting`"
            raise TollbarError(what, where=asked[one.study.name].where, hint=hint)


def judged(budget: CostBudget, of: StudyJudgement, among: int) -> CheckedBudget:
    """What came of a budget that was measured, as one of so many that are checked at once."""
    (toll,) = (one for one in of.tolls if one.row.key != one.against.key)
    if toll.ratio is None:
        return CheckedBudget(budget, Found.NOT_MEASURED, toll.reason, toll)
    ratio = jointly(toll.ratio, among)
    found, reason = _found(ratio, budget.at_most, toll)
    if found in (Found.WITHIN, Found.OVER) and is_near(ratio, budget.at_most or math.inf, of.trust):
        found, reason = Found.CANNOT_TELL, _MAY_HAVE_NEIGHBOUR
    return CheckedBudget(budget, found, reason, toll, ratio)


def _found(ratio: Interval, limit: float | None, toll: Toll) -> tuple[Found, str | None]:
    if limit is None:
        return Found.CANNOT_TELL, "it has no limit yet"
    if not ratio.is_bounded:
        return Found.CANNOT_TELL, "there are too few blocks for an interval"
    is_noisy = ratio.moments is Moments.ALL
    if ratio.high <= limit:
        return Found.WITHIN, _NEIGHBOURS if is_noisy and ratio.high * NEIGHBOURS > limit else None
    if ratio.low <= limit:
        return Found.CANNOT_TELL, "the limit lies within the interval"
    if toll.noise is None:
        return Found.CANNOT_TELL, "nothing was measured twice, so that nothing is known of the noise"
    if ratio.estimate <= limit * reach(toll.noise):
        return Found.CANNOT_TELL, "it is over by no more than what was measured twice may differ"
    if is_noisy and ratio.low <= limit * NEIGHBOURS:
        return Found.CANNOT_TELL, _NEIGHBOURS
    return Found.OVER, None


def _rounded_up(limit: float) -> float:
    """To four significant figures, the last one upwards."""
    step = 10.0 ** (math.floor(math.log10(limit)) + 1 - _FIGURES)
    return float(f"{math.ceil(round(limit / step, 6)) * step:.{_FIGURES}g}")
