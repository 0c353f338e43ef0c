"""Runs from end to end, and their interruptions."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.ground import trials_of

import forked
import share
from conftest import BLOCKS, ROUNDS, SHORT_BLOCKS, SHORT_STUDY, Tollbar, command
from patience import PATIENCE_S
from test_runner import marked_processes
from tollbar import __version__
from tollbar.core import proc
from tollbar.core.intervals import FEWEST_BLOCKS


def test_a_fake_run_finds_what_the_fake_put_in(fake_runs: Path) -> None:
    document = json.loads((fake_runs / "one" / "said.json").read_text())
    assert {"schema", "run", "fingerprint", "studies"} <= set(document)
    (study,) = document["studies"]
    tolls = {toll["choice"]: toll for toll in study["tolls"] if not toll["aa"]}
    assert abs(tolls["spin-2"]["ratio"] - 2) < 0.02
    assert "costs" == tolls["spin-2"]["verdict"]
    assert "free" == tolls["spin-1-again"]["verdict"]
    assert ["still true"] == [claim["verdict"] for claim in study["claims"]]
    results = [result for result in study["results"] if result["metric"] == "cpu"]
    assert {"fake 1.0"} == {result["provider"] for result in results}
    # Planned blocks with a quiet round, or all of them if noisy.
    assert all(FEWEST_BLOCKS <= result["blocks"] <= BLOCKS for result in results)


def test_each_study_is_answered_before_a_longer_one_is_measured(tollbar: Tollbar, tmp_path: Path) -> None:
    short = SHORT_STUDY.replace(f"blocks = {SHORT_BLOCKS}", f"blocks = {FEWEST_BLOCKS}")
    assert short != SHORT_STUDY
    (tmp_path / "a-long.toml").write_text(SHORT_STUDY)
    (tmp_path / "b-short.toml").write_text(short)
    done = tollbar("run", tmp_path / "a-long.toml", tmp_path / "b-short.toml", "--no-report")
    lines = [line for line in done.stderr.splitlines() if line.startswith(("  a-long: ", "  b-short: "))]
    # A slow machine also prints how far a study is.
    answers = [line for line in lines if not re.search(r": (starting|\d+ of \d+ batches)$", line)]
    assert ["b-short", "a-long"] == [line.split(":")[0].strip() for line in answers]
    assert all(" of CPU" in line for line in answers)
    (run,) = runs_in(tmp_path / "runs")
    order = [trial.study for trial in trials_of(run)]
    assert order == sorted(order, reverse=True)


def test_a_study_whose_proofs_fail_is_answered_before_others_are_measured(
    tollbar: Tollbar, short_study: Path, fake_study: Path
) -> None:
    done = tollbar("run", short_study, fake_study, "--no-report", env={"FAKE_FAULT": "verify:crash"})
    assert 1 == done.returncode
    answers = [line for line in done.stderr.splitlines() if line.startswith(("  short: ", "  fake: "))]
    assert ["fake", "short"] == [line.split(":")[0].strip() for line in answers]
    assert "  fake: This run cannot tell: nothing where" in answers[0]


@pytest.mark.share(0)
def test_the_same_seed_makes_the_same_run(tollbar: Tollbar, fake_study: Path, fake_runs: Path, tmp_path: Path) -> None:
    """This holds for order and data of the first tries, so that a run can be repeated."""
    one = fake_runs / "one"
    seed = json.loads((one / "run.json").read_text())["seed"]
    # A started process has another order of sets than the first.
    words = [command(), "run", str(fake_study), "--seed", str(seed), "--no-report", "--runs", str(tmp_path / "again")]
    assert 0 == subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S).returncode
    (again,) = (tmp_path / "again").iterdir()
    first, second = (_first_tries(tollbar, run) for run in (one, again))
    assert 4 * BLOCKS * ROUNDS == len(first)
    assert first == second


def _first_tries(tollbar: Tollbar, run: Path) -> list[tuple[object, ...]]:
    """Return the measurements of the planned blocks, without extra rounds, which depend on the machine."""
    rows = json.loads(tollbar("export", run, "--format", "json").stdout)
    names = ("choice", "repeat", "block", "batch", "round", "operations", "cpu_ns")
    return [tuple(row[name] for name in names) for row in rows if not row["made_up"] and row["block"] < BLOCKS]


# A shared machine may be too uneven for a while, and an unclear result is not wrong. A machine that is always unclear
# is unfit, and a lab that is wrong as often as it is right fails.
SELF_TESTS = 10


@pytest.mark.share(0)
def test_the_self_test_tells_the_truth(tollbar: Tollbar) -> None:
    right = wrong = 0
    for _ in range(SELF_TESTS):
        (study,) = json.loads(tollbar("run", "self-test", "--json", "--no-report").stdout)["studies"]
        tolls = {toll["choice"]: toll for toll in study["tolls"] if not toll["aa"]}
        close = abs(tolls["spin-2"]["ratio"] / 2 - 1) <= 0.005
        twice, same = (tolls[name]["verdict"] for name in ("spin-2", "spin-1-again"))
        right += (close, twice, same) == (True, "costs", "free")
        wrong += twice in ("free", "saves") or same in ("costs", "saves")
        if right > wrong:
            return
    raise AssertionError(f"right {right} times, wrong {wrong} times of {SELF_TESTS}: {tolls}, {study['warnings']}")


def test_a_failed_cell_is_a_row_and_a_status(tollbar: Tollbar, fake_study: Path) -> None:
    done = tollbar("run", fake_study, "--json", env={"FAKE_FAULT": "chunk:crash"})
    document = json.loads(done.stdout)
    assert 1 == done.returncode
    results = document["studies"][0]["results"]
    assert {("failed", None)} == {(result["outcome"], result["value"]) for result in results}
    assert all("SIGSEGV" in result["reason"] for result in results)
    assert {"not measured"} == {toll["verdict"] for toll in document["studies"][0]["tolls"]}
    assert "SIGSEGV" in (fake_study.parent / document["run"] / "report.html").read_text()


# Kills of a run, from its start to its end: each a random time after a number of batches equal to the last one's, or
# one more. Each run is killed twice, and then finished.
KILLS = share.of(6, 20)
MOST_LATER_S = 0.5
# Two cells and a repeat.
BATCH = 3


@pytest.mark.share(0)
def test_a_kill_at_any_moment_loses_nothing(short_study: Path, tmp_path: Path) -> None:
    chance = random.Random(11)
    with_trials = 0
    for number in range(KILLS):
        runs = tmp_path / f"runs-{number // 2}"
        known = runs_in(runs)
        before = trials_of(known[0]) if known else []
        mark = f"kill-{os.getpid()}-{number}"
        goes_on = ["--resume", str(known[0])] if known else [str(short_study), "--runs", str(runs)]
        process = subprocess.Popen(
            [command(), "run", *goes_on, "--no-report", "--blocks", str(SHORT_BLOCKS)],
            env={**os.environ, "TOLLBAR_TEST_MARK": mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        batches = number * SHORT_BLOCKS // KILLS
        wait_for(
            lambda process=process, runs=runs, batches=batches: (
                process.poll() is not None or batches_there(runs) >= batches
            )
        )
        # Some strike at once, when the run is certainly not at its end.
        time.sleep(chance.uniform(0.0, MOST_LATER_S) if number % 4 else 0.0)
        process.kill()
        process.wait()
        assert [] == marked_processes(mark)
        if not runs_in(runs):
            continue  # Killed before there was a run: nothing can be lost.
        (run,) = runs_in(runs)
        after = trials_of(run)
        assert before == after[: len(before)]
        # A batch is there whole or not at all.
        assert 0 == len(after) % BATCH
        with_trials += 0 < len(after) < BATCH * SHORT_BLOCKS
        if number % 2:
            finish(run)
            assert after == trials_of(run)[: len(after)]
            assert BATCH * SHORT_BLOCKS == len(trials_of(run))
    # If all kills came too early or too late, the test would show nothing.
    assert with_trials >= 1


def runs_in(folder: Path) -> list[Path]:
    """Return the runs that were begun here."""
    return [path.parent for path in folder.glob("*/run.json")]


def batches_there(folder: Path) -> int:
    """Return the number of batches of the one run on the disk."""
    return max((len(trials_of(run)) // BATCH for run in runs_in(folder)), default=0)


def finish(run: Path) -> None:
    """Resume a run and finish it."""
    words = [command(), "run", "--resume", str(run), "--json", "--no-report", "--blocks", str(SHORT_BLOCKS)]
    done = forked.run(words, run)
    assert 0 == done.returncode, done.stderr


def test_a_run_is_not_resumed_on_an_upgraded_library(tollbar: Tollbar, short_study: Path, tmp_path: Path) -> None:
    """The cells have equal coordinates, but a row of two versions would be neither's cost."""
    assert 0 == tollbar("run", str(short_study), "--no-report", "--blocks", "1").returncode
    (run,) = runs_in(tmp_path / "runs")
    said = json.loads((run / "run.json").read_text())
    (receipt,) = said["providers"].values()
    receipt["name"] += ".1"
    (run / "run.json").write_text(json.dumps(said))
    refused = tollbar("run", "--resume", str(run), "--no-report")
    assert 2 == refused.returncode
    assert "installed software has changed since the run began" in refused.stderr


