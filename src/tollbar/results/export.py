"""Export of a run's chunks, or of other rows, for other programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from tollbar.core import units
from tollbar.core.errors import MOST_LETTERS, TollbarError, cut, one_line, printable
from tollbar.core.files import open_to_write
from tollbar.core.markdown import escaped
from tollbar.core.records import Chunk, Chunks, LoadRecord, Trial
from tollbar.results.run import Row, Run

MOST_REPEATED = 256 << 20
"""Limit of the letters that all rows repeat of their cells and trials, twice those of the largest run. A stranger's
run may have long texts, and 300,000 chunks."""

Rows = Callable[[], Iterable[Mapping[str, Any]]]
"""Function that yields rows from the first to the last at each call: there may be too many to keep."""


def export(run: Run, form: str, to: Path | None) -> None:
    """Write a run's chunks as `csv`, `json` or `parquet`, to a file or to standard output (not parquet).

    A trial that failed before its first chunk has one row, without a round.
    """
    if form == "markdown":
        raise TollbarError(
            "`--format markdown` needs `--per cell`, because a run has too many chunks for a table",
            hint="`tollbar export RUN --per cell --format markdown`",
        )
    _refuse_more(run)
    write(lambda: _rows(run), form, to, lambda: _rows(run, every_chunk=False))


def write(rows: Rows, form: str, to: Path | None, telling: Rows | None = None) -> None:
    """Write rows as `csv`, `json`, `markdown` or `parquet`, to a file or to standard output (not parquet).

    Every column of any row becomes a column of all, in the order of first appearance. `telling` yields fewer rows that
    together have all columns. Raises TollbarError for a file that cannot be written.
    """
    telling = telling or rows
    if form == "parquet":
        _parquet(rows, to, telling)
        return
    write_as = _WRITERS[form]
    if to is None:
        write_as(rows, sys.stdout, telling)
        return
    try:
        with io.TextIOWrapper(open_to_write(to), encoding="utf-8", newline="") as out:
            write_as(rows, out, telling)
    except OSError as error:
        raise TollbarError(f"cannot be written: {error}", where=str(to)) from error


def free_names(coordinates: Iterable[str], columns: Collection[str]) -> dict[str, str]:
    """Return the name of each coordinate's column: for example `setting_reason` for `reason`.

    A family may give a parameter any name. With the name of another column, one of the two values would be lost.
    """
    names = dict.fromkeys(coordinates)
    taken = {*columns}
    found: dict[str, str] = {}
    for name in names:
        free = name
        while free in taken or (free != name and free in names):
            free = f"setting_{free}"
        taken.add(free)
        found[name] = free
    return found


def _csv(rows: Rows, out: TextIO, telling: Rows) -> None:
    names = _names(telling)
    # CSV may be printed on a terminal, so control characters are replaced; JSON escapes them. Cached, because most rows
    # have the same few words.
    shown = lru_cache(one_line if out is sys.stdout else printable)
    writer = csv.writer(out)
    writer.writerow(map(shown, names))
    for row in rows():
        found = map(row.get, names)
        writer.writerow([shown(value) if isinstance(value, str) else value for value in found])


def _json(rows: Rows, out: TextIO, _: Rows) -> None:
    out.write("[")
    for number, row in enumerate(rows()):
        out.write(",\n" if number else "\n")
        json.dump(row, out)
    out.write("\n]\n")


def _markdown(rows: Rows, out: TextIO, telling: Rows) -> None:
    names = [name for name in _names(telling) if any(row.get(name) is not None for row in rows())]
    heads = [escaped(name) for name in names]
    for cells in (heads, ["---"] * len(names), *([escaped(_text(row.get(name))) for name in names] for row in rows())):
        out.write(f"| {' | '.join(cells)} |\n")


def _text(value: object) -> str:
    if isinstance(value, float):
        # More figures than any interval supports.
        return f"{value:.6g}"
    return "" if value is None else str(value)


_WRITERS: Mapping[str, Callable[[Rows, TextIO, Rows], None]] = {"csv": _csv, "json": _json, "markdown": _markdown}


def _parquet(rows: Rows, to: Path | None, telling: Rows) -> None:
    if to is None:
        raise TollbarError("`--format parquet` needs `--output`", hint="for example `--output chunks.parquet`")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise TollbarError(
            "Parquet needs pyarrow, which is not installed", hint="pip install 'tollbar[parquet]'"
        ) from error
    columns: dict[str, list[Any]] = {name: [] for name in _names(telling)}
    for row in rows():
        for name, values in columns.items():
            values.append(row.get(name))
    try:
        with open_to_write(to) as out:
            pyarrow.parquet.write_table(pyarrow.table(columns), out)
    except OSError as error:
        raise TollbarError(f"cannot be written: {error}", where=str(to)) from error


def _names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(rows())))


def _rows(run: Run, *, every_chunk: bool = True) -> Iterator[dict[str, Any]]:
    """Yield a row for each chunk; or only rows that have all columns between them."""
    columns, coordinates = {"study"}, dict[str, None]()
    for row in (row for one in run.studies for row in one.rows):
        coordinates.update(dict.fromkeys(row.coordinates))
        columns.update(_of_cell(row))
        for trial in row.all_trials:
            columns.update(_of_trial(trial), _of_chunk(trial, trial.chunks[0] if trial.chunks else None))
    named = free_names(coordinates, columns)
    for one in run.studies:
        for row in one.rows:
            shown = {**row.coordinates, "provider": row.provider}
            of_cell = {"study": one.study.name, **{named[n]: v for n, v in shown.items()}, **_of_cell(row)}
            for trial in row.all_trials:
                of_trial = {**of_cell, **_of_trial(trial)}
                for chunk in (trial.chunks if every_chunk else _different(trial.chunks)) or (None,):
                    yield {**of_trial, **_of_chunk(trial, chunk)}


def _refuse_more(run: Run) -> None:
    """Raise TollbarError if the rows would repeat more than `MOST_REPEATED` letters."""
    repeated = 0
    for row in (row for one in run.studies for row in one.rows):
        of_cell = sum(len(str(one)) for one in (*row.coordinates.values(), row.provider, row.server_version or ""))
        repeated += sum(of_cell * len(trial.chunks) for trial in row.all_trials)
    if repeated > MOST_REPEATED:
        what = f"its chunks would repeat {units.show_bytes(repeated)} of the texts of their cells"
        limit = f"the limit is {units.show_bytes(MOST_REPEATED)}"
        hint = "`tollbar export RUN --per cell` writes each cell once"
        raise TollbarError(f"{what}; {limit}", where=str(run.directory), hint=hint)


def _different(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """Return only the first chunk if all chunks have the same columns, else all."""
    columns = Chunks.of(chunks)
    some_lack = any(None in values for of in (columns.cpu_ns, columns.observed) for values in of.values())
    return chunks if some_lack else chunks[:1]


def _of_cell(row: Row) -> dict[str, Any]:
    return {
        "server_version": row.server_version,
        "standing": str(row.standing),
        "strength": row.strength,
    }


_OF_TRIAL = ("repeat", "block", "batch", "order", "started_s", "outcome", "reason", "memory_bytes", "steal_ns",
             "machine_load")  # fmt: skip


def _of_trial(trial: Trial) -> dict[str, Any]:
    own = {name: getattr(trial, name) for name in _OF_TRIAL}
    if trial.reason is not None:
        own["reason"] = cut(trial.reason, MOST_LETTERS)
    return {**own, **(_of_load(trial.load) if trial.load else {})}


def _of_chunk(trial: Trial, chunk: Chunk | None) -> dict[str, Any]:
    """Return the chunk's own columns, by component if it has components; the other columns are its trial's."""
    if chunk is None:
        return {"round": None, "operations": None, "cpu_ns": None, "wall_ns": None}
    before_ns, *within_ns, after_ns = chunk.probes_ns or (None, None)
    return {
        "round": chunk.round,
        "made_up": chunk.is_made_up,
        "probe_before_ns": before_ns,
        "probe_within_ns": max(filter(None, within_ns), default=None),
        "probe_after_ns": after_ns,
        "operations": chunk.operations,
        "cpu_ns": sum(chunk.cpu_ns.get(name, 0) for name in trial.paid_by),
        "wall_ns": chunk.wall_ns,
        **{f"{name}_cpu_ns": ns for name, ns in chunk.cpu_ns.items()},
        **{"_".join(filter(None, key)): value for key, value in chunk.observed.items()},
    }


_SEEN = ("bytes_sent", "bytes_received", "connections", "handshakes_full", "handshakes_resumed", "client_busy",
         "client_run_queue_wait_ns")  # fmt: skip


def _of_load(load: LoadRecord) -> dict[str, Any]:
    """Return a load client's counts in its throughput phase, or in all chunks of a trial together."""
    return {
        "requests": load.requests,
        "requests_per_s": load.requests_per_s if load.is_settled else None,
        **{f"latency_p{share}_us": load.latency_at(share / 100) or None for share in (50, 95, 99)},
        **{name: getattr(load, name) for name in _SEEN},
        **{
            f"{name}_{what}": value
            for name, component in load.components.items()
            for what, value in component.model_dump(exclude={"cpu_ns"}).items()
        },
    }
