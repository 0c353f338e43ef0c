"""A kill: a run that is begun, struck, checked and resumed."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.ground import NOTHING, RUN_LIMIT_S, Ground, spaces, trials_of
from bench.survival.kinds import EXACTLY, study_of
from bench.survival.looking import (
    Uninterrupted,
    answers,
    committed_in,
    committed_in_mounts,
    files_beside,
    resumed,
    tolls_of,
)
from bench.survival.means import MEANS, NO_MEMORY, TOLD, Kill, entered

SHIM = Path(__file__).with_name("shim.c")
# The lab's line after the proofs, before the first batch.
MEASURES = "\n  measure "
# Part of a traceback that comes from the command itself.
IN_MAIN = "in main\n"
# Share of kills struck after the first batch began.
WHILE_MEASURING = 0.75
# Polling interval: a run is noticed within this time.
POLL_S = 0.005


class Survivors:
    """Ground, with the results of quiet runs of each kind on it."""

    def __init__(self, ground: Ground, suspended_s: float) -> None:
        self.ground = ground
        self.suspended_s = suspended_s
        self._uninterrupted: dict[str, Uninterrupted] = {}
        self._shim: Path | None = None

    def uninterrupted(self, kind: str) -> Uninterrupted:
        """Return the results of a quiet run, measured once, after a run that prepares the cache.

        Raises RuntimeError if it cannot be run.
        """
        if kind not in self._uninterrupted:
            study = self.ground.folder / f"{kind.replace(' ', '-')}.toml"
            study.write_text(study_of(kind))
            kept = -1
            # The first run fills the cache.
            while kept != (kept := _entries(self.ground.cache)):
                began = time.monotonic()
                run = self.ground.start(study, *EXACTLY)
                self._wait_until_measuring(run)
                starting_s = time.monotonic() - began
                if run.wait(RUN_LIMIT_S) != 0:
                    raise RuntimeError(f"{kind}: {self.ground.output()}")
                measuring_s = time.monotonic() - began - starting_s
                trials = trials_of(self.ground.runs[-1])
                found = Uninterrupted(study, starting_s, measuring_s, len(trials), tolls_of(self.ground))
                shutil.rmtree(self.ground.folder / "runs")
            if (left := self.ground.left()) != NOTHING:
                raise RuntimeError(f"{kind}: a quiet run leaves {left}")
            if not found.tolls or any(toll["low"] is None for toll in found.tolls.values()):
                raise RuntimeError(f"{kind}: a quiet run has no interval to compare with")
            if faults := {trial.reason for trial in trials if trial.outcome != "ok"}:
                raise RuntimeError(f"{kind}: trials of a quiet run fail: {faults}")
            self._uninterrupted[kind] = found
        return self._uninterrupted[kind]

    def kill(self, kind: str, name: str, seed: int) -> dict[str, Any]:
        """Strike a run once, and return the outcome; `wrong` names all faults."""
        ground, means, chance = self.ground, MEANS[name], random.Random(seed)
        reference = self.uninterrupted(kind)
        # The kernel may have given the numbers of earlier runs' resources to other programs.
        for noted in (ground.ports, ground.memory, ground.spaces):
            noted.clear()
        is_measuring, share = chance.random() < WHILE_MEASURING, chance.random()
        after_s = share * (reference.measuring_s if is_measuring else reference.starting_s)
        began = time.monotonic()
        wrong: list[str] = []
        with self._prepared(means.needs) as place:
            run = ground.start(
                reference.study, *EXACTLY, before=place.before, environment=place.environment, stdin=place.stdin
            )
            kill = Kill(ground, chance, run, self.suspended_s, holder=place.holder, terminal=place.terminal)
            if place.stdin is not None:
                os.close(place.stdin)
            if is_measuring:
                self._wait_until_measuring(run)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(after_s)
            struck_s = time.monotonic() - began
            programs = len(ground.under_way(run))
            # The bench itself made them, and after their end the numbers may be another program's.
            ground.spaces -= spaces(place.holder)
            runs = Path(f"/proc/{place.holder}/root{ground.folder}/runs") if place.holder else ground.folder / "runs"
            committed = committed_in_mounts(ground, run, runs) if place.holder else committed_in(runs)
            late = run.poll() is not None
            struck_at = time.monotonic()
            try:
                means.strike(kill)
            except subprocess.TimeoutExpired:
                wrong.append(f"what it was struck by went on for {RUN_LIMIT_S} s")
            try:
                status = run.wait(RUN_LIMIT_S)
            except subprocess.TimeoutExpired:
                run.kill()
                status = run.wait()
                wrong.append(f"the run went on for {RUN_LIMIT_S} s")
            lived_s = time.monotonic() - struck_at
            kill.close_terminal()
            said = ground.output()
            if means.needs == "shim":
                kill.note["asked"] = kill.asked()
            if place.holder and runs.exists():
                # A place with room and write permission.
                shutil.copytree(runs, ground.folder / "elsewhere")
                kill.moved = lambda run: ground.folder / "elsewhere" / run.name
        if status not in means.statuses or (status == -signal.SIGABRT and NO_MEMORY not in said):
            wrong.append(f"status {status}")
        if means.was_lost(late, status, lived_s):
            wrong.append(f"it went on for {lived_s:.1f} s after it was asked to end, to its own end")
        # Before `main`, Python itself is interrupted or runs short while it loads its modules.
        if "Traceback" in said and IN_MAIN in said:
            wrong.append(f"a traceback: {said[-600:]}")
        # A run that was done before it was struck has nothing to write.
        if kill.note.get("refused") not in (None, 2, *([0] if late else [])):
            wrong.append(f"where nothing may be written it ended with status {kill.note['refused']}")
        if not means.is_swept and (left := ground.left()) != NOTHING:
            wrong.append(f"left: { {what: value for what, value in left.items() if value} }")
        try:
            for one in resumed(kill, reference, committed):
                wrong.append(one)
            wrong += self._apart(kill, kind, reference)
            if means.is_swept and (left := ground.left()) != NOTHING:
                wrong.append(f"left by both runs: { {what: value for what, value in left.items() if value} }")
        except subprocess.TimeoutExpired:
            wrong.append(f"the resumed run went on for {RUN_LIMIT_S} s")
        if wrong:
            # Leftovers must not count for the next kill.
            self.clear()
        self._clear_runs()
        if beside := files_beside(ground):
            wrong.append(f"files outside the run: {beside}")
        return {
            "seed": seed, "kind": kind, "means": name, "while": "measuring" if is_measuring else "starting",
            "after_s": round(after_s, 3), "struck_s": round(struck_s, 3), "late": late,
            "struck": means.has_struck(kill, status), "processes": programs,
            "committed": len(committed), "status": status, **kill.note, "took_s": round(time.monotonic() - began, 1),
            "said": said.strip().splitlines()[-1:], "wrong": wrong,
        }  # fmt: skip

    def _apart(self, kill: Kill, kind: str, reference: Uninterrupted) -> list[str]:
        """Return answers that differ from a quiet run's: from the first one, and from one made now."""
        tolls, harmed = tolls_of(self.ground), "harmed" in kill.note
        found, apart = answers(tolls, reference, harmed=harmed)
        if apart:
            # The machine may have changed since, and one run of four blocks differs from others by chance.
            kill.note["apart"] = apart
            self._clear_runs()
            del self._uninterrupted[kind]
            try:
                found, apart = answers(tolls, self.uninterrupted(kind), harmed=harmed)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                # The differences then count.
                kill.note["not_compared_anew"] = str(error)[-300:]
        kill.note["answers"] = dict(found)
        return apart

    def clear(self) -> None:
        """End and remove everything that a useless attempt has left."""
        for pid in self.ground.descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.ground.left()
        self._clear_runs()
        for path in self.ground.temporary.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _clear_runs(self) -> None:
        for folder in ("runs", "elsewhere"):
            shutil.rmtree(self.ground.folder / folder, ignore_errors=True)

    def _wait_until_measuring(self, run: subprocess.Popen[bytes]) -> None:
        """Wait until the first batch or the end of the run.

        Raises subprocess.TimeoutExpired.
        """
        deadline = time.monotonic() + RUN_LIMIT_S
        while run.poll() is None and MEASURES not in self.ground.output():
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(run.args, RUN_LIMIT_S)
            time.sleep(POLL_S)

    @contextlib.contextmanager
    def _prepared(self, needs: str) -> Iterator[Place]:
        """Yield the place in which the command is run."""
        folder = self.ground.folder
        match needs:
            case "terminal":
                terminal, stdin = os.openpty()
                # A bench started with `nohup` would have it ignore this signal.
                hears = ["env", "--default-signal=HUP"]
                yield Place(["setsid", "--ctty", *hears], {}, stdin=stdin, terminal=terminal)
            case "shim":
                (folder / "told").write_bytes(bytes(2 * 8 * TOLD))
                yield Place([], {"LD_PRELOAD": str(self._compiled()), "SURVIVE_TOLD": str(folder / "told")})
            case "mounts":
                (folder / "runs").mkdir()
                held = f"mount -t tmpfs -o size=64m none {folder}/runs && echo held && exec sleep 600"
                holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", held], stdout=subprocess.PIPE)
                assert holder.stdout is not None
                assert holder.stdout.readline() == b"held\n", "no file system can be mounted here"
                children, self.ground.children = self.ground.children, self.ground.children | {holder.pid}
                try:
                    yield Place(entered(holder.pid, folder), {}, holder=holder.pid)
                finally:
                    holder.kill()
                    holder.wait()
                    holder.stdout.close()
                    self.ground.children = children
                    (folder / "runs").rmdir()
            case _:
                yield Place([], {})

    def _compiled(self) -> Path:
        if self._shim is None:
            self._shim = self.ground.folder / "shim.so"
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self._shim, SHIM], check=True)
        return self._shim


def _entries(folder: Path) -> int:
    """Return the number of files and folders, some of which other users of the cache may make and remove meanwhile."""
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


class Place(NamedTuple):
    """Place where a run is begun: words before its command, environment, terminal, and holder of its mounts."""

    before: list[str]
    environment: dict[str, str]
    stdin: int | None = None
    terminal: int | None = None
    holder: int = 0
