"""Ledger: comparisons of two cells of a study, by their costs or by any other metric that both have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tollbar.analysis.costs import Costs
from tollbar.analysis.decisions import apart, decide, more_blocks, reach, suffers
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.analysis.visits import elapsed, settled
from tollbar.core import intervals, stats
from tollbar.core.intervals import Interval, Moments
from tollbar.core.metrics import METRICS, Metric
from tollbar.core.records import LoadRecord, Outcome, Trial
from tollbar.core.visits import Visits
from tollbar.results import Row

# User metrics are one number a trial, of its throughput phase.
_NOTICED: Mapping[str, Callable[[LoadRecord], float]] = {
    "throughput": lambda load: load.requests_per_s,
    "latency-p50": lambda load: load.latency_at(0.50),
}
# Units of runners' observations that the machine's neighbours change.
_TIMES = ("ns/op", "us")
# Noise of counted values, which are exact.
_EXACT = Interval(1.0, 1.0, 1.0, 1.0, 0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """Quantity by which two cells are compared: a metric, of all components or of one."""

    metric: str = "cost"
    """`cost`; `capacity`, one over it; `wall`; a metric of a load's users; or one that runners observe."""
    component: str | None = None

    @property
    def is_whole_cost(self) -> bool:
        """True if it is all CPU time, or one over it."""
        return self.metric in ("cost", "capacity") and self.component is None

    @property
    def is_inverse(self) -> bool:
        """True for the capacity, which is one over the cost."""
        return self.metric == "capacity"

    @property
    def is_noticed(self) -> bool:
        """True for a metric of a load's users, which reflects little of a server if something else limits it."""
        return self.metric in _NOTICED


COST = Quantity()


