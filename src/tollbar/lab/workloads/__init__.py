"""Workloads: the work of a family's cells, as plan, measure and results need to know it.

A workload turns a cell into its servers, the command and task of its runner, and its proofs, and reads its chunks. Two
serve most families: `operation` (a runner alone) and `request` (a server and its load client). A family whose cells
need more has a module of its name in `workloads/by_family`, or else a `workload.py` in its folder, with one
subclass of `Workload`.
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
from tollbar.core.records import (
    MOST_OF_REASON,
    RUNNER,
    ChunkRecord,
    LoadRecord,
    Observations,
    Outcome,
    Proven,
    Record,
)
from tollbar.core.runner import ask
from tollbar.core.runner.confined import Account
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.study.plan.cells import Cell

__all__ = ["Ask", "Given", "Shown", "Work", "Workload", "of", "unproven"]

Ask = Callable[..., Record]
"""Type of `runner.ask`, or a fake of it."""


# Share of a thread's time: on its own core it only waits for the kernel's own work, which seldom takes this long.
CONTENDED = 0.01
# Limits of unattributed CPU time, as a share of a chunk's and in nanoseconds: requests and answers of threads take some
# tens of microseconds. More means that a thread outside the requested ones worked.
LEFT_OVER, LEFT_OVER_NS = 0.1, 2e5


def unproven(cell: Cell, outcome: Outcome, reason: str | None) -> Proven:
    """Return the proof of a cell that may not be measured."""
    return Proven(cell.study, cell.key, outcome, reason and reason[:MOST_OF_REASON], 0, (), ())


@dataclass(frozen=True, slots=True)
class Given:
    """Resources that a run shares among all of its cells."""

    sandbox: Sandbox | None
    """Sandbox for servers; cells that are measured through one need it."""
    ask: Ask = ask
    verified: dict[tuple[Any, ...], Record] = field(default_factory=dict)
    """Records of known answers that were already tested, by the cells that they apply to."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Display of a cell's measurement, for people: without keys, and nothing is started."""

    runner: tuple[str, ...]
    task: Mapping[str, Any]
    configuration: str | None = None
    """Configuration of its servers."""


@dataclass(frozen=True, slots=True)
class Work:
    """A cell whose servers are up: its runner's command and task, and the reading of its answers."""

    command: tuple[str, ...]
    task: Mapping[str, Any]
    core: int | None
    """Core of the runner in rounds."""
    _: KW_ONLY
    account: Account | None = None
    """Account of the runner in root's lab; None: the lab's own."""
    paid_on: int | None = None
    """The one core that pays for the measured work, on which a probe runs; None: there is no such core."""
    paid_elsewhere: tuple[tuple[str, ...], ...] = ()
    """Commands of the probes of other machines' cores that also pay for the work."""
    cores: tuple[int, ...] = ()
    """Core of each thread if several pay, `paid_on` first; a probe runs on each."""
    threads: int = 1
    metrics: tuple[str, ...] = ()
    """Metrics of the family that the runner observes in its chunks."""
    fewest: int = 1
    """Least number of operations of a chunk."""
    is_counted: bool = False
    """True if a chunk has exactly `fewest` operations, and every round has one.

    An operation may depend on what earlier ones left behind, so cells are compared after equal numbers.
    """
    settles: bool = False
    """True if users' measures need a throughput phase, which is longer than a chunk."""
    phase_core: int | None = None
    """Core of the runner in the throughput phase; None: the same as in rounds."""
    begins_on: int | None = None
    """Core of all processes until they are warm; None: their final cores."""
    components: Mapping[str, int] = field(default_factory=dict)
    """Process at the root of each server's tree: its CPU time counts, and it is moved with the runner."""
    busy: tuple[str, ...] = ()
    """Components that every operation needs."""
    component: str = RUNNER
    """Component name of the runner itself."""

    @property
    def fills_time(self) -> bool:
        """True if a chunk has the number of operations that fills its time, done one after another."""
        return not self.is_counted and self.threads == 1

    def least_s(self, operation_ns: float) -> float:
        """Return the least duration of a chunk of operations with this cost."""
        return self.fewest * operation_ns / 1e9

    def cpu_ns(self, chunk: ChunkRecord) -> dict[str, int]:
        """Return the CPU nanoseconds of each component."""
        return {name: one.cpu_ns for name, one in chunk.observed.components.items()} | {self.component: chunk.cpu_ns}

    def observed(self, chunk: ChunkRecord) -> Observations:
        """Return the chunk's other observations: the family's metrics, and its background cost."""
        own = {("", name): value for name in self.metrics if (value := chunk.observed.value_of(name)) is not None}
        background_ns = chunk.observed.background_ns
        return {**own, ("", BACKGROUND.name): background_ns} if background_ns else own

    def wall_ns(self, chunk: ChunkRecord) -> int:
        """Return elapsed nanoseconds; with several threads their sum, without waits for cores.

        Divided by the operations, that sum is the time of one of them.
        """
        threads = chunk.observed.threads
        return sum(max(one.cpu_ns, one.wall_ns - one.run_queue_wait_ns) for one in threads) or chunk.wall_ns

    def contended_ns(self, chunk: ChunkRecord) -> int:
        """Return the longest time that others had the core of one of its threads; 0 if it is negligible.

        Such a wait may delay all threads.
        """
        waits = (one.run_queue_wait_ns for one in chunk.observed.threads)
        return max((wait for wait in waits if wait > CONTENDED * chunk.wall_ns), default=0)

    def contradiction(self, chunk: ChunkRecord) -> str | None:
        """Return a contradiction in a chunk, such as a component that did not work, or None."""
        accounts = chunk.observed.threads
        if self.threads > 1 and len(accounts) != self.threads:
            return f"the runner reported {len(accounts)} threads; {self.threads} were requested"
        for what in ("operations", "cpu_ns") if accounts else ():
            said, theirs = getattr(chunk, what), sum(getattr(one, what) for one in accounts)
            if said != theirs:
                return f"`{what}` is {said}, but its threads add up to {theirs}"
        left_over_ns = chunk.observed.left_over_ns
        if left_over_ns > max(LEFT_OVER * chunk.cpu_ns, LEFT_OVER_NS):
            return f"{left_over_ns / 1e6:.1f} ms of the process's CPU time belong to no thread"
        seen = chunk.observed.components
        if seen.keys() != self.components.keys():
            return f"CPU time was reported for {sorted(seen)}; the server has {sorted(self.components)}"
        if seen and not any(one.cpu_ns for one in seen.values()):
            return "the server's processes used no measurable CPU time"
        idle = [name for name in self.busy if not seen[name].cpu_ns]
        if idle:
            return f"{' and '.join(idle)} used no CPU time, although every operation needs it"
        return None

    def lacks(self, last: Record) -> str | None:
        """Return what is missing in the runner's last line, or None."""
        return None

    def with_fault(self, record: Record) -> Record:
        """Return the record of a runner that failed, with the servers' failure if they ended."""
        return record

    def load(self, last: Record | None, phase: ChunkRecord | None, chunks: Sequence[ChunkRecord]) -> LoadRecord | None:
        """Return the load client's observations over the whole trial; None without one."""
        return None


