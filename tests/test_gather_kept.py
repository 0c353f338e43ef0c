"""What a run keeps: a judgement that contradicts itself is made anew, and the newest run is that of the clock."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.fleet import fingerprint, run_of

import tollbar
from gather_lab import cost
from tollbar import gathering, judge, results
from tollbar.errors import TollbarError
from tollbar.families import Standing
from tollbar.gathering.kept import FILE, JUDGED_BY, KeptToll, read_kept
from tollbar.gathering.reading import Found
from tollbar.judge import Verdict

# What a sender writes of a toll, by its fields; its study's `threshold` is 3 %.
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
    """The run with this as the first of its tolls."""
    kept = json.loads((run / FILE).read_text())
    first = kept["studies"][0]["tolls"][0]
    kept["studies"][0] |= study
    for name, value in toll.items():
        first[KeptToll._fields.index(name)] = value
    (run / FILE).write_text(json.dumps(kept))
    return run


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_judgement_that_contradicts_itself_is_not_believed(own_run: Path, what: str) -> None:
    """The run is judged from its chunks, and that is what is shown and kept."""
    before = read_kept(own_run)
    assert before is not None
    assert read_kept(written(own_run, CONTRADICTIONS[what])) is None
    (found,) = gathering.read([own_run])
    assert isinstance(found, Found)
    assert before.studies[0].tolls[0].verdict is found.studies[0].tolls[0].verdict
    kept = read_kept(own_run)
    assert kept is not None
    assert kept.studies[0].tolls[0].ratio == before.studies[0].tolls[0].ratio


@pytest.mark.parametrize("what", CARRIED)
def test_what_a_judge_may_have_found_is_believed(own_run: Path, what: str) -> None:
    """As docs/many-machines.md says: it is not worked out again."""
    kept = read_kept(written(own_run, CARRIED[what]))
    assert kept is not None
    assert Verdict(CARRIED[what]["verdict"]) is kept.studies[0].tolls[0].verdict


def test_nothing_is_decided_without_repeats(own_run: Path) -> None:
    """Of noise nothing is known then."""
    assert read_kept(written(own_run, CARRIED["costs"], noise_floor=None)) is None


def test_a_run_without_a_judgement_is_judged_from_its_chunks(own_run: Path) -> None:
    """Which is what a reader does who does not believe it."""
    written(own_run, CARRIED["costs"])
    (own_run / FILE).unlink()
    (found,) = gathering.read([own_run])
    assert isinstance(found, Found)
    assert found.studies[0].tolls[0].ratio != 3.5


def test_the_newest_run_is_that_of_the_clock(one_run: Path, tmp_path: Path) -> None:
    """Wherever its machine is: 20:00 in London is later than 01:30 of the next day in Tokyo."""
    run_of(tmp_path, fingerprint("Example CPU 2"), cost(), seed=2)
    tokyo, london = (one for one in gathering.read([one_run, tmp_path]) if isinstance(one, Found))
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
        assert {Standing.RECOMMENDED} == {row.standing for row in gathering.gather(order).rows}
    without = [replace(runs[0], began_s=None), runs[1]]
    assert {Standing.RECOMMENDED} == {row.standing for row in gathering.gather(without).rows}


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
    """What is shown is what `judge` shows."""
    before = read_kept(own_run)
    assert before is not None
    CHANGED[what](own_run)
    assert read_kept(own_run) is None
    (found,) = gathering.read([own_run])
    assert isinstance(found, Found)
    again = read_kept(own_run)
    assert again is not None
    assert before.of != again.of


def test_tripled_chunks_are_seen(own_run: Path) -> None:
    (found,) = gathering.read([own_run])
    CHANGED["chunks"](own_run)
    (changed,) = gathering.read([own_run])
    assert isinstance(found, Found)
    assert isinstance(changed, Found)
    assert found.studies[0].tolls != changed.studies[0].tolls


def test_a_look_and_a_copy_change_no_judgement(own_run: Path, tmp_path: Path) -> None:
    """Only the results count, and neither how often they were opened nor where they are."""
    before = read_kept(own_run)
    assert before is not None
    for _ in range(2):
        store = results.reopen(own_run)
        store.note_interim_look()
        store.close()
    assert before == read_kept(own_run)
    gathering.keep(judge.judge(results.read(own_run)))
    assert before == read_kept(own_run)
    assert before == read_kept(Path(shutil.copytree(own_run, tmp_path / "copy")))
    (own_run / "results.sqlite-wal").touch()
    assert before == read_kept(own_run)


def test_a_run_whose_log_is_left_keeps_its_judgement(own_run: Path) -> None:
    """It was ended by force: what is in the log counts, too."""
    with closing(sqlite3.connect(own_run / "results.sqlite")) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("update cell set title = 'another'")
        database.commit()
        ended = Path(shutil.copytree(own_run, own_run.with_name("ended")))
    assert (ended / "results.sqlite-wal").stat().st_size > 0
    assert read_kept(ended) is None
    gathering.read([ended])
    assert read_kept(ended) is not None


def test_numbers_of_no_run_are_one_line(own_run: Path) -> None:
    _sql("update trial set started_s = 9e15")(own_run)
    with pytest.raises(TollbarError, match="`began_s` of its judgement"):
        gathering.keep(judge.judge(results.read(own_run)))


def test_an_end_beyond_all_numbers_is_kept_as_none(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look costs confidence, and after many of them few blocks have such ends."""
    monkeypatch.setattr("tollbar.gathering.kept._MOST", 1.2)
    tolls = gathering.keep(judge.judge(results.read(own_run))).studies[0].tolls
    assert {True, False} == {toll.high is None for toll in tolls}
    assert all(toll.high is None or toll.high < 1.2 for toll in tolls)


# Loaded by judging, and no part of it: how a run is found, opened and written, and what a study may be measured with.
NOT_JUDGING = ("servers", "runner", "runners", "errors", "files", "machine", "markdown", "plan/__init__.py",
               "results/__init__.py", "results/changes.py", "results/database.py", "results/directory.py",
               "results/export.py", "results/store.py", "control_groups.py", "__init__.py")  # fmt: skip


def test_a_judgement_is_of_all_code_that_judges() -> None:
    """Another version of any module that judging loads judges again."""
    show = "import sys, tollbar.judge; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('tollbar')))"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    package = Path(tollbar.__file__).parent
    loaded = {str(Path(file).relative_to(package)) for file in done.stdout.split()}
    hashed = {str(path.relative_to(package)) for pattern in JUDGED_BY for path in package.glob(pattern)}
    assert all(any(package.glob(pattern)) for pattern in JUDGED_BY)
    left = {one for one in loaded - hashed if not one.startswith(NOT_JUDGING)}
    assert set() == left
