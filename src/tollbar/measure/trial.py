"""What measuring gives: whether a cell may be measured, and one visit to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tollbar.plan import Cell, Visit
from tollbar.runner import LoadRecord, Outcome, Record

Ask = Callable[..., Record]
"""`runner.ask`, or a fake of it."""


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
    """Of the study's cost: the runner's own, all of the server's, or the load client's."""
    wall_ns: int
    memory_bytes: int
    """How far the runner's memory grew during its first operation; the most that a server ever held."""
    batches: tuple[tuple[int, int], ...]
    """(operations, CPU nanoseconds) of each batch."""
    steal_ns: int
    """CPU time the hypervisor gave to others during the trial, all cores."""
    machine_load: float
    """How many processes of the whole machine were running or wanted to, on average over the minute before its end."""
    load: LoadRecord | None = None
    """What the load client saw, where the cell was measured through a server."""

    @property
    def cost_ns(self) -> float:
        """CPU nanoseconds per operation."""
        return self.cpu_ns / self.operations


def unproven(cell: Cell, outcome: Outcome, reason: str | None) -> Proven:
    """A cell that may not be measured."""
    return Proven(cell.study, cell.key, outcome, reason, 0, (), ())


def trial_of(
    visit: Visit, order: int, record: Record, *, started_s: float, steal_ns: int, machine_load: float
) -> Trial:
    """The trial that a record makes of a visit."""
    return Trial(
        study=visit.cell.study,
        cell=visit.cell.key,
        twin=visit.twin,
        block=visit.block,
        order=order,
        started_s=started_s,
        outcome=record.outcome,
        reason=record.reason,
        operations=record.operations,
        cpu_ns=record.cpu_ns,
        wall_ns=record.wall_ns,
        memory_bytes=record.memory_bytes,
        batches=record.batches,
        steal_ns=steal_ns,
        machine_load=machine_load,
        load=record.load,
    )
