"""Workloads: what a family's cells do, as far as plan, measure and results need to know.

A workload turns a cell into the servers that must be up, the command and task of its runner, and its proofs, and says
what a chunk of it shows. Two serve most families: `operation` (a runner alone) and `request` (a server, and the load
client that asks it). A family whose cells need more has a module of its name in `workloads/by_family`, or else a
`workload.py` in its folder, with a class `FamilyWorkload`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tollbar.catalog import families
from tollbar.catalog.servers import NotStarted, Server
from tollbar.core import machine
from tollbar.core.errors import TollbarError
from tollbar.core.metrics import BACKGROUND
from tollbar.core.records import RUNNER, ChunkRecord, LoadRecord, Observations, Outcome, Proven, Record
from tollbar.core.runner import ask
from tollbar.core.runner.confined import Account
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.study.plan import Cell

__all__ = ["Ask", "Given", "Shown", "Work", "Workload", "of", "unproven"]

Ask = Callable[..., Record]
"""`runner.ask`, or a fake of it."""


# Of a thread's time: on a core of its own it waits for the kernel's own work, and seldom so long.
CONTENDED = 0.01
# Of a chunk's CPU time, and at least so much: orders and answers of threads take some tens of microseconds. What is
# more was done by a thread that is none of those asked for.
LEFT_OVER, LEFT_OVER_NS = 0.1, 2e5


def unproven(cell: Cell, outcome: Outcome, reason: str | None) -> Proven:
    """A cell that may not be measured."""
    return Proven(cell.study, cell.key, outcome, reason, 0, (), ())


@dataclass(frozen=True, slots=True)
class Given:
    """What a run gives all of its cells."""

    sandbox: Sandbox | None
    """Where servers are started; cells that are measured through one need it."""
    ask: Ask = ask
    verified: dict[tuple[Any, ...], Record] = field(default_factory=dict)
    """Records of known answers that were met already, by what they are good for."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as it would be measured, for people: without keys, and nothing is started."""

    runner: tuple[str, ...]
    task: Mapping[str, Any]
    configuration: str | None = None
    """What its servers would be configured with."""


@dataclass(frozen=True, slots=True)
class Work:
    """A cell whose servers are up: its runner's command and task, and what is to be made of its answers."""

    command: tuple[str, ...]
    task: Mapping[str, Any]
    core: int | None
    """Where the runner is kept in rounds."""
    _: KW_ONLY
    account: Account | None = None
    """The runner's, in root's lab; None: it stays the lab's."""
    paid_on: int | None = None
    """The one core on which what is measured is paid for, where a probe tells of the moment; None: there is no such."""
    paid_elsewhere: tuple[tuple[str, ...], ...] = ()
    """The commands of the probes of cores of other machines on which it is paid for as well."""
    cores: tuple[int, ...] = ()
    """That of each thread, where several pay, `paid_on` first; there a probe tells of the moment on each."""
    threads: int = 1
    metrics: tuple[str, ...] = ()
    """The family's own, which the runner observes in its chunks."""
    fewest: int = 1
    """Operations that a chunk must have."""
    is_counted: bool = False
    """Whether a chunk has just so many, however long they take, and every round has one: where an operation finds what
    those before it have left, cells are compared after equally many."""
    settles: bool = False
    """Whether what users notice needs a throughput phase, which is longer than a chunk."""
    phase_core: int | None = None
    """Where the runner is in that throughput phase; None: where it is in rounds."""
    begins_on: int | None = None
    """Where all of it is until it is warm; None: where it stays."""
    components: Mapping[str, int] = field(default_factory=dict)
    """The process at the root of each server's tree: its CPU time counts, and it is moved with the runner."""
    busy: tuple[str, ...] = ()
    """The components without whose work no operation can be done."""
    component: str = RUNNER
    """Which component the runner itself is."""

    @property
    def fills_time(self) -> bool:
        """Whether a chunk has as many operations as fill its time, done one after another."""
        return not self.is_counted and self.threads == 1

    def least_s(self, operation_ns: float) -> float:
        """How long the least chunk takes of operations that cost so much each."""
        return self.fewest * operation_ns / 1e9

    def cpu_ns(self, chunk: ChunkRecord) -> dict[str, int]:
        """CPU nanoseconds of each component."""
        return {name: one.cpu_ns for name, one in chunk.observed.components.items()} | {self.component: chunk.cpu_ns}

    def observed(self, chunk: ChunkRecord) -> Observations:
        """What else the chunk showed: of the family's own metrics, and what its cost has from before it began."""
        own = {("", name): value for name in self.metrics if (value := chunk.observed.value_of(name)) is not None}
        background_ns = chunk.observed.background_ns
        return {**own, ("", BACKGROUND.name): background_ns} if background_ns else own

    def wall_ns(self, chunk: ChunkRecord) -> int:
        """Elapsed nanoseconds; of several threads those of all together, without the time in which others had their
        cores: shared out among operations, what one of them took."""
        threads = chunk.observed.threads
        return sum(max(one.cpu_ns, one.wall_ns - one.run_queue_wait_ns) for one in threads) or chunk.wall_ns

    def contended_ns(self, chunk: ChunkRecord) -> int:
        """For how long others had the core of one of its threads, which may make all of them wait; 0: not worth it."""
        waits = (one.run_queue_wait_ns for one in chunk.observed.threads)
        return max((wait for wait in waits if wait > CONTENDED * chunk.wall_ns), default=0)

    def contradiction(self, chunk: ChunkRecord) -> str | None:
        """What cannot be so in a chunk without an error: every component was at work, or what was not so."""
        accounts = chunk.observed.threads
        if self.threads > 1 and len(accounts) != self.threads:
            return f"accounts of {len(accounts)} threads, where {self.threads} were asked for"
        for what in ("operations", "cpu_ns") if accounts else ():
            said, theirs = getattr(chunk, what), sum(getattr(one, what) for one in accounts)
            if said != theirs:
                return f"`{what}` is {said}, and those of its threads are {theirs} together"
        left_over_ns = chunk.observed.left_over_ns
        if left_over_ns > max(LEFT_OVER * chunk.cpu_ns, LEFT_OVER_NS):
            return f"{left_over_ns / 1e6:.1f} ms of the process's CPU time are in the account of no thread"
        seen = chunk.observed.components
        if seen.keys() != self.components.keys():
            return f"an account of {sorted(seen)}, where the server is {sorted(self.components)}"
        if seen and not any(one.cpu_ns for one in seen.values()):
            return "the server's processes used no CPU time, which cannot be"
        idle = [name for name in self.busy if not seen[name].cpu_ns]
        if idle:
            return f"no CPU time was used by {' and '.join(idle)}, though no operation is done without it"
        return None

    def lacks(self, last: Record) -> str | None:
        """What the runner's last line should have said and did not."""
        return None

    def with_fault(self, record: Record) -> Record:
        """The record of a runner that failed, with what became of the servers if it was those that ended."""
        return record

    def load(self, last: Record | None, phase: ChunkRecord | None, chunks: Sequence[ChunkRecord]) -> LoadRecord | None:
        """What a load client saw in the whole trial; None: there was none."""
        return None


