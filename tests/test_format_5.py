"""Runs of format 5 keep their numbers, in current words, and stay unchanged except for recorded looks."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Tollbar
from tollbar import analysis, results
from tollbar.analysis import Verdict
from tollbar.core.errors import TollbarError
from tollbar.core.renamed import WORDS, today
from tollbar.results.database import _schema, _schema_of_5

RECORDED = Path(__file__).with_name("recorded") / "format-5.tar.gz"
# As judged by the version that measured it.
RATIOS = {
    ("tls", "tls-1.2", "embedded"): (42.2830882400114, Verdict.COSTS),
    ("self-test", "spin-1", None): (1.0038675954604699, Verdict.FREE),
    ("self-test", "spin-locked", None): (1.5226096630833588, Verdict.COSTS),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with tarfile.open(RECORDED) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "run"


def test_its_ratios_and_verdicts_are_what_they_were(run: Path) -> None:
    judged = analysis.judge(results.read(run))
    served, spun = judged.studies
    assert ("server", ("embedded",)) in [(name, (value,)) for name, value in served.study.rows[0].coordinates.items()]
    found = {
        ("tls" if study is served else "self-test", toll.row.choice, toll.row.server): (
            toll.ratio.estimate if toll.ratio else None,
            toll.verdict,
        )
        for study in (served, spun)
        for toll in study.tolls
        if toll.row.key != toll.against.key
    }
    for place, (ratio, verdict) in RATIOS.items():
        assert (pytest.approx(ratio), verdict) == found[place]
    assert spun.about.family.is_self_test
    assert 0.03 == served.about.threshold


def test_a_look_is_noted_in_the_words_of_its_format(run: Path) -> None:
    assert results.note_interim_look(run) is None
    said = json.loads((run / "run.json").read_text())
    assert (5, [[4], [4]]) == (
        said["schema"],
        [[look["blocks"] for look in entry["looks"]] for entry in said["studies"].values()],
    )
    assert results.note_interim_look(run) is None
    with closing(sqlite3.connect(run / "results.sqlite")) as database:
        assert _schema_of_5() == _schema(database)


def test_it_cannot_be_resumed(run: Path, tollbar: Tollbar) -> None:
    with pytest.raises(TollbarError, match="has format 5 of an earlier version, which can be read but not resumed"):
        results.reopen(run)
    done = tollbar("run", "--resume", str(run))
    assert 2 == done.returncode
    assert "not resumed" in done.stderr


def test_every_reader_takes_it(run: Path, tollbar: Tollbar, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    for words in (("judge", run), ("report", run), ("export", run, "--per", "cell"), ("compare", run, other)):
        done = tollbar(*map(str, words))
        assert 0 == done.returncode, done.stderr
        assert not {"bed", "heat", "twin", "worth", "undisturbed"} & {*done.stdout.replace(",", " ").split()}


@pytest.mark.parametrize("hostile", ['{"bed": {"bed": 1}}', '"bed"', "[]", "[[1, {}]]"])
def test_a_file_of_any_form_is_renamed_without_a_fault(hostile: str) -> None:
    today(json.loads(hostile))


def test_words_of_today_are_no_words_of_earlier_versions() -> None:
    assert not {*WORDS} & {*WORDS.values()}
