"""A run's directory: made, written as each trial ends, and taken up again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from tollbar import __version__
from tollbar.errors import TollbarError
from tollbar.files import write_atomically
from tollbar.measure import Outcome, Proven, Trial
from tollbar.plan import Plan, StudyPlan
from tollbar.results.reading import SCHEMA, about

_TABLES = """
create table cell (
    study text, key text, position integer, coordinates text not null, title text not null, standing text not null,
    strength integer, against text, outcome text, reason text, known_answers integer, accepted text, refused text,
    primary key (study, key)
) without rowid;
create table trial (
    study text, cell text, twin integer, block integer, ord integer not null, started_s real not null,
    outcome text not null, reason text, operations integer, cpu_ns integer, wall_ns integer, memory_bytes integer,
    steal_ns integer, machine_load real, batches text not null, load text,
    primary key (study, cell, twin, block)
) without rowid;
create table left_out (study text, coordinates text not null, because text not null);
create table event (at_s real not null, what text not null);
"""


@dataclass(slots=True)
class Store:
    """An open run. One process at a time may write it."""

    directory: Path
    database: sqlite3.Connection
    lock: IO[bytes]

    def record(self, trial: Trial) -> None:
        """Keeps a trial. When this returns it is on the disk."""
        values = (
            trial.study, trial.cell, trial.twin, trial.block, trial.order, trial.started_s, trial.outcome, trial.reason,
            trial.operations, trial.cpu_ns, trial.wall_ns, trial.memory_bytes, trial.steal_ns,
            trial.machine_load, json.dumps(trial.batches, separators=(",", ":")),
            trial.load.model_dump_json() if trial.load else None,
        )  # fmt: skip
        with self._writing() as database:
            database.execute(f"insert into trial values ({_marks(values)})", values)
            if trial.outcome is not Outcome.OK:
                # A cell that failed once has no number: what is wrong with it may have been wrong before.
                bar = "update cell set outcome = ?, reason = ? where study = ? and key = ?"
                database.execute(bar, (trial.outcome, trial.reason, trial.study, trial.cell))

    def record_proof(self, proven: Proven) -> None:
        """Keeps whether a cell may be measured."""
        with self._writing() as database:
            database.execute(
                "update cell set outcome = ?, reason = ?, known_answers = ?, accepted = ?, refused = ? "
                "where study = ? and key = ?",
                (
                    proven.outcome, proven.reason, proven.known_answers, json.dumps(proven.accepted),
                    json.dumps(proven.refused), proven.study, proven.cell,
                ),
            )  # fmt: skip

    def event(self, what: str) -> None:
        """Notes that something happened to the run."""
        with self._writing() as database:
            database.execute("insert into event values (?, ?)", (time.time(), what))

    def done(self) -> set[tuple[str, str, bool, int]]:
        """(study, cell, twin, block) of every trial that is there."""
        rows = self.database.execute("select study, cell, twin, block from trial")
        return {(name, cell, bool(twin), block) for name, cell, twin, block in rows}

    def cells(self) -> set[tuple[str, str]]:
        """(study, cell) of every cell of the run."""
        return set(self.database.execute("select study, key from cell"))

    def unproven(self) -> set[tuple[str, str]]:
        """(study, cell) of every cell whose proof is not there yet."""
        return set(self.database.execute("select study, key from cell where outcome is null"))

    def barred(self) -> set[tuple[str, str]]:
        """(study, cell) of every cell that may not be measured."""
        return set(self.database.execute("select study, key from cell where outcome <> ?", (Outcome.OK,)))

    def next_order(self) -> int:
        """The place of the next trial in the run's sequence."""
        (last,) = self.database.execute("select max(ord) from trial").fetchone()
        return 0 if last is None else last + 1

    def close(self) -> None:
        """Lets the run go."""
        self.database.close()
        self.lock.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self.database:
                yield self.database
        except sqlite3.Error as error:
            raise TollbarError(
                f"cannot write the results: {error}",
                where=str(self.directory),
                hint="what was committed is safe; make room and go on with `tollbar run --resume`",
            ) from error


