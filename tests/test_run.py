"""Runs from end to end, and what becomes of them when something ends them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pyarrow.parquet as parquet

from conftest import Tollbar, command
from test_runner import marked_processes


def test_a_fake_run_finds_what_the_fake_put_in(tollbar: Tollbar, fake_study: Path) -> None:
    """×2 comes out as ×2, the same comes out as free, and the document has the promised form."""
    done = tollbar("run", fake_study, "--json", "--seed", 3, "--no-report")
    document = json.loads(done.stdout)
    assert 0 == done.returncode
    assert {"schema", "run", "fingerprint", "studies"} <= set(document)
    (study,) = document["studies"]
    tolls = {toll["choice"]: toll for toll in study["tolls"] if not toll["twin"]}
    assert abs(tolls["spin-2"]["ratio"] - 2) < 0.02
    assert "costs" == tolls["spin-2"]["verdict"]
    assert "free" == tolls["spin-1-again"]["verdict"]
    assert ["still true"] == [claim["verdict"] for claim in study["claims"]]
    results = [result for result in study["results"] if result["metric"] == "cpu"]
    assert {"fake 1.0"} == {result["provider"] for result in results}
    assert {8} == {result["blocks"] for result in results}


def test_the_same_seed_makes_the_same_run(tollbar: Tollbar, fake_study: Path) -> None:
    """Order and data depend on the seed alone, so that a run can be made again."""
    documents = [json.loads(tollbar("run", fake_study, "--json", "--seed", 5, "--no-report").stdout) for _ in range(2)]
    first, second = ([toll["ratio"] for toll in document["studies"][0]["tolls"]] for document in documents)
    assert first == second


# A machine that others use may be too uneven for a moment; one that is so three times in a row is not fit.
REHEARSALS = 3


def test_the_rehearsal_tells_the_truth(tollbar: Tollbar) -> None:
    """On this machine, now: ×2.00 within 2 %, and no difference where there is none."""
    for _ in range(REHEARSALS):
        (study,) = json.loads(tollbar("run", "rehearsal", "--json", "--no-report").stdout)["studies"]
        tolls = {toll["choice"]: toll for toll in study["tolls"] if not toll["twin"]}
        close = abs(tolls["spin-2"]["ratio"] / 2 - 1) <= 0.02
        if (close, tolls["spin-2"]["verdict"], tolls["spin-1-again"]["verdict"]) == (True, "costs", "free"):
            return
    raise AssertionError(f"not once in {REHEARSALS}: {tolls}, {study['warnings']}")


def test_a_failed_cell_is_a_row_and_a_status(tollbar: Tollbar, fake_study: Path) -> None:
    """A runner that crashes leaves rows without numbers, a report, and exit status 1."""
    done = tollbar("run", fake_study, "--json", env={"FAKE_FAULT": "measure:crash"})
    document = json.loads(done.stdout)
    assert 1 == done.returncode
    results = document["studies"][0]["results"]
    assert {("failed", None)} == {(result["outcome"], result["value"]) for result in results}
    assert all("SIGSEGV" in result["reason"] for result in results)
    assert {"not measured"} == {toll["verdict"] for toll in document["studies"][0]["tolls"]}
    assert "SIGSEGV" in (fake_study.parent / document["run"] / "report.html").read_text()


# Twenty kills, as the design asks; each is a run of about a second, taken up again.
KILLS = 20


def test_a_kill_at_any_moment_loses_nothing(short_study: Path, tmp_path: Path) -> None:
    """After SIGKILL every committed trial is there, no process is left, and the run can be finished."""
    chance = random.Random(11)
    resumed = 0
    for number in range(KILLS):
        mark = f"kill-{os.getpid()}-{number}"
        runs = tmp_path / f"runs-{number}"
        environment = {**os.environ, "TOLLBAR_TEST_MARK": mark}
        arguments = [command(), "run", str(short_study), "--no-report", "--runs", str(runs)]
        process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.3, 1.6))
        process.kill()
        process.wait()
        assert [] == marked_processes(mark)
        made = [path for path in runs.glob("*") if (path / "run.json").exists()]
        if not made:
            continue  # Killed before there was a run: then there is nothing to lose.
        (run,) = made
        before = trials_of(run)
        done = subprocess.run(
            [command(), "run", "--resume", str(run), "--json", "--no-report"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert 0 == done.returncode, done.stderr
        after = trials_of(run)
        assert before == after[: len(before)]
        # Two cells and a twin, eight blocks.
        assert 24 == len(after)
        resumed += bool(before)
    # Kills that all came too early would have shown nothing.
    assert resumed >= KILLS // 4


def trials_of(run: Path) -> list[tuple[object, ...]]:
    """A run's trials in the order they were made."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        assert [("ok",)] == database.execute("pragma integrity_check").fetchall()
        return database.execute("select study, cell, twin, block, cpu_ns, batches from trial order by ord").fetchall()


