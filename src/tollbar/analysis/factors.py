"""What each factor of a study costs, and whether what they cost together is the sum of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from tollbar.analysis.decisions import Terms, decide, jointly, reach
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.verdicts import Verdict
from tollbar.core.stats import Interval
from tollbar.results import Row, StudyRun
from tollbar.study.plan.pairs import factored


class Together(StrEnum):
    """Whether choices that are made together cost the sum of what each costs by itself."""

    ADDS_UP = "adds up"
    CHEAPER = "cheaper together"
    DEARER = "dearer together"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class FactorPart:
    """What factors add to the cost: one by itself, or several beyond what fewer of them add."""

    factors: tuple[str, ...]
    added: Interval
    """Nanoseconds per operation, perhaps below nought."""


@dataclass(frozen=True, slots=True)
class Split:
    """What the first of two factors changes, as ratios to the cost without either: less one, the parts add up."""

    whole: Interval
    """All that it changes, without the second factor."""
    alike: Interval
    """What it changes where the second factor holds."""
    rest: Interval
    """The whole, less that."""
    verdicts: tuple[Verdict, Verdict, Verdict]
    """On the three, in this order."""
    floor: float | None = None
    """How far from one noise alone may take a ratio of these cells."""


@dataclass(frozen=True, slots=True)
class FactorsResult:
    """All combinations of a study's factors in one place, taken apart."""

    rows: tuple[Row, ...]
    """That without any factor first, then that with the first, with the second, with these two, …, with all."""
    costs: tuple[Interval, ...] = ()
    """Nanoseconds per operation of each, over the blocks that all have."""
    parts: tuple[FactorPart, ...] = ()
    """Each factor's own, then of each two, then of all three: with the cost of the first cell they add up to that of
    the last one."""
    beyond: Interval | None = None
    """Nanoseconds per operation: the cost with all of them, less the sum of each one's own on top of the first's."""
    ratio: Interval | None = None
    """The same as a share: the cost with all of them over that sum."""
    verdict: Together = Together.CANNOT_TELL
    reason: str | None = None
    """Why there is none."""
    split: Split | None = None
    """Of two factors; None of three."""

    @property
    def reckoned(self) -> tuple[tuple[Row, Interval], ...]:
        """Each cell with its cost; none where they could not be taken apart."""
        return tuple(zip(self.rows, self.costs, strict=False))

    @property
    def own(self) -> tuple[FactorPart, ...]:
        """Of each factor by itself, in the study's order."""
        return tuple(part for part in self.parts if len(part.factors) == 1)


_TOGETHER = {
    Verdict.FREE: Together.ADDS_UP,
    Verdict.SAVES: Together.CHEAPER,
    Verdict.COSTS: Together.DEARER,
    Verdict.UNCLEAR: Together.CANNOT_TELL,
}


def factors(study_run: StudyRun, ledger: Ledger) -> tuple[FactorsResult, ...]:
    """One result for each place in which all combinations of the study's factors were planned."""
    names = tuple(study_run.study.factors)
    return tuple(_result(names, rows, ledger) for rows in factored(study_run.study, ledger.rows))


def _result(names: Sequence[str], rows: tuple[Row, ...], ledger: Ledger) -> FactorsResult:
    """Cells are numbered by their factors: bit by bit, in the order of the names."""
    for row in rows:
        why = ledger.why_unmeasured(row)
        if why is not None:
            return FactorsResult(rows, reason=f"{row.title} was not measured: {why}")
    singles = [1 << bit for bit in range(len(names))]
    together = [bits for some in range(1, len(names) + 1) for bits in combinations(range(len(names)), some)]
    whole = _weights(len(rows), {len(rows) - 1: 1.0})
    # The sum of what each costs by itself, on top of what is there without any.
    summed = _weights(len(rows), {0: 1.0 - len(names), **dict.fromkeys(singles, 1.0)})
    costs = [ledger.added(rows, _weights(len(rows), {cell: 1.0})) for cell in range(len(rows))]
    effects = [ledger.added(rows, _effect(sum(1 << bit for bit in bits), len(rows))) for bits in together]
    beyond = ledger.added(rows, [one - other for one, other in zip(whole, summed, strict=True)])
    ratio = ledger.ratio_of_sums(rows, whole, summed)
    if beyond is None:
        return FactorsResult(rows, reason="no block holds all of its cells")
    if ratio is None:
        return FactorsResult(rows, reason="by itself each saves so much that nothing would be left of the cost")
    noise = ledger.noise_for(rows)
    floor = reach(noise) if noise else None
    return FactorsResult(
        rows,
        # All are of the same blocks: where one is known, so are the others.
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
    """What the first factor changes without the second, with it, and the one less the other."""
    without, both = (0.0, 1.0, 0.0, 0.0), (1.0, 0.0, -1.0, 1.0)
    rest = [one - other for one, other in zip((1.0, 1.0, 0.0, 0.0), both, strict=True)]
    found = [ledger.ratio_of_sums(rows, above, (1.0, 0.0, 0.0, 0.0)) for above in (without, both, rest)]
    whole, alike, left = found
    if whole is None or alike is None or left is None:
        return None
    one, other, last = (decide(ratio, floor, ledger.terms) for ratio in (whole, alike, left))
    return Split(whole, alike, left, (one, other, last), floor)


def split_as_one_of(among: int, split: Split, terms: Terms) -> Split:
    """The same with intervals that hold together with so many others, and with the verdicts that these carry."""
    whole, alike, rest = (jointly(ratio, among) for ratio in (split.whole, split.alike, split.rest))
    first, second, third = (decide(ratio, split.floor, terms) for ratio in (whole, alike, rest))
    return replace(split, whole=whole, alike=alike, rest=rest, verdicts=(first, second, third))


def _effect(of: int, cells: int) -> list[float]:
    """Weights that make of the cells' costs what these factors cost together, beyond what fewer of them cost."""
    within = [cell for cell in range(cells) if cell & of == cell]
    return _weights(cells, {cell: (-1.0) ** (of.bit_count() - cell.bit_count()) for cell in within})


def _weights(cells: int, of: dict[int, float]) -> list[float]:
    return [of.get(cell, 0.0) for cell in range(cells)]