def create(
    plan: Plan,
    parent: Path,
    *,
    command: Sequence[str],
    libraries: Sequence[str],
    fingerprint: Mapping[str, Any],
) -> Store:
    """A new run under `parent`, named by time and study. Raises TollbarError before anything is measured."""
    label = plan.studies[0].study.name if len(plan.studies) == 1 else "set"
    started = datetime.now().astimezone()
    try:
        directory = _new_directory(parent, f"{started:%Y-%m-%d-%H%M%S}-{label}")
        (directory / "studies").mkdir()
        for planned in plan.studies:
            (directory / "studies" / f"{planned.study.name}.toml").write_text(planned.study.text, "utf-8")
        studies = {one.study.name: {"looks": [], "blocks": one.study.measure.blocks} for one in plan.studies}
        said = {
            "schema": SCHEMA,
            "tollbar": __version__,
            "command": list(command),
            "libraries": list(libraries),
            "seed": plan.seed,
            "started": started.isoformat(timespec="seconds"),
            "fingerprint": dict(fingerprint),
            "providers": dict(plan.receipts),
            "studies": studies,
        }
        store = _open(directory)
        with store.database as database:
            database.executescript(_TABLES)
            for planned in plan.studies:
                _insert_plan(database, planned)
        # Last: a directory is a run once it has this file, and by then it has all the rest.
        write_atomically(directory / "run.json", json.dumps(said, indent=1) + "\n")
    except (OSError, sqlite3.Error) as error:
        raise TollbarError(
            f"cannot make the run's directory: {error}",
            where=str(parent),
            hint="choose another with --runs DIRECTORY",
        ) from error
    return store


def reopen(directory: Path) -> Store:
    """A run to go on with. Raises TollbarError if it is none, or another process is writing it."""
    about(directory)
    try:
        return _open(directory)
    except (OSError, sqlite3.Error) as error:
        raise TollbarError(f"cannot open the run: {error}", where=str(directory)) from error


def update_about(directory: Path, changed: Mapping[str, Any]) -> None:
    """Replaces what `run.json` says under these names."""
    write_atomically(directory / "run.json", json.dumps({**about(directory), **changed}, indent=1) + "\n")


def look(directory: Path, blocks: Mapping[str, int]) -> None:
    """Notes that the run is judged with this many blocks of each study: looking again costs confidence."""
    studies = about(directory)["studies"]
    for name, count in blocks.items():
        if count not in studies[name]["looks"]:
            studies[name]["looks"].append(count)
    update_about(directory, {"studies": studies})


def _new_directory(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, 1000):
        directory = parent / (name if number == 1 else f"{name}-{number}")
        # Made, not looked for: two runs that start in the same second get a directory each.
        with contextlib.suppress(FileExistsError):
            directory.mkdir()
            return directory
    raise FileExistsError(f"{parent / name} and a thousand like it")


def _open(directory: Path) -> Store:
    lock = open(directory / ".lock", "wb")  # noqa: SIM115 - held for as long as the store is open
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise TollbarError(
            "another process is writing this run", where=str(directory), hint="wait for it to end"
        ) from error
    database = sqlite3.connect(directory / "results.sqlite")
    database.execute("pragma journal_mode = wal")
    # Synced at each commit: a power cut, and not only a kill, loses no more than the trial under way.
    database.execute("pragma synchronous = full")
    return Store(directory, database, lock)


def _insert_plan(database: sqlite3.Connection, planned: StudyPlan) -> None:
    name = planned.study.name
    for position, cell in enumerate(planned.cells):
        values = (
            name, cell.key, position, json.dumps(dict(cell.coordinates)), cell.choice.title, cell.standing,
            cell.strength, cell.against, None, None, 0, "[]", "[]",
        )  # fmt: skip
        database.execute(f"insert into cell values ({_marks(values)})", values)
    for coordinates, because in planned.left_out:
        database.execute("insert into left_out values (?, ?, ?)", (name, json.dumps(dict(coordinates)), because))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
