"""Check of a mix's predicted costs under a load.

Each term that a load client can request is measured by itself, next to all its connections together and the cell that
is subtracted. The client has a core of its own, and arrivals keep the server's core as busy as the mix requires. CPU
time is the server's: in rounds, of the same moments as the prediction, and of all moments in throughput phases of some
tenths of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tollbar.analysis import quickness
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.visits import settled
from tollbar.catalog.families import Value
from tollbar.core import intervals, machine, stats
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Interval, Moments
from tollbar.core.moments import Quickness
from tollbar.core.records import Outcome, Trial
from tollbar.decide.size.mix import Part, Term
from tollbar.decide.size.sized import Sized, SizedTerm
from tollbar.decide.size.summing import Cell, summed
from tollbar.results import Row, Run, StudyRun


@dataclass(frozen=True)
class Asked:
    """Term to request at the mix's rate."""

    name: str
    """Name of the study."""
    term: SizedTerm
    cells: tuple[Part, ...]
    """Cell of all connections together, and the cell that is subtracted."""
    words: tuple[str, ...]
    """Cells in words of `tollbar ask`."""


class Sides(NamedTuple):
    """Measured CPU time of a term."""

    in_rounds: Interval
    in_phases: Interval


@dataclass(frozen=True)
class CheckedTerm:
    """Term's CPU time at the mix's rate, in fully busy cores.

    The prediction and the measurement in rounds are of the same moments.
    """

    name: str
    predicted: Interval
    sides: Sides | None = None
    reason: str | None = None
    """Reason why the term was not measured."""


@dataclass(frozen=True)
class Checked:
    """Predictions of all terms, with the measurements of those that a load client can request."""

    run: Run
    terms: tuple[CheckedTerm, ...]
    total: CheckedTerm | None
    """Sum of all measured terms; None where none was measured."""


_ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "--check": (
        "use runs without `--roles`; a check runs all parts on this machine",
        "check on the measured machine, or use runs of this one",
    ),
    "--for": (
        "`--for 0s` prints the commands that measure missing terms; costs of this machine cannot be added to those",
        "measure on that machine; `--for 0s` prints the commands",
    ),
}
"""Hints by the option that measures: for a run with roles, and for a run of another machine."""


def refuse_elsewhere(sized: Sized, here: Mapping[str, Any], option: str = "--check") -> None:
    """Raise TollbarError if costs of this machine, by its fingerprint, cannot be added to the runs that were sized.

    They are of another machine, or a part of a server was on a machine of its own: an option that measures has all
    parts on this one.
    """
    with_roles, other_machine = _ELSEWHERE[option]
    for run in sized.runs:
        if run.nodes:
            parts = ", ".join(f"{role} ({node['address']})" for role, node in run.nodes.items())
            raise TollbarError(
                f"{run.name} was measured with roles on other machines ({parts})",
                where=option,
                hint=with_roles,
            )
    # Runs of several machines are not sized: the first speaks for all.
    for run in sized.runs[:1]:
        if found := machine.differences(run.fingerprint, here):
            raise TollbarError(
                f"{run.name} was measured on another machine: {'; '.join(found)}",
                where=option,
                hint=other_machine,
            )


def to_ask(sized: Sized) -> tuple[Asked, ...]:
    """Return the terms that a load client has to request."""
    return tuple(_asked(sized, one) for one in sized.terms if one.term.is_asked)


def _asked(sized: Sized, one: SizedTerm) -> Asked:
    term, at = one.term, one.cell.row.coordinates
    place = {name: at[name] for name in ("op", "server", "provider") if name in at}
    found = [Part(_whole(term), 1.0), *([term.null] if term.null else [])]
    cells = tuple(replace(part, wanted={**place, **part.wanted}) for part in found)
    words = replace(term, parts=cells).words(sized.mix.utilisation)
    return Asked(f"term-{term.name}", one, cells, words)


def _whole(term: Term) -> Mapping[str, Value]:
    """Return the cell that has all of a term's connections in it, the resumed ones by their share."""
    if not term.resumed:
        return term.main.wanted
    return {**term.parts[1].wanted, "resumed": round(100 * term.resumed)}


