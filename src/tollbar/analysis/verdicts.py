"""Verdicts on two cells: the cost of one compared with the other, and its meaning by the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from tollbar.core.intervals import Interval
from tollbar.results import Row


class Verdict(StrEnum):
    """Meaning of a toll, given the user's threshold."""

    COSTS = "costs"
    SAVES = "saves"
    FREE = "free"
    UNCLEAR = "unclear"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Toll:
    """Comparison of one cell with another, most often with its baseline.

    Members of contrasts, cells of tables and claims have one each, all made by `Ledger.compare`.
    """

    row: Row
    against: Row
    """Other cell, most often the baseline; the cell itself if it is a baseline or has none."""
    metric: str
    ratio: Interval | None = None
    """Ratio of the quiet costs, or of all samples if too few are quiet."""
    all_samples: Interval | None = None
    """Ratio over all samples, noisy ones included, paired within rounds."""
    difference: float | None = None
    """Nanoseconds per operation, this cell's minus the other's."""
    verdict: Verdict = Verdict.NOT_MEASURED
    noise_floor: float | None = None
    """Distance from one of the A/A pairs of these cells, or of their kind, as a ratio above one."""
    more_blocks: int | None = None
    """Approximate number of further blocks that would decide an unclear ratio; None if it is decided or hopeless."""
    reason: str | None = None
    """Reason why there is no ratio."""
    suffers: Literal["more", "less"] | None = None
    """`more` or `less`, by the effect of neighbours on this cell's cost compared with the other's; None without one.

    The ratio of all samples differs from the quiet one by more than `threshold`.
    """
    quiet_blocks: int = 0
    """Number of blocks in which both sides had quiet rounds: the ratio is of these, if they are enough."""
    noise: Interval | None = None
    """Ratio of these A/A pairs. A ratio within its far end of one gets no verdict."""

    @property
    def turned(self) -> Toll:
        """Toll of the other cell against this one. The band of irrelevant differences is the same both ways."""
        return replace(
            self,
            row=self.against,
            against=self.row,
            ratio=self.ratio.inverse if self.ratio else None,
            all_samples=self.all_samples.inverse if self.all_samples else None,
            difference=None if self.difference is None else -self.difference,
            verdict=_TURNED.get(self.verdict, self.verdict),
            suffers=_SUFFERS_TURNED[self.suffers],
        )


_TURNED = {Verdict.COSTS: Verdict.SAVES, Verdict.SAVES: Verdict.COSTS}
_SUFFERS_TURNED: Mapping[str | None, Literal["more", "less"] | None] = {"more": "less", "less": "more", None: None}
