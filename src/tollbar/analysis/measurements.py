"""Measurements: what each cell cost in itself, for the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from tollbar.analysis.ledger import Ledger
from tollbar.analysis.visits import Visits, settled
from tollbar.core import stats
from tollbar.core.metrics import ALL_SAMPLES, METRICS, Metric
from tollbar.core.records import CLIENT, Chunks, LoadRecord, Outcome, Trial
from tollbar.core.stats import Interval, Moments
from tollbar.results import Row
from tollbar.study import is_paced

# What a load client saw in the throughput phase of a trial.
_OF_LOADS: dict[str, Callable[[LoadRecord], float]] = {
    "throughput": lambda load: load.requests_per_s,
    "latency-p50": lambda load: load.latency_at(0.50),
    "latency-p95": lambda load: load.latency_at(0.95),
    "latency-p99": lambda load: load.latency_at(0.99),
    "server-memory": lambda load: float(sum(c.memory_bytes for c in load.components.values())),
}
ROUND_TRIP = "network-round-trip-time"
# CPU nanoseconds of either side in a chunk; where no process of the server is known, it has none.
_OF_SIDE: dict[str, Callable[[Chunks], Sequence[float]]] = {
    "client-cpu": lambda chunks: chunks.paid([CLIENT]),
    "server-cpu": lambda chunks: chunks.paid([name for name in chunks.cpu_ns if name != CLIENT]),
}
# Above this the client's core is what limits the requests, below it the server's core has time to spare.
BUSY = 0.70


class Limit(StrEnum):
    """Why requests a second say little of the server."""

    CLIENT_BOUND = "client-bound"
    """The load client's core was busy: a faster client would have got more."""
    NOT_SATURATED = "not saturated"
    """The server's core was idle at times: more users would have got more."""
    CONTENDED = "contended"
    """Other programs had the server's or the client's core: a quieter machine would have got more."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric of one cell, over all its blocks."""

    row: Row
    metric: str
    """The study's cost metric is the quiet cost; the same with `-all` is the cost of all samples."""
    unit: str
    value: float
    low: float
    high: float
    blocks: int
    limit: Limit | None = None
    """Of a throughput or latency: what it says about other than the server. Such a number gets no verdict."""
    component: str | None = None
    """Whose part of the cost it is; None for the whole."""
    moments: Moments = Moments.ALL
    """Which rounds it is made of: a quiet cost is noisy where the core was quiet too seldom."""

    @property
    def is_noisy(self) -> bool:
        """Whether it is made of all samples."""
        return self.moments is Moments.ALL


def measurements(ledger: Ledger) -> tuple[Measurement, ...]:
    """Cost per operation of every cell that was measured, and what else its trials show."""
    return tuple(m for row in ledger.rows if ledger.why_unmeasured(row) is None for m in _of(row, ledger))


def limit_of(trials: Sequence[Trial]) -> Limit | None:
    """What limited the requests other than the server itself, in the middle one of these trials' throughput phases."""
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
    """Requests a second that a cell was measured at, in the middle one of its trials; None without a load."""
    rates = [load.requests_per_s for load in settled([t for t in row.trials if t.outcome is Outcome.OK])]
    return median(rates) if rates else None


def _of(row: Row, ledger: Ledger) -> Iterator[Measurement]:
    yield from _costs(row, ledger.metric, ledger.best_cost(row), ledger.all_samples(row))
    trials = [t for t in row.trials if t.outcome is Outcome.OK]
    yield from _own(row, trials, ledger)
    yield from _components(row, trials, ledger)
    yield from _round_trips(row, trials, ledger)
    if not any(trial.load for trial in trials):
        yield from _over_all(row, "wall", ledger.visits_of(trials, lambda _, chunks: chunks.wall_ns), ledger)
        yield from _per_trial(row, "memory", trials, lambda trial: float(trial.memory_bytes), ledger)
        return
    other = "server-cpu" if ledger.metric == "client-cpu" else "client-cpu"
    visits = ledger.visits_of(trials, lambda _, chunks: _OF_SIDE[other](chunks))
    yield from _costs_of(row, other, visits, ledger)
    limit = limit_of(trials)
    if limit is Limit.NOT_SATURATED and is_paced(row.coordinates):
        # A study of arrivals at a rate means the server to have time to spare.
        limit = None
    phases = [t for t in trials if settled([t])]
    for name, of_load in _OF_LOADS.items():
        # What a server holds is told of its whole trial.
        seen_in = trials if name == "server-memory" else phases
        yield from _per_trial(row, name, seen_in, lambda t, of=of_load: of(t.load) if t.load else 0.0, ledger, limit)  # type: ignore[misc]


