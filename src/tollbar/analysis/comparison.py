"""Comparison of two runs: the change of each ratio and cost, with the uncertainty of both intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from statistics import median
from typing import Literal

from tollbar.analysis.judgement import Judgement, StudyJudgement
from tollbar.analysis.measurements import Measurement
from tollbar.analysis.trust import Trust, is_near
from tollbar.catalog import libraries
from tollbar.catalog.families import Family, Value
from tollbar.core import method
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Interval, Moments, quotient
from tollbar.core.machine import differences
from tollbar.core.metrics import ALL_SAMPLES
from tollbar.results import Row
from tollbar.study import Study
from tollbar.study.asking import ASKED

At = frozenset[tuple[str, Value]]
"""Coordinates, in no order."""

Changed = Literal["cost", "ratio"]
"""Changed quantity: CPU time per operation, or its ratio to the baseline of the same run."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """Row as measured in two runs."""

    row: Row
    """Row in the first run."""
    other_row: Row
    one: Interval | None
    """Ratio to its baseline in the first run; None for a baseline."""
    other: Interval | None
    cost: Interval | None = None
    """Nanoseconds per operation, quiet."""
    other_cost: Interval | None = None
    trusts: tuple[Trust, ...] = ()
    """Trust of its study in both runs."""

    @property
    def ratio_change(self) -> Interval | None:
        """Second ratio over the first, with the uncertainty of both intervals."""
        return quotient(self.other, self.one) if self.one and self.other else None

    @property
    def cost_change(self) -> Interval | None:
        """Second cost over the first, with the uncertainty of both intervals."""
        return quotient(self.other_cost, self.cost) if self.cost and self.other_cost else None

    @property
    def changes(self) -> Mapping[Changed, Interval | None]:
        """Both changes by the quantity that has changed."""
        return {"cost": self.cost_change, "ratio": self.ratio_change}

    @property
    def relative_difference(self) -> float | None:
        """Distance of the second ratio from the first, as a share of the first."""
        return abs(self.other.estimate / self.one.estimate - 1) if self.one and self.other else None

    @property
    def overlap(self) -> bool | None:
        """True if the two ratios' intervals overlap; None if a run has no ratio."""
        if not self.one or not self.other:
            return None
        return self.one.low <= self.other.high and self.other.low <= self.one.high

    def is_near(self, of: Changed, above: float) -> bool:
        """Return whether a steady neighbour that a run cannot exclude may have moved a change across this share."""
        change = self.changes[of]
        return change is not None and is_near(change, 1 + above, *self.trusts)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Rows with the same name in both runs that differ in definition, and are not compared."""

    study: str
    reason: str
    """Difference of the two, the first run's value before the second's."""
    rows: int
    of: tuple[Changed, ...] = ("cost", "ratio")
    """Quantities that are not compared."""


@dataclass(frozen=True, slots=True)
class Increase:
    """Row whose cost or ratio rose by more than the requested share, with its whole interval."""

    study: str
    pair: RowChange
    quantity: Changed
    change: Interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs' rows side by side, A/A pairs left out."""

    one: str
    other: str
    fingerprint_differences: tuple[str, ...]
    upgrades: tuple[str, ...]
    """Libraries and servers that have another version in the second run: `openssl 3.0.19 → 3.0.20`."""
    studies: Mapping[str, tuple[RowChange, ...]]
    unmatched: Mapping[str, tuple[tuple[Row, ...], tuple[Row, ...]]]
    """Rows of each study of either run that were measured in that run and not in the other."""
    families: Mapping[str, Family] = field(default_factory=dict)
    """Family of each study, by which its rows are named."""
    left_out: tuple[LeftOut, ...] = ()
    """Rows that both runs have by name but with different definitions, with the reason."""
    failures: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Reasons of failure, by study and key, for rows that were measured in the first run and failed in the second."""

    @property
    def pairs(self) -> tuple[RowChange, ...]:
        return tuple(pair for pairs in self.studies.values() for pair in pairs)

    @property
    def alone(self) -> Mapping[str, tuple[int, int]]:
        """Number of rows in each study that only the first run has, and that only the second has."""
        return {study: (len(one), len(other)) for study, (one, other) in self.unmatched.items()}

    @property
    def without_partner(self) -> tuple[int, int]:
        """Number of rows in all studies that only the first run has, and that only the second has."""
        return sum(one for one, _ in self.alone.values()), sum(other for _, other in self.alone.values())

    @property
    def median_difference(self) -> float | None:
        """Median relative difference of the ratios; None if there are no ratios to compare."""
        found = [d for pair in self.pairs if (d := pair.relative_difference) is not None]
        return median(found) if found else None

    @property
    def noisy(self) -> int:
        """Number of ratios compared over all samples, because a core was not quiet enough in one of the runs."""
        return sum(pair.one is not None and pair.one.moments is Moments.ALL for pair in self.pairs)

    @property
    def overlapping(self) -> float | None:
        """Share of ratios whose intervals overlap; None if there are no ratios to compare."""
        found = [pair.overlap for pair in self.pairs if pair.overlap is not None]
        return sum(found) / len(found) if found else None

    @property
    def gone(self) -> Mapping[str, tuple[Row, ...]]:
        """Rows that were measured in the first run and not in the second: they failed there, or are not in it."""
        return {study: one for study, (one, _) in self.unmatched.items() if one}

    def unjudged(self, of: Changed = "ratio") -> int:
        """Return the number of rows in both runs that cannot be compared, because their definitions differ."""
        return sum(left.rows for left in self.left_out if of in left.of)

    def tellable(self, of: Changed = "ratio", above: float = math.inf) -> int:
        """Return the number of rows that would show a rise above this share: the interval of their change is narrower.

        With a share of 0, every row with an interval counts.
        """
        changes = (pair.changes[of] for pair in self.pairs if not pair.is_near(of, above))
        return sum(
            one is not None and one.is_bounded and one.estimate / one.low < 1 + (above or math.inf) for one in changes
        )

    def increases(self, above: float, of: Changed = "ratio") -> tuple[Increase, ...]:
        """Return the rows that became more expensive by more than this share, with their whole interval.

        Uses ratios to baselines unless costs are requested: costs move with the machine from one run to the next, by
        more than the intervals of either run account for.
        """
        return tuple(
            Increase(study, pair, of, change)
            for study, pairs in self.studies.items()
            for pair in pairs
            if (change := pair.changes[of]) is not None
            and change.is_bounded
            and change.low > 1 + above
            and not pair.is_near(of, above)
        )


def compare(
    one: Judgement, other: Judgement, *, across_machines: bool = False, across_methods: bool = False
) -> Comparison:
    """Return the rows that both runs have, paired by their coordinates, whatever the versions of libraries and servers.

    Only equal things are compared: studies of one question, family, cost and load, choices with the same parameters,
    and ratios to the same baseline. Raises TollbarError if no row of both runs can be compared, or if they were not
    measured in the same way. A planned row that one run could not measure counts as in both.
    """
    method.refuse_mixed((one.run.method, other.run.method), across_methods=across_methods)
    mine_at, theirs_at = one.run.nodes, other.run.nodes
    if mine_at.keys() != theirs_at.keys():
        said = " / ".join(", ".join(nodes) or "none" for nodes in (mine_at, theirs_at))
        hint = "compare two runs with the same `--roles`"
        raise TollbarError(f"the runs have different roles on other machines ({said}); they must be equal", hint=hint)
    found = differences(one.run.fingerprint, other.run.fingerprint)
    for role in mine_at:
        unlike_there = differences(*(nodes[role].get("fingerprint", {}) for nodes in (mine_at, theirs_at)))
        found += [f"{role}: {line}" for line in unlike_there]
    if found and not across_machines:
        raise TollbarError(
            f"the runs were not measured on the same machine: {'; '.join(found)}",
            hint="to compare them anyway, add `--across-machines`",
        )
    mine, theirs = ({study.about.name: study for study in each.studies} for each in (one, other))
    studies: dict[str, tuple[RowChange, ...]] = {}
    unmatched: dict[str, tuple[tuple[Row, ...], tuple[Row, ...]]] = {}
    left_out: list[LeftOut] = []
    failures: dict[tuple[str, str], str] = {}
    has_failed = False
    for name in dict.fromkeys([*mine, *theirs]):
        own, others = (_found(found[name]) if name in found else {} for found in (mine, theirs))
        in_both = name in mine and name in theirs
        unmatched[name] = (
            tuple(seen.row for at, seen in own.items() if at not in others),
            tuple(seen.row for at, seen in others.items() if at not in own),
        )
        unlike = _unlike(mine[name].about, theirs[name].about) if in_both else None
        if unlike is not None:
            left_out.append(LeftOut(name, unlike, len(own.keys() & others.keys())))
            continue
        families = (mine[name].about.family, theirs[name].about.family) if in_both else None
        pairs, apart = _paired(name, own, others, families)
        if in_both:
            pairs = tuple(replace(pair, trusts=(mine[name].trust, theirs[name].trust)) for pair in pairs)
        left_out += apart
        here, there = ({_at(row): row for row in found[name].rows} if in_both else {} for found in (mine, theirs))
        failed = [at for at in here if at in there and not (at in own and at in others)]
        failures |= {(name, here[at].key): there[at].reason or there[at].outcome for at in failed if at in own}
        has_failed = has_failed or bool(failed)
        if any(pair.cost_change or pair.ratio_change for pair in pairs):
            studies[name] = pairs
    if not studies and not has_failed:
        why = "".join(f"; {out.study}: {out.reason}" for out in left_out)
        raise TollbarError(f"the two runs have no toll in common{why}", hint="compare two runs of the same study")
    changes = _upgraded((pair.row, pair.other_row) for pairs in studies.values() for pair in pairs)
    of = {study.about.name: study.about.family for each in (other, one) for study in each.studies}
    return Comparison(
        one.run.name, other.run.name, tuple(found), changes, studies, unmatched, of, tuple(left_out), failures
    )


def _unlike(one: Study, other: Study) -> str | None:
    """Return the difference between two studies of one name; None if they are the same."""
    if one.family.name != other.family.name:
        return f"another family: {one.family.name} / {other.family.name}"
    if one.measure.cost != other.measure.cost:
        return f"another cost: {one.measure.cost} / {other.measure.cost}"
    # A question without a file has no name of its own.
    if one.name == ASKED and one.question != other.question:
        return f"another question: “{one.question}” / “{other.question}”"
    if (one.load and one.load.asked) != (other.load and other.load.asked):
        return "another load: the requests differ"
    return None


def _paired(
    name: str, own: Mapping[At, _Measured], others: Mapping[At, _Measured], families: tuple[Family, Family] | None
) -> tuple[tuple[RowChange, ...], list[LeftOut]]:
    """Return the rows that can be compared, and those with other parameters or ratios to another baseline."""
    pairs: list[RowChange] = []
    reasons: Counter[tuple[str, tuple[Changed, ...]]] = Counter()
    for at, seen in own.items():
        if at not in others:
            continue
        theirs = others[at]
        unlike = _other_parameters(seen.row.choice, families) if families else None
        if unlike is not None:
            reasons[unlike, ("cost", "ratio")] += 1
            continue
        ratios = seen.ratio, theirs.ratio
        if seen.against != theirs.against:
            reasons["ratios to another baseline", ("ratio",)] += 1
            ratios = None, None
        elif seen.ratio and theirs.ratio and seen.ratio.moments is not theirs.ratio.moments:
            ratios = seen.all_samples, theirs.all_samples
        alike = seen.cost.moments is theirs.cost.moments
        costs = (seen.cost, theirs.cost) if alike else (seen.all_cost, theirs.all_cost)
        pairs.append(RowChange(seen.row, theirs.row, *ratios, *costs))
    return tuple(pairs), [LeftOut(name, why, rows, of) for (why, of), rows in reasons.items()]


def _other_parameters(choice: str, families: tuple[Family, Family]) -> str | None:
    """Return the change of a choice's parameters in the second run: `another scrypt: n 16384 / 32768`."""
    found = [family.choices[choice].setting for family in families if choice in family.choices]
    if len(found) < len(families) or found[0] == found[1]:
        return None
    names = [name for name in dict.fromkeys((*found[0], *found[1])) if found[0].get(name) != found[1].get(name)]
    return f"another {choice}: " + ", ".join(f"{name} {found[0].get(name)} / {found[1].get(name)}" for name in names)


