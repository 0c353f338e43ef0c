"""The document of `tune`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from tollbar.document.schema import Form, Number, Values
from tollbar.families import Value
from tollbar.present.decisions.tune import parameter_words, rate_words, reason_words, tune_answer, was_contended
from tollbar.tuning import Asked, Measured, Missed, Tuned, Tuning, pasted


class Limit(Form):
    amount: Number
    by: str


class Took(Form):
    """Parameters, and how long one hash with them took with so many at once."""

    parameters: Values
    median_s: Number
    p95_s: Number
    cpu_s: Number
    hashes: int
    memory_bytes: int
    noisy: bool


class Published(Form):
    """Guesses a second as they were published, with the parameters that they were measured with."""

    per_second: Number
    parameters: Values
    tool: str
    source: str


class Guesses(Form):
    """Guesses a second on one card."""

    card: str
    published: Number
    by_memory: Number
    rate: Published | None


class TunedForm(Form):
    """A choice with the parameters that take as long as may be."""

    choice: str
    title: str
    parameters: str
    provider: str
    ruling: str
    standing: str
    took: Took
    within_5_percent: bool
    beyond: Took | None
    guesses: Guesses
    missing: list[str]
    advice: list[str]
    paste: dict[str, str | None]
    measured: list[Took]


class MissedForm(Form):
    """A choice without such parameters."""

    choice: str
    title: str
    took: Took | None
    needs_bytes: int | None
    broken: list[str]
    reason: str | None


class Document(Form):
    schema_: Literal[3] = Field(default=3, alias="schema")
    """the number of this form"""
    policies: list[str]
    """the policies that are to be met"""
    on: str
    """the day on which they are asked"""
    within_s: Number
    """how long one hash may take, in seconds"""
    at_once: int
    """how many are under way meanwhile"""
    cores: Limit
    """how many cores' worth of time there is here, and what says so"""
    memory: Limit
    """how many bytes all at once may take, and what says so"""
    headline: str
    """what was found, in one sentence"""
    tuned: list[TunedForm]
    """what meets the policies, from what an attacker gets least of as published: parameters, how long one `took`,
    whether that is `within_5_percent`, `guesses` a second as `published` and `by_memory` of a card, what to `paste`
    where, and all that was `measured` of it"""
    cannot_say: list[TunedForm]
    """the same of what breaks no rule, with what is `missing` to say more"""
    missed: list[MissedForm]
    """what has no such parameters: the least that would be allowed `took` too long, `needs_bytes` too many, or the
    rules `broken`, or the `reason` why it could not be measured"""
    warnings: list[str]
    """what a reader should know first"""


def document(found: Tuning) -> Document:
    """All that was found."""
    asked, answer = found.asked, tune_answer(found)
    return Document(
        policies=[policy.name for policy in asked.wanted.policies],
        on=asked.wanted.on.isoformat(),
        within_s=asked.within_s,
        at_once=asked.at_once,
        cores=Limit(amount=asked.limits.cores.amount, by=asked.limits.cores.by),
        memory=Limit(amount=asked.memory_bytes, by=asked.memory_by),
        headline=answer.headline,
        tuned=[_tuned(asked, one) for one in found.tuned],
        cannot_say=[_tuned(asked, one) for one in found.unsaid],
        missed=[_missed(asked, one) for one in found.missed],
        warnings=list(answer.warnings),
    )


def _tuned(asked: Asked, one: Tuned) -> TunedForm:
    guesses = one.guesses
    return TunedForm(
        choice=one.choice.name,
        title=one.choice.title,
        parameters=parameter_words(asked.family, one.measured.parameters),
        provider=one.provider.name,
        ruling=one.candidate.ruling,
        standing=one.standing,
        took=_took(asked, one.measured),
        within_5_percent=one.is_near,
        beyond=_took(asked, one.beyond) if one.beyond else None,
        guesses=Guesses(
            card=guesses.card.title,
            published=guesses.published,
            by_memory=guesses.by_memory,
            rate=Published(
                per_second=guesses.rate.per_second,
                parameters=_values(guesses.rate.parameters),
                tool=guesses.rate.tool,
                source=rate_words(guesses.rate),
            )
            if guesses.rate
            else None,
        ),
        missing=[reason_words(reason) for reason in one.candidate.missing],
        advice=[reason_words(reason) for reason in one.candidate.advice],
        paste=dict(pasted(one.choice.name, one.measured.parameters)),
        measured=[_took(asked, point) for point in one.points],
    )


def _missed(asked: Asked, one: Missed) -> MissedForm:
    return MissedForm(
        choice=one.choice.name,
        title=one.choice.title,
        took=_took(asked, one.measured) if one.measured else None,
        needs_bytes=one.needs_bytes,
        broken=[reason_words(reason) for reason in one.candidate.broken] if one.candidate else [],
        reason=one.reason,
    )


def _took(asked: Asked, one: Measured) -> Took:
    elapsed = one.elapsed
    return Took(
        parameters=_values(one.parameters),
        median_s=elapsed.median_s,
        p95_s=elapsed.p95_s,
        cpu_s=elapsed.cpu_s,
        hashes=elapsed.hashes,
        memory_bytes=one.memory_bytes,
        noisy=was_contended(asked, elapsed),
    )


def _values(parameters: Mapping[str, Value]) -> Values:
    return dict(parameters)
