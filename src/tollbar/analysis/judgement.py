"""Judgement: the values that the judge returns for a study, and for all studies of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tollbar.analysis.break_evens import BreakEven
from tollbar.analysis.claims import ClaimResult
from tollbar.analysis.contrasts import Contrast
from tollbar.analysis.crosstables import CrossTableResult
from tollbar.analysis.factors import FactorsResult
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.measurements import Measurement
from tollbar.analysis.scaling import ScalingResult
from tollbar.analysis.trust import Trust
from tollbar.analysis.verdicts import Toll
from tollbar.core.intervals import Interval
from tollbar.results import Row, Run, StudyRun
from tollbar.study import Study


@dataclass(frozen=True, slots=True)
class StudyJudgement:
    """Judgement of one study by its trials."""

    study: StudyRun
    confidence: float
    """Confidence of every interval of this study: each further look leaves less error to spend."""
    noise_floor: float | None
    """Distance of the A/A pairs from one, as a ratio above one, for the pair with the largest."""
    noise: Interval | None
    """Ratio of these A/A pairs: the measured value of a true ×1.00."""
    measurements: tuple[Measurement, ...]
    tolls: tuple[Toll, ...]
    contrasts: tuple[Contrast, ...]
    claims: tuple[ClaimResult, ...]
    drift: float | None
    """Median change of the cells' cost from the first to the last third of the blocks, as a ratio."""
    trust: Trust
    tables: tuple[CrossTableResult, ...] = ()
    factors: tuple[FactorsResult, ...] = ()
    scaling: tuple[ScalingResult, ...] = ()
    """Cells with several threads compared with the same cells with one."""
    repeats: tuple[tuple[Row, Interval], ...] = ()
    """Cells that were measured twice, with the ratio of the two costs: each baseline, and a cell of each other kind."""
    break_evens: tuple[BreakEven, ...] = ()
    ledger: Ledger | None = field(default=None, compare=False, repr=False)
    """Comparisons of any two cells; None if only the values above are known."""

    view: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Cache of values that the report derives from this judgement, by the function that makes them.

    A study with other rows or tolls has another cache.
    """

    @property
    def about(self) -> Study:
        """Study with its question, and all that was planned to answer it."""
        return self.study.study

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.study.rows


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a run, study by study."""

    run: Run
    studies: tuple[StudyJudgement, ...]
