"""`compare`: exit status of two runs by increases, failures and undecided rows."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import Tollbar


def test_a_comparison_fails_only_beyond_what_is_allowed(tollbar: Tollbar, fake_runs: Path) -> None:
    one, other = fake_runs / "one", fake_runs / "other"
    passed = tollbar("compare", one, other, "--fail-above", "20%")
    assert (0, True) == (passed.returncode, "No row became more expensive by more than 20 %" in passed.stdout)
    assert "→" in passed.stdout
    markdown = tollbar("compare", one, other, "--format", "markdown").stdout
    assert markdown.startswith("### fake: one → other\n\n- one: ")
    assert "\n- other: " in markdown
    refused = tollbar("compare", one, other, "--fail-above", "much")
    assert (2, True) == (refused.returncode, "--fail-above" in refused.stderr)


def slow_down(path: Path, choice: str, times: float) -> None:
    """Multiply the time of each chunk of a choice in a run's results."""
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


def test_a_comparison_with_a_slower_run_has_status_1(tollbar: Tollbar, fake_runs: Path) -> None:
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


def alter(path: Path, *statements: str) -> None:
    """Alter a run's results by these statements; `%` in a cell's key means any choice."""
    with contextlib.closing(sqlite3.connect(path / "results.sqlite")) as database, database:
        for statement in statements:
            assert database.execute(statement).rowcount > 0


def failed(choice: str) -> tuple[str, str]:
    """Return the statements that make the cells of a choice fail their proof."""
    at = f"like '%\"{choice}\"%'"
    return (
        f"delete from trial where cell {at}",
        f"update cell set outcome='failed', reason='wrong answer' where key {at}",
    )


EVERY, FEW = "spin-%", ("delete from trial where block > 0", "delete from batch where block > 0")
# A run without trials has no batches either.
NOTHING = (*failed(EVERY), "delete from batch")
ALONE = tuple(statement for choice in ("spin-2", "spin-1-again") for statement in failed(choice))
COST_HINT = "hint: `--metric cost` looks at CPU time itself, of which 1 row could show it"


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("before", "after", "words", "status", "said"),
    [
        # Each failed row counts.
        ((), failed("spin-2"), (), 1, "1 row measured in one has no cost in other: 1 failed, 0 gone."),
        ((), NOTHING, (), 1, "3 rows measured in one have no cost in other: 3 failed, 0 gone."),
        ((), failed("spin-2"), (), 1, "· spin: in other: wrong answer"),
        # A row that already failed in the first run is no fault of the second.
        (failed("spin-2"), (), (), 0, "1 of 2 rows could have shown it."),
        # Nothing can be decided: no ratio is left, too few blocks, or no measurement in either run.
        (ALONE, ALONE, (), 3, COST_HINT),
        (ALONE, ALONE, ("--metric", "cost"), 0, "1 of 1 row could have shown it."),
        (FEW, FEW, ("--metric", "cost"), 3, "No row could have shown a rise by more than 30 %"),
        (NOTHING, NOTHING, (), 3, "No row could have shown a rise by more than 30 %"),
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
    one, other = fake_runs / "one", fake_runs / "other"
    alter(one, *before)
    alter(other, *after)
    done = tollbar("compare", one, other, "--fail-above", "30%", *words, env={"COLUMNS": "400"})
    assert (status, "") == (done.returncode, done.stderr)
    assert said in " ".join(done.stdout.split())


@pytest.mark.share(0)
def test_a_study_that_is_gone_counts_and_nothing_in_common_is_an_error(
    tollbar: Tollbar, fake_runs: Path, fake_study: Path, tmp_path: Path
) -> None:
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
    # Rows that only the second run has are not missing from the first.
    assert 0 == tollbar("compare", fake_runs / "one", both, "--fail-above", "30%").returncode
    refused = tollbar("compare", fake_runs / "one", alone, "--fail-above", "30%")
    assert (2, True) == (refused.returncode, "no toll in common" in refused.stderr)


@pytest.mark.share(0)
def test_what_is_not_compared_has_not_passed(
    tollbar: Tollbar, fake_runs: Path, fake_study: Path, tmp_path: Path
) -> None:
    fake_study.write_text(fake_study.read_text().replace('baseline  = "spin-1"', 'baseline  = "spin-1-again"'))
    made = tollbar("run", fake_study, "--json", "--no-report", "--blocks", "5")
    runs = fake_runs / "one", tmp_path / json.loads(made.stdout)["run"]
    done = tollbar("compare", *runs, "--fail-above", "90%")
    assert 1 == done.returncode
    assert "Not compared, and so not judged: 3 rows of both runs." in " ".join(done.stdout.split())
    by_cost = tollbar("compare", *runs, "--fail-above", "900%", "--metric", "cost")
    assert (0, False) == (by_cost.returncode, "not judged" in by_cost.stdout)
    assert 0 == tollbar("compare", *runs).returncode
