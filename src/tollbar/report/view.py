"""One view of an analysed study: what is derived of it for showing is made once, and kept with it.

Page, terminal, Markdown, JSON and the words of decisions show the same study, and each needs the same names, places
and sentences. Whatever is decorated with `once` is made for the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # What measures nothing is answered without the judge, which takes longer to import than all else.
    from tollbar.analysis import StudyJudgement

T = TypeVar("T")


def once(make: Callable[[StudyJudgement], T]) -> Callable[[StudyJudgement], T]:
    """Have a value made once for each study. Nobody changes it: all that show the study have the same one."""

    @wraps(make)
    def made(study: StudyJudgement) -> T:
        if make not in study.view:
            study.view[make] = make(study)
        found: T = study.view[make]
        return found

    return made
