"""Contrasts: the cost of one value of a setting compared with another, all else equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import and_

from tollbar.analysis.ledger import Ledger
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.catalog.families import Value
from tollbar.core.spread import are_unlike
from tollbar.results import StudyRun
from tollbar.study.plan.pairs import contrasted, values

Where = Mapping[str, tuple[Value, ...]]
"""Coordinates, each with the values that pairs have there."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Comparison of two values of a setting, over pairs of cells that differ in nothing else and have one verdict."""

    setting: str
    value: Value
    for_value: Value
    where: Mapping[str, tuple[Value, ...]]
    """Coordinates that the pairs have in common, if pairs that disagreed were split; empty if they agree."""
    pairs: int
    low: float
    """Smallest lower end of the pairs' intervals."""
    high: float
    """Largest upper end of the pairs' intervals."""
    least: float
    """Smallest of the pairs' estimates."""
    most: float
    verdict: Verdict
    more_blocks: int | None
    members: tuple[Toll, ...] = ()
    """Pairs of cells, one toll each."""
    are_alike: bool = False
    """True if verdicts differ although the pairs' ratios do not.

    No place is named then: a place searched for after the verdicts are known is found by chance in up to half of all
    studies.
    """


def contrasts(study_run: StudyRun, ledger: Ledger) -> tuple[Contrast, ...]:
    """Compare each value of each setting, of the server and of the provider with the first one it can be compared with.

    Every two cells that differ in nothing else are a pair with a verdict of its own. Pairs with the same verdict are
    grouped, and their range is reported: pairs that disagree are never averaged. `pairs.contrasted` selects the values
    to compare, because there are too many to compare each with every other.
    """
    study = study_run.study
    rows = [row for row in ledger.rows if ledger.why_unmeasured(row) is None]
    found: dict[str, dict[tuple[Value, Value], list[Toll]]] = defaultdict(lambda: defaultdict(list))
    pairs = [*contrasted(study, rows)]
    ledger.expect((row, for_row) for _, row, for_row in pairs)
    for name, row, for_row in pairs:
        member = ledger.compare(row, for_row)
        if member.ratio is not None:
            found[name][row.coordinates[name], for_row.coordinates[name]].append(member)
    return tuple(
        contrast
        for name, by_values in found.items()
        for between in _in_order(by_values, values(study, name, rows))
        for contrast in _of_values(name, *between, by_values[between])
    )


def _in_order(by_values: Mapping[tuple[Value, Value], list[Toll]], order: Sequence[Value]) -> list[tuple[Value, Value]]:
    place = {value: number for number, value in enumerate(order)}
    return sorted(by_values, key=lambda between: (place[between[0]], place[between[1]]))


def _of_values(name: str, value: Value, for_value: Value, members: Sequence[Toll]) -> Iterator[Contrast]:
    by_verdict: dict[Verdict, list[Toll]] = defaultdict(list)
    for member in members:
        by_verdict[member.verdict].append(member)
    are_alike = len(by_verdict) > 1 and not are_unlike([one.ratio for one in members if one.ratio is not None])
    for verdict, group in by_verdict.items():
        others = [member for member in members if member.verdict is not verdict]
        ratios = [member.ratio for member in group if member.ratio is not None]
        yield Contrast(
            setting=name,
            value=value,
            for_value=for_value,
            where={} if are_alike else _where(name, group, others),
            pairs=len(group),
            low=min(ratio.low for ratio in ratios),
            high=max(ratio.high for ratio in ratios),
            least=min(ratio.estimate for ratio in ratios),
            most=max(ratio.estimate for ratio in ratios),
            verdict=verdict,
            more_blocks=max((member.more_blocks for member in group if member.more_blocks), default=None),
            members=tuple(group),
            are_alike=are_alike,
        )


def _where(setting: str, group: Sequence[Toll], others: Sequence[Toll]) -> Where:
    """Return the coordinates that pairs of one verdict share and no other pair has: one coordinate, or two together.

    If several qualify, returns the one with the fewest values. Empty if all pairs agree, or nothing that simple divides
    them.
    """
    if not others:
        return {}
    # Both cells of a pair have equal coordinates except for the setting.
    own_at, others_at = ([member.row.coordinates for member in of] for of in (group, others))
    names = [n for n in own_at[0] if n != setting and all(n in at for at in (*own_at, *others_at))]
    own = {name: dict.fromkeys(at[name] for at in own_at) for name in names}
    # A bit for each other pair that has one of these values: there may be thousands of pairs for each two names.
    shared = {name: sum(1 << place for place, at in enumerate(others_at) if at[name] in own[name]) for name in names}
    for together in (1, 2):
        dividing = [some for some in combinations(names, together) if not reduce(and_, (shared[name] for name in some))]
        if dividing:
            best = min(dividing, key=lambda some: sum(len(own[name]) for name in some))
            return {name: tuple(own[name]) for name in best}
    return {}
