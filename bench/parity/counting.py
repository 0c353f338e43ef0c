"""Counting a cell: calls of its library and of the system in one operation, of a runner or of servers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.parity import trace, turns
from tollbar import study
from tollbar.catalog import servers
from tollbar.core import machine
from tollbar.core.records import Outcome, failed
from tollbar.core.runner import Session, Stopped
from tollbar.lab import workloads
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Work
from tollbar.lab.workloads.request_work import RequestWork
from tollbar.study import Coordinates, plan
from tollbar.study.plan.cells import Cell

LIMIT_S = 180.0
# The engine's counts are there at once.
SAID_LIMIT_S = 5.0
COUNTS, SAID = "TOLLBAR_COUNT_CALLS", "calls: "
# Counted operations: for a password hash this number takes seconds, for a row a checkpoint is a small part.
OPERATIONS: Mapping[str, int] = {"password-hash": 2, "storage": 50, "web-auth": 40, "tls": 50}
FEW = 10
# Occasional calls, of a server's background work or of a growing heap, are no part of an operation.
LEAST = 0.05
# Beginnings of reasons other than an unsupported cell.
FAILURES = tuple(f"{outcome}: " for outcome in Outcome if outcome is not Outcome.UNSUPPORTED)
# A runner reads its clock between batches, and heaps grow and shrink now and then.
OWN = ("clock_gettime", "brk", "mmap", "munmap", "madvise", "restart_syscall", "rt_sigreturn")
# Coordinates with a column of their own, or with one value in all rows of a table. Servers that are asked directly; a
# database is asked by its client.
FRONTS = ("embedded", "nginx", "httpd")
COLUMNS = ("choice", "op", "provider", "server", "users")


@dataclass(frozen=True, slots=True)
class Row:
    """Calls of one operation of a cell."""

    choice: str
    settings: str
    """Settings in which rows of this table differ: `store=sql`."""
    operation: str
    by: str
    """Provider, with the server if there is one."""
    calls: Mapping[str, float] = field(default_factory=dict)
    """Calls into the library, and the engine's tallies of linked-in code."""
    system: Mapping[str, float] = field(default_factory=dict)
    """System calls; those of components behind the asked one have the component's name: `database: recvfrom`."""
    sent: float | None = None
    """Bytes to the server's client; for a database's client, bytes to the server."""
    received: float | None = None

    @property
    def does(self) -> dict[str, float]:
        """Return all counts except the waits and receives of servers."""
        moved = {"bytes sent": self.sent, "bytes received": self.received}
        system = {name: count for name, count in self.system.items() if self._turn(name) is None}
        return {**self.calls, **system, **{name: count for name, count in moved.items() if count is not None}}

    @property
    def taken(self) -> dict[str, float]:
        """Return the waits and receives of each component by name: `waits`, `database: receives`."""
        found: dict[str, float] = {}
        for name, count in self.system.items():
            if (what := self._turn(name)) is not None:
                found[what] = round(found.get(what, 0.0) + count, 2)
        return found

    def _turn(self, name: str) -> str | None:
        """Return the wait or receive that a system call is, or None for others and for a runner's own."""
        component, _, call = name.rpartition(": ")
        whats = {"waits": turns.WAITS, "receives": turns.RECEIVES}
        what = next((what for what, calls in whats.items() if call in calls), None)
        is_of_server = component != "" or self.by.partition(",")[0] in FRONTS
        return f"{component}: {what}".removeprefix(": ") if what and is_of_server else None

    @property
    def label(self) -> str:
        """Return the label by which a reason names the row."""
        return " ".join(filter(None, [self.choice, self.settings]))


