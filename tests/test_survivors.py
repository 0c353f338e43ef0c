"""Runs with servers that are ended: no process, port or directory is left, and the run can go on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.ground import (
    NOTHING,
    PROGRAMS,
    RUN_LIMIT_S,
    SERVERS,
    SERVICES,
    Ground,
    a_ground,
    cells_of,
    failed_of,
    program,
    trials_of,
    trials_there,
    until,
)

import share
from conftest import here, lacking
from server_lab import CANNOT_READ, NOBODY
from tollbar.core import proc


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Yield a ground with every server, in a place that a server's workers can enter."""
    for name in SERVERS:
        here(name)
    with a_ground() as ground:
        yield ground


# Number of kills: every other one in a run that has just begun, the others in the same run when it is resumed.
KILLS = share.of(6, 20)
BLOCKS = 3
# Trials of a batch: a cell that is its own baseline, and its repeat.
BATCH = 2
TRIALS = BLOCKS * BATCH * len(SERVERS)


def is_proving(ground: Ground, known: list[Path], run: subprocess.Popen[bytes]) -> bool:
    """Return whether a new run proves a cell whose server is up."""
    new = [made for made in ground.runs if made not in known]
    has_servers = any("guard --tree" in name for name in ground.under_way(run))
    return bool(new) and has_servers and None in {outcome for outcome, _ in cells_of(new[0])}


def is_measuring(ground: Ground, known: list[Path], run: subprocess.Popen[bytes]) -> bool:
    """Return whether the last run has trials."""
    return bool(trials_there(ground))


# The first two kills come at these stages; after a fixed time a run on a busy machine may be elsewhere.
STAGES = {0: is_proving, 1: is_measuring}