@dataclass(frozen=True)
class _Measured:
    """Measured cells of a term, each with its weight in cores per nanosecond."""

    ledger: Ledger
    rows: Sequence[Row]
    weights: Sequence[float]

    def in_rounds(self, moments: Moments | None) -> Interval | None:
        return self.ledger.added(self.rows, self.weights, moments)

    @property
    def in_phases(self) -> Interval | None:
        ended = [[trial for trial in row.trials if trial.outcome is Outcome.OK] for row in self.rows]
        visits = [self.ledger.one_a_trial(trials, _in_phase) for trials in ended]
        return stats.added(visits, self.weights, Moments.ALL, confidence=self.ledger.confidence)


def checked(sized: Sized, asked: tuple[Asked, ...], run: Run) -> Checked:
    """Return the measurements of these terms, next to their predictions."""
    studies = {one.study.name: one for one in run.studies}
    # The quiet threshold comes from the whole run and the machine's history, as for the prediction.
    known = quickness(run)
    measured = {one.term.term.name: _measured(one, studies[one.name], known) for one in asked}
    terms = tuple(_checked(sized, one, measured.get(one.term.name) or _why_not_asked(one.term)) for one in sized.terms)
    done = {one.name for one in terms if one.sides is not None}
    cells = [cell for one in sized.terms if one.term.name in done for cell in one.cells]
    parts = [one for name, one in measured.items() if name in done and isinstance(one, _Measured)]
    return Checked(run, terms, _side_by_side(sized, "all that were run", cells, parts) if parts else None)


def _measured(asked: Asked, one: StudyRun, known: Quickness) -> _Measured | str:
    """Return the measurement of a term, or the reason why one of its cells was not measured."""
    ledger = Ledger(one.rows, Terms.of(one), one.study.measure.cost, one.study.family, known)
    rows = []
    for part in asked.cells:
        row = next((row for row in one.rows if part.wanted.items() <= row.coordinates.items()), None)
        if row is None:
            return "it was not measured in this check"
        if (why := ledger.why_unmeasured(row)) is not None:
            return why
        rows.append(row)
    return _Measured(ledger, rows, [part.share * asked.term.term.rate_per_s * 1e-9 for part in asked.cells])


def _why_not_asked(term: Term) -> str:
    asks = "no load client can send its requests"
    return asks if term.is_served else f"no server performs it, and {asks}"


def _checked(sized: Sized, one: SizedTerm, measured: _Measured | str) -> CheckedTerm:
    name = one.term.name
    if isinstance(measured, str):
        return CheckedTerm(name, scaled(one.cores, sized.mix.utilisation), reason=measured)
    return _side_by_side(sized, name, one.cells, [measured])


def _side_by_side(sized: Sized, name: str, cells: Sequence[Cell], measured: Sequence[_Measured]) -> CheckedTerm:
    """Return prediction and measurement, both quiet where both have enough blocks, else neither.

    With neighbours a request costs a sixth more here, and their number on each side is not a property of the mix.
    """

    def predicted(moments: Moments | None) -> Interval:
        return scaled(summed(cells, moments), sized.mix.utilisation)

    def in_rounds(moments: Moments | None) -> Interval | None:
        return _total([one.in_rounds(moments) for one in measured])

    best = predicted(None), in_rounds(None)
    are_quiet = all(side is not None and side.moments is Moments.QUIET for side in best)
    moments = None if are_quiet else Moments.ALL
    found, in_phases = in_rounds(moments), _total([one.in_phases for one in measured])
    if found is None or in_phases is None:
        return CheckedTerm(name, best[0], reason="its server's CPU time was not measured")
    return CheckedTerm(name, predicted(moments), Sides(found, in_phases))


def _total(parts: Sequence[Interval | None]) -> Interval | None:
    """Return the sum over several studies; None where one of them has no value."""
    there = [one for one in parts if one is not None]
    return intervals.total(there) if len(there) == len(parts) else None


def _in_phase(trial: Trial) -> float:
    loads = settled([trial])
    return loads[0].server_cpu_ns / loads[0].requests if loads and loads[0].requests else 0.0


def scaled(of: Interval, by: float) -> Interval:
    """Return an estimate and its interval, multiplied by `by`."""
    ends = sorted((of.low * by, of.high * by))
    return replace(of, estimate=of.estimate * by, low=ends[0], high=ends[1])
