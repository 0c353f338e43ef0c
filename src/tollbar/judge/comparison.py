"""Two runs side by side: do the ratios come out the same tomorrow?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from tollbar.errors import TollbarError
from tollbar.families import Value
from tollbar.judge.verdicts import Judgement, StudyJudgement, Toll
from tollbar.machine import differences
from tollbar.results import Row, Run
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
    """The tolls that both runs have, whatever the versions of their libraries.

    Raises TollbarError if they have none, or were not measured alike.
    """
    found = differences(one.run.fingerprint, other.run.fingerprint)
    if found and not across_machines:
        raise TollbarError(
            f"the runs were not measured on the same machine: {'; '.join(found)}",
            hint="compare them all the same with --across-machines",
        )
    mine, theirs = _by_study(one), _by_study(other)
    partner = _partners(one.run, other.run)
    studies: dict[str, tuple[Pair, ...]] = {}
    alone: dict[str, tuple[int, int]] = {}
    for name in dict.fromkeys([*mine, *theirs]):
        own = {_at(t.row, partner): t for t in mine.get(name, ())}
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


def _at(row: Row, partner: Mapping[str, str] | None = None) -> At:
    """Where a row stands, its provider named as in the other run."""
    provider = row.provider if partner is None else partner.get(row.provider, row.provider)
    return frozenset({**row.coordinates, "provider": provider}.items())


def _partners(one: Run, other: Run) -> Mapping[str, str]:
    """The other run's name for each provider of the first: `openssl 3.0.19` may be its `openssl 3.0.20`.

    First those that studies name alike and that have the same version, then the same version, then what studies name
    alike (`libcrypto:system`), and last the same name but for the version, where each run has one such left.
    """
    mine, theirs = _providers(one), _providers(other)
    found: dict[str, str] = {}
    alike: tuple[Callable[[str, str], object], ...] = (
        lambda name, spec: (name, spec),
        lambda name, _: name,
        lambda name, spec: spec or name,
        lambda name, _: _without_version(name),
    )
    for same in alike:
        left = _only_ones(same, {n: s for n, s in theirs.items() if n not in found.values()})
        for what, name in _only_ones(same, {n: s for n, s in mine.items() if n not in found}).items():
            if what in left:
                found[name] = left[what]
    return found


def _upgraded(rows: Iterable[tuple[Row, Row]]) -> tuple[str, ...]:
    """What has another version in the second of two rows that stand for the same, once each."""
    found: dict[str, None] = {}
    for one, other in rows:
        for mine, theirs in ((one.provider, other.provider), (one.server, other.server)):
            if mine is not None and theirs is not None and mine != theirs:
                found[f"{mine} → {theirs}"] = None
    return tuple(found)


def _without_version(name: str) -> str:
    """`openssl` of `openssl 3.0.19`; where it comes from, in brackets, stays."""
    return re.sub(r"\s+v?\d\S*", "", name)


def _providers(run: Run) -> Mapping[str, str]:
    """Of each provider that rows name, how studies name it; nothing where there is no receipt."""
    names = dict.fromkeys(row.provider for study in run.studies for row in study.rows)
    return {name: str(run.providers.get(name, {}).get("spec", "")) for name in names}


def _only_ones(same: Callable[[str, str], object], providers: Mapping[str, str]) -> Mapping[object, str]:
    """By what they are alike in, the providers of which there is one such."""
    found: dict[object, list[str]] = {}
    for name, spec in providers.items():
        found.setdefault(same(name, spec), []).append(name)
    return {what: names[0] for what, names in found.items() if len(names) == 1}
