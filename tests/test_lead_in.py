"""Lead-in of a chunk: until its clock starts a client reads only CPU clocks, and it yields to its server."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench import work
from bench.parity.trace import attached, below

from conftest import here, lacking
from tollbar.lab.workloads.request_work import RequestWork

LEADING = 4
# The kernel's shortest naps: two that find the server at rest, and more while it works.
NAP = re.compile(r"clock_nanosleep\(CLOCK_\w+, .*tv_nsec=1\}")


# Slow reads of accounts: processes, their threads, and the list of a control group.
LONG_READ = re.compile(r"/proc/|/cgroup\.procs\b")
MEMORY = re.compile(r"\b(mmap|munmap|brk|madvise)\(")


def traced(what: str, trace: Path) -> tuple[list[str], list[int], int]:
    """Return the lines of a chunk's trace, the numbers of those that send, and the chunk's operations."""
    if shutil.which("strace") is None:
        lacking("no strace: apt-get install strace")
    with ExitStack() as stack:
        running = work.running(stack, what, 7)
        running.chunk(0.005)
        with attached(running.session.pid, trace):
            chunk = running.chunk(0.005)
    lines = trace.read_text().splitlines()
    sends = [number for number, line in enumerate(lines) if re.search(r"\b(sendto|write|writev)\(\d+<(TCP|UNIX)", line)]
    return lines, sends, chunk.operations


def assert_naps_alone(lines: list[str]) -> None:
    """Check that there are at least two naps, no longer sleep, and no slow read."""
    assert [] == [line for line in lines if LONG_READ.search(line)], "no account is read there"
    slept = [line for line in lines if "clock_nanosleep(" in line]
    assert len(slept) >= 2
    assert slept == [line for line in slept if NAP.search(line)], "nothing sleeps for longer than a nap"


@pytest.mark.servers
@pytest.mark.parametrize(("what", "server"), [(work.BARE, "embedded"), (work.PLAIN, "nginx")])
def test_a_lead_in_is_followed_by_clocks_alone(what: str, server: str, tmp_path: Path) -> None:
    here(server)
    lines, sends, operations = traced(what, tmp_path / "trace")
    assert operations >= 2 * LEADING
    between = lines[sends[LEADING - 1] + 1 : sends[LEADING]]
    assert_naps_alone(between)
    assert [] == [line for line in between if MEMORY.search(line)], "no memory is fetched"


@pytest.mark.servers
@pytest.mark.parametrize(("what", "server"), [(work.POSTGRESQL, "postgresql"), (work.MARIADB, "mariadb")])
def test_a_databases_lead_in_is_followed_by_clocks_alone(what: str, server: str, tmp_path: Path) -> None:
    """The number of operations that lead in depends on their cost: everything from the first to the last is checked."""
    here(server)
    lines, sends, operations = traced(what, tmp_path / "trace")
    assert len(sends) > operations, "some lead in"
    assert_naps_alone(lines[sends[0] : sends[-1]])


@pytest.mark.servers
@pytest.mark.parametrize(("what", "server"), [(work.BARE, "embedded"), (work.POSTGRESQL, "postgresql")])
def test_a_client_gives_way_to_its_server(what: str, server: str) -> None:
    here(server)
    with ExitStack() as stack:
        running = work.running(stack, what, 7)
        started = running.work.server if isinstance(running.work, RequestWork) else running.work.database
        found = policies(running.session.pid), policies(*started.components.values())
    assert ({os.SCHED_BATCH}, {os.SCHED_OTHER}) == found


def policies(*roots: int) -> set[int]:
    """Return the scheduling policies of all threads below these guards."""
    tasks = (task for root in roots for pid in below(root) for task in Path(f"/proc/{pid}/task").iterdir())
    return {os.sched_getscheduler(int(task.name)) for task in tasks}
