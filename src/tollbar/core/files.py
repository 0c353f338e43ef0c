"""Files that are written whole or not at all, with their permissions, and the folders of data."""

from __future__ import annotations

import io
import os
import secrets
import select
import shlex
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tollbar.core.errors import TollbarError
from tollbar.core.output import Output

MOST_WRITTEN_BYTES = 1024 * 1024
"""Size limit of a file that a person writes, such as a study: 20 times the largest shipped one, read in 2 s."""

WRITER_WAIT_S = 5.0
"""Time for the writer of a named pipe to open it: more than a shell needs to start a program."""

SYSTEM_CACHE = Path("/var/cache/tollbar")
"""Root's folder for data that other users must not change, or have to reach."""

_PIECE_BYTES = 1024 * 1024

SEARCH_PATH = "TOLLBAR_PATH"
"""Environment variable with the user's own folders of `families/`, `servers/` and `policies/`, separated by colons."""


def folders_with(file: str, own: Path) -> Mapping[str, Path]:
    """Return the folders of data that contain this file, by name, in alphabetical order.

    They are those next to Tollbar's `own`, and those in a folder of the same name on `TOLLBAR_PATH`. The first folder
    of a name is used; Tollbar's own is never replaced.
    """
    return _first_of_a_name((one.parent.name, one.parent) for root in _roots(own) for one in root.glob(f"*/{file}"))


def named_files(own: Path) -> Mapping[str, Path]:
    """Return the TOML files of a folder of data by their names without `.toml`, found as in `folders_with`."""
    return _first_of_a_name((one.stem, one) for root in _roots(own) for one in root.glob("*.toml"))


def _roots(own: Path) -> list[Path]:
    path = os.environ.get(SEARCH_PATH, "").split(os.pathsep)
    given = [full_path(folder) / own.name for folder in dict.fromkeys(path) if folder]
    return [own, *(folder for folder in given if is_folder(folder))]


def _first_of_a_name(found: Iterable[tuple[str, Path]]) -> Mapping[str, Path]:
    first: dict[str, Path] = {}
    for name, path in found:
        first.setdefault(name, path)
    return dict(sorted(first.items()))


def is_folder(path: Path) -> bool:
    """Return whether the folder exists.

    `Path` raises an OSError for a name that is too long, or in a folder that this user cannot enter.
    """
    return os.path.isdir(path)


def is_file(path: Path) -> bool:
    """Return whether the regular file exists; never raises, as `is_folder`."""
    return os.path.isfile(path)


def full_path(path: Path | str) -> Path:
    """Return the absolute path of a file or a folder, independent of later changes of the working directory.

    Links that lead to themselves stay in the path. If the working directory was removed, the path stays relative.
    """
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return Path(path)


def pasted(path: Path | str) -> str:
    """Return a path quoted as one word of a shell, which no command takes for an option."""
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def cache_folder() -> Path:
    """Return this user's cache folder; for root `SYSTEM_CACHE` if another user could replace the one in the home.

    For example, `sudo -E` keeps another user's home. Raises RuntimeError if there is no home directory.
    """
    kept = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification requires that relative paths are ignored.
    folder = (kept if kept.is_absolute() else Path.home() / ".cache") / "tollbar"
    return SYSTEM_CACHE if os.geteuid() == 0 and is_replaceable(folder) else folder


def is_replaceable(path: Path) -> bool:
    """Return whether a user other than root and this one could change or replace the content of this folder.

    In a folder with the sticky bit, such as /tmp, nobody can replace the files of others.
    """
    # In a user namespace, the machine's root appears as an unmapped user.
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    for place in {path.absolute(), full_path(path)}:
        for folder in (place, *place.parents):
            with suppress(FileNotFoundError):
                about = folder.stat()
                is_open = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and about.st_gid != 0)
                if about.st_uid not in trusted or (is_open and not about.st_mode & stat.S_ISVTX):
                    return True
    return False


def read_bytes(path: Path, most_bytes: int = MOST_WRITTEN_BYTES, *, pipes: bool = True) -> bytes:
    """Return the content of a file that a user names or a stranger sends, of at most `most_bytes`.

    It may be a regular file, or with `pipes` also a pipe, such as `<(command)`, which is read until its writers close
    it. A pipe that no program opens for writing within `WRITER_WAIT_S` is refused. Ctrl-C ends each wait. Raises
    TollbarError for devices, folders, sockets and larger content.
    """
    where = str(path)
    try:
        _refuse_other_kinds(path.stat().st_mode, where, pipes)
        # Without O_NONBLOCK, opening a pipe without a writer blocks for ever, even on Ctrl-C.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            # Another file may have replaced the examined one.
            mode = os.fstat(handle).st_mode
            _refuse_other_kinds(mode, where, pipes)
            pieces = _pieces_of_pipe(handle, where) if stat.S_ISFIFO(mode) else _pieces(handle)
            return _joined(pieces, most_bytes, where)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        # A path with a NUL byte raises ValueError.
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = f"`ls -l {shlex.quote(str(path.parent))}` lists the files there"
        raise TollbarError(f"cannot be read: {reason}", where=where, hint=hint) from error