def test_a_run_that_another_version_goes_on_with_names_both(
    tollbar: Tollbar, short_study: Path, tmp_path: Path
) -> None:
    assert 0 == tollbar("run", str(short_study), "--no-report", "--blocks", "1").returncode
    (run,) = runs_in(tmp_path / "runs")
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**said, "tollbar": "0.1.0"}))
    for _ in range(2):
        again = tollbar("run", "--resume", str(run))
        assert 0 == again.returncode, again.stderr
        assert f"warning: the run began with Tollbar 0.1.0 and continues with {__version__}" in again.stderr
    assert [__version__] == json.loads((run / "run.json").read_text())["resumed_with"]
    assert f"with Tollbar 0.1.0, resumed with {__version__}." in (run / "report.html").read_text("utf-8")


@pytest.mark.share(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_runners_started_ends_with_the_lab(fake_study: Path, tmp_path: Path, how: signal.Signals) -> None:
    """The runners have started others, in sessions of their own."""
    mark = f"grandchildren-{os.getpid()}-{how.name}"
    process = subprocess.Popen(
        [command(), "run", str(fake_study), "--no-report", "--blocks", "200"],
        env={**os.environ, "TOLLBAR_TEST_MARK": mark, "FAKE_FAULT": "chunk:fork-away"},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # The lab, and for each runner of the batch its guard, the runner, and its children of all chunks but two.
    wait_for(lambda: len(proc.tree(process.pid)) > 1 + 4 * 3)
    process.send_signal(how)
    process.wait(PATIENCE_S)
    assert [] == marked_processes(mark)


def wait_for(found: Callable[[], object]) -> None:
    """Wait for an expected condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupt_says_how_to_go_on(short_study: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [command(), "run", str(short_study), "--no-report", "--blocks", "200"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    # Once the line that names its directory is printed, the run can be resumed.
    assert any("  data  " in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=PATIENCE_S)
    assert 130 == process.returncode
    assert "tollbar run --resume runs/" in talk
    assert "Traceback" not in talk


def test_an_early_answer_is_a_look_if_the_run_is_interrupted(tmp_path: Path) -> None:
    """Blocks that are added afterwards give it a second chance."""
    (tmp_path / "short.toml").write_text(SHORT_STUDY.replace(f"blocks = {SHORT_BLOCKS}", f"blocks = {FEWEST_BLOCKS}"))
    (tmp_path / "long.toml").write_text(SHORT_STUDY.replace(f"blocks = {SHORT_BLOCKS}", "blocks = 200"))
    process = subprocess.Popen(
        [command(), "run", "short.toml", "long.toml", "--no-report"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert any(line.startswith("  short: ") for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert 130 == process.returncode
    (run,) = runs_in(tmp_path / "runs")
    noted = json.loads((run / "run.json").read_text())["studies"]
    assert [FEWEST_BLOCKS] == [look["blocks"] for look in noted["short"]["interim_looks"]]
    assert [] == noted["long"]["interim_looks"]


def test_more_blocks_are_paid_for(tollbar: Tollbar, fake_runs: Path) -> None:
    run = fake_runs / "one"
    more = 2 * BLOCKS
    document = json.loads(tollbar("run", "--resume", run, "--blocks", more, "--json", "--no-report").stdout)
    toll = next(toll for toll in document["studies"][0]["tolls"] if toll["choice"] == "spin-2")
    assert FEWEST_BLOCKS <= toll["blocks"] <= more
    assert toll["confidence"] > 0.95
    looks = json.loads((run / "run.json").read_text())["studies"]["fake"]["interim_looks"]
    assert [BLOCKS, more] == [look["blocks"] for look in looks]


def test_two_runs_at_once_do_not_mix(short_study: Path, tmp_path: Path) -> None:
    arguments = [command(), "run", str(short_study), "--no-report", "--json", "--blocks", "1"]
    started = [
        subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in started]
    assert [0, 0, 0] == [process.returncode for process in started]
    assert 3 == len({json.loads(output)["run"] for output in outputs})
    assert 3 == len(list((tmp_path / "runs").iterdir()))


def test_a_run_is_written_by_one_process_at_a_time(tollbar: Tollbar, short_study: Path, tmp_path: Path) -> None:
    words = [command(), "run", str(short_study), "--no-report", "--blocks", "1000"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        wait_for(lambda: [*(tmp_path / "runs").glob("*/run.json")])
        (run,) = (tmp_path / "runs").iterdir()
        second = tollbar("run", "--resume", run, "--no-report")
        first.send_signal(signal.SIGINT)
    assert 2 == second.returncode
    assert "another process is writing this run" in second.stderr
    assert 130 == first.returncode


def limit_file_size() -> None:
    """Limit the size of files, as on a disk with 60 kB left."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))


def test_a_full_disk_is_said_at_once(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    done = tollbar("run", fake_study, "--blocks", 400, "--no-report", preexec_fn=limit_file_size)
    assert 2 == done.returncode
    assert "cannot write the results" in done.stderr or "cannot make the run's directory" in done.stderr
    assert "Traceback" not in done.stderr
    for run in (tmp_path / "runs").iterdir():
        if (run / "run.json").exists():
            # Reading checks the integrity of the database.
            trials_of(run)


def test_a_directory_that_cannot_be_made_is_said_at_once(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = tollbar("run", fake_study, "--runs", tmp_path / "taken")
    assert 2 == done.returncode
    assert "cannot make the run's directory" in done.stderr
    assert "hint: " in done.stderr
