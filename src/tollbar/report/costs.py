"""Costs in words: the kind of CPU time, its owner, and its unit of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tollbar.catalog.families import Value
from tollbar.report.view import once

if TYPE_CHECKING:
    # Answers without measurements do without the judge, which takes longer to import than all else.
    from tollbar.analysis import StudyJudgement
    from tollbar.study import Cost


@dataclass(frozen=True, slots=True)
class CostWords:
    """Names of one kind of cost."""

    title: str
    """Name at the head of an axis or a column: `Server CPU per connection`."""
    cpu: str
    """Name with the owner of the CPU time: `67 µs of server CPU`."""
    short: str
    """Name in a list of multiples: `times the server CPU`."""
    column: str
    """Name at the head of a terminal's column."""
    in_sentence: str
    """Name as the object of a sentence: `server CPU per connection`."""
    method: str
    """Method of measuring it."""
    each: str = "operation"
    """Unit of work, which has the place of `{each}` in the names: `connection` where a study has nothing else."""


_IN_BLOCKS = (
    "In each block every cell is a fresh {}, in a batch with its baseline and a few other cells drawn at random: all"
    " are up at once on one core and work in turn, in random order, a few milliseconds at a time."
)
COST_WORDS: Mapping[Cost, CostWords] = {
    "cpu": CostWords(
        title="CPU time per operation",
        cpu="CPU",
        short="CPU time",
        column="CPU / op",
        in_sentence="CPU time per operation",
        method="Cost is CPU time per operation, user and system. " + _IN_BLOCKS.format("process"),
    ),
    "server-cpu": CostWords(
        title="Server CPU per {each}",
        cpu="server CPU",
        short="server CPU",
        column="server CPU",
        in_sentence="server CPU per {each}",
        method="Through a server, cost is the CPU time of an operation, user and system, of all the server's processes."
        " The load client's own is not counted, whether it shares their core in rounds, as it does unless the study"
        " says otherwise, or has another; nothing is in flight when the accounts are opened or closed. "
        + _IN_BLOCKS.format("server"),
    ),
    "client-cpu": CostWords(
        title="Client CPU per {each}",
        cpu="client CPU",
        short="client CPU",
        column="client CPU",
        in_sentence="client CPU per {each}",
        method="Here cost is the load client's own CPU time of an operation, user and system, and not the server's. "
        + _IN_BLOCKS.format("client"),
    ),
}
_NOUNS = {
    "authenticate": "tag",
    "connect": "connection",
    "connection": "connection",
    "context": "context",
    "decrypt": "decryption",
    "encrypt": "encryption",
    "first": "fresh process",
    "generate-key": "key",
    "hash": "hash",
    "request": "request",
    "round-trip": "round trip",
    "sign": "signature",
    "sign-on": "sign-on",
    "verify": "verification",
}
"""Names of one operation, in the field's words. Other operations are called by their own names."""
_FOUND = (
    "On a server of the user's own, cost is the CPU time of an operation, user and system, of its processes that were"
    " named and of all below them. It ran as it was found: one server for all blocks, on whichever cores it chose; its"
    " other work at that time is in the cost. " + _IN_BLOCKS.format("client")
)


@once
def cost_words(study: StudyJudgement) -> CostWords:
    """Return the names of this study's cost."""
    words = COST_WORDS[study.about.measure.cost]
    if study.about.measure.cost == "cpu":
        return words
    operations = {str(row.coordinates.get("op", "request")) for row in study.rows}
    only = operations.pop() if len(operations) == 1 else "operation"
    each = _NOUNS.get(only, only)
    is_found = study.about.remotes and study.about.measure.cost == "server-cpu"
    return replace(
        words,
        title=words.title.format(each=each),
        in_sentence=words.in_sentence.format(each=each),
        method=_FOUND if is_found else words.method,
        each=each,
    )


def each_words(study: StudyJudgement, operation: Value | None) -> str:
    """Return the words behind a cost of one operation: `of CPU a signature`."""
    return f"of {cost_words(study).cpu} {one_words(operation)}"


def one_words(operation: Value | None) -> str:
    """Return one operation in words: `a signature`; `an operation` if it is not known."""
    noun = "operation" if operation is None else _NOUNS.get(str(operation))
    return f"per {operation}" if noun is None else f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def sizes_of(study: StudyJudgement, coordinates: Mapping[str, Value]) -> dict[str, Value]:
    """Return the sizes that an operation works on, without which its cost means nothing."""
    settings = study.about.family.settings
    return {n: v for n, v in coordinates.items() if n in settings and settings[n].is_size}
