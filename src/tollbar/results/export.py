"""Every trial of a run, for other programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tollbar.errors import TollbarError
from tollbar.results.run import Run
from tollbar.runner import LoadRecord


def export(run: Run, form: str, to: Path | None) -> None:
    """Writes a run's trials as `csv`, `json` or `parquet`, to a file or to standard output (not parquet)."""
    rows = list(_rows(run))
    if form == "parquet":
        _parquet(rows, to)
        return
    if to is None:
        _write(rows, form, sys.stdout)
        return
    try:
        with open(to, "w", encoding="utf-8", newline="") as out:
            _write(rows, form, out)
    except OSError as error:
        raise TollbarError(f"cannot be written: {error}", where=str(to)) from error


def _write(rows: list[dict[str, Any]], form: str, out: TextIO) -> None:
    if form == "json":
        json.dump(rows, out, indent=1)
        out.write("\n")
        return
    names = list(dict.fromkeys(name for row in rows for name in row if name != "batches"))
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    for one in run.studies:
        for row in one.rows:
            for trial in (*row.trials, *row.twins):
                yield {
                    "study": one.study.name,
                    **row.coordinates,
                    "standing": str(row.standing),
                    "strength": row.strength,
                    "twin": trial.twin,
                    "block": trial.block,
                    "order": trial.order,
                    "started_s": trial.started_s,
                    "outcome": str(trial.outcome),
                    "reason": trial.reason,
                    "operations": trial.operations,
                    "cpu_ns": trial.cpu_ns,
                    "wall_ns": trial.wall_ns,
                    "memory_bytes": trial.memory_bytes,
                    "steal_ns": trial.steal_ns,
                    "machine_load": trial.machine_load,
                    **(_of_load(trial.load) if trial.load else {}),
                    "batches": [list(batch) for batch in trial.batches],
                }


def _of_load(load: LoadRecord) -> dict[str, Any]:
    """What a load client saw, and the cost of each component."""
    return {
        "requests": load.requests,
        "requests_per_s": load.requests_per_s,
        "latency_p50_us": load.latency_at(0.50),
        "latency_p95_us": load.latency_at(0.95),
        "latency_p99_us": load.latency_at(0.99),
        "bytes_sent": load.bytes_sent,
        "bytes_received": load.bytes_received,
        "connections": load.connections,
        "handshakes_full": load.handshakes_full,
        "handshakes_resumed": load.handshakes_resumed,
        "client_cpu_ns": load.client_cpu_ns,
        "client_busy": load.client_busy,
        "client_held_up_ns": load.client_held_up_ns,
        **{
            f"{name}_{what}": value
            for name, component in load.components.items()
            for what, value in component.model_dump().items()
        },
    }


def _parquet(rows: list[dict[str, Any]], to: Path | None) -> None:
    if to is None:
        raise TollbarError("parquet is written to a file", hint="say which with --to trials.parquet")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise TollbarError("parquet needs pyarrow", hint="pip install 'tollbar[parquet]'") from error
    names = dict.fromkeys(name for row in rows for name in row)
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in names})
    try:
        pyarrow.parquet.write_table(table, to)
    except OSError as error:
        raise TollbarError(f"cannot be written: {error}", where=str(to)) from error
