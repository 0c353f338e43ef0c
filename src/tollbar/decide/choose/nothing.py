"""First sentences of `choose` if nothing qualifies: the last day of the choices that qualify today, and others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from tollbar.catalog.policies import Policy, Rule, Ruling, ruling_of
from tollbar.core.words import enumeration, few
from tollbar.decide.choose.answered import Answered, typed_name
from tollbar.decide.choosing import drops
from tollbar.decide.rulings import Candidate, Wanted, candidate
from tollbar.decide.shared import reason_words

# More names than this would hide the sentence.
MOST_NAMES = 2


@dataclass(frozen=True, slots=True)
class Lapsed:
    """Candidate that qualifies today, and no longer on the day in question."""

    before: Candidate
    first: date
    """First day on which it does not qualify."""
    after: Candidate
    """The candidate on that day."""


def nothing_sentences(of: Answered, names: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of an answer without a qualifying choice; about a later day, the rule and other choices."""
    wanted = of.wanted
    if wanted.on <= wanted.today:
        yield "Nothing qualifies."
        return
    yield f"Nothing qualifies on {wanted.on}."
    every = [*(one for place in of.places for one in place.dropping), *of.unmeasured]
    ended = [found for one in every if drops(wanted, one) and (found := _ended(wanted, one))]
    if ended:
        latest = max(one.first for one in ended)
        last = [one for one in ended if one.first == latest]
        called = [*dict.fromkeys(typed_name(of, one.before, names) for one in last)]
        qualify = "qualifies" if len(called) == 1 else "qualify"
        day = latest - timedelta(days=1)
        yield f"Until {day} {enumeration(few(called, MOST_NAMES))} {qualify}; then {_why(wanted, last[0], day)}."
    if of.instead:
        apart = _apart(of)
        others = [*dict.fromkeys(typed_name(of, one, apart) for one in of.instead)]
        qualify = "qualifies" if len(others) == 1 else "qualify"
        yield f"On that day {enumeration(few(others, MOST_NAMES))} {qualify} instead."
    else:
        yield f"No choice of the family {wanted.family.name} near the requested ones qualifies on that day."


def _ended(wanted: Wanted, one: Candidate) -> Lapsed | None:
    """Return the first day, of those on which a rule begins or ends, on which a candidate does not qualify."""
    turns = {day for policy in wanted.policies for day in policy.turns if wanted.today < day <= wanted.on}
    for day in sorted(turns):
        after = candidate(replace(wanted, on=day), one.coordinates)
        if after.ruling is not Ruling.MEETS:
            return Lapsed(one, day, after)
    return None


def _why(wanted: Wanted, one: Lapsed, last_day: date) -> str:
    """Return the rule that a candidate breaks from then on, or the rule that approved it and ended."""
    reason = next(iter((*one.after.broken, *one.after.missing)))
    words = reason_words(reason)
    if reason.rule is not None:
        return f"{words}, by the rule `{reason.rule.id}`"
    rules = _ending(wanted, one.before, last_day)
    ends = [f"the rule `{rule.id}` of {policy.name} ends ({rule.clause})" for policy, rule in rules]
    return f"{ends[0]}: {words}" if ends else words


def _ending(wanted: Wanted, one: Candidate, last_day: date) -> Sequence[tuple[Policy, Rule]]:
    """Return the rules on a candidate whose last day this is."""
    return [
        (part, rule)
        for policy in wanted.policies
        for part in policy.all_of_it
        for rule in part.rules
        if rule.ends == last_day
        and wanted.family.name in rule.families
        and ruling_of(rule, wanted.family, one.coordinates) is not None
    ]


def _apart(of: Answered) -> Sequence[str]:
    """Return the coordinates that distinguish the choices instead from each other, and from the requested ones."""
    every = [one.coordinates for one in of.instead]
    every += [one.coordinates for _, one in of.candidates(("choice",)).values()]
    settings = [name for name in of.wanted.family.settings if len({str(at[name]) for at in every if name in at}) > 1]
    return ["choice", *settings]
