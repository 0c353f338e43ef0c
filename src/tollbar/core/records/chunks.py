"""Chunks of a trial: single ones, or the columns of all of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

Key = TypeVar("Key")
Number = TypeVar("Number", int, float)

Observations = Mapping[tuple[str, str], float]
"""Values that a chunk observed in addition to operations and CPU time, by (component, metric); "" is the whole."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A few milliseconds of one trial's work, and its cost."""

    round: int
    """Number of the round; chunks of one batch and round were measured milliseconds apart."""
    operations: int
    wall_ns: int
    cpu_ns: Mapping[str, int]
    """CPU nanoseconds by component: `RUNNER`, or each component of a server and `CLIENT`."""
    observed: Observations = field(default_factory=dict)
    probes_ns: tuple[float, ...] | None = None
    """Durations of the core's probe before and after; None if the core had no probe.

    For a long chunk, the value between the two is the slowest probe during the chunk (except one in twenty).
    """
    is_made_up: bool = False
    """True if it replaces a lost round, after a wait for a quiet moment.

    Such a chunk does not represent the machine as it was.
    """


@dataclass(frozen=True, eq=False)
class Chunks(Sequence[Chunk]):
    """Chunks of a trial as a run keeps them: one column of values for each quantity.

    A run has tens of thousands, and most callers need one or two columns. Single chunks are only made on request.
    """

    rounds: Sequence[int]
    operations: Sequence[int]
    wall_ns: Sequence[int]
    cpu_ns: Mapping[str, Sequence[int | None]]
    """CPU nanoseconds by component; None for a chunk without that component."""
    observed: Mapping[tuple[str, str], Sequence[float | None]]
    probes_ns: Sequence[Sequence[float | None]]
    """Probe durations before, within and after the chunks, one column each, as far as there are any."""
    made_up: Sequence[bool]

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Chunks:
        """Return the chunks as columns; columns are returned unchanged."""
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
        """Probe durations of each chunk, in the order of time; None if it had none."""
        if not self.probes_ns:
            return [None] * len(self)
        rows = zip(*self.probes_ns, strict=True)
        if any(None in column for column in self.probes_ns):
            return [tuple(ns for ns in row if ns is not None) or None for row in rows]
        return [*rows]

    @property
    def seen(self) -> Sequence[tuple[str, str]]:
        """(component, metric) of each observed quantity, in order of first appearance."""
        if not self.observed:
            return ()
        first = {
            key: next((place for place, value in enumerate(values) if value is not None), len(self))
            for key, values in self.observed.items()
        }
        return sorted((key for key, place in first.items() if place < len(self)), key=first.__getitem__)

    @property
    def components(self) -> Sequence[str]:
        """Components of the first chunk; all chunks of a trial have the same."""
        return [name for name, values in self.cpu_ns.items() if values and values[0] is not None]

    @property
    def observed_at_first(self) -> Sequence[tuple[str, str]]:
        """(component, metric) of each quantity that was observed in the first chunk."""
        return [key for key, values in self.observed.items() if values and values[0] is not None]

    def paid(self, components: Sequence[str]) -> Sequence[int]:
        """Return the CPU nanoseconds of these components together, for each chunk."""
        columns = [self.cpu_ns[name] for name in components if name in self.cpu_ns]
        if len(columns) == 1:
            # An array has no None.
            return columns[0] if isinstance(columns[0], array) else [ns or 0 for ns in columns[0]]
        return [sum(filter(None, each)) for each in zip(*columns, strict=True)] if columns else [0] * len(self)

    def _made(self) -> tuple[Chunk, ...]:
        # Not cached: single chunks take ten times the memory of the columns.
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
        probes = tuple(ns for column in self.probes_ns if (ns := column[place]) is not None)
        return Chunk(
            self.rounds[place],
            self.operations[place],
            self.wall_ns[place],
            {name: ns for name, values in self.cpu_ns.items() if (ns := values[place]) is not None},
            {key: value for key, values in self.observed.items() if (value := values[place]) is not None},
            probes or None,
            self.made_up[place],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._made() == tuple(other)


def _by_chunk(columns: Mapping[Key, Sequence[Number | None]], chunks: int) -> list[dict[Key, Number]]:
    """Return for each chunk its values in these columns."""
    if not columns:
        return [{} for _ in range(chunks)]
    rows = zip(*columns.values(), strict=True)
    return [{key: value for key, value in zip(columns, row, strict=True) if value is not None} for row in rows]
