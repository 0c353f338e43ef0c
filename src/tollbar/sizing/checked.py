"""What a mix's terms take while a load client asks for them at a rate, beside what was predicted of them.

Each cell that servers perform is asked for by itself, one after the other, at the rate that keeps one core as busy as
the mix wants cores to be, and its CPU time is the server's over the whole stretch, selected by nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tollbar import stats
from tollbar.families import Value
from tollbar.judge.costs import Ledger, settled
from tollbar.judge.decisions import Terms
from tollbar.results import Run, StudyRun
from tollbar.sizing.mix import Term, typed
from tollbar.sizing.sized import Sized, SizedTerm
from tollbar.stats import Interval, Moments

# A load client on a core of its own keeps up with this.
MOST_PER_S = 50_000.0


@dataclass(frozen=True)
class Asked:
    """A cell of a term, to be asked for at a rate."""

    name: str
    """Of its study."""
    term: SizedTerm
    choice: str
    words: tuple[str, ...]
    """Its coordinates in words of `tollbar ask`."""
    rate_per_s: float
    share: float
    """How often it is performed in each operation of the term."""


@dataclass(frozen=True)
class CheckedTerm:
    """A term's CPU time at the mix's rate, in cores that are wholly busy."""

    name: str
    predicted: Interval
    measured: Interval | None
    reason: str | None = None
    """Why nothing was measured of it."""


@dataclass(frozen=True)
class Checked:
    """Both sides of those terms that could be run."""

    run: Run
    terms: tuple[CheckedTerm, ...]
    predicted: Interval | None
    measured: Interval | None


def to_ask(sized: Sized) -> tuple[Asked, ...]:
    """What a load client has to ask for."""
    return tuple(one for term in sized.terms if term.term.is_served for one in _asked(sized, term))


def _asked(sized: Sized, term: SizedTerm) -> Iterator[Asked]:
    place = {
        name: term.cell.row.coordinates[name] for name in ("op", "bed", "provider") if name in term.cell.row.coordinates
    }
    yield _at_rate(sized, term, {**place, **_whole(term.term)}, "term", 1.0)
    null = term.term.null
    if null is not None:
        yield _at_rate(sized, term, {**place, **null.wanted}, "off", -1.0)


def _whole(term: Term) -> Mapping[str, Value]:
    """The cell that has all of a term's connections in it, the resumed ones by their share."""
    if not term.resumed:
        return term.main.wanted
    return {**term.parts[1].wanted, "resumed": round(100 * term.resumed)}


def _at_rate(sized: Sized, term: SizedTerm, cell: Mapping[str, Value], name: str, share: float) -> Asked:
    weights = [one.weight for one in term.cells if (one.weight < 0) == (share < 0)]
    costs = [one.source.ledger.undisturbed(one.row) for one in term.cells if (one.weight < 0) == (share < 0)]
    each = sum(w * c.estimate for w, c in zip(weights, costs, strict=True) if c) / sum(weights)
    rate = min(MOST_PER_S, max(1.0, sized.mix.utilisation * 1e9 / each))
    family = term.term.family
    words = (f"{n}={typed(family, n, value)}" for n, value in cell.items() if n != "choice")
    return Asked(f"{name}-{term.term.name}", term, str(cell["choice"]), (*words, f"rate={rate:.0f}/s"), rate, share)


def checked(sized: Sized, asked: tuple[Asked, ...], run: Run) -> Checked:
    """What was measured of these, beside what was predicted."""
    found = tuple(_checked(sized, term, asked, run) for term in sized.terms)
    both = [one for one in found if one.measured is not None]
    if not both:
        return Checked(run, found, None, None)
    # Of the same blocks the terms' costs are not independent; whole sums are made of cells, as the mix's own is.
    return Checked(
        run,
        found,
        stats.total([one.predicted for one in both]),
        stats.total([one.measured for one in both if one.measured is not None]),
    )


def _checked(sized: Sized, term: SizedTerm, asked: tuple[Asked, ...], run: Run) -> CheckedTerm:
    name = term.term.name
    predicted = scaled(term.cores, sized.mix.utilisation)
    own = [one for one in asked if one.term is term]
    if not own:
        return CheckedTerm(name, predicted, None, "no server performs it, and no load client asks for it")
    studies = {one.study.name: one for one in run.studies}
    parts: list[Interval] = []
    for one in own:
        cost = _cost(studies[one.name])
        if cost is None:
            reasons = [row.reason for row in studies[one.name].rows if row.reason]
            return CheckedTerm(name, predicted, None, reasons[0] if reasons else "its server's CPU time was not seen")
        parts.append(scaled(cost, one.share * term.term.rate_per_s * 1e-9))
    return CheckedTerm(name, predicted, stats.total(parts))


def _cost(one: StudyRun) -> Interval | None:
    """The server's CPU nanoseconds for each answer, over whole stretches."""
    ledger = Ledger(one.rows, Terms.of(one), one.study.measure.cost, one.study.family)
    trials = [trial for row in one.rows for trial in row.trials if settled([trial])]
    visits = ledger.one_a_trial(
        trials,
        lambda trial: trial.load.server_cpu_ns / trial.load.requests if trial.load and trial.load.requests else 0,
    )
    return stats.cost(visits, Moments.AS_DISTURBED, confidence=ledger.confidence)


def scaled(of: Interval, by: float) -> Interval:
    """So many times an estimate, its interval with it."""
    ends = sorted((of.low * by, of.high * by))
    return replace(of, estimate=of.estimate * by, low=ends[0], high=ends[1])
