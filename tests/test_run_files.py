"""The files of a run's directory: no command makes SQLite change files elsewhere."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Tollbar
from tollbar.core.errors import TollbarError
from tollbar.results.directory import check_files

SQLITES = ["results.sqlite", "results.sqlite-wal", "results.sqlite-shm", "results.sqlite-journal"]


def log_left(run: Path) -> None:
    """Leave the results as a killed run does, with a log next to the file."""
    results, log = run / "results.sqlite", run / "results.sqlite-wal"
    with closing(sqlite3.connect(results)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("insert into event values (1.0, 'x')")
        database.commit()
        kept = {path: path.read_bytes() for path in (results, log)}
    for path, content in kept.items():
        path.write_bytes(content)


@pytest.mark.parametrize("name", SQLITES)
def test_no_file_of_sqlite_has_another_name(fake_runs: Path, tmp_path: Path, name: str) -> None:
    run, victim = fake_runs / "one", tmp_path / "victim"
    log_left(run)
    victim.write_bytes((run / name).read_bytes() if (run / name).exists() else b"precious")
    (run / name).unlink(missing_ok=True)
    os.link(victim, run / name)
    with pytest.raises(TollbarError, match=f"`{name}` has another name as well"):
        check_files(run)


@pytest.mark.parametrize("name", SQLITES)
def test_no_file_of_sqlite_is_a_folder(fake_runs: Path, name: str) -> None:
    run = fake_runs / "one"
    (run / name).unlink(missing_ok=True)
    (run / name).mkdir()
    with pytest.raises(TollbarError, match=f"`{name}` is a folder"):
        check_files(run)


def test_to_read_a_run_changes_no_file_elsewhere(tollbar: Tollbar, fake_runs: Path, tmp_path: Path) -> None:
    run, victim = fake_runs / "one", tmp_path / "victim"
    log_left(run)
    victim.write_text("precious")
    os.link(victim, run / "results.sqlite-shm")
    for words in (["judge", run], ["export", run], ["run", "--resume", run]):
        refused = tollbar(*words)
        assert (2, True) == (refused.returncode, "has another name as well" in refused.stderr)
    assert "precious" == victim.read_text()


def test_a_run_is_read_whose_other_files_are_shared_with_a_backup(
    tollbar: Tollbar, fake_runs: Path, tmp_path: Path
) -> None:
    """The files may be hard links of the backup's, so they are replaced and never written to."""
    run, backup = fake_runs / "one", tmp_path / "backup"
    shutil.copytree(run, backup, copy_function=lambda one, other: Path(other).hardlink_to(one))
    (run / "results.sqlite").unlink()
    shutil.copyfile(backup / "results.sqlite", run / "results.sqlite")
    before = {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()}
    assert 0 == tollbar("judge", run).returncode
    assert before == {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()}
