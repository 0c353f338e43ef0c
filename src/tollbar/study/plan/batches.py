"""Batches: cells of a block that run at once, so that compared cells are measured milliseconds apart.

Each batch holds a few cells and their baselines. Batches are drawn again in each block, so that the pairs of claims,
tables and contrasts meet, those that have met least first. All combinations of a study's factors share a batch.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tollbar.catalog.families import Standing
from tollbar.study.plan import StudyPlan
from tollbar.study.plan.cells import Cell
from tollbar.study.plan.pairs import claimed, contrasted, factored, tabled

# More sessions on one core separate the sides of a ratio, and each waits longer for its turn: with four cells and a
# baseline of 5 ms each, two compared cells are some 10 ms apart.
MOST_CELLS = 4
# Two compared cells may have a baseline each; a third would be one more session for little.
MOST_BASELINES = 2
# Claims and tables are the study's purpose; a contrast is one of many. The weights never put a pair that has met often
# before one that has not met.
ASKED_WEIGHT = 16.0
CONTRAST_WEIGHT = 1.0
# A further baseline takes a place, which only a pair to compare is worth.
BASELINE_PRICE = 0.1
# If more cells than these want to meet one cell, examining all of them for each place takes quadratic time.
CROWD = 64


@dataclass(frozen=True, slots=True)
class Visit:
    """Trial of a block: a cell, or the repeat of one that is compared with itself."""

    cell: Cell
    repeat: bool
    block: int
    batch: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials that run at once, on one core."""

    study: str
    block: int
    number: int
    visits: tuple[Visit, ...]


def blocks(plan: StudyPlan, seed: int, count: int, excluded: Collection[tuple[str, str]] = ()) -> Iterator[list[Batch]]:
    """Yield the batches of each block, determined by the plan, the seed, and the unproven cells.

    `excluded` has the (study, cell) of unproven cells, which are not chosen as repeats for others of their kind.
    """
    draw = _Draw(plan, {key for study, key in excluded if study == plan.study.name})
    for block in range(count):
        source = random.Random(f"{seed}/{plan.study.name}/{block}")
        yield draw.block(block, source)


def _of_another_kind(cells: Sequence[Cell]) -> set[str]:
    """Return one cell for each null baseline, because only A/A pairs of real work reveal its noise."""
    baselines = {cell.key: cell for cell in cells if cell.is_baseline}
    found: dict[str, str] = {}
    for cell in cells:
        against = baselines.get(cell.against or "")
        if against and against.standing is Standing.NULL and cell.standing is not Standing.NULL:
            found.setdefault(against.key, cell.key)
    return {*found.values()}


@dataclass(slots=True)
class _Crowd:
    """The many cells that want to meet one cell, in one block, within which their weights do not change."""

    place: Mapping[str, int]
    """Position of each cell in the order of all."""
    baselines: list[str] = field(default_factory=list)
    alike: dict[tuple[str | None, float], deque[str]] = field(default_factory=lambda: defaultdict(deque))
    """Cells with the same baseline and the same weight, in their order."""

    def firsts(self, waiting: Collection[str]) -> Iterator[str]:
        """Yield the first waiting cell of each kind."""
        for keys in self.alike.values():
            while keys and keys[0] not in waiting:
                keys.popleft()
            if keys:
                yield keys[0]


