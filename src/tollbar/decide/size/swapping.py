"""Swaps: another measured choice, or another value of one setting, in the place of a term's, judged as any toll is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tollbar.analysis import Verdict, reach
from tollbar.analysis.decisions import decide
from tollbar.catalog.families import OF_A_LOAD, Value
from tollbar.core.intervals import Interval
from tollbar.decide.rulings import Candidate, Wanted, candidate, ruled_on
from tollbar.decide.size.mix import RESUMPTION, Term
from tollbar.decide.size.summing import Cell, summed
from tollbar.results import Row

# Coordinates of the measurement's place: rows that differ in one are not two choices.
PLACES = ("op", "provider", "server", *OF_A_LOAD)
_LEAST_RATIO = 1e-9
# Order of the table: certain savings first, then free swaps, then open ones.
_ORDER = (Verdict.SAVES, Verdict.FREE, Verdict.UNCLEAR, Verdict.COSTS)


@dataclass(frozen=True)
class Swap:
    """Another choice, or another value of one setting, in the place of a term's."""

    term: Term
    name: str
    """Changed coordinate: `choice` or a setting."""
    value: Value
    row: Row
    """In the place of the term's cell, or of that of a full handshake."""
    own: tuple[str, ...]
    """The settings that its choice has and the term's has not, which are not at their defaults."""
    saved: Interval
    """Cores, below nought where it costs more."""
    verdict: Verdict
    """On the term's cost with it, over that without."""
    judged: Candidate
    """Candidate with the rulings of the mix's policies."""


def in_order(swaps: Iterable[Swap]) -> tuple[Swap, ...]:
    """Sort swaps by verdict, and decided ones by the end of their interval that lies nearer to nought.

    The largest estimate of several is most often too large. Swaps that nothing tells from nought keep the order of
    their study, because any order by their figures would put the luckiest first.
    """
    return tuple(sorted(swaps, key=lambda one: (_ORDER.index(one.verdict), -_near_end(one))))


def _near_end(one: Swap) -> float:
    """Return the end of a decided saving or loss that lies nearer to nought; nought for other swaps."""
    if one.verdict is Verdict.SAVES:
        return one.saved.low
    return one.saved.high if one.verdict is Verdict.COSTS else 0.0


def swaps(wanted: Wanted, term: Term, cells: Sequence[Cell]) -> Iterator[Swap]:
    """Yield each row that differs from the term's in its choice or in one setting that decides something."""
    family, own = term.family, cells[0]
    deciding = {"choice", *family.parameters, *(n for n, one in family.settings.items() if one.about)}
    deciding |= ruled_on(wanted)
    deciding -= {*PLACES, *((RESUMPTION, "resumed") if term.resumed is not None else ())}
    for row in own.source.study_run.rows:
        name = _changed(own.row, row)
        is_choice = row.standing.is_of_option and row.choice in family.choices
        if name in deciding and is_choice and own.source.ledger.why_unmeasured(row) is None:
            others = [
                _swapped(own.row, row, cell, name) if part.share >= 0 else cell
                for cell, part in zip(cells[1:], term.parts[1:], strict=True)
            ]
            there = [Cell(own.source, row, own.weight), *(cell for cell in others if cell is not None)]
            if len(there) == len(cells):
                yield _swap(wanted, term, cells, there, name)


def _changed(own: Row, other: Row) -> str | None:
    """Return the one coordinate in which both rows differ; None where they differ in none or several."""
    both = [name for name in own.coordinates if name in other.coordinates]
    differing = [name for name in both if own.coordinates[name] != other.coordinates[name]]
    return differing[0] if len(differing) == 1 else None


def _swapped(own: Row, other: Row, cell: Cell, name: str) -> Cell | None:
    """Return the measured cell that differs from this one as `other` differs from `own`, in the same study."""
    at = cell.row.coordinates
    alike = {n: v for n, v in other.coordinates.items() if own.coordinates.get(n) == at.get(n)}
    rows = (
        row
        for row in cell.source.study_run.rows
        if _changed(cell.row, row) == name
        and all(row.coordinates.get(n, value) == value for n, value in alike.items())
        and cell.source.ledger.why_unmeasured(row) is None
    )
    found = next(rows, None)
    return None if found is None else Cell(cell.source, found, cell.weight)


def _swap(wanted: Wanted, term: Term, cells: Sequence[Cell], others: Sequence[Cell], name: str) -> Swap:
    turned = [Cell(other.source, other.row, -other.weight) for other in others]
    saved = summed([*cells, *turned])
    row, at = others[0].row, others[0].row.coordinates
    settings = [n for n in term.family.settings if n in at and n not in cells[0].row.coordinates]
    own = tuple(n for n in settings if at[n] != term.family.default_at(n, at))
    judged = candidate(wanted, at)
    return Swap(term, name, at[name], row, own, saved, _verdict(cells, others, saved), judged)


def _verdict(cells: Sequence[Cell], others: Sequence[Cell], saved: Interval) -> Verdict:
    """Return the verdict on the ratio of both sums; for cells of several studies, on the saved share of the first.

    The threshold and the noise are then the largest of these studies.
    """
    ledger = cells[0].source.ledger
    if all(cell.source is cells[0].source for cell in cells):
        weights = {cell.row.key: (cell.row, [0.0, 0.0]) for cell in (*cells, *others)}
        for side, some in enumerate((others, cells)):
            for cell in some:
                weights[cell.row.key][1][side] += cell.weight
        rows = [row for row, _ in weights.values()]
        above, below = ([both[side] for _, both in weights.values()] for side in (0, 1))
        ratio = ledger.ratio_of_sums(rows, above, below)
        noise = ledger.noise_for(rows)
        if ratio is not None:
            return decide(ratio, reach(noise) if noise else None, ledger.terms)
    before = summed(cells).estimate
    noises = [one for some in (cells, others) if (one := _noise_of(some)) is not None]
    if before <= 0 or not saved.is_bounded or len(noises) < len((cells, others)):
        return Verdict.UNCLEAR
    # A ratio is above zero: whoever saves more than all that there was has saved it for certain.
    estimate, low, high = (max(1 - end / before, _LEAST_RATIO) for end in (saved.estimate, saved.high, saved.low))
    terms = max((cell.source.ledger.terms for cell in (*cells, *others)), key=lambda one: one.threshold)
    return decide(replace(saved, estimate=estimate, low=low, high=high), max(map(reach, noises)), terms)


def _noise_of(cells: Sequence[Cell]) -> Interval | None:
    """Return the A/A pairs that reach furthest among the studies of these cells; None where one study has none."""
    by_source: dict[int, list[Cell]] = {}
    for cell in cells:
        by_source.setdefault(id(cell.source), []).append(cell)
    found = [some[0].source.ledger.noise_for([cell.row for cell in some]) for some in by_source.values()]
    known = [one for one in found if one is not None]
    return max(known, key=reach) if len(known) == len(found) else None
