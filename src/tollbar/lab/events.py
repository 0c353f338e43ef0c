"""Events: reports of the lab while it measures, in the order of time, and the stop rule that its caller provides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Estimated:
    """Remaining batches, and an estimate of their duration."""

    batches: int
    about_s: float


@dataclass(frozen=True, slots=True)
class Began:
    """Start of a series of steps; a `Step` for each and an `Ended` follow."""

    what: str
    """Kind of the steps: `verify` or `measure`."""
    total: int
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Step:
    """Completion of a recorded step: a proof or a batch."""


@dataclass(frozen=True, slots=True)
class StudyMeasured:
    """Completion of the planned blocks of one of several studies, between two steps; of one that cannot be measured,
    before them.
    """

    study: str


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a series of steps."""


class WidestToll(Protocol):
    """The toll with the widest interval."""

    @property
    def title(self) -> str: ...
    @property
    def half(self) -> float:
        """Half of the interval's width, as a share."""


class SoFar(Protocol):
    """A study's need for further blocks."""

    @property
    def lacks_quiet_blocks(self) -> bool: ...
    @property
    def widest(self) -> WidestToll | None: ...


StopRule = Callable[[Path, str], SoFar]
"""Function from the run's directory and a study's name to its need for further blocks."""


@dataclass(frozen=True, slots=True)
class NothingCompared:
    """Report of a requested precision in a study without a toll."""

    study: str
    asked: float


@dataclass(frozen=True, slots=True)
class PrecisionReached:
    """Report that the requested precision was reached, after `blocks` blocks."""

    study: str
    asked: float
    blocks: int


@dataclass(frozen=True, slots=True)
class PrecisionMissed:
    """End of a study's time before its precision, with the blocks still needed."""

    study: str
    asked: float
    widest: WidestToll
    more_blocks: int
    about_s: float


@dataclass(frozen=True, slots=True)
class NoTime:
    """Report of cells that are not measured because the time would be over before."""

    cells: int


@dataclass(frozen=True, slots=True)
class Probed:
    """Final report of all probe and chain readings of this machine."""

    readings: Sequence[float]
    chain_ns: float | None


Event = (
    Estimated
    | Began
    | Step
    | StudyMeasured
    | Ended
    | NothingCompared
    | PrecisionReached
    | PrecisionMissed
    | NoTime
    | Probed
)
