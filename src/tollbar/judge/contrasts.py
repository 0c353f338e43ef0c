"""Contrasts: what one value of a setting costs beside another, all else equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tollbar.families import Value
from tollbar.judge.costs import Ledger
from tollbar.judge.decisions import Terms, decide, more_blocks
from tollbar.judge.noise import floor_for
from tollbar.judge.verdicts import Contrast, Member, Verdict
from tollbar.plan.pairs import contrasted, values
from tollbar.results import StudyRun

Where = Mapping[str, tuple[Value, ...]]
"""Coordinates, each with the values that pairs have there."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two cells that differ in one coordinate only."""

    besides: Mapping[str, Value]
    """What both have in common."""
    member: Member
    more_blocks: int | None


def contrasts(study_run: StudyRun, ledger: Ledger, terms: Terms) -> tuple[Contrast, ...]:
    """For each setting, the server and the provider: each value against the first one it can be compared with.

    Every two cells that differ in nothing else are a pair with a verdict of its own. Pairs that have the same verdict
    are gathered, and what is shown is their range: pairs that disagree are never averaged. See `pairs.contrasted` for
    which values are compared: there are too many to set each beside every other.
    """
    study = study_run.study
    rows = [row for row in ledger.rows if ledger.why_unmeasured(row) is None]
    found: dict[str, dict[tuple[Value, Value], list[_Pair]]] = defaultdict(lambda: defaultdict(list))
    for name, row, for_row in contrasted(study, rows):
        ratio = ledger.undisturbed_ratio(row, for_row)
        if ratio is not None:
            floor = floor_for(ledger, (row, for_row))
            verdict = decide(ratio, floor, terms)
            more = more_blocks(ratio, floor, terms) if verdict is Verdict.UNCLEAR else None
            besides = {other: value for other, value in row.coordinates.items() if other != name}
            between = row.coordinates[name], for_row.coordinates[name]
            found[name][between].append(_Pair(besides, Member(row, for_row, ratio, floor, verdict), more))
    return tuple(
        contrast
        for name, by_values in found.items()
        for between in _in_order(by_values, values(study, name, rows))
        for contrast in _of_values(name, *between, by_values[between])
    )


def _in_order(
    by_values: Mapping[tuple[Value, Value], list[_Pair]], order: Sequence[Value]
) -> list[tuple[Value, Value]]:
    place = {value: number for number, value in enumerate(order)}
    return sorted(by_values, key=lambda between: (place[between[0]], place[between[1]]))


def _of_values(name: str, value: Value, for_value: Value, pairs: Sequence[_Pair]) -> Iterator[Contrast]:
    by_verdict: dict[Verdict, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        by_verdict[pair.member.verdict].append(pair)
    for verdict, group in by_verdict.items():
        others = [pair for pair in pairs if pair.member.verdict is not verdict]
        yield Contrast(
            setting=name,
            value=value,
            for_value=for_value,
            where=_where(group, others),
            pairs=len(group),
            low=min(pair.member.ratio.low for pair in group),
            high=max(pair.member.ratio.high for pair in group),
            least=min(pair.member.ratio.estimate for pair in group),
            most=max(pair.member.ratio.estimate for pair in group),
            verdict=verdict,
            more_blocks=max((pair.more_blocks for pair in group if pair.more_blocks), default=None),
            members=tuple(pair.member for pair in group),
        )


def _where(group: Sequence[_Pair], others: Sequence[_Pair]) -> Where:
    """What pairs of one verdict have in common that no other pair has: one coordinate, or two together.

    Of several the one with the fewest values. Empty where all pairs agree, and where nothing so simple divides them.
    """
    if not others:
        return {}
    names = [name for name in group[0].besides if all(name in pair.besides for pair in (*group, *others))]
    own = {name: tuple(dict.fromkeys(pair.besides[name] for pair in group)) for name in names}
    for together in (1, 2):
        dividing = [some for some in combinations(names, together) if not _any_within(others, own, some)]
        if dividing:
            best = min(dividing, key=lambda some: sum(len(own[name]) for name in some))
            return {name: own[name] for name in best}
    return {}


def _any_within(pairs: Sequence[_Pair], own: Where, names: Sequence[str]) -> bool:
    return any(all(pair.besides[name] in own[name] for name in names) for pair in pairs)
