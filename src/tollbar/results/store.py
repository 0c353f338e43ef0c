"""Directory of a run: creating it, writing it as each batch ends, and resuming it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from tollbar import __version__
from tollbar.catalog.families import Family, MadeOf
from tollbar.core.errors import TollbarError
from tollbar.core.files import write_atomically
from tollbar.core.records import Outcome, Proven, SetAside, Trial, TrialKey
from tollbar.results import stored
from tollbar.results.changes import made_with
from tollbar.results.database import TABLES, connect, locking
from tollbar.results.directory import LOCK, RESULTS, check_files, open_file
from tollbar.results.looks import is_noted, looks, present, reach
from tollbar.results.observations import Count, refuse_more, series_of, values_of
from tollbar.results.reading import read
from tollbar.results.run import MEASURED_AS
from tollbar.results.run_json import MOST_LIBRARIES, SCHEMA, about, as_written, refuse_resumption
from tollbar.study import Study
from tollbar.study.plan import Plan, StudyPlan

_IS_FULL = "its results are whole up to here: `tollbar judge` reads them; measure the rest as another run"


@dataclass(slots=True)
class Store:
    """Open run. One process at a time may write it."""

    directory: Path
    database: sqlite3.Connection
    lock: IO[bytes]
    count: Count = field(default_factory=Count)
    """Size of the run, for which there are limits."""

    def record(self, batch: Sequence[Trial], set_aside: Sequence[SetAside] = ()) -> None:
        """Store all trials of a batch and the quarantines they caused, or none of it.

        When this returns they are on the disk. Raises TollbarError for more than a run may hold, because a run that is
        kept must stay readable. An empty batch is ignored: none of its cells may be measured any more.
        """
        if not batch:
            return
        first = batch[0]
        if any((one.study, one.block, one.batch) != (first.study, first.block, first.batch) for one in batch):
            raise ValueError("the trials must be those of one batch")
        series = [[*series_of(trial.chunks)] for trial in batch]
        loads = [trial.load.model_dump_json() if trial.load else None for trial in batch]
        count = self.count.plus([values_of(text) for some in series for _, _, text in some], loads)
        try:
            refuse_more(count)
        except ValueError as error:
            raise TollbarError(f"the run is full: {error}", where=str(self.directory), hint=_IS_FULL) from error
        with self._writing() as database:
            (quarantines,) = database.execute("select count(*) from set_aside").fetchone() if set_aside else (0,)
            if quarantines + len(set_aside) > stored.MOST_SET_ASIDE:
                what = f"the run is full: it has more than {stored.MOST_SET_ASIDE:,} quarantines"
                raise TollbarError(what, where=str(self.directory), hint=_IS_FULL)
            started_s = min(trial.started_s for trial in batch)
            database.execute(
                "insert into batch values (?, ?, ?, ?)", (first.study, first.block, first.batch, started_s)
            )
            for trial, some, load in zip(batch, series, loads, strict=True):
                self._insert(database, trial, some, load)
            for one in set_aside:
                database.execute(f"insert into set_aside values ({_marks(astuple(one))})", astuple(one))
        self.count = count

    def _insert(
        self, database: sqlite3.Connection, trial: Trial, series: Sequence[tuple[str, str, str]], load: str | None
    ) -> None:
        values = (
            None, trial.study, trial.cell, trial.repeat, trial.block, trial.batch, trial.order, trial.started_s,
            trial.outcome, trial.reason, json.dumps(trial.paid_by), trial.memory_bytes, trial.steal_ns,
            trial.machine_load, load,
        )  # fmt: skip
        number = database.execute(f"insert into trial values ({_marks(values)})", values).lastrowid
        database.executemany(
            "insert into observation values (?, ?, ?, ?)",
            [(number, component, metric, text) for component, metric, text in series],
        )

    def record_proof(self, proven: Proven) -> None:
        """Store whether a cell may be measured."""
        with self._writing() as database:
            database.execute(
                "update cell set outcome = ?, reason = ?, known_answers = ?, accepted = ?, refused = ?, not_tried = ? "
                "where study = ? and key = ?",
                (
                    proven.outcome, proven.reason, proven.known_answers, json.dumps(proven.accepted),
                    json.dumps(proven.refused), json.dumps(proven.not_tried), proven.study, proven.cell,
                ),
            )  # fmt: skip

    def resume(self) -> int:
        """Record that the run is resumed and its quarantined cells are tried again; return their number."""
        with self._writing() as database:
            now_s = time.time()
            database.execute("insert into event values (?, ?)", (now_s, "resumed"))
            again = "update set_aside set tried_again_s = ? where tried_again_s is null"
            return database.execute(again, (now_s,)).rowcount

    def note_interim_look(self, study: str | None = None) -> None:
        """Record that the run, or one of its studies, is judged in its present state, unless that is recorded already.

        Each new look costs confidence.
        """
        _note(self.directory, reach(self.database), study)

    def note_chain(self, chain_ns: float | None) -> None:
        """Store the duration of the quickest chains until now. On a full disk a run continues without it."""
        if about(self.directory).get("chain_ns") != chain_ns:
            with contextlib.suppress(OSError):
                update_about(self.directory, {"chain_ns": chain_ns})

    def done(self) -> set[tuple[str, int, int]]:
        """Return (study, block, batch) of every stored batch."""
        return set(self.database.execute("select study, block, batch from batch"))

    def made(self) -> set[TrialKey]:
        """Return the keys of all stored trials, failed ones included."""
        found = self.database.execute("select study, cell, repeat, block, batch from trial not indexed")
        return {(study, cell, bool(repeat), block, batch) for study, cell, repeat, block, batch in found}

    def cells(self) -> set[tuple[str, str]]:
        """Return (study, cell) of every cell of the run."""
        return set(self.database.execute("select study, key from cell"))

    def unproven(self) -> set[tuple[str, str]]:
        """Return (study, cell) of every cell without a proof."""
        return set(self.database.execute("select study, key from cell where outcome is null"))

    def excluded(self) -> set[tuple[str, str]]:
        """Return (study, cell) of every cell whose proof failed, so that it may not be measured."""
        return set(self.database.execute("select study, key from cell where outcome <> ?", (Outcome.OK,)))

    def next_order(self) -> int:
        """Return the place of the next trial in the run's sequence."""
        (last,) = self.database.execute("select max(ord) from trial not indexed").fetchone()
        return 0 if last is None else last + 1

    def close(self) -> None:
        """Close the run. The results are then one file, which can be read in a folder that is not writable."""
        # A reader may hold the log: then it stays next to the file, and the next reader reads it too.
        with contextlib.suppress(sqlite3.Error):
            locking(self._leave_one_file)
        self.database.close()
        self.lock.close()

    def _leave_one_file(self) -> None:
        self.database.execute("pragma wal_checkpoint(truncate)")
        self.database.execute("pragma journal_mode = delete")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self.database:
                # The lock is taken first, so that no later statement waits for it.
                locking(lambda: self.database.execute("begin immediate"))
                yield self.database
        except sqlite3.Error as error:
            raise TollbarError(
                f"cannot write the results: {error}",
                where=str(self.directory),
                hint="committed results are safe; free some space and continue with `tollbar run --resume RUN`",
            ) from error


