"""Observations in a trial's rounds, as they are stored: by component and metric, the values of all rounds in a row.

A row for each value would take ten times the room and the time.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import isfinite
from typing import Any

from tollbar.core.records import Chunk, Chunks
from tollbar.core.records.load import MOST

Series = Mapping[tuple[str, str], Sequence[Any]]
"""Values of each round by (component, metric)."""

TRIAL = ""
"""Component of the values that belong to the whole trial."""
ROUND, OPERATIONS, WALL, CPU = "round", "operations", "wall", "cpu"
"""Metrics: the round's number, operations, elapsed and CPU nanoseconds."""
BEFORE, WITHIN, AFTER, MADE_UP = "probe-before", "probe-within", "probe-after", "made-up"
"""Metrics: nanoseconds of the probes before, during and after a chunk, and whether the round was made up."""
_PROBES = (BEFORE, WITHIN, AFTER)
_WHOLE: Mapping[str, Set[type]] = {ROUND: {int}, OPERATIONS: {int}, WALL: {int}, CPU: {int, type(None)}}
_ANY: Set[type] = {int, float, type(None)}
_OWN = (ROUND, OPERATIONS, WALL, CPU, *_PROBES, MADE_UP)

MOST_VALUES = 3_000_000
"""Limit of the values of a run: ten times those of the set `sources`, which has 149 cells and measures for 26 minutes.
A stranger's run of this size is judged in some 5 s of CPU time and 300 MiB.
"""
MOST_VALUES_OF_SERIES = 200_000
"""Limit of the values of one text: two for each slice of 10,000 rounds, because a lost round may be measured again."""

MOST_SERIES = 400_000
"""Limit of the series of all trials, four times those of the set `sources`, in which a trial has up to 19.

Each takes as long to read as some 50 values: a run of three million series with one value took half a minute.
"""

MOST_TRIALS = 50_000
"""Limit of the trials of a run, ten times those of the set `sources`.

To judge this number, of 1,450 cells, takes some 6 s.
"""
MOST_LOAD_LETTERS = 12 << 20
"""Limit of the letters of all trials' load reports: in memory they take some twenty times as much."""


def values_of(text: str) -> int:
    """Return the number of values of a series that has some, without reading them."""
    return text.count(",") + 1


@dataclass(frozen=True, slots=True)
class Count:
    """Size of a run, for which there are limits."""

    values: int = 0
    values_of_series: int = 0
    """Number of values in its longest series."""
    trials: int = 0
    load_letters: int = 0
    """Letters of its load clients' reports."""
    series: int = 0
    """Number of its series: one for each trial, component and metric."""

    def plus(self, series: Sequence[int], loads: Sequence[str | None]) -> Count:
        """Return the count plus a batch, given the number of values of each series and the load of each trial."""
        return Count(
            self.values + sum(series),
            max(self.values_of_series, *series, 0),
            self.trials + len(loads),
            self.load_letters + sum(len(load or "") for load in loads),
            self.series + len(series),
        )


def refuse_more(count: Count) -> None:
    """Raise ValueError for more than a run, or one series, may have. Writers check it too."""
    if count.values_of_series > MOST_VALUES_OF_SERIES:
        what = f"{count.values_of_series:,} values of one trial, component and metric"
        raise ValueError(f"{what}; a trial has at most {MOST_VALUES_OF_SERIES:,}")
    if count.values > MOST_VALUES:
        raise ValueError(f"{count.values:,} values of all trials; a run has at most {MOST_VALUES:,}")
    if count.series > MOST_SERIES:
        raise ValueError(f"{count.series:,} series of values of all trials; a run has at most {MOST_SERIES:,}")
    if count.trials > MOST_TRIALS:
        raise ValueError(f"{count.trials:,} trials; a run has at most {MOST_TRIALS:,}")
    if count.load_letters > MOST_LOAD_LETTERS:
        what = f"{count.load_letters:,} letters of what load clients report"
        raise ValueError(f"{what}; a run has at most {MOST_LOAD_LETTERS:,}")


