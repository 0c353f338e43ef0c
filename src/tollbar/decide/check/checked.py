"""Results of a check of a project: its uses, and its budgets with the limits that the measurements allow.

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
    from tollbar.core.intervals import Interval

# Smallest margin of a limit beyond its interval, and largest half width of a ratio for a limit: intervals of ± 1 % on
# both sides, and this between them, leave room to find an increase of 5 %.
PRECISION = 0.01
# Significant figures of a limit, rounded up.
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
    """Verdict on a budget whose limit was set on another processor."""


@dataclass(frozen=True, slots=True)
class CheckedBudget:
    """Verdict on a budget, with its reason."""

    budget: CostBudget
    found: BudgetVerdict
    reason: str | None = None
    """Reason why the verdict is open or not sure."""
    toll: Toll | None = None
    ratio: Interval | None = None
    """Measured ratio, its interval widened for all budgets that are checked at once."""
    is_noisy: bool = False
    """True if the ratio is noisy."""
    noise_reach: float | None = None
    """The ratio that noise alone may give of equals; None: nothing was measured twice."""

    @property
    def libraries(self) -> tuple[str, ...]:
        """Return the providers and servers of the two choices, with versions."""
        rows = [self.toll.row, self.toll.against] if self.toll else []
        found = (name for row in rows for name in (row.provider, row.server_version) if name)
        return tuple(dict.fromkeys(found))

    @property
    def is_sure(self) -> bool:
        """Return false if the budget is within its limit but noise could move the ratio beyond it."""
        return self.found is not BudgetVerdict.WITHIN or self.reason is None

    @property
    def can_be_set(self) -> bool:
        """Return true if the ratio allows a limit: it is bounded and from quiet moments alone."""
        return self.ratio is not None and self.ratio.is_bounded and not self.is_noisy

    @property
    def new_limit(self) -> float | None:
        """Return the limit that `--accept` writes; None where none can be made, and where the present one stays.

        The limit is the upper end of the interval times the noise, at least `PRECISION`, so that a run without changes
        is below it. A kept limit that is less than twice as far away stays.
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
        """Return the smallest increase, as a share, that an equally precise and noisy run finds.

        None without a limit, and where the noise is unknown. For such an increase the interval lies beyond the limit,
        and the ratio is further beyond it than the noise.
        """
        limit = self.new_limit or self.budget.at_most
        if limit is None or self.ratio is None or not self.ratio.is_bounded or self.noise_reach is None:
            return None
        return limit * max(self.ratio.high / self.ratio.estimate, self.noise_reach) / self.ratio.estimate - 1

    @property
    def is_precise(self) -> bool:
        """Return true if the ratio is known well enough for a limit that finds small increases."""
        return self.can_be_set and self.ratio is not None and self.ratio.half_width <= PRECISION


@dataclass(frozen=True, slots=True)
class Check:
    """Results of a project's check on one day."""

    path: Path
    on: date
    uses: tuple[CheckedUse, ...] = ()
    budgets: tuple[CheckedBudget, ...] = ()
    is_accepted: bool = False
    """True if new limits and today's standings were written into the file."""
    run: Path | None = None
    """Directory of the run that has the measurements."""

    @property
    def breaks(self) -> bool:
        """Return true if a use breaks a rule or a budget is over its limit, apart from values just accepted."""
        broken = [one for one in self.uses if one.ruling is Ruling.BREAKS]
        over = [one for one in self.budgets if one.found in (BudgetVerdict.OVER, BudgetVerdict.NOT_MEASURED)]
        if self.is_accepted:
            broken = [one for one in broken if replace(one, fell=None).ruling is Ruling.BREAKS]
            over = [one for one in over if one.new_limit is None]
        return bool(broken or over)

    @property
    def leaves_open(self) -> bool:
        """Return true if the verdict on any use or budget is open."""
        unsaid = any(one.ruling is Ruling.CANNOT_SAY for one in self.uses)
        open_ = [
            one
            for one in self.budgets
            if one.found in (BudgetVerdict.CANNOT_TELL, BudgetVerdict.ELSEWHERE) or not one.is_sure
        ]
        return unsaid or any(not (self.is_accepted and one.new_limit) for one in open_)


def processor_of(fingerprint: Mapping[str, Any]) -> Processor:
    """Return the processor facts of a machine on which ratios depend."""
    return Processor(fingerprint["cpu"], fingerprint["family"], " ".join(fingerprint["flags"]))


def _rounded_up(limit: float) -> float:
    """Return the limit rounded up to four significant figures."""
    step = 10.0 ** (math.floor(math.log10(limit)) + 1 - _FIGURES)
    return float(f"{math.ceil(round(limit / step, 6)) * step:.{_FIGURES}g}")
