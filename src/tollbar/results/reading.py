"""A run, read back from its directory."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

from tollbar import study
from tollbar.catalogue import Standing
from tollbar.errors import TollbarError
from tollbar.measure import Outcome, Trial
from tollbar.results.run import Row, Run, StudyRun
from tollbar.runner import LoadRecord

SCHEMA = 2


def read(directory: Path) -> Run:
    """The run as it stands."""
    said = about(directory)
    path = directory / "results.sqlite"
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            asked = zip(studies(directory), said["studies"].values(), strict=True)
            read_back = tuple(_study(database, one, tuple(entry["looks"])) for one, entry in asked)
    except sqlite3.Error as error:
        raise TollbarError(f"the results cannot be read: {error}", where=str(path)) from error
    return Run(
        directory=directory,
        name=directory.resolve().name,
        command=tuple(said["command"]),
        seed=said["seed"],
        started=said["started"],
        fingerprint=said["fingerprint"],
        providers=said["providers"],
        studies=read_back,
    )


def about(directory: Path) -> dict[str, Any]:
    """What `run.json` says. Raises TollbarError if this is not a run."""
    path = directory / "run.json"
    try:
        said = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        hint = "give a directory that `tollbar run` made"
        raise TollbarError("not a run: it has no run.json", where=str(directory), hint=hint) from error
    except (OSError, ValueError) as error:
        raise TollbarError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(said, dict) or said.get("schema") != SCHEMA:
        hint = "it was made by another version of Tollbar"
        raise TollbarError(f"not a run of schema {SCHEMA}", where=str(path), hint=hint)
    return said


def studies(directory: Path) -> tuple[study.Study, ...]:
    """The studies as they were asked, with the number of blocks that the command asked for."""
    found = []
    for name, entry in about(directory)["studies"].items():
        path = directory / "studies" / f"{name}.toml"
        try:
            one = study.read(name, path.read_text("utf-8"), where=str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise TollbarError(f"cannot be read: {error}", where=str(path)) from error
        found.append(replace(one, measure=replace(one.measure, blocks=entry["blocks"])))
    return tuple(found)


def _study(database: sqlite3.Connection, asked: study.Study, looks: tuple[int, ...]) -> StudyRun:
    trials: dict[tuple[str, bool], list[Trial]] = {}
    for found in database.execute("select * from trial where study = ? order by block", (asked.name,)):
        trial = _trial(found)
        trials.setdefault((trial.cell, trial.twin), []).append(trial)
    rows = tuple(
        _row(found, tuple(trials.get((found["key"], False), ())), tuple(trials.get((found["key"], True), ())))
        for found in database.execute("select * from cell where study = ? order by position", (asked.name,))
    )
    left_out = database.execute("select coordinates, because from left_out where study = ?", (asked.name,))
    return StudyRun(asked, rows, tuple((json.loads(at), because) for at, because in left_out), looks)


def _trial(found: sqlite3.Row) -> Trial:
    return Trial(
        study=found["study"],
        cell=found["cell"],
        twin=bool(found["twin"]),
        block=found["block"],
        order=found["ord"],
        started_s=found["started_s"],
        outcome=Outcome(found["outcome"]),
        reason=found["reason"],
        operations=found["operations"],
        cpu_ns=found["cpu_ns"],
        wall_ns=found["wall_ns"],
        memory_bytes=found["memory_bytes"],
        batches=tuple((count, cpu_ns) for count, cpu_ns in json.loads(found["batches"])),
        steal_ns=found["steal_ns"],
        machine_load=found["machine_load"],
        load=LoadRecord.model_validate_json(found["load"]) if found["load"] else None,
    )


def _row(found: sqlite3.Row, trials: tuple[Trial, ...], twins: tuple[Trial, ...]) -> Row:
    # No outcome: the run ended before this cell's turn to be verified came.
    outcome, reason = found["outcome"] or Outcome.FAILED, found["reason"]
    return Row(
        key=found["key"],
        coordinates=json.loads(found["coordinates"]),
        title=found["title"],
        standing=Standing(found["standing"]),
        strength=found["strength"],
        against=found["against"],
        outcome=Outcome(outcome),
        reason=reason if found["outcome"] else "the run ended before it was verified",
        trials=trials,
        twins=twins,
        known_answers=found["known_answers"],
        accepted=tuple(json.loads(found["accepted"])),
        refused=tuple(json.loads(found["refused"])),
    )