def series_of(chunks: Sequence[Chunk]) -> Iterator[tuple[str, str, str]]:
    """Yield (component, metric, values as text) of a trial's chunks."""
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
    """Return a trial's chunks, by round. Raises ValueError for a series that Tollbar never writes."""
    operations = series.get((TRIAL, OPERATIONS), ())
    if not operations:
        return ()
    if {*map(len, series.values())} != {len(operations)}:
        metric = next(metric for (_, metric), values in series.items() if len(values) != len(operations))
        raise ValueError(f"{metric}: must have a value for each round")
    columns = _columns_of(tuple(series))
    made_up = series.get((TRIAL, MADE_UP))
    return Chunks(
        rounds=series[TRIAL, ROUND],
        operations=operations,
        wall_ns=series[TRIAL, WALL],
        cpu_ns={component: series[component, CPU] for component in columns.paying},
        observed={key: series[key] for key in columns.observed},
        probes_ns=[series[TRIAL, metric] for metric in columns.probed],
        made_up=[bool(one) for one in made_up] if made_up else [False] * len(operations),
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Uses of a trial's series."""

    paying: Sequence[str]
    """Components with CPU time."""
    observed: Sequence[tuple[str, str]]
    probed: Sequence[str]


@lru_cache(maxsize=100)
def _columns_of(keys: Sequence[tuple[str, str]]) -> _Columns:
    """Return the use of each series; cached, because the trials of a run have the same few sets of them.

    Raises ValueError for a set that no trial has.
    """
    if missing := [metric for metric in (ROUND, WALL) if (TRIAL, metric) not in keys]:
        raise ValueError(f"a trial needs {', '.join(missing)}")
    probed = [metric for metric in _PROBES if (TRIAL, metric) in keys]
    if probed not in ([], [BEFORE, AFTER], [*_PROBES]):
        raise ValueError(f"a trial cannot have {' and '.join(probed)} alone")
    paying = [component for component, metric in keys if metric == CPU]
    return _Columns(paying, [key for key in keys if key[1] not in _OWN], probed)


def refuse_odd(metric: str, series: Sequence[Any]) -> None:
    """Raise ValueError unless these series of a metric are lists of its numbers: runs of strangers are read too."""
    if not all(isinstance(values, list | array) for values in series):
        raise ValueError(f"{metric}: must have a value for each round")
    # Lists together, because a set of each takes longer than all their values.
    lists = chain.from_iterable(values for values in series if isinstance(values, list))
    codes = {values.typecode for values in series if isinstance(values, array)}
    kinds: Set[type] = {*map(type, lists), *(_KIND_OF_CODE[code] for code in codes)}
    if not kinds <= _WHOLE.get(metric, _ANY):
        raise ValueError(f"{metric}: must have a number for each round")

    def known() -> Iterator[float]:
        values = chain.from_iterable(series)
        return values if type(None) not in kinds else (value for value in values if value is not None)

    if metric in _WHOLE:
        is_in_range = -MOST <= min(known(), default=0) and max(known(), default=0) <= MOST
    else:
        is_in_range = _are_finite(known())
    if not is_in_range:
        raise ValueError(f"{metric}: out of the range of a chunk")


def _are_finite(values: Iterable[float]) -> bool:
    try:
        return all(map(isfinite, values))
    except OverflowError:
        # An integer beyond the range of a double.
        return False


_KIND_OF_CODE: Mapping[str, type] = {"q": int, "d": float}


def packed(values: Any) -> Any:
    """Return a list of numbers as an array, of 8 bytes each instead of 40; anything else unchanged."""
    if not isinstance(values, list):
        return values
    kinds = {*map(type, values)}
    if kinds not in ({int}, {float}):
        return values
    try:
        return array("q" if kinds == {int} else "d", values)
    except OverflowError:
        # Refused later, with its metric.
        return values


def _before_within_after(chunk: Chunk) -> tuple[float | None, float | None, float | None]:
    if chunk.probes_ns is None:
        return None, None, None
    before, *within, after = chunk.probes_ns
    return before, max(within, default=None), after


def _text(values: Sequence[float | None]) -> str:
    return json.dumps(values, separators=(",", ":"))
