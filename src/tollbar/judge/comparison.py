"""Two runs side by side: what has changed from one to the other, beyond what either interval leaves open?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from tollbar import libraries
from tollbar.errors import TollbarError
from tollbar.families import Family, Value
from tollbar.judge.verdicts import Judgement, StudyJudgement
from tollbar.machine import differences
from tollbar.results import Row
from tollbar.stats import Interval, quotient

At = frozenset[tuple[str, Value]]
"""Coordinates, in no order."""

Quantity = Literal["cost", "ratio"]
"""What has changed: CPU time per operation, or its ratio to the baseline of the same run."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One row as two runs found it."""

    row: Row
    """In the first run."""
    other_row: Row
    one: Interval | None
    """Its ratio to its baseline; None for a baseline."""
    other: Interval | None
    cost: Interval | None = None
    """Nanoseconds per operation, undisturbed."""
    other_cost: Interval | None = None

    @property
    def ratio_change(self) -> Interval | None:
        """The second ratio over the first, with what both intervals leave open."""
        return quotient(self.other, self.one) if self.one and self.other else None

    @property
    def cost_change(self) -> Interval | None:
        """The second cost over the first, with what both intervals leave open."""
        return quotient(self.other_cost, self.cost) if self.cost and self.other_cost else None

    @property
    def changes(self) -> Mapping[Quantity, Interval | None]:
        """Both changes by what has changed."""
        return {"cost": self.cost_change, "ratio": self.ratio_change}

    @property
    def relative_difference(self) -> float | None:
        """How far the second ratio is from the first, as a share of the first."""
        return abs(self.other.estimate / self.one.estimate - 1) if self.one and self.other else None

    @property
    def overlap(self) -> bool | None:
        """Whether the two ratios' intervals have anything in common."""
        if not self.one or not self.other:
            return None
        return self.one.low <= self.other.high and self.other.low <= self.one.high


@dataclass(frozen=True, slots=True)
class Increase:
    """A row that became dearer, by more than was asked for with the whole interval."""

    study: str
    pair: Pair
    quantity: Quantity
    change: Interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs' rows side by side, twins left out."""

    one: str
    other: str
    fingerprint_differences: tuple[str, ...]
    upgrades: tuple[str, ...]
    """Libraries and servers that have another version in the second run: `openssl 3.0.19 → 3.0.20`."""
    studies: Mapping[str, tuple[Pair, ...]]
    unmatched: Mapping[str, tuple[tuple[Row, ...], tuple[Row, ...]]]
    """For each study of either run, the rows that were measured in that run and not in the other."""
    families: Mapping[str, Family] = field(default_factory=dict)
    """Each study's, by which its rows are named."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(pair for pairs in self.studies.values() for pair in pairs)

    @property
    def alone(self) -> Mapping[str, tuple[int, int]]:
        """For each study, how many rows each run has that the other has not."""
        return {study: (len(one), len(other)) for study, (one, other) in self.unmatched.items()}

    @property
    def without_partner(self) -> tuple[int, int]:
        """How many rows each run has, in all studies, that the other has not."""
        return sum(one for one, _ in self.alone.values()), sum(other for _, other in self.alone.values())

    @property
    def median_difference(self) -> float:
        """The median relative difference of the ratios."""
        return median(d for pair in self.pairs if (d := pair.relative_difference) is not None)

    @property
    def overlapping(self) -> float:
        """The share of ratios whose intervals overlap."""
        found = [pair.overlap for pair in self.pairs if pair.overlap is not None]
        return sum(found) / len(found)

    def increases(self, above: float, of: Quantity = "ratio") -> tuple[Increase, ...]:
        """What became dearer by more than this share, its whole interval beyond it.

        By ratios to baselines unless costs are asked for: these move with the machine from one run to the next, by more
        than the intervals of either run know of.
        """
        return tuple(
            Increase(study, pair, of, change)
            for study, pairs in self.studies.items()
            for pair in pairs
            if (change := pair.changes[of]) is not None and change.is_bounded and change.low > 1 + above
        )


def compare(one: Judgement, other: Judgement, *, across_machines: bool = False) -> Comparison:
    """The rows that both runs have, paired by their coordinates, whatever the versions of libraries and servers.

    Raises TollbarError if they have no toll in common, or were not measured alike.
    """
    found = differences(one.run.fingerprint, other.run.fingerprint)
    if found and not across_machines:
        raise TollbarError(
            f"the runs were not measured on the same machine: {'; '.join(found)}",
            hint="compare them all the same with --across-machines",
        )
    mine, theirs = ({study.about.name: _found(study) for study in each.studies} for each in (one, other))
    studies: dict[str, tuple[Pair, ...]] = {}
    unmatched: dict[str, tuple[tuple[Row, ...], tuple[Row, ...]]] = {}
    for name in dict.fromkeys([*mine, *theirs]):
        own, others = mine.get(name, {}), theirs.get(name, {})
        pairs = tuple(
            Pair(seen.row, others[at].row, seen.ratio, others[at].ratio, seen.cost, others[at].cost)
            for at, seen in own.items()
            if at in others
        )
        unmatched[name] = (
            tuple(seen.row for at, seen in own.items() if at not in others),
            tuple(seen.row for at, seen in others.items() if at not in own),
        )
        if any(pair.one and pair.other for pair in pairs):
            studies[name] = pairs
    if not studies:
        raise TollbarError("the two runs have no toll in common", hint="compare two runs of the same study")
    changes = _upgraded((pair.row, pair.other_row) for pairs in studies.values() for pair in pairs)
    of = {study.about.name: study.about.family for each in (other, one) for study in each.studies}
    return Comparison(one.run.name, other.run.name, tuple(found), changes, studies, unmatched, of)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one run found of a row."""

    row: Row
    cost: Interval
    ratio: Interval | None


def _found(study: StudyJudgement) -> Mapping[At, _Seen]:
    """The rows that were measured, by what each is."""
    ratios = {t.row.key: t.ratio for t in study.tolls if t.row.key != t.against.key}
    return {
        _at(m.row): _Seen(m.row, Interval(m.value, m.low, m.high, study.confidence, m.blocks), ratios.get(m.row.key))
        for m in study.measurements
        if m.metric == study.about.measure.cost and m.component is None
    }


def _at(row: Row) -> At:
    """What a row is: `libcrypto` and `libcrypto:system` are one provider, and a version is none."""
    at = {**row.coordinates, "provider": libraries.normal(str(row.coordinates["provider"]))}
    return frozenset(at.items())


def _upgraded(rows: Iterable[tuple[Row, Row]]) -> tuple[str, ...]:
    """What has another version in the second of two rows that stand for the same, once each."""
    found: dict[str, None] = {}
    for one, other in rows:
        for mine, theirs in ((one.provider, other.provider), (one.server, other.server)):
            if mine is not None and theirs is not None and mine != theirs:
                found[upgrade(mine, theirs)] = None
    return tuple(found)


def upgrade(one: str, other: str) -> str:
    """`openssl 3.0.19 → 3.0.20`: the name once, where it is the same."""
    name, _, version = other.partition(" ")
    return f"{one} → {version if version and one.partition(' ')[0] == name else other}"
