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
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from bench.ground import trials_of

from conftest import BLOCKS, ROUNDS, SHORT_BLOCKS, Tollbar, command
from test_runner import marked_processes
from tollbar.beds import proc
from tollbar.stats import FEWEST_BLOCKS


def test_a_fake_run_finds_what_the_fake_put_in(fake_runs: Path) -> None:
    """×2 comes out as ×2, the same comes out as free, and the document has the promised form."""
    document = json.loads((fake_runs / "one" / "said.json").read_text())
    assert {"schema", "run", "fingerprint", "studies"} <= set(document)
    (study,) = document["studies"]
    tolls = {toll["choice"]: toll for toll in study["tolls"] if not toll["twin"]}
    assert abs(tolls["spin-2"]["ratio"] - 2) < 0.02
    assert "costs" == tolls["spin-2"]["verdict"]
    assert "free" == tolls["spin-1-again"]["verdict"]
    assert ["still true"] == [claim["verdict"] for claim in study["claims"]]
    results = [result for result in study["results"] if result["metric"] == "cpu"]
    assert {"fake 1.0"} == {result["provider"] for result in results}
    # Of the planned ones those that had a quiet round, or all, as disturbed.
    assert all(FEWEST_BLOCKS <= result["blocks"] <= BLOCKS for result in results)


def test_the_same_seed_makes_the_same_run(tollbar: Tollbar, fake_study: Path, fake_runs: Path, tmp_path: Path) -> None:
    """Order and data of the first tries depend on the seed alone, so that a run can be made again."""
    one = fake_runs / "one"
    seed = json.loads((one / "run.json").read_text())["seed"]
    tollbar("run", fake_study, "--json", "--seed", seed, "--no-report", "--runs", tmp_path / "again")
    (again,) = (tmp_path / "again").iterdir()
    first, second = (_first_tries(tollbar, run) for run in (one, again))
    assert 4 * BLOCKS * ROUNDS == len(first)
    assert first == second


def _first_tries(tollbar: Tollbar, run: Path) -> list[tuple[object, ...]]:
    """What was measured in the planned blocks, but for rounds that were made up, of which the machine decides."""
    rows = json.loads(tollbar("export", run, "--format", "json").stdout)
    names = ("choice", "twin", "block", "heat", "round", "operations", "cpu_ns")
    return [tuple(row[name] for name in names) for row in rows if not row["made_up"] and row["block"] < BLOCKS]


# A machine that others use may be too uneven for a while: what it leaves unclear is no untruth. One that always is is
# not fit, and neither is a lab that finds a difference where there is none as often as the truth.
REHEARSALS = 10


@pytest.mark.timeout(1200)
def test_the_rehearsal_tells_the_truth(tollbar: Tollbar) -> None:
    """On this machine, now: ×2.00 within 0.5 %, and no difference where there is none."""
    right = wrong = 0
    for _ in range(REHEARSALS):
        (study,) = json.loads(tollbar("run", "rehearsal", "--json", "--no-report").stdout)["studies"]
        tolls = {toll["choice"]: toll for toll in study["tolls"] if not toll["twin"]}
        close = abs(tolls["spin-2"]["ratio"] / 2 - 1) <= 0.005
        twice, same = (tolls[name]["verdict"] for name in ("spin-2", "spin-1-again"))
        right += (close, twice, same) == (True, "costs", "free")
        wrong += twice in ("free", "saves") or same in ("costs", "saves")
        if right > wrong:
            return
    raise AssertionError(f"right {right} times, wrong {wrong} times of {REHEARSALS}: {tolls}, {study['warnings']}")


def test_a_failed_cell_is_a_row_and_a_status(tollbar: Tollbar, fake_study: Path) -> None:
    """A runner that crashes leaves rows without numbers, a report, and exit status 1."""
    done = tollbar("run", fake_study, "--json", env={"FAKE_FAULT": "chunk:crash"})
    document = json.loads(done.stdout)
    assert 1 == done.returncode
    results = document["studies"][0]["results"]
    assert {("failed", None)} == {(result["outcome"], result["value"]) for result in results}
    assert all("SIGSEGV" in result["reason"] for result in results)
    assert {"not measured"} == {toll["verdict"] for toll in document["studies"][0]["tolls"]}
    assert "SIGSEGV" in (fake_study.parent / document["run"] / "report.html").read_text()


