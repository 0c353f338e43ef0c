"""The document of `tune`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, NamedTuple

from tollbar.decide.rulings import Candidate
from tollbar.decide.shared import reason_words
from tollbar.decide.tune import Asked, Tuning, pasted
from tollbar.decide.tune.words import parameter_words, rate_words, tune_answer, was_contended
from tollbar.report.blocks import Brief
from tollbar.report.json_forms.form import Document, Form, Number, Values, of, within


class LimitForm(Form):
    amount: Number
    by: str


class Took(Form):
    """Parameters, and the time of one hash with them at the requested concurrency."""

    parameters: Values
    median_s: Annotated[Number, of("elapsed.median_s")]
    p95_s: Annotated[Number, of("elapsed.p95_s")]
    cpu_s: Annotated[Number, of("elapsed.cpu_s")]
    hashes: Annotated[int, of("elapsed.hashes")]
    memory_bytes: int
    noisy: Annotated[bool, within(lambda measured, asked: was_contended(asked, measured.elapsed))]


class RateForm(Form):
    """Guesses a second as they were published, with the parameters that they were measured with."""

    per_second: Number
    parameters: Values
    tool: str
    source: Annotated[str, of(lambda rate: rate_words(rate))]


class GuessesForm(Form):
    """Guesses a second on one card."""

    card: Annotated[str, of("card.title")]
    published: Number
    by_memory: Number
    rate: RateForm | None


class TunedForm(Form):
    """A choice with the parameters that take as long as may be."""

    choice: Annotated[str, of("choice.name")]
    title: Annotated[str, of("choice.title")]
    parameters: Annotated[str, within(lambda tuned, asked: parameter_words(asked.family, tuned.measured.parameters))]
    provider: Annotated[str, of("provider.name")]
    ruling: Annotated[str, of("candidate.ruling")]
    standing: str
    took: Annotated[Took, of("measured")]
    within_5_percent: Annotated[bool, of("is_near")]
    beyond: Took | None
    guesses: GuessesForm
    missing: Annotated[list[str], of(lambda tuned: [reason_words(reason) for reason in tuned.candidate.missing])]
    advice: Annotated[list[str], of(lambda tuned: [reason_words(reason) for reason in tuned.candidate.advice])]
    paste: Annotated[
        dict[str, str | None], of(lambda tuned: dict(pasted(tuned.choice.name, tuned.measured.parameters)))
    ]
    measured: Annotated[list[Took], of("points")]


class MissedForm(Form):
    """A choice without such parameters."""

    choice: Annotated[str, of("choice.name")]
    title: Annotated[str, of("choice.title")]
    took: Annotated[Took | None, of("measured")]
    needs_bytes: int | None
    broken: Annotated[list[str], of(lambda missed: _broken(missed.candidate))]
    reason: str | None


class _TuneAnswer(NamedTuple):
    found: Tuning
    words: Brief


class TuneDocument(Document):
    policies: Annotated[list[str], of(lambda answer: [one.name for one in answer.found.asked.wanted.policies])]
    """the policies that are to be met"""
    on: Annotated[date, of("found.asked.wanted.on")]
    """the day on which they are asked"""
    within_s: Annotated[Number, of("found.asked.within_s")]
    """how long one hash may take, in seconds"""
    at_once: Annotated[int, of("found.asked.at_once")]
    """how many are under way meanwhile"""
    cores: Annotated[LimitForm, of("found.asked.limits.cores")]
    """number of usable cores, and the limit that decides it"""
    memory: Annotated[LimitForm, of(lambda answer: _memory(answer.found.asked))]
    """bytes that all hashes together may use, and the limit that decides it"""
    headline: Annotated[str, of("words.headline")]
    """the answer, in one sentence"""
    tuned: Annotated[list[TunedForm], of("found.tuned")]
    """hashes that meet the policies, fewest published guesses first: parameters, the time that one hash `took`, whether
    that is `within_5_percent` of the target, `guesses` a second as `published` and `by_memory` of a card, settings to
    `paste`, and all that was `measured`"""
    cannot_say: Annotated[list[TunedForm], of("found.unsaid")]
    """the same for undecided hashes, with the `missing` facts"""
    missed: Annotated[list[MissedForm], of("found.missed")]
    """hashes without such parameters: the cheapest allowed ones `took` too long or need too many bytes
    (`needs_bytes`), or the `broken` rules, or the `reason` why it could not be measured"""
    warnings: Annotated[list[str], of("words.warnings")]
    """notes that a reader needs first"""


def document(found: Tuning) -> TuneDocument:
    """Return the document of all that was found."""
    return TuneDocument.read(_TuneAnswer(found, tune_answer(found)), found.asked)


def _memory(asked: Asked) -> LimitForm:
    return LimitForm(amount=asked.memory_bytes, by=asked.memory_by)


def _broken(candidate: Candidate | None) -> Sequence[str]:
    return [reason_words(reason) for reason in candidate.broken] if candidate else ()
