"""Measurements: the cost and the other metrics of each cell, for the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from statistics import median

from tollbar.analysis.ledger import Ledger
from tollbar.analysis.visits import Told, elapsed, settled
from tollbar.core import intervals, stats
from tollbar.core.arrays import np
from tollbar.core.intervals import Interval, Moments
from tollbar.core.metrics import ALL_SAMPLES, METRICS, Metric
from tollbar.core.records import CLIENT, Chunks, LoadRecord, Outcome, Trial
from tollbar.core.visits import Sums, Visits
from tollbar.results import Row
from tollbar.study import is_paced

# Observations of a load client in the throughput phase of a trial.
_OF_LOADS: dict[str, Callable[[LoadRecord], float]] = {
    "throughput": lambda load: load.requests_per_s,
    "latency-p50": lambda load: load.latency_at(0.50),
    "latency-p95": lambda load: load.latency_at(0.95),
    "latency-p99": lambda load: load.latency_at(0.99),
    "server-memory": lambda load: float(sum(c.memory_bytes for c in load.components.values())),
}
ROUND_TRIP = "network-round-trip-time"
# CPU nanoseconds of either side in a chunk; the server side is empty if no process of the server is known.
_OF_SIDE: dict[str, Callable[[Chunks], Sequence[float]]] = {
    "client-cpu": lambda chunks: chunks.paid([CLIENT]),
    "server-cpu": lambda chunks: chunks.paid([name for name in chunks.cpu_ns if name != CLIENT]),
}
# Above this share the client's core limits the requests; below it the server's core has idle time.
BUSY = 0.70


class Limit(StrEnum):
    """Reason why requests a second reflect little of the server."""

    CLIENT_BOUND = "client-bound"
    """Busy core of the load client: a faster client would have got more."""
    NOT_SATURATED = "not saturated"
    """Idle times of the server's core: more users would have got more."""
    CONTENDED = "contended"
    """Other programs on the server's or the client's core: a quieter machine would have got more."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Metric of a cell, over all its blocks."""

    row: Row
    metric: str
    """Metric's name. The study's cost metric is the quiet cost; with `-all` it is the cost of all samples."""
    unit: str
    value: float
    low: float
    high: float
    blocks: int
    limit: Limit | None = None
    """Limit of a throughput or latency by something other than the server. Such a number gets no verdict."""
    component: str | None = None
    """Component whose part of the cost it is; None for the whole."""
    moments: Moments = Moments.ALL
    """Rounds that it is made of: a quiet cost is noisy if the core was quiet too seldom."""

    @property
    def is_noisy(self) -> bool:
        """True if it is made of all samples."""
        return self.moments is Moments.ALL


@dataclass(frozen=True, slots=True)
class _Sampled:
    """Metric of a cell whose mean over all samples is not computed yet: many together take a fifth of the time."""

    row: Row
    metric: Metric
    sums: Sums
    limit: Limit | None = None
    component: str | None = None


def measurements(ledger: Ledger) -> tuple[Measurement, ...]:
    """Return the cost per operation of every measured cell, and the other metrics of its trials."""
    each = [one for row in ledger.rows if ledger.why_unmeasured(row) is None for one in _of(row, ledger)]
    sampled = [one for one in each if isinstance(one, _Sampled)]
    means = iter(stats.costs([one.sums for one in sampled], Moments.ALL, confidence=ledger.confidence))
    made = (one if isinstance(one, Measurement) else _of_mean(one, next(means)) for one in each)
    return tuple(one for one in made if one is not None)


def _of_mean(sampled: _Sampled, mean: Interval | None) -> Measurement | None:
    if mean is None:
        return None
    return _measurement(sampled.row, sampled.metric, mean, sampled.limit, sampled.component)


def limit_of(trials: Sequence[Trial]) -> Limit | None:
    """Return the limit on requests other than the server, by the medians of these trials' throughput phases."""
    loads = settled(trials)
    if not loads:
        return None
    client, server = (median(load.client_busy for load in loads), median(load.server_busy for load in loads))
    if client > BUSY:
        return Limit.CLIENT_BOUND
    if server >= BUSY or not any(load.components for load in loads):
        return None
    # A process that waited in the run queue would have used the core.
    client += median(load.client_run_queue_wait for load in loads)
    server += median(load.server_run_queue_wait for load in loads)
    return Limit.CONTENDED if max(client, server) > BUSY else Limit.NOT_SATURATED


def rate_of(row: Row) -> float | None:
    """Return the median requests a second of a cell's trials; None without a load."""
    rates = [load.requests_per_s for load in settled([t for t in row.trials if t.outcome is Outcome.OK])]
    return median(rates) if rates else None


