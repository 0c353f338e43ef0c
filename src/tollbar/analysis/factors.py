"""Factors: the cost of each factor of a study, and whether the costs of several add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from tollbar.analysis.decisions import Terms, decide, jointly, reach
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.verdicts import Verdict
from tollbar.core.intervals import Interval
from tollbar.results import Row, StudyRun
from tollbar.study.plan.pairs import factored


class Together(StrEnum):
    """Verdict on whether choices made together cost the sum of their single costs."""

    ADDS_UP = "adds up"
    CHEAPER = "cheaper together"
    DEARER = "dearer together"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class FactorPart:
    """Cost that factors add: one alone, or several beyond what fewer of them add."""

    factors: tuple[str, ...]
    added: Interval
    """Nanoseconds per operation, possibly negative."""


@dataclass(frozen=True, slots=True)
class Split:
    """Changes by the first of two factors, as ratios to the cost without either.

    Less one, `alike` and `rest` add up to `whole`.
    """

    whole: Interval
    """Whole change by the first factor, without the second."""
    alike: Interval
    """Change by the first factor where the second factor holds."""
    rest: Interval
    """Whole change minus the change with the second factor."""
    verdicts: tuple[Verdict, Verdict, Verdict]
    """Verdicts on `whole`, `alike` and `rest`, in this order."""
    floor: float | None = None
    """Largest ratio that noise alone may make of these cells."""


@dataclass(frozen=True, slots=True)
class FactorsResult:
    """Result for one place: all combinations of a study's factors, taken apart."""

    rows: tuple[Row, ...]
    """Cells in order: without any factor, with the first, with the second, with these two, …, with all."""
    costs: tuple[Interval, ...] = ()
    """Nanoseconds per operation of each cell, over the blocks that all have."""
    parts: tuple[FactorPart, ...] = ()
    """Parts of each factor, of each two, then of all three: with the first cell's cost their sum is the last cell's."""
    beyond: Interval | None = None
    """Nanoseconds per operation: the cost with all factors, minus the sum of each one's own and the first cell's."""
    ratio: Interval | None = None
    """Cost with all factors over that sum."""
    verdict: Together = Together.CANNOT_TELL
    reason: str | None = None
    """Reason why there is no result."""
    split: Split | None = None
    """Split of two factors; None for three."""

    @property
    def reckoned(self) -> tuple[tuple[Row, Interval], ...]:
        """Cells with their costs; empty if they could not be taken apart."""
        return tuple(zip(self.rows, self.costs, strict=False))

    @property
    def own(self) -> tuple[FactorPart, ...]:
        """Part of each factor alone, in the study's order."""
        return tuple(part for part in self.parts if len(part.factors) == 1)


_TOGETHER = {
    Verdict.FREE: Together.ADDS_UP,
    Verdict.SAVES: Together.CHEAPER,
    Verdict.COSTS: Together.DEARER,
    Verdict.UNCLEAR: Together.CANNOT_TELL,
}


def factors(study_run: StudyRun, ledger: Ledger) -> tuple[FactorsResult, ...]:
    """Return one result for each place in which all combinations of the study's factors were planned."""
    names = tuple(study_run.study.factors)
    return tuple(_result(names, rows, ledger) for rows in factored(study_run.study, ledger.rows))


def _result(names: Sequence[str], rows: tuple[Row, ...], ledger: Ledger) -> FactorsResult:
    """Return the result of one place; the n-th bit of a cell's number is set if it has the n-th factor."""
    for row in rows:
        why = ledger.why_unmeasured(row)
        if why is not None:
            return FactorsResult(rows, reason=f"{row.title} was not measured: {why}")
    singles = [1 << bit for bit in range(len(names))]
    together = [bits for some in range(1, len(names) + 1) for bits in combinations(range(len(names)), some)]
    whole = _weights(len(rows), {len(rows) - 1: 1.0})
    # Sum of the single costs of the factors on top of the cost without any.
    summed = _weights(len(rows), {0: 1.0 - len(names), **dict.fromkeys(singles, 1.0)})
    costs = [ledger.added(rows, _weights(len(rows), {cell: 1.0})) for cell in range(len(rows))]
    effects = [ledger.added(rows, _effect(sum(1 << bit for bit in bits), len(rows))) for bits in together]
    beyond = ledger.added(rows, [one - other for one, other in zip(whole, summed, strict=True)])
    ratio = ledger.ratio_of_sums(rows, whole, summed)
    if beyond is None:
        return FactorsResult(rows, reason="no block has all of its cells")
    if ratio is None:
        return FactorsResult(rows, reason="the savings of the single factors exceed the whole cost")
    noise = ledger.noise_for(rows)
    floor = reach(noise) if noise else None
    return FactorsResult(
        rows,
        # All costs are of the same blocks: if one is known, so are the others.
        tuple(cost for cost in costs if cost is not None),
        tuple(
            FactorPart(tuple(names[bit] for bit in bits), added)
            for bits, added in zip(together, effects, strict=True)
            if added is not None
        ),
        beyond,
        ratio,
        _TOGETHER[decide(ratio, floor, ledger.terms)],
        split=_split(rows, ledger, floor) if len(names) == 2 else None,
    )


def _split(rows: Sequence[Row], ledger: Ledger, floor: float | None) -> Split | None:
    """Return the first factor's change without the second, its change with it, and the difference."""
    without, both = (0.0, 1.0, 0.0, 0.0), (1.0, 0.0, -1.0, 1.0)
    rest = [one - other for one, other in zip((1.0, 1.0, 0.0, 0.0), both, strict=True)]
    found = [ledger.ratio_of_sums(rows, above, (1.0, 0.0, 0.0, 0.0)) for above in (without, both, rest)]
    whole, alike, left = found
    if whole is None or alike is None or left is None:
        return None
    one, other, last = (decide(ratio, floor, ledger.terms) for ratio in (whole, alike, left))
    return Split(whole, alike, left, (one, other, last), floor)


def split_as_one_of(among: int, split: Split, terms: Terms) -> Split:
    """Return the split with intervals that hold jointly among this number, and the verdicts that these support."""
    whole, alike, rest = (jointly(ratio, among) for ratio in (split.whole, split.alike, split.rest))
    first, second, third = (decide(ratio, split.floor, terms) for ratio in (whole, alike, rest))
    return replace(split, whole=whole, alike=alike, rest=rest, verdicts=(first, second, third))


def _effect(of: int, cells: int) -> list[float]:
    """Return weights that make of the cells' costs the joint cost of these factors beyond that of fewer of them."""
    within = [cell for cell in range(cells) if cell & of == cell]
    return _weights(cells, {cell: (-1.0) ** (of.bit_count() - cell.bit_count()) for cell in within})


def _weights(cells: int, of: dict[int, float]) -> list[float]:
    return [of.get(cell, 0.0) for cell in range(cells)]
