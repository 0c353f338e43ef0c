"""Measurements: what each cell cost in itself, for the tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from tollbar.judge.costs import Ledger, cost
from tollbar.judge.decisions import Terms
from tollbar.judge.verdicts import Limit, Measurement
from tollbar.measure import Outcome, Trial
from tollbar.results import Row
from tollbar.runner import LoadRecord
from tollbar.stats import ratio_interval

# (metric, unit, how a trial gives it). Memory that did not grow is not listed: a logarithm has no zero.
_OF_RUNNERS: tuple[tuple[str, str, Callable[[Trial], float]], ...] = (
    ("wall", "ns/op", lambda trial: trial.wall_ns / trial.operations),
    ("memory", "B", lambda trial: float(trial.memory_bytes)),
)
# The same of what a load client saw, and whether a busy client or an idle server takes its meaning away.
_OF_LOADS: tuple[tuple[str, str, Callable[[LoadRecord], float], bool], ...] = (
    ("client-cpu", "ns/op", lambda load: load.client_cpu_ns / max(load.requests, 1), False),
    ("throughput", "1/s", lambda load: load.requests_per_s, True),
    ("latency-p50", "us", lambda load: load.latency_at(0.50), True),
    ("latency-p95", "us", lambda load: load.latency_at(0.95), True),
    ("latency-p99", "us", lambda load: load.latency_at(0.99), True),
    ("server-memory", "B", lambda load: float(sum(c.memory_bytes for c in load.components.values())), False),
)
# Above this the client's core is what limits the requests, below it the server's core has time to spare.
BUSY = 0.70


def measurements(ledger: Ledger, terms: Terms) -> tuple[Measurement, ...]:
    """Cost per operation of every cell that was measured, and what else its trials show."""
    return tuple(m for row in ledger.rows if ledger.why_nothing(row) is None for m in _of(row, ledger.metric, terms))


def limit_of(trials: Sequence[Trial]) -> Limit | None:
    """What limited the requests other than the server itself, in the middle one of these trials."""
    loads = [t.load for t in trials if t.load is not None]
    if not loads:
        return None
    client, server = (median(load.client_busy for load in loads), median(load.server_busy for load in loads))
    if client > BUSY:
        return Limit.CLIENT_BOUND
    if server >= BUSY or not any(load.components for load in loads):
        return None
    # Who stood in the queue for a core would have used it.
    client += median(load.client_held_up for load in loads)
    server += median(load.server_held_up for load in loads)
    return Limit.CONTENDED if max(client, server) > BUSY else Limit.NOT_SATURATED


def _of(row: Row, metric: str, terms: Terms) -> Iterator[Measurement]:
    trials = [t for t in row.trials if t.outcome is Outcome.OK and t.operations > 0]
    yield from _measurement(row, metric, "ns/op", [cost(t) for t in trials], terms)
    loads = [t.load for t in trials if t.load is not None]
    if not loads:
        for name, unit, value in _OF_RUNNERS:
            yield from _measurement(row, name, unit, [value(t) for t in trials], terms)
        return
    limit = limit_of(trials)
    if limit is Limit.NOT_SATURATED and "rate" in row.coordinates:
        # Arrivals at a rate are asked for because the server is to have time to spare.
        limit = None
    for name, unit, of_load, is_limited in _OF_LOADS:
        if name != metric:
            values = [of_load(load) for load in loads]
            yield from _measurement(row, name, unit, values, terms, limit if is_limited else None)
    components = dict.fromkeys(name for load in loads for name in load.components)
    for name in components if len(components) > 1 else ():
        values = [load.components[name].cpu_ns / load.requests for load in loads if name in load.components]
        yield from _measurement(row, f"server-cpu:{name}", "ns/op", values, terms)


def _measurement(
    row: Row, metric: str, unit: str, all_values: Sequence[float], terms: Terms, limit: Limit | None = None
) -> Iterator[Measurement]:
    """The same interval as for ratios, on the logarithms of the values themselves.

    Here the machine's drift and its state are in the noise, which need not be symmetric: two cells are
    compared by their toll and never by whether these overlap.
    """
    values = [value for value in all_values if value > 0]
    # In half of the trials or more, or it is no property of the cell.
    if 2 * len(values) < len(all_values) or not values:
        return
    over = ratio_interval([math.log(value) for value in values], confidence=terms.confidence)
    yield Measurement(row, metric, unit, over.estimate, over.low, over.high, over.n, limit)
