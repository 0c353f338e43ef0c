"""Every shipped study with made-up costs for all cells that it would measure here."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from builders import row_of
from tollbar import study
from tollbar.analysis import StudyJudgement, judge_study
from tollbar.results import Row, StudyRun
from tollbar.study import plan
from tollbar.study.plan import StudyPlan

BLOCKS = 8
# From a million times cheaper to a thousand times more expensive: the range of password hashes.
DECADES = (-6.0, 3.0)


@cache
def loaded(name: str) -> tuple[study.Study, ...]:
    """Return a shipped study, or those of a set, read once: many tests are made of them before the first is run."""
    return tuple(study.load([name]))


def shipped() -> list[str]:
    """Return the names of all studies, those in sets by set and name."""
    return [f"{name}/{one.name}" for name in study.shipped() for one in loaded(name)]


@cache
def planned(name: str) -> StudyPlan:
    """Return the plan of a shipped study, by its set and name."""
    folder, _, its_own = name.partition("/")
    (asked,) = [one for one in loaded(folder) if one.name == its_own]
    return plan.make([asked], seed=1).studies[0]


@cache
def fabricated(name: str) -> StudyJudgement:
    """Return the judgement of a shipped study with made-up costs; some of its cells failed."""
    asked = planned(name).study
    rows = tuple(_rows(planned(name), random.Random(name)))
    return judge_study(StudyRun(replace(asked, measure=replace(asked.measure, blocks=BLOCKS)), rows, (), (BLOCKS,)))


def _rows(planned: StudyPlan, chance: random.Random) -> Iterator[Row]:
    for number, cell in enumerate(planned.cells):
        # Some nearly equal, some far apart, and one in eleven missing.
        decades = chance.gauss(0, 0.02) if number % 3 else chance.uniform(*DECADES)
        middle_ns = 1000.0 * (1.0 if cell.is_baseline else 10**decades)
        failed = not cell.is_baseline and number % 11 == 10
        costs, repeats = ([middle_ns * (1 + chance.gauss(0, 0.01)) for _ in range(BLOCKS)] for _ in range(2))
        yield row_of(cell, costs, repeats, f"{cell.choice.title} is not in this library" if failed else None)
