"""Names of studies and folders with characters that are special in a URI, a pattern or a path."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from bench.fleet import DIGESTS, fingerprint, run_of

from conftest import FAKE_STUDY, Tollbar
from gather_lab import cost, made_in, told
from tollbar import results, study
from tollbar.cluster.node import RESULTS, NodeAgent, _copy
from tollbar.core.errors import TollbarError

ODD = ("c#", "what?", "100%25", "a%2e", "a?mode=memory&b", "a[1]", "*", "x y", "file:x?mode=rwc", "-n", "é", "'\"`$(x)")


def test_a_study_and_folders_of_any_name_are_measured_and_read(tollbar: Tollbar, tmp_path: Path) -> None:
    folder = tmp_path / "a# b?%2e[*]"
    folder.mkdir()
    (folder / "c#?%25[1]&mode=memory.toml").write_text(FAKE_STUDY)
    measured = tollbar("run", folder / "c#?%25[1]&mode=memory.toml", "--runs", folder, "--blocks", 4, "--seed", 1)
    assert 0 == measured.returncode, measured.stderr
    (run,) = (one.parent for one in folder.glob("*/run.json"))
    assert run.name.endswith("c#?%25[1]&mode=memory")
    for words in (
        *(["judge", run], ["report", run], ["export", run], ["export", run, "--per", "cell"]),
        *(["compare", run, run], ["run", "--resume", run, "--blocks", "5", "--no-report"]),
    ):
        done = tollbar(*words)
        assert 0 == done.returncode, (words, done.stderr)
    gathered = json.loads(tollbar("compare", "--by", "machine", folder, "--json").stdout)
    assert [run.name] == [Path(one["run"]).name for one in gathered["runs"]]
    # Nothing is made under a truncated name.
    assert {run.name, "c#?%25[1]&mode=memory.toml"} == {one.name for one in folder.iterdir()}
    assert {folder.name} == {one.name for one in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ODD)
def test_a_run_of_any_name_is_read(tmp_path: Path, name: str) -> None:
    odd = tmp_path / name / name
    made = run_of(odd, fingerprint("Example CPU 1"), cost(), text=DIGESTS, name=name)
    assert made.name.endswith(name)
    ((judged,),) = [[one.study.name for one in results.read(made).studies]]
    assert name == judged
    assert results.note_interim_look(made) is None
    results.reopen(made).close()
    assert 1 == len(told(odd).runs)
    assert [made.name] == [one.name for one in odd.iterdir()]


def test_a_run_that_names_another_place_reads_nothing_there(tmp_path: Path) -> None:
    """A folder's name must not be read as a part of a URI."""
    victim = tmp_path / "victim"
    victim.mkdir()
    for name in (
        *("..%2Fvictim%2Fmade?mode=rwc&x=", "..%2Fvictim%2Fown.db?mode=rwc&x=", "real%2Fresults.sqlite?mode=ro&x="),
    ):
        run = made_in(tmp_path / "made").rename(tmp_path / name)
        (run / "results.sqlite").unlink()
        with pytest.raises(TollbarError, match="cannot be read"):
            results.read(run)
        assert results.note_interim_look(run) is not None
    assert [] == list(victim.iterdir())


@pytest.mark.parametrize("name", ODD)
def test_a_node_counts_and_copies_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    node = NodeAgent(name)
    runs = node._folder("fleet") / "runs"
    made = made_in(runs)
    with sqlite3.connect(made / RESULTS) as database:
        ((trials,),) = database.execute("select count(*) from trial")
    database.close()
    assert trials == node.trials("fleet", None) > 0
    assert _copy(made / RESULTS).startswith(b"SQLite format 3")
    assert {made.name} == {one.name for one in runs.iterdir()}


UNUSABLE = {
    "only dots": b"...toml",
    "one dot": b"..toml",
    "a line's end": b"a\nb.toml",
    "an escape": b"a\x1b[2J.toml",
    "a turned text": "a\u202eb.toml".encode(),
    "no text": b"a\xff.toml",
    "too long": b"a" * 201 + b".toml",
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_study_whose_name_no_run_can_have_is_refused(tollbar: Tollbar, tmp_path: Path, what: str) -> None:
    """The run could not be read."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + UNUSABLE[what]))
    path.write_text(FAKE_STUDY)
    for words in ("run", "--blocks", "4"), ("plan",):
        done = tollbar(*words, path)
        assert (2, "") == (done.returncode, done.stdout)
        message = " ".join(done.stderr.split())
        assert "cannot name a study" in message
        assert "hint:" in message
    assert not (tmp_path / "runs").exists()


def test_names_that_a_run_can_have_are_read(tmp_path: Path) -> None:
    for name in (*ODD, "a" * 200, "...x", "a.b"):
        (tmp_path / f"{name}.toml").write_text(DIGESTS)
        assert [name] == [one.name for one in study.load([str(tmp_path / f"{name}.toml")])]


def test_show_notes_a_look_at_the_run_that_it_shows(tollbar: Tollbar, tmp_path: Path) -> None:
    claim = 'says = "?"\nof = { choice = "sha-512" }\nover = { choice = "sha-256" }\nmetric = "cost"\nratio = 2.0\n'
    text = f'source = "security-design-choices"\n{DIGESTS}\n[[claim]]\n{claim}'
    made = run_of(tmp_path / "runs", fingerprint("Example CPU 1"), cost(), text=text)
    for words in ([], ["--run", made]):
        about = json.loads((made / "run.json").read_text())
        about["studies"]["digests"]["interim_looks"] = []
        (made / "run.json").write_text(json.dumps(about))
        done = tollbar("show", "security-design-choices", *words)
        assert 0 == done.returncode, done.stderr
        assert "of the run" in done.stderr
        assert 1 == len(json.loads((made / "run.json").read_text())["studies"]["digests"]["interim_looks"])
