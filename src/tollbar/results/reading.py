"""A run, read back from its directory."""

from __future__ import annotations

import contextlib
import gc
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, ValidationError

from tollbar import study
from tollbar.errors import TollbarError, printable, printable_in
from tollbar.families import Family, Standing
from tollbar.files import is_file, is_folder
from tollbar.machine import NOT_STATED
from tollbar.method import FIRST
from tollbar.records import Chunk, LoadRecord, Outcome, SetAside, Trial
from tollbar.records.load import MOST
from tollbar.results import stored
from tollbar.results.database import SPACES, opened, size_of
from tollbar.results.directory import MOST_STUDIES, RESULTS, check_files, read_text
from tollbar.results.observations import chunks_of
from tollbar.results.run import MEASURED_AS, Row, Run, StudyRun
from tollbar.study.definition import Cells
from tollbar.wire import is_plain

SCHEMA = 6
# Read in words of today; it cannot be resumed.
FORMAT_5 = 5
# Formats that are not read any more, and what they lack.
_NO_CHUNKS = "its trials have no chunks to be judged"
EARLIER = {
    1: _NO_CHUNKS,
    2: _NO_CHUNKS,
    3: "its cells are named by the versions of their libraries",
    4: "its chunks have no probes, so that nothing tells which of them were quiet",
}


Count = Annotated[int, Field(ge=0, le=MOST)]
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = TypeVar("Name")
MOST_NAMES = 1000
# Letters of a version that is shown.
MOST_OF_VERSION = 40


def _few(said: object) -> object:
    if isinstance(said, dict) and len(said) > MOST_NAMES:
        raise ValueError(f"more than {MOST_NAMES:,} entries")
    return said


def _few_studies(said: object) -> object:
    if isinstance(said, dict) and len(said) > MOST_STUDIES:
        raise ValueError(f"{len(said):,} studies; a run has at most {MOST_STUDIES}")
    return said


# Pydantic keeps an error for each item that is wrong, of a kB and more; a real run has dozens.
Named = Annotated[dict[str, Name], BeforeValidator(_few)]
Listed = Annotated[list[Name], FailFast()]


class _Said(BaseModel):
    """A table of `run.json`."""

    model_config = ConfigDict(strict=True)


class _Look(_Said):
    """How much was there when a study was judged."""

    blocks: Count
    trials: Count


class _Entry(_Said):
    """What a run says of one of its studies; those of earlier versions say less."""

    interim_looks: Listed[_Look]
    blocks: Annotated[Count, Field(gt=0)] = 1
    precision: Finite | None = None
    longest_s: Finite | None = None
    cells: Cells = "all"


class _Receipt(_Said):
    """What a run says of a provider, of which more is shown as it stands."""

    name: str


class _Machine(_Said):
    """What a run says of a processor, of which more is shown as it stands."""

    cpu: str


class _Node(_Said):
    """What a run says of the machine of a role."""

    address: str
    host: str
    fingerprint: _Machine
    is_simulated: bool


class _Upgrade(_Said):
    """What an upgrade was asked, for its answer to be printed where the run is resumed."""

    old: str
    new: str
    families: Listed[str] = []
    folder: str
    """Where the command was given, which paths of the two builds may be relative to."""
    within_s: Finite
    fail_above: Finite | None = None


class _About(_Said):
    """What has to be in `run.json` for a run to be read."""

    command: Listed[str]
    libraries: Listed[str] = []
    seed: int
    started: str
    fingerprint: dict[str, Any]
    providers: Named[_Receipt]
    servers: Named[dict[str, Any]]
    broken: Named[str]
    studies: Annotated[dict[str, _Entry], BeforeValidator(_few_studies)]
    tollbar: str = NOT_STATED
    resumed_with: Listed[str] = []
    best_probe_ns: Positive | None = None
    chain_ns: Positive | None = None
    method: int = FIRST
    nodes: Named[_Node] = {}
    roles: Named[str] = {}
    upgrade: _Upgrade | None = None


