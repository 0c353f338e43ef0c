"""Visits to one cell: the chunks of all its trials in one table, and their sums by block.

numpy takes as long for the ten chunks of a trial as for the hundreds of a cell.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

from tollbar.core.arrays import grouped, np
from tollbar.core.intervals import Moments


@dataclass(frozen=True, slots=True)
class Visit:
    """Chunks of one trial, a fresh process. All arrays have one entry for each chunk."""

    block: int
    batch: int
    rounds: np.ndarray
    """Round of each chunk, ascending, the same for all of its slices.

    Chunks of one block, batch and round were measured milliseconds apart.
    """
    costs: np.ndarray
    """Total cost of a chunk's operations, in nanoseconds (or another additive amount)."""
    operations: np.ndarray
    quiet: np.ndarray
    """True if the probes before and after it found the core quiet."""
    first: np.ndarray
    """True if it was its round's first try, so that nothing selected it."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Blocks, batches and rounds of all chunks of some visits, one visit after the other."""

    places: Sequence[tuple[int, int]]
    """Block and batch of each visit."""
    lengths: np.ndarray
    """Number of chunks of each visit."""
    rounds: np.ndarray
    """Round of each chunk."""

    @cached_property
    def starts(self) -> np.ndarray:
        """Index of each visit's first chunk."""
        found: np.ndarray = self.lengths.cumsum() - self.lengths
        return found

    @cached_property
    def parts(self) -> Sequence[slice]:
        """Chunks of each visit."""
        return [slice(*ends) for ends in pairwise([*self.starts.tolist(), len(self.rounds)])]

    @cached_property
    def is_even(self) -> bool:
        """True if there are visits, and all have the same number of chunks."""
        return bool(len(self.lengths)) and bool((self.lengths == self.lengths[0]).all())

    @cached_property
    def visit_of(self) -> np.ndarray:
        """Index of each chunk's visit."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    @cached_property
    def blocks(self) -> frozenset[int]:
        """Blocks of the visits."""
        return frozenset(block for block, _ in self.places)

    @cached_property
    def in_blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct blocks in ascending order, and the index of each visit's block among them."""
        found = grouped(np.array([block for block, _ in self.places], int))
        return found[0], found[1]

    @cached_property
    def in_rounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct rounds in ascending order, and a number of each chunk's visit and round, in ascending order."""
        rounds, numbers = np.unique(self.rounds, return_inverse=True)
        return rounds, self.visit_of * len(rounds) + numbers

    @cached_property
    def slices(self) -> np.ndarray:
        """Number of slices of each slice's chunk: the number of chunks with its visit and round."""
        if self.is_ascending:
            return np.ones(len(self.rounds), int)
        _, places, counts = grouped(self.in_rounds[1])
        found: np.ndarray = counts[places]
        return found

    @cached_property
    def is_whole(self) -> bool:
        """True if no chunk has slices."""
        return self.is_ascending or not (self.slices > 1).any()

    @cached_property
    def is_ascending(self) -> bool:
        """True if each chunk of a visit has a later round than the one before it, as without slices."""
        is_later = self.rounds[1:] > self.rounds[:-1]
        return bool((is_later | (self.visit_of[1:] != self.visit_of[:-1])).all())

    @cached_property
    def by_batch(self) -> Mapping[tuple[int, int], Sequence[int]]:
        """Indices of the visits by block and batch: two of a baseline that was measured twice there."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, place in enumerate(self.places):
            found.setdefault(place, []).append(number)
        return found

    def partners(self, other: Frame) -> tuple[list[int], list[int]]:
        """Return the indices of visits that shared a batch; a baseline measured twice there makes two pairs."""
        pairs = [(one, another) for one, at in enumerate(self.places) for another in other.by_batch.get(at, ())]
        return [one for one, _ in pairs], [another for _, another in pairs]

    def is_like(self, other: Frame) -> bool:
        """Return whether both have visits of the same rounds in the same order."""
        return np.array_equal(self.lengths, other.lengths) and np.array_equal(self.rounds, other.rounds)

    def taken(self, visits: Sequence[int]) -> tuple[Frame, np.ndarray | slice]:
        """Return the frame of these visits, and the indices of their chunks here."""
        if visits == [*range(len(self.places))]:
            return self, slice(None)
        lengths = self.lengths[visits]
        ends = lengths.cumsum()
        chunks = np.repeat(self.starts[visits] - ends + lengths, lengths) + np.arange(lengths.sum())
        return Frame([self.places[one] for one in visits], lengths, self.rounds[chunks]), chunks


@dataclass(frozen=True, eq=False, slots=True)
class Sums:
    """Sums of chunks by block."""

    blocks: np.ndarray
    """Blocks in ascending order."""
    table: np.ndarray
    """Amount spent, number of operations, and their weight, of each block."""

    def __len__(self) -> int:
        return len(self.blocks)

    def within(self, blocks: np.ndarray) -> Sums:
        """Return the sums of these blocks, which are some of its own."""
        return Sums(blocks, self.table[np.searchsorted(self.blocks, blocks)])


@dataclass(frozen=True, eq=False)
class Visits:
    """Visits to one cell, with the properties of all their chunks."""

    frame: Frame
    costs: np.ndarray
    operations: np.ndarray
    quiet: np.ndarray
    first: np.ndarray
    _sums: dict[Moments, Sums] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(cls, visits: Iterable[Visit]) -> Visits:
        """Return the visits in one table; those of this class are returned unchanged."""
        if isinstance(visits, cls):
            return visits
        each = [*visits]
        frame = Frame(
            [(one.block, one.batch) for one in each],
            np.array([len(one.rounds) for one in each], int),
            _joined([one.rounds for one in each], int),
        )
        return cls(
            frame,
            _joined([one.costs for one in each], float),
            _joined([one.operations for one in each], float),
            _joined([one.quiet for one in each], bool),
            _joined([one.first for one in each], bool),
        )

    def __len__(self) -> int:
        return len(self.frame.places)

    def __iter__(self) -> Iterator[Visit]:
        for (block, batch), part in zip(self.frame.places, self.frame.parts, strict=True):
            columns = (self.frame.rounds, self.costs, self.operations, self.quiet, self.first)
            yield Visit(block, batch, *(column[part] for column in columns))

    @property
    def blocks(self) -> frozenset[int]:
        """Blocks of the visits."""
        return self.frame.blocks

    @cached_property
    def has_costs(self) -> bool:
        """True if anything was spent in a first try."""
        return bool((self.costs[self.first] > 0).any())

    def selected(self, moments: Moments) -> np.ndarray:
        """Return which of its chunks count."""
        return self.quiet if moments is Moments.QUIET else self.first

    def amounts(self, moments: Moments) -> np.ndarray:
        """Return for each chunk the amount spent, the number of operations, and its weight in its block.

        A quiet chunk weighs as many as its operations, because a slice has a tenth of a chunk's. With all samples, each
        round counts as one operation at its mean cost, shared by the slices of a chunk. A chunk that ends by time has
        more operations in quick moments, and one long operation has not, so weights by operations would differ between
        the sides of a ratio. In addition, chunks that others disturbed have no slices.
        """
        # Not cached: the tables of all cells take more memory than their trials.
        table = np.ones((len(self.costs), 3))
        if moments is Moments.QUIET:
            table[:, 0], table[:, 1], table[:, 2] = self.costs, self.operations, self.operations
        else:
            table[:, 0] = self.costs / self.operations
            if not self.frame.is_whole:
                table /= self.frame.slices[:, np.newaxis]
        return table

    def by_block(self, moments: Moments) -> Sums:
        """Return the sums of each block over the chunks of these moments."""
        if moments not in self._sums:
            self._sums[moments] = _summed(self.frame, self.selected(moments), self.amounts(moments))
        return self._sums[moments]

    @cached_property
    def last_rounds(self) -> np.ndarray:
        """Number of each visit's last round with a first try, at least 1."""
        last = np.maximum.reduceat(np.where(self.first, self.frame.rounds, 1), self.frame.starts)
        found: np.ndarray = np.maximum(last, 1)
        return found

    @cached_property
    def quiet_rounds(self) -> tuple[Frame, np.ndarray]:
        """Rounds of each visit that have a quiet chunk, and the logarithm of an operation's cost in each."""
        counted = self.quiet & (self.costs > 0)
        if self.frame.is_ascending:
            lengths = np.bincount(self.frame.visit_of[counted], minlength=len(self))
            each = np.log(self.costs[counted] / self.operations[counted])
            return Frame(self.frame.places, lengths, self.frame.rounds[counted]), each
        rounds, numbers = self.frame.in_rounds
        found, places, _ = grouped(numbers[counted])
        spent, operations = (np.bincount(places, some[counted], len(found)) for some in (self.costs, self.operations))
        lengths = np.bincount(found // len(rounds), minlength=len(self))
        return Frame(self.frame.places, lengths, rounds[found % len(rounds)]), np.log(spent / operations)


class Meeting:
    """Batches that two frames share."""

    def __init__(self, of: Frame, over: Frame) -> None:
        self.mine, self.theirs = of.partners(over)
        self.one, self.my_chunks = of.taken(self.mine)
        self.other, self.their_chunks = over.taken(self.theirs)
        if self.one.is_like(self.other):
            self.other = self.one
        # The common case: both sides have one chunk in every round of their batches.
        self.are_whole = self.other is self.one and of.is_whole


class Pairs:
    """Visits of two cells that shared a batch; `meeting` is that of their frames, if it is known."""

    def __init__(self, of: Visits, over: Visits, meeting: Meeting | None = None) -> None:
        self.of, self.over = of, over
        self.meeting = meeting or Meeting(of.frame, over.frame)

    def sums(self, moments: Moments) -> tuple[Sums, Sums]:
        """Return the sums of both sides over the rounds that both have."""
        met = self.meeting
        here, there = self.of.selected(moments)[met.my_chunks], self.over.selected(moments)[met.their_chunks]
        if met.are_whole:
            here = there = here & there
        else:
            here, there = _in_both(met.one, here, met.other, there)
        return (
            _sums_in(met.one, self.of, met.my_chunks, here, moments),
            _sums_in(met.other, self.over, met.their_chunks, there, moments),
        )


def _sums_in(frame: Frame, visits: Visits, chunks: np.ndarray | slice, counted: np.ndarray, moments: Moments) -> Sums:
    """Return the sums of these chunks, as far as they count; those of all chunks of a cell that count are known."""
    if isinstance(chunks, slice) and np.array_equal(counted, visits.selected(moments)):
        return visits.by_block(moments)
    return _summed(frame, counted, visits.amounts(moments)[chunks])


# Below this a round is its own number: times any number of visits it is far from the limit of an integer.
_MOST_ROUNDS = 1 << 30


def _in_both(one: Frame, here: np.ndarray, other: Frame, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the selected chunks of either side whose round has a selected chunk on the other side too."""
    my_rounds, their_rounds = numbered(one, other)
    mine = here & np.isin(my_rounds, their_rounds[there])
    return mine, there & np.isin(their_rounds, my_rounds[mine])


def numbered(one: Frame, other: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Return a number of each chunk's visit and round for two frames of the same number of visits.

    It is equal for a round that a visit has in both, and rises with the visit, then with the round.
    """
    each = np.concatenate([one.rounds, other.rounds])
    if len(each) and 0 <= each.min() and each.max() < _MOST_ROUNDS:
        rounds, numbers = int(each.max()) + 1, each
    else:
        distinct, numbers = np.unique(each, return_inverse=True)
        rounds = len(distinct)
    numbers = numbers + rounds * np.concatenate([one.visit_of, other.visit_of])
    return numbers[: len(one.rounds)], numbers[len(one.rounds) :]


def _summed(frame: Frame, selected: np.ndarray, amounts: np.ndarray) -> Sums:
    """Return the sums of each block over the selected chunks; a block without one has none."""
    if frame.is_even:
        visits = len(frame.places)
        each = np.matmul(selected.reshape(visits, 1, -1), amounts.reshape(visits, -1, 3))[:, 0]
    else:
        each = np.array([selected[part] @ amounts[part] for part in frame.parts]).reshape(-1, 3)
    blocks, places = frame.in_blocks
    table = np.zeros((len(blocks), 3))
    if len(blocks) == len(places):
        table[places] = each
    else:
        np.add.at(table, places, each)
    has_any = table[:, 2] > 0
    return Sums(blocks, table) if has_any.all() else Sums(blocks[has_any], table[has_any])


def column(each: Iterable[Iterable[Any]], kind: type) -> np.ndarray:
    """Return the values of each of these after the other; None is no number."""
    columns = [*each]
    arrays = [one for one in columns if isinstance(one, array)]
    codes = {one.typecode for one in arrays}
    if len(codes) == 1 and len(arrays) == len(columns):
        # Their bytes take a twentieth of the time of their values.
        return np.frombuffer(b"".join(arrays), codes.pop()).astype(kind)
    return np.array([*chain.from_iterable(columns)], kind)


def _joined(each: Sequence[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(each).astype(kind) if each else np.zeros(0, kind)