class Ledger(Costs):
    """Costs of every cell of a study, and comparisons of any two of them."""

    @cached_property
    def _repeated_by(self) -> Mapping[str | None, Sequence[tuple[int, Row]]]:
        """Repeated cells with their places among all, by the baseline that they are compared with."""
        found: dict[str | None, list[tuple[int, Row]]] = {}
        for place, row in enumerate(self.repeated):
            found.setdefault(row.against, []).append((place, row))
        return found

    @cached_property
    def _noises(self) -> dict[tuple[str, Quantity], Interval | None]:
        return {}

    @cached_property
    def _worst(self) -> dict[tuple[tuple[str, ...] | None, Quantity], Interval | None]:
        return {}

    def compare(self, row: Row, against: Row, what: Quantity = COST) -> Toll:
        """Compare one cell with another, by the study's cost unless another quantity is given.

        A cell compared with itself is compared with its repeat. A toll without a ratio has the reason.
        """
        noise = self.noise_for((row, against), what)
        noise_floor = apart(noise) if noise else None
        reason = self._why_not_compared(row, against)
        ratio, all_samples = (None, None) if reason else self._ratios_of(row, against, what)
        if ratio is None:
            reason = reason or self._unseen(row, against, what)
            return Toll(row, against, self.metric, noise_floor=noise_floor, noise=noise, reason=reason)
        floor = reach(noise) if noise else None
        verdict = decide(ratio, floor, self.terms)
        its = self.best_cost(against) if what.is_whole_cost else None
        quiet = self._ratio(Moments.QUIET, row, against, self.confidence) if what.is_whole_cost else None
        return Toll(
            row,
            against,
            self.metric,
            ratio,
            all_samples,
            # The ratio's change at the other cell's cost, so that both have the same sign.
            difference=(ratio.estimate - 1) * its.estimate if its else None,
            verdict=verdict,
            noise_floor=noise_floor,
            more_blocks=more_blocks(ratio, floor, self.terms) if verdict is Verdict.UNCLEAR else None,
            suffers=suffers(ratio, all_samples, self.terms),
            quiet_blocks=quiet.n if quiet else 0,
            noise=noise,
        )

    def noise_for(self, rows: Sequence[Row], what: Quantity = COST) -> Interval | None:
        """Return the A/A pair that bounds the noise in a ratio of these cells, by cells with the same baselines.

        If there are several, returns the pair whose interval reaches furthest from one; if there is none, that of the
        whole study. Counted quantities are exact on any machine.
        """
        if self._is_counted(what):
            return _EXACT
        against = {row.against for row in rows}
        own = [row for _, row in sorted(numbered for one in against for numbered in self._repeated_by.get(one, ()))]
        return self._worst_of(own, what) or self._worst_of(self.repeated, what)

    def noises(self, repeated: Iterable[Row], what: Quantity = COST) -> list[Interval]:
        """Return the ratios of these cells' A/A pairs, for cells that were measured twice in enough blocks."""
        found = [self._noise(row, what) for row in repeated]
        return [noise for noise in found if noise is not None]

    def value(self, row: Row, what: Quantity) -> tuple[float, str] | None:
        """Return the quantity of one cell over all samples, as sources print it, with its unit; None: not measured."""
        found = stats.cost(self._visits_by(row.trials, what), Moments.ALL, confidence=self.confidence)
        if found is None:
            return None
        if what.is_inverse:
            return 1e9 / found.estimate, "1/s"
        units = {metric.name: metric.unit for metric in (*METRICS.values(), *self.observed_metrics)}
        return found.estimate, units.get(what.metric, "ns/op")

    def observed(self, row: Row, metric: Metric) -> Interval | None:
        """Return the mean that its runners observed of a metric; None if they did not observe it."""
        return stats.cost(self.observing(row.trials, metric), Moments.ALL, confidence=self.confidence)

    def _worst_of(self, repeated: Sequence[Row], what: Quantity) -> Interval | None:
        # A study may have thousands of baselines, and each of its cells needs the worst of all.
        key = tuple(row.key for row in repeated) if repeated is not self.repeated else None, what
        if key not in self._worst:
            self._worst[key] = max(self.noises(repeated, what), key=reach, default=None)
        return self._worst[key]

    def _noise(self, row: Row, what: Quantity) -> Interval | None:
        key = row.key, what
        if key not in self._noises:
            ratio = self._ratios_of(row, row, what)[0] if row.repeats else None
            self._noises[key] = ratio if ratio is not None and ratio.is_bounded else None
        return self._noises[key]

    def _ratios_of(self, row: Row, against: Row, what: Quantity) -> tuple[Interval | None, Interval | None]:
        """Return one cell's quantity over the other's: the quiet ratio if there is one, and that of all samples."""
        if what.is_whole_cost:
            best = self.best_ratio(row, against)
            all_samples = self._ratio(Moments.ALL, row, against, self.confidence)
        else:
            own = self._visits_by(row.repeats if row is against else row.trials, what)
            others = self._visits_by(against.trials, what)
            best, all_samples = self._best_ratio(own, others, what, is_even=self.is_even((row, against)))
        if what.is_inverse:
            return best.inverse if best else None, all_samples.inverse if all_samples else None
        return best, all_samples

    def _best_ratio(
        self, own: Visits, others: Visits, what: Quantity, *, is_even: bool
    ) -> tuple[Interval | None, Interval | None]:
        """Return the two ratios; counted quantities and those of throughput phases exist for all samples only."""
        if own.blocks.isdisjoint(others.blocks):
            return None, None
        all_samples = stats.ratio(own, others, Moments.ALL, confidence=self.confidence)
        if what.is_noticed or self._is_counted(what) or not is_even or not self.quickness.was_ever_quiet:
            return all_samples, all_samples
        quiet = stats.ratio(own, others, Moments.QUIET, confidence=self.confidence)
        return intervals.best(quiet, all_samples), all_samples

    def _visits_by(self, trials: Sequence[Trial], what: Quantity) -> Visits:
        if what.metric in _NOTICED:
            return self.one_a_trial(
                [trial for trial in trials if trial.outcome is Outcome.OK and settled([trial])],
                lambda trial: _NOTICED[what.metric](trial.load) if trial.load else 0.0,
            )
        if what.metric == "wall":
            return self.visits_of(trials, elapsed)
        if what.component is not None:
            of = (what.component,)
            return self.visits_of(trials, lambda told: told.each(lambda _, chunks: chunks.paid(of)))
        observed = self._observed(what)
        return self.visits_of(trials) if observed is None else self.observing(trials, observed)

    def _observed(self, what: Quantity) -> Metric | None:
        return next((metric for metric in self.observed_metrics if metric.name == what.metric), None)

    def _is_counted(self, what: Quantity) -> bool:
        """Return whether runners count the quantity: counts do not depend on the machine's other load, times do."""
        observed = self._observed(what)
        return observed is not None and observed.unit not in _TIMES

    def _unseen(self, row: Row, against: Row, what: Quantity) -> str:
        """Return why two measured cells have no ratio, with the name of the cell to blame if it is one of them."""
        if what.is_whole_cost:
            return "in the blocks with both cells, one of them used no measurable CPU time"
        lacking = [one for one in (row, against) if not self._visits_by(one.trials, what).blocks]
        which = f"{lacking[0].title}: " if len(lacking) == 1 else ""
        return f"{which}its runners observed no `{what.metric}`" + (f" of {what.component}" if what.component else "")

    def _why_not_compared(self, row: Row, against: Row) -> str | None:
        for one in (row, against):
            why = self.why_unmeasured(one)
            if why is not None:
                return f"{one.title} was not measured: {why}"
        if self.sides(row, against)[0]:
            return None
        return (
            "both sides are one cell, which was not measured twice in a block"
            if row is against
            else "no block has both cells"
        )
