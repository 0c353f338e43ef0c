"""Files: written whole or not at all, and never readable by another account."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from conftest import lacking
from tollbar.core import files
from tollbar.core.errors import TollbarError
from tollbar.core.files import read_bytes, read_text, write, write_atomically, write_named
from tollbar.lab.servers import leftovers, sandbox


@pytest.fixture(params=[0o000, 0o022, 0o077])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Yield the bits that the user's mask removes."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_has_its_mode_whatever_the_mask_is(tmp_path: Path, mask: int, mode: int) -> None:
    write(tmp_path / "file", b"text", mode)
    assert (mode, b"text") == (mode_of(tmp_path / "file"), (tmp_path / "file").read_bytes())
    write_atomically(tmp_path / "ordinary", "text")
    assert 0o666 & ~mask == mode_of(tmp_path / "ordinary")


@pytest.mark.parametrize("mask", [0o000], indirect=True)
def test_what_a_server_is_told_is_for_its_owner_from_the_first_byte(
    tmp_path: Path, mask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab may end before a file's mode is set: no other account may read it at any moment."""

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("chmod", "fchmod", "replace"):
        monkeypatch.setattr(os, name, ended)
    monkeypatch.setattr(os, "unlink", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "server.conf", b"secret", 0o600)
    (left,) = tmp_path.iterdir()
    assert 0 == mode_of(left) & 0o077


@pytest.mark.parametrize("name", ["n" * 255, "\u65e5" * 85])
def test_a_file_has_the_longest_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, b"one", 0o600)
    write_atomically(tmp_path / name, "two")
    write_named(tmp_path / name, "three")
    assert [name] == [one.name for one in tmp_path.iterdir()]
    assert "three" == (tmp_path / name).read_text()


def test_nothing_that_was_laid_there_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("theirs")
    os.mkfifo(tmp_path / "pipe")
    for to in "other", "pipe":
        for write_ours in partial(write, content=b"ours", mode=0o600), partial(write_atomically, text="ours"):
            (tmp_path / "file").unlink(missing_ok=True)
            (tmp_path / "file").symlink_to(tmp_path / to)
            write_ours(tmp_path / "file")
            assert ("theirs", "ours") == ((tmp_path / "other").read_text(), (tmp_path / "file").read_text())
    assert ["file", "other", "pipe"] == sorted(path.name for path in tmp_path.iterdir())


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """Root could replace a device: a page written to `/dev/null` must not remove it for everyone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_named(pipe, "a page")
        assert b"a page" == os.read(reader, 100)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert [pipe] == list(tmp_path.iterdir())
    finally:
        os.close(reader)


def test_a_pipe_that_nothing_reads_from_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device or address"):
        write_named(tmp_path / "pipe", "a page")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse a pipe without a writer at once."""
    monkeypatch.setattr(files, "WRITER_WAIT_S", 0.0)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.mkdir(), "it is a folder"),
        (_socket, "it is a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a device"),
        (_pipe, "no program writes to this pipe"),
        (lambda path: None, "No such file"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (lambda path: path.write_bytes(b"x" * 1001), "larger than 1,000 bytes"),
        (lambda path: path.symlink_to("/proc/self/maps"), "larger than 1,000 bytes"),
    ],
)
def test_another_kind_of_file_or_a_larger_one_is_refused(
    tmp_path: Path, make: Callable[[Path], object], reason: str, impatient: None
) -> None:
    make(tmp_path / "file")
    with pytest.raises(TollbarError, match=reason) as raised:
        read_bytes(tmp_path / "file", 1000)
    assert (str(tmp_path / "file"), True) == (raised.value.where, bool(raised.value.hint))


def test_a_pipe_is_read_until_its_writer_closes_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    content = b"x" * 300_000
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    assert content == read_bytes(tmp_path / "pipe", len(content))
    writer.join()


def test_a_pipe_of_a_shell_is_read_also_where_its_writer_is_slow_or_silent(impatient: None) -> None:
    for command, expected in (("sleep 0.3; echo text", b"text\n"), ("true", b"")):
        with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert expected == read_bytes(Path(f"/dev/fd/{writer.stdout.fileno()}"), 100)


def test_an_endless_pipe_is_read_up_to_the_limit() -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        with pytest.raises(TollbarError, match="larger than 1 MiB"):
            read_bytes(Path(f"/dev/fd/{writer.stdout.fileno()}"), 1024 * 1024)


def test_a_pipe_may_be_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TollbarError, match="it must be a regular file"):
        read_bytes(tmp_path / "pipe", pipes=False)


def test_text_has_neither_a_byte_order_mark_nor_line_ends_of_windows(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert "one\ntwo\n" == read_text(tmp_path / "file")


def test_text_in_another_encoding_is_refused_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes("ab\u00e9".encode("latin-1"))
    with pytest.raises(TollbarError, match="byte 2 is not UTF-8"):
        read_text(tmp_path / "file")


ANOTHER = 4242


REPLACEABLE = {
    # Owner, group, mode, link.
    "own": (0, 0, 0o755, False),
    "another user's": (ANOTHER, ANOTHER, 0o755, True),
    "open to all": (0, 0, 0o777, True),
    "open to root's group": (0, 0, 0o775, False),
    "open to a group of others": (0, ANOTHER, 0o775, True),
    "open to all, who keep their own": (0, 0, 0o1777, False),
}


@pytest.fixture
def below_tmp() -> Iterator[Path]:
    if os.geteuid() != 0:
        lacking("only root gives folders to others")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("name", REPLACEABLE)
def test_a_folder_in_which_others_may_replace_files_is_told(below_tmp: Path, name: str) -> None:
    owner, group, mode, is_replaceable = REPLACEABLE[name]
    (below_tmp / "folder").mkdir()
    (below_tmp / "own").mkdir()
    (below_tmp / "folder" / "link").symlink_to(below_tmp / "own")
    os.chown(below_tmp / "folder", owner, group)
    (below_tmp / "folder").chmod(mode)
    for path in ("folder", "folder/below/it", "folder/link"):
        assert is_replaceable == files.is_replaceable(below_tmp / path), path
    assert not files.is_replaceable(below_tmp / "own")


def test_root_keeps_nothing_in_another_user_s_home(below_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `sudo -E` the home is another user's, who may link to a folder of root's."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(below_tmp))
    assert below_tmp / ".cache" / "tollbar" == files.cache_folder()
    os.chown(below_tmp, ANOTHER, ANOTHER)
    assert files.SYSTEM_CACHE == files.cache_folder()


def test_root_s_runs_are_in_no_folder_of_another_user_s(below_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user could replace a run's folder, from which root would then load libraries."""
    monkeypatch.setattr(tempfile, "tempdir", str(below_tmp))
    assert str(below_tmp) == sandbox.folder_for_all()
    assert below_tmp in leftovers._folders()
    os.chown(below_tmp, ANOTHER, ANOTHER)
    assert "/tmp" == sandbox.folder_for_all()
    assert below_tmp not in leftovers._folders()


@pytest.mark.parametrize("name", ["a b", "a:b", "a;{}", "a'\"b", "a\nb", "a$b", "a#%b", "a\\b", "\udcff", "é"])
def test_runs_are_in_no_folder_that_a_server_s_configuration_cannot_name(
    below_tmp: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (folder := below_tmp / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert "/tmp" == sandbox.folder_for_all()
    # If there is no other, an answer of the server is better than none.
    monkeypatch.setattr(leftovers, "USUAL", ())
    assert str(folder) == sandbox.folder_for_all()
