"""Processor flags that go with verdicts, and the number that chance alone gives.

With few processors some flag separates any two verdicts. So the flags are shuffled among the processors, and a pattern
is reported only if few shuffles give one in as many tolls.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from random import Random
from statistics import median

from tollbar.analysis import Verdict
from tollbar.core.arrays import np
from tollbar.decide.compare.places import Machine, TollRow

# On either side of a flag: whatever one processor has by itself goes with its verdict.
FEWEST_PROCESSORS = 2
BY_CHANCE = 0.05
"""Largest share of shuffles that may give as many tolls for some flag as a reported pattern has."""
MOST_SHUFFLES = 1000
_SEED = 0
# Multiplications of all shuffles together: some seconds. And tolls times flags: each shuffle has a table of them.
_MOST_WORK, _MOST_CELLS = 20_000_000_000, 20_000_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """Flags that all processors of one verdict have, and none of another verdict's: no cause: more goes with them."""

    flags: tuple[str, ...]
    have: Verdict
    """Verdict of processors with the flags."""
    lack: Verdict
    """Verdict of processors without the flags."""
    processors: tuple[int, int]
    """Number of processors with and without the flags, the smallest among the rows."""
    rows: list[TollRow]
    by_chance: float = 1.0
    """The share of shuffles in which some flag separates the verdicts of as many tolls."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns that chance seldom gives, and the number of tolls with a separating flag, as found and as shuffled."""

    told: tuple[Pattern, ...] = ()
    not_told: int = 0
    """Patterns that chance gives too often."""
    tolls: int = 0
    """Tolls whose verdicts some flag separates."""
    shuffles: int = 0
    """Ways in which the flags were dealt out; 0: there was no pattern, or too many tolls and flags to try."""
    usual: float = 0.0
    """The median of these tolls' number over the shuffles."""
    most: int = 0
    """The number that 95 of 100 shuffles do not exceed."""


@dataclass(frozen=True, slots=True)
class _Divided:
    """Tolls that have the same two verdicts on the same machines."""

    verdicts: tuple[Verdict, Verdict]
    machines: tuple[frozenset[int], frozenset[int]]
    rows: list[TollRow]