def read_text(path: Path, most_bytes: int = MOST_WRITTEN_BYTES, *, pipes: bool = True) -> str:
    """Return the UTF-8 text of a file as `read_bytes` does, without a byte order mark and with plain line ends."""
    try:
        text = read_bytes(path, most_bytes, pipes=pipes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"cannot be read: byte {error.start} is not UTF-8; the file must be text in UTF-8"
        hint = f"`iconv -f UTF-16 -t UTF-8 {shlex.quote(str(path))}` converts UTF-16, for example"
        raise TollbarError(what, where=str(path), hint=hint) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse_other_kinds(mode: int, where: str, pipes: bool) -> None:
    if stat.S_ISREG(mode) or (pipes and stat.S_ISFIFO(mode)):
        return
    kind = next((name for is_kind, name in _KINDS.items() if is_kind(mode)), "of an unknown kind")
    wanted = "a regular file or a pipe" if pipes else "a regular file"
    hint = f"`stat {shlex.quote(where)}` prints its kind"
    raise TollbarError(f"cannot be read: it is {kind}; it must be {wanted}", where=where, hint=hint)


_KINDS = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def _pieces(handle: int) -> Iterator[bytes]:
    while piece := os.read(handle, _PIECE_BYTES):
        yield piece


def _pieces_of_pipe(handle: int, where: str) -> Iterator[bytes]:
    """Yield the content of a pipe that was opened without waiting for its writer."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    until = time.monotonic() + WRITER_WAIT_S
    has_writer = False
    while True:
        try:
            piece = os.read(handle, _PIECE_BYTES)
        except BlockingIOError:
            # A writer is connected but has not written yet.
            has_writer = True
            poll.poll()
            continue
        if piece:
            has_writer = True
            yield piece
        elif has_writer or poll.poll(0):
            # All writers have closed the pipe. Only poll notices one that came and went since the last read.
            return
        elif time.monotonic() < until:
            poll.poll(100)
        else:
            what = f"cannot be read: no program writes to this pipe; one must open it within {WRITER_WAIT_S:.0f} s"
            hint = "`COMMAND FILE <(WRITER)` starts the writer with the command, for example in bash"
            raise TollbarError(what, where=where, hint=hint)


def _joined(pieces: Iterable[bytes], most_bytes: int, where: str) -> bytes:
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > most_bytes:
            size = f"{most_bytes // 1024**2} MiB" if most_bytes >= 1024**2 else f"{most_bytes:,} bytes"
            hint = f"`head -c 300 {shlex.quote(where)}` shows whether it is the right file"
            raise TollbarError(f"cannot be read: it is larger than {size}, the limit", where=where, hint=hint)
    return bytes(content)


def write_atomically(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a file so that a reader finds the old or the new content, complete and on the disk. Raises OSError.

    A link or a pipe at this path is replaced, and never followed or written to.
    """
    # The user's umask decides who may read an ordinary file.
    with _unfinished(path, mode) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def write_named(path: Path, text: str) -> None:
    """Write a file as `write_atomically` does, or write to the device or pipe at this path, such as `/dev/null`.

    Devices and pipes are never replaced. Raises OSError, also for a pipe without a reader, where a plain `open` would
    wait for ever.
    """
    if path.exists() and not path.is_file():
        with io.BufferedWriter(_opened(path, os.O_WRONLY)) as device:
            device.write(text.encode())
    else:
        write_atomically(path, text)


def open_to_write(path: Path) -> IO[bytes]:
    """Open a user's file, pipe or device for new content. Raises OSError, also for a pipe without a reader."""
    return io.BufferedWriter(_opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))


def _opened(path: Path, flags: int) -> Output:
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    os.set_blocking(handle, True)
    return Output(handle, "w")


def write(path: Path, content: bytes, mode: int, owner: int | None = None) -> None:
    """Write a file with exactly this mode, regardless of the umask; others cannot read it before. Raises OSError.

    `owner` is the number of the user and of the group that get the file; None keeps the writer.
    """
    with _unfinished(path, mode & 0o700) as file:
        if owner is not None:
            os.fchown(file.fileno(), owner, owner)
        os.fchmod(file.fileno(), mode)
        file.write(content)


@contextmanager
def _unfinished(path: Path, mode: int) -> Iterator[IO[bytes]]:
    """Yield a new file in the same folder, and move it to this path at the end."""
    # O_EXCL and the mode at creation: the file was not planted by others, and they can never read it.
    # Shorter than any name that would be too long with an addition.
    temporary = path.with_name(f".tollbar-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
