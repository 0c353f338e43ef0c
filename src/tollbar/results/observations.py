"""What was seen in a trial's rounds, as it is stored: by component and metric, the values of all rounds in a row.

One row for each value would be as right and take ten times the room and the time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from tollbar.records import Chunk, Chunks
from tollbar.records.load import MOST

Series = Mapping[tuple[str, str], Sequence[Any]]
"""By (component, metric), the value of each round."""

TRIAL = ""
"""The component of what is the whole trial's."""
ROUND, OPERATIONS, WALL, CPU = "round", "operations", "wall", "cpu"
"""Metrics: the round's number, operations, elapsed and CPU nanoseconds."""
BEFORE, WITHIN, AFTER, MADE_UP = "probe-before", "probe-within", "probe-after", "made-up"
"""Metrics: nanoseconds of the probes before, during and after a chunk, and whether the round was made up."""
_PROBES = (BEFORE, WITHIN, AFTER)
_WHOLE: Mapping[str, Set[type]] = {ROUND: {int}, OPERATIONS: {int}, WALL: {int}, CPU: {int, type(None)}}
_ANY: Set[type] = {int, float, type(None)}
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


def chunks_of(series: Series) -> Sequence[Chunk]:
    """A trial's chunks, in the order of its rounds. Raises ValueError where a series is none that Tollbar writes."""
    operations = series.get((TRIAL, OPERATIONS), [])
    if not isinstance(operations, list):
        raise ValueError(f"{OPERATIONS}: not a value of each round")
    if not operations:
        return ()
    for (_, metric), values in series.items():
        _refuse_odd(metric, values, len(operations))
    if missing := {ROUND, WALL} - {metric for component, metric in series if component == TRIAL}:
        raise ValueError(f"a trial without {', '.join(sorted(missing))}")
    probed = [metric for metric in _PROBES if (TRIAL, metric) in series]
    if probed not in ([], [BEFORE, AFTER], [*_PROBES]):
        raise ValueError(f"a trial with {' and '.join(probed)} alone")
    made_up = series.get((TRIAL, MADE_UP))
    return Chunks(
        rounds=series[TRIAL, ROUND],
        operations=operations,
        wall_ns=series[TRIAL, WALL],
        cpu_ns={component: values for (component, metric), values in series.items() if metric == CPU},
        observed={key: values for key, values in series.items() if key[1] not in _OWN},
        probes_ns=[series[TRIAL, metric] for metric in probed],
        made_up=[bool(one) for one in made_up] if made_up else [False] * len(operations),
    )


def _refuse_odd(metric: str, values: object, rounds: int) -> None:
    """Raises ValueError where these are no values of so many rounds: what others send is read as well."""
    if not isinstance(values, list) or len(values) != rounds:
        raise ValueError(f"{metric}: not a value of each round")
    kinds = {*map(type, values)}
    if not kinds <= _WHOLE.get(metric, _ANY):
        raise ValueError(f"{metric}: not a number of each round")
    most = MOST if metric in _WHOLE else sys.float_info.max
    # What is no number is within no limits.
    if not all(-most <= value <= most for value in values if value is not None):
        raise ValueError(f"{metric}: beyond what a chunk can have")


def _before_within_after(chunk: Chunk) -> tuple[float | None, float | None, float | None]:
    if chunk.probes_ns is None:
        return None, None, None
    before, *within, after = chunk.probes_ns
    return before, max(within, default=None), after


def _text(values: Sequence[float | None]) -> str:
    return json.dumps(values, separators=(",", ":"))
