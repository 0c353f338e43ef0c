"""A node's run as it is at home: what comes from the node is checked, written whole, and never run."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tollbar.errors import TollbarError
from tollbar.fleet.node import BLOCK_BYTES, RESULTS, SAID, digest
from tollbar.gathering.reading import shown
from tollbar.results.directory import MOST_BYTES, MOST_FILES, MOST_OTHERWISE

# As `results.create` names one: a study is called by its file, whatever that is called.
_RUN = re.compile(r"\d{4}-\d\d-\d\d-\d{6}-[^/]{1,200}")
_FILE = re.compile(r"run\.json|studies/[^/]{1,200}\.toml|families/[^/]{1,200}/family\.toml")


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
        return directory if directory is not None and (directory / "run.json").exists() else None

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

    def begin(self, name: object) -> None:
        """From now on this is its run. Raises TollbarError for a name that no run has, and for another run."""
        if not isinstance(name, str) or not _is_plain(name, _RUN) or self.run not in (None, name):
            raise TollbarError(f"sends a run that is not the one it began: {shown(name)}")
        self.run = name

    def give_up(self) -> None:
        """Of a run of which nothing whole came home, and that its node lost: the next has its place."""
        if self.directory is not None and _is_plain(self.directory.name, _RUN):
            shutil.rmtree(self.directory, ignore_errors=True)
        self.run = None

    def take(self, changed: Mapping[str, Any]) -> None:
        """Writes what has changed, each file whole. Raises TollbarError for what no run has, and OSError."""
        if not changed:
            return
        files, results = dict(changed["files"]), changed["results"]
        self.begin(changed["run"])
        directory = self.directory
        assert directory is not None
        if len(files) > MOST_FILES:
            raise TollbarError(f"sends {len(files)} files, where a run has at most {MOST_FILES}")
        for file, content in files.items():
            if not isinstance(file, str) or not _is_plain(file, _FILE) or ".." in file.split("/"):
                raise TollbarError(f"sends a file that no run has: {shown(file)}")
            if not isinstance(content, bytes) or len(content) > MOST_BYTES.get(file, MOST_OTHERWISE):
                raise TollbarError(f"sends a file that is larger than any run has: {shown(file)}")
        directory.mkdir(parents=True, exist_ok=True)
        # A directory is a run once it has its `run.json`.
        last = files.pop("run.json", None)
        for file, content in files.items():
            _write(directory / file, content)
        self._take_results(directory / RESULTS, results)
        if last is not None:
            _write(directory / "run.json", _with_looks(directory / "run.json", last))

    def _take_results(self, path: Path, results: Mapping[str, Any]) -> None:
        length, blocks = int(results["bytes"]), dict(results["blocks"])
        if not 0 <= length <= MOST_BYTES[RESULTS]:
            raise TollbarError(f"sends results of {length} bytes, which no run has")
        before = path.read_bytes() if path.exists() else b""
        # No room is made for what it only says.
        if length > (there := len(before) + sum(map(len, blocks.values()))):
            raise TollbarError(f"sends results of {length} bytes, of which {there} are here or sent")
        content = bytearray(before[:length])
        content.extend(bytes(length - len(content)))
        for at, block in blocks.items():
            start = int(at) * BLOCK_BYTES
            if not 0 <= start <= length - len(block):
                raise TollbarError("sends a part of the results that is not within them")
            content[start : start + len(block)] = block
        if digest(content) != results["digest"]:
            raise TollbarError("sends results that are not what it says they are")
        _write(path, bytes(content))
        # The log of another copy is none of this one.
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _is_plain(name: str, form: re.Pattern[str]) -> bool:
    return name.isprintable() and form.fullmatch(name) is not None


def _with_looks(path: Path, said: bytes) -> bytes:
    """What a node says of its run, with the looks that were noted of it here: each has its price, wherever it was.

    Raises TollbarError for what no run says.
    """
    try:
        before = json.loads(path.read_bytes())["studies"] if path.exists() else {}
        coming = json.loads(said)
        for name, entry in before.items():
            there = coming["studies"][name]
            noted = [
                *there["interim_looks"],
                *(look for look in entry["interim_looks"] if look not in there["interim_looks"]),
            ]
            there["interim_looks"] = sorted(noted, key=lambda look: int(look["trials"]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TollbarError("sends a run.json that no run has") from error
    return json.dumps(coming, indent=1).encode() + b"\n" if before else said


def _files(directory: Path) -> list[Path]:
    return [path for pattern in SAID for path in sorted(directory.glob(pattern))]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.coming")
    # Made anew: never a link, or a file with another name, that was laid there.
    beside.unlink(missing_ok=True)
    with open(beside, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
