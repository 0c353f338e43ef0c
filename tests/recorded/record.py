"""Record a run for `tests/test_recorded.py`: the chunks of one of its studies, and nothing else.

    python tests/recorded/record.py RUN_DIRECTORY STUDY > tests/recorded/NAME.json.gz

The output is gzipped JSON: the quickest probe that earlier runs knew (or null), the cells as
[title, place of the cell it is compared with, or null], and a row for each chunk with `COLUMNS`, of successful trials.
Nothing in it identifies the machine or its user.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from tollbar import results
from tollbar.core.records import Chunk, Outcome
from tollbar.results import Run

COLUMNS = (
    *("cell", "repeat", "block", "batch", "round", "made_up", "operations", "cost_ns"),
    # The second value is of the probes within a long chunk.
    *("before_ns", "within_ns", "after_ns"),
)


def document(run: Run, name: str) -> dict[str, Any]:
    """Return the recorded part of a run's study."""
    (found,) = (one for one in run.studies if one.study.name == name)
    places = {row.key: place for place, row in enumerate(found.rows)}
    chunks = [
        (
            places[row.key],
            int(trial.repeat),
            trial.block,
            trial.batch,
            chunk.round,
            int(chunk.is_made_up),
            chunk.operations,
            sum(chunk.cpu_ns.get(component, 0) for component in trial.paid_by),
            *_probes(chunk),
        )
        for row in found.rows
        for trial in row.all_trials
        if trial.outcome is Outcome.OK
        for chunk in trial.chunks
    ]
    cells = [(row.title, places.get(row.against or "")) for row in found.rows]
    return {"best_probe_ns": run.best_probe_ns, "columns": COLUMNS, "cells": cells, "chunks": chunks}


def _probes(chunk: Chunk) -> tuple[int | None, int | None, int | None]:
    if chunk.probes_ns is None:
        return None, None, None
    before, *within, after = map(round, chunk.probes_ns)
    return before, max(within, default=None), after


def packed(run: Run, name: str) -> bytes:
    """Return the file's bytes, equal for equal runs."""
    text = json.dumps(document(run, name), separators=(",", ":"))
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} RUN_DIRECTORY STUDY > NAME.json.gz")
    sys.stdout.buffer.write(packed(results.read(Path(sys.argv[1])), sys.argv[2]))
