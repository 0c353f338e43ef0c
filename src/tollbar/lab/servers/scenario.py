"""Scenario as the load client gets it: with the values of files and the environment, by its standard input only."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tollbar.core.errors import TollbarError
from tollbar.core.files import read_bytes, read_text
from tollbar.study.scenario import WireScenario, WireStep, WireValue

# The load client reads a task of at most 16 MiB.
MOST_CSV_BYTES = 8 * 1024 * 1024
"""Limit of all CSV files of a scenario together, which may be a stranger's: a hundred of this size took 40 s."""
MOST_ROWS = 100_000
"""Limit of the rows of all CSV files together."""
MOST_COLUMNS = 1000
# Several names may have the same column, and each has its own copy in the task.
MOST_LETTERS = 12 * 1024 * 1024
MOST_SECRET_BYTES = 64 * 1024
HIDDEN = "(not shown)"
_FEWER = "use fewer rows, or one file for several values"


def exchange_of(scenario: WireScenario, through: str | None = None, *, is_shown: bool = False) -> dict[str, Any]:
    """Return the field `load.exchange` of a task whose passes end with the step `through`; None: the last one.

    `is_shown`: for display, without the values of files and the environment. Raises TollbarError for a file or a
    variable that is missing.
    """
    sources, values = _sources(scenario, is_shown)
    steps = scenario.step if through is None else scenario.step[: scenario.names.index(through) + 1]
    names = [step.name or name.partition(" ")[2] for name, step in zip(scenario.names, steps, strict=False)]
    signed = scenario.sign_in
    if signed is not None and signed.krb5_config is not None and not is_shown:
        # The load client's library would wait for a pipe, and read an endless device.
        read_bytes(Path(signed.krb5_config), pipes=False)
        if ":" in signed.krb5_config:
            # The library would read other files, which can name code to load.
            what = "the path of `krb5-config` has a colon, which separates files in KRB5_CONFIG; it must have none"
            raise TollbarError(what, where=signed.krb5_config, hint="move the file to another folder")
    return {
        "scheme": "scenario",
        "sources": sources,
        "values": values,
        "sign_in": None
        if signed is None
        else {**signed.model_dump(exclude={"krb5_config"}), "krb5_config": signed.krb5_config},
        "steps": [_step(name, step) for name, step in zip(names, steps, strict=True)],
    }


def _step(name: str, step: WireStep) -> dict[str, Any]:
    return {
        "name": name,
        "method": step.method,
        "path": step.target,
        "headers": [*step.headers.items()],
        "body": step.body,
        "form": None if step.form is None else [*step.fields],
        "status": step.expect.status,
        "text": step.expect.text,
        "capture": {value: place.named for value, place in step.capture.items()},
        "once": step.once,
    }


def _sources(scenario: WireScenario, is_shown: bool) -> tuple[list[dict[str, Any]], dict[str, tuple[int, int]]]:
    """Return the sources of values, and the source and column of each name; columns of a file share their rows."""
    sources: list[dict[str, Any]] = []
    values: dict[str, tuple[int, int]] = {}
    columns: dict[str, list[str]] = {}
    letters = csv_rows = csv_bytes = 0
    for name, value in scenario.values.items():
        if value.csv is not None:
            columns.setdefault(value.csv, []).append(name)
            continue
        values[name] = (len(sources), 0)
        sources.append(_single(name, value, is_shown))
    for file, names in columns.items():
        values |= {name: (len(sources), place) for place, name in enumerate(names)}
        wanted = [str(scenario.values[name].column) for name in names]
        rows = [[HIDDEN] * len(wanted)]
        if not is_shown:
            text = read_text(Path(file), MOST_CSV_BYTES)
            csv_bytes += len(text.encode())
            if csv_bytes > MOST_CSV_BYTES:
                most = f"{MOST_CSV_BYTES // 1024**2} MiB"
                what = f"is larger than {most} with the other CSV files of the scenario; {most} is their limit"
                raise TollbarError(what, where=file, hint=_FEWER)
            rows = _rows(text, file, wanted, MOST_ROWS - csv_rows)
            csv_rows += len(rows)
        letters += sum(len(text) for row in rows for text in row)
        if letters > MOST_LETTERS:
            hint = "use fewer rows, or fewer values of them"
            raise TollbarError(
                f"the values of its users have more than {MOST_LETTERS:,} letters", where=file, hint=hint
            )
        sources.append({"rows": rows, "is_secret": True, "is_of_user": True})
    return sources, values


def _single(name: str, value: WireValue, is_shown: bool) -> dict[str, Any]:
    if value.range is not None:
        return {"range": value.range}
    if value.items is not None:
        return {"rows": [[one] for one in value.items]}
    return {"rows": [[HIDDEN if is_shown else _secret(name, value)]], "is_secret": True}


def _secret(name: str, value: WireValue) -> str:
    if value.file is not None:
        text = read_text(Path(value.file), MOST_SECRET_BYTES).removesuffix("\n")
    else:
        text = os.environ.get(str(value.env), "")
    if not text:
        source = (
            f"the environment variable `{value.env}` is not set" if value.env else f"the file {value.file} is empty"
        )
        hint = f"`export {value.env}=…` sets it" if value.env else "write the secret into it"
        raise TollbarError(f"{source}; the scenario's value `{name}` needs it", hint=hint)
    return text


def _rows(text: str, where: str, wanted: Sequence[str], most: int) -> list[list[str]]:
    """Return these columns of all rows of a CSV file, at most this number, whose first line names them."""
    # Only line feeds end a line: `splitlines` would also cut a password at U+2028.
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(lines, [])
        if len(header) > MOST_COLUMNS:
            raise TollbarError(f"has {len(header):,} columns; the limit is {MOST_COLUMNS:,}", where=where)
        places = []
        for column in wanted:
            if column not in header:
                # Without its first line, the file begins with an account: no name of it is printed.
                what = f"has no column `{column}`; the first line must name the columns"
                raise TollbarError(what, where=where)
            places.append(header.index(column))
        rows = []
        for row in lines:
            if not row:
                continue
            if len(row) != len(header):
                # The line may hold a password, and is not printed.
                what = f"line {lines.line_num} has {len(row)} fields; the first line has {len(header)}"
                raise TollbarError(what, where=where)
            rows.append([row[place] for place in places])
            if len(rows) > most:
                what = f"has more than {MOST_ROWS:,} rows with the other CSV files of the scenario, the limit"
                raise TollbarError(what, where=where, hint=_FEWER)
    except csv.Error as error:
        raise TollbarError(f"line {lines.line_num} is not CSV: {error}", where=where) from error
    if not rows:
        raise TollbarError("has no rows below its first line, which names the columns", where=where)
    return rows
