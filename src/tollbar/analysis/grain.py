"""Grain: how long a chunk or a slice lasts between its probes, and how much of a neighbour these miss.

Where quiet lasts a millisecond, most chunks of 5 ms between two quick probes met a neighbour in between, and few slices
of 0.5 ms did. A ratio of the one to the other has that neighbour on one side alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tollbar.analysis.probes import probes_of
from tollbar.core.arrays import grouped, np
from tollbar.core.records import Chunks, Outcome, Trial

# Fewer windows tell no share.
_ENOUGH = 20


# A chunk of long operations has few slices, and few probes within it: those with fewer than this share of the most that
# a chunk has tell nothing.
_FINE = 0.8


@dataclass(frozen=True, slots=True)
class Grain:
    """How much of a neighbour two quick probes miss, by the time between them."""

    lasts_ns: Sequence[float] = (0.0,)
    missed: Sequence[float] = (0.0,)
    """As a share of the cost of work that suffers as the probe does."""
    slice_ns: float = 0.0
    """Duration of a slice, in the middle; 0: the run has none."""

    def missed_in(self, lasts_ns: np.ndarray, operations: np.ndarray) -> float:
        """Return how much is missed in chunks of these durations, over all operations; 0 if the run has no slices.

        A chunk shorter than two slices has a part in proportion, and one longer than all chunks with slices as much as
        those.
        """
        if not len(lasts_ns):
            return 0.0
        return float(np.average(np.interp(lasts_ns, self.lasts_ns, self.missed), weights=operations))

    @property
    def missed_in_slice(self) -> float:
        """Return how much is missed in a slice."""
        return self.missed_in(np.array([self.slice_ns]), np.ones(1))


def grain_of(trials: Iterable[Trial], longest_quick_ns: float) -> Grain:
    """Learn from chunks with slices how much their first and last probes miss of what the probes in between tell.

    Only probes decide, so that this is no look at costs. The share of inner probes that are not quick is multiplied by
    how much longer these take in the middle.
    """
    block, chunk, wall_ns, before_ns, after_ns = _slices(trials).T
    if not len(chunk):
        return Grain()
    begins, ends = before_ns <= longest_quick_ns, after_ns <= longest_quick_ns
    if ends.all() or not ends.any():
        return Grain(slice_ns=float(np.median(wall_ns)))
    slower = float(np.median(after_ns[~ends]) / np.median(after_ns[ends])) - 1
    slow_by, time_by = (np.concatenate([[0.0], np.cumsum(one)]) for one in (~ends, wall_ns + after_ns))
    _, in_block = np.unique(block, return_inverse=True)
    anywhere, apart_ns = slower * float((~ends).mean()), float((wall_ns + after_ns).mean())
    lasts_ns, missed = [0.0], [0.0]
    for slices in range(2, int(np.unique(chunk, return_counts=True)[1].max()) + 1):
        first = np.arange(len(chunk) - slices + 1)
        last = first + slices - 1
        within = (chunk[first] == chunk[last]) & begins[first] & ends[last]
        first, last = first[within], last[within]
        if len(first) < _ENOUGH:
            # Quiet is so rare that two quick probes so far apart tell nothing of the time between them.
            lasts_ns.append(max(slices * apart_ns, lasts_ns[-1] + 1))
            missed.append(anywhere)
            continue
        lasts_ns.append(float((time_by[last + 1] - time_by[first] - after_ns[last]).mean()))
        slow = _at_least(slow_by[last] - slow_by[first], in_block[first])
        # A parabola through two quick ends: the sum of its inner points is so many times its mean.
        missed.append(slower * slow / (slices - 1 / slices))
    return Grain(lasts_ns, missed, float(np.median(wall_ns)))


def _at_least(values: np.ndarray, of_block: np.ndarray) -> float:
    """The mean of these values less its standard error over blocks, or 0 if that is more."""
    windows, sums = np.bincount(of_block), np.bincount(of_block, values)
    mean, blocks = float(sums.sum() / windows.sum()), int((windows > 0).sum())
    apart = float(((sums - mean * windows) ** 2).sum()) * blocks / max(blocks - 1, 1)
    return max(0.0, mean - math.sqrt(apart) / float(windows.sum()))


def _slices(trials: Iterable[Trial]) -> np.ndarray:
    """(slice, 5): its block, the number of its chunk, how long it lasts, and the probes before and after it."""
    tables, slices, number = [], [], 0
    for trial in trials:
        chunks = Chunks.of(trial.chunks if trial.outcome is Outcome.OK else ())
        _, place, counts = grouped(np.array(chunks.rounds, int))
        if counts.max(initial=0) > 1:
            probes = probes_of(chunks)
            ends_ns = [np.where(np.isnan(ns), math.inf, ns) for ns in (probes.first_ns, probes.last_ns)]
            blocks = np.full(len(chunks), trial.block)
            tables.append(np.column_stack([blocks, place + number, np.array(chunks.wall_ns, float), *ends_ns]))
            slices.append(counts[place])
            number += len(counts)
    if not tables:
        return np.zeros((0, 5))
    of_chunk = np.concatenate(slices)
    fine: np.ndarray = np.concatenate(tables)[of_chunk >= max(2, _FINE * of_chunk.max())]
    return fine
