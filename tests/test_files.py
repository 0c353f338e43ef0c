"""Files: whole or not at all, and readable by no other account at any moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tollbar.beds.configuration import write_files
from tollbar.files import write, write_atomically


@pytest.fixture(params=[0o000, 0o022, 0o077])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    """What the user's mask takes away."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_has_its_mode_whatever_the_mask_is(tmp_path: Path, mask: int, mode: int) -> None:
    """Neither less than it is meant to have nor more."""
    write(tmp_path / "file", b"text", mode)
    assert (mode, b"text") == (mode_of(tmp_path / "file"), (tmp_path / "file").read_bytes())
    write_atomically(tmp_path / "ordinary", "text")
    assert 0o666 & ~mask == mode_of(tmp_path / "ordinary")


@pytest.mark.parametrize("mask", [0o000], indirect=True)
def test_what_a_server_is_told_is_for_its_owner_from_the_first_byte(
    tmp_path: Path, mask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the lab ends before a file's mode is set, no other account could read it at any moment."""

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("chmod", "fchmod", "replace"):
        monkeypatch.setattr(os, name, ended)
    monkeypatch.setattr(os, "unlink", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        write_files({"server.conf": "secret"}, tmp_path, None)
    (left,) = tmp_path.iterdir()
    assert 0 == mode_of(left) & 0o077


def test_nothing_that_was_laid_there_is_written_through(tmp_path: Path) -> None:
    """A link in a file's place is replaced, and what it leads to is left as it was."""
    (tmp_path / "other").write_text("theirs")
    (tmp_path / "file").symlink_to(tmp_path / "other")
    write(tmp_path / "file", b"ours", 0o600)
    assert ("theirs", "ours") == ((tmp_path / "other").read_text(), (tmp_path / "file").read_text())
    assert ["file", "other"] == sorted(path.name for path in tmp_path.iterdir())


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """Root may replace a device: a page that is written to `/dev/null` must not take it away from all others."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "a page")
        assert b"a page" == os.read(reader, 100)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert [pipe] == list(tmp_path.iterdir())
    finally:
        os.close(reader)
