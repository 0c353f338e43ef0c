"""Two runs side by side: do the ratios come out the same tomorrow?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from tollbar.errors import TollbarError
from tollbar.families import Value
from tollbar.judge.verdicts import Judgement, StudyJudgement, Toll
from tollbar.machine import differences
from tollbar.results import Row
from tollbar.stats import Interval

At = frozenset[tuple[str, Value]]
"""Coordinates, in no order."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One toll as two runs found it."""

    row: Row
    """In the first run."""
    other_row: Row
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
    upgrades: tuple[str, ...]
    """Libraries and servers that have another version in the second run: `openssl 3.0.19 → openssl 3.0.20`."""
    studies: Mapping[str, tuple[Pair, ...]]
    alone: Mapping[str, tuple[int, int]]
    """For each study of either run, how many rows with a toll each run has that the other has not."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(pair for pairs in self.studies.values() for pair in pairs)

    @property
    def without_partner(self) -> tuple[int, int]:
        """How many rows with a toll each run has, in all studies, that the other has not."""
        return sum(one for one, _ in self.alone.values()), sum(other for _, other in self.alone.values())

    @property
    def median_difference(self) -> float:
        """The median relative difference of the ratios."""
        return median(pair.relative_difference for pair in self.pairs)

    @property
    def overlapping(self) -> float:
        """The share of pairs whose intervals overlap."""
        return sum(pair.overlap for pair in self.pairs) / len(self.pairs)


def compare(one: Judgement, other: Judgement, *, across_machines: bool = False) -> Comparison:
    """The tolls that both runs have, paired by their coordinates, whatever the versions of libraries and servers.

    Raises TollbarError if they have none, or were not measured alike.
    """
    found = differences(one.run.fingerprint, other.run.fingerprint)
    if found and not across_machines:
        raise TollbarError(
            f"the runs were not measured on the same machine: {'; '.join(found)}",
            hint="compare them all the same with --across-machines",
        )
    mine, theirs = _by_study(one), _by_study(other)
    studies: dict[str, tuple[Pair, ...]] = {}
    alone: dict[str, tuple[int, int]] = {}
    for name in dict.fromkeys([*mine, *theirs]):
        own = {_at(t.row): t for t in mine.get(name, ())}
        others = {_at(t.row): t for t in theirs.get(name, ())}
        pairs = tuple(
            Pair(toll.row, others[at].row, toll.ratio, ratio)
            for at, toll in own.items()
            if at in others and toll.ratio is not None and (ratio := others[at].ratio) is not None
        )
        alone[name] = len(own) - len(pairs), len(others) - len(pairs)
        if pairs:
            studies[name] = pairs
    if not studies:
        raise TollbarError("the two runs have no toll in common", hint="compare two runs of the same study")
    changes = _upgraded((pair.row, pair.other_row) for pairs in studies.values() for pair in pairs)
    return Comparison(one.run.name, other.run.name, tuple(found), changes, studies, alone)


def _by_study(judgement: Judgement) -> Mapping[str, tuple[Toll, ...]]:
    return {study.about.name: tuple(_tolls(study)) for study in judgement.studies}


def _tolls(study: StudyJudgement) -> Iterable[Toll]:
    return (t for t in study.tolls if t.ratio is not None and t.row.key != t.against.key)


def _at(row: Row) -> At:
    return frozenset(row.coordinates.items())


def _upgraded(rows: Iterable[tuple[Row, Row]]) -> tuple[str, ...]:
    """What has another version in the second of two rows that stand for the same, once each."""
    found: dict[str, None] = {}
    for one, other in rows:
        for mine, theirs in ((one.provider, other.provider), (one.server, other.server)):
            if mine is not None and theirs is not None and mine != theirs:
                found[f"{mine} → {theirs}"] = None
    return tuple(found)
