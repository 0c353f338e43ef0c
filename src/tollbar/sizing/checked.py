"""What a mix's terms take while a load client asks for them at a rate, beside what was predicted of them.

Each cell that servers perform is asked for by itself, beside no other, with arrivals at the rate that keeps one core as
busy as the mix wants cores to be. Its CPU time is the server's, of all moments: in rounds, where the load client is on
the server's core, as in every cost; and in stretches, where it is on a core of its own, and the server sleeps until a
request wakes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar import stats
from tollbar.families import Value
from tollbar.judge.costs import Ledger, settled
from tollbar.judge.decisions import Terms
from tollbar.records import Outcome, Trial
from tollbar.results import Run, StudyRun
from tollbar.sizing.mix import Term, typed
from tollbar.sizing.sized import Sized, SizedTerm, summed
from tollbar.stats import Interval, Moments, Visit

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
    measured: Interval | None = None
    """In rounds."""
    apart: Interval | None = None
    """In stretches, the load client on a core of its own."""
    reason: str | None = None
    """Why nothing was measured of it."""


@dataclass(frozen=True)
class Checked:
    """Both sides of those terms that could be run."""

    run: Run
    terms: tuple[CheckedTerm, ...]
    total: CheckedTerm | None
    """Of all that were measured; None where none was."""


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
    done = [(one.measured, one.apart) for one in found if one.measured is not None and one.apart is not None]
    if not done:
        return Checked(run, found, None)
    run_terms = {one.name for one in found if one.measured is not None}
    cells = [cell for term in sized.terms if term.term.name in run_terms for cell in term.cells]
    predicted = scaled(summed(cells), sized.mix.utilisation)
    measured, apart = (stats.total(side) for side in zip(*done, strict=True))
    return Checked(run, found, CheckedTerm("all that were run", predicted, measured, apart))


def _checked(sized: Sized, term: SizedTerm, asked: tuple[Asked, ...], run: Run) -> CheckedTerm:
    name = term.term.name
    predicted = scaled(term.cores, sized.mix.utilisation)
    own = [one for one in asked if one.term is term]
    if not own:
        return CheckedTerm(name, predicted, reason="no server performs it, and no load client asks for it")
    studies = {one.study.name: one for one in run.studies}
    parts: list[tuple[Interval, Interval]] = []
    for one in own:
        in_rounds, in_stretches = _costs(studies[one.name])
        if in_rounds is None or in_stretches is None:
            reasons = [row.reason for row in studies[one.name].rows if row.reason]
            return CheckedTerm(name, predicted, reason=reasons[0] if reasons else "its server's CPU time was not seen")
        weight = one.share * term.term.rate_per_s * 1e-9
        parts.append((scaled(in_rounds, weight), scaled(in_stretches, weight)))
    measured, apart = (stats.total(side) for side in zip(*parts, strict=True))
    return CheckedTerm(name, predicted, measured, apart)


def _costs(one: StudyRun) -> tuple[Interval | None, Interval | None]:
    """The server's CPU nanoseconds for each answer: in rounds, and in stretches."""
    ledger = Ledger(one.rows, Terms.of(one), one.study.measure.cost, one.study.family)
    trials = [trial for row in one.rows for trial in row.trials if trial.outcome is Outcome.OK]
    apart = ledger.one_a_trial(trials, _in_stretch)
    return _mean(ledger.visits_of(trials), ledger), _mean(apart, ledger)


def _mean(visits: Sequence[Visit], ledger: Ledger) -> Interval | None:
    if not visits:
        return None
    return stats.added([visits], [1.0], Moments.AS_DISTURBED, confidence=ledger.confidence)


def _in_stretch(trial: Trial) -> float:
    loads = settled([trial])
    return loads[0].server_cpu_ns / loads[0].requests if loads and loads[0].requests else 0.0


def scaled(of: Interval, by: float) -> Interval:
    """So many times an estimate, its interval with it."""
    ends = sorted((of.low * by, of.high * by))
    return replace(of, estimate=of.estimate * by, low=ends[0], high=ends[1])
