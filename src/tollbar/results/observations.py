"""What was seen in a trial's rounds, as it is stored: by component and metric, the values of all rounds in a row.

One row for each value would be as right and take ten times the room and the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tollbar.measure.trial import Chunk

Series = Mapping[tuple[str, str], Sequence[float | None]]
"""By (component, metric), the value of each round."""

TRIAL = ""
"""The component of what is the whole trial's."""
ROUND, OPERATIONS, WALL, CPU = "round", "operations", "wall", "cpu"
"""Metrics: the round's number, operations, elapsed and CPU nanoseconds."""


def series_of(chunks: Sequence[Chunk]) -> Iterator[tuple[str, str, str]]:
    """(component, metric, values as text) of a trial's chunks."""
    if not chunks:
        return
    yield TRIAL, ROUND, _text([chunk.round for chunk in chunks])
    yield TRIAL, OPERATIONS, _text([chunk.operations for chunk in chunks])
    yield TRIAL, WALL, _text([chunk.wall_ns for chunk in chunks])
    for component in dict.fromkeys(name for chunk in chunks for name in chunk.cpu_ns):
        yield component, CPU, _text([chunk.cpu_ns.get(component) for chunk in chunks])
    for component, metric in dict.fromkeys(key for chunk in chunks for key in chunk.observed):
        yield component, metric, _text([chunk.observed.get((component, metric)) for chunk in chunks])


def chunks_of(series: Series) -> tuple[Chunk, ...]:
    """A trial's chunks, in the order of its rounds."""
    paid = {component: values for (component, metric), values in series.items() if metric == CPU}
    observed = {key: values for key, values in series.items() if key[1] not in (ROUND, OPERATIONS, WALL, CPU)}
    return tuple(
        Chunk(
            int(series[TRIAL, ROUND][index] or 0),
            int(operations or 0),
            int(series[TRIAL, WALL][index] or 0),
            {name: int(ns) for name, values in paid.items() if (ns := values[index]) is not None},
            {key: value for key, values in observed.items() if (value := values[index]) is not None},
        )
        for index, operations in enumerate(series.get((TRIAL, OPERATIONS), ()))
    )


def _text(values: Sequence[float | None]) -> str:
    return json.dumps(values, separators=(",", ":"))
