"""What is done on a node: `tollbar run` as an ordinary process there, and what of its run has changed.

This class is sent to the node by value, whatever Tollbar is installed there: it imports nothing of Tollbar but for what
starts the process, by when the version was compared. What is measured is that process's, by the same code as here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

BLOCK_BYTES = 64 * 1024
RESULTS = "results.sqlite"
# What a run says of itself, by the patterns of its files; what else is in its directory stays on the node.
SAID = ("studies/*.toml", "families/*/family.toml", "judged.json", "run.json")
# The end of what the run said, of which the last lines tell how it ended.
KEPT_LOG_BYTES = 4000
# The guard asks the run to end as Ctrl-C does, and kills all of it ten seconds later.
STOP_LIMIT_S = 15.0
# More than a kernel is built for (x86: 8,192).
MOST_CORES = 8192
_BATCHES = re.compile(r"^  measure    (\d+) batches", re.MULTILINE)


class NodeAgent:
    """One node's part of a fleet: at most one run at a time."""

    def __init__(self, name: str) -> None:
        """`name` is the node's in its fleet: nodes may have one user's folders in common."""
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self._core: int | None = None

    def version(self) -> str | None:
        """Of the Tollbar that is installed here; None: there is none."""
        try:
            return metadata.version("tollbar")
        except metadata.PackageNotFoundError:
            return None

    def trials(self, fleet: str, run: str | None) -> int:
        """How many trials the node itself has of a run, and -1 where it has none of it; None: whichever it began."""
        directory = self._run(fleet)
        if directory is None or (run is not None and directory.name != run):
            return -1
        return _count(directory / RESULTS, "trial")

    def receive(self, fleet: str, run: str, files: Mapping[str, bytes]) -> None:
        """Takes a run as it is at home, instead of what is here of it."""
        shutil.rmtree(self._folder(fleet) / "runs", ignore_errors=True)
        for name, content in files.items():
            path = self._folder(fleet) / "runs" / run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def begin(
        self, fleet: str, studies: Mapping[str, str], words: Sequence[str], *, resume: bool, simulated: bool
    ) -> None:
        """Starts a run, or goes on with the one that is here; `studies` are files by their names.

        `words` are the command's, but for where its run is; `simulated` is noted in the run's fingerprint.
        """
        from tollbar.core.runner import start_engine

        folder = self._folder(fleet)
        for name, text in studies.items():
            (folder / "studies").mkdir(parents=True, exist_ok=True)
            (folder / "studies" / name).write_text(text, "utf-8")
        folder.mkdir(parents=True, exist_ok=True)
        run = self._run(fleet) if resume else None
        place = ["--resume", str(run)] if run else ["--runs", str(folder / "runs")]
        command = [sys.executable, "-m", "tollbar", "run", *words, *place, "--no-report", "--json"]
        # The raylet may be kept off cores; the run is told of all that this node may use, and keeps one free itself.
        # Their numbers may have gaps, and the kernel passes over those that it does not have.
        cores = set(range(MOST_CORES))
        with suppress(OSError):
            os.sched_setaffinity(0, cores)
        with open(folder / "log", "wb") as log:
            # A session of its own: Ray ends the actor's group, and the guard itself then ends all of the run.
            self._process = start_engine(
                ["guard", "--tree", "--child-of", str(os.getpid()), "--stop", "INT", "--", *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, cwd=folder, start_new_session=True,
                env=self._environment() | ({"TOLLBAR_SIMULATED": "yes"} if simulated else {}),
            )  # fmt: skip
        # As `machine.measuring_core` has it.
        self._core = max(os.sched_getaffinity(0))
        _keep_off(self._core)

    def progress(self, fleet: str) -> dict[str, Any]:
        """How far the run is: its name, batches done and planned, its last line, and its status once it has ended."""
        if self._core is not None:
            # Ray starts threads when it wants them.
            _keep_off(self._core)
        log = self._log(fleet)
        run = self._run(fleet)
        planned = [int(number) for number in _BATCHES.findall(log)]
        status = None if self._process is None else self._process.poll()
        done = max(0, _count(run / RESULTS, "batch")) if run else 0
        return {
            "run": run.name if run else None, "status": status, "done": done,
            "planned": planned[-1] if planned else None, "said": log[-KEPT_LOG_BYTES:],
        }  # fmt: skip

    def changed(self, fleet: str, known: Mapping[str, str], blocks: Sequence[str]) -> dict[str, Any]:
        """What of the run is not at home: files whose digest is not `known`, and `blocks` of the results.

        The results are a copy of one moment, whatever is written meanwhile. `run.json` is read after them: a look
        that it notes too early makes an interval wider, and one that it lacks would make it too narrow.
        """
        directory = self._run(fleet)
        if directory is None:
            return {}
        content = _copy(directory / RESULTS)
        parts = [content[start : start + BLOCK_BYTES] for start in range(0, len(content), BLOCK_BYTES)]
        results = {
            "bytes": len(content),
            "digest": digest(content),
            "blocks": {at: part for at, part in enumerate(parts) if blocks[at : at + 1] != [digest(part)]},
        }
        files = {}
        for path in (path for pattern in SAID for path in sorted(directory.glob(pattern))):
            name = str(path.relative_to(directory))
            said = path.read_bytes()
            if known.get(name) != digest(said):
                files[name] = said
        return {"run": directory.name, "files": files, "results": results}

    def stop(self) -> None:
        """Interrupts the run, and waits for its end."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_LIMIT_S)

    def forget(self, fleet: str) -> None:
        """Removes what is here of a fleet: all of it is at home."""
        shutil.rmtree(self._folder(fleet), ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        """That of the node's user, without what Ray adds for its workers, such as the cluster's token."""
        return {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "OMP_"))}

    def _folder(self, fleet: str) -> Path:
        cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
        return (cache if cache.is_absolute() else Path.home() / ".cache") / "tollbar" / "fleet" / self._name / fleet

    def _run(self, fleet: str) -> Path | None:
        found = sorted((self._folder(fleet) / "runs").glob("*/run.json"))
        return found[-1].parent if found else None

    def _log(self, fleet: str) -> str:
        with suppress(OSError):
            return (self._folder(fleet) / "log").read_text("utf-8", errors="replace")
        return ""


def digest(content: bytes | bytearray) -> str:
    """By which a file or a block is known on both sides."""
    return hashlib.sha256(content).hexdigest()


def _opened(path: Path) -> sqlite3.Connection:
    """Open a database for reading; characters such as `#`, `?` and `%` mean something in a URI."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _copy(path: Path) -> bytes:
    """The results at one moment, as a database without a log beside it."""
    with closing(_opened(path)) as here, closing(sqlite3.connect(":memory:")) as to:
        here.backup(to)
        content = bytearray(to.serialize())
    # How the file is to be written to and read: not by a log. See "File format version numbers" of SQLite's format.
    content[18:20] = b"\x01\x01"
    return bytes(content)


def _count(path: Path, table: str) -> int:
    with suppress(sqlite3.Error), closing(_opened(path)) as database:
        (count,) = database.execute(f"select count(*) from {table}").fetchone()
        return int(count)
    return 0


def _keep_off(core: int) -> None:
    """Keeps every thread of this process off a core, unless it is the only one."""
    others = os.sched_getaffinity(0) - {core}
    for thread in os.listdir("/proc/self/task") if others else ():
        with suppress(OSError):
            os.sched_setaffinity(int(thread), others)
