"""What one trial of a cell takes, tried while it is proved: a plan is then known by more than what is usual."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tollbar import workloads
from tollbar.beds import NotStarted
from tollbar.beds.sandbox import Sandbox
from tollbar.families import Value
from tollbar.measure.members import CHUNK_LIMIT_S, READY_LIMIT_S
from tollbar.plan import Cell
from tollbar.plan.estimates import Seen, usual
from tollbar.runner import Session, Stopped

# A proof performs a few operations in a few processes. One that takes so many times what it takes to be ready is of a
# cell that starts or works slowly.
SLOW_PROOF = 3


@dataclass(slots=True)
class Timing:
    """Tries the first cell of each choice and operation, by provider and server, and each whose proof was slow.

    The others are like the first: trying all of them would take as long as a block does.
    """

    seed: int
    sandbox: Sandbox | None
    core: int | None
    _first: dict[tuple[Value | None, ...], Seen] = field(default_factory=dict)

    def seen(self, cell: Cell, proof_s: float) -> Seen:
        """What a trial of the cell takes, whose proof took so many seconds."""
        kind = cell.provider.spec, cell.server, cell.choice.name, cell.coordinates.get("op")
        first = self._first.get(kind)
        if first is not None and proof_s <= SLOW_PROOF * first.ready_s:
            return first
        try:
            seen = _tried(cell, self.seed, self.sandbox, self.core)
        except (NotStarted, Stopped):
            # Its trials will say why.
            return first or usual(cell)
        self._first.setdefault(kind, seen)
        return seen


def _tried(cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None) -> Seen:
    started_s = time.monotonic()
    work_of = workloads.of(cell)
    with work_of.up(cell, seed, sandbox, core) as work, Session(work.command, work.task, core=work.core) as session:
        session.ready(READY_LIMIT_S)
        ready_s = time.monotonic()
        session.advance(0.0, work.fewest, CHUNK_LIMIT_S)
        operation_s = time.monotonic() - ready_s
        session.finish()
    return Seen(time.monotonic() - started_s - operation_s, operation_s, work.is_counted)
