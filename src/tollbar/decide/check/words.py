"""Answer of `tollbar check`: rules that a project's uses break, and budgets over their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tollbar.catalog.families import Authority
from tollbar.catalog.policies import CheckedUse, Except, RuleFinding, Ruling
from tollbar.core.words import counted, enumeration
from tollbar.decide.check.checked import BudgetVerdict, Check, CheckedBudget
from tollbar.decide.shared import ended_words
from tollbar.report.blocks import DASH, Brief, Listing, Table, TableCell, numbers, row_names, texts
from tollbar.report.numbers import NOISY, bracket_exactly, marked, percent, percent_of

_GOOD: Mapping[str, bool] = {
    Ruling.MEETS: True,
    Ruling.BREAKS: False,
    BudgetVerdict.WITHIN: True,
    BudgetVerdict.OVER: False,
    BudgetVerdict.NOT_MEASURED: False,
}


def answer(check: Check) -> Brief:
    """Return the answer in the brief form."""
    listings = []
    if check.uses:
        listings.append(_policies(check.uses))
    if check.budgets:
        listings.append(_tolls(check))
    if check.is_accepted:
        listings.append(Listing("Accepted", [*_accepted(check)] or ["Nothing: the file is up to date."]))
    found = (
        *_counts("use", [one.ruling for one in check.uses], _OF_USES),
        *_counts("budget", [_counted(one, check) for one in check.budgets], _OF_BUDGETS),
    )
    question = f"Does {check.path} meet its policies and budgets on {check.on}?"
    return Brief(question, f"{'; '.join(found)}.", listings=listings)


# Singular and plural, failures first.
_OF_USES: Mapping[str, tuple[str, str]] = {
    Ruling.BREAKS: ("breaks its policies", "break their policies"),
    Ruling.CANNOT_SAY: ("is undecided", "are undecided"),
    Ruling.MEETS: ("meets its policies", "meet their policies"),
}
_OF_BUDGETS: Mapping[str, tuple[str, str]] = {
    BudgetVerdict.OVER: ("is over its limit", "are over their limits"),
    BudgetVerdict.NOT_MEASURED: ("could not be measured", "could not be measured"),
    BudgetVerdict.CANNOT_TELL: ("is undecided", "are undecided"),
    BudgetVerdict.ELSEWHERE: ("is not judged here", "are not judged here"),
    "accepted": ("has a new limit", "have new limits"),
    "within, noisy": ("is within its limit, noisy", "are within their limits, noisy"),
    BudgetVerdict.WITHIN: ("is within its limit", "are within their limits"),
}


def _counts(what: str, found: Sequence[str], words: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the count of each verdict, in the order of these words."""
    for one, (single, several) in words.items():
        count = found.count(one)
        if count:
            of = counted(len(found), what) if count == len(found) else f"{count} of {counted(len(found), what)}"
            yield f"{of} {single if count == 1 else several}"


def _policies(uses: Sequence[CheckedUse]) -> Listing:
    columns = (*row_names("use", "choice"), *texts("requirement", "verdict"))
    rows = [
        [TableCell(use.use.name), TableCell(str(use.use.cell["choice"])), TableCell(by), _ruling(ruling)]
        for use in uses
        for by, ruling in _asked(use)
    ]
    named = {
        f"{finding.policy}: {finding.rule.source}": None
        for use in uses
        for one in use.judged
        for finding in one.findings
        if finding.ruling is not Ruling.MEETS
    }
    return Listing(
        "Policies",
        # A policy that several others extend gives the same sentence for each.
        [*dict.fromkeys(line for use in uses for line in _broken(use))],
        tables=[Table("", columns, rows)],
        notes=[*dict.fromkeys(line for use in uses for line in _besides(use)), *named],
    )


def _asked(use: CheckedUse) -> Iterator[tuple[str, Ruling]]:
    """Yield the policies, threats and standings required of a use, each with its ruling."""
    for one in use.judged:
        yield one.policy.name, one.ruling
    for threat, (ruling, _) in use.threats.items():
        yield f"threat {threat}", ruling
    if use.use.standing is not None:
        yield f"standing {use.use.standing.words}", Ruling.BREAKS if use.fell else Ruling.MEETS
    if use.missing:
        yield "no policy", Ruling.CANNOT_SAY


def _ruling(ruling: Ruling) -> TableCell:
    return TableCell(ruling.words, good=_GOOD.get(ruling))


def _broken(use: CheckedUse) -> Iterator[str]:
    """Yield a sentence for each violation, with its clause."""
    name = use.use.name
    for one in use.judged:
        for finding in one.broken:
            yield f"{name} breaks {_rule(finding)}: {finding.why}{_ended(finding.ended)}."
    for ruling, why in use.threats.values():
        if ruling is Ruling.BREAKS:
            yield f"{name} does {why}."
    if use.fell and use.use.standing:
        by = "; ".join(map(_authority, use.fell.authority))
        fell = f"from {use.use.standing.words} to {use.standing.words}"
        yield f"{name}: its standing fell {fell}: {use.fell.title}, {by}."


