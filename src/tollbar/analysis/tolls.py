"""Tolls: each cell's cost over its baseline's, and the comparison of any two cells of a study."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from tollbar.analysis.decisions import Terms, decide, jointly, more_blocks, reach
from tollbar.analysis.judgement import StudyJudgement
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.results import Row
from tollbar.study import Coordinates


def tolls(ledger: Ledger, baseline: Coordinates) -> tuple[Toll, ...]:
    """Return one toll for each cell, in the rows' order; a toll without a ratio has the reason.

    A baseline's own toll is its repeat's cost over its own: a true ×1.00 as measured on this machine.
    """
    return tuple(_toll(row, ledger, baseline) for row in ledger.rows)


def _toll(row: Row, ledger: Ledger, fixed: Coordinates) -> Toll:
    baseline = ledger.by_key.get(row.against) if row.against is not None else None
    toll = ledger.compare(row, baseline) if baseline else Toll(row, row, ledger.metric)
    if toll.ratio is not None:
        return toll
    return replace(toll, reason=_without_baseline(row, baseline, ledger, fixed) or toll.reason)


def _without_baseline(row: Row, baseline: Row | None, ledger: Ledger, fixed: Coordinates) -> str | None:
    """Return why there is nothing to compare; None if both have a cost, and the toll itself has the reason."""
    own = ledger.why_unmeasured(row)
    if own is not None:
        return own
    if row.against is None:
        at = ", ".join(f"{name} {value}" for name, value in fixed.items())
        return f"it has no baseline: no cell differs from it only in {at}"
    if baseline is None:
        return f"its baseline, {row.against}, is not among the cells"
    its = ledger.why_unmeasured(baseline)
    return None if its is None else f"its baseline was not measured: {its}"


MOST_MADE = 1_000
"""Limit of the comparisons that are computed on request, each in a millisecond: ten times those of the set
`sources`."""


class Compared:
    """Comparisons of any two cells of a study: taken from the part of it that has them, or computed on request.

    After `MOST_MADE` none is computed any more, and pairs without one count as not compared.
    """

    def __init__(self, study: StudyJudgement) -> None:
        self._terms, self._noise, self._ledger = Terms.of(study.study), study.noise, study.ledger
        self._made = 0
        cells = (cell for result in study.tables if result.table.metric is None for cell in result.cells)
        members = (member for contrast in study.contrasts for member in contrast.members)
        judged = [*members, *(cell.toll for cell in cells if cell.toll), *study.tolls]
        # Tolls come last and win: if several parts compare the same two cells, the page prints the toll.
        self._found = {
            (one.row.key, one.against.key): self._with_noise(one)
            for toll in judged
            if toll.ratio is not None and toll.verdict is not Verdict.NOT_MEASURED and toll.row.key != toll.against.key
            for one in (toll, toll.turned)
        }

    def expect(self, of: Iterable[tuple[Row, Row]]) -> None:
        """Prepare comparisons that will be asked for, as many as may still be made."""
        if self._ledger is not None:
            new = ((row, against) for row, against in of if (row.key, against.key) not in self._found)
            self._ledger.expect(islice(new, MOST_MADE - self._made))

    def of(self, row: Row, against: Row, among: int = 1) -> Toll | None:
        """Return the toll of a cell against another; None if there is no comparison.

        `among` is the number of comparisons that a sentence rests on: the interval then holds jointly with the others,
        and a verdict that it does not support becomes unclear.
        """
        key = row.key, against.key
        if key not in self._found and self._ledger is not None and self._made < MOST_MADE:
            self._found[key] = self._with_noise(self._ledger.compare(row, against))
            self._made += 1
        toll = self._found.get(key)
        return None if toll is None or toll.ratio is None else one_of(among, toll, self._terms)

    def _with_noise(self, toll: Toll) -> Toll:
        """Return the toll with the study's noise if it has none of its own."""
        return toll if toll.noise is not None else replace(toll, noise=self._noise)


def one_of(among: int, toll: Toll, terms: Terms) -> Toll:
    """Return the toll as one of `among` that hold jointly, with a wider interval; its verdict may become unclear."""
    if among < 2 or toll.ratio is None:
        return toll
    ratio, floor = jointly(toll.ratio, among), reach(toll.noise) if toll.noise else None
    if decide(ratio, floor, terms) is not Verdict.UNCLEAR:
        return replace(toll, ratio=ratio)
    return replace(toll, ratio=ratio, verdict=Verdict.UNCLEAR, more_blocks=more_blocks(ratio, floor, terms))