# So many, from a run's start to its end: each a random while after so many heats as were there at the last one, or one
# more. Each run is ended twice, and then goes on.
KILLS = 20
MOST_LATER_S = 0.5
# Two cells and a twin.
HEAT = 3


def test_a_kill_at_any_moment_loses_nothing(short_study: Path, tmp_path: Path) -> None:
    """After SIGKILL every committed heat is there, no process is left, and the run can be finished."""
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
        heats = number * SHORT_BLOCKS // KILLS
        wait_for(
            lambda process=process, runs=runs, heats=heats: process.poll() is not None or heats_there(runs) >= heats
        )
        # Some at once, when the run is certainly not at its end.
        time.sleep(chance.uniform(0.0, MOST_LATER_S) if number % 4 else 0.0)
        process.kill()
        process.wait()
        assert [] == marked_processes(mark)
        if not runs_in(runs):
            continue  # Killed before there was a run: then there is nothing to lose.
        (run,) = runs_in(runs)
        after = trials_of(run)
        assert before == after[: len(before)]
        # There whole or not at all.
        assert 0 == len(after) % HEAT
        with_trials += 0 < len(after) < HEAT * SHORT_BLOCKS
        if number % 2:
            finish(run)
            assert after == trials_of(run)[: len(after)]
            assert HEAT * SHORT_BLOCKS == len(trials_of(run))
    # Kills that all came too early, or too late, would have shown nothing.
    assert with_trials >= 1


def runs_in(folder: Path) -> list[Path]:
    """The runs that were begun here."""
    return [path.parent for path in folder.glob("*/run.json")]