@dataclass(frozen=True, slots=True)
class Absent:
    """Cell that could not be counted."""

    choice: str
    settings: str
    operation: str
    by: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Return whether the cell failed instead of being unsupported."""
        return self.reason.startswith(FAILURES)


def count(texts: Sequence[str]) -> Iterator[Row | Absent]:
    """Yield the cells of a part's studies, counted or with a reason.

    All of them share a sandbox: accounts and directories are made once.
    """
    # Before counting begins: libraries are found by the address of a function, which would then be the engine's.
    found = [*cells(texts)]
    os.environ[COUNTS] = "1"
    try:
        with Sandbox() as sandbox:
            for cell, row in found:
                yield row if isinstance(row, Absent) else _counted(cell, row, sandbox)
    finally:
        del os.environ[COUNTS]


def cells(texts: Sequence[str]) -> Iterator[tuple[Cell | None, Row | Absent]]:
    """Yield the cells of these studies, each once, with a row without counts; and the cells that they leave out."""
    studies = [study.read(f"parity-{number}", text, where="bench") for number, text in enumerate(texts)]
    plans = plan.make(studies, seed=1).studies
    found = [(cell, cell.coordinates) for one in plans for cell in one.cells]
    values: dict[str, set[str]] = {}
    for _, at in found:
        for coordinate, value in at.items():
            values.setdefault(coordinate, set()).add(str(value))
    several = [coordinate for coordinate, all_ in values.items() if len(all_) > 1 and coordinate not in COLUMNS]
    done = set()
    for cell, at in found:
        settings = " ".join(f"{coordinate}={at[coordinate]}" for coordinate in several if coordinate in at)
        row = Row(cell.choice.name, settings, str(at["op"]), _at(at))
        if (key := (row.choice, settings, row.operation, row.by)) not in done:
            done.add(key)
            yield cell, row
    for one in plans:
        left_out = [Absent(str(at["choice"]), "", str(at["op"]), _at(at), reason) for at, reason in one.left_out]
        yield from ((None, absent) for absent in dict.fromkeys(left_out))


def _at(at: Coordinates) -> str:
    return ", ".join(str(at[coordinate]) for coordinate in ("server", "provider") if coordinate in at)


def _counted(cell: Cell | None, row: Row, sandbox: Sandbox) -> Row | Absent:
    assert cell is not None
    # A server and its client take turns on one core, as they do when measured. A runner's threads are counted on all.
    core = machine.measuring_core() if isinstance(cell.server, servers.Server) else None
    try:
        with workloads.of(cell).up(cell, 1, sandbox, core) as work:
            return of_server(cell, row, work) if isinstance(work, RequestWork) else of_runner(cell, row, work)
    except (Stopped, servers.NotStarted) as error:
        record = error.record if isinstance(error, Stopped) else failed(error.reason, error.outcome)
        kind = "" if record.outcome is Outcome.UNSUPPORTED else f"{record.outcome}: "
        return Absent(row.choice, row.settings, row.operation, row.by, f"{kind}{record.reason}")


def of_runner(cell: Cell, row: Row, work: Work) -> Row:
    """Count between a line and its answer; for a database's client, with its server's calls meanwhile.

    Raises Stopped.
    """
    operations = OPERATIONS.get(cell.family, FEW)
    database = cell.server.name if isinstance(cell.server, servers.Server) else None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        said = folder / "said"
        # The client has an account of its own if the lab is root's.
        folder.chmod(0o777)
        # A session keeps standard error for itself.
        command = ["sh", "-c", 'said=$1; shift; exec "$@" 2>"$said"', "sh", str(said), *work.command]
        task = {**work.task, "lead": False}
        session = stack.enter_context(Session(command, task, core=work.core, account=work.account))
        session.ready(LIMIT_S)
        # The first chunk may prepare something that the next ones reuse.
        session.advance(0.0, operations, LIMIT_S)
        before = _calls(said, 1)
        components = _components(work)
        with _attached(components, folder):
            with trace.attached(session.pid, folder / "runner", whole=database is not None):
                done = session.advance(0.0, operations, LIMIT_S).operations
            calls = _calls(said, 2) - before
        client = trace.read(folder / "runner", is_session=True)
        if database is None:
            return _row(row, calls, per(client.calls, done), done)
        calls["statements sent"] = trace.statements(database, bytes(client.said))
        of_servers = (_of_component(folder, name) for name in components)
        system = per(sum(of_servers, client.calls), done) | _turns(components, session)
        return _row(row, calls, system, done, sent=client.sent, received=client.received)


def of_server(cell: Cell, row: Row, work: RequestWork) -> Row:
    """Count each component over a number of requests.

    Raises Stopped.
    """
    front = [*work.server.components][-1]
    port = f":{work.server.address.rpartition(':')[2]}->"
    is_engine = isinstance(cell.server, servers.Server) and cell.server.name == "embedded"
    assert isinstance(work.server, StartedServer), "rows are counted of servers that are started here"
    log, root = work.server.logs[front], work.server.components[front]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        task = {**work.task, "load": {**work.task["load"], "lead": False}}
        session = stack.enter_context(Session(work.command, task, core=work.core, account=work.account))
        session.ready(LIMIT_S)
        before = _asked(log, root) if is_engine else Counter[str]()
        with _attached(work.server.components, folder):
            done = session.advance(0.0, OPERATIONS.get(cell.family, FEW), LIMIT_S).operations
        calls = _asked(log, root) - before if is_engine else before
        served = trace.read(folder / front, lambda about: port in about)
        behind = (_of_component(folder, name) for name in work.server.components if name != front)
        system = per(sum(behind, served.calls), done)
        taken = _turns(work.server.components, session)
        system |= {name.removeprefix(f"{front}: "): count for name, count in taken.items()}
        return _row(row, calls, system, done, sent=served.sent, received=served.received)


def _turns(components: Mapping[str, int], session: Session) -> dict[str, float]:
    """Return waits and receives of each component in one operation, in a chunk that nothing stops.

    Raises Stopped. They replace strace's: 0 if there are none. If the kernel does not count, strace's stay.
    """
    if not turns.can_count():
        return {}
    found = Counter({f"{name}: {call}": 0 for name in components for call in turns.CALLS})
    with turns.counted(components, found):
        done = session.advance(0.0, turns.OPERATIONS, LIMIT_S).operations
    return {name: round(count / done, 2) for name, count in found.items()}


def _components(work: Work) -> Mapping[str, int]:
    """Return the roots of a database's processes; empty if it is in the runner."""
    found: Mapping[str, int] = work.database.components if hasattr(work, "database") else {}
    return found


