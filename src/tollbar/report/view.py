"""View of an analysed study: values derived for the report, made once and kept with the study.

Page, terminal, Markdown, JSON and the words of decisions show the same study, and need the same names, places and
sentences. Functions decorated with `once` are run for the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # Answers without measurements do without the judge, which takes longer to import than all else.
    from tollbar.analysis import StudyJudgement

T = TypeVar("T")


def once(make: Callable[[StudyJudgement], T]) -> Callable[[StudyJudgement], T]:
    """Make a function run once for each study. Its value must not be changed, because all users share it."""

    @wraps(make)
    def made(study: StudyJudgement) -> T:
        if make not in study.view:
            study.view[make] = make(study)
        found: T = study.view[make]
        return found

    return made
