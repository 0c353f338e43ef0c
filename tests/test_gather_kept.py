"""Kept judgements: an outdated one is refused, and the newest run is the one with the latest start."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.fleet import fingerprint, run_of

from gather_lab import cost, judged_again, reason_of, why_not_current
from tollbar import analysis, results
from tollbar.analysis import Verdict
from tollbar.analysis.kept import FILE, NUMBERS, KeptToll, read_kept
from tollbar.catalog.families import Standing
from tollbar.cli import runs as run_command
from tollbar.core.errors import TollbarError
from tollbar.decide import compare
from tollbar.decide.compare import Unusable
from tollbar.decide.compare.found_runs import ReadRun

GOLDEN = Path(__file__).with_name("golden") / "judged.json"
RECORDED = Path(__file__).with_name("recorded") / "format-5.tar.gz"
# Contradictory tolls from a sender, by changed fields; the study's `threshold` is 3 %.
CONTRADICTIONS: Mapping[str, Mapping[str, Any]] = {
    "a ratio outside of its interval": {"ratio": 0.5, "low": 3.0, "high": 4.0, "verdict": "costs"},
    "a ratio above it": {"ratio": 4.1, "low": 3.0, "high": 4.0, "verdict": "costs"},
    "ends that changed places": {"ratio": 3.5, "low": 4.0, "high": 3.0, "verdict": "costs"},
    "costs, and may save": {"ratio": 1.1, "low": 0.9, "high": 1.3, "verdict": "costs"},
    "costs too little to be told": {"ratio": 1.02, "low": 1.01, "high": 1.03, "verdict": "costs"},
    "saves, and costs": {"ratio": 1.5, "low": 1.4, "high": 1.6, "verdict": "saves"},
    "saves too little to be told": {"ratio": 0.98, "low": 0.97, "high": 0.99, "verdict": "saves"},
    "free, and costs": {"ratio": 1.5, "low": 1.4, "high": 1.6, "verdict": "free"},
    "free, and may save": {"ratio": 1.0, "low": 0.9, "high": 1.01, "verdict": "free"},
    "decided without an interval": {"ratio": 1.5, "low": None, "high": None, "verdict": "costs"},
    "one end": {"ratio": 1.5, "low": 1.4, "high": None, "verdict": "unclear"},
    "decided by too few blocks": {"ratio": 1.5, "low": 1.4, "high": 1.6, "verdict": "costs", "blocks": 3},
    "a ratio that was not measured": {"ratio": 1.5, "low": 1.4, "high": 1.6, "verdict": "not measured"},
    "a verdict of nothing": {"ratio": None, "low": None, "high": None, "verdict": "costs"},
    "an interval of nothing": {"ratio": None, "low": 1.4, "high": 1.6, "verdict": "not measured"},
}
CARRIED: Mapping[str, Mapping[str, Any]] = {
    "costs": {"ratio": 3.5, "low": 3.0, "high": 4.0, "verdict": "costs"},
    "saves": {"ratio": 0.5, "low": 0.4, "high": 0.6, "verdict": "saves"},
    "free": {"ratio": 1.0, "low": 0.99, "high": 1.02, "verdict": "free"},
    "unclear for noise": {"ratio": 3.5, "low": 3.0, "high": 4.0, "verdict": "unclear"},
    "too few blocks": {"ratio": 1.5, "low": None, "high": None, "verdict": "unclear", "blocks": 2},
    "not measured": {"ratio": None, "low": None, "high": None, "verdict": "not measured", "reason": "none"},
}


def written(run: Path, toll: Mapping[str, Any], **study: Any) -> Path:
    """Replace the first toll of the run's judgement."""
    kept = json.loads((run / FILE).read_text())
    first = kept["studies"][0]["tolls"][0]
    kept["studies"][0] |= study
    for name, value in toll.items():
        first[KeptToll._fields.index(name)] = value
    (run / FILE).write_text(json.dumps(kept))
    return run


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_judgement_that_contradicts_itself_is_not_believed(own_run: Path, what: str) -> None:
    before = read_kept(own_run)
    written(own_run, CONTRADICTIONS[what])
    # A verdict that does not exist is refused for its form.
    assert why_not_current(own_run) in ("`judged.json` contradicts itself", "`judged.json` is not as Tollbar writes it")
    assert "`tollbar report " in reason_of(own_run)
    assert before.studies == read_kept(judged_again(own_run)).studies


