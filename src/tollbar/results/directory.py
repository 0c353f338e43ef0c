"""The files of a run's directory: which may be there, and how large they may be.

A run may come from a stranger. `check_files` looks at every entry before any of them is opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tollbar import units
from tollbar.errors import TollbarError

JUDGED = "judged.json"
"""The file that keeps what was judged of a run."""

# Many times the largest run.
MOST_BYTES = {"run.json": 8 << 20, JUDGED: 128 << 20, "results.sqlite": 4 << 30, "results.sqlite-wal": 4 << 30}
MOST_OTHERWISE = 4 << 20
MOST_FILES = 10_000
# The sum of all files that are read whole.
MOST_TOGETHER = 192 << 20


def check_files(directory: Path) -> None:
    """Raises TollbarError for an entry that is no ordinary file of a run, before any of them is opened."""
    folders = [directory, directory / "studies", directory / "families"]
    together = 0
    for number, path in enumerate(_entries(folders)):
        status = path.lstat()
        name = path.relative_to(directory)
        if stat.S_ISLNK(status.st_mode):
            raise TollbarError(f"`{name}` is a symbolic link, which is not followed")
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise TollbarError(f"`{name}` is neither a file nor a folder")
        most = MOST_BYTES.get(str(name), None if path.parent == directory else MOST_OTHERWISE)
        if most is not None and stat.S_ISREG(status.st_mode) and status.st_size > most:
            raise TollbarError(f"`{name}` is larger than that of any run: {units.show_bytes(status.st_size)}")
        # The chunks in the database are read one after another; other files next to it are not read.
        if most is not None and not name.name.startswith("results.sqlite"):
            together += status.st_size
        if together > MOST_TOGETHER:
            raise TollbarError(f"its files are larger than those of any run: {units.show_bytes(together)}")
        if number >= MOST_FILES:
            raise TollbarError(f"more than {MOST_FILES:,} files")


def _entries(folders: Sequence[Path]) -> Iterator[Path]:
    """The entries of these folders, and of the folders in the last of them."""
    *_, last = folders
    for folder in folders:
        # Runs of earlier versions kept no families.
        with suppress(FileNotFoundError), os.scandir(folder) as inside:
            for entry in inside:
                yield folder / entry.name
                if folder == last and entry.is_dir(follow_symlinks=False):
                    yield from (folder / entry.name / one.name for one in os.scandir(folder / entry.name))