def test_an_interrupt_says_how_to_go_on(short_study: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the run with status 130 and the command that takes it up again."""
    process = subprocess.Popen(
        [command(), "run", str(short_study), "--no-report", "--blocks", "200"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=20)
    assert 130 == process.returncode
    assert "tollbar run --resume runs/" in talk
    assert "Traceback" not in talk


def test_more_blocks_are_paid_for(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    """Blocks added after a look are recorded, and the interval's confidence rises to pay for it."""
    tollbar("run", fake_study, "--json", "--no-report", "--seed", 2)
    (run,) = (tmp_path / "runs").iterdir()
    document = json.loads(tollbar("run", "--resume", run, "--blocks", 16, "--json", "--no-report").stdout)
    toll = next(toll for toll in document["studies"][0]["tolls"] if toll["choice"] == "spin-2")
    assert 16 == toll["blocks"]
    assert toll["confidence"] > 0.95
    assert [8, 16] == json.loads((run / "run.json").read_text())["studies"]["fake"]["looks"]


def test_two_runs_at_once_do_not_mix(fake_study: Path, tmp_path: Path) -> None:
    """Runs that start in the same second get a directory each."""
    arguments = [command(), "run", str(fake_study), "--no-report", "--json"]
    started = [
        subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in started]
    assert [0, 0, 0] == [process.returncode for process in started]
    assert 3 == len({json.loads(output)["run"] for output in outputs})
    assert 3 == len(list((tmp_path / "runs").iterdir()))


def test_a_run_is_written_by_one_process_at_a_time(tollbar: Tollbar, short_study: Path, tmp_path: Path) -> None:
    """A second `--resume` of the same run is refused while the first goes on."""
    tollbar("run", short_study, "--no-report", "--blocks", 6)
    (run,) = (tmp_path / "runs").iterdir()
    outcome: list[int] = []
    first = threading.Thread(
        target=lambda: outcome.append(tollbar("run", "--resume", run, "--blocks", 60, "--no-report").returncode)
    )
    first.start()
    time.sleep(1.5)
    second = tollbar("run", "--resume", run, "--blocks", 60, "--no-report")
    first.join()
    assert 2 == second.returncode
    assert "another process is writing this run" in second.stderr
    assert [0] == outcome


def limit_file_size() -> None:
    """As on a disk with 60 kB left."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))


def test_a_full_disk_is_said_at_once(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    """What cannot be written ends the run in words; what was committed before can be read."""
    done = tollbar("run", fake_study, "--blocks", 400, "--no-report", preexec_fn=limit_file_size)
    assert 2 == done.returncode
    assert "cannot write the results" in done.stderr or "cannot make the run's directory" in done.stderr
    assert "Traceback" not in done.stderr
    for run in (tmp_path / "runs").iterdir():
        if (run / "run.json").exists():
            # Checks that the database is whole as it reads it.
            trials_of(run)


def test_a_directory_that_cannot_be_made_is_said_at_once(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    """A runs directory that is a file is refused before anything is measured."""
    (tmp_path / "taken").write_text("")
    done = tollbar("run", fake_study, "--runs", tmp_path / "taken")
    assert 2 == done.returncode
    assert "cannot make the run's directory" in done.stderr
    assert "hint: " in done.stderr


def test_compare_judge_report_and_export_read_a_run_again(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    """Everything that a run said can be had again from its directory."""
    for seed in (1, 2):
        tollbar("run", fake_study, "--no-report", "--seed", seed)
    one, other = sorted((tmp_path / "runs").iterdir())
    comparison = json.loads(tollbar("compare", one, other, "--json").stdout)
    assert comparison["median_difference"] < 0.02
    judged = json.loads(tollbar("judge", one, "--json").stdout)
    assert "fake" == judged["studies"][0]["study"]
    assert "Twice the work" in tollbar("judge", one).stdout
    assert 0 == tollbar("report", one).returncode
    assert (one / "report.html").exists()
    lines = tollbar("export", one).stdout.splitlines()
    assert 1 + 4 * 8 == len(lines)
    rows = json.loads(tollbar("export", one, "--format", "json").stdout)
    assert 4 * 8 == len(rows)
    assert 0 == tollbar("export", one, "--format", "parquet", "--to", tmp_path / "trials.parquet").returncode
    assert 4 * 8 == parquet.read_table(tmp_path / "trials.parquet").num_rows