def _besides(use: CheckedUse) -> Iterator[str]:
    """Yield open rulings with the missing facts, exceptions that hold, and advice that is not followed."""
    name = use.use.name
    for one in use.judged:
        for finding in one.unknown:
            yield f"It is undecided whether {name} meets {_rule(finding)}: {finding.why}{_ended(finding.ended)}."
        if one.missing:
            yield f"It is undecided whether {name} meets {one.policy.name}: {one.missing}."
        for finding in one.findings:
            if finding.excepted:
                until = f"until {finding.excepted.until}: {finding.excepted.because}"
                yield f"{name} need not meet {_rule(finding)} {until}."
            if finding.unneeded:
                end = f"which is until {finding.unneeded.until}"
                yield f"{name} meets {_rule(finding)}, and does not need its exception, {end}."
        for finding in one.advice:
            yield f"{name} does not follow the advice of {_rule(finding)}: {finding.why}."
    for threat, (ruling, why) in use.threats.items():
        if ruling is Ruling.CANNOT_SAY:
            yield f"It is undecided whether {name} mitigates {threat}: {why.removeprefix(f'{threat}: ')}."
    if use.missing:
        yield f"{name} cannot be judged: {use.missing}."
    if use.is_bad_unasked:
        best = "" if use.is_standing_sure else " at best"
        yield f"{name}: its standing is {use.standing.words}{best}, which no policy here forbids."


def _rule(of: RuleFinding) -> str:
    unread = "" if of.rule.checked else "; the clause was not read"
    return f"{of.policy} ({of.rule.clause}{unread})"


def _ended(ended: Except | None) -> str:
    return f"; {ended_words(ended)}" if ended else ""


def _authority(one: Authority) -> str:
    return f"{one.by}, {one.where}: “{one.says}”"


def _tolls(check: Check) -> Listing:
    budgets = check.budgets
    columns = (
        *row_names("budget"),
        *texts("choice, baseline"),
        *numbers("ratio"),
        *texts("interval"),
        *numbers("limit"),
    )
    rows = [
        [
            TableCell(one.budget.name),
            TableCell(f"{one.budget.choice}, {one.budget.against}"),
            TableCell(_times(one.ratio.estimate)) if one.ratio else DASH,
            TableCell(bracket_exactly(one.ratio)) if one.ratio else DASH,
            TableCell(_times(one.budget.at_most)) if one.budget.at_most else DASH,
            TableCell(marked(verdict, one.is_noisy, gap=" "), good=_GOOD.get(verdict)),
        ]
        for one in budgets
        for verdict in (_verdict(one, check),)
    ]
    table = Table("", (*columns, *texts("verdict")), rows)
    notes = [line for one in budgets if _verdict(one, check) != "accepted" for line in _of_budget(one)]
    confidence = next((one.ratio.confidence for one in budgets if one.ratio), None)
    several = sum(one.ratio is not None for one in budgets)
    if several > 1 and confidence:
        notes.append(f"Each interval has {percent(confidence)} confidence, so that all {several} hold jointly.")
    return Listing("Tolls", tables=[table], notes=[*notes, *([NOISY] * any(one.is_noisy for one in budgets))])


def _verdict(one: CheckedBudget, check: Check) -> str:
    """Return the verdict on a budget, or `accepted` if it has a new limit."""
    return "accepted" if check.is_accepted and one.new_limit else one.found


def _counted(one: CheckedBudget, check: Check) -> str:
    """Return the verdict under which the answer counts a budget; a noisy one is separate."""
    verdict = _verdict(one, check)
    return f"{verdict}, noisy" if verdict == BudgetVerdict.WITHIN and not one.is_sure else verdict


def _times(ratio: float) -> str:
    """Return a ratio with the four figures of limits."""
    return f"×\u00a0{ratio:.4g}"


def _of_budget(one: CheckedBudget) -> Iterator[str]:
    name, set_on = one.budget.name, one.budget.set_on
    if one.found is BudgetVerdict.OVER and one.ratio and one.budget.at_most:
        least = percent_of(one.ratio.low / one.budget.at_most - 1)
        was = f"; when the limit was set it was {_times(set_on.ratio)}" if set_on else ""
        yield f"{name} is over its limit by at least {least}{was}."
        if set_on and set_on.libraries != one.libraries:
            then, now = enumeration(set_on.libraries), enumeration(one.libraries)
            yield f"{name}: its limit was set with {then}; this is {now}."
    elif one.reason:
        yield f"{name}, {one.found}: {one.reason}."


def _accepted(check: Check) -> Iterator[str]:
    for use in check.uses:
        if use.is_standing_sure and use.standing != use.use.standing:
            was = f", was {use.use.standing.words}" if use.use.standing else ""
            yield f"{use.use.name}: standing {use.standing.words}{was}."
    for one in check.budgets:
        if one.new_limit:
            finds = f"a run like this one detects a rise of {percent_of(one.finds)} or more" if one.finds else ""
            was = f", was {_times(one.budget.at_most)}" if one.budget.at_most else ""
            yield (
                f"{one.budget.name}: at most {_times(one.new_limit)}{was}; "
                f"{finds or 'the smallest rise that a run detects is not known, because there is no A/A pair'}."
            )
        elif one.ratio and not one.can_be_set:
            yield f"{one.budget.name}: no limit was written, because the core was quiet too rarely."
