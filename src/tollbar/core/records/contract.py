"""The lines that runners print by the runner contract, as types.

Unknown fields are ignored, because runners are developed independently.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, model_validator

from tollbar.core.errors import without_queries
from tollbar.core.records.load import MOST, Number, Requested, Totals

CONTRACT = 2
"""Version of the runner contract in which tasks are written."""

MOST_OF_REASON = 16 << 10
"""Limit of a reason in letters, because a run with a longer text than a reader accepts could not be read again."""
MOST_OF_RECEIPT = 64 << 10
"""Limit of a receipt in letters of JSON: `run.json` has one for each provider."""
MOST_OF_WORDS = 32 << 10
"""Limit of a proof's accepted, refused or untried inputs, in letters of JSON. A cell has a proof for each known
answer, and a run keeps them in one text."""
# Longer than any key.
_MOST_OF_KEY = 256 << 10
# The fastest operations take some five instructions, a nanosecond.
_LEAST_OPERATION_NS = 1e-3


def _refuse_more(said: object, most: int) -> None:
    try:
        letters = len(json.dumps(said))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if letters > most:
        raise ValueError(f"has {letters:,} letters; the limit is {most:,}")


def _receipt(said: Mapping[str, Any]) -> Mapping[str, Any]:
    _refuse_more(said, MOST_OF_RECEIPT)
    return said


def _words(said: tuple[str, ...]) -> tuple[str, ...]:
    _refuse_more(said, MOST_OF_WORDS)
    return said


def _operation(ns: float) -> float:
    if 0 < ns < _LEAST_OPERATION_NS:
        raise ValueError(f"must be 0 or at least {_LEAST_OPERATION_NS:g}")
    return ns


# A reason may name the request, whose query may have secrets.
Reason = Annotated[str, AfterValidator(lambda said: without_queries(said[:MOST_OF_REASON]))]
Receipt = Annotated[Mapping[str, Any], AfterValidator(_receipt)]
# Pydantic keeps an error of a kB and more for each wrong item, unless it stops at the first.
Words = Annotated[tuple[str, ...], FailFast(), AfterValidator(_words)]
KeyText = Annotated[str, Field(max_length=_MOST_OF_KEY)]


class Outcome(StrEnum):
    """Outcome of a task."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


class Made(BaseModel):
    """A randomised signature, for another implementation to verify."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    of: KeyText
    """Signed message, as text."""
    signature_hex: KeyText
    public_key_der_hex: KeyText
    """Public key as SubjectPublicKeyInfo."""


class Proof(BaseModel):
    """Evidence that an operation is correct: accepted correct inputs and refused wrong ones."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    answer: KeyText | None = None
    accepted: Words = ()
    refused: Words = ()
    not_tried: Words = ()
    """Refusals that could not be tested, each with the reason."""
    made: Made | None = None


class ListedChoice(BaseModel):
    """Choice that a runner can perform."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    family: str
    choice: str


class Record(BaseModel):
    """Answer of a runner to `list` and `verify`, and its last line in a session."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    outcome: Outcome
    reason: Reason | None = None
    receipt: Receipt = {}
    offers: Annotated[tuple[ListedChoice, ...], FailFast()] = ()
    proof: Proof | None = None
    load: Totals | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Record:
        if self.outcome is not Outcome.OK and not self.reason:
            raise ValueError(f"the outcome `{self.outcome}` needs a reason")
        return self


def failed(reason: str, outcome: Outcome = Outcome.FAILED) -> Record:
    """Return the record of a runner that returned none."""
    return Record(outcome=outcome, reason=reason)


class Ready(BaseModel):
    """Line of a session that is ready: the receipt and the results of the warm-up."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    provider: str = Field(min_length=1)
    """Version line of the provider; a runner without one is not measured."""
    operation_ns: Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False), AfterValidator(_operation)] = 0.0
    """CPU time of one operation in the warm-up; 0 if not reported."""
    memory_bytes: Number = 0
    """Growth of memory during the first operation."""
    slices: bool = False
    """True if the runner can slice its chunks."""


class ThreadRecord(BaseModel):
    """Work of one of several threads in a chunk during which all were busy."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    operations: int = Field(ge=1, le=MOST)
    cpu_ns: int = Field(ge=0, le=MOST)
    wall_ns: int = Field(ge=1, le=MOST)
    run_queue_wait_ns: int = Field(default=0, ge=0, le=MOST)
    """Time in which the thread was runnable and others had its core."""


class SliceRecord(BaseModel):
    """Part of a chunk, between two probe readings by the runner itself."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    operations: int = Field(ge=1, le=MOST)
    cpu_ns: int = Field(ge=0, le=MOST)
    wall_ns: int = Field(ge=1, le=MOST)
    probes_ns: tuple[Annotated[int, Field(ge=1, le=MOST)], Annotated[int, Field(ge=1, le=MOST)]]
    """Durations of the probe before and after, in nanoseconds."""


class Observed(Requested):
    """Observations of a chunk in addition to its cost; a family's own metrics are extra fields."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    background_ns: int = Field(default=0, ge=0, le=MOST)
    """CPU time of a collector or a compiler since the last chunk, part of `cpu_ns`."""
    ticks: bool = False
    """True if a process of the server ended in the chunk, so that its cost is known to a clock tick only."""
    threads: Annotated[tuple[ThreadRecord, ...], FailFast()] = ()
    """Accounts of the requested threads, whose sums are the chunk's."""
    slices: Annotated[tuple[SliceRecord, ...], FailFast()] = ()
    """Slices, whose sums are the chunk's; empty if it has none."""
    left_over_ns: int = Field(default=0, ge=0, le=MOST)
    """CPU time of the process, from request to answer, outside these threads."""
    unsettled: bool = False
    """True if the server was still working long after the last request, so that its cost is incomplete."""

    def value_of(self, metric: str) -> float | None:
        """Return the chunk's total of a family's own metric; None if the runner did not report a number."""
        value = (self.model_extra or {}).get(metric)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if abs(value) <= sys.float_info.max else None

    @property
    def is_exact(self) -> bool:
        """True if its cost may be used."""
        return not (self.ticks or self.unsettled)


Count = Annotated[int, Field(ge=1, le=MOST)]


class ChunkRecord(BaseModel):
    """Chunk as the runner counted it."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    operations: Count
    cpu_ns: Count
    wall_ns: Count
    # A factory is faster than pydantic's deep copy of a default.
    observed: Observed = Field(default_factory=Observed)
