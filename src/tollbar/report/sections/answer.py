"""Answer to a study's question: the recommended choice, its cost, and the costs of others compared with it.

The answer is the family's default; if that was not measured, the choice that protects as it does, in the best standing.

A cost is the measured one. A sentence claims that one choice costs more or less than another only if the two were
judged against each other; if it is known that they cost the same, if the run cannot distinguish them, or if
they were not compared, it reports that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tollbar.analysis import StudyJudgement
from tollbar.core.words import capitalised, enumeration, more, quoted
from tollbar.report.blocks import Choices
from tollbar.report.costs import cost_words
from tollbar.report.groups import cost_metric
from tollbar.report.sections.against import break_even
from tollbar.report.sections.alternatives import choices
from tollbar.report.sections.factors import factor_sentences, told_apart
from tollbar.report.sections.headline import in_short, line
from tollbar.report.sections.own_servers import compared
from tollbar.report.sections.scaling import is_asked, scaling_sentences
from tollbar.report.sections.self_test import self_test_sentences
from tollbar.report.sections.steps import MOST_NAMES
from tollbar.report.sections.telling import Finding, Telling, telling_of
from tollbar.report.view import once
from tollbar.report.ways import Place

# Findings for which an answer has room.
MOST_FINDINGS = 6


def headline(study: StudyJudgement) -> str:
    """Return the answer with its cost, the saving and losses of a cheaper choice, and the gains of a stronger one."""
    says = _of_no_alternatives(study)
    if says:
        return says[0]
    telling = telling_of(study)
    return line(telling, in_short(telling))


def _of_no_alternatives(study: StudyJudgement) -> tuple[str, ...]:
    """Return the answer of a study whose cells are not alternatives by cost; empty if they are alternatives.

    For factors: whether they add up; for servers of the user: how one compares with the other; for threads compared
    with one: the scaling; for a self-test: whether known ratios were measured.
    """
    if tested := self_test_sentences(study):
        return tested
    if told_apart(study):
        return factor_sentences(study)
    if servers := compared(study):
        return servers
    return scaling_sentences(study) if is_asked(study) else ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a study's question, in words and as a small chart."""

    says: tuple[str, ...]
    """Headline, then a paragraph for each finding: the costs of recommended or acceptable choices, then the rest."""
    choices: Choices


def answer(study: StudyJudgement) -> tuple[str, ...]:
    """Return the sentences of the answer: the headline, then a paragraph for each finding."""
    return whole_answer(study).says


@once
def whole_answer(study: StudyJudgement) -> Answer:
    """Return the answer, with its alternatives."""
    if says := _of_no_alternatives(study):
        return Answer(says, Choices(says[0]))
    telling = telling_of(study)
    short = in_short(telling)
    told = telling.findings[:MOST_FINDINGS]
    rest = [_paragraph(telling, finding, first=finding is told[0]) for finding in told]
    left = len(telling.findings) - MOST_FINDINGS
    if left > 0:
        rest.append(f"The charts show {more(left, 'place')} with another answer.")
    pays = (break_even(study, one) for one in study.break_evens)
    says = (line(telling, short), *filter(None, rest), *pays, *scaling_sentences(study))
    return Answer(says, choices(telling, short))


def _paragraph(telling: Telling, finding: Finding, *, first: bool) -> str:
    """Return one finding in full: why it is the answer, its place, and the costs of the others and of none."""
    place = finding.places[0]
    sentences = (
        []
        if finding.first is None
        else [*_why(telling, finding, first), _counted(telling, finding, first), *_among(telling, place)]
    )
    sentences += [_not_good(telling, place), *telling.protection(place)]
    where = telling.head(place)
    head = f"{capitalised(where)}: " if where else ""
    opening, *others = filter(None, sentences)
    said = [f"{head}{opening if head else capitalised(opening)}.", *(f"{capitalised(o)}." for o in others)]
    return " ".join(said)


def _why(telling: Telling, finding: Finding, first: bool) -> list[str]:
    """Return why the answer is the default, or which default was not measured; once an answer."""
    default, place = telling.study.about.family.default, finding.places[0]
    if default is None or place.answer is None or place.is_of_one_choice or not first or len(place.ways) < 2:
        return []
    if place.default is None:
        return [f"{quoted(finding.first or '')} is the default: {default.reason}"]
    return [f"the default, {quoted(telling.default_words(place))}, was not measured here: {default.reason}"]


def _counted(telling: Telling, finding: Finding, first: bool) -> str:
    """Return the rank of the answer by cost, and the number of further places with the same answer."""
    name = "it" if len(telling.findings) == 1 else quoted(finding.first or "")
    whose = f"by {cost_words(telling.study).in_sentence}, " if first and cost_metric(telling.study) != "cpu" else ""
    return "; ".join([telling.ranked(finding.places[0], name, whose), *_elsewhere(telling, finding.places[1:])])


def _elsewhere(telling: Telling, others: Sequence[Place]) -> Iterator[str]:
    """Yield the further places with the same answer, by whether others cost less there: a single one by its name."""
    alone = [place for place in others if len(place.good) == 1]
    less = [place for place in others if telling.costs_more(place)]
    for places, what in (
        ([place for place in others if place not in (*alone, *less)], "is also the answer; none is known to cost less"),
        (less, "is also the answer, and others cost less"),
        (alone, "is the only one"),
    ):
        if len(places) == 1 and places[0] not in alone:
            yield f"{telling.head(places[0])} {telling.ranked(places[0], 'it')}"
        elif places:
            yield f"{telling.head(places[0]) if len(places) == 1 else f'in {len(places)} other places'} it {what}"


def _among(telling: Telling, place: Place) -> list[str]:
    """Return the costs of the other recommended or acceptable choices compared with the answer."""
    best, rest = place.answer, telling.others(place)
    if len(rest) <= MOST_NAMES:
        return [enumeration([telling.with_losses(way, best) for way in rest])] if best else []
    last = rest[-1]
    first_of_them = telling.with_losses(rest[0], best) if best else telling.compared(rest[0], best)
    others = f"{len(rest)} other {telling.options_words(len(rest))}"
    return [f"among the {others}, {first_of_them}; {telling.highest(last, best)}", *_stronger(telling, place)]


def _stronger(telling: Telling, place: Place) -> list[str]:
    """Return the cheapest recommended or acceptable choice of each strength above the answer's."""
    return [
        f"{quoted(telling.label(way.row))} has the lowest cost with {way.row.strength} bits, {way.words}"
        for way in telling.above(place)
    ][:MOST_NAMES]


def _not_good(telling: Telling, place: Place) -> str:
    """Return the savings or costs of choices that are deprecated or worse."""
    bad, best = place.others, place.answer
    if len(bad) <= MOST_NAMES:
        return enumeration([telling.compared(way, best) for way in bad])
    return f"among {len(bad)} that are not approved, {telling.compared(bad[0], best)}; {telling.highest(bad[-1], best)}"
