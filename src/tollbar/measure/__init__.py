"""Measure: visit every cell once a block, in a new random order, each visit a fresh runner process."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of a task."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


@dataclass(frozen=True, slots=True)
class Trial:
    """One visit to one cell."""

    study: str
    cell: str
    twin: bool
    block: int
    order: int
    """Its place in the run's sequence of trials."""
    started_s: float
    """Seconds since the epoch."""
    outcome: Outcome
    reason: str | None
    operations: int
    cpu_ns: int
    wall_ns: int
    memory_bytes: int
    """How far the runner's memory grew beyond what it held before the first operation."""
    batches: tuple[tuple[int, int], ...]
    """(operations, CPU nanoseconds) of each batch."""
    steal_ns: int
    """CPU time the hypervisor gave to others during the trial, all cores."""

    @property
    def cost_ns(self) -> float:
        """CPU nanoseconds per operation."""
        return self.cpu_ns / self.operations
