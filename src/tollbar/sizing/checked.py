"""What a mix's terms take under a load, beside what was predicted of them.

Each cell that servers perform is asked for by itself, a term's connections together, by a load client on a core of its
own, with arrivals that keep the server's core as busy as the mix wants it. CPU time is the server's: in rounds,
undisturbed as what was predicted, and of all moments in stretches of some tenths of a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tollbar import stats
from tollbar.families import Value
from tollbar.judge.costs import Ledger, settled
from tollbar.judge.decisions import Terms
from tollbar.records import Outcome, Trial
from tollbar.results import Run, StudyRun
from tollbar.sizing.mix import Term, load_words, typed
from tollbar.sizing.sized import Sized, SizedTerm, summed
from tollbar.stats import Interval, Moments, Visit


@dataclass(frozen=True)
class Asked:
    """A cell of a term, to be asked for at a rate."""

    name: str
    """Of its study."""
    term: SizedTerm
    choice: str
    words: tuple[str, ...]
    """Its coordinates in words of `tollbar ask`."""
    share: float
    """How often it is performed in each operation of the term."""


class Sides(NamedTuple):
    """What was measured of a term, or of a cell."""

    in_rounds: Interval
    in_stretches: Interval


@dataclass(frozen=True)
class CheckedTerm:
    """A term's CPU time at the mix's rate, in cores that are wholly busy."""

    name: str
    predicted: Interval
    sides: Sides | None = None
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
    yield _under_load(sized, term, {**place, **_whole(term.term)}, "term", 1.0)
    null = term.term.null
    if null is not None:
        yield _under_load(sized, term, {**place, **null.wanted}, "off", -1.0)


def _whole(term: Term) -> Mapping[str, Value]:
    """The cell that has all of a term's connections in it, the resumed ones by their share."""
    if not term.resumed:
        return term.main.wanted
    return {**term.parts[1].wanted, "resumed": round(100 * term.resumed)}


def _under_load(sized: Sized, term: SizedTerm, cell: Mapping[str, Value], name: str, share: float) -> Asked:
    family = term.term.family
    words = (f"{n}={typed(family, n, value)}" for n, value in cell.items() if n != "choice")
    said = (*words, *load_words(sized.mix.utilisation))
    return Asked(f"{name}-{term.term.name}", term, str(cell["choice"]), said, share)


def checked(sized: Sized, asked: tuple[Asked, ...], run: Run) -> Checked:
    """What was measured of these, beside what was predicted."""
    found = tuple(_checked(sized, term, asked, run) for term in sized.terms)
    done = [one for one in found if one.sides is not None]
    if not done:
        return Checked(run, found, None)
    names = {one.name for one in done}
    cells = [cell for term in sized.terms if term.term.name in names for cell in term.cells]
    predicted = scaled(summed(cells), sized.mix.utilisation)
    sides = [one.sides for one in done if one.sides is not None]
    return Checked(run, found, CheckedTerm("all that were run", predicted, _added(sides)))


def _checked(sized: Sized, term: SizedTerm, asked: tuple[Asked, ...], run: Run) -> CheckedTerm:
    name = term.term.name
    predicted = scaled(term.cores, sized.mix.utilisation)
    own = [one for one in asked if one.term is term]
    if not own:
        return CheckedTerm(name, predicted, reason="no server performs it, and no load client asks for it")
    studies = {one.study.name: one for one in run.studies}
    parts = []
    for one in own:
        sides = _costs(studies[one.name])
        if sides is None:
            reasons = [row.reason for row in studies[one.name].rows if row.reason]
            return CheckedTerm(name, predicted, reason=reasons[0] if reasons else "its server's CPU time was not seen")
        weight = one.share * term.term.rate_per_s * 1e-9
        parts.append(Sides(*(scaled(side, weight) for side in sides)))
    return CheckedTerm(name, predicted, _added(parts))


def _added(parts: Sequence[Sides]) -> Sides:
    return Sides(*(stats.total(side) for side in zip(*parts, strict=True)))


def _costs(one: StudyRun) -> Sides | None:
    """The server's CPU nanoseconds for each answer."""
    ledger = Ledger(one.rows, Terms.of(one), one.study.measure.cost, one.study.family)
    trials = [trial for row in one.rows for trial in row.trials if trial.outcome is Outcome.OK]
    # Of the same moments as what was predicted: beside neighbours a request takes a sixth more here.
    in_rounds = next((found for row in one.rows if (found := ledger.undisturbed(row)) is not None), None)
    in_stretches = _mean(ledger.one_a_trial(trials, _in_stretch), ledger)
    return None if in_rounds is None or in_stretches is None else Sides(in_rounds, in_stretches)


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