@dataclass(frozen=True, slots=True)
class _Measured:
    """Measurement of a row in one run."""

    row: Row
    cost: Interval
    ratio: Interval | None
    all_cost: Interval | None
    """Cost over all samples, compared if only one run's cost is quiet.

    Quiet and noisy costs of unlike work differ by the neighbours' load.
    """
    all_samples: Interval | None
    against: At | None
    """Coordinates of its baseline; None without one."""


def _found(study: StudyJudgement) -> Mapping[At, _Measured]:
    """Return the measured rows by their coordinates."""
    tolls = {t.row.key: t for t in study.tolls if t.row.key != t.against.key}
    all_samples = {m.row.key: m for m in study.measurements if m.metric == study.about.measure.cost + ALL_SAMPLES}
    at = {row.key: _at(row) for row in study.rows}
    return {
        _at(m.row): _Measured(
            m.row,
            _interval(m, study.confidence),
            tolls[m.row.key].ratio if m.row.key in tolls else None,
            _interval(all_samples[m.row.key], study.confidence) if m.row.key in all_samples else None,
            tolls[m.row.key].all_samples if m.row.key in tolls else None,
            at.get(m.row.against) if m.row.against is not None else None,
        )
        for m in study.measurements
        if m.metric == study.about.measure.cost and m.component is None
    }


def _interval(m: Measurement, confidence: float) -> Interval:
    return Interval(m.value, m.low, m.high, confidence, m.blocks, m.moments)


def _at(row: Row) -> At:
    """Return a row's coordinates: `libcrypto` and `libcrypto:system` are one provider, and versions do not count."""
    at = {**row.coordinates, "provider": libraries.normal(str(row.coordinates["provider"]))}
    return frozenset(at.items())


def _upgraded(rows: Iterable[tuple[Row, Row]]) -> tuple[str, ...]:
    """Return the libraries and servers with another version in the second of two paired rows, once each."""
    found: dict[str, None] = {}
    for one, other in rows:
        for mine, theirs in ((one.provider, other.provider), (one.server_version, other.server_version)):
            if mine is not None and theirs is not None and mine != theirs:
                found[upgrade(mine, theirs)] = None
    return tuple(found)


def upgrade(one: str, other: str) -> str:
    """Return `openssl 3.0.19 → 3.0.20`, with the name once if both have the same."""
    words, others = one.split(" "), other.split(" ")
    pairs = zip(words, others, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] and not pair[0][:1].isdigit(), pairs))
    return f"{one} → {' '.join(others[shared:]) or other}"
