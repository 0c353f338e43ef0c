"""Any program held against the runner contract: what it must do, tried on the program itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tollbar.plan import Cell
from tollbar.runner import CONTRACT, Outcome, Session, Stopped, ask

LIMIT_S = 60.0
# Long enough that a runner that ignores the length of a chunk and one that keeps to it differ.
SECONDS = 0.02
OPERATIONS = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise of the contract: whether it was kept, and what was seen."""

    kept: bool
    promise: str
    seen: str = ""


def hold(cell: Cell, seed: int) -> Iterator[Finding]:
    """Tries a runner on one cell that it has proved: its session, and what it must refuse."""
    command, task = cell.provider.runner, cell.task("measure", seed)
    yield from _session(command, task)
    for promise, change in _REFUSED.items():
        record = ask(command, change(cell.task("verify", seed)), limit_s=LIMIT_S)
        yield Finding(record.outcome is not Outcome.OK, promise, record.reason or "it was accepted")


# Each is a task that differs from a good one in what the runner must not let pass.
_REFUSED: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a task of another version of the contract is refused": lambda task: task | {"contract": CONTRACT - 1},
    "a setting that it does not read is refused": lambda task: task | {"setting": {**task["setting"], "colour": "red"}},
    "a choice that it does not have is refused": lambda task: task | {"choice": "no-such-choice"},
}


def _session(command: Sequence[str], task: Mapping[str, Any]) -> Iterator[Finding]:
    try:
        with Session(command, task) as session:
            ready = session.ready(LIMIT_S)
            yield Finding(True, "it says that it is ready, and which code it is", ready.provider)
            for seconds, operations in ((SECONDS, 1), (0.001, OPERATIONS), (SECONDS, 1)):
                chunk = session.advance(seconds, operations, LIMIT_S)
                yield Finding(
                    True,
                    f"a chunk is at least {seconds * 1e3:.0f} ms and {operations} operations",
                    f"{chunk.wall_ns / 1e6:.1f} ms, {chunk.operations} operations",
                )
            record = session.finish()
            ended_well = record.outcome is Outcome.OK
            yield Finding(ended_well, "at the end of its input it says how it went, and ends", record.reason or "ok")
    except Stopped as stopped:
        yield Finding(False, "it is advanced chunk by chunk", stopped.record.reason or "")
