"""What proving and measuring give: a cell's proof, its trials chunk by chunk, and when it was set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tollbar.core.records.chunks import Chunk, Chunks
from tollbar.core.records.contract import Outcome
from tollbar.core.records.load import LoadRecord

RUNNER = "runner"
"""The component of a runner that performs the operations itself."""
CLIENT = "client"
"""The component of a load client: what asking costs, which is no part of what the server pays."""

TrialKey = tuple[str, str, bool, int, int]
"""(study, cell, whether it is the repeat, block, batch) of a trial."""


@dataclass(frozen=True, slots=True)
class Proven:
    """Whether a cell may be measured: it did what it says and refused what it should, or why not."""

    study: str
    cell: str
    outcome: Outcome
    reason: str | None
    known_answers: int
    accepted: tuple[str, ...]
    refused: tuple[str, ...]
    not_tried: tuple[str, ...] = ()
    """Refusals that could not be tried, each with the reason."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One visit to one cell: a fresh process, advanced chunk by chunk beside the others of its batch."""

    study: str
    cell: str
    repeat: bool
    block: int
    batch: int
    """Its batch's number within the block."""
    order: int
    """Its place in the run's sequence of trials."""
    started_s: float
    """Seconds since the epoch."""
    outcome: Outcome
    reason: str | None
    chunks: Sequence[Chunk]
    paid_by: tuple[str, ...]
    """The components whose CPU time is the study's cost."""
    memory_bytes: int
    """How far the runner's memory grew during its first operation; the most that a server ever held."""
    steal_ns: int
    """CPU time the hypervisor gave to others during the trial's batch, all cores."""
    machine_load: float
    """How many processes of the whole machine were running or wanted to, on average over the minute before its end."""
    load: LoadRecord | None = None
    """What the load client saw, where the cell was measured through a server."""

    def cost_of(self, chunk: Chunk) -> float:
        """CPU nanoseconds per operation of one of its chunks."""
        return sum(chunk.cpu_ns.get(name, 0) for name in self.paid_by) / chunk.operations

    @property
    def first_tries(self) -> tuple[Chunk, ...]:
        """Its chunks of rounds that nothing selected: their cost is that of all samples."""
        return tuple(chunk for chunk in self.chunks if not chunk.is_made_up)

    @property
    def operations(self) -> int:
        """Of its first tries."""
        return sum(chunk.operations for chunk in self.first_tries)

    @property
    def wall_ns(self) -> int:
        """Of all its chunks."""
        return sum(Chunks.of(self.chunks).wall_ns)

    @property
    def cpu_ns(self) -> int:
        """The study's cost, of its first tries."""
        return sum(chunk.cpu_ns.get(name, 0) for chunk in self.first_tries for name in self.paid_by)

    @property
    def cost_ns(self) -> float:
        """CPU nanoseconds per operation, over its first tries."""
        return self.cpu_ns / self.operations


@dataclass(frozen=True, slots=True)
class SetAside:
    """A cell of which no more trials are made until the run is resumed, and why."""

    study: str
    cell: str
    after: int
    """The place of its last trial in the run's sequence of trials."""
    failed: int
    """How many of its trials failed since the run was begun or resumed."""
    trials: int
    """Of so many."""
    reason: str
    """Why the last of them did."""
    at_s: float
    """Seconds since the epoch."""
    tried_again_s: float | None = None
    """When the run was resumed, and the cell was tried again; None: it has not been."""
