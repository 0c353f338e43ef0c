"""What was seen in a trial's rounds, as it is stored: by component and metric, the values of all rounds in a row.

One row for each value would be as right and take ten times the room and the time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tollbar.records import Chunk

Series = Mapping[tuple[str, str], Sequence[float | None]]
"""By (component, metric), the value of each round."""

TRIAL = ""
"""The component of what is the whole trial's."""
ROUND, OPERATIONS, WALL, CPU = "round", "operations", "wall", "cpu"
"""Metrics: the round's number, operations, elapsed and CPU nanoseconds."""
BEFORE, WITHIN, AFTER, MADE_UP = "probe-before", "probe-within", "probe-after", "made-up"
"""Metrics: nanoseconds of the probes before, during and after a chunk, and whether the round was made up."""
_PROBES = (BEFORE, WITHIN, AFTER)
_OWN = (ROUND, OPERATIONS, WALL, CPU, *_PROBES, MADE_UP)


def series_of(chunks: Sequence[Chunk]) -> Iterator[tuple[str, str, str]]:
    """(component, metric, values as text) of a trial's chunks."""
    if not chunks:
        return
    yield TRIAL, ROUND, _text([chunk.round for chunk in chunks])
    yield TRIAL, OPERATIONS, _text([chunk.operations for chunk in chunks])
    yield TRIAL, WALL, _text([chunk.wall_ns for chunk in chunks])
    for metric, values in zip(_PROBES, zip(*map(_before_within_after, chunks), strict=True), strict=True):
        if any(value is not None for value in values):
            yield TRIAL, metric, _text(values)
    if any(chunk.is_made_up for chunk in chunks):
        yield TRIAL, MADE_UP, _text([int(chunk.is_made_up) for chunk in chunks])
    for component in dict.fromkeys(name for chunk in chunks for name in chunk.cpu_ns):
        yield component, CPU, _text([chunk.cpu_ns.get(component) for chunk in chunks])
    for component, metric in dict.fromkeys(key for chunk in chunks for key in chunk.observed):
        yield component, metric, _text([chunk.observed.get((component, metric)) for chunk in chunks])


def chunks_of(series: Series) -> tuple[Chunk, ...]:
    """A trial's chunks, in the order of its rounds."""
    paid = {component: values for (component, metric), values in series.items() if metric == CPU}
    observed = {key: values for key, values in series.items() if key[1] not in _OWN}
    operations = series.get((TRIAL, OPERATIONS), ())
    probes = [series[TRIAL, metric] for metric in _PROBES if (TRIAL, metric) in series]
    # A run has a hundred thousand chunks: by columns, and without a comprehension where there is nothing to choose.
    return tuple(
        Chunk(
            int(number or 0),
            int(count or 0),
            int(wall_ns or 0),
            {name: int(ns) for name, ns in zip(paid, paid_ns, strict=True) if ns is not None},
            {key: value for key, value in zip(observed, seen, strict=True) if value is not None} if observed else {},
            (tuple(ns for ns in probes_ns if ns is not None) if None in probes_ns else probes_ns) or None,
            bool(is_made_up),
        )
        for number, count, wall_ns, paid_ns, seen, probes_ns, is_made_up in zip(
            series[TRIAL, ROUND] if operations else (),
            operations,
            series[TRIAL, WALL] if operations else (),
            _rows(paid.values(), len(operations)),
            _rows(observed.values(), len(operations)),
            _rows(probes, len(operations)),
            series.get((TRIAL, MADE_UP)) or (0,) * len(operations),
            strict=True,
        )
    )


def _rows(columns: Collection[Sequence[float | None]], count: int) -> Iterable[tuple[float | None, ...]]:
    return zip(*columns, strict=True) if columns else ((),) * count


def _before_within_after(chunk: Chunk) -> tuple[float | None, float | None, float | None]:
    if chunk.probes_ns is None:
        return None, None, None
    before, *within, after = chunk.probes_ns
    return before, max(within, default=None), after


def _text(values: Sequence[float | None]) -> str:
    return json.dumps(values, separators=(",", ":"))