@pytest.mark.share(0)
def test_nothing_survives_a_kill_at_any_moment(ground: Ground) -> None:
    study, chance = ground.study(BLOCKS), random.Random(3)
    measuring_s, whole_s = uninterrupted(ground, study)
    assert ground.left() == NOTHING
    unfinished: Path | None = None
    while_proving = while_measuring = with_servers = 0
    for number in range(KILLS):
        is_new = number % 2 == 0
        unfinished = None if is_new else unfinished
        before = trials_of(unfinished) if unfinished else []
        # New runs are killed before they have trials, others before their end; the moments are spread over that time.
        last_s = measuring_s if is_new else whole_s
        after_s = 0.1 + (number // 2 + chance.random()) * 2 / KILLS * (last_s - 0.1)
        known = ground.runs
        run = ground.start(*(["--resume", unfinished] if unfinished else [study]))
        if number in STAGES:
            until(lambda known=known: STAGES[number](ground, known, run), run)  # noqa: B023
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(after_s)
        programs = ground.under_way(run)
        run.kill()
        status = run.wait()
        moment = f"kill {number}, {after_s:.2f} s after the start, with {programs}: {ground.output()}"
        assert status in (0, -signal.SIGKILL), moment
        assert ground.left() == NOTHING, moment
        with_servers += any("guard --tree" in name for name in programs)
        unfinished = next((made for made in ground.runs if made not in known), unfinished)
        if unfinished is None:
            continue  # Killed before there was a run.
        trials, outcomes = trials_of(unfinished), {outcome for outcome, _ in cells_of(unfinished)}
        assert before == trials[: len(before)], moment
        # A batch is a cell and its repeat, there whole or not at all.
        assert 0 == len(trials) % BATCH, moment
        assert {"ok"} >= {trial.outcome for trial in trials}, moment
        assert {"ok", None} >= outcomes, moment
        assert status != 0 or len(trials) == TRIALS, moment
        while_proving += None in outcomes
        while_measuring += 0 < len(trials) < TRIALS
    # Kills of one stage alone would show little; the load decides how many more come at each.
    assert min(while_proving, while_measuring, with_servers) >= 1, (while_proving, while_measuring, with_servers)
    assert unfinished is not None
    assert 0 == ground.finish("--resume", unfinished), ground.output()
    assert TRIALS == len(trials_of(unfinished))
    assert ground.left() == NOTHING


# Each takes some ten seconds: a few by default, or as many as set.
KILLS_WITH_ALL = int(os.environ.get("TOLLBAR_KILLS", "3"))


@pytest.mark.share(0)
@pytest.mark.timeout(3600)
def test_nothing_survives_a_kill_with_every_server_up(ground: Ground) -> None:
    for name in SERVICES:
        here(name)
    study, chance = ground.study_of_every_server(200), random.Random(11)

    def until_measuring() -> None:
        known = len(ground.runs)
        until(lambda: len(ground.runs) > known and trials_there(ground), run)
        assert {("ok", None)} == set(cells_of(ground.runs[-1])), ground.output()

    # The first prepares the state that the others reuse.
    for number in range(1 + KILLS_WITH_ALL):
        began = time.monotonic()
        run = ground.start(study)
        # Every other one while servers are started and proved, the others when all are up.
        if number % 2 == 0:
            until_measuring()
            measuring_s = time.monotonic() - began
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(chance.uniform(0.1, measuring_s if number % 2 else 3.0))
        programs = ground.under_way(run)
        run.kill()
        moment = f"kill {number}, {time.monotonic() - began:.2f} s after the start, with {programs}: {ground.output()}"
        assert -signal.SIGKILL == run.wait(), moment
        assert ground.left() == NOTHING, moment
        up = {name for name, words in PROGRAMS.items() if any(re.search(words, program) for program in programs)}
        assert number % 2 or {*PROGRAMS} == up, moment


def uninterrupted(ground: Ground, study: Path) -> tuple[float, float]:
    """Return the time until a run of this study has trials, and until it ends."""
    began = time.monotonic()
    run = ground.start(study)
    until(lambda: trials_there(ground), run)
    measuring_s = time.monotonic() - began
    assert 0 == run.wait(RUN_LIMIT_S), ground.output()
    return measuring_s, time.monotonic() - began


@pytest.mark.share(1)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_nothing_survives_a_run_that_is_asked_to_end(ground: Ground, how: signal.Signals) -> None:
    chance = random.Random(5)
    for number in range(share.of(1, 3)):
        made = len(ground.runs)
        run = ground.start(ground.study(50))
        until(lambda made=made: ground.runs[made:], run)
        after_s = chance.uniform(0.0, 1.5)
        time.sleep(after_s)
        programs = ground.under_way(run)
        run.send_signal(how)
        status = run.wait(RUN_LIMIT_S)
        moment = f"{how.name} {number}, {after_s:.2f} s after the run was there, with {programs}: {ground.output()}"
        assert (130 if how is signal.SIGINT else -how) == status, moment
        assert "Traceback" not in ground.output(), moment
        assert ground.left() == NOTHING, moment
        if how is signal.SIGINT:
            assert f"tollbar run --resume runs/{ground.runs[-1].name}" in ground.output().replace("\n", ""), moment


# Killed parts, by words of the command, with the least number of processes of their tree at work.
PARTS = {
    "guard of nginx": (r"guard --tree .* -- \S*nginx", 3),
    "guard of httpd": (r"guard --tree .* -- \S*(apache2|httpd)", 3),
    "guard of the embedded server": (r"guard --tree .* -- \S+ serve", 2),
    "guard of a load client": (r"guard --tree .* -- \S+ load", 2),
    "load client": (r"^\d+ \S+ load", 1),
}


# Kills of each part, in a run that is ended and resumed after each.
PART_KILLS = share.of(1, 2)
# Enough that a cell with these failures still has a cost.
PART_BLOCKS = 6


@pytest.mark.share(0)
@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_of_a_batch_is_a_failed_trial(ground: Ground, part: str) -> None:
    chance = random.Random(part)
    study = ground.study(PART_BLOCKS, rounds=20)
    killed: list[str] = []
    for number in range(PART_KILLS):
        before = trials_of(ground.runs[0]) if ground.runs else []
        failed = len(failed_of(before))
        run = ground.start(*(["--resume", ground.runs[0]] if number else [study]), "--blocks", PART_BLOCKS)
        until(lambda before=before: trials_there(ground) and len(trials_of(ground.runs[0])) > len(before), run)
        while len(failed_of(trials := trials_of(ground.runs[0]))) == failed:
            killed.append(kill_part(ground, run, part, chance))
            # A kill after the part's trial does no harm, which shows when the next batch is there.
            shown = len(trials) + 2 * BATCH
            until(lambda: len(failed_of(now := trials_of(ground.runs[0]))) > failed or len(now) >= shown, run)  # noqa: B023
        time.sleep(chance.uniform(0.0, 0.3))
        ground.under_way(run)
        run.kill()
        run.wait()
        assert ground.left() == NOTHING, killed
        assert before == trials_of(ground.runs[0])[: len(before)], killed
    # The run goes on to its end, with most trials of each cell successful.
    assert 0 == ground.finish("--resume", ground.runs[0], "--blocks", PART_BLOCKS), ground.output()
    assert {("ok", None)} == set(cells_of(ground.runs[0]))
    trials = trials_of(ground.runs[0])
    assert PART_BLOCKS * BATCH * len(SERVERS) == len(trials)
    assert PART_KILLS <= len(failed_of(trials)) <= len(killed)
    assert ground.left() == NOTHING


def kill_part(ground: Ground, run: subprocess.Popen[bytes], part: str, chance: random.Random) -> str:
    """Kill a working part at a random moment, and return which."""
    words, processes = PARTS[part]
    killed = ""

    def kill_one() -> str:
        nonlocal killed
        at_work = {pid: program(pid) for pid in proc.tree(run.pid)[1:] if len(proc.tree(pid)) >= processes}
        parts = [pid for pid, name in at_work.items() if re.search(words, name)]
        time.sleep(chance.uniform(0.0, 0.1))
        # It may have ended meanwhile.
        parts = [pid for pid in parts if len(proc.tree(pid)) >= processes and re.search(words, program(pid))]
        if parts:
            ground.under_way(run)
            # It may also end between the look and the kill.
            with contextlib.suppress(ProcessLookupError):
                os.kill(parts[0], signal.SIGKILL)
                killed = at_work[parts[0]]
        return killed

    until(kill_one, run)
    return killed


def keeper_of(ground: Ground) -> int:
    """Return the process that keeps the directory of the one run."""
    (directory,) = ground.temporary.glob("tollbar-*")
    return int(json.loads((directory / "keeper.json").read_text())["pid"])


@pytest.mark.share(0)
def test_a_run_goes_on_without_its_keeper(ground: Ground) -> None:
    run = ground.start(ground.study(2))
    until(lambda: trials_there(ground), run)
    os.kill(keeper_of(ground), signal.SIGKILL)
    assert 0 == run.wait(RUN_LIMIT_S), ground.output()
    assert ground.left() == NOTHING


@pytest.mark.share(0)
def test_the_next_run_sweeps_what_was_left_without_a_keeper(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    # A cache of its own, because a test that runs at the same time would sweep first.
    monkeypatch.setenv("XDG_CACHE_HOME", str(ground.folder / ".cache"))
    run = ground.start(ground.study(50))
    until(lambda: trials_there(ground), run)
    ground.under_way(run)
    os.kill(keeper_of(ground), signal.SIGKILL)
    run.kill()
    run.wait()
    # The keeper is dead, and would stay a child of this process for ever.
    (directory,) = ground.temporary.iterdir()
    assert ground.left(directory.name) == NOTHING
    assert 0 == ground.finish(ground.study(1, ["embedded"])), ground.output()
    assert ground.left() == NOTHING


def held_with_workers(ground: Ground) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Return a run that is stopped while its servers have workers, and the guards of all its processes."""
    run = ground.start(ground.study(50, ["nginx"]))
    guards: list[int] = []

    def with_workers() -> bool:
        names = {pid: program(pid) for pid in proc.tree(run.pid)}
        guards[:] = [pid for pid, name in names.items() if " guard --tree " in name and len(proc.tree(pid)) >= 3]
        # A server that starts or stops has no load client, and one that stops may end by itself in a moment.
        clients = [name for name in names.values() if re.search(PARTS["load client"][0], name)]
        return 0 < len(guards) == len(clients)

    def held() -> bool:
        if not with_workers():
            return False
        # The stopped lab cannot react to the end of a process; a server that is starting or stopping shows it by then.
        run.send_signal(signal.SIGSTOP)
        ground.under_way(run)
        time.sleep(0.3)
        if with_workers():
            return True
        run.send_signal(signal.SIGCONT)
        return False

    until(held, run)
    return run, guards


def test_the_keeper_ends_what_its_guard_no_longer_can(ground: Ground) -> None:
    run, guards = held_with_workers(ground)
    for pid in (*guards, run.pid):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    assert ground.left() == NOTHING


@pytest.mark.share(0)
def test_the_next_run_ends_what_outlived_run_keeper_and_guards(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers outlive all three, killed at once as by `pkill -9`, until the next run."""
    # A cache of its own, because a test that runs at the same time would sweep first.
    monkeypatch.setenv("XDG_CACHE_HOME", str(ground.folder / ".cache"))
    run, guards = held_with_workers(ground)
    for pid in (*guards, keeper_of(ground), run.pid):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    assert 1 == len([*ground.temporary.iterdir()])
    assert any("nginx: worker" in program(pid) for pid in ground.descendants())
    assert 0 == ground.finish(ground.study(1, ["embedded"])), ground.output()
    assert ground.left() == NOTHING


# Gives up root between two runs: the first has read files that perhaps only root may read, such as Python itself.
ORDINARY = f"""
import contextlib, os, sys
from tollbar.cli import main
from tollbar.core.runner import engine

def tollbar(*arguments):
    sys.argv = ["tollbar", *arguments]
    with contextlib.suppress(SystemExit) as status:
        main()

self_test, *arguments = sys.argv[1:]
cores = os.sched_getaffinity(0)
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    tollbar("run", self_test, "--json", "--no-report", "--runs", "self-tested")
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


@pytest.mark.share(0)
def test_nothing_survives_of_an_ordinary_user_s_run(ground: Ground) -> None:
    if os.geteuid() != 0:
        pytest.skip("this is an ordinary user, and all tests have shown it")
    for path in (ground.folder, ground.temporary):
        os.chown(path, NOBODY, NOBODY)
    as_ordinary = [sys.executable, "-c", ORDINARY, str(ground.study(1))]
    chance = random.Random(7)
    ends = [(signal.SIGKILL, chance.uniform(0.0, 1.5)) for _ in range(2)] + [(signal.SIGINT, 1.0), (None, 0.0)]
    for how, after_s in ends:
        arguments = ["--resume", ground.runs[0]] if ground.runs else [ground.study(2)]
        with ground.start(*arguments, before=as_ordinary, stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            if run.stdout.readline() != b"ordinary\n":
                assert CANNOT_READ == run.wait(), ground.output()
                lacking("an ordinary user cannot read this checkout: put it where others can pass")
            moment = f"{how} after {after_s:.2f} s"
            if how is None:
                run.stdout.read()
                assert 0 == run.wait(RUN_LIMIT_S), ground.output()
            else:
                time.sleep(after_s)
                ground.under_way(run)
                run.send_signal(how)
                run.stdout.read()
                assert run.wait(RUN_LIMIT_S) in (0, 130, -how), f"{moment}: {ground.output()}"
        assert ground.left() == NOTHING, f"{moment}: {ground.output()}"
    (run_there,) = ground.runs
    assert {("ok", None)} == set(cells_of(run_there))
    assert 2 * 2 * len(SERVERS) == len(trials_of(run_there))
    assert NOBODY == (run_there / "results.sqlite").stat().st_uid
    assert stat.S_IMODE(ground.temporary.stat().st_mode) == 0o711