class Workload(ABC):
    """Work of the cells of a family."""

    def serves(self, cell: Cell) -> bool:
        """Return whether it is for this cell; if not, a general one is."""
        return True

    def needs_sandbox(self, cell: Cell) -> bool:
        """Return whether it starts servers or makes files for this cell."""
        return cell.server is not None

    @abstractmethod
    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof of the cell, performed once with correct and wrong inputs."""

    @abstractmethod
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> AbstractContextManager[Work]:
        """Start what one trial needs; `core` is the measuring core. Raises NotStarted.

        `begins_on` is another core, on which it starts and warms up while other members use `core`.
        """

    @abstractmethod
    def shown(self, cell: Cell, seed: int) -> Shown:
        """Return the display of the cell."""


@dataclass(frozen=True, slots=True)
class UnsupportedWorkload(Workload):
    """Workload of a cell that its family declares impossible: nothing is tried."""

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
    """Return the workload of this cell: its family's own, or a general one with or without a server."""
    family = families.family(cell.family)
    if (reason := family.why_unsupported(cell.coordinates) or _why_alone(cell)) is not None:
        return UnsupportedWorkload(reason)
    own = _file_of(family.folder) if family.folder else None
    if own is not None and _own(own).serves(cell):
        return _own(own)
    # Imported here, because these modules import this package.
    from tollbar.lab.workloads.operation import OperationWorkload
    from tollbar.lab.workloads.request import RequestWorkload

    return RequestWorkload() if cell.server else OperationWorkload()


def _why_alone(cell: Cell) -> str | None:
    """Return why the cell's threads are not possible; None if they are, or there is one."""
    if "threads" not in cell.coordinates:
        return None
    if cell.server is None and not cell.provider.has_threads:
        return f"not available here: the runner of {cell.provider.name} performs on one thread"
    if isinstance(cell.server, Server) and cell.server.workers is None:
        return f"the server {cell.server.name} works on one core"
    if cell.coordinates.get("client") == "apart":
        return "with several threads a load client shares their cores; `client` cannot be `apart`"
    return machine.lacks_cores(cell.threads)


_BY_FAMILY = Path(__file__).with_name("by_family")


def _file_of(folder: Path) -> Path | None:
    """Return the file with the workload of the family in this folder; None if a general one serves it."""
    is_shipped = folder.parent == Path(families.__file__).parent
    path = _BY_FAMILY / f"{folder.name.replace('-', '_')}.py" if is_shipped else folder / "workload.py"
    return path if path.exists() else None


@cache
def _own(path: Path) -> Workload:
    """Return the workload of the family with this file. Raises TollbarError if it has none."""
    try:
        is_shipped = path.parent == _BY_FAMILY
        module = importlib.import_module(f"{__name__}.by_family.{path.stem}") if is_shipped else _loaded(path)
        own = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
        made = [one() for one in own if issubclass(one, Workload)]
    except Exception as error:
        raise TollbarError(f"cannot be loaded: {type(error).__name__}: {error}", where=str(path)) from error
    if len(made) != 1:
        what = f"must define one subclass of `tollbar.lab.workloads.Workload`, not {len(made)}"
        raise TollbarError(what, where=str(path))
    return made[0]


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tollbar_workload_of_{path.parent.name.replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up here.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
