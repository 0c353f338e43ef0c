"""Each cell's cost, and what is judged of two: the one place where trials become numbers and numbers verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from tollbar import stats
from tollbar.arrays import np
from tollbar.families import Family
from tollbar.judge.decisions import Terms, apart, decide, more_blocks, reach, suffers
from tollbar.judge.grain import Grain, grain_of
from tollbar.judge.probes import probes_of, readings
from tollbar.judge.selection import falls, unselected
from tollbar.judge.verdicts import Toll, Verdict
from tollbar.metrics import BACKGROUND, METRICS, NETWORK, Metric
from tollbar.moments import Quickness, quickness_of, without_slices
from tollbar.records import Chunks, LoadRecord, Outcome, Trial
from tollbar.results import Row
from tollbar.spread import Spread, shared
from tollbar.stats import Interval, Moments, Visit

Visits = tuple[Visit, ...]
Amount = Callable[[Trial, Chunks], Sequence[float]]
"""What each chunk of a trial spent altogether of something."""


def spent(trial: Trial, chunks: Chunks) -> Sequence[float]:
    """Of the study's cost, in nanoseconds."""
    return chunks.paid(trial.paid_by)


# What users notice is one number a trial, of its throughput phase.
_NOTICED: Mapping[str, Callable[[LoadRecord], float]] = {
    "throughput": lambda load: load.requests_per_s,
    "latency-p50": lambda load: load.latency_at(0.50),
}
# The largest difference between what probes miss of two cells that a ratio may have, in `threshold`. No interval holds
# this bias; a fifth of what matters moves no verdict by itself. The same of costs that quiet moments select.
_MOST_MISSED = 0.2
# Units of what runners observe and the machine's neighbours change.
_TIMES = ("ns/op", "us")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What two cells are compared by: a metric, of all that take part or of one component."""

    metric: str = "cost"
    """`cost`; `capacity`, one over it; `wall`; what users notice; or what runners observe."""
    component: str | None = None

    @property
    def is_whole_cost(self) -> bool:
        """Whether it is all CPU time, or one over it."""
        return self.metric in ("cost", "capacity") and self.component is None

    @property
    def is_inverse(self) -> bool:
        """Whether more of it is less of what is measured."""
        return self.metric == "capacity"

    @property
    def is_noticed(self) -> bool:
        """Whether it is what a load's users notice, which says little of a server where something else limits it."""
        return self.metric in _NOTICED


COST = Quantity()


@dataclass(frozen=True, slots=True)
class _Told:
    """A trial's chunks that went well, and what they tell whatever they spent: one entry for each chunk."""

    chunks: Chunks
    operations: np.ndarray
    rounds: np.ndarray
    wall_ns: np.ndarray
    begins: np.ndarray
    """Whether the probe before it was quick."""
    ends: np.ndarray
    """The same of the probe after it."""
    quiet: np.ndarray
    """The same of all its probes."""
    first: np.ndarray
    """Whether it was its round's first try."""