def why_not_begun(plan: Plan) -> str | None:
    """Return why no run can have this plan; None if one can."""
    most = stored.MOST_CELLS
    if len(plan.cells) > most:
        return f"{len(plan.cells):,} cells; a run has at most {most:,}"
    try:
        left_out = (at for one in plan.studies for at, _ in one.left_out)
        stored.refuse_more_left_out(sum(json.dumps(dict(at)).count(":") for at in left_out))
    except ValueError as error:
        return str(error)
    return None


def create(
    plan: Plan,
    parent: Path,
    *,
    command: Sequence[str],
    libraries: Sequence[str],
    fingerprint: Mapping[str, Any],
    best_probe_ns: float | None = None,
    more: Mapping[str, Any] | None = None,
) -> Store:
    """Create a new run under `parent`, named by time and study; `more` is kept in its `run.json` too.

    Raises TollbarError before anything is measured, and then leaves no files.
    """
    if (why := why_not_begun(plan)) is not None:
        raise TollbarError(why, hint="vary less at once, or measure them in several runs")
    if len(libraries) > MOST_LIBRARIES:
        what = f"{len(libraries):,} libraries; a run has at most {MOST_LIBRARIES}"
        raise TollbarError(what, where="--library", hint="measure them in several runs")
    label = plan.studies[0].study.name if len(plan.studies) == 1 else "set"
    started = datetime.now().astimezone()
    studies = {one.study.name: {"interim_looks": [], **measured_as(one.study)} for one in plan.studies}
    remotes = (remote for one in plan.studies for remote in one.study.remotes)
    urls = {remote.name: remote.url for remote in remotes if remote.name != remote.url}
    said = {
        "schema": SCHEMA,
        "tollbar": __version__,
        "command": list(command),
        "libraries": list(libraries),
        "seed": plan.seed,
        "started": started.isoformat(timespec="seconds"),
        "fingerprint": dict(fingerprint),
        "best_probe_ns": best_probe_ns,
        **made_with(plan),
        "studies": studies,
        **({"urls": urls} if urls else {}),
        **(more or {}),
    }
    try:
        directory = _new_directory(parent, f"{started:%Y-%m-%d-%H%M%S}-{label}")
        try:
            return _filled(directory, plan, said)
        except BaseException:
            # Without `run.json` it is not a run, and nothing has been measured into it.
            shutil.rmtree(directory, ignore_errors=True)
            raise
    except (OSError, sqlite3.Error) as error:
        raise TollbarError(
            f"cannot make the run's directory: {error}",
            where=str(parent),
            hint="choose another folder, for example `--runs /var/tmp/runs`",
        ) from error


