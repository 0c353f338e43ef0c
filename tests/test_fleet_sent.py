"""Fleet directories from strangers: resuming one changes no file elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet_lab import RUN, begun
from tollbar import cluster
from tollbar.cluster.fleet_file import FleetNode
from tollbar.cluster.home import _write
from tollbar.core.errors import TollbarError

LAID: dict[str, Callable[[Path, Path], None]] = {
    "the lock, a link": lambda place, victim: (place / ".lock").symlink_to(victim),
    "the lock, a pipe": lambda place, _: os.mkfifo(place / ".lock"),
    "the page, a link": lambda place, victim: (place / "fleet.html").symlink_to(victim),
    "the page, a pipe": lambda place, _: os.mkfifo(place / "fleet.html"),
    "a node, a link": lambda place, victim: (place / "node").symlink_to(victim.parent),
    "a run, a link": lambda place, victim: _in(place / "node").joinpath(RUN).symlink_to(victim.parent),
    "a run that is not begun, a link": lambda place, victim: (_in(place / "node") / "other").symlink_to(victim.parent),
    "results, a link": lambda place, victim: (_in(place / "node" / RUN) / "results.sqlite").symlink_to(victim),
    "an unfinished file, a link": lambda place, victim: (_in(place / "node" / RUN) / ".coming").symlink_to(victim),
    "studies, a link": lambda place, victim: (_in(place / "node" / RUN) / "studies").symlink_to(victim.parent),
}


def _in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("laid", LAID)
def test_a_fleet_with_what_no_fleet_has_is_refused(tmp_path: Path, laid: str) -> None:
    fleets = begun(tmp_path)
    fleets.fleet.nodes = [FleetNode("node", "10.0.0.1", {}, run=RUN)]
    fleets.write()
    victim = _in(tmp_path / "elsewhere") / "victim"
    victim.write_text("precious")
    LAID[laid](fleets.directory, victim)
    with pytest.raises(TollbarError, match=r"is a symbolic link|must be a file or a folder"):
        cluster.take_up(fleets.directory)
    assert "precious" == victim.read_text()


READ: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a link to a device": lambda place: os.symlink("/dev/zero", place),
}


@pytest.mark.parametrize("kind", READ)
def test_what_a_fleet_says_is_read_from_a_file_alone(tmp_path: Path, kind: str) -> None:
    """A pipe without a writer, or a device without an end, would be read for ever."""
    READ[kind](tmp_path / cluster.FILE)
    with pytest.raises(TollbarError, match="it is a"):
        cluster.take_up(tmp_path)


def test_what_is_laid_where_a_lock_is_made_is_never_emptied(tmp_path: Path) -> None:
    fleets, victim = begun(tmp_path), tmp_path / "victim"
    victim.write_text("precious")
    (fleets.directory / ".lock").symlink_to(victim)
    with pytest.raises(TollbarError, match="cannot be opened"), fleets._held():
        pass
    (fleets.directory / ".lock").unlink()
    (fleets.directory / ".lock").hardlink_to(victim)
    with fleets._held():
        pass
    assert "precious" == victim.read_text()


def test_a_file_that_comes_home_is_written_anew(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".coming").hardlink_to(victim)
    _write(tmp_path / "run.json", [b"{}"])
    assert ("{}", "precious") == ((tmp_path / "run.json").read_text(), victim.read_text())
