"""Runs with servers that something ends: no process, no port and no directory is left, and the run can go on."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed_lab import CANNOT_READ, NOBODY, PR_SET_CHILD_SUBREAPER
from conftest import here
from survivors_ground import BEDS, NOTHING, RUN_LIMIT_S, Ground, cells_of, program, trials_of, trials_there, until
from tollbar.beds import premises, proc

pytestmark = pytest.mark.timeout(600)


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

    def held_with_workers() -> bool:
        if not with_workers():
            return False
        # Nobody is to notice the end of another; and a server that was just asked to stop has its time to do so.
        run.send_signal(signal.SIGSTOP)
        ground.under_way(run)
        time.sleep(0.3)
        if not with_workers():
            run.send_signal(signal.SIGCONT)
        return bool(guards)

    until(held_with_workers, run)
    for pid in (*guards, keeper_of(ground), run.pid):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    assert 1 == len([*ground.temporary.iterdir()])
    assert any("nginx: worker" in program(pid) for pid in ground.descendants())
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
