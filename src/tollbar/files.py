"""Files that are there whole or not at all, and only for those they are meant for; and where folders of data are."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

SEARCH_PATH = "TOLLBAR_PATH"
"""The environment variable of folders, colons between them, that hold `families/`, `beds/` and `policies/` of the
user's own."""


def folders_with(file: str, own: Path) -> Mapping[str, Path]:
    """The folders of data that hold this file, by name, in the order of their names.

    Those beside Tollbar's `own`, and those in a folder of the same name on `TOLLBAR_PATH`, of which the first of a
    name is taken. Tollbar's own is never replaced.
    """
    return _first_of_a_name((one.parent.name, one.parent) for root in _roots(own) for one in root.glob(f"*/{file}"))


def named_files(own: Path) -> Mapping[str, Path]:
    """The TOML files of a folder of data, by their names without `.toml`; found as `folders_with` finds folders."""
    return _first_of_a_name((one.stem, one) for root in _roots(own) for one in root.glob("*.toml"))


def _roots(own: Path) -> list[Path]:
    path = os.environ.get(SEARCH_PATH, "").split(os.pathsep)
    return [own, *(Path(folder).resolve() / own.name for folder in path if folder)]


def _first_of_a_name(found: Iterable[tuple[str, Path]]) -> Mapping[str, Path]:
    first: dict[str, Path] = {}
    for name, path in found:
        first.setdefault(name, path)
    return dict(sorted(first.items()))


def cache_folder() -> Path:
    """Where what may be made again is kept for this user. Raises RuntimeError where there is no home directory."""
    kept = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification says that a relative path there is to be ignored.
    return (kept if kept.is_absolute() else Path.home() / ".cache") / "tollbar"


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that a reader finds the old one or the new one, whole and on the disk. Raises OSError.

    What is there and is no file, such as `/dev/null` or a pipe, is written to and never replaced.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, "utf-8")
        return
    # An ordinary file: who may read it is for the user's mask to say.
    with _unfinished(path, 0o666) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def write(path: Path, content: bytes, mode: int) -> None:
    """Writes a file of this mode, whatever the mask is; others see none of it before. Raises OSError."""
    with _unfinished(path, mode & 0o700) as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)


@contextmanager
def _unfinished(path: Path, mode: int) -> Iterator[IO[bytes]]:
    """A new file beside this one, in whose place it is put at the end."""
    # Opened anew and with its mode: never a file or a link that was laid there, and never a moment for others to read.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
