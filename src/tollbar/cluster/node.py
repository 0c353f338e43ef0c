"""Agent on a node: `tollbar run` as an ordinary process there, and the changes of its run.

This class is sent to the node by value, whatever Tollbar is installed there: it imports nothing of Tollbar except to
start the process, after the versions were compared. That process measures, by the same code as here.
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
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

BLOCK_BYTES = 64 * 1024
RESULTS = "results.sqlite"
# Files of a run that are sent, by pattern; other files in its directory stay on the node.
SAID = ("studies/*.toml", "families/*/family.toml", "judged.json", "run.json")
# Bytes kept of the end of the run's output, whose last lines give the outcome.
KEPT_LOG_BYTES = 4000
# The guard asks the run to end as Ctrl-C does, and kills all of it ten seconds later.
STOP_LIMIT_S = 15.0
# More than a kernel is built for (x86: 8,192).
MOST_CORES = 8192
# Longest wait for the lock of another process, and the time between two attempts to get it.
LOCK_LIMIT_S, LOCK_POLL_S = 5.0, 0.1
_BATCHES = re.compile(r"^  measure    (\d+) batches", re.MULTILINE)


class NodeAgent:
    """Agent of one node of a fleet, with at most one run at a time."""

    def __init__(self, name: str) -> None:
        """Keep the node's name in its fleet: nodes may share one user's folders."""
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self._core: int | None = None

    def version(self) -> str | None:
        """Return the version of the Tollbar installed here; None: it is not installed."""
        try:
            return metadata.version("tollbar")
        except metadata.PackageNotFoundError:
            return None

    def trials(self, fleet: str, run: str | None) -> int:
        """Return the number of a run's trials on this node, or -1 where it has no copy; None: any run it began."""
        directory = self._run(fleet)
        if directory is None or (run is not None and directory.name != run):
            return -1
        return _count(directory / RESULTS, "trial")

    def receive(self, fleet: str, run: str, files: Mapping[str, bytes]) -> None:
        """Replace the node's copy of a run by the one from home."""
        shutil.rmtree(self._folder(fleet) / "runs", ignore_errors=True)
        for name, content in files.items():
            path = self._folder(fleet) / "runs" / run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def begin(
        self, fleet: str, studies: Mapping[str, str], words: Sequence[str], *, resume: bool, simulated: bool
    ) -> None:
        """Start a run, or resume the one that is here; `studies` are files by their names.

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
        # The raylet may be kept off cores, so the run gets all cores of the node, and keeps one free itself. The
        # numbers may have gaps, and the kernel ignores those that it does not have.
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
        # The same core as in `machine.measuring_core`.
        self._core = max(os.sched_getaffinity(0))
        _keep_off(self._core)

    def progress(self, fleet: str) -> dict[str, Any]:
        """Return the run's name, batches done and planned, last line, and its status once it has ended."""
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
        """Return the files whose digest is not `known`, and the results' blocks that differ from `blocks`.

        The results are a copy of one moment, whatever is written meanwhile. `run.json` is read after them: a look noted
        too early makes an interval wider, and a missing one would make it too narrow.
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
        """Remove the node's copy of a fleet, which is complete at home."""
        shutil.rmtree(self._folder(fleet), ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        """Return the environment of the node's user, without Ray's additions for workers, such as its token."""
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
    """Return the digest by which both sides identify a file or a block."""
    return hashlib.sha256(content).hexdigest()


def _opened(path: Path) -> sqlite3.Connection:
    """Open a database for a read that keeps its lock until it is closed. Raises sqlite3.Error.

    Ctrl-C ends the wait for the lock. Python handles no signal while SQLite itself waits.
    """
    # Characters such as `#`, `?` and `%` mean something in a URI.
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=LOCK_POLL_S)
    ends_s = time.monotonic() + LOCK_LIMIT_S
    try:
        database.execute("begin")
        while True:
            try:
                database.execute("select 1 from sqlite_master").fetchone()
                return database
            except sqlite3.OperationalError as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
                if code & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends_s:
                    raise
            time.sleep(LOCK_POLL_S)
    except BaseException:
        database.close()
        raise


def _copy(path: Path) -> bytes:
    """Return the results at one moment, as a database without a separate log."""
    with closing(_opened(path)) as here, closing(sqlite3.connect(":memory:")) as to:
        # The lock is held by now. A copy that waits for one never ends.
        here.backup(to)
        content = bytearray(to.serialize())
    # These bytes turn off the write-ahead log. See "File format version numbers" of SQLite's format.
    content[18:20] = b"\x01\x01"
    return bytes(content)


def _count(path: Path, table: str) -> int:
    with suppress(sqlite3.Error), closing(_opened(path)) as database:
        (count,) = database.execute(f"select count(*) from {table}").fetchone()
        return int(count)
    return 0


def _keep_off(core: int) -> None:
    """Keep every thread of this process off a core, unless it is the only one."""
    others = os.sched_getaffinity(0) - {core}
    for thread in os.listdir("/proc/self/task") if others else ():
        with suppress(OSError):
            os.sched_setaffinity(int(thread), others)