def _filled(directory: Path, plan: Plan, said: Mapping[str, Any]) -> Store:
    """Write all files that a run has before its first trial. Raises OSError and sqlite3.Error."""
    (directory / "studies").mkdir()
    for planned in plan.studies:
        (directory / "studies" / f"{planned.study.name}.toml").write_text(planned.study.text, "utf-8")
        _keep(planned.study.family, directory / "families")
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(_locked(directory))
        store = Store(directory, _to_be_written(directory, "rwc"), lock)
        stack.callback(store.database.close)
        with store.database as database:
            database.executescript(TABLES)
            for planned in plan.studies:
                _insert_plan(database, planned)
        # Last, because a directory is a run once it has this file, and must be complete by then.
        _write_about(directory, said)
        # A run that readers would refuse must not begin.
        check_files(directory)
        stack.pop_all()
    return store


def measured_as(study: Study) -> dict[str, Any]:
    """Return the measuring options that the command line or a set may have changed, for the run to be resumed."""
    measure = study.measure
    return {name: getattr(measure, name) for name in MEASURED_AS}


def _keep(family: Family, folder: Path) -> None:
    """Copy a family's files: a run can be judged and reported after the family has changed or gone."""
    assert family.folder is not None, "a family that is measured was read from a folder"
    (folder / family.name).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(family.folder / "family.toml", folder / family.name / "family.toml")
    for member in family.members.values() if isinstance(family, MadeOf) else ():
        _keep(member.family, folder)


def reopen(directory: Path) -> Store:
    """Reopen a run for writing. Raises TollbarError if it is not a run, or if another process is writing it."""
    refuse_resumption(directory, about(directory))
    try:
        with contextlib.ExitStack() as stack:
            lock = stack.enter_context(_locked(directory))
            # Check the whole run before anything is written: the database may be a stranger's.
            read(directory)
            store = Store(directory, _to_be_written(directory, "rw"), lock)
            stack.callback(store.database.close)
            store.count = stored.counted(store.database)
            stack.pop_all()
        return store
    except (OSError, sqlite3.Error) as error:
        raise TollbarError(f"cannot open the run: {error}", where=str(directory)) from error


def update_about(directory: Path, changed: Mapping[str, Any]) -> None:
    """Replace these keys of `run.json`. Raises OSError."""
    _write_about(directory, as_written({**about(directory), **changed}))


def _write_about(directory: Path, said: Mapping[str, Any]) -> None:
    # The values of a URL's query may be secrets.
    mode = 0o600 if said.get("urls") else 0o666
    write_atomically(directory / "run.json", json.dumps(said, indent=1) + "\n", mode)


def note_interim_look(directory: Path) -> str | None:
    """Record that the run is judged in its present state. Return the reason if that cannot be recorded.

    A run can be judged without the record, and its own last look is found wherever it is read later. Raises
    TollbarError if this is not a run.
    """
    about(directory)
    try:
        with _locked(directory):
            _note(directory, present(directory))
    except (TollbarError, OSError) as error:
        if is_noted(directory):
            return None
        return f"this look at the run is not noted, so that later ones will not pay for it: {error}"
    return None


def _new_directory(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, 1000):
        directory = parent / (name if number == 1 else f"{name}-{number}")
        # `mkdir` decides: two runs that start in the same second get a directory each.
        with contextlib.suppress(FileExistsError):
            directory.mkdir()
            return directory
    raise FileExistsError(f"{parent / name} and a thousand like it")


def _note(directory: Path, found: Mapping[str, tuple[int, int]], study: str | None = None) -> None:
    """Record a look at these (blocks, trials) of each study, or of this one. Raises OSError."""
    said = about(directory)
    entries = {
        name: {**entry, "interim_looks": looks(entry["interim_looks"], found.get(name))}
        if study in (None, name)
        else entry
        for name, entry in said["studies"].items()
    }
    if entries != said["studies"]:
        update_about(directory, {"studies": entries})


def _locked(directory: Path) -> IO[bytes]:
    """Return the lock of a run, held until it is closed. Raises TollbarError if another process has it, and OSError."""
    # Never truncated: the existing file may not be a lock.
    lock = os.fdopen(open_file(directory / LOCK, os.O_RDWR | os.O_CREAT), "r+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise TollbarError(
            "another process is writing this run; only one can", where=str(directory), hint="wait until it ends"
        ) from error
    return lock


def _to_be_written(directory: Path, mode: str) -> sqlite3.Connection:
    """Open the database so that each commit is synced to the disk. Raises sqlite3.Error."""
    database = connect(directory / RESULTS, mode)
    try:
        locking(lambda: database.execute("pragma journal_mode = wal"))
        # Synced at each commit, so that a power cut loses no more than the batch under way.
        database.execute("pragma synchronous = full")
    except sqlite3.Error:
        database.close()
        raise
    return database


def _insert_plan(database: sqlite3.Connection, planned: StudyPlan) -> None:
    name = planned.study.name
    for position, cell in enumerate(planned.cells):
        values = (
            name, cell.key, position, json.dumps(dict(cell.coordinates)), cell.choice.title, cell.standing,
            cell.strength, cell.against, cell.server_version, None, None, 0, "[]", "[]", "[]",
        )  # fmt: skip
        database.execute(f"insert into cell values ({_marks(values)})", values)
    for coordinates, because in planned.left_out:
        database.execute("insert into left_out values (?, ?, ?)", (name, json.dumps(dict(coordinates)), because))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
