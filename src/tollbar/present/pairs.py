"""Judged pairs: what the judgement says of one cell beside another, whichever of its parts says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tollbar.judge import StudyJudgement, Verdict
from tollbar.judge.decisions import Terms, decide, jointly
from tollbar.judge.noise import reach
from tollbar.present.cells import cost_metric
from tollbar.results import Row
from tollbar.stats import Interval

_TURNED = {Verdict.COSTS: Verdict.SAVES, Verdict.SAVES: Verdict.COSTS}


@dataclass(frozen=True, slots=True)
class Pair:
    """What is judged of one cell against another."""

    verdict: Verdict
    ratio: Interval | None
    """Of the undisturbed costs; None where its other side would have no end."""
    floor: float | None = None
    """How far noise alone may take the ratio."""

    @property
    def turned(self) -> Pair:
        """The same of the other against the one. The band of what is worth nothing is the same both ways."""
        ratio = self.ratio
        if ratio is not None and ratio.low > 0:
            ratio = replace(ratio, estimate=1 / ratio.estimate, low=1 / ratio.high, high=1 / ratio.low)
        else:
            ratio = None
        return Pair(_TURNED.get(self.verdict, self.verdict), ratio, self.floor)


class Pairs:
    """Every two cells of a study whose costs were judged against each other."""

    def __init__(self, study: StudyJudgement) -> None:
        self._found: dict[tuple[str, str], Pair] = {}
        self._terms, self._noise = Terms.of(study.study), study.noise
        # Tolls last: where several parts judge the same two cells, the toll is what the page shows.
        for row, other, pair in (*_contrasts(study), *_tables(study), *_tolls(study)):
            self._found[row.key, other.key] = pair
            self._found[other.key, row.key] = pair.turned

    def of(self, row: Row, against: Row, among: int = 1) -> Pair | None:
        """What is judged of a cell against another; None where nothing is.

        Where it is one of several comparisons that a sentence rests on, `among` is their number: the interval is then
        one of those that hold together, and a verdict that it does not carry is none.
        """
        pair = self._found.get((row.key, against.key))
        if pair is None or pair.ratio is None or among < 2:
            return pair
        ratio = jointly(pair.ratio, among)
        floor = reach(self._noise) if pair.floor is None and self._noise is not None else pair.floor
        undecided = decide(ratio, floor, self._terms) is Verdict.UNCLEAR
        return replace(pair, ratio=ratio, verdict=Verdict.UNCLEAR if undecided else pair.verdict)


def _tolls(study: StudyJudgement) -> Iterator[tuple[Row, Row, Pair]]:
    for toll in study.tolls:
        if toll.metric != cost_metric(study) or toll.row.key == toll.against.key:
            continue
        if toll.ratio is not None and toll.verdict is not Verdict.NOT_MEASURED:
            yield toll.row, toll.against, Pair(toll.verdict, toll.ratio, reach(toll.noise) if toll.noise else None)


def _tables(study: StudyJudgement) -> Iterator[tuple[Row, Row, Pair]]:
    for result in study.tables:
        for cell in result.cells if result.table.metric is None else ():
            if cell.over is not None and cell.ratio is not None and cell.verdict is not None and not cell.is_over:
                yield cell.row, cell.over, Pair(cell.verdict, cell.ratio)


def _contrasts(study: StudyJudgement) -> Iterator[tuple[Row, Row, Pair]]:
    for contrast in study.contrasts:
        for each in contrast.members:
            yield each.row, each.for_row, Pair(each.verdict, each.ratio, each.floor)
