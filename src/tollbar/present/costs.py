"""Whose CPU time a study's cost is, in the words that stand beside every number of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tollbar.judge import StudyJudgement
from tollbar.study import Cost


@dataclass(frozen=True, slots=True)
class CostWords:
    """What one kind of cost is called."""

    title: str
    """At the head of an axis or a column."""
    short: str
    """In a list of things that are multiplied: `times the server CPU`."""
    column: str
    """At the head of a terminal's column."""
    in_sentence: str
    """As the object of a sentence: `server CPU per request`."""
    method: str
    """How it comes about."""


_IN_BLOCKS = (
    "In each block every cell is a fresh {}, in a heat with its baseline and a few other cells that is drawn anew: all"
    " are up at once on one core and work in turn, in random order, a few milliseconds at a time."
)

COST_WORDS: Mapping[Cost, CostWords] = {
    "cpu": CostWords(
        title="CPU time per operation",
        short="CPU time",
        column="CPU / op",
        in_sentence="CPU time per operation",
        method="Cost is CPU time per operation, user and system. " + _IN_BLOCKS.format("process"),
    ),
    "server-cpu": CostWords(
        title="Server CPU per request",
        short="server CPU",
        column="server CPU",
        in_sentence="server CPU per request",
        method="Through a server, cost is the CPU time per request, user and system, of all the server's processes."
        " They have one core and the load client another; nothing is in flight when the accounts are opened or closed,"
        " so that it is right even where the client is the bottleneck. " + _IN_BLOCKS.format("server"),
    ),
    "client-cpu": CostWords(
        title="Client CPU per request",
        short="client CPU",
        column="client CPU",
        in_sentence="client CPU per request",
        method="Here cost is the load client's own CPU time per request, user and system, and not the server's. "
        + _IN_BLOCKS.format("client"),
    ),
}


_FOUND = (
    "On a server of the user's own, cost is the CPU time per request, user and system, of its processes that were"
    " named and of all below them. It ran as it was found: one server for all blocks, on whichever cores it chose; what"
    " it did meanwhile for others, or by itself, is in the cost. " + _IN_BLOCKS.format("client")
)


def cost_words(study: StudyJudgement) -> CostWords:
    """What this study's cost is called."""
    words = COST_WORDS[study.about.measure.cost]
    is_found = study.about.remotes and study.about.measure.cost == "server-cpu"
    return replace(words, method=_FOUND) if is_found else words