@pytest.mark.parametrize("what", CARRIED)
def test_what_a_judge_may_have_found_is_believed(own_run: Path, what: str) -> None:
    kept = read_kept(written(own_run, CARRIED[what]))
    assert Verdict(CARRIED[what]["verdict"]) is kept.studies[0].tolls[0].verdict


def test_nothing_is_decided_without_repeats(own_run: Path) -> None:
    assert "`judged.json` contradicts itself" == why_not_current(written(own_run, CARRIED["costs"], noise_floor=None))


def test_a_run_without_a_current_judgement_is_refused_with_the_command(own_run: Path, one_run: Path) -> None:
    (own_run / FILE).unlink()
    good, refused = compare.read([one_run, own_run])
    assert isinstance(good, ReadRun)
    assert isinstance(refused, Unusable)
    assert f"is not judged yet; `tollbar report {own_run}` judges it" == refused.reason
    assert not (own_run / FILE).exists()
    run_command.report(own_run)
    (found,) = compare.read([own_run])
    assert isinstance(found, ReadRun)


def test_a_judgement_of_another_version_is_refused(own_run: Path) -> None:
    kept = json.loads((own_run / FILE).read_text())
    for other in (NUMBERS + 1, NUMBERS - 1, None):
        (own_run / FILE).write_text(json.dumps({**kept, "numbers": other, "studies": "of another form"}))
        assert why_not_current(own_run).startswith("was judged by another version of Tollbar")
    del kept["numbers"]
    (own_run / FILE).write_text(json.dumps(kept))
    assert why_not_current(own_run).startswith("was judged by another version of Tollbar")


def test_the_judged_numbers_are_those_of_their_version(tmp_path: Path) -> None:
    """A recorded run gives the numbers of this version.

    If they have to change, raise `NUMBERS`, so that kept judgements are made again. The expected text is the output of
    `PYTHONPATH=. python tests/test_gather_kept.py > tests/golden/judged.json`.
    """
    expected, found = json.loads(GOLDEN.read_text()), golden(tmp_path)
    assert NUMBERS == expected["numbers"], "write the golden file again"
    assert expected == found, "the same run has other numbers: raise `NUMBERS` in `gathering/kept.py`"


def test_the_newest_run_is_that_of_the_clock(one_run: Path, tmp_path: Path) -> None:
    """Time zones count: 20:00 in London is later than 01:30 of the next day in Tokyo."""
    run_of(tmp_path, fingerprint("Example CPU 2"), cost(), seed=2)
    tokyo, london = (one for one in compare.read([one_run, tmp_path]) if isinstance(one, ReadRun))
    places = [
        (tokyo, "2026-11-24T01:30:00+09:00", 1_795_451_400.0, Standing.BROKEN),
        (london, "2026-11-23T20:00:00+00:00", 1_795_464_000.0, Standing.RECOMMENDED),
    ]
    runs = []
    for one, started, began_s, standing in places:
        studies = [
            study.model_copy(update={"cells": [cell._replace(standing=standing) for cell in study.cells]})
            for study in one.studies
        ]
        runs.append(replace(one, started=started, began_s=began_s, studies=tuple(studies)))
    for order in (runs, runs[::-1]):
        assert {Standing.RECOMMENDED} == {row.standing for row in compare.gather(order).rows}
    without = [replace(runs[0], began_s=None), runs[1]]
    assert {Standing.RECOMMENDED} == {row.standing for row in compare.gather(without).rows}