def _of(row: Row, ledger: Ledger) -> Iterator[Measurement | _Sampled]:
    yield from _costs(row, ledger.metric, ledger.best_cost(row), ledger.all_samples(row))
    trials = [t for t in row.trials if t.outcome is Outcome.OK]
    yield from _own(row, trials, ledger)
    yield from _components(row, trials, ledger)
    yield from _round_trips(row, trials, ledger)
    if not any(trial.load for trial in trials):
        yield _over_all(row, "wall", ledger.visits_of(trials, elapsed))
        yield from _per_trial(row, "memory", trials, lambda trial: float(trial.memory_bytes), ledger)
        return
    other = "server-cpu" if ledger.metric == "client-cpu" else "client-cpu"
    visits = ledger.visits_of(trials, lambda told: told.each(lambda _, chunks: _OF_SIDE[other](chunks)))
    yield from _costs_of(row, other, visits, ledger)
    limit = limit_of(trials)
    if limit is Limit.NOT_SATURATED and is_paced(row.coordinates):
        # A study of arrivals at a rate intends the server to have idle time.
        limit = None
    phases = [t for t in trials if settled([t])]
    for name, of_load in _OF_LOADS.items():
        # A server's memory is taken over its whole trial.
        seen_in = trials if name == "server-memory" else phases
        yield from _per_trial(row, name, seen_in, lambda t, of=of_load: of(t.load) if t.load else 0.0, ledger, limit)  # type: ignore[misc]


def _round_trips(row: Row, trials: Sequence[Trial], ledger: Ledger) -> Iterator[_Sampled]:
    """Yield the round-trip time to the machine of each component while nothing else is under way."""
    loads = [trial.load for trial in trials if trial.load]
    for name in dict.fromkeys(name for load in loads for name in load.round_trip_ns):
        visits = ledger.one_a_trial(
            trials,
            lambda trial, name=name: trial.load.round_trip_ns.get(name, 0) / 1e3 if trial.load else 0.0,  # type: ignore[misc]
        )
        yield _Sampled(row, METRICS[ROUND_TRIP], visits.by_block(Moments.ALL), component=name)


def _components(row: Row, trials: Sequence[Trial], ledger: Ledger) -> Iterator[Measurement]:
    """Yield the cost of each component if several pay it: a server's components, or a client and its database."""
    names = dict.fromkeys(name for trial in trials for name in trial.paid_by)
    whole, own = ledger.best_cost(row), ledger.own_cost(row)
    # Components add up to the cost, which is not that of the cell's samples alone.
    factor = whole.estimate / own.estimate if whole and own and own.estimate else 1.0
    for name in names if len(names) > 1 else ():
        visits = ledger.visits_of(trials, partial(_paid, name))
        yield from _costs_of(row, ledger.metric, visits, ledger, component=name, factor=factor)


def _paid(component: str, told: Told) -> np.ndarray:
    """Return the CPU nanoseconds of one component in each chunk."""
    return told.each(lambda _, chunks: chunks.paid([component]))


def _own(row: Row, trials: Sequence[Trial], ledger: Ledger) -> Iterator[_Sampled]:
    """Yield the runners' observations other than the cost, of the whole and of each component that has them."""
    seen = dict.fromkeys(key for trial in trials for key in Chunks.of(trial.chunks).seen)
    for metric in ledger.observed_metrics:
        for component in (component for component, name in seen if name == metric.name):
            sums = ledger.observing(row.trials, metric, component).by_block(Moments.ALL)
            yield _Sampled(row, metric, sums, component=component or None)


def _costs_of(
    row: Row, metric: str, visits: Visits, ledger: Ledger, component: str | None = None, factor: float = 1.0
) -> Iterator[Measurement]:
    """Yield a cost as `_costs` does, the first one times `factor`."""
    all_samples = stats.cost(visits, Moments.ALL, confidence=ledger.confidence)
    quiet = stats.cost(visits, Moments.QUIET, confidence=ledger.confidence)
    is_quiet = ledger.quickness.was_ever_quiet and ledger.is_even((row,))
    best = intervals.best(quiet, all_samples) if is_quiet else all_samples
    yield from _costs(row, metric, best.times(factor) if best else None, all_samples, component)


def _costs(
    row: Row, metric: str, quiet: Interval | None, all_samples: Interval | None, component: str | None = None
) -> Iterator[Measurement]:
    """Yield a cost twice: quiet, and over all samples."""
    for name, found in ((metric, quiet), (metric + ALL_SAMPLES, all_samples)):
        if found is not None:
            yield _measurement(row, METRICS[name], found, component=component)


def _per_trial(
    row: Row,
    metric: str,
    trials: Sequence[Trial],
    value: Callable[[Trial], float],
    ledger: Ledger,
    limit: Limit | None = None,
) -> Iterator[_Sampled]:
    """Yield a metric that has one value a trial."""
    visits = ledger.one_a_trial(trials, value)
    # A metric that fewer than half of the trials have is not a property of the cell.
    if 2 * len(visits) >= len(trials):
        yield _over_all(row, metric, visits, limit if METRICS[metric].is_limited else None)


def _over_all(row: Row, metric: str, visits: Visits, limit: Limit | None = None) -> _Sampled:
    return _Sampled(row, METRICS[metric], visits.by_block(Moments.ALL), limit)


def _measurement(
    row: Row, metric: Metric, found: Interval, limit: Limit | None = None, component: str | None = None
) -> Measurement:
    return Measurement(
        row, metric.name, metric.unit, found.estimate, found.low, found.high, found.n, limit, component, found.moments
    )
