"""Runs with servers that something ends: no process, no port and no directory is left, and the run can go on."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bed_lab import CANNOT_READ, NOBODY, PR_SET_CHILD_SUBREAPER
from conftest import command, here
from tollbar.beds import premises, proc

pytestmark = pytest.mark.timeout(600)

BEDS = ("embedded", "nginx", "httpd")

STUDY = """
question  = "What is left of this?"
family    = "tls"
choices   = ["tls-1.3"]
providers = ["libcrypto"]
beds      = {beds}
baseline  = "tls-1.3"

[vary]
op = ["request"]

[load]
users   = [2]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}

[measure]
trial   = "20 ms"
warm-up = "2 ms"
blocks  = {blocks}
"""

# What was killed is gone within milliseconds; a busy machine may take its time.
PATIENCE_S = 10.0
RUN_LIMIT_S = 120.0


@dataclass
class Ground:
    """A place for runs, with temporary files of their own, whose orphans all become children of this process."""

    folder: Path
    children: frozenset[int]
    """Those that this process had before."""
    user: int | None = None
    ports: set[str] = field(default_factory=set)
    """Listening sockets that some run had."""

    @property
    def temporary(self) -> Path:
        """What the runs take for the system's place for temporary files."""
        return self.folder / "tmp"

    @property
    def runs(self) -> list[Path]:
        """The runs that were begun here."""
        return sorted(path.parent for path in (self.folder / "runs").glob("*/run.json"))

    def study(self, blocks: int, beds: Sequence[str] = BEDS) -> Path:
        """A study of a cell for each bed."""
        path = self.folder / f"left-{blocks}-{len(beds)}.toml"
        path.write_text(STUDY.format(beds=json.dumps(beds), blocks=blocks))
        return path

    def start(self, *arguments: object, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """`tollbar run`, as a user types it, but for what is put before it."""
        words = [*(before or [command()]), "run", *map(str, arguments), "--json", "--no-report"]
        with open(self.folder / "talk", "wb") as talk:
            return subprocess.Popen(
                words,
                cwd=self.folder,
                env={**os.environ, "TMPDIR": str(self.temporary), "HOME": str(self.folder)},
                stdout=subprocess.DEVNULL if not before else subprocess.PIPE,
                stderr=talk,
            )

    def finish(self, *arguments: object) -> int:
        """The exit status of a run that nobody ends."""
        return self.start(*arguments).wait(RUN_LIMIT_S)

    def talk(self) -> str:
        """What the last run said."""
        return (self.folder / "talk").read_text()

    def under_way(self, run: subprocess.Popen[bytes]) -> list[str]:
        """The programs that this run has going, whose ports are noted."""
        pids = proc.tree(run.pid)
        files = {file for pid in pids for file in proc._open_files(pid)}
        self.ports |= {inode for inode in listening() if f"socket:[{inode}]" in files}
        return [name for pid in pids[1:] if (name := program(pid))]

    def descendants(self) -> set[int]:
        """All processes below this one, but for those that it had before and whatever they start."""
        children = set(proc._children(os.getpid())) - self.children
        return {pid for child in children for pid in proc.tree(child)}

    def left(self, *expected: str) -> dict[str, object]:
        """Whatever is left of all runs beside these directories, once all have had their time to end."""
        deadline = time.monotonic() + PATIENCE_S
        while (left := self._left(expected)) != NOTHING and time.monotonic() < deadline:
            time.sleep(0.01)
        return left

    def _left(self, expected: Sequence[str]) -> dict[str, object]:
        pids = self.descendants()
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        pids |= mentioning(str(self.temporary))
        return {
            "processes": sorted(name for pid in pids if (name := program(pid))),
            "ports": sorted(self.ports & listening()),
            "directories": sorted({path.name for path in self.temporary.iterdir()} - {*expected}),
        }


NOTHING: dict[str, object] = {"processes": [], "ports": [], "directories": []}


@pytest.fixture
def ground() -> Iterator[Ground]:
    """A ground for a test with every bed, in a place that a server's workers can pass."""
    for name in BEDS:
        here(name)
    folder = Path(tempfile.mkdtemp(prefix="survivors-", dir=premises.folder_for_all()))
    folder.chmod(0o755)
    ground = Ground(folder, frozenset(proc._children(os.getpid())))
    ground.temporary.mkdir()
    ground.temporary.chmod(0o711)
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield ground
    finally:
        for pid in ground.descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        shutil.rmtree(folder)


def program(pid: int) -> str:
    """What a process runs, in a few words; nothing, where it is gone or dead."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if words != [""]:
            return f"{pid} {' '.join(words)[:200]}"
    return ""


def mentioning(path: str) -> set[int]:
    """Processes that have to do with this path: by their command, the place they are in, or what they have open."""
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            seen = [
                Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace"),
                os.readlink(f"/proc/{name}/cwd"),
            ]
            if any(path in one for one in [*seen, *proc._open_files(int(name))]):
                found.add(int(name))
    return found


def listening() -> set[str]:
    """The inode of every TCP socket that listens."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {fields[9] for fields in lines if fields[3] == proc.LISTENING}


def trials_of(run: Path) -> list[tuple[object, ...]]:
    """A run's trials in the order they were made, from a database that is whole."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        assert [("ok",)] == database.execute("pragma integrity_check").fetchall()
        return database.execute("select study, cell, twin, block, outcome, cpu_ns from trial order by ord").fetchall()


def cells_of(run: Path) -> list[tuple[str | None, str | None]]:
    """Outcome and reason of each cell; None where it is not proved yet."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        return database.execute("select outcome, reason from cell order by position").fetchall()


def until(found: Callable[[], object], run: subprocess.Popen[bytes]) -> None:
    """Waits for something that the run is to do."""
    deadline = time.monotonic() + RUN_LIMIT_S
    while not found():
        assert run.poll() is None, "the run ended before that"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def trials_there(ground: Ground) -> bool:
    """Whether a trial is on the disk."""
    return bool(ground.runs) and bool(trials_of(ground.runs[-1]))


# So many moments: every other one in a run that has just begun, the others in that same run when it is gone on with.
KILLS = 20
BLOCKS = 4
# Two visits to each cell, which is its own baseline.
TRIALS = BLOCKS * 2 * len(BEDS)


def test_nothing_survives_a_kill_at_any_moment(ground: Ground) -> None:
    """SIGKILL leaves nothing within seconds, loses no trial that was committed, and the run can be finished."""
    study, chance = ground.study(BLOCKS), random.Random(3)
    measuring_s, whole_s = undisturbed(ground, study)
    assert ground.left() == NOTHING
    unfinished: Path | None = None
    while_proving = while_measuring = with_servers = 0
    for number in range(KILLS):
        is_new = number % 2 == 0
        unfinished = None if is_new else unfinished
        before = trials_of(unfinished) if unfinished else []
        # New runs until there are trials, others until the end: a tenth of that after the other.
        last_s = measuring_s if is_new else whole_s
        after_s = 0.1 + (number // 2 + chance.random()) * 2 / KILLS * (last_s - 0.1)
        known = ground.runs
        run = ground.start(*(["--resume", unfinished] if unfinished else [study]))
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(after_s)
        programs = ground.under_way(run)
        run.kill()
        status = run.wait()
        moment = f"kill {number}, {after_s:.2f} s after the start, with {programs}: {ground.talk()}"
        assert status in (0, -signal.SIGKILL), moment
        assert ground.left() == NOTHING, moment
        with_servers += any("guard --tree" in name for name in programs)
        unfinished = next((made for made in ground.runs if made not in known), unfinished)
        if unfinished is None:
            continue  # Killed before there was a run.
        trials, outcomes = trials_of(unfinished), {outcome for outcome, _ in cells_of(unfinished)}
        assert before == trials[: len(before)], moment
        assert {"ok"} >= {trial[4] for trial in trials}, moment
        assert {"ok", None} >= outcomes, moment
        assert status != 0 or len(trials) == TRIALS, moment
        while_proving += None in outcomes
        while_measuring += 0 < len(trials) < TRIALS
    # Kills that all came at one stage would have shown little.
    assert min(while_proving, while_measuring, with_servers) >= 2, (while_proving, while_measuring, with_servers)
    assert unfinished is not None
    assert 0 == ground.finish("--resume", unfinished), ground.talk()
    assert TRIALS == len(trials_of(unfinished))
    assert ground.left() == NOTHING


def undisturbed(ground: Ground, study: Path) -> tuple[float, float]:
    """How long a run of this study takes until it has trials, and until it ends."""
    began = time.monotonic()
    run = ground.start(study)
    until(lambda: trials_there(ground), run)
    measuring_s = time.monotonic() - began
    assert 0 == run.wait(RUN_LIMIT_S), ground.talk()
    return measuring_s, time.monotonic() - began


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_nothing_survives_a_run_that_is_asked_to_end(ground: Ground, how: signal.Signals) -> None:
    """Ctrl-C ends a run in words and with status 130; SIGTERM ends it too; and nothing is left either way."""
    chance = random.Random(5)
    for number in range(5):
        made = len(ground.runs)
        run = ground.start(ground.study(50))
        until(lambda made=made: ground.runs[made:], run)
        after_s = chance.uniform(0.0, 1.5)
        time.sleep(after_s)
        programs = ground.under_way(run)
        run.send_signal(how)
        status = run.wait(RUN_LIMIT_S)
        moment = f"{how.name} {number}, {after_s:.2f} s after the run was there, with {programs}: {ground.talk()}"
        assert (130 if how is signal.SIGINT else -how) == status, moment
        assert "Traceback" not in ground.talk(), moment
        assert ground.left() == NOTHING, moment
        if how is signal.SIGINT:
            assert f"tollbar run --resume runs/{ground.runs[-1].name}" in ground.talk().replace("\n", ""), moment


# What it guards, and how many processes there are at least with a worker.
@pytest.mark.parametrize(("servers", "processes"), [(["nginx"], 3), (["apache2", "httpd"], 3), (["serve"], 2)])
def test_a_killed_guard_is_a_failed_cell(ground: Ground, servers: list[str], processes: int) -> None:
    """Somebody kills the very process that sees servers out: the cell fails, the others go on, nothing is left."""
    run = ground.start(ground.study(50))
    until(lambda: trials_there(ground), run)
    guards: list[int] = []

    def guard_there() -> list[int]:
        for pid in proc.tree(run.pid):
            words = program(pid).split(" -- ")
            is_guard = len(words) > 1 and "--tree" in words[0] and any(name in words[1] for name in servers)
            if is_guard and len(proc.tree(pid)) >= processes:
                ground.under_way(run)
                guards.append(pid)
        return guards

    until(guard_there, run)
    os.kill(guards[0], signal.SIGKILL)
    until(lambda: [cell for cell in cells_of(ground.runs[-1]) if cell[0] != "ok"], run)
    run.send_signal(signal.SIGINT)
    run.wait(RUN_LIMIT_S)
    assert ground.left() == NOTHING
    (failed,) = [cell for cell in cells_of(ground.runs[-1]) if cell[0] != "ok"]
    assert "failed" == failed[0]
    assert "was ended by SIGKILL" in (failed[1] or "")


def keeper_of(ground: Ground) -> int:
    """The process that keeps the directory of the one run there is."""
    (directory,) = ground.temporary.glob("tollbar-*")
    return int(json.loads((directory / "keeper.json").read_text())["pid"])


def test_a_run_goes_on_without_its_keeper(ground: Ground) -> None:
    """Somebody kills the process that keeps the directory: the run removes it itself when it ends."""
    run = ground.start(ground.study(2))
    until(lambda: trials_there(ground), run)
    os.kill(keeper_of(ground), signal.SIGKILL)
    assert 0 == run.wait(RUN_LIMIT_S), ground.talk()
    assert ground.left() == NOTHING


def test_the_next_run_sweeps_what_was_left_with_nobody_to_keep_it(ground: Ground) -> None:
    """After a power cut, or when all are killed at once, the directory stays until somebody runs again."""
    run = ground.start(ground.study(50))
    until(lambda: trials_there(ground), run)
    ground.under_way(run)
    os.kill(keeper_of(ground), signal.SIGKILL)
    run.kill()
    run.wait()
    # The keeper is dead, and would stay a child of this process for ever.
    (directory,) = ground.temporary.iterdir()
    assert ground.left(directory.name) == NOTHING
    assert 0 == ground.finish(ground.study(1, ["embedded"])), ground.talk()
    assert ground.left() == NOTHING


def test_the_next_run_ends_whom_nobody_saw_out(ground: Ground) -> None:
    """Run, keeper and guards are killed at once, as by `pkill -9`: workers outlive them until somebody runs again."""
    run = ground.start(ground.study(50, ["nginx"]))
    guards: list[int] = []

    def with_workers() -> bool:
        trees = {pid: proc.tree(pid) for pid in proc.tree(run.pid) if " guard --tree " in program(pid)}
        guards[:] = [pid for pid, tree in trees.items() if len(tree) >= 3]
        return bool(guards)

    until(with_workers, run)
    ground.under_way(run)
    # Nobody is to notice the end of another.
    run.send_signal(signal.SIGSTOP)
    for pid in (*guards, keeper_of(ground), run.pid):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    (directory,) = ground.temporary.iterdir()
    assert any("nginx: worker" in str(name) for name in ground._left([directory.name])["processes"])  # type: ignore[attr-defined]
    assert 0 == ground.finish(ground.study(1, ["embedded"])), ground.talk()
    assert ground.left() == NOTHING


# Gives up root between two runs: the first has read what perhaps only root may, such as Python itself.
ORDINARY = f"""
import contextlib, os, sys
from tollbar.cli import main
from tollbar.runner import engine

def tollbar(*arguments):
    sys.argv = ["tollbar", *arguments]
    with contextlib.suppress(SystemExit) as status:
        main()

rehearsal, *arguments = sys.argv[1:]
cores = os.sched_getaffinity(0)
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    tollbar("run", rehearsal, "--json", "--no-report", "--runs", "rehearsed")
os.sched_setaffinity(0, cores)
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
if not (os.access(engine(), os.X_OK) and os.access(sys.modules["tollbar"].__file__, os.R_OK)):
    sys.exit({CANNOT_READ})
print("ordinary", flush=True)
sys.argv = ["tollbar", *arguments]
main()
"""


def test_nothing_survives_of_an_ordinary_user_s_run(ground: Ground) -> None:
    """Whoever is not root can run all beds, is left with nothing likewise, and can go on."""
    if os.geteuid() != 0:
        pytest.skip("this is an ordinary user, and all tests have shown it")
    for path in (ground.folder, ground.temporary):
        os.chown(path, NOBODY, NOBODY)
    as_ordinary = [sys.executable, "-c", ORDINARY, str(ground.study(1))]
    chance = random.Random(7)
    ends = [(signal.SIGKILL, chance.uniform(0.0, 1.5)) for _ in range(3)] + [(signal.SIGINT, 1.0), (None, 0.0)]
    for how, after_s in ends:
        arguments = ["--resume", ground.runs[0]] if ground.runs else [ground.study(2)]
        with ground.start(*arguments, before=as_ordinary) as run:
            assert run.stdout is not None
            if run.stdout.readline() != b"ordinary\n":
                assert CANNOT_READ == run.wait(), ground.talk()
                pytest.skip("an ordinary user cannot read this checkout, or what is installed for it")
            moment = f"{how} after {after_s:.2f} s"
            if how is None:
                run.stdout.read()
                assert 0 == run.wait(RUN_LIMIT_S), ground.talk()
            else:
                time.sleep(after_s)
                ground.under_way(run)
                run.send_signal(how)
                run.stdout.read()
                assert run.wait(RUN_LIMIT_S) in (0, 130, -how), f"{moment}: {ground.talk()}"
        assert ground.left() == NOTHING, f"{moment}: {ground.talk()}"
    (run_there,) = ground.runs
    assert {("ok", None)} == set(cells_of(run_there))
    assert 2 * 2 * len(BEDS) == len(trials_of(run_there))
    assert NOBODY == (run_there / "results.sqlite").stat().st_uid
    assert stat.S_IMODE(ground.temporary.stat().st_mode) == 0o711
