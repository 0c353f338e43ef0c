"""Between the lead-in of a chunk and its clock the load client reads CPU clocks and nothing else."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench import work
from bench.parity.trace import attached

from conftest import here, lacking

LEADING = 4
# As short as the kernel makes it: two naps that find the server at rest, and more while it is not.
NAP = re.compile(r"clock_nanosleep\(CLOCK_\w+, .*tv_nsec=1\}")


@pytest.mark.servers
@pytest.mark.parametrize(("what", "bed"), [(work.BARE, "embedded"), (work.PLAIN, "nginx")])
def test_a_lead_in_is_followed_by_clocks_alone(what: str, bed: str, tmp_path: Path) -> None:
    here(bed)
    if shutil.which("strace") is None:
        lacking("no strace: apt-get install strace")
    with ExitStack() as stack:
        running = work.running(stack, what, 7)
        running.chunk(0.005)
        with attached(running.session.pid, tmp_path / "trace"):
            chunk = running.chunk(0.005)
    assert chunk.operations >= 2 * LEADING
    lines = (tmp_path / "trace").read_text().splitlines()
    sent = [number for number, line in enumerate(lines) if re.search(r"\b(sendto|write|writev)\(\d+<TCP", line)]
    between = lines[sent[LEADING - 1] + 1 : sent[LEADING]]
    assert [] == [line for line in between if "/proc/" in line], "no account is read there"
    assert [] == [line for line in between if re.search(r"\b(mmap|munmap|brk|madvise)\(", line)], "no memory is fetched"
    slept = [line for line in between if "clock_nanosleep(" in line]
    assert len(slept) >= 2
    assert slept == [line for line in slept if NAP.search(line)], "nothing sleeps for longer than a nap"
