"""Shared parts of the decisions' answers: words of exceptions and reasons, and the page.

Each decision makes its answer as a `Brief`, which terminal, Markdown and page lay out; `page_of` makes the page.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tollbar.report.blocks import Boxed, Brief, Commands, Items, Paragraph, Section

if TYPE_CHECKING:
    from tollbar.catalog.policies import Except
    from tollbar.decide.rulings import Reason
    from tollbar.report.page import Page

__all__ = ["ended_words", "excepted_words", "page_of", "reason_words"]


def excepted_words(one: Reason) -> str:
    """Return the rule that an exception waives, the exception, and why the rule is not met."""
    assert one.rule
    assert one.excepted
    held = one.excepted
    return f"excepted from {one.policy} {one.rule.id} until {held.until}: {held.because} ({one.what})"


def ended_words(one: Except, to: str = "") -> str:
    """Return the words that an exception has ended; `to` is ` to POLICY RULE`, or empty where both are named before."""
    return f"its exception{to} ended on {one.until} ({one.because}) and no longer counts"


def reason_words(one: Reason) -> str:
    """Return the broken rule, or the missing fact, with its clause, and the exception that ended."""
    ended = f"; {ended_words(one.ended)}" if one.ended else ""
    return f"{one.what} ({one.policy}: {one.rule.clause}){ended}" if one.rule else one.what


def page_of(answer: Brief, command: Sequence[str]) -> Page:
    """Return the answer as a page, with the command that gives it again."""
    # Only where a page is asked for.
    from tollbar.report.page import Page

    again = Section("Reproduce", (Commands({"The same question": shlex.join(command)}),), "again")
    return Page(
        name=answer.question,
        title=answer.question,
        note="",
        contents=(),
        sections=(
            Section(
                "The answer",
                (
                    Paragraph(answer.headline, "answer"),
                    Items(answer.paragraphs),
                    *(Paragraph(line, "note") for line in answer.how),
                    *([Boxed("warnings", [Items(answer.warnings)])] if answer.warnings else []),
                    *answer.listings,
                    Items([*answer.missing, *answer.notes]),
                    *(Section(code.label, (code,)) for code in answer.codes),
                ),
                "answer",
            ),
            again,
        ),
    )
