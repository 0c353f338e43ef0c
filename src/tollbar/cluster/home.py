"""Copy of a node's run at home: data from the node are checked, written whole, and never run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tollbar.cluster import replies
from tollbar.cluster.node import BLOCK_BYTES, RESULTS, SAID, digest
from tollbar.core.errors import TollbarError
from tollbar.core.files import is_file
from tollbar.decide.compare.found_runs import shown
from tollbar.results.directory import MOST_BYTES, MOST_FILES, MOST_OTHERWISE, MOST_TEXTS

# Name of a run by `results.create`: it contains the name of a study's file, which may be anything.
_RUN = re.compile(r"\d{4}-\d\d-\d\d-\d{6}-[^/]{1,200}")
_FILE = re.compile(r"run\.json|judged\.json|studies/[^/]{1,200}\.toml|families/[^/]{1,200}/family\.toml")


@dataclass(slots=True)
class Home:
    """Copy at home of the run of one node."""

    folder: Path
    run: str | None = None
    """The run's directory in it, once there is one."""

    @property
    def directory(self) -> Path | None:
        """Return the run's directory."""
        return self.folder / self.run if self.run else None

    @property
    def whole(self) -> Path | None:
        """Return the run's directory, once it can be read as a run."""
        directory = self.directory
        return directory if directory is not None and is_file(directory / "run.json") else None

    def known(self) -> tuple[dict[str, str], list[str]]:
        """Return the digests of the copy: of files by their names, and of the blocks of the results."""
        directory = self.directory
        if directory is None:
            return {}, []
        files = {str(path.relative_to(directory)): digest(path.read_bytes()) for path in _files(directory)}
        blocks = []
        if (directory / RESULTS).exists():
            with open(directory / RESULTS, "rb") as file:
                while block := file.read(BLOCK_BYTES):
                    blocks.append(digest(block))
        return files, blocks

    def content(self) -> dict[str, bytes]:
        """Return all files of the run, to be sent to a node."""
        assert self.directory is not None
        paths = [*_files(self.directory), self.directory / RESULTS]
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in paths}

    def begin(self, name: str) -> None:
        """Set the node's run.

        Raises TollbarError for a name that no run has, and for another run.
        """
        if not _is_plain(name, _RUN) or self.run not in (None, name):
            raise TollbarError(f"sent another run than the one it began: {shown(name)}")
        self.run = name

    def give_up(self) -> None:
        """Remove a run that the node lost before a whole copy came home, so that the next has its place."""
        if self.directory is not None and _is_plain(self.directory.name, _RUN):
            shutil.rmtree(self.directory, ignore_errors=True)
        self.run = None

    def take(self, reply: object) -> None:
        """Write the changed files, each whole.

        Raises TollbarError for content that no run has, and OSError.
        """
        if reply == {}:
            return
        changed = replies.read(replies.CHANGED, reply)
        self.begin(changed.run)
        directory = self.directory
        assert directory is not None
        files = dict(changed.files)
        self._refuse_files(files)
        directory.mkdir(parents=True, exist_ok=True)
        # A directory is a run once it has its `run.json`.
        last = files.pop("run.json", None)
        for file, content in files.items():
            _write(directory / file, [content])
        self._take_results(directory / RESULTS, changed.results)
        if last is not None:
            _write(directory / "run.json", [_with_looks(directory / "run.json", last)])

    def _refuse_files(self, files: Mapping[str, bytes]) -> None:
        """Raise TollbarError for a file that no run has, and where the run would have more than any."""
        assert self.directory is not None
        sizes = {str(path.relative_to(self.directory)): path.stat().st_size for path in _files(self.directory)}
        for file, content in files.items():
            if not _is_plain(file, _FILE) or ".." in file.split("/"):
                raise TollbarError(f"sent a file that is not part of a run: {shown(file)}")
            if len(content) > MOST_BYTES.get(file, MOST_OTHERWISE):
                raise TollbarError(f"sent a file above the size limit of a run: {shown(file)}")
            sizes[file] = len(content)
        # A node may send other files each time, so their total is limited.
        if len(sizes) > MOST_FILES:
            raise TollbarError(f"sent {len(sizes)} files; the limit of a run is {MOST_FILES}")
        # Files of their own limit are apart.
        texts = sum(size for file, size in sizes.items() if file not in MOST_BYTES)
        if texts > MOST_TEXTS:
            raise TollbarError(f"sent {texts} bytes of studies and families; the limit of a run is {MOST_TEXTS}")

    def _take_results(self, path: Path, coming: replies.Results) -> None:
        before = path.stat().st_size if path.exists() else 0
        # The length that the node reports allocates nothing by itself.
        if coming.length > (there := before + sum(map(len, coming.blocks.values()))):
            raise TollbarError(f"sent an incomplete copy of its results: {there} of {coming.length} bytes")
        if not all(0 <= at * BLOCK_BYTES < coming.length for at in coming.blocks):
            raise TollbarError("sent a part that is outside of its results")
        _write(path, self._merged(path, coming))
        # The log of another copy does not belong to this one.
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    def _merged(self, path: Path, coming: replies.Results) -> Iterator[bytes]:
        """Yield the blocks of the results, one at a time: they may be larger than memory.

        Raises TollbarError.
        """
        together = hashlib.sha256()
        with open(path, "rb") if path.exists() else BytesIO() as before:
            for start in range(0, coming.length, BLOCK_BYTES):
                before.seek(start)
                size = min(BLOCK_BYTES, coming.length - start)
                block = coming.blocks.get(start // BLOCK_BYTES)
                block = before.read(size) if block is None else block
                if len(block) != size:
                    raise TollbarError("sent a part that is outside of its results")
                together.update(block)
                yield block
        if together.hexdigest() != coming.digest:
            raise TollbarError("sent results that do not match their digest")


def _is_plain(name: str, form: re.Pattern[str]) -> bool:
    """Return true if a name has this form and a file system accepts it."""
    parts = name.split("/")
    return name.isprintable() and form.fullmatch(name) is not None and all(len(one.encode()) <= 255 for one in parts)


def _with_looks(path: Path, said: bytes) -> bytes:
    """Return a node's `run.json` with the looks noted here: each look costs confidence, wherever it was.

    Raises TollbarError for content that no run has.
    """
    try:
        before = json.loads(path.read_bytes())["studies"] if path.exists() else {}
        coming = json.loads(said)
        for name, entry in before.items():
            there = coming["studies"][name]
            # Sets are used because comparing each pair would take hours at a file's largest number of looks.
            noted = {
                (int(look["trials"]), int(look["blocks"])): look
                for look in [*entry["interim_looks"], *there["interim_looks"]]
            }
            there["interim_looks"] = [noted[key] for key in sorted(noted)]
        merged = json.dumps(coming, indent=1).encode() + b"\n" if before else said
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise TollbarError("sent a run.json that is not one of a run") from error
    if len(merged) > MOST_BYTES["run.json"]:
        raise TollbarError("sent a run.json that is too large with the looks that were recorded here")
    return merged


def _files(directory: Path) -> list[Path]:
    return [path for pattern in SAID for path in sorted(directory.glob(pattern))]


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file whole, or not at all if the pieces end with an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name of a file may be as long as a name can be.
    coming = path.with_name(".coming")
    # The file is created again, because a link or a file with another name may have been put there.
    coming.unlink(missing_ok=True)
    try:
        with open(coming, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(coming, path)
    finally:
        coming.unlink(missing_ok=True)
