"""Batches: which cells of a block are up at once, so that what is compared is measured milliseconds apart.

Each batch holds a few cells and the baselines that they are compared with. They are drawn anew in each block, such that
the pairs that claims, tables and contrasts compare meet, those first that have met least. All combinations of a study's
factors share a batch.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tollbar.catalog.families import Standing
from tollbar.study.plan import Cell, StudyPlan
from tollbar.study.plan.pairs import claimed, contrasted, factored, tabled

# More sessions on one core drive the sides of a ratio apart, and each waits longer for its turn: with four cells and
# a baseline of 5 ms each, two that are compared lie some 10 ms apart.
MOST_CELLS = 4
# Two that are compared may have a baseline each; a third would be one more session for little.
MOST_BASELINES = 2
# Claims and tables are what the study is for; a contrast is one of many. Nothing is wanted so much that a pair which
# has met often is put before one that has not met at all.
ASKED_WEIGHT = 16.0
CONTRAST_WEIGHT = 1.0
# A further baseline takes a place: only a pair that is to be compared is worth it.
BASELINE_PRICE = 0.1
# If more cells than these want to meet one cell, looking at all of them for each place takes a time that is quadratic.
CROWD = 64


@dataclass(frozen=True, slots=True)
class Visit:
    """One trial to be made: a cell, or the repeat of one that is compared with itself, in a batch of a block."""

    cell: Cell
    repeat: bool
    block: int
    batch: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials that are up at once, on one core."""

    study: str
    block: int
    number: int
    visits: tuple[Visit, ...]


def blocks(plan: StudyPlan, seed: int, count: int, excluded: Collection[tuple[str, str]] = ()) -> Iterator[list[Batch]]:
    """The batches of each block. They depend on nothing but the plan, the seed, and what could not be proved.

    `excluded` has (study, cell) of these, which are not measured twice for others of their kind.
    """
    draw = _Draw(plan, {key for study, key in excluded if study == plan.study.name})
    for block in range(count):
        source = random.Random(f"{seed}/{plan.study.name}/{block}")
        yield draw.block(block, source)


def _of_another_kind(cells: Sequence[Cell]) -> set[str]:
    """One cell for each baseline that does nothing: what noise makes of real work shows in A/A pairs of that alone."""
    baselines = {cell.key: cell for cell in cells if cell.is_baseline}
    found: dict[str, str] = {}
    for cell in cells:
        against = baselines.get(cell.against or "")
        if against and against.standing is Standing.NULL and cell.standing is not Standing.NULL:
            found.setdefault(against.key, cell.key)
    return {*found.values()}


@dataclass(slots=True)
class _Crowd:
    """Very many cells that want to meet one, in one block: how much they want it does not change within a block."""

    place: Mapping[str, int]
    """Where each stands among all of them."""
    baselines: list[str] = field(default_factory=list)
    alike: dict[tuple[str | None, float], deque[str]] = field(default_factory=lambda: defaultdict(deque))
    """Those that have one baseline and want to meet the cell as much, in their order."""

    def firsts(self, waiting: Collection[str]) -> Iterator[str]:
        """The first of each kind that is still waiting."""
        for keys in self.alike.values():
            while keys and keys[0] not in waiting:
                keys.popleft()
            if keys:
                yield keys[0]


class _Draw:
    """Draws block after block, and counts how often each pair of cells shared a batch."""

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
        # A cell that is to meet several finds them all still waiting.
        left.sort(key=lambda key: sum(self._need(key, other) for other in self._wanted[key]), reverse=True)
        # In the shuffled order. The first of them is asked for after each removal: a plain dict looks for it among all
        # that were removed, which takes a time quadratic in the number of cells.
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
        """The cell that the batch's cells want most to meet, else any that has one of its baselines."""
        baselines = self._baselines(batch)
        members = (*batch, *baselines)
        candidates = self._candidates(members, waiting)
        # A baseline comes with any cell that is held against it.
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
        """The cells that one of these wants to meet, in order: all that `_next` could draw, or that bring a baseline.

        A cell that very many want to meet is often a baseline, and is in each of their batches. Of those that no other
        member wants, have one baseline and want it as much, only the first can be drawn.
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
        """Those that want to meet this cell, by how much they do in this block."""
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
        """The cells that want to meet both of these."""
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
        """The batches in a random order; in one of its batches, what is compared with itself runs once more."""
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
        """These cells and A/A pairs in a random order: what starts first finds the machine as the batch before has left
        it, and what starts last has had the others beside it from its beginning."""
        visits = [Visit(self._cells[key], False, block, number) for key in batch]
        visits += [Visit(self._cells[key], True, block, number) for key in repeats]
        source.shuffle(visits)
        return Batch(self._study, block, number, tuple(visits))