def read(directory: Path) -> Run:
    """The run as it stands."""
    # Words of servers and libraries may have anything in them, and end on a terminal.
    said = printable_in(about(directory))
    names = {spec: str(receipt["name"]) for spec, receipt in said["providers"].items()}
    with uncollected(), results_of(directory) as (database, counts):
        database.text_factory = lambda content: printable(content.decode())
        database.row_factory = sqlite3.Row
        present = reach(database)
        asked = [*zip(studies(directory), said["studies"].values(), strict=True)]
        tables = _tables(database, {one.name for one, _ in asked}, counts)
        read_back = tuple(
            _study(
                tables, one, [look["blocks"] for look in looks(entry["interim_looks"], present.get(one.name))], names
            )
            for one, entry in asked
        )
    return Run(
        directory=directory,
        name=directory.resolve().name,
        command=tuple(said["command"]),
        studies=read_back,
        nodes=said.get("nodes", {}),
        version=said.get("tollbar", NOT_STATED),
        resumed_with=tuple(said.get("resumed_with", ())),
        best_probe_ns=said.get("best_probe_ns"),
        chain_ns=said.get("chain_ns"),
        method=said.get("method", FIRST),
        **{name: said[name] for name in ("seed", "started", "fingerprint", "providers", "servers", "broken")},
    )


