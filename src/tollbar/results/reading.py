"""Reading of a run from its directory."""

from __future__ import annotations

import contextlib
import gc
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tollbar import study
from tollbar.catalog.families import LOADS, Family, Standing
from tollbar.core.errors import TollbarError, cut, printable, printable_in, without_values
from tollbar.core.machine import NOT_STATED
from tollbar.core.method import FIRST
from tollbar.core.records import Chunk, LoadRecord, Outcome, SetAside, Trial
from tollbar.core.records.load import MOST_COMPONENTS
from tollbar.core.wire import is_plain
from tollbar.results import stored
from tollbar.results.database import SPACES, opened, size_of
from tollbar.results.directory import RESULTS, read_text
from tollbar.results.looks import looks, reach
from tollbar.results.observations import AFTER, BEFORE, chunks_of, refuse_odd
from tollbar.results.run import MEASURED_AS, Row, Run, StudyRun
from tollbar.results.run_json import FORMAT_5, MOST_OF_VERSION, about, why
from tollbar.results.stored import MOST_COORDINATES, MOST_COORDINATES_OF_ALL, MOST_KINDS, MOST_TABLED
from tollbar.study.plan.grid import MOST_CLAIMED


def read(directory: Path, *, name: str | None = None, family: str | None = None) -> Run:
    """Return the run as it is in its directory, or only its studies of this name or family.

    Raises TollbarError if it is not a run.
    """
    # Names of servers and libraries may have any characters, and are printed on a terminal.
    said = printable_in(about(directory))
    names = {spec: str(receipt["name"]) for spec, receipt in said["providers"].items()}
    with uncollected(), results_of(directory) as (database, counts):
        database.text_factory = lambda content: printable(content.decode())
        database.row_factory = sqlite3.Row
        present = reach(database)
        found = zip(studies(directory), said["studies"].values(), strict=True)
        asked = [(one, entry) for one, entry in found if name in (None, one.name) and family in (None, one.family.name)]
        only_some = len(asked) < len(said["studies"])
        tables = _tables(database, {one.name for one, _ in asked}, counts, only_some=only_some)
        read_back = tuple(
            _study(
                tables, one, [look["blocks"] for look in looks(entry["interim_looks"], present.get(one.name))], names
            )
            for one, entry in asked
        )
        probes_ns = _probes(database, counts) if only_some else None
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
        probes_ns=probes_ns,
        **{key: said[key] for key in ("seed", "started", "fingerprint", "providers", "servers", "broken")},
    )


MOST_AGREED = 10_000
"""Limit of the kinds of connections of all cells: most cells have one, and each is a line of a report."""