@contextmanager
def _attached(components: Mapping[str, int], folder: Path) -> Iterator[None]:
    """Trace every process of each component into a file of its name."""
    with ExitStack() as stack:
        for name, root in components.items():
            stack.enter_context(trace.attached(root, folder / name))
        yield


def _of_component(folder: Path, name: str) -> Counter[str]:
    return Counter({f"{name}: {call}": count for call, count in trace.read(folder / name).calls.items()})


def _calls(said: Path, chunks: int) -> Counter[str]:
    """Return an engine's counts of these chunks; empty for another runner, which does not count.

    The engine prints them after each answer, so they may come late.
    """
    deadline = time.monotonic() + SAID_LIMIT_S
    while len(lines := _said(said)) < chunks and time.monotonic() < deadline:
        time.sleep(trace.POLL_S)
    return Counter(json.loads(lines[chunks - 1])) if len(lines) >= chunks else Counter()


def _asked(log: Path, root: int) -> Counter[str]:
    """Return the embedded server's counts, which it prints on a signal."""
    had = len(_said(log))
    os.kill(trace.below(root)[0], signal.SIGUSR1)
    deadline = time.monotonic() + SAID_LIMIT_S
    while len(lines := _said(log)) <= had and time.monotonic() < deadline:
        time.sleep(trace.POLL_S)
    return Counter(json.loads(lines[-1]))


def _said(file: Path) -> list[str]:
    """Return the complete lines with counts."""
    lines = file.read_text(errors="replace").splitlines(keepends=True) if file.exists() else []
    return [line[len(SAID) :] for line in lines if line.startswith(SAID) and line.endswith("\n")]


def _row(
    row: Row,
    calls: Mapping[str, int],
    system: Mapping[str, float],
    done: int,
    *,
    sent: int | None = None,
    received: int | None = None,
) -> Row:
    sent_each, received_each = (None if count is None else float(round(count / done)) for count in (sent, received))
    seen = {name: count for name, count in sorted(system.items()) if count >= LEAST}
    return replace(row, calls=per(calls, done), system=seen, sent=sent_each, received=received_each)


def per(counts: Mapping[str, int], operations: int) -> dict[str, float]:
    """Return the counts of one operation, without rare calls."""
    each = {name: count / operations for name, count in sorted(counts.items())}
    is_own = {name: name.rpartition(": ")[2] in OWN for name in each}
    return {name: round(count, 1) for name, count in each.items() if count >= LEAST and not is_own[name]}


def lacking() -> str | None:
    """Return the reason why calls or waits cannot be counted here, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    if not turns.can_count():
        return "waits are counted by the kernel: as root, `mount -t tracefs tracefs /sys/kernel/tracing`"
    return None
