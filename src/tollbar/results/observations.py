"""What was seen in a trial's rounds, as it is stored: by component and metric, the values of all rounds in a row.

One row for each value would be as right and take ten times the room and the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tollbar.measure.trial import Chunk

Series = Mapping[tuple[str, str], Sequence[int | None]]
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


def chunks_of(series: Series) -> tuple[Chunk, ...]:
    """A trial's chunks, in the order of its rounds."""
    paid = {component: values for (component, metric), values in series.items() if metric == CPU}
    return tuple(
        Chunk(number, operations, wall_ns, {name: ns for name, ns in zip(paid, each, strict=True) if ns is not None})
        for number, operations, wall_ns, *each in zip(
            *(series.get((TRIAL, metric), ()) for metric in (ROUND, OPERATIONS, WALL)), *paid.values(), strict=True
        )
    )


def _text(values: Sequence[int | None]) -> str:
    return json.dumps(values, separators=(",", ":"))
