"""Files of a run's directory: the entries that may be there, and their largest sizes.

A run may come from a stranger. `check_files` checks every entry before any of them is opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tollbar.core import units
from tollbar.core.errors import TollbarError

JUDGED = "judged.json"
"""File that keeps the judgement of a run."""

LOCK = ".lock"
RESULTS = "results.sqlite"
_FOLDERS = ("studies", "families")
JOURNAL = f"{RESULTS}-journal"
RESULTS_FILES = (RESULTS, f"{RESULTS}-wal", JOURNAL)
"""Database of a run, and the files next to it that SQLite needs after a run was ended by force."""
# SQLite writes to these in place, to the last one also when it only reads.
_WRITTEN_IN_PLACE = (*RESULTS_FILES, f"{RESULTS}-shm")

# Many times the sizes of the largest run, and of its results more than twice: a digest of 4 GiB took 7 s.
MOST_BYTES = {"run.json": 1 << 20, JUDGED: 8 << 20, **dict.fromkeys(RESULTS_FILES, 256 << 20)}
MOST_OTHERWISE = 4 << 20
MOST_FILES = 2_000
MOST_TEXTS = 2 << 20
"""Limit of the studies and families of a run together: five times all that ship, and read in 3 s."""
# End of a journal that names a file: SQLite removes the named file, wherever it is, after it has read the journal. See
# "Super-Journal" in the file format of SQLite. A run has one database, and its journals name no file.
_NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")


def open_file(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file of a run and return its descriptor: never through a link, and without waiting for a pipe.

    Raises OSError, for anything but a regular file too.
    """
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def read_text(path: Path) -> str:
    """Return the text of a file of a run. Raises OSError and UnicodeDecodeError."""
    most = MOST_BYTES.get(path.name, MOST_OTHERWISE)
    with os.fdopen(open_file(path), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {units.show_bytes(most)}, the limit", str(path))
    return content.decode("utf-8")


def check_files(directory: Path) -> None:
    """Raise TollbarError for an entry that is not an ordinary file of a run, before any entry is opened."""
    together, where = 0, str(directory)
    for number, path in enumerate(_entries(directory)):
        try:
            status = path.lstat()
        except FileNotFoundError:
            # Another process is writing the run.
            continue
        name = path.relative_to(directory)
        refuse_other_kinds(status, str(name), where)
        most = MOST_BYTES.get(str(name), None if path.parent == directory else MOST_OTHERWISE)
        if most is not None and stat.S_ISREG(status.st_mode) and status.st_size > most:
            raise TollbarError(
                f"`{name}` has {units.show_bytes(status.st_size)}; the limit is {units.show_bytes(most)}", where=where
            )
        if str(name) in _WRITTEN_IN_PLACE:
            _refuse_shared(status, str(name), where)
        if str(name) == JOURNAL and _names_a_file(path):
            raise TollbarError(
                f"`{name}` must not name another file, because SQLite would remove that one", where=where
            )
        if path.parent != directory and stat.S_ISREG(status.st_mode):
            together += status.st_size
        if together > MOST_TEXTS:
            limit = units.show_bytes(MOST_TEXTS)
            what = f"its studies and families have {units.show_bytes(together)}; the limit is {limit}"
            raise TollbarError(what, where=where)
        if number >= MOST_FILES:
            raise TollbarError(f"has more than {MOST_FILES:,} files, the limit of a run", where=where)


def refuse_other_kinds(status: os.stat_result, name: str, where: str) -> None:
    """Raise TollbarError for an entry that is neither a file nor a folder."""
    if stat.S_ISLNK(status.st_mode):
        raise TollbarError(f"`{name}` is a symbolic link; it must be a file or a folder", where=where)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise TollbarError(f"`{name}` must be a file or a folder", where=where)


def _refuse_shared(status: os.stat_result, name: str, where: str) -> None:
    """Raise TollbarError for a folder in the place of a file of SQLite, and for a file that has two names."""
    if not stat.S_ISREG(status.st_mode):
        raise TollbarError(f"`{name}` is a folder; it must be a file", where=where)
    if status.st_nlink > 1:
        what = f"`{name}` has another name as well (a hard link), and a file elsewhere would change with it"
        hint = "copy the run, for example with `cp -r`, and give the copy"
        raise TollbarError(f"{what}; it must have one name", where=where, hint=hint)


def _names_a_file(journal: Path) -> bool:
    with suppress(FileNotFoundError), os.fdopen(open_file(journal), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - len(_NAMES_A_FILE)))
        return file.read() == _NAMES_A_FILE
    return False


def _entries(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the entries of a run's directory, of `studies` and `families` in it, and of the folders in those."""
    # Another process may be writing the run.
    with suppress(FileNotFoundError), os.scandir(folder) as inside:
        for entry in inside:
            yield folder / entry.name
            if (depth == 1 or (depth == 0 and entry.name in _FOLDERS)) and entry.is_dir(follow_symlinks=False):
                yield from _entries(folder / entry.name, depth + 1)
