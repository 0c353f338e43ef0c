"""The verdict on two cells: what one costs beside the other, and what that comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from tollbar.core.stats import Interval
from tollbar.results import Row


class Verdict(StrEnum):
    """What a toll comes to, given the user's threshold."""

    COSTS = "costs"
    SAVES = "saves"
    FREE = "free"
    UNCLEAR = "unclear"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Toll:
    """What is judged of one cell beside another: most often of a cell beside its baseline.

    Members of contrasts, cells of tables and claims have one each, all made by `Ledger.compare`.
    """

    row: Row
    against: Row
    """The other cell, most often the baseline: the cell itself where it is one, and where it has none."""
    metric: str
    ratio: Interval | None = None
    """Of the quiet costs."""
    all_samples: Interval | None = None
    """The same noisy by whatever else the machine did, paired within rounds."""
    difference: float | None = None
    """Nanoseconds per operation, this cell's less the other's."""
    verdict: Verdict = Verdict.NOT_MEASURED
    noise_floor: float | None = None
    """How far from one the A/A pairs of these cells, or of their kind, came out, as a ratio above one."""
    more_blocks: int | None = None
    """About how many further blocks would decide an unclear ratio; None where it is decided or hopeless."""
    reason: str | None = None
    """Why there is no ratio."""
    suffers: Literal["more", "less"] | None = None
    """Where the ratio of all samples is apart from the quiet one by more than `threshold`: how much neighbours raise
    this cell's cost, beside the other's."""
    quiet_blocks: int = 0
    """In which both sides had quiet rounds: the ratio is of these, where they are enough."""
    noise: Interval | None = None
    """These A/A pairs' ratio. No verdict is given within its far end of one."""

    @property
    def turned(self) -> Toll:
        """The same of the other against the one. The band of meaningless differences is the same both ways."""
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
