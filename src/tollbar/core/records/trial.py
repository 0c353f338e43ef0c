"""Results of proving and measuring: proofs of cells, trials with their chunks, and quarantined cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tollbar.core.records.chunks import Chunk, Chunks
from tollbar.core.records.contract import Outcome
from tollbar.core.records.load import LoadRecord

RUNNER = "runner"
"""Component of a runner that performs the operations itself."""
CLIENT = "client"
"""Component of a load client: the cost of sending requests, which is not part of the server's."""

TrialKey = tuple[str, str, bool, int, int]
"""Key of a trial: (study, cell, whether it is the repeat, block, batch)."""


@dataclass(frozen=True, slots=True)
class Proven:
    """Proof of a cell: whether it worked correctly and refused wrong inputs, or the reason against measuring it."""

    study: str
    cell: str
    outcome: Outcome
    reason: str | None
    known_answers: int
    accepted: tuple[str, ...]
    refused: tuple[str, ...]
    not_tried: tuple[str, ...] = ()
    """Refusals that could not be tested, each with the reason."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Visit to one cell: a fresh process, advanced chunk by chunk with the others of its batch."""

    study: str
    cell: str
    repeat: bool
    block: int
    batch: int
    """Number of the batch within the block."""
    order: int
    """Index in the run's sequence of trials."""
    started_s: float
    """Start time, in seconds since the epoch."""
    outcome: Outcome
    reason: str | None
    chunks: Sequence[Chunk]
    paid_by: tuple[str, ...]
    """Components whose CPU time is the study's cost."""
    memory_bytes: int
    """Growth of a runner's memory during its first operation, or the peak memory of a server."""
    steal_ns: int
    """CPU time that the hypervisor gave to others during the trial's batch, over all cores."""
    machine_load: float
    """Mean number of running and waiting processes of the machine in the minute before the trial's end."""
    load: LoadRecord | None = None
    """Observations of the load client, if the cell was measured through a server."""

    def cost_of(self, chunk: Chunk) -> float:
        """Return the CPU nanoseconds per operation of one of its chunks."""
        return sum(chunk.cpu_ns.get(name, 0) for name in self.paid_by) / chunk.operations

    @property
    def first_tries(self) -> tuple[Chunk, ...]:
        """Chunks of unselected rounds, whose cost is that of all samples."""
        return tuple(chunk for chunk in self.chunks if not chunk.is_made_up)

    @property
    def operations(self) -> int:
        """Number of operations in its first tries."""
        chunks = Chunks.of(self.chunks)
        return sum(n for n, made_up in zip(chunks.operations, chunks.made_up, strict=True) if not made_up)

    @property
    def wall_ns(self) -> int:
        """Elapsed time of all its chunks."""
        return sum(Chunks.of(self.chunks).wall_ns)

    @property
    def cpu_ns(self) -> int:
        """CPU nanoseconds of `paid_by` in its first tries."""
        chunks = Chunks.of(self.chunks)
        paid = zip(chunks.paid(self.paid_by), chunks.made_up, strict=True)
        return sum(ns for ns, made_up in paid if not made_up)

    @property
    def cost_ns(self) -> float:
        """CPU nanoseconds per operation, over its first tries."""
        return self.cpu_ns / self.operations


@dataclass(frozen=True, slots=True)
class SetAside:
    """Quarantined cell: no more trials until the run is resumed, and the reason."""

    study: str
    cell: str
    after: int
    """Index of its last trial in the run's sequence of trials."""
    failed: int
    """Number of failed trials since the run was begun or resumed."""
    trials: int
    """Number of all trials since then."""
    reason: str
    """Reason of the last failure."""
    at_s: float
    """Time of the quarantine, in seconds since the epoch."""
    tried_again_s: float | None = None
    """Time when a resumed run tried the cell again; None if it has not."""
