"""Reading a run's directory: judge, report, export and compare repeat its results; old formats are refused."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from conftest import BLOCKS, ROUNDS, Tollbar
from tollbar.core.errors import TollbarError
from tollbar.results.database import opened


def test_compare_judge_report_and_export_read_a_run_again(tollbar: Tollbar, fake_runs: Path, tmp_path: Path) -> None:
    one, other = fake_runs / "one", fake_runs / "other"
    comparison = json.loads(tollbar("compare", one, other, "--json").stdout)
    assert comparison["median_difference"] < 0.02
    judged = json.loads(tollbar("judge", one, "--json").stdout)
    assert "fake" == judged["studies"][0]["study"]
    assert any(said.startswith("spin-1-again costs ") for said in judged["studies"][0]["answers"]["sentences"])
    assert "Twice the work" in tollbar("judge", one).stdout
    assert "1  Twice the work costs twice as much" in tollbar("judge", one, "--format", "markdown").stdout
    assert 0 == tollbar("report", one).returncode
    assert (one / "report.html").exists()
    rows = json.loads(tollbar("export", one, "--format", "json").stdout)
    # Three cells and a repeat; extra rounds and probe times are included.
    assert 4 * BLOCKS * ROUNDS == sum(not row["made_up"] and row["block"] < BLOCKS for row in rows)
    assert all(row["probe_before_ns"] > 0 and row["probe_after_ns"] > 0 for row in rows)
    chunks = len(rows)
    lines = tollbar("export", one).stdout.splitlines()
    assert 1 + chunks == len(lines)
    assert 0 == tollbar("export", one, "--format", "parquet", "--output", tmp_path / "chunks.parquet").returncode
    assert chunks == parquet.read_table(tmp_path / "chunks.parquet").num_rows


def test_cells_are_exported_with_what_was_found_of_them(tollbar: Tollbar, fake_runs: Path, tmp_path: Path) -> None:
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
    assert 0 == tollbar("export", one, "--per", "cell", "--format", "parquet", "--output", tmp_path / "p").returncode
    assert double["ratio"] == parquet.read_table(tmp_path / "p").to_pylist()[2]["ratio"]
    refused = tollbar("export", one, "--format", "markdown")
    assert (2, True) == (refused.returncode, "--per cell" in refused.stderr)


# Commands on an existing run other than measuring.
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
    old = tmp_path / "old"
    old.mkdir()
    (old / "run.json").write_text(
        json.dumps({"schema": schema, "studies": {"digests": {"blocks": 20, "interim_looks": [20]}}})
    )
    (old / "results.sqlite").write_bytes(b"as it was")
    done = tollbar(*(old if word == "RUN" else word for word in READERS[reader]))
    assert (2, "") == (done.returncode, done.stdout)
    assert "before version 5 of the run format" in " ".join(done.stderr.split())
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert {"run.json", "results.sqlite"} == {path.name for path in old.iterdir()}
    assert b"as it was" == (old / "results.sqlite").read_bytes()


def test_a_run_that_no_thread_can_watch_is_refused_in_one_line(
    fake_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(TollbarError, match="can't start new thread"), opened(fake_runs / "one" / "results.sqlite"):
        pass
