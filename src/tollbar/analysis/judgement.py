"""What the judge hands on: all that is judged of a study, and of all studies of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tollbar.analysis.break_evens import BreakEven
from tollbar.analysis.claims import ClaimResult
from tollbar.analysis.contrasts import Contrast
from tollbar.analysis.crosstables import CrossTableResult
from tollbar.analysis.factors import FactorsResult
from tollbar.analysis.measurements import Measurement
from tollbar.analysis.scaling import ScalingResult
from tollbar.analysis.trust import Trust
from tollbar.analysis.verdicts import Toll
from tollbar.core.stats import Interval
from tollbar.results import Row, Run, StudyRun
from tollbar.study import Study


@dataclass(frozen=True, slots=True)
class StudyJudgement:
    """All that one study's trials say."""

    study: StudyRun
    confidence: float
    """Of every interval of this study: each further look leaves less error to spend."""
    noise_floor: float | None
    """How far from one A/A pairs came out, as a ratio above one: of the baseline where that was furthest."""
    noise: Interval | None
    """The ratio of these A/A pairs: what a true ×1.00 came out as."""
    measurements: tuple[Measurement, ...]
    tolls: tuple[Toll, ...]
    contrasts: tuple[Contrast, ...]
    claims: tuple[ClaimResult, ...]
    drift: float | None
    """The median change of the cells' cost from the first to the last third of the blocks, as a ratio."""
    trust: Trust
    tables: tuple[CrossTableResult, ...] = ()
    factors: tuple[FactorsResult, ...] = ()
    scaling: tuple[ScalingResult, ...] = ()
    """Each cell of several threads beside the same of one."""
    repeats: tuple[tuple[Row, Interval], ...] = ()
    """What was measured beside itself, and the ratio of its two costs: each baseline, and a cell of each other kind."""
    break_evens: tuple[BreakEven, ...] = ()
    compare: Callable[[Row, Row], Toll] | None = field(default=None, compare=False, repr=False)
    """What is judged of any two cells; None where only what stands above is known."""

    view: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)
    """What is derived of all this for showing, by what makes it. A study with other rows or tolls has another view."""

    @property
    def about(self) -> Study:
        """The question, and all that was planned to answer it."""
        return self.study.study

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.study.rows


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that a run says."""

    run: Run
    studies: tuple[StudyJudgement, ...]
