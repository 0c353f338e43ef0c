"""A node's run as it is at home: what comes from the node is checked, written whole, and never run."""

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
from tollbar.decide.compare.reading import shown
from tollbar.results.directory import MOST_BYTES, MOST_FILES, MOST_OTHERWISE, MOST_TEXTS

# As `results.create` names one: a study is called by its file, whatever that is called.
_RUN = re.compile(r"\d{4}-\d\d-\d\d-\d{6}-[^/]{1,200}")
_FILE = re.compile(r"run\.json|judged\.json|studies/[^/]{1,200}\.toml|families/[^/]{1,200}/family\.toml")


@dataclass(slots=True)
class Home:
    """The place at home of what one node measures."""

    folder: Path
    run: str | None = None
    """The run's directory in it, once there is one."""

    @property
    def directory(self) -> Path | None:
        """The run's directory."""
        return self.folder / self.run if self.run else None

    @property
    def whole(self) -> Path | None:
        """The same, once it is a run that can be read."""
        directory = self.directory
        return directory if directory is not None and is_file(directory / "run.json") else None

    def known(self) -> tuple[dict[str, str], list[str]]:
        """The digests of what is here: of files by their names, and of the blocks of the results."""
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
        """All of the run, to be sent to a node."""
        assert self.directory is not None
        paths = [*_files(self.directory), self.directory / RESULTS]
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in paths}

    def begin(self, name: str) -> None:
        """From now on this is its run. Raises TollbarError for a name that no run has, and for another run."""
        if not _is_plain(name, _RUN) or self.run not in (None, name):
            raise TollbarError(f"sends a run that is not the one it began: {shown(name)}")
        self.run = name

    def give_up(self) -> None:
        """Of a run of which nothing whole came home, and that its node lost: the next has its place."""
        if self.directory is not None and _is_plain(self.directory.name, _RUN):
            shutil.rmtree(self.directory, ignore_errors=True)
        self.run = None

    def take(self, reply: object) -> None:
        """Writes what has changed, each file whole. Raises TollbarError for what no run has, and OSError."""
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
        """Raises TollbarError for a file that no run has, and where the run would have more than any."""
        assert self.directory is not None
        sizes = {str(path.relative_to(self.directory)): path.stat().st_size for path in _files(self.directory)}
        for file, content in files.items():
            if not _is_plain(file, _FILE) or ".." in file.split("/"):
                raise TollbarError(f"sends a file that no run has: {shown(file)}")
            if len(content) > MOST_BYTES.get(file, MOST_OTHERWISE):
                raise TollbarError(f"sends a file that is larger than any run has: {shown(file)}")
            sizes[file] = len(content)
        # It may send others each time.
        if len(sizes) > MOST_FILES:
            raise TollbarError(f"sends {len(sizes)} files, where a run has at most {MOST_FILES}")
        # Files of their own limit are apart.
        texts = sum(size for file, size in sizes.items() if file not in MOST_BYTES)
        if texts > MOST_TEXTS:
            raise TollbarError(f"sends {texts} bytes of studies and families, which no run has")

    def _take_results(self, path: Path, coming: replies.Results) -> None:
        before = path.stat().st_size if path.exists() else 0
        # No room is made for what it only says.
        if coming.length > (there := before + sum(map(len, coming.blocks.values()))):
            raise TollbarError(f"sends results of {coming.length} bytes, of which {there} are here or sent")
        if not all(0 <= at * BLOCK_BYTES < coming.length for at in coming.blocks):
            raise TollbarError("sends a part of the results that is not within them")
        _write(path, self._merged(path, coming))
        # The log of another copy is none of this one.
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    def _merged(self, path: Path, coming: replies.Results) -> Iterator[bytes]:
        """The blocks of the results, one at a time: they may be larger than memory. Raises TollbarError."""
        together = hashlib.sha256()
        with open(path, "rb") if path.exists() else BytesIO() as before:
            for start in range(0, coming.length, BLOCK_BYTES):
                before.seek(start)
                size = min(BLOCK_BYTES, coming.length - start)
                block = coming.blocks.get(start // BLOCK_BYTES)
                block = before.read(size) if block is None else block
                if len(block) != size:
                    raise TollbarError("sends a part of the results that is not within them")
                together.update(block)
                yield block
        if together.hexdigest() != coming.digest:
            raise TollbarError("sends results that are not what it says they are")


def _is_plain(name: str, form: re.Pattern[str]) -> bool:
    """Whether this is a name of the form that a file system takes."""
    parts = name.split("/")
    return name.isprintable() and form.fullmatch(name) is not None and all(len(one.encode()) <= 255 for one in parts)


def _with_looks(path: Path, said: bytes) -> bytes:
    """What a node says of its run, with the looks that were noted of it here: each has its price, wherever it was.

    Raises TollbarError for what no run says.
    """
    try:
        before = json.loads(path.read_bytes())["studies"] if path.exists() else {}
        coming = json.loads(said)
        for name, entry in before.items():
            there = coming["studies"][name]
            # By what they are: compared one with another, as many as a file may have take hours.
            noted = {
                (int(look["trials"]), int(look["blocks"])): look
                for look in [*entry["interim_looks"], *there["interim_looks"]]
            }
            there["interim_looks"] = [noted[key] for key in sorted(noted)]
        merged = json.dumps(coming, indent=1).encode() + b"\n" if before else said
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise TollbarError("sends a run.json that no run has") from error
    if len(merged) > MOST_BYTES["run.json"]:
        raise TollbarError("sends a run.json that is larger than any run has, with the looks that were noted here")
    return merged


def _files(directory: Path) -> list[Path]:
    return [path for pattern in SAID for path in sorted(directory.glob(pattern))]


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    """Writes a file whole, or not at all where the pieces end with an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.coming")
    # Made anew: never a link, or a file with another name, that was laid there.
    beside.unlink(missing_ok=True)
    try:
        with open(beside, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
