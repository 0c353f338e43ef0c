"""Quantities: what two cells can be compared by beside the study's cost, and the visits that each is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tollbar import stats
from tollbar.judge.costs import Ledger, Visits
from tollbar.judge.measurements import settled
from tollbar.metrics import METRICS, Metric
from tollbar.records import LoadRecord, Outcome, Trial
from tollbar.results import Row
from tollbar.stats import Interval, Moments

# What users notice is one number a trial, of its stretch.
_NOTICED: dict[str, Callable[[LoadRecord], float]] = {
    "throughput": lambda load: load.requests_per_s,
    "latency-p50": lambda load: load.latency_at(0.50),
}


# Units of what runners observe and the machine's neighbours change.
TIMES = ("ns/op", "us")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What two cells are compared by: a metric, of all that take part or of one component."""

    metric: str
    """`cost`; `capacity`, one over it; `wall`; what users notice; or what runners observe."""
    component: str | None = None

    @property
    def is_cost(self) -> bool:
        """Whether it is CPU time, or one over it."""
        return self.metric in ("cost", "capacity")

    @property
    def is_inverse(self) -> bool:
        """Whether more of it is less of what is measured."""
        return self.metric == "capacity"

    def is_counted(self, ledger: Ledger) -> bool:
        """Whether it is what runners count, which is as it is whatever else the machine does; times are not."""
        observed = _observed(ledger, self)
        return observed is not None and observed.unit not in TIMES

    @property
    def is_noticed(self) -> bool:
        """Whether it is what a load's users notice, which says little of a server where something else limits it."""
        return self.metric in _NOTICED


def ratio_of(ledger: Ledger, of: Row, over: Row, what: Quantity) -> tuple[Interval | None, Interval | None]:
    """The one's quantity over the other's: undisturbed where that could be had, and as disturbed.

    Of a cell over itself it is its twin's. None where no block has both, or one of them has nothing of it.
    """
    if what.is_cost and what.component is None:
        found = ledger.undisturbed_ratio(of, over), ledger.typical_ratio(of, over)
    else:
        own, others = _visits(ledger, of.twins if of is over else of.trials, what), _visits(ledger, over.trials, what)
        found = _best_ratio(ledger, own, others, moments_matter=not (what.is_noticed or what.is_counted(ledger)))
    return (_inverse(found[0]), _inverse(found[1])) if what.is_inverse else found


def value_of(ledger: Ledger, row: Row, what: Quantity) -> tuple[float, str] | None:
    """The quantity of one cell as disturbed, as a source has it, with its unit; None where it was not measured."""
    found = stats.cost(_visits(ledger, row.trials, what), Moments.AS_DISTURBED, confidence=ledger.confidence)
    if found is None:
        return None
    if what.is_inverse:
        return 1e9 / found.estimate, "1/s"
    units = {metric.name: metric.unit for metric in (*METRICS.values(), *ledger.observed_metrics)}
    return found.estimate, units.get(what.metric, "ns/op")


def _best_ratio(
    ledger: Ledger, own: Visits, others: Visits, *, moments_matter: bool
) -> tuple[Interval | None, Interval | None]:
    """What is counted, and what only a stretch shows, is of all moments."""
    if {visit.block for visit in own}.isdisjoint(visit.block for visit in others):
        return None, None
    typical = stats.ratio(own, others, Moments.AS_DISTURBED, confidence=ledger.confidence)
    if not moments_matter or not ledger.quickness.was_ever_quiet:
        return typical, typical
    quiet = stats.ratio(own, others, Moments.UNDISTURBED, confidence=ledger.confidence)
    return stats.best(quiet, typical), typical


def _visits(ledger: Ledger, trials: Sequence[Trial], what: Quantity) -> Visits:
    if what.metric in _NOTICED:
        return ledger.one_a_trial(
            [trial for trial in trials if trial.outcome is Outcome.OK and settled([trial])],
            lambda trial: _NOTICED[what.metric](trial.load) if trial.load else 0.0,
        )
    if what.metric == "wall":
        return ledger.visits_of(trials, lambda _, chunk: chunk.wall_ns)
    if what.component is not None:
        name = what.component
        return ledger.visits_of(trials, lambda _, chunk: chunk.cpu_ns.get(name, 0))
    observed = _observed(ledger, what)
    return ledger.visits_of(trials) if observed is None else ledger.observing(trials, observed)


def _observed(ledger: Ledger, what: Quantity) -> Metric | None:
    return next((metric for metric in ledger.observed_metrics if metric.name == what.metric), None)


def _inverse(ratio: Interval | None) -> Interval | None:
    return None if ratio is None else inverse(ratio)


def inverse(ratio: Interval) -> Interval:
    """The same comparison, seen from the other side."""
    low, high = 1 / ratio.high, 1 / ratio.low if ratio.low > 0 else float("inf")
    return replace(ratio, estimate=1 / ratio.estimate, low=low, high=high)
