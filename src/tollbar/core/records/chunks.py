"""A trial's chunks: one by one, or what was seen of all of them, each thing in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

Key = TypeVar("Key")
Number = TypeVar("Number", int, float)

Observations = Mapping[tuple[str, str], float]
"""By (component, metric), what a chunk showed beside its operations and its CPU time; component "": the whole."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A few milliseconds of one trial's work, and what it cost."""

    round: int
    """Chunks of one batch and round were measured milliseconds apart."""
    operations: int
    wall_ns: int
    cpu_ns: Mapping[str, int]
    """CPU nanoseconds of each component: `RUNNER`; or each of a server's, and `CLIENT`."""
    observed: Observations = field(default_factory=dict)
    probes_ns: tuple[float, ...] | None = None
    """What a probe of its core took right before and right after; of a long chunk, between the two, the slowest of
    those that were asked while it lasted (but for one in twenty). None where that core had none."""
    is_made_up: bool = False
    """Whether its round stands for one that was lost, and the lab waited for a quiet moment: then nothing can be said
    by it of the machine as it was."""


@dataclass(frozen=True, eq=False)
class Chunks(Sequence[Chunk]):
    """A trial's chunks, as a run keeps them: of each thing that was seen the values of all chunks in a row.

    A run has them by the ten thousand, and most that is asked of them is of one or two things: each chunk by itself is
    only made where it is wanted.
    """

    rounds: Sequence[int]
    operations: Sequence[int]
    wall_ns: Sequence[int]
    cpu_ns: Mapping[str, Sequence[int | None]]
    """By component; None of a chunk that has none of it."""
    observed: Mapping[tuple[str, str], Sequence[float | None]]
    probes_ns: Sequence[Sequence[float | None]]
    """Those before the chunks, within them and after them, as far as there are any."""
    made_up: Sequence[bool]

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Chunks:
        """Chunks that were made one by one, as these; what are these already stays as it is."""
        if isinstance(chunks, cls):
            return chunks
        components = dict.fromkeys(name for chunk in chunks for name in chunk.cpu_ns)
        observed = dict.fromkeys(key for chunk in chunks for key in chunk.observed)
        probed = [chunk.probes_ns or () for chunk in chunks]
        most = max(map(len, probed), default=0)
        return cls(
            [chunk.round for chunk in chunks],
            [chunk.operations for chunk in chunks],
            [chunk.wall_ns for chunk in chunks],
            {name: [chunk.cpu_ns.get(name) for chunk in chunks] for name in components},
            {key: [chunk.observed.get(key) for chunk in chunks] for key in observed},
            [[one[place] if place < len(one) else None for one in probed] for place in range(most)],
            [chunk.is_made_up for chunk in chunks],
        )

    @property
    def probed(self) -> Sequence[tuple[float, ...] | None]:
        """The probes of each chunk, in the order of time; None where it had none."""
        if not self.probes_ns:
            return [None] * len(self)
        rows = zip(*self.probes_ns, strict=True)
        if any(None in column for column in self.probes_ns):
            return [tuple(ns for ns in row if ns is not None) or None for row in rows]
        return [*rows]

    @property
    def seen(self) -> Sequence[tuple[str, str]]:
        """(component, metric) of what was observed in some chunk, what was seen first before all others."""
        first = {
            key: next((place for place, value in enumerate(values) if value is not None), len(self))
            for key, values in self.observed.items()
        }
        return sorted((key for key, place in first.items() if place < len(self)), key=first.__getitem__)

    def paid(self, components: Sequence[str]) -> Sequence[int]:
        """CPU nanoseconds of these components together, of each chunk."""
        columns = [self.cpu_ns[name] for name in components if name in self.cpu_ns]
        if len(columns) == 1:
            return [ns or 0 for ns in columns[0]]
        return [sum(filter(None, each)) for each in zip(*columns, strict=True)] if columns else [0] * len(self)

    def _made(self) -> tuple[Chunk, ...]:
        # Not kept: they take ten times the memory of the columns.
        each_paid = _by_chunk(self.cpu_ns, len(self))
        each_observed = _by_chunk(self.observed, len(self))
        seen = (self.rounds, self.operations, self.wall_ns, each_paid, each_observed, self.probed, self.made_up)
        return tuple(Chunk(*one) for one in zip(*seen, strict=True))

    def _cut(self, place: slice) -> Chunks:
        return Chunks(
            self.rounds[place],
            self.operations[place],
            self.wall_ns[place],
            {name: values[place] for name, values in self.cpu_ns.items()},
            {key: values[place] for key, values in self.observed.items()},
            [values[place] for values in self.probes_ns],
            self.made_up[place],
        )

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._made())

    @overload
    def __getitem__(self, place: int) -> Chunk: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Chunk, ...]: ...
    def __getitem__(self, place: int | slice) -> Chunk | tuple[Chunk, ...]:
        if isinstance(place, slice):
            return self._cut(place)._made()
        one = range(len(self))[place]
        return self._cut(slice(one, one + 1))._made()[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._made() == tuple(other)


def _by_chunk(columns: Mapping[Key, Sequence[Number | None]], chunks: int) -> list[dict[Key, Number]]:
    """Of each chunk what these columns have of it."""
    if not columns:
        return [{} for _ in range(chunks)]
    rows = zip(*columns.values(), strict=True)
    return [{key: value for key, value in zip(columns, row, strict=True) if value is not None} for row in rows]