def _sql(statement: str) -> Callable[[Path], object]:
    def change(run: Path) -> None:
        with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
            assert database.execute(statement).rowcount > 0

    return change


CHANGED: Mapping[str, Callable[[Path], object]] = {
    "chunks": _sql(
        "update observation set by_round = replace(by_round, '[', '[9') where metric = 'cpu' and trial in"
        " (select id from trial where cell like '%sha-512%')"
    ),
    "a trial": _sql("update trial set outcome = 'failed', reason = 'none' where block = 0"),
    "its cells": _sql("update cell set strength = 7 where position = 1"),
    "what was set aside": _sql(
        "insert into set_aside select study, key, 1, 2, 3, 'none', 4.0, null from cell where position = 1"
    ),
    "what was left out": _sql("insert into left_out select study, coordinates, 'none' from cell limit 1"),
    "a study": lambda run: (run / "studies/digests.toml").write_text(
        (run / "studies/digests.toml").read_text() + "# other\n"
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_judgement_of_other_results_is_not_believed(own_run: Path, what: str) -> None:
    before = read_kept(own_run)
    CHANGED[what](own_run)
    assert "its results have changed since it was judged" == why_not_current(own_run)
    again = read_kept(judged_again(own_run))
    assert before.of != again.of
    assert what != "chunks" or before.studies[0].tolls != again.studies[0].tolls


def test_a_look_and_a_copy_change_no_judgement(own_run: Path, tmp_path: Path) -> None:
    before = read_kept(own_run)
    for _ in range(2):
        store = results.reopen(own_run)
        store.note_interim_look()
        store.close()
    assert before == read_kept(own_run)
    compare.keep(analysis.judge(results.read(own_run)))
    assert before == read_kept(own_run)
    assert before == read_kept(Path(shutil.copytree(own_run, tmp_path / "copy")))
    (own_run / "results.sqlite-wal").touch()
    assert before == read_kept(own_run)


def test_a_run_whose_log_is_left_keeps_its_judgement(own_run: Path) -> None:
    """The run was killed: entries in the log count, too."""
    with closing(sqlite3.connect(own_run / "results.sqlite")) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("update cell set title = 'another'")
        database.commit()
        ended = Path(shutil.copytree(own_run, own_run.with_name("ended")))
    assert (ended / "results.sqlite-wal").stat().st_size > 0
    assert "its results have changed since it was judged" == why_not_current(ended)
    assert not why_not_current(judged_again(ended))


def test_numbers_of_no_run_are_one_line(own_run: Path) -> None:
    _sql("update trial set started_s = 9e15")(own_run)
    with pytest.raises(TollbarError, match="`began_s` of its judgement"):
        compare.keep(analysis.judge(results.read(own_run)))


def test_an_end_beyond_all_numbers_is_kept_as_none(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks cost confidence, so that few blocks have infinite ends after many looks."""
    monkeypatch.setattr("tollbar.analysis.kept._MOST", 1.2)
    tolls = compare.keep(analysis.judge(results.read(own_run))).studies[0].tolls
    assert {True, False} == {toll.high is None for toll in tolls}
    assert all(toll.high is None or toll.high < 1.2 for toll in tolls)


def golden(folder: Path) -> dict[str, Any]:
    """Return the judged numbers of a recorded run, to six significant figures, as the golden file has them."""
    with tarfile.open(RECORDED) as archive:
        archive.extractall(folder, filter="data")
    kept = compare.keep(analysis.judge(results.read(folder / "run")))
    return {"numbers": kept.numbers, "studies": _rounded([study.model_dump(mode="json") for study in kept.studies])}


def _rounded(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _rounded(value) for name, value in said.items()}
    if isinstance(said, list | tuple):
        return [_rounded(value) for value in said]
    return float(f"{said:.6g}") if isinstance(said, float) else said


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(golden(Path(name)), indent=1))
