"""Events: what the lab reports while it measures, in the order in which it happens; and what it asks of its caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Estimated:
    """The batches that are left, and about how long they take."""

    batches: int
    about_s: float


@dataclass(frozen=True, slots=True)
class Began:
    """A row of steps; a `Step` follows for each, and an `Ended`."""

    what: str
    """`verify` or `measure`."""
    total: int
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is done and recorded: a proof or a batch."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a row of steps."""


class WidestToll(Protocol):
    """The toll that is known worst."""

    @property
    def title(self) -> str: ...
    @property
    def half(self) -> float:
        """Half of its interval's width, as a share."""


class SoFar(Protocol):
    """What further blocks of a study would be for."""

    @property
    def lacks_quiet_blocks(self) -> bool: ...
    @property
    def widest(self) -> WidestToll | None: ...


StopRule = Callable[[Path, str], SoFar]
"""What the blocks so far tell of a study, by the run's directory and the study's name."""


@dataclass(frozen=True, slots=True)
class NothingCompared:
    """A precision was asked for in a study without a toll."""

    study: str
    asked: float


@dataclass(frozen=True, slots=True)
class PrecisionReached:
    """The precision that was asked for, after this number of blocks."""

    study: str
    asked: float
    blocks: int


@dataclass(frozen=True, slots=True)
class PrecisionMissed:
    """The end of a study's time before its precision, and what would reach it."""

    study: str
    asked: float
    widest: WidestToll
    more_blocks: int
    about_s: float


@dataclass(frozen=True, slots=True)
class Probed:
    """All readings of probes and chains of this machine."""

    readings: Sequence[float]
    chain_ns: float | None


Event = Estimated | Began | Step | Ended | NothingCompared | PrecisionReached | PrecisionMissed | Probed
