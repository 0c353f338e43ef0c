"""Kinds of virtual machines: the work of cells, its disturbances, and the speed at each time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

# A path that began this long ago has forgotten its start.
_BEFORE_S = 60.0


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a cell: its cost on a quiet core, and its sensitivity to disturbance."""

    ns: float
    """Cost of one operation, without occasional extra work."""
    suffers: float = 1.0
    """Exponent of the machine's disturbance: 1 multiplies the cost by it, 0.5 by its square root."""
    varies: float = 0.0
    """Standard deviation of one operation over its mean, by a gamma distribution."""
    tail: float = 0.0
    """Standard deviation of the logarithm of one operation, by a lognormal distribution."""
    lump_every: int = 0
    """Operations after which something is collected on behalf of all of them."""
    lump_ns: float = 0.0
    grows: float = 0.0
    """Share of the first operation's cost by which each operation exceeds the one before it."""
    counted: int = 0
    """Number of operations of each chunk; 0: as many as its time allows."""
    fails: float = 0.0
    """Share of its trials that fail."""
    rarely: tuple[float, float] = (0.0, 0.0)
    """Share of its processes that cost more for life, and the excess as a share."""
    slices: bool = True
    """True if its runner can slice, which a platform's cannot."""

    @property
    def mean_ns(self) -> float:
        """Return the cost of an operation, with its part of the occasional extra work."""
        return self.ns + (self.lump_ns / self.lump_every if self.lump_every else 0.0)

    def times(self, ratio: float) -> Work:
        """Return the same work at a multiple of the cost."""
        return replace(self, ns=self.ns * ratio, lump_ns=self.lump_ns * ratio)


Dwell = Callable[[np.random.Generator, int], np.ndarray]
"""Source of durations in seconds."""


def pareto(least_s: float, alpha: float) -> Dwell:
    """Return durations with a heavy tail, cut off at half a minute."""
    return lambda source, size: np.minimum(least_s * (1.0 - source.random(size)) ** (-1 / alpha), 30.0)


def gamma(mean_s: float, shape: float = 2.0) -> Dwell:
    return lambda source, size: source.gamma(shape, mean_s / shape, size)


def lognormal(median_s: float, sigma: float = 1.5) -> Dwell:
    return lambda source, size: np.minimum(median_s * np.exp(source.normal(0.0, sigma, size)), 30.0)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Disturbance with several states, each of which changes to any of the others."""

    states: tuple[tuple[float, Dwell], ...]
    """Logarithm of the factor on costs and its duration, for each state."""
    hits_all_alike: bool = False
    """True for the clock's frequency, which slows all work by the same factor, unlike a neighbour."""

    def path(self, source: np.random.Generator, until_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the end and the level of each state, from a while before time 0 on."""
        size = 64
        while True:
            number = len(self.states)
            steps = 1 + source.integers(number - 1, size=size) if number > 2 else np.ones(size, int)
            at = np.cumsum(steps) % number
            drawn = np.array([dwell(source, size) for _, dwell in self.states])
            ends = np.cumsum(drawn[at, np.arange(size)]) - _BEFORE_S
            if ends[-1] > until_s:
                return ends, np.array([level for level, _ in self.states])[at]
            size *= 4


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of machine: its effect on the costs that are measured on it."""

    disturbances: tuple[Disturbance, ...]
    best_probe_ns: float | None = None
    """Best probe of earlier runs."""
    luck: float = 0.01
    """Largest share by which a process costs more or less than the mean of its kind, for life."""
    jitter: float = 0.004
    """Disturbance within a chunk, on average."""
    probe_suffers: float = 0.9
    chain_suffers: float = 0.1
    quotient_noise: float = 0.0
    """Standard deviation of a machine's own quotient of probe and chain from the listed one, in logarithms."""
    is_listed: bool = True
    """True if the shipped table has its processor."""
    preempted: float = 0.0
    """Share of chunks in which another program has the core for a moment, so that they return without slices."""
    reading_noise: tuple[float, float] = (0.01, 0.07)
    """Range of a reading's excess over the quickest, in logarithms."""

    @cache  # noqa: B019  The kinds of the tests live as long as the tests.
    def mean_speed(self, suffers: float) -> float:
        """Return the work done here over a quiet core's work, over a long time without selection.

        A chunk that is ended by time has operations in proportion to the core's speed, so Σ cost / Σ operations is the
        cost on a quiet core divided by this.
        """
        path = Path.drawn(self, np.random.default_rng(77), 20_000.0)
        begins, ends = path.at(suffers)[:2]
        return (ends[-1] - begins) / 20_000.0


@dataclass(slots=True)
class Path:
    """Speed of a machine over time, constant between two ends."""

    ends_s: np.ndarray
    levels: np.ndarray
    alike: np.ndarray
    _done: dict[float, tuple[float, list[float]]] = field(default_factory=dict)
    _ends: list[float] = field(default_factory=list)

    @classmethod
    def drawn(cls, kind: Kind, source: np.random.Generator, until_s: float) -> Path:
        paths = [each.path(source, until_s) for each in kind.disturbances]
        ends_s = np.unique(np.concatenate([*(ends[(ends > 0) & (ends < until_s)] for ends, _ in paths), [until_s]]))
        levels, alike = np.zeros(len(ends_s)), np.zeros(len(ends_s))
        for each, (ends, level) in zip(kind.disturbances, paths, strict=True):
            # The state that ends at or after this end.
            (alike if each.hits_all_alike else levels)[:] += level[np.searchsorted(ends, ends_s)]
        return cls(ends_s, levels, alike)

    def at(self, suffers: float) -> tuple[float, list[float]]:
        """Return the work done by time 0, which is 0, and by each end, in seconds on a quiet core."""
        if suffers not in self._done:
            lasts = np.diff(self.ends_s, prepend=0.0)
            self._done[suffers] = 0.0, np.cumsum(lasts * np.exp(-suffers * self.levels - self.alike)).tolist()
        return self._done[suffers]

    @property
    def ends(self) -> list[float]:
        if not self._ends:
            self._ends = self.ends_s.tolist()
        return self._ends

    def done_by(self, time_s: float, suffers: float) -> float:
        """Return the work that is done by this time."""
        return _interpolated(time_s, self.ends, self.at(suffers)[1])

    def time_of(self, done_s: float, suffers: float) -> float:
        """Return the time by which this work is done."""
        return _interpolated(done_s, self.at(suffers)[1], self.ends)


def _interpolated(x: float, xs: list[float], ys: list[float]) -> float:
    place = bisect_right(xs, x)
    before = (xs[place - 1], ys[place - 1]) if place else (0.0, 0.0)
    return before[1] + (x - before[0]) * (ys[place] - before[1]) / (xs[place] - before[0])