class Workload(ABC):
    """What the cells of a family do."""

    def serves(self, cell: Cell) -> bool:
        """Whether it is for this cell; if not, a general one is."""
        return True

    def needs_sandbox(self, cell: Cell) -> bool:
        """Whether it starts servers or makes files for this cell."""
        return cell.server is not None

    @abstractmethod
    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Has the cell done once, right and wrong."""

    @abstractmethod
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> AbstractContextManager[Work]:
        """Starts what one trial needs; `core` is the one that is measured on. Raises NotStarted.

        `begins_on`: another core, on which it becomes ready and warm while others do so elsewhere.
        """

    @abstractmethod
    def shown(self, cell: Cell, seed: int) -> Shown:
        """The cell for people."""


@dataclass(frozen=True, slots=True)
class UnsupportedWorkload(Workload):
    """Of a cell that cannot be had, as its family says: nothing is tried."""

    reason: str

    def needs_sandbox(self, cell: Cell) -> bool:
        return False

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        return unproven(cell, Outcome.UNSUPPORTED, self.reason)

    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> AbstractContextManager[Work]:
        raise NotStarted(Outcome.UNSUPPORTED, self.reason)

    def shown(self, cell: Cell, seed: int) -> Shown:
        return Shown((), {"impossible": self.reason}, self.reason)


def of(cell: Cell) -> Workload:
    """The workload of this cell: its family's own, or else the general one for cells with or without a server."""
    family = families.family(cell.family)
    if (reason := family.why_unsupported(cell.coordinates) or _why_alone(cell)) is not None:
        return UnsupportedWorkload(reason)
    own = _file_of(family.folder) if family.folder else None
    if own is not None and _own(own).serves(cell):
        return _own(own)
    # They import this package.
    from tollbar.lab.workloads.operation import OperationWorkload
    from tollbar.lab.workloads.request import RequestWorkload

    return RequestWorkload() if cell.server else OperationWorkload()


def _why_alone(cell: Cell) -> str | None:
    """Why the cell's threads cannot be had; None: they can, or there is one."""
    if "threads" not in cell.coordinates:
        return None
    if cell.server is None and not cell.provider.has_threads:
        return f"not available here: the runner of {cell.provider.name} performs on one thread"
    if isinstance(cell.server, Server) and cell.server.workers is None:
        return f"the server {cell.server.name} works on one core"
    if cell.coordinates.get("client") == "apart":
        return "a load client is on the cores of the threads that it asks, and not apart from them"
    return machine.lacks_cores(cell.threads)


_BY_FAMILY = Path(__file__).with_name("by_family")


def _file_of(folder: Path) -> Path | None:
    """Return the file with the workload of the family in this folder; None where a general one serves it."""
    is_shipped = folder.parent == Path(families.__file__).parent
    path = _BY_FAMILY / f"{folder.name.replace('-', '_')}.py" if is_shipped else folder / "workload.py"
    return path if path.exists() else None


@cache
def _own(path: Path) -> Workload:
    """Return the workload of the family with this file. Raises TollbarError where there is none in it."""
    try:
        if path.parent == _BY_FAMILY:
            workload = importlib.import_module(f"{__name__}.by_family.{path.stem}").FamilyWorkload()
        else:
            workload = _loaded(path).FamilyWorkload()
    except Exception as error:
        raise TollbarError(f"cannot be loaded: {type(error).__name__}: {error}", where=str(path)) from error
    if not isinstance(workload, Workload):
        raise TollbarError("`FamilyWorkload` is no tollbar.lab.workloads.Workload", where=str(path))
    return workload


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tollbar_workload_of_{path.parent.name.replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