@contextlib.contextmanager
def results_of(directory: Path) -> Iterator[tuple[sqlite3.Connection, Mapping[str, int]]]:
    """The results for reading, whose values are as Tollbar writes them, and the number of rows of each table.

    Raises TollbarError for what is found in them, within the block too.
    """
    path = directory / RESULTS
    try:
        with opened(path) as database:
            yield database, stored.refuse_odd(database, size_of(path))
    except (sqlite3.Error, OSError) as error:
        raise TollbarError(f"the results cannot be read: {error}".translate(SPACES), where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise TollbarError(f"not as Tollbar writes it: {_why(error)}", where=str(path)) from error


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Records by the hundred thousand, none of which is in a cycle: looking for one takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()


def present(directory: Path) -> dict[str, tuple[int, int]]:
    """How many blocks and how many trials of each study are there. Raises TollbarError."""
    path = directory / RESULTS
    try:
        with opened(path) as database:
            return reach(database)
    except (sqlite3.Error, OSError) as error:
        raise TollbarError(f"the results cannot be read: {error}".translate(SPACES), where=str(path)) from error


def reach(database: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """How many blocks and how many trials there are of each study that has any."""
    rows = database.execute("select study, count(distinct block), count(*) from trial not indexed group by study")
    return {study: (blocks, trials) for study, blocks, trials in rows}


def _blocks(noted: Sequence[Mapping[str, int]], present: tuple[int, int] | None) -> list[int]:
    return [look["blocks"] for look in looks(noted, present)]


def looks(noted: Sequence[Mapping[str, int]], present: tuple[int, int] | None) -> list[Mapping[str, int]]:
    """The looks, with one at this many (blocks, trials): where it cannot be noted it counts all the same."""
    if present is None or any(look["trials"] == present[1] for look in noted):
        return [*noted]
    return [*noted, {"blocks": present[0], "trials": present[1]}]


def is_noted(directory: Path) -> bool:
    """Whether a look at all that there is of a run is noted. Nothing is written; False where it cannot be read."""
    try:
        with opened(directory / RESULTS) as database:
            found = reach(database)
    except (TollbarError, OSError, sqlite3.Error):
        return False
    studies: Mapping[str, Any] = about(directory)["studies"]
    return all(
        looks(entry["interim_looks"], found.get(name)) == entry["interim_looks"] for name, entry in studies.items()
    )


def about(directory: Path) -> dict[str, Any]:
    """What `run.json` says. Raises TollbarError if this is not a run."""
    path = directory / "run.json"
    try:
        check_files(directory)
        said = json.loads(read_text(path))
    except FileNotFoundError as error:
        runs = (path for path in (directory.iterdir() if is_folder(directory) else ()) if is_file(path / "run.json"))
        newest = max(runs, key=lambda path: path.name, default=None)
        hint = "give a directory that `tollbar run` made"
        hint = f"the newest run in it is `{printable(str(newest))}`" if newest else hint
        raise TollbarError("not a run: it has no run.json", where=str(directory), hint=hint) from error
    except RecursionError as error:
        raise TollbarError("not as Tollbar writes it: nested too deeply", where=str(path)) from error
    except (OSError, ValueError) as error:
        raise TollbarError(f"cannot be read: {error}", where=str(path)) from error
    schema = said.get("schema") if isinstance(said, dict) else None
    if isinstance(schema, int) and schema in EARLIER:
        version = str(said.get("tollbar", NOT_STATED))[:MOST_OF_VERSION]
        raise TollbarError(
            f"made by Tollbar before version {FORMAT_5} of the run format: {EARLIER[schema]}",
            where=str(directory),
            hint=f"measure again, or judge it with the version that made it: {version}",
        )
    hint = "it was made by another version of Tollbar, or by something else"
    if schema not in (FORMAT_5, SCHEMA):
        raise TollbarError(f"not a run of schema {FORMAT_5} or {SCHEMA}", where=str(path), hint=hint)
    assert isinstance(said, dict)
    if schema == FORMAT_5:
        said = _looks_renamed(said, "looks", "interim_looks")
    try:
        _About.model_validate(said)
    except ValidationError as error:
        what = f"not as Tollbar writes it: {_why(error)}"
        raise TollbarError(what, where=str(path), hint=hint) from error
    return dict(said)


def refuse_resumption(directory: Path, said: Mapping[str, Any]) -> None:
    """Raises TollbarError for a run of an earlier format, which is read and not written."""
    if said["schema"] != SCHEMA:
        what = f"made by an earlier version: a run of format {said['schema']} is read, and cannot be resumed"
        raise TollbarError(what, where=str(directory), hint="measure again: `tollbar run` makes a new run")


def as_written(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what `run.json` has for what `about` returned, in the words of its format."""
    return _looks_renamed(said, "interim_looks", "looks") if said["schema"] == FORMAT_5 else said


def _looks_renamed(said: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    entries = said.get("studies")
    if not isinstance(entries, dict):
        return dict(said)
    renamed = {
        name: {new if key == old else key: value for key, value in entry.items()} if isinstance(entry, dict) else entry
        for name, entry in entries.items()
    }
    return {**said, "studies": renamed}


def _why(error: ValueError | RecursionError) -> str:
    """In one line, what is wrong with a document."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, ValidationError):
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = ".".join(str(part) for part in fault["loc"])
        return f"`{key}`: {fault['msg']}".translate(SPACES)
    return str(error).splitlines()[0]


def studies(directory: Path, *, to_measure: bool = False) -> tuple[study.Study, ...]:
    """The studies as they were, with the number of blocks that the command asked for.

    Their families are those that the run keeps; or, `to_measure` on, those that are installed, with their answers.
    """
    found = []
    read_before: dict[Path, Family] = {}
    # Runs of earlier versions kept none.
    kept = directory / "families" if not to_measure and (directory / "families").is_dir() else None
    said = about(directory)
    for name, entry in said["studies"].items():
        if not is_plain(name):
            raise TollbarError(f"no name of a study: `{name}`", where=str(directory / "run.json"))
        path = directory / "studies" / f"{name}.toml"
        try:
            one = study.read(
                name,
                read_text(path),
                where=str(path),
                kept=kept,
                read_before=read_before,
                earlier=said["schema"] == FORMAT_5,
            )
        except (OSError, UnicodeDecodeError) as error:
            raise TollbarError(f"cannot be read: {error}", where=str(path)) from error
        # Runs of earlier versions kept fewer.
        asked = {name: entry[name] for name in MEASURED_AS if name in entry}
        found.append(replace(one, measure=replace(one.measure, **asked)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of a run, each read once: a run may have hundreds of studies, and a query reads a table whole."""

    trials: Mapping[str, Mapping[tuple[str, bool], Sequence[Trial]]]
    """By study, then by cell and whether they are its repeats'."""
    set_aside: Mapping[str, Sequence[sqlite3.Row]]
    cells: Mapping[str, Sequence[sqlite3.Row]]
    left_out: Mapping[str, Sequence[sqlite3.Row]]


def _tables(database: sqlite3.Connection, names: Set[str], counts: Mapping[str, int]) -> _Tables:
    # Plain tuples: rows that know their columns take half as long again to be read.
    plain = database.cursor()
    plain.row_factory = None
    # Never by an index, which may be of other rows than the table has.
    observed = plain.execute("select trial, component, metric, by_round from observation not indexed")
    series: dict[int, dict[tuple[str, str], Any]] = defaultdict(dict)
    for rows in stored.rows_of(observed, counts["observation"]):
        values = stored.series([by_round for *_, by_round in rows])
        for (number, component, metric, _), by_round in zip(rows, values, strict=True):
            series[number][component, metric] = by_round
    trials: dict[str, dict[tuple[str, bool], list[Trial]]] = {name: defaultdict(list) for name in names}
    read = plain.execute(
        "select id, study, cell, repeat, block, batch, ord, started_s, outcome, reason, paid_by, memory_bytes,"
        " steal_ns,"
        " machine_load, load from trial not indexed order by block, batch"
    )
    for rows in stored.rows_of(read, counts["trial"]):
        for number, *found in rows:
            if found[0] in names:
                trial = _trial(found, chunks_of(series.pop(number, {})))
                trials[trial.study][trial.cell, trial.repeat].append(trial)
    return _Tables(
        trials,
        _by_study(database, "select * from set_aside not indexed order by ord"),
        _by_study(database, "select * from cell order by position"),
        _by_study(database, "select study, coordinates, because from left_out not indexed"),
    )


def _by_study(database: sqlite3.Connection, query: str) -> Mapping[str, Sequence[sqlite3.Row]]:
    found: dict[str, list[sqlite3.Row]] = {}
    for row in database.execute(query):
        found.setdefault(row["study"], []).append(row)
    return found


def _study(tables: _Tables, asked: study.Study, looked: Sequence[int], names: Mapping[str, str]) -> StudyRun:
    trials = tables.trials[asked.name]
    set_aside = tuple(map(_set_aside, tables.set_aside.get(asked.name, ())))
    # Tried again, it is set aside no more.
    still = {one.cell: one for one in set_aside if one.tried_again_s is None}
    cells = tuple(
        _row(
            found,
            names,
            still.get(found["key"]),
            *(tuple(trials.get((found["key"], repeat), ())) for repeat in (False, True)),
        )
        for found in tables.cells.get(asked.name, ())
    )
    for cell in cells:
        if cell.choice not in asked.family.choices:
            raise ValueError(f"a cell of `{cell.choice[:MOST_OF_VERSION]}`, a choice that its family does not have")
    left_out = tables.left_out.get(asked.name, ())
    said = tuple((stored.coordinates(found["coordinates"]), found["because"]) for found in left_out)
    return StudyRun(asked, cells, said, tuple(looked), set_aside)


def _set_aside(found: sqlite3.Row) -> SetAside:
    columns = {name: found[name] for name in found.keys() if name != "ord"}  # noqa: SIM118
    return SetAside(**columns, after=found["ord"])


def _trial(found: Sequence[Any], chunks: Sequence[Chunk]) -> Trial:
    study, cell, repeat, block, batch, order, started_s, outcome, reason, paid_by, memory, steal, machine, load = found
    return Trial(
        study,
        cell,
        bool(repeat),
        block,
        batch,
        order,
        started_s,
        Outcome(outcome),
        reason,
        chunks,
        stored.words(paid_by),
        memory,
        steal,
        machine,
        LoadRecord.model_validate_json(load) if load else None,
    )


def _row(
    found: sqlite3.Row,
    names: Mapping[str, str],
    set_aside: SetAside | None,
    trials: tuple[Trial, ...],
    repeats: tuple[Trial, ...],
) -> Row:
    outcome, reason = _outcome(found, sorted((*trials, *repeats), key=lambda trial: trial.order))
    columns = {name: found[name] for name in ("key", "title", "strength", "against", "known_answers", "server_version")}
    columns |= {name: stored.words(found[name]) for name in ("accepted", "refused", "not_tried")}
    coordinates = stored.coordinates(found["coordinates"])
    if not {"choice", "provider", "op"} <= coordinates.keys():
        raise ValueError("a cell without a choice, a provider or an operation")
    spec = str(coordinates["provider"])
    columns |= {"coordinates": coordinates, "provider": names.get(spec, spec)}
    columns |= {"standing": Standing(found["standing"])}
    return Row(**columns, outcome=outcome, reason=reason, trials=trials, repeats=repeats, set_aside=set_aside)


def _outcome(found: sqlite3.Row, trials: Sequence[Trial]) -> tuple[Outcome, str | None]:
    """What became of a cell: its proof's outcome, or that of its trials, of which most must have gone well.

    One that fails now and then has a cost all the same; one that fails as often as not is not what was proved.
    """
    if found["outcome"] is None:
        return Outcome.FAILED, "the run ended before it was verified"
    proof = Outcome(found["outcome"])
    failed = [trial for trial in trials if trial.outcome is not Outcome.OK]
    if proof is not Outcome.OK or 2 * len(failed) < len(trials) or not failed:
        return proof, found["reason"]
    return failed[-1].outcome, failed[-1].reason