def find_patterns(rows: Iterable[TollRow], machines: Sequence[Machine]) -> Patterns:
    """Return the patterns that fewer than 5 % of shuffles give, those of most tolls first."""
    divided = _divided(rows, machines)
    flags = sorted({flag for machine in machines for flag in machine.fingerprint.flags})
    by_holders: dict[frozenset[int], list[str]] = defaultdict(list)
    for flag in flags:
        by_holders[frozenset(n for n, one in enumerate(machines) if flag in one.fingerprint.flags)].append(flag)
    if not divided or len(divided) * len(by_holders) > _MOST_CELLS:
        return Patterns()
    tables = _Tables(divided, list(by_holders), len(machines))
    found = list(_found(tables, divided, list(by_holders.values()), machines))
    if not found:
        return Patterns()
    orders = list(_shuffles(machines, int(_MOST_WORK // tables.work)))
    counts = [tables.count(order) for order in orders]
    best, totals = [one for one, _ in counts], sorted(total for _, total in counts)
    patterns = [replace(one, by_chance=sum(of >= len(one.rows) for of in best) / len(best)) for one in found]
    told = sorted((one for one in patterns if one.by_chance < BY_CHANCE), key=lambda one: -len(one.rows))
    # The first of the shuffles deals nothing out.
    tolls = counts[0][1]
    most = totals[math.ceil((1 - BY_CHANCE) * len(totals)) - 1]
    return Patterns(tuple(told), len(patterns) - len(told), tolls, len(orders), median(totals), most)


def _divided(rows: Iterable[TollRow], machines: Sequence[Machine]) -> list[_Divided]:
    """Return the tolls with two verdicts, each on enough processors, by machine; *unclear* may be either."""
    found: dict[tuple[object, ...], _Divided] = {}
    for row in rows:
        verdicts = tuple(sorted({*row.verdicts.values()}))
        if len(verdicts) != 2:
            continue
        sides = [frozenset(n for n, one in row.verdicts.items() if one is verdict) for verdict in verdicts]
        if min(_processors(side, machines) for side in sides) >= FEWEST_PROCESSORS:
            known = found.setdefault((verdicts, *sides), _Divided(verdicts, (sides[0], sides[1]), []))
            known.rows.append(row)
    return list(found.values())


def _processors(side: Iterable[int], machines: Sequence[Machine]) -> int:
    return len({machines[number].processor for number in side})


class _Tables:
    """Matrices of machines by verdict and by flag, so that thousands of shuffles take seconds."""

    def __init__(self, divided: Sequence[_Divided], holders: Sequence[frozenset[int]], machines: int) -> None:
        self.sides = [_matrix([one.machines[side] for one in divided], machines) for side in (0, 1)]
        self.sizes = [side.sum(axis=1, keepdims=True) for side in self.sides]
        self.flags = _matrix(holders, machines)
        self.times = np.array([len(one.rows) for one in divided], dtype=np.float32)
        pairs = list(dict.fromkeys(one.verdicts for one in divided))
        self.of_pair = [
            np.array([len(one.rows) if one.verdicts == pair else 0 for one in divided], dtype=np.float32)
            for pair in pairs
        ]
        self.work = 2 * len(divided) * len(holders) * machines

    def separated(self, order: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return whether a flag is on all of the first side and none of the second, and the reverse, by toll and flag.

        `order` gives for each machine the number of the machine whose flags it gets.
        """
        flags = self.flags if order is None else self.flags[:, order]
        first, second = (side @ flags.T for side in self.sides)
        return (first == self.sizes[0]) & (second == 0), (first == 0) & (second == self.sizes[1])

    def count(self, order: np.ndarray) -> tuple[int, int]:
        """Return the number of tolls that the best flag separates with equal verdicts, and that any flag separates."""
        sides = self.separated(order)
        best = max(float((times @ side).max()) for side in sides for times in self.of_pair)
        return round(best), round(float(self.times @ (sides[0] | sides[1]).any(axis=1)))


def _matrix(sets: Sequence[frozenset[int]], machines: int) -> np.ndarray:
    found = np.zeros((len(sets), machines), dtype=np.float32)
    for number, those in enumerate(sets):
        found[number, list(those)] = 1
    return found


def _found(
    tables: _Tables, divided: Sequence[_Divided], flags: Sequence[Sequence[str]], machines: Sequence[Machine]
) -> Iterator[Pattern]:
    """Yield the patterns, chance not yet compared. Flags that separate the same tolls are one pattern."""
    at: dict[tuple[Verdict, Verdict, tuple[int, ...]], list[str]] = defaultdict(list)
    for side, separated in enumerate(tables.separated()):
        for number, names in enumerate(flags):
            places: Mapping[tuple[Verdict, Verdict], list[int]] = defaultdict(list)
            for place in map(int, np.flatnonzero(separated[:, number])):
                verdicts = divided[place].verdicts
                places[verdicts[side], verdicts[1 - side]].append(place)
            for (have, lack), some in places.items():
                at[have, lack, tuple(some)] += names
    for (have, lack, those), names in at.items():
        ones = [divided[place] for place in those]
        with_, without = (
            min(_processors(one.machines[one.verdicts.index(verdict)], machines) for one in ones)
            for verdict in (have, lack)
        )
        yield Pattern(tuple(sorted(names)), have, lack, (with_, without), [row for one in ones for row in one.rows])


def _shuffles(machines: Sequence[Machine], most: int) -> Iterator[np.ndarray]:
    """Orders of the machines, as `_Tables.separated` takes them; the first changes nothing. Each has a fixed seed.

    Processors change places, since machines of one processor have its flags and are no further observations of them.
    """
    of: dict[str, list[int]] = defaultdict(list)
    for number, machine in enumerate(machines):
        of[machine.processor].append(number)
    names, most = list(of), max(1, min(most, MOST_SHUFFLES))
    chance = Random(_SEED)
    if math.factorial(min(len(names), 20)) <= most:
        dealt: Iterable[Sequence[str]] = permutations(names)
    else:
        dealt = [names, *(chance.sample(names, len(names)) for _ in range(most - 1))]
    for given in dealt:
        order = np.arange(len(machines))
        for name, other in zip(names, given, strict=True):
            for place, number in enumerate(of[name]):
                order[number] = of[other][place % len(of[other])]
        yield order