def heats_there(folder: Path) -> int:
    """How many heats of the one run are on the disk."""
    return max((len(trials_of(run)) // HEAT for run in runs_in(folder)), default=0)


def finish(run: Path) -> None:
    """Goes on with a run to its end."""
    words = [command(), "run", "--resume", str(run), "--json", "--no-report", "--blocks", str(SHORT_BLOCKS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert 0 == done.returncode, done.stderr


def test_a_run_is_not_resumed_on_an_upgraded_library(tollbar: Tollbar, short_study: Path, tmp_path: Path) -> None:
    """Its cells have the same coordinates, and two versions in one row would be neither's cost."""
    assert 0 == tollbar("run", str(short_study), "--no-report", "--blocks", "1").returncode
    (run,) = runs_in(tmp_path / "runs")
    said = json.loads((run / "run.json").read_text())
    (receipt,) = said["providers"].values()
    receipt["name"] += ".1"
    (run / "run.json").write_text(json.dumps(said))
    refused = tollbar("run", "--resume", str(run), "--no-report")
    assert 2 == refused.returncode
    assert "what is installed has changed since the run began" in refused.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_runners_started_ends_with_the_lab(fake_study: Path, tmp_path: Path, how: signal.Signals) -> None:
    """Runners that have started others, in sessions of their own: none is left when the lab is ended."""
    mark = f"grandchildren-{os.getpid()}-{how.name}"
    process = subprocess.Popen(
        [command(), "run", str(fake_study), "--no-report", "--blocks", "200"],
        env={**os.environ, "TOLLBAR_TEST_MARK": mark, "FAKE_FAULT": "chunk:fork-away"},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # The lab, and for each runner of the heat its guard, itself and what it has started in each chunk but two.
    wait_for(lambda: len(proc.tree(process.pid)) > 1 + 4 * 3)
    process.send_signal(how)
    process.wait(60)
    assert [] == marked_processes(mark)


def wait_for(found: Callable[[], object]) -> None:
    """Waits for something that is to come."""
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupt_says_how_to_go_on(short_study: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the run with status 130 and the command that takes it up again."""
    process = subprocess.Popen(
        [command(), "run", str(short_study), "--no-report", "--blocks", "200"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    # From the line that names its directory on, there is a run to go on with.
    assert any("  data  " in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert 130 == process.returncode
    assert "tollbar run --resume runs/" in talk
    assert "Traceback" not in talk


def test_more_blocks_are_paid_for(tollbar: Tollbar, fake_runs: Path) -> None:
    """Blocks added after a look are recorded, and the interval's confidence rises to pay for it."""
    run = fake_runs / "one"
    more = 2 * BLOCKS
    document = json.loads(tollbar("run", "--resume", run, "--blocks", more, "--json", "--no-report").stdout)
    toll = next(toll for toll in document["studies"][0]["tolls"] if toll["choice"] == "spin-2")
    assert FEWEST_BLOCKS <= toll["blocks"] <= more
    assert toll["confidence"] > 0.95
    looks = json.loads((run / "run.json").read_text())["studies"]["fake"]["looks"]
    assert [BLOCKS, more] == [look["blocks"] for look in looks]


# What may be done with a run that is there, beside measuring.
READERS = {
    "judge": ["judge", "RUN"],
    "report": ["report", "RUN"],
    "export": ["export", "RUN"],
    "compare": ["compare", "RUN", "RUN"],
    "resume": ["run", "--resume", "RUN"],
}


@pytest.mark.parametrize("schema", [1, 2, 3])
@pytest.mark.parametrize("reader", READERS)
def test_an_old_run_is_refused_in_words(tollbar: Tollbar, tmp_path: Path, reader: str, schema: int) -> None:
    """A run of an earlier format is not misread: plainly why not, and it stays as it was."""
    old = tmp_path / "old"
    old.mkdir()
    (old / "run.json").write_text(json.dumps({"schema": schema, "studies": {"digests": {"blocks": 20, "looks": [20]}}}))
    (old / "results.sqlite").write_bytes(b"as it was")
    done = tollbar(*(old if word == "RUN" else word for word in READERS[reader]))
    assert (2, "") == (done.returncode, done.stdout)
    assert "before version 5 of the run format" in " ".join(done.stderr.split())
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert {"run.json", "results.sqlite"} == {path.name for path in old.iterdir()}
    assert b"as it was" == (old / "results.sqlite").read_bytes()


def test_two_runs_at_once_do_not_mix(short_study: Path, tmp_path: Path) -> None:
    """Runs that start in the same second get a directory each."""
    arguments = [command(), "run", str(short_study), "--no-report", "--json", "--blocks", "1"]
    started = [
        subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in started]
    assert [0, 0, 0] == [process.returncode for process in started]
    assert 3 == len({json.loads(output)["run"] for output in outputs})
    assert 3 == len(list((tmp_path / "runs").iterdir()))


def test_a_run_is_written_by_one_process_at_a_time(tollbar: Tollbar, short_study: Path, tmp_path: Path) -> None:
    """A second `--resume` of the same run is refused while the first goes on."""
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


def test_compare_judge_report_and_export_read_a_run_again(tollbar: Tollbar, fake_runs: Path, tmp_path: Path) -> None:
    """Everything that a run said can be had again from its directory."""
    one, other = fake_runs / "one", fake_runs / "other"
    comparison = json.loads(tollbar("compare", one, other, "--json").stdout)
    assert comparison["median_difference"] < 0.02
    judged = json.loads(tollbar("judge", one, "--json").stdout)
    assert "fake" == judged["studies"][0]["study"]
    assert any(said.startswith("spin-1-again takes ") for said in judged["studies"][0]["answers"]["sentences"])
    assert "Twice the work" in tollbar("judge", one).stdout
    assert "1  Twice the work costs twice as much" in tollbar("judge", one, "--format", "markdown").stdout
    assert 0 == tollbar("report", one).returncode
    assert (one / "report.html").exists()
    rows = json.loads(tollbar("export", one, "--format", "json").stdout)
    # Three cells and a twin; what was made up besides, and between which probes, is said.
    assert 4 * BLOCKS * ROUNDS == sum(not row["made_up"] and row["block"] < BLOCKS for row in rows)
    assert all(row["probe_before_ns"] > 0 and row["probe_after_ns"] > 0 for row in rows)
    chunks = len(rows)
    lines = tollbar("export", one).stdout.splitlines()
    assert 1 + chunks == len(lines)
    assert 0 == tollbar("export", one, "--format", "parquet", "--to", tmp_path / "chunks.parquet").returncode
    assert chunks == parquet.read_table(tmp_path / "chunks.parquet").num_rows


def test_cells_are_exported_with_what_was_found_of_them(tollbar: Tollbar, fake_runs: Path, tmp_path: Path) -> None:
    """A row for each in every form: cost, ratio, interval, verdict and standing; a baseline has no ratio to itself."""
    one = fake_runs / "one"
    rows = json.loads(tollbar("export", one, "--per", "cell", "--format", "json").stdout)
    assert ["spin-1", "spin-1-again", "spin-2"] == [row["choice"] for row in rows]
    base, _, double = rows
    assert ("baseline", None, True) == (base["verdict"], base["ratio"], base["is_baseline"])
    assert base["cost_low_ns"] <= base["cost_ns"] <= base["cost_high_ns"]
    assert double["ratio_low"] < double["ratio"] < double["ratio_high"]
    assert 2.0 == pytest.approx(double["ratio"], rel=0.01)
    assert 1.05 > double["ratio_high"] / double["ratio_low"]
    assert {"costs", "acceptable", "ok"} <= set(map(str, double.values()))
    written = tollbar("export", one, "--per", "cell").stdout.splitlines()
    assert (1 + len(rows), list(double)) == (len(written), written[0].split(","))
    table = tollbar("export", one, "--per", "cell", "--format", "markdown").stdout.splitlines()
    assert (2 + len(rows), {table[0].count("|")}) == (len(table), {line.count("|") for line in table})
    assert 0 == tollbar("export", one, "--per", "cell", "--format", "parquet", "--to", tmp_path / "p").returncode
    assert double["ratio"] == parquet.read_table(tmp_path / "p").to_pylist()[2]["ratio"]
    refused = tollbar("export", one, "--format", "markdown")
    assert (2, True) == (refused.returncode, "--per cell" in refused.stderr)


def test_a_comparison_fails_only_beyond_what_is_allowed(tollbar: Tollbar, fake_runs: Path) -> None:
    """Two runs of the same work pass, and a limit that is no share is refused."""
    one, other = fake_runs / "one", fake_runs / "other"
    passed = tollbar("compare", one, other, "--fail-above", "20%")
    assert (0, True) == (passed.returncode, "Nothing became dearer by more than 20 %" in passed.stdout)
    assert "→" in passed.stdout
    markdown = tollbar("compare", one, other, "--format", "markdown").stdout
    assert markdown.startswith("### fake: one → other\n\n- one: ")
    assert "\n- other: " in markdown
    refused = tollbar("compare", one, other, "--fail-above", "much")
    assert (2, True) == (refused.returncode, "--fail-above" in refused.stderr)


def slow_down(path: Path, choice: str, times: float) -> None:
    """Alters a run's results, such that each chunk of a choice took so many times as long."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        found = database.execute(
            "select trial, component, metric, by_round from observation join trial on trial.id = trial"
            " where cell like ? and metric in ('cpu', 'wall')",
            (f'%"{choice}"%',),
        ).fetchall()
        assert found
        for *key, values in found:
            slowed = json.dumps([round(times * value) for value in json.loads(values)])
            database.execute(
                "update observation set by_round = ? where trial = ? and component = ? and metric = ?", (slowed, *key)
            )


def alter(path: Path, *statements: str) -> None:
    """Alters a run's results by these statements; `%` stands for any choice in a cell's key."""
    with contextlib.closing(sqlite3.connect(path / "results.sqlite")) as database, database:
        for statement in statements:
            assert database.execute(statement).rowcount > 0


def failed(choice: str) -> tuple[str, str]:
    """What makes the cells of a choice fail their proof."""
    at = f"like '%\"{choice}\"%'"
    return (
        f"delete from trial where cell {at}",
        f"update cell set outcome='failed', reason='wrong answer' where key {at}",
    )


EVERY, FEW = "spin-%", ("delete from trial where block > 0",)
ALONE = tuple(statement for choice in ("spin-2", "spin-1-again") for statement in failed(choice))
COST_HINT = "hint: `--of cost` looks at CPU time itself, of which 1 row could show it"


@pytest.mark.parametrize(
    ("before", "after", "words", "status", "said"),
    [
        # As many rows fail as there are.
        ((), failed("spin-2"), (), 1, "1 row measured in one has no cost in other: 1 failed, 0 gone."),
        ((), failed(EVERY), (), 1, "3 rows measured in one have no cost in other: 3 failed, 0 gone."),
        ((), failed("spin-2"), (), 1, "· spin: in other: wrong answer"),
        # What failed before, and does not now, is no fault of the second run.
        (failed("spin-2"), (), (), 0, "1 of 2 rows could have shown it."),
        # Nothing could tell: no ratio is left, too few blocks, or nothing was measured in either run.
        (ALONE, ALONE, (), 3, COST_HINT),
        (ALONE, ALONE, ("--of", "cost"), 0, "1 of 1 row could have shown it."),
        (FEW, FEW, ("--of", "cost"), 3, "No row could have shown a rise by more than 30 %"),
        (failed(EVERY), failed(EVERY), (), 3, "No row could have shown a rise by more than 30 %"),
    ],
)
def test_what_failed_or_could_not_tell_has_its_status(
    tollbar: Tollbar,
    fake_runs: Path,
    before: Sequence[str],
    after: Sequence[str],
    words: Sequence[str],
    status: int,
    said: str,
) -> None:
    """Rows that failed in the second run count as those that rose; where no row could tell, that is the status."""
    one, other = fake_runs / "one", fake_runs / "other"
    alter(one, *before)
    alter(other, *after)
    done = tollbar("compare", one, other, "--fail-above", "30%", *words, env={"COLUMNS": "400"})
    assert (status, "") == (done.returncode, done.stderr)
    assert said in " ".join(done.stdout.split())


def test_a_study_that_is_gone_counts_and_nothing_in_common_is_an_error(
    tollbar: Tollbar, fake_runs: Path, fake_study: Path, tmp_path: Path
) -> None:
    """All its rows are gone where another study is in both; runs without one in common are not compared."""
    (again := tmp_path / "again.toml").write_text(fake_study.read_text())
    runs = []
    for studies in ((fake_study, again), (again,)):
        made = tollbar("run", *studies, "--json", "--no-report", "--blocks", "4")
        runs.append(tmp_path / json.loads(made.stdout)["run"])
    both, alone = runs
    done = tollbar("compare", both, fake_runs / "one", "--fail-above", "30%")
    assert (1, True) == (done.returncode, "3 rows measured in" in done.stdout), done
    assert "0 failed, 3 gone." in " ".join(done.stdout.split())
    reasons = json.loads(tollbar("compare", both, fake_runs / "one", "--json").stdout)["gone"]
    assert [None] * 3 == [row["reason"] for row in reasons]
    # What the second run alone has, the first did not lack.
    assert 0 == tollbar("compare", fake_runs / "one", both, "--fail-above", "30%").returncode
    refused = tollbar("compare", fake_runs / "one", alone, "--fail-above", "30%")
    assert (2, True) == (refused.returncode, "no toll in common" in refused.stderr)


def test_what_is_not_compared_has_not_passed(
    tollbar: Tollbar, fake_runs: Path, fake_study: Path, tmp_path: Path
) -> None:
    """Ratios to another baseline show no rise, and count as rows that failed do; costs are compared."""
    fake_study.write_text(fake_study.read_text().replace('baseline  = "spin-1"', 'baseline  = "spin-1-again"'))
    made = tollbar("run", fake_study, "--json", "--no-report", "--blocks", "5")
    runs = fake_runs / "one", tmp_path / json.loads(made.stdout)["run"]
    done = tollbar("compare", *runs, "--fail-above", "90%")
    assert 1 == done.returncode
    assert "Not compared, and so not judged: 3 rows of both runs." in " ".join(done.stdout.split())
    by_cost = tollbar("compare", *runs, "--fail-above", "900%", "--of", "cost")
    assert (0, False) == (by_cost.returncode, "not judged" in by_cost.stdout)
    assert 0 == tollbar("compare", *runs).returncode


def test_a_comparison_with_a_slower_run_has_status_1(tollbar: Tollbar, fake_runs: Path) -> None:
    """Where each chunk of a choice took half as long again, and the others as long as before."""
    one, other = fake_runs / "one", fake_runs / "other"
    slow_down(other / "results.sqlite", "spin-2", 1.5)
    failed = tollbar("compare", one, other, "--fail-above", "5%")
    assert 1 == failed.returncode
    above = [line for line in failed.stdout.splitlines() if "above 5 %" in line]
    assert (1, True) == (len(above), "spin-2" in above[0])
    said = json.loads(tollbar("compare", one, other, "--fail-above", "5%", "--json").stdout)
    assert ["spin-2"] == [increase["choice"] for increase in said["increases"]]
    assert 0 == tollbar("compare", one, other, "--fail-above", "90%").returncode
    assert 0 == tollbar("compare", one, other).returncode
