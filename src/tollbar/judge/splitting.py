"""Splitting: pairs of cells that disagree are told apart by what divides them, and never averaged away.

SHA-256 may be twice as fast on a provider that uses the CPU's SHA instructions while SHA-512 is not: the
mean of the two is true of neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tollbar.catalogue import Value
from tollbar.judge.costs import ByBlock, mean_by_block
from tollbar.judge.decisions import Terms
from tollbar.results import Row
from tollbar.stats import signed_rank_interval

Where = Mapping[str, tuple[Value, ...]]
"""For each coordinate that divides the pairs, the values that a group has."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cells that differ in one coordinate only."""

    row: Row
    for_row: Row
    coordinates: Mapping[str, Value]
    """What both have in common."""
    logs: ByBlock
    """Logarithms of the one's cost over the other's."""


def agreeing_groups(pairs: Sequence[Pair], terms: Terms) -> Iterator[tuple[Where, Sequence[Pair]]]:
    """The pairs in as few groups as it takes for each group to agree, with what each has in common."""
    if not pairs:
        return
    # With hundreds of pairs some interval misses its truth by chance: the error is shared among them.
    error = (1 - terms.confidence) / len(pairs)
    bands = {id(pair): _band(pair.logs, 1 - error) for pair in pairs}
    yield from _Splitter(bands, terms).groups(pairs, {})


class _Band(NamedTuple):
    """An estimate and its interval, on logarithms."""

    estimate: float
    low: float
    high: float

    def agrees(self, other: _Band, slack: float) -> bool:
        return self.low <= other.high + slack and other.low <= self.high + slack


class _Group(NamedTuple):
    """Values of the dividing coordinate whose pairs go together."""

    values: tuple[Value, ...]
    pairs: list[Pair]
    band: _Band


@dataclass(frozen=True, slots=True)
class _Splitter:
    bands: Mapping[int, _Band]
    terms: Terms

    def groups(self, pairs: Sequence[Pair], where: Where) -> Iterator[tuple[Where, Sequence[Pair]]]:
        split = None if self._agree(pairs) else self._best_split(pairs)
        if split is None:
            yield where, pairs
            return
        name, parts = split
        for part in parts:
            yield from self.groups(part.pairs, {**where, name: part.values})

    def _agree(self, pairs: Sequence[Pair]) -> bool:
        if len(pairs) == 1:
            return True
        pooled = self._pooled(pairs)
        return all(self.bands[id(pair)].agrees(pooled, self._slack) for pair in pairs)

    def _best_split(self, pairs: Sequence[Pair]) -> tuple[str, list[_Group]] | None:
        """The coordinate whose groups leave the least variance within, and those groups."""
        names = [n for n in pairs[0].coordinates if all(n in pair.coordinates for pair in pairs)]
        by_value = {name: self._by_value(name, pairs) for name in names}
        merged = {name: self._merge(groups) for name, groups in by_value.items()}
        # Settings can cross so that each alone shows nothing; then any of them is a step towards the cause.
        candidates = [c for c in merged.items() if len(c[1]) > 1] or [c for c in by_value.items() if len(c[1]) > 1]
        if not candidates:
            return None
        # What noise, and differences too small to matter, would leave of variance within a group.
        halves = [(b.high - b.low) / 2 for b in (self.bands[id(pair)] for pair in pairs)]
        expected = math.fsum([(half / 2) ** 2 for half in halves]) / len(pairs) + (self._slack / 2) ** 2
        name, groups = min(candidates, key=lambda candidate: self._left_over(candidate[1], expected))
        order = {id(pair): place for place, pair in enumerate(pairs)}
        return name, sorted(groups, key=lambda group: min(order[id(pair)] for pair in group.pairs))

    def _left_over(self, groups: Sequence[_Group], expected: float) -> float:
        """The squares left within the groups, and a charge for each group.

        Twice the expected variance for each group is Akaike's charge: without it the coordinate with the
        most values would always win, since it divides the pairs the finest.
        """
        squares = 0.0
        for group in groups:
            estimates = [self.bands[id(pair)].estimate for pair in group.pairs]
            mean = math.fsum(estimates) / len(estimates)
            squares += math.fsum([(estimate - mean) ** 2 for estimate in estimates])
        return squares / max(expected, 1e-12) + 2 * len(groups)

    def _by_value(self, name: str, pairs: Sequence[Pair]) -> list[_Group]:
        members: dict[Value, list[Pair]] = {}
        for pair in pairs:
            members.setdefault(pair.coordinates[name], []).append(pair)
        return [_Group((value,), found, self._pooled(found)) for value, found in members.items()]

    def _merge(self, groups: Sequence[_Group]) -> list[_Group]:
        """Neighbours in cost become one group while they agree, the nearest first."""
        place = {value: i for i, group in enumerate(groups) for value in group.values}
        ordered = sorted(groups, key=lambda group: group.band.estimate)
        while True:
            near = [
                (right.band.estimate - left.band.estimate, i)
                for i, (left, right) in enumerate(pairwise(ordered))
                if left.band.agrees(right.band, self._slack)
            ]
            if not near:
                return ordered
            _, i = min(near)
            values = sorted(ordered[i].values + ordered[i + 1].values, key=place.__getitem__)
            pairs = ordered[i].pairs + ordered[i + 1].pairs
            ordered[i : i + 2] = [_Group(tuple(values), pairs, self._pooled(pairs))]

    def _pooled(self, pairs: Sequence[Pair]) -> _Band:
        return _band(mean_by_block([pair.logs for pair in pairs]), self.terms.confidence)

    @property
    def _slack(self) -> float:
        return math.log(self.terms.margin)


def _band(logs: ByBlock, confidence: float) -> _Band:
    # With few blocks the confidence may be out of reach. Splitting is no verdict: the widest interval there
    # is then still tells a ratio of two from a ratio of one, where an infinite one would merge everything.
    reachable = 1 - 2.0 ** (1 - len(logs))
    return _Band(*signed_rank_interval(list(logs.values()), confidence=min(confidence, reachable)))
