"""What measuring gives: one visit to a cell, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tollbar.runner import LoadRecord, Outcome
from tollbar.workloads import CLIENT, RUNNER, Observed, Proven

__all__ = ["CLIENT", "RUNNER", "Chunk", "Observed", "Proven", "Trial"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A few milliseconds of one trial's work, and what it cost."""

    round: int
    """Chunks of one heat and round were measured milliseconds apart."""
    operations: int
    wall_ns: int
    cpu_ns: Mapping[str, int]
    """CPU nanoseconds of each component: `RUNNER`; or each of a server's, and `CLIENT`."""
    observed: Observed = field(default_factory=dict)
    probes_ns: tuple[float, ...] | None = None
    """What a probe of its core took right before and right after; of a long chunk, between the two, the slowest of
    those that were asked while it lasted (but for one in twenty). None where that core had none."""
    is_made_up: bool = False
    """Whether its round stands for one that was lost, and the lab waited for a quiet moment: then nothing can be said
    by it of the machine as it was."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One visit to one cell: a fresh process, advanced chunk by chunk beside the others of its heat."""

    study: str
    cell: str
    twin: bool
    block: int
    heat: int
    """Its heat's number within the block."""
    order: int
    """Its place in the run's sequence of trials."""
    started_s: float
    """Seconds since the epoch."""
    outcome: Outcome
    reason: str | None
    chunks: tuple[Chunk, ...]
    paid_by: tuple[str, ...]
    """The components whose CPU time is the study's cost."""
    memory_bytes: int
    """How far the runner's memory grew during its first operation; the most that a server ever held."""
    steal_ns: int
    """CPU time the hypervisor gave to others during the trial's heat, all cores."""
    machine_load: float
    """How many processes of the whole machine were running or wanted to, on average over the minute before its end."""
    load: LoadRecord | None = None
    """What the load client saw, where the cell was measured through a server."""

    def cost_of(self, chunk: Chunk) -> float:
        """CPU nanoseconds per operation of one of its chunks."""
        return sum(chunk.cpu_ns.get(name, 0) for name in self.paid_by) / chunk.operations

    @property
    def first_tries(self) -> tuple[Chunk, ...]:
        """Its chunks of rounds that nothing selected: what they cost is the cost as disturbed."""
        return tuple(chunk for chunk in self.chunks if not chunk.is_made_up)

    @property
    def operations(self) -> int:
        """Of its first tries."""
        return sum(chunk.operations for chunk in self.first_tries)

    @property
    def wall_ns(self) -> int:
        """Of all its chunks."""
        return sum(chunk.wall_ns for chunk in self.chunks)

    @property
    def cpu_ns(self) -> int:
        """The study's cost, of its first tries."""
        return sum(chunk.cpu_ns.get(name, 0) for chunk in self.first_tries for name in self.paid_by)

    @property
    def cost_ns(self) -> float:
        """CPU nanoseconds per operation, over its first tries."""
        return self.cpu_ns / self.operations
