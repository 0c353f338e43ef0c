"""Results of a check of a project: its uses, and its budgets with the limits that can be made of what was measured.

No module that measures or judges is imported here: `tollbar check policy` needs none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tollbar.catalog.policies import CheckedUse, CostBudget, Processor, Ruling
from tollbar.core import method

if TYPE_CHECKING:
    from tollbar.analysis import Toll
    from tollbar.core.stats import Interval

# What a limit needs at least beyond the interval that it is made of, and how well a ratio is to be known for one:
# intervals of ± 1 % on both sides, and this between them, leave room to find an increase of 5 %.
PRECISION = 0.01
# Limits are written with so many significant figures, rounded up.
_FIGURES = 4


class BudgetVerdict(StrEnum):
    """The verdict on a budget."""

    WITHIN = "within"
    """The whole interval is."""
    OVER = "over"
    """The whole interval is beyond the limit, and further than noise explains."""
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"
    ELSEWHERE = "not judged here"
    """Its limit was set on another processor."""


@dataclass(frozen=True, slots=True)
class CheckedBudget:
    """What came of a budget, and why."""

    budget: CostBudget
    found: BudgetVerdict
    reason: str | None = None
    """Why it is not known whether it is kept, or not sure."""
    toll: Toll | None = None
    ratio: Interval | None = None
    """As one of all that are checked at once: together they miss no oftener than one would."""
    is_noisy: bool = False
    """Whether the ratio is noisy."""
    noise_reach: float | None = None
    """The ratio that noise alone may give of equals; None: nothing was measured twice."""

    @property
    def libraries(self) -> tuple[str, ...]:
        """What performed the two choices, with versions."""
        rows = [self.toll.row, self.toll.against] if self.toll else []
        found = (name for row in rows for name in (row.provider, row.server_version) if name)
        return tuple(dict.fromkeys(found))

    @property
    def is_sure(self) -> bool:
        """Whether it is not merely within by noisy moments, nearer to its limit than neighbours may move it."""
        return self.found is not BudgetVerdict.WITHIN or self.reason is None

    @property
    def can_be_set(self) -> bool:
        """Whether a limit can be made of what was measured: of quiet moments alone."""
        return self.ratio is not None and self.ratio.is_bounded and not self.is_noisy

    @property
    def new_limit(self) -> float | None:
        """The limit that `--accept` writes; None where none can be made, and where the one there may stay.

        The end of the interval, and as much again as noise may make of equals, at least `PRECISION`: a run in which
        nothing changed then lies below it. One that is kept, and not twice as far away, stays as it is.
        """
        if not self.can_be_set or self.ratio is None:
            return None
        margin = max(self.noise_reach or 1.0, 1 + PRECISION)
        made = _rounded_up(self.ratio.high * margin)
        old, set_on = self.budget.at_most, self.budget.set_on
        is_of_now = set_on is not None and set_on.method == method.VERSION
        if self.found is BudgetVerdict.WITHIN and old is not None and is_of_now and old <= made * margin:
            return None
        return made

    @property
    def finds(self) -> float | None:
        """An increase of this share is found by a run that is as precise, and noisy, as this one; None without a
        limit, and where nothing is known of the noise.

        Its interval must then lie beyond the limit, and the ratio further beyond than noise may make of equals.
        """
        limit = self.new_limit or self.budget.at_most
        if limit is None or self.ratio is None or not self.ratio.is_bounded or self.noise_reach is None:
            return None
        return limit * max(self.ratio.high / self.ratio.estimate, self.noise_reach) / self.ratio.estimate - 1

    @property
    def is_precise(self) -> bool:
        """Whether a limit that is made of it will find small increases."""
        return self.can_be_set and self.ratio is not None and self.ratio.half_width <= PRECISION


@dataclass(frozen=True, slots=True)
class Check:
    """What is found of a project on a day."""

    path: Path
    on: date
    uses: tuple[CheckedUse, ...] = ()
    budgets: tuple[CheckedBudget, ...] = ()
    is_accepted: bool = False
    """Whether new limits and today's standings were written into the file."""
    run: Path | None = None
    """Where what was measured is kept."""

    @property
    def breaks(self) -> bool:
        """Whether something is not as it is to be; a limit that is written anew is no more over, nor a standing."""
        broken = [one for one in self.uses if one.ruling is Ruling.BREAKS]
        over = [one for one in self.budgets if one.found in (BudgetVerdict.OVER, BudgetVerdict.NOT_MEASURED)]
        if self.is_accepted:
            broken = [one for one in broken if replace(one, fell=None).ruling is Ruling.BREAKS]
            over = [one for one in over if one.new_limit is None]
        return bool(broken or over)

    @property
    def leaves_open(self) -> bool:
        """Whether there is something of which it cannot be said."""
        unsaid = any(one.ruling is Ruling.CANNOT_SAY for one in self.uses)
        open_ = [
            one
            for one in self.budgets
            if one.found in (BudgetVerdict.CANNOT_TELL, BudgetVerdict.ELSEWHERE) or not one.is_sure
        ]
        return unsaid or any(not (self.is_accepted and one.new_limit) for one in open_)


def processor_of(fingerprint: Mapping[str, Any]) -> Processor:
    """The processor of a machine, as far as ratios hang on it."""
    return Processor(fingerprint["cpu"], fingerprint["family"], " ".join(fingerprint["flags"]))


def _rounded_up(limit: float) -> float:
    """To four significant figures, the last one upwards."""
    step = 10.0 ** (math.floor(math.log10(limit)) + 1 - _FIGURES)
    return float(f"{math.ceil(round(limit / step, 6)) * step:.{_FIGURES}g}")
