"""Contrasts: what one value of a setting costs beside another, all else equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

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
    """One value of a setting for another, over pairs of cells that differ in nothing else and have one verdict."""

    setting: str
    value: Value
    for_value: Value
    where: Mapping[str, tuple[Value, ...]]
    """What the pairs have in common, where pairs that disagreed were split; empty when they agree."""
    pairs: int
    low: float
    """The least of the pairs' intervals."""
    high: float
    """The most of them."""
    least: float
    """The least of the pairs' estimates."""
    most: float
    verdict: Verdict
    more_blocks: int | None
    members: tuple[Toll, ...] = ()
    """The pairs themselves."""
    are_alike: bool = False
    """Whether verdicts differ although the pairs' ratios do not. No place is named then: one that is searched for after
    the verdicts are known is found by chance in up to half of all studies."""


def contrasts(study_run: StudyRun, ledger: Ledger) -> tuple[Contrast, ...]:
    """For each setting, the server and the provider: each value against the first one it can be compared with.

    Every two cells that differ in nothing else are a pair with a verdict of its own. Pairs that have the same verdict
    are gathered, and what is shown is their range: pairs that disagree are never averaged. See `pairs.contrasted` for
    which values are compared: there are too many to set each beside every other.
    """
    study = study_run.study
    rows = [row for row in ledger.rows if ledger.why_unmeasured(row) is None]
    found: dict[str, dict[tuple[Value, Value], list[Toll]]] = defaultdict(lambda: defaultdict(list))
    for name, row, for_row in contrasted(study, rows):
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
    """What pairs of one verdict have in common that no other pair has: one coordinate, or two together.

    Of several the one with the fewest values. Empty where all pairs agree, and where nothing so simple divides them.
    """
    if not others:
        return {}
    # But for the setting, both cells of a pair stand alike.
    own_at, others_at = ([member.row.coordinates for member in of] for of in (group, others))
    names = [n for n in own_at[0] if n != setting and all(n in at for at in (*own_at, *others_at))]
    own = {name: tuple(dict.fromkeys(at[name] for at in own_at)) for name in names}
    for together in (1, 2):
        dividing = [
            some
            for some in combinations(names, together)
            if not any(all(at[name] in own[name] for name in some) for at in others_at)
        ]
        if dividing:
            best = min(dividing, key=lambda some: sum(len(own[name]) for name in some))
            return {name: own[name] for name in best}
    return {}
