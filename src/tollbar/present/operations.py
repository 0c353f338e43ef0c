"""Operations in words: what one of them is called behind a cost."""

from __future__ import annotations

from collections.abc import Mapping

from tollbar.families import Value
from tollbar.judge import StudyJudgement
from tollbar.present import words
from tollbar.present.costs import cost_words

_ONE = {
    "authenticate": "a tag",
    "connect": "a connection",
    "decrypt": "a decryption",
    "encrypt": "an encryption",
    "generate-key": "a key",
    "hash": "a hash",
    "request": "a request",
    "round-trip": "a round trip",
    "sign": "a signature",
    "sign-on": "a sign-on",
    "verify": "a verification",
}
"""One of each, in the words of the field. An operation that is not here is called by its name."""


def each(study: StudyJudgement, operation: Value | None) -> str:
    """What stands behind a cost of one operation: `a signature`; whose CPU time it is where that is the client's."""
    of = f"of {cost_words(study).short} " if study.about.measure.cost == "client-cpu" else ""
    if operation is None:
        return f"{of}an operation"
    return f"{of}{_ONE.get(str(operation), f'per {operation}')}"


def sizes_of(study: StudyJudgement, coordinates: Mapping[str, Value]) -> dict[str, Value]:
    """The sizes at which a cost stands, without which it says nothing: all that an operation works on."""
    settings = study.about.family.settings
    return {n: v for n, v in coordinates.items() if n in settings and settings[n].is_size}


def amount(nanoseconds: float) -> str:
    """A cost in words."""
    return words.amount(nanoseconds, "ns")
