"""Two runs side by side: do the ratios come out the same tomorrow?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from tollbar.errors import TollbarError
from tollbar.judge.verdicts import Judgement, Toll
from tollbar.machine import differences
from tollbar.results import Row
from tollbar.stats import Interval


@dataclass(frozen=True, slots=True)
class Pair:
    """One toll as two runs found it."""

    row: Row
    one: Interval
    other: Interval

    @property
    def relative_difference(self) -> float:
        """How far the second ratio is from the first, as a share of the first."""
        return abs(self.other.estimate / self.one.estimate - 1)

    @property
    def overlap(self) -> bool:
        """Whether the two intervals have anything in common."""
        return self.one.low <= self.other.high and self.other.low <= self.one.high


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs' tolls side by side, twins left out."""

    one: str
    other: str
    fingerprint_differences: tuple[str, ...]
    studies: Mapping[str, tuple[Pair, ...]]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(pair for pairs in self.studies.values() for pair in pairs)

    @property
    def median_difference(self) -> float:
        """The median relative difference of the ratios."""
        return median(pair.relative_difference for pair in self.pairs)

    @property
    def overlapping(self) -> float:
        """The share of pairs whose intervals overlap."""
        return sum(pair.overlap for pair in self.pairs) / len(self.pairs)


def compare(one: Judgement, other: Judgement, *, across_machines: bool = False) -> Comparison:
    """The tolls that both runs have. Raises TollbarError if they have none, or were not measured alike."""
    found = differences(one.run.fingerprint, other.run.fingerprint)
    if found and not across_machines:
        raise TollbarError(
            f"the runs were not measured on the same machine: {'; '.join(found)}",
            hint="compare them all the same with --across-machines",
        )
    others = {study.study.study.name: _ratios(study.tolls) for study in other.studies}
    studies: dict[str, tuple[Pair, ...]] = {}
    for study in one.studies:
        theirs = others.get(study.study.study.name, {})
        mine = _ratios(study.tolls)
        pairs = tuple(Pair(row, ratio, theirs[key][1]) for key, (row, ratio) in mine.items() if key in theirs)
        if pairs:
            studies[study.study.study.name] = pairs
    if not studies:
        raise TollbarError("the two runs have no toll in common", hint="compare two runs of the same study")
    return Comparison(one.run.name, other.run.name, tuple(found), studies)


def _ratios(tolls: tuple[Toll, ...]) -> dict[str, tuple[Row, Interval]]:
    return {t.row.key: (t.row, t.ratio) for t in tolls if t.ratio is not None and t.row.key != t.against.key}