@contextlib.contextmanager
def results_of(directory: Path) -> Iterator[tuple[sqlite3.Connection, Mapping[str, int]]]:
    """Yield the results for reading, with their values checked, and the number of rows of each table.

    Raises TollbarError for faults in them, within the block too.
    """
    path = directory / RESULTS
    try:
        with opened(path) as database:
            yield database, stored.refuse_odd(database, size_of(path))
    except (sqlite3.Error, OSError) as error:
        raise TollbarError(f"the results cannot be read: {error}".translate(SPACES), where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise TollbarError(f"not as Tollbar writes it: {why(error)}", where=str(path)) from error


def _probes(database: sqlite3.Connection, counts: Mapping[str, int]) -> list[float]:
    """Return the nanoseconds of the probes next to all chunks of a run, in no order."""
    read = database.execute("select by_round from observation not indexed where metric in (?, ?)", (BEFORE, AFTER))
    some = (stored.series([text for (text,) in rows]) for rows in stored.rows_of(read, counts["observation"]))
    return [ns for series in some for values in series for ns in values if ns is not None]


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Switch the garbage collector off: records are in no cycle, and to search for one takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()


def studies(directory: Path, *, to_measure: bool = False) -> tuple[study.Study, ...]:
    """Return the studies as they were, with the number of blocks that the command requested.

    Their families are those that the run keeps; with `to_measure`, the installed ones, with their answers.
    """
    found = []
    read_before: dict[Path, Family] = {}
    # Runs of earlier versions kept no families.
    kept = directory / "families" if not to_measure and (directory / "families").is_dir() else None
    said = about(directory)
    urls = said.get("urls", {})
    for name, entry in said["studies"].items():
        # Files have names in UTF-8, which has no surrogates.
        if not (is_plain(name) and name.isprintable()):
            raise TollbarError(f"not a name of a study: `{name}`", where=str(directory / "run.json"))
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
        # Runs of earlier versions kept fewer of these.
        asked = {name: entry[name] for name in MEASURED_AS if name in entry}
        remotes = tuple(replace(remote, url=urls.get(remote.name, remote.url)) for remote in one.remotes)
        found.append(replace(one, measure=replace(one.measure, **asked), remotes=remotes))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables of a run, each read once: a run may have many studies, and each query reads a table whole."""

    trials: Mapping[str, Mapping[tuple[str, bool], Sequence[Trial]]]
    """Trials by study, then by cell and whether they are repeats."""
    set_aside: Mapping[str, Sequence[sqlite3.Row]]
    cells: Mapping[str, Sequence[sqlite3.Row]]
    left_out: Mapping[str, Sequence[sqlite3.Row]]
    most_of_reason: int
    """Limit of the letters of one reason of a cell."""
    most_of_because: int
    """Limit of the letters of one reason of a combination that was left out."""


def _tables(database: sqlite3.Connection, names: Set[str], counts: Mapping[str, int], *, only_some: bool) -> _Tables:
    # Plain tuples, because rows that know their columns take half as long again to read.
    plain = database.cursor()
    plain.row_factory = None
    # Never by an index, which may have other rows than the table.
    of_these = ", ".join("?" * len(names))
    some = f" where trial in (select id from trial not indexed where study in ({of_these}))"
    # Series are numbers, and most of a run's texts: each would be looked at letter by letter.
    as_printed, database.text_factory = database.text_factory, str
    observed = plain.execute(
        f"select trial, component, metric, by_round from observation not indexed{some if only_some else ''}",
        [*names] if only_some else (),
    )
    series: dict[int, dict[tuple[str, str], Any]] = defaultdict(dict)
    # A run has few different names.
    names_of: dict[tuple[str, str], tuple[str, str]] = {}
    for rows in stored.rows_of(observed, counts["observation"]):
        by_metric: dict[str, list[Any]] = defaultdict(list)
        values = stored.series([by_round for *_, by_round in rows])
        for (number, component, metric, _), by_round in zip(rows, values, strict=True):
            key = component, metric
            if key not in names_of:
                names_of[key] = printable(component), printable(metric)
            series[number][names_of[key]] = by_round
            by_metric[metric].append(by_round)
        for metric, found in by_metric.items():
            refuse_odd(printable(metric), found)
    database.text_factory = as_printed
    components: set[str] = set()
    agreed: set[tuple[str, ...]] = set()
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
                if trial.load is not None:
                    components |= trial.load.components.keys()
                    kinds = ((one.version, one.construction, one.group, one.certificate_key)
                             for one in trial.load.negotiated)  # fmt: skip
                    agreed |= {(trial.study, trial.cell, *kind) for kind in kinds}
    if len(components) > MOST_COMPONENTS:
        raise ValueError(f"{len(components):,} components; a run has at most {MOST_COMPONENTS}")
    if len(agreed) > MOST_AGREED:
        raise ValueError(f"{len(agreed):,} kinds of connections of all cells; a run has at most {MOST_AGREED:,}")
    return _Tables(
        trials,
        _by_study(database, "select * from set_aside not indexed order by ord"),
        _by_study(database, "select * from cell order by position"),
        _by_study(database, "select study, coordinates, because from left_out not indexed"),
        stored.MOST_OF_REASONS // max(1, counts["cell"] + counts["set_aside"]),
        stored.MOST_OF_BECAUSE // max(1, counts["left_out"]),
    )


def _by_study(database: sqlite3.Connection, query: str) -> Mapping[str, Sequence[sqlite3.Row]]:
    found: dict[str, list[sqlite3.Row]] = {}
    for row in database.execute(query):
        found.setdefault(row["study"], []).append(row)
    return found


def _study(tables: _Tables, asked: study.Study, looked: Sequence[int], names: Mapping[str, str]) -> StudyRun:
    trials = tables.trials[asked.name]
    most = tables.most_of_reason
    set_aside = tuple(_set_aside(found, most) for found in tables.set_aside.get(asked.name, ()))
    # A cell that was tried again is no longer quarantined.
    still = {one.cell: one for one in set_aside if one.tried_again_s is None}
    cells = tuple(
        _row(
            found,
            names,
            most,
            still.get(found["key"]),
            *(tuple(trials.get((found["key"], repeat), ())) for repeat in (False, True)),
        )
        for found in tables.cells.get(asked.name, ())
    )
    for cell in cells:
        if cell.choice not in asked.family.choices:
            raise ValueError(f"a cell has the choice `{cell.choice[:MOST_OF_VERSION]}`, which its family does not have")
    if len({frozenset(LOADS) & frozenset(cell.coordinates) for cell in cells}) > 1:
        raise ValueError("the cells of a study must all have the same kind of load, or none")
    if len({frozenset(cell.coordinates.items()) for cell in cells}) < len(cells):
        raise ValueError("two cells of a study must not have the same coordinates")
    _refuse_more(asked, cells)
    left_out = tables.left_out.get(asked.name, ())
    most = tables.most_of_because
    said = tuple((stored.coordinates(found["coordinates"]), cut(found["because"], most)) for found in left_out)
    return StudyRun(asked, cells, said, tuple(looked), set_aside)


def _refuse_more(asked: study.Study, cells: Sequence[Row]) -> None:
    """Raise ValueError for more comparisons of cells than a study may ask for."""
    kinds = {frozenset(cell.coordinates) for cell in cells}
    names, together = len(frozenset().union(*kinds)), sum(len(cell.coordinates) for cell in cells)
    if names > MOST_COORDINATES:
        raise ValueError(f"cells with {names:,} different coordinates; a study has at most {MOST_COORDINATES}")
    if len(kinds) > MOST_KINDS:
        raise ValueError(f"cells with {len(kinds):,} different sets of coordinates; a study has at most {MOST_KINDS}")
    if together > MOST_COORDINATES_OF_ALL:
        raise ValueError(f"{together:,} coordinates of all cells; a study has at most {MOST_COORDINATES_OF_ALL:,}")
    if (tabled := len(cells) * len(asked.tables)) > MOST_TABLED:
        raise ValueError(f"{tabled:,} places of cells in tables; a study has at most {MOST_TABLED:,}")
    compared = len(cells) * (len(asked.claims) + len(asked.tables))
    if compared > MOST_CLAIMED:
        raise ValueError(f"{compared:,} comparisons of cells with claims and tables; at most {MOST_CLAIMED:,}")


def _set_aside(found: sqlite3.Row, most_of_reason: int) -> SetAside:
    columns = {name: found[name] for name in found.keys() if name != "ord"}  # noqa: SIM118
    columns["reason"] = cut(columns["reason"], most_of_reason)
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
    most_of_reason: int,
    set_aside: SetAside | None,
    trials: tuple[Trial, ...],
    repeats: tuple[Trial, ...],
) -> Row:
    outcome, reason = _outcome(found, sorted((*trials, *repeats), key=lambda trial: trial.order))
    reason = reason and cut(reason, most_of_reason)
    columns = {name: found[name] for name in ("key", "title", "strength", "against", "known_answers", "server_version")}
    columns |= {name: stored.words(found[name]) for name in ("accepted", "refused", "not_tried")}
    coordinates = stored.coordinates(found["coordinates"])
    if "server" in coordinates:
        # Earlier versions kept the query of a URL.
        coordinates = {**coordinates, "server": without_values(str(coordinates["server"]))}
        columns["server_version"] = columns["server_version"] and without_values(columns["server_version"])
    if not {"choice", "provider", "op"} <= coordinates.keys():
        raise ValueError("a cell needs a choice, a provider and an operation")
    spec = str(coordinates["provider"])
    columns |= {"coordinates": coordinates, "provider": names.get(spec, spec)}
    columns |= {"standing": Standing(found["standing"])}
    return Row(**columns, outcome=outcome, reason=reason, trials=trials, repeats=repeats, set_aside=set_aside)


def _outcome(found: sqlite3.Row, trials: Sequence[Trial]) -> tuple[Outcome, str | None]:
    """Return the outcome of a cell: its proof's, or that of its last failed trial if half or more of them failed.

    A cell that fails now and then still has a cost; one that fails in half of its trials is not what was proven.
    """
    if found["outcome"] is None:
        return Outcome.FAILED, "the run ended before it was verified"
    proof = Outcome(found["outcome"])
    failed = [trial for trial in trials if trial.outcome is not Outcome.OK]
    if proof is not Outcome.OK or 2 * len(failed) < len(trials) or not failed:
        return proof, found["reason"]
    return failed[-1].outcome, failed[-1].reason