class Ledger:
    """What every cell of a study cost, worked out once, with intervals of one confidence; and what is judged of two."""

    def __init__(
        self,
        rows: Sequence[Row],
        terms: Terms,
        metric: str = "cpu",
        family: Family | None = None,
        quickness: Quickness | None = None,
    ) -> None:
        self.rows = rows
        self.metric = metric
        self.observed_metrics = (BACKGROUND, *NETWORK.values(), *(family.metrics.values() if family else ()))
        """What runners may observe in their chunks: any, and the family's own."""
        self.by_key: Mapping[str, Row] = {row.key: row for row in rows}
        self.repeated = tuple(row for row in rows if row.repeats)
        """Those that were measured beside themselves: the baselines, and one cell of each other kind of work."""
        self._repeated_by: dict[str | None, list[tuple[int, Row]]] = {}
        for numbered in enumerate(self.repeated):
            self._repeated_by.setdefault(numbered[1].against, []).append(numbered)
        self.terms = terms
        self.confidence = terms.confidence
        self.quickness = quickness or quickness_of(readings(rows))
        self._longest_quick_ns = self.quickness.longest_quick_ns
        # By the trial's identity: rows keep their trials.
        self._told: dict[int, _Told] = {}
        self._visits: dict[str, Visits] = {}
        self._repeats: dict[str, Visits] = {}
        self._ratios: dict[tuple[Moments, str, str, float], Interval | None] = {}
        self._costs: dict[tuple[Moments, str], Interval | None] = {}
        self._noises: dict[tuple[str, Quantity], Interval | None] = {}
        self._worst: dict[tuple[tuple[str, ...] | None, Quantity], Interval | None] = {}
        self._spreads: dict[Moments, Spread | None] = {}
        self._missed: dict[str, float] = {}
        self.varying: set[str] = set()
        """Keys of rows whose chunks vary by themselves, as far as they were asked for: none of them is selected."""

    def visits(self, row: Row) -> Visits:
        """The chunks of a cell's trials that ended well."""
        if row.key not in self._visits:
            trials = own.trials if (own := self._measured(row)) else ()
            found = self.visits_of(trials)
            self._visits[row.key] = self._unselected(found, trials)
            if self._visits[row.key] is not found:
                self.varying.add(row.key)
        return self._visits[row.key]

    def repeats(self, row: Row) -> Visits:
        """The same of a baseline's trials beside itself."""
        if row.key not in self._repeats:
            trials = own.repeats if (own := self._measured(row)) else ()
            self._repeats[row.key] = self._unselected(self.visits_of(trials), trials)
        return self._repeats[row.key]

    def _unselected(self, visits: Visits, trials: Sequence[Trial]) -> Visits:
        """These trials' visits without quiet chunks, if those would be the cheap ones."""
        if not visits:
            return visits
        told = [self._told_of(trial) for trial in trials]
        begins, ends = (np.concatenate(some) for some in ([one.begins for one in told], [one.ends for one in told]))
        return unselected(visits, falls(begins, ends), _MOST_MISSED * self.terms.threshold)

    def _measured(self, row: Row) -> Row | None:
        """The study's own row of this cell, where it was measured."""
        own = self.by_key.get(row.key)
        return own if own is not None and own.outcome is Outcome.OK else None

    def best_cost(self, row: Row) -> Interval | None:
        """Nanoseconds per operation while the core is quiet, as far as it was; None where nothing was measured."""
        return self._best((row,), self._cost, row)

    def all_samples(self, row: Row) -> Interval | None:
        """Nanoseconds per operation over all samples; None where nothing was measured."""
        return self._cost(Moments.ALL, row)

    def best_ratio(self, row: Row, against: Row, confidence: float | None = None) -> Interval | None:
        """One cell's quiet cost over another's; a baseline's over itself is its repeat's over its own.

        None where no block has both. Where the core was not quiet in blocks enough, or probes miss more of one
        side than of the other, it is the ratio of all samples, and says so.
        """
        return self._best((row, against), self._ratio, row, against, confidence or self.confidence)

    def crossing(self, at: Sequence[float], line: Sequence[Row], level: Row) -> Interval | None:
        """Where the line through the costs of cells that stand `at` these places falls to that of `level`."""
        visits = [self.visits(row) for row in line]
        found = partial(stats.crossing, at, visits, self.visits(level), confidence=self.confidence)
        return self._best((*line, level), found)

    def compare(self, row: Row, against: Row, what: Quantity = COST) -> Toll:
        """What is judged of one cell beside another: by the study's cost, if nothing else is said.

        Of a cell beside itself it is its repeat's. Without a ratio it says why there is none.
        """
        noise = self.noise_for((row, against), what)
        toll = Toll(row, against, self.metric, noise_floor=apart(noise) if noise else None, noise=noise)
        reason = self._why_not_compared(row, against)
        ratio, all_samples = (None, None) if reason else self._ratios_of(row, against, what)
        if ratio is None:
            return replace(toll, reason=reason or _unseen(what))
        floor = reach(noise) if noise else None
        verdict = decide(ratio, floor, self.terms)
        its = self.best_cost(against) if what.is_whole_cost else None
        quiet = self._ratio(Moments.QUIET, row, against, self.confidence) if what.is_whole_cost else None
        return replace(
            toll,
            ratio=ratio,
            all_samples=all_samples,
            # What the ratio comes to at the other's cost, so that it has the ratio's own sign.
            difference=(ratio.estimate - 1) * its.estimate if its else None,
            verdict=verdict,
            more_blocks=more_blocks(ratio, floor, self.terms) if verdict is Verdict.UNCLEAR else None,
            suffers=suffers(ratio, all_samples, self.terms),
            quiet_blocks=quiet.n if quiet else 0,
        )

    def added(self, rows: Sequence[Row], weights: Sequence[float], moments: Moments | None = None) -> Interval | None:
        """The sum of these cells' costs, each times its weight: nanoseconds per operation.

        Of these moments; quiet where it was, if none are said. None where no block holds all of them.
        """
        of = [self.visits(row) for row in rows]
        found = partial(stats.added, of, weights, confidence=self.confidence)
        return self._best(rows, found) if moments is None else found(moments)

    def ratio_of_sums(self, rows: Sequence[Row], above: Sequence[float], below: Sequence[float]) -> Interval | None:
        """One weighted sum of these cells' costs over another; None as `added`."""
        of = [self.visits(row) for row in rows]
        found = partial(stats.ratio_of_sums, of, above, below, confidence=self.confidence)
        return self._best(rows, found)

    def noise_for(self, rows: Sequence[Row], what: Quantity = COST) -> Interval | None:
        """The A/A pairs that say what noise may do to a ratio of these cells: those of their baselines, and of their
        kind.

        Of several those whose interval reaches furthest; the study's own where these cells have none. What is counted
        is as it is, whatever the machine does.
        """
        if self._is_counted(what):
            return _EXACT
        against = {row.against for row in rows}
        own = [row for _, row in sorted(numbered for one in against for numbered in self._repeated_by.get(one, ()))]
        return self._worst_of(own, what) or self._worst_of(self.repeated, what)

    def _worst_of(self, repeated: Sequence[Row], what: Quantity) -> Interval | None:
        # A study may have thousands of baselines, and each of its cells asks for the worst of all.
        key = tuple(row.key for row in repeated) if repeated is not self.repeated else None, what
        if key not in self._worst:
            self._worst[key] = max(self.noises(repeated, what), key=reach, default=None)
        return self._worst[key]

    def noises(self, repeated: Iterable[Row], what: Quantity = COST) -> list[Interval]:
        """The ratios of these cells' A/A pairs to themselves, of those that were measured twice in blocks enough."""
        found = [self._noise(row, what) for row in repeated]
        return [noise for noise in found if noise is not None]

    def value(self, row: Row, what: Quantity) -> tuple[float, str] | None:
        """The quantity of one cell over all samples, as a source has it, with its unit; None where it was not
        measured."""
        found = stats.cost(self._visits_by(row.trials, what), Moments.ALL, confidence=self.confidence)
        if found is None:
            return None
        if what.is_inverse:
            return 1e9 / found.estimate, "1/s"
        units = {metric.name: metric.unit for metric in (*METRICS.values(), *self.observed_metrics)}
        return found.estimate, units.get(what.metric, "ns/op")

    def observed(self, row: Row, metric: Metric) -> Interval | None:
        """What its runners observed of a metric, on average; None where they did not."""
        return stats.cost(self.observing(row.trials, metric), Moments.ALL, confidence=self.confidence)

    def observing(self, trials: Iterable[Trial], metric: Metric, component: str = "") -> Visits:
        """The chunks of these trials at what was observed in them; of the whole, or of a component."""
        key = component, metric.name

        def observed(_: Trial, chunks: Chunks) -> Sequence[float]:
            return [value or 0.0 for value in chunks.observed.get(key, [None] * len(chunks))]

        seen = [trial for trial in trials if key in Chunks.of(trial.chunks).seen]
        return self.visits_of(seen, observed, is_per_operation=metric.is_per_operation)

    def sides(self, row: Row, against: Row) -> tuple[Visits, Visits]:
        """Visits of both sides of a ratio; both empty if no block has both cells.

        A baseline that was measured twice in each batch has both trials on its side, except against itself.
        """
        is_repeat = row.key == against.key
        own = self.repeats(row) if is_repeat else self.visits(row)
        others = self.visits(against) if is_repeat else (*self.visits(against), *self.repeats(against))
        return ((), ()) if {v.block for v in own}.isdisjoint(v.block for v in others) else (own, others)

    def visits_of(self, trials: Iterable[Trial], amount: Amount = spent, *, is_per_operation: bool = True) -> Visits:
        """The chunks of those trials that ended well, at what each spent of something: on its operations, or itself."""
        made = []
        for trial, told, quiet in self._told_by(trials):
            costs = np.array(amount(trial, told.chunks), float)
            operations = told.operations if is_per_operation else np.ones(len(costs), int)
            made.append(Visit(trial.block, trial.batch, told.rounds, costs, operations, quiet, told.first))
        return tuple(made)

    def _told_by(self, trials: Iterable[Trial]) -> list[tuple[Trial, _Told, np.ndarray]]:
        """A cell's trials with chunks that went well, what these tell, and which of them are quiet."""
        each = [(trial, told) for trial in trials if (told := self._told_of(trial)).chunks]
        whole = without_slices([(told.rounds, told.wall_ns) for _, told in each])
        return [(trial, told, told.quiet & ~without) for (trial, told), without in zip(each, whole, strict=True)]

    def _told_of(self, trial: Trial) -> _Told:
        """The chunks of a trial that went well, and what they tell whatever they spent."""
        found = self._told.get(id(trial))
        if found is None:
            chunks, longest_ns = Chunks.of(trial.chunks if trial.outcome is Outcome.OK else ()), self._longest_quick_ns
            if min(chunks.operations, default=1) < 1:
                chunks = Chunks.of([chunk for chunk in chunks if chunk.operations > 0])
            probes = probes_of(chunks)
            found = self._told[id(trial)] = _Told(
                chunks,
                np.array(chunks.operations, int),
                np.array(chunks.rounds, int),
                np.array(chunks.wall_ns, float),
                probes.first_ns <= longest_ns,
                probes.last_ns <= longest_ns,
                probes.slowest_ns <= longest_ns,
                ~np.array(chunks.made_up, bool),
            )
        return found

    def one_a_trial(self, trials: Iterable[Trial], value: Callable[[Trial], float]) -> Visits:
        """One value of each trial. What was not seen is no value."""
        one = np.ones(1)
        return tuple(
            Visit(trial.block, trial.batch, np.zeros(1, int), np.array([of]), one, one > 0, one > 0)
            for trial in trials
            if (of := value(trial)) > 0
        )

    def blocks(self) -> tuple[int, ...]:
        """Every block in which some cell was measured, in order."""
        return tuple(sorted({visit.block for row in self.rows for visit in self.visits(row)}))

    def why_unmeasured(self, row: Row) -> str | None:
        """Why this cell has no cost, or None if it has one."""
        if row.outcome is not Outcome.OK:
            return row.reason or f"the cell's outcome was `{row.outcome}`"
        if not self.visits(row):
            return row.reason or "none of its trials was completed"
        if not any((visit.costs[visit.first] > 0).any() for visit in self.visits(row)):
            return "its clock saw no CPU time in any chunk"
        return None

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
            else "no block holds both cells"
        )

    def _noise(self, row: Row, what: Quantity) -> Interval | None:
        key = row.key, what
        if key not in self._noises:
            ratio = self._ratios_of(row, row, what)[0] if row.repeats else None
            self._noises[key] = ratio if ratio is not None and ratio.is_bounded else None
        return self._noises[key]

    def _ratios_of(self, row: Row, against: Row, what: Quantity) -> tuple[Interval | None, Interval | None]:
        """The one's quantity over the other's: quiet where that could be had, and noisy."""
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
        """What is counted, and what only a throughput phase shows, is of all moments."""
        if {visit.block for visit in own}.isdisjoint(visit.block for visit in others):
            return None, None
        all_samples = stats.ratio(own, others, Moments.ALL, confidence=self.confidence)
        if what.is_noticed or self._is_counted(what) or not is_even or not self.quickness.was_ever_quiet:
            return all_samples, all_samples
        return stats.best(stats.ratio(own, others, Moments.QUIET, confidence=self.confidence), all_samples), all_samples

    def _visits_by(self, trials: Sequence[Trial], what: Quantity) -> Visits:
        if what.metric in _NOTICED:
            return self.one_a_trial(
                [trial for trial in trials if trial.outcome is Outcome.OK and settled([trial])],
                lambda trial: _NOTICED[what.metric](trial.load) if trial.load else 0.0,
            )
        if what.metric == "wall":
            return self.visits_of(trials, lambda _, chunks: chunks.wall_ns)
        if what.component is not None:
            of = (what.component,)
            return self.visits_of(trials, lambda _, chunks: chunks.paid(of))
        observed = self._observed(what)
        return self.visits_of(trials) if observed is None else self.observing(trials, observed)

    def _observed(self, what: Quantity) -> Metric | None:
        return next((metric for metric in self.observed_metrics if metric.name == what.metric), None)

    def _is_counted(self, what: Quantity) -> bool:
        """Whether it is what runners count, which is as it is whatever else the machine does; times are not."""
        observed = self._observed(what)
        return observed is not None and observed.unit not in _TIMES

    @cached_property
    def grain(self) -> Grain:
        """How much of a neighbour the probes at a chunk's ends miss, by how long it lasts."""
        trials = (trial for row in self.rows for trial in row.all_trials)
        return grain_of(trials, self._longest_quick_ns)

    def is_even(self, rows: Sequence[Row]) -> bool:
        """Whether probes miss about as much of a neighbour in each of these cells, or in one as in a slice.

        If not, their quiet costs are not of the same moments.
        """
        if len({row.key for row in rows}) == 1 and len(rows) > 1:
            return True
        missed = [self.missed(row) for row in rows]
        if len(missed) == 1:
            missed.append(self.grain.missed_in_slice)
        return max(missed) - min(missed) <= _MOST_MISSED * self.terms.threshold

    def missed(self, row: Row) -> float:
        """Return how much of a neighbour the probes next to a cell's quiet chunks miss, as a share of its cost."""
        if row.key not in self._missed:
            own = self._measured(row)
            found = self._told_by(own.trials) if own else []
            lasts_ns = [told.wall_ns[quiet] for _, told, quiet in found] or [np.zeros(0)]
            operations = [told.operations[quiet] for _, told, quiet in found] or [np.zeros(0)]
            self._missed[row.key] = self.grain.missed_in(np.concatenate(lasts_ns), np.concatenate(operations))
        return self._missed[row.key]

    def _best(self, rows: Sequence[Row], of: Callable[..., Interval | None], *what: object) -> Interval | None:
        """Quiet, where the core of these cells was quiet in blocks enough; else noisy."""
        is_quiet = self.quickness.was_ever_quiet and self.is_even(rows)
        quiet = of(Moments.QUIET, *what) if is_quiet else None
        if quiet is not None and quiet.is_bounded:
            return quiet
        return stats.best(quiet, of(Moments.ALL, *what))

    def _cost(self, moments: Moments, row: Row) -> Interval | None:
        key = (moments, row.key)
        if key not in self._costs:
            self._costs[key] = stats.cost(self.visits(row), moments, confidence=self.confidence)
        return self._costs[key]

    def _ratio(self, moments: Moments, row: Row, against: Row, confidence: float) -> Interval | None:
        """The ratio with an interval by its own variance and the shared one.

        Disturbed work suffers from neighbours' states that outlast a run, unlike work unequally: blocks of one run do
        not show how that varies. So the wider interval counts there; A/A pairs suffer alike.
        """
        ratio, spread = self._own_ratio(moments, row, against, confidence), self._spread(moments)
        if ratio is None or spread is None:
            return ratio
        moderated = spread.moderate(ratio, _by_design(row, against))
        is_own_wider = ratio.is_bounded and ratio.high / ratio.low > moderated.high / moderated.low
        return ratio if moments is Moments.ALL and row.key != against.key and is_own_wider else moderated

    def _own_ratio(self, moments: Moments, row: Row, against: Row, confidence: float) -> Interval | None:
        """The ratio with an interval by its own variance alone."""
        key = (moments, row.key, against.key, confidence)
        if key not in self._ratios:
            is_told = moments is Moments.ALL or self.is_even((row, against))
            own, others = self.sides(row, against) if is_told else ((), ())
            self._ratios[key] = stats.ratio(own, others, moments, confidence=confidence) if own else None
        return self._ratios[key]

    def _spread(self, moments: Moments) -> Spread | None:
        """The variance that ratios to baselines and of A/A pairs share in these moments."""
        if moments not in self._spreads:
            against = [(row, self.by_key.get(row.against or "")) for row in self.rows]
            pairs = [(row, other) for row, other in against if other is not None and other.key != row.key]
            pairs += [(row, row) for row in self.repeated]
            made = [
                (self._own_ratio(moments, row, other, self.confidence), _by_design(row, other)) for row, other in pairs
            ]
            found = [(ratio, scale) for ratio, scale in made if ratio is not None]
            self._spreads[moments] = shared([ratio for ratio, _ in found], [scale for _, scale in found])
        return self._spreads[moments]


def _by_design(row: Row, against: Row) -> float:
    """The variance of a ratio's logarithm, in those of one trial: a baseline measured twice has half of it."""
    return 1.5 if against.repeats and row.key != against.key else 2.0


def settled(trials: Iterable[Trial]) -> list[LoadRecord]:
    """What load clients saw in throughput phases, from which alone rates, response times and what limited them are
    taken."""
    return [trial.load for trial in trials if trial.load is not None and trial.load.is_settled]


def _unseen(what: Quantity) -> str:
    if what.is_whole_cost:
        return "in the blocks that hold both cells, the clock of one saw no CPU time"
    return f"its runners observed no `{what.metric}`" + (f" of {what.component}" if what.component else "")


# The noise of what is counted.
_EXACT = Interval(1.0, 1.0, 1.0, 1.0, 0)
