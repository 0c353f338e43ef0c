"""Kinds of virtual machines: the work that cells do on them, what disturbs it, and how fast work goes at each time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

# A path that began so long ago has forgotten how.
_BEFORE_S = 60.0


@dataclass(frozen=True, slots=True)
class Work:
    """What a cell does: its cost on a quiet core, and what it suffers on one that is not."""

    ns: float
    """Of one operation, without what comes on top now and then."""
    suffers: float = 1.0
    """With 1, the machine's state multiplies its cost as it says; with 0.5, by the square root of that."""
    varies: float = 0.0
    """Standard deviation of one operation by nature, over its mean: by a gamma distribution."""
    tail: float = 0.0
    """The same by a lognormal distribution: standard deviation of the logarithm of one operation."""
    lump_every: int = 0
    """After so many operations something is collected on behalf of all of them."""
    lump_ns: float = 0.0
    grows: float = 0.0
    """Each operation costs this share of the first more than the one before it."""
    counted: int = 0
    """A chunk has just so many operations; 0: as many as its time takes."""
    fails: float = 0.0
    """The share of its trials that fail."""
    rarely: tuple[float, float] = (0.0, 0.0)
    """The share of its processes that cost more for life, and how much more, as a share."""
    slices: bool = True
    """Whether its runner can slice, which a platform's cannot."""

    @property
    def mean_ns(self) -> float:
        """What an operation costs with all that is done on its behalf."""
        return self.ns + (self.lump_ns / self.lump_every if self.lump_every else 0.0)

    def times(self, ratio: float) -> Work:
        """The same work at so many times the cost."""
        return replace(self, ns=self.ns * ratio, lump_ns=self.lump_ns * ratio)


Dwell = Callable[[np.random.Generator, int], np.ndarray]
"""Draws durations in seconds."""


def pareto(least_s: float, alpha: float) -> Dwell:
    """With a heavy tail, of which all beyond half a minute is cut off."""
    return lambda source, size: np.minimum(least_s * (1.0 - source.random(size)) ** (-1 / alpha), 30.0)


def gamma(mean_s: float, shape: float = 2.0) -> Dwell:
    return lambda source, size: source.gamma(shape, mean_s / shape, size)


def lognormal(median_s: float, sigma: float = 1.5) -> Dwell:
    return lambda source, size: np.minimum(median_s * np.exp(source.normal(0.0, sigma, size)), 30.0)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Something that is always in one of several states, and goes from each to any of the others."""

    states: tuple[tuple[float, Dwell], ...]
    """The logarithm of what it multiplies costs by, and how long it lasts."""
    hits_all_alike: bool = False
    """It is the clock's frequency, and no neighbour from which some work suffers more than other."""

    def path(self, source: np.random.Generator, until_s: float) -> tuple[np.ndarray, np.ndarray]:
        """When each of its states ends, and which level that has; from a while ago on."""
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
    """A kind of machine: what it does to the costs that are measured on it."""

    disturbances: tuple[Disturbance, ...]
    best_probe_ns: float | None = None
    """What earlier runs know of its probe."""
    luck: float = 0.01
    """A process costs up to so much more or less than the mean of its kind, as a share, for life."""
    jitter: float = 0.004
    """What comes and goes within a chunk, on average."""
    probe_suffers: float = 0.9
    chain_suffers: float = 0.1
    quotient_noise: float = 0.0
    """Standard deviation of a machine's own quotient of probe and chain from the listed one, in logarithms."""
    is_listed: bool = True
    """Whether the shipped table has its processor."""
    preempted: float = 0.0
    """The share of chunks in which another program has the core for a moment, so that they come back without slices."""
    reading_noise: tuple[float, float] = (0.01, 0.07)
    """What a reading lies above the quickest by itself, in logarithms: anything between these."""

    @cache  # noqa: B019  The kinds of the tests live as long as the tests.
    def mean_speed(self, suffers: float) -> float:
        """How much of the work that a quiet core does is done here, over a long time that nothing selects.

        A chunk that is ended by time gives as many operations as the core has speed, so that Σ cost / Σ operations is
        the cost on a quiet core over this.
        """
        path = Path.drawn(self, np.random.default_rng(77), 20_000.0)
        begins, ends = path.at(suffers)[:2]
        return (ends[-1] - begins) / 20_000.0


@dataclass(slots=True)
class Path:
    """How a machine's speed changes with time: between two ends it stays as it is."""

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
        """The work done by time 0, which is none, and by each end, in seconds on a quiet core."""
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
        """The work that is done by this time."""
        return _interpolated(time_s, self.ends, self.at(suffers)[1])

    def time_of(self, done_s: float, suffers: float) -> float:
        """When so much work is done."""
        return _interpolated(done_s, self.at(suffers)[1], self.ends)


def _interpolated(x: float, xs: list[float], ys: list[float]) -> float:
    place = bisect_right(xs, x)
    before = (xs[place - 1], ys[place - 1]) if place else (0.0, 0.0)
    return before[1] + (x - before[0]) * (ys[place] - before[1]) / (xs[place] - before[0])
