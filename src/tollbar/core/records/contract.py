"""What every runner says: the lines of the runner contract, as types.

Fields that this version does not know are let pass: runners have their own pace.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tollbar.core.records.load import MOST, Requested, Totals

CONTRACT = 2
"""The version of the runner contract that tasks are written in."""


class Outcome(StrEnum):
    """What became of a task."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


class Made(BaseModel):
    """A signature that is another one each time, for another implementation to verify."""

    model_config = ConfigDict(frozen=True)
    of: str
    """The message, as text."""
    signature_hex: str
    public_key_der_hex: str
    """A SubjectPublicKeyInfo."""


class Proof(BaseModel):
    """What an operation showed for itself: right things accepted, wrong things refused."""

    model_config = ConfigDict(frozen=True)
    answer: str | None = None
    accepted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()
    """Refusals that could not be tried, each with the reason."""
    made: Made | None = None


class Record(BaseModel):
    """A runner's answer to `list` and `verify`, and its last line in a session."""

    model_config = ConfigDict(frozen=True)
    outcome: Outcome
    reason: str | None = None
    receipt: Mapping[str, Any] = {}
    offers: tuple[Mapping[str, str], ...] = ()
    proof: Proof | None = None
    load: Totals | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Record:
        if self.outcome is not Outcome.OK and not self.reason:
            raise ValueError(f"the outcome `{self.outcome}` needs a reason")
        return self


def failed(reason: str, outcome: Outcome = Outcome.FAILED) -> Record:
    """The record of a runner that gave none."""
    return Record(outcome=outcome, reason=reason)


class Ready(BaseModel):
    """A session that is ready: the receipt, and what the warm-up showed."""

    model_config = ConfigDict(frozen=True, extra="allow")
    provider: str = Field(min_length=1)
    """The provider's own version line: a runner that cannot say it measures nothing."""
    operation_ns: float = 0.0
    """CPU time of one operation, as the warm-up found it; 0: not said."""
    memory_bytes: int = 0
    """How far memory grew during the first operation."""
    slices: bool = False
    """Whether it can slice its chunks."""


class ThreadRecord(BaseModel):
    """What one of several threads did of a chunk, all of which were at work meanwhile."""

    model_config = ConfigDict(frozen=True)
    operations: int = Field(ge=1)
    cpu_ns: int = Field(ge=0)
    wall_ns: int = Field(ge=1)
    run_queue_wait_ns: int = Field(default=0, ge=0)
    """Time in which it would have run and others had its core."""


class SliceRecord(BaseModel):
    """A part of a chunk, between two readings of the probe by the runner itself."""

    model_config = ConfigDict(frozen=True)
    operations: int = Field(ge=1, le=MOST)
    cpu_ns: int = Field(ge=0, le=MOST)
    wall_ns: int = Field(ge=1, le=MOST)
    probes_ns: tuple[Annotated[int, Field(ge=1, le=MOST)], Annotated[int, Field(ge=1, le=MOST)]]
    """Nanoseconds that the probe took before and after."""


class Observed(Requested):
    """What a chunk showed beside its cost; a family's own metrics stand here by their names."""

    model_config = ConfigDict(frozen=True, extra="allow")
    background_ns: int = Field(default=0, ge=0)
    """CPU time of a collector or a compiler since the last chunk, which is part of `cpu_ns`."""
    ticks: bool = False
    """A process of the server ended in it, and what it cost is known to a clock tick only."""
    threads: tuple[ThreadRecord, ...] = ()
    """The accounts of those that were asked for, whose sums are the chunk's."""
    slices: tuple[SliceRecord, ...] = ()
    """Its parts, whose sums are the chunk's; empty where it has none."""
    left_over_ns: int = Field(default=0, ge=0)
    """CPU time of the process from the order to the answer that was none of these threads'."""
    unsettled: bool = False
    """The server was still at work long after it was asked nothing more: the account was never closed."""

    def value_of(self, metric: str) -> float | None:
        """The total over the chunk of one of the family's own metrics; None: the runner did not observe a number."""
        value = (self.model_extra or {}).get(metric)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if abs(value) <= sys.float_info.max else None

    @property
    def is_exact(self) -> bool:
        """Whether a number may rest on it."""
        return not (self.ticks or self.unsettled)


Count = Annotated[int, Field(ge=1, le=MOST)]


class ChunkRecord(BaseModel):
    """A chunk as the runner counted it."""

    model_config = ConfigDict(frozen=True)
    operations: Count
    cpu_ns: Count
    wall_ns: Count
    # Made anew, which is quicker than the deep copy that a default is.
    observed: Observed = Field(default_factory=Observed)
