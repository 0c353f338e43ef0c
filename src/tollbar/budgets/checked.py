"""What is found of a project; of what it uses that takes no judge, and none is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tollbar.policies import CheckedUse, Processor, Ruling

if TYPE_CHECKING:
    from tollbar.budgets.judging import CheckedBudget


class Found(StrEnum):
    """What came of a budget."""

    WITHIN = "within"
    """The whole interval is."""
    OVER = "over"
    """The whole interval is beyond the limit, and further than noise explains."""
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"
    ELSEWHERE = "not judged here"
    """Its limit was set on another processor."""


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
        over = [one for one in self.budgets if one.found in (Found.OVER, Found.NOT_MEASURED)]
        if self.is_accepted:
            broken = [one for one in broken if replace(one, fell=None).ruling is Ruling.BREAKS]
            over = [one for one in over if one.new_limit is None]
        return bool(broken or over)

    @property
    def leaves_open(self) -> bool:
        """Whether there is something of which it cannot be said."""
        unsaid = any(one.ruling is Ruling.CANNOT_SAY for one in self.uses)
        open_ = [one for one in self.budgets if one.found in (Found.CANNOT_TELL, Found.ELSEWHERE) or not one.is_sure]
        return unsaid or any(not (self.is_accepted and one.new_limit) for one in open_)


def processor_of(fingerprint: Mapping[str, Any]) -> Processor:
    """The processor of a machine, as far as ratios hang on it."""
    return Processor(fingerprint["cpu"], fingerprint["family"], " ".join(fingerprint["flags"]))