def _round_trips(row: Row, trials: Sequence[Trial], ledger: Ledger) -> Iterator[Measurement]:
    """How long a round trip to the machine of each component takes while nothing is under way."""
    loads = [trial.load for trial in trials if trial.load]
    for name in dict.fromkeys(name for load in loads for name in load.round_trip_ns):
        visits = ledger.one_a_trial(
            trials,
            lambda trial, name=name: trial.load.round_trip_ns.get(name, 0) / 1e3 if trial.load else 0.0,  # type: ignore[misc]
        )
        found = stats.cost(visits, Moments.ALL, confidence=ledger.confidence)
        if found is not None:
            yield _measurement(row, METRICS[ROUND_TRIP], found, component=name)


def _components(row: Row, trials: Sequence[Trial], ledger: Ledger) -> Iterator[Measurement]:
    """What each of several that pay the cost pays: a server's components, or a client beside its database."""
    names = dict.fromkeys(name for trial in trials for name in trial.paid_by)
    for name in names if len(names) > 1 else ():
        visits = ledger.visits_of(trials, lambda _, chunks, name=name: chunks.paid([name]))  # type: ignore[misc]
        yield from _costs_of(row, ledger.metric, visits, ledger, component=name)


def _own(row: Row, trials: Sequence[Trial], ledger: Ledger) -> Iterator[Measurement]:
    """What runners observed beside the cost, of the whole and of each component that has it."""
    seen = dict.fromkeys(key for trial in trials for key in Chunks.of(trial.chunks).seen)
    for metric in ledger.observed_metrics:
        for component in (component for component, name in seen if name == metric.name):
            visits = ledger.observing(row.trials, metric, component)
            found = stats.cost(visits, Moments.ALL, confidence=ledger.confidence)
            if found is not None:
                yield _measurement(row, metric, found, component=component or None)


def _costs_of(
    row: Row, metric: str, visits: Visits, ledger: Ledger, component: str | None = None
) -> Iterator[Measurement]:
    all_samples = stats.cost(visits, Moments.ALL, confidence=ledger.confidence)
    quiet = stats.cost(visits, Moments.QUIET, confidence=ledger.confidence)
    is_quiet = ledger.quickness.was_ever_quiet and ledger.is_even((row,))
    best = stats.best(quiet, all_samples) if is_quiet else all_samples
    yield from _costs(row, metric, best, all_samples, component)


def _costs(
    row: Row, metric: str, quiet: Interval | None, all_samples: Interval | None, component: str | None = None
) -> Iterator[Measurement]:
    """A cost is shown twice: quiet, and noisy."""
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
) -> Iterator[Measurement]:
    """Of one value a trial."""
    visits = ledger.one_a_trial(trials, value)
    # In half of the trials or more, or it is no property of the cell.
    if 2 * len(visits) >= len(trials):
        yield from _over_all(row, metric, visits, ledger, limit if METRICS[metric].is_limited else None)


def _over_all(
    row: Row, metric: str, visits: Visits, ledger: Ledger, limit: Limit | None = None
) -> Iterator[Measurement]:
    found = stats.cost(visits, Moments.ALL, confidence=ledger.confidence)
    if found is not None:
        yield _measurement(row, METRICS[metric], found, limit)


def _measurement(
    row: Row, metric: Metric, found: Interval, limit: Limit | None = None, component: str | None = None
) -> Measurement:
    return Measurement(
        row, metric.name, metric.unit, found.estimate, found.low, found.high, found.n, limit, component, found.moments
    )