class _Draw:
    """Draw of block after block, with counts of the pairs that shared a batch."""

    def __init__(self, plan: StudyPlan, excluded: Collection[str]) -> None:
        self._study = plan.study.name
        self._cells = {cell.key: cell for cell in plan.cells}
        self._wanted: dict[str, dict[str, float]] = defaultdict(dict)
        self._met: Counter[frozenset[str]] = Counter()
        self._both: dict[frozenset[str], set[str]] = {}
        self._crowds: dict[str, _Crowd] = {}
        proven = [cell for cell in plan.cells if cell.key not in excluded]
        self._together = [[cell.key for cell in group] for group in factored(plan.study, plan.cells)]
        self._twice = {cell.key for cell in plan.cells if cell.is_baseline} | _of_another_kind(proven)
        for claim in plan.study.claims:
            for of, over, _ in claimed(claim, plan.cells):
                if of is over:
                    self._twice.add(of.key)
                self._want(of.key, over.key, ASKED_WEIGHT)
        for table in plan.study.tables:
            for cell, overs in tabled(table, plan.cells):
                for over in overs:
                    self._want(cell.key, over.key, ASKED_WEIGHT)
        for _, cell, other in contrasted(plan.study, plan.cells):
            self._want(cell.key, other.key, CONTRAST_WEIGHT)

    def block(self, block: int, source: random.Random) -> list[Batch]:
        self._crowds.clear()
        left = [cell.key for cell in self._cells.values() if not cell.is_baseline]
        source.shuffle(left)
        # Cells with many partners come first, while their partners are still waiting.
        left.sort(key=lambda key: sum(self._need(key, other) for other in self._wanted[key]), reverse=True)
        # In the shuffled order. The first key is read after each removal, which takes quadratic time in a plain dict,
        # because it scans the removed entries.
        waiting = OrderedDict.fromkeys(left)
        by_baseline: dict[str | None, OrderedDict[str, None]] = defaultdict(OrderedDict)
        for key in left:
            by_baseline[self._cells[key].against][key] = None
        batches: list[list[str]] = []
        for group in self._together:
            there = [key for key in group if key in waiting]
            for key in there:
                del waiting[key]
                del by_baseline[self._cells[key].against][key]
            batches.append(list(dict.fromkeys([*self._baselines(there), *group])))
        while waiting:
            batch: list[str] = []
            drawn: str | None = next(iter(waiting))
            while drawn is not None:
                batch.append(drawn)
                del waiting[drawn]
                del by_baseline[self._cells[drawn].against][drawn]
                drawn = self._next(batch, waiting, by_baseline) if len(batch) < MOST_CELLS else None
            batches.append([*self._baselines(batch), *batch])
        alone = [key for key, cell in self._cells.items() if cell.is_baseline]
        drawn_already = {key for batch in batches for key in batch}
        batches += [[key] for key in alone if key not in drawn_already]
        for batch in batches:
            self._meet(batch)
        return self._with_repeats(block, batches, source)

    def _next(
        self, batch: list[str], waiting: OrderedDict[str, None], by_baseline: dict[str | None, OrderedDict[str, None]]
    ) -> str | None:
        """Return the waiting cell that the batch's cells need most to meet, else any with one of its baselines."""
        baselines = self._baselines(batch)
        members = (*batch, *baselines)
        candidates = self._candidates(members, waiting)
        # A baseline comes with any cell that is compared with it.
        brought = (next(iter(by_baseline[key]), None) for key in candidates if self._cells[key].is_baseline)
        best, most = None, 0.0
        for key in dict.fromkeys((*candidates, *brought)):
            if key is None or key not in waiting:
                continue
            against = self._cells[key].against
            new = [against] if against is not None and against not in baselines else []
            if new and len(baselines) >= MOST_BASELINES:
                continue
            wanted = sum(self._need(one, member) for one in (key, *new) for member in members)
            wanted -= BASELINE_PRICE * len(new)
            if wanted > most:
                best, most = key, wanted
        if best is not None:
            return best
        return next((key for member in batch for key in by_baseline[self._cells[member].against]), None)

    def _candidates(self, members: Sequence[str], waiting: Collection[str]) -> dict[str, None]:
        """Return the cells that one of these wants to meet, in order.

        They include all that `_next` could draw, or that bring a baseline. A cell with very many partners is often a
        baseline, and in each of their batches. If several of its partners have the same baseline and weight and no
        other member wants them, only the first can be drawn.
        """
        crowded = [member for member in members if len(self._wanted[member]) > CROWD]
        if not crowded:
            return dict.fromkeys(key for member in members for key in self._wanted[member])
        wanted_twice = {key for member in members if member not in crowded for key in self._wanted[member]}
        for one, other in itertools.combinations(crowded, 2):
            wanted_twice |= self._common(one, other)
        found: dict[str, None] = {}
        for member in members:
            if member in crowded:
                crowd = self._crowd_of(member, waiting)
                keys = {*crowd.firsts(waiting), *crowd.baselines, *(wanted_twice & crowd.place.keys())}
                found |= dict.fromkeys(sorted(keys, key=crowd.place.__getitem__))
            else:
                found |= dict.fromkeys(self._wanted[member])
        return found

    def _crowd_of(self, member: str, waiting: Collection[str]) -> _Crowd:
        """Return the cells that want to meet this cell, by their weight in this block."""
        if member not in self._crowds:
            wanted = self._wanted[member]
            crowd = _Crowd({key: place for place, key in enumerate(wanted)})
            for key in wanted:
                if self._cells[key].is_baseline:
                    crowd.baselines.append(key)
                elif key in waiting:
                    crowd.alike[self._cells[key].against, self._need(key, member)].append(key)
            self._crowds[member] = crowd
        return self._crowds[member]

    def _common(self, one: str, other: str) -> set[str]:
        """Return the cells that want to meet both of these."""
        pair = frozenset((one, other))
        if pair not in self._both:
            self._both[pair] = self._wanted[one].keys() & self._wanted[other].keys()
        return self._both[pair]

    def _baselines(self, batch: list[str]) -> list[str]:
        found = dict.fromkeys(self._cells[key].against for key in batch)
        return [key for key in found if key is not None]

    def _want(self, one: str, other: str, weight: float) -> None:
        if one != other:
            for a, b in ((one, other), (other, one)):
                self._wanted[a][b] = self._wanted[a].get(b, 0.0) + weight

    def _need(self, one: str, other: str) -> float:
        weight = self._wanted[one].get(other)
        return weight / (1 + self._met[frozenset((one, other))]) ** 2 if weight else 0.0

    def _meet(self, batch: list[str]) -> None:
        for place, one in enumerate(batch):
            for other in batch[place + 1 :]:
                if other in self._wanted[one]:
                    self._met[frozenset((one, other))] += 1

    def _with_repeats(self, block: int, batches: list[list[str]], source: random.Random) -> list[Batch]:
        """Return the batches in a random order; each cell with a repeat gets it in one of its batches."""
        source.shuffle(batches)
        places: dict[str, list[int]] = defaultdict(list)
        for number, batch in enumerate(batches):
            for key in dict.fromkeys(batch):
                places[key].append(number)
        repeats: dict[int, list[str]] = defaultdict(list)
        for key in self._cells:
            if key in self._twice:
                repeats[source.choice(places[key])].append(key)
        return [self._batch(block, number, batch, repeats[number], source) for number, batch in enumerate(batches)]

    def _batch(self, block: int, number: int, batch: list[str], repeats: list[str], source: random.Random) -> Batch:
        """Return a batch of these cells and repeats in a random order.

        The first to start finds the machine as the previous batch left it, and the last has the others running from its
        beginning, so a fixed order would bias them.
        """
        visits = [Visit(self._cells[key], False, block, number) for key in batch]
        visits += [Visit(self._cells[key], True, block, number) for key in repeats]
        source.shuffle(visits)
        return Batch(self._study, block, number, tuple(visits))
