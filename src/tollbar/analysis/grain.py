"""Grain: the time between the probes of a chunk or slice, and the share of a neighbour that they miss.

If quiet lasts a millisecond, most chunks of 5 ms between two quick probes met a neighbour in between, and few slices of
0.5 ms did. In a ratio of the two, that neighbour is on one side only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tollbar.analysis.probes import probes_of
from tollbar.core.arrays import grouped, median, np
from tollbar.core.records import Chunks, Outcome, Trial

# Fewer windows give no reliable share.
_ENOUGH = 20


# A chunk of long operations has few slices, and few probes within it: chunks with fewer slices than this share of the
# maximum are ignored.
_FINE = 0.8


@dataclass(frozen=True)
class Grain:
    """Share of a neighbour that two quick probes miss, by the time between them."""

    lasts_ns: Sequence[float] = (0.0,)
    missed: Sequence[float] = (0.0,)
    """Missed share of the cost of work that suffers as the probe does."""
    slice_ns: float = 0.0
    """Median duration of a slice; 0: the run has none."""

    def missed_in(self, lasts_ns: np.ndarray, operations: np.ndarray) -> float:
        """Return the share missed in chunks of these durations, over all operations; 0 if the run has no slices.

        For a chunk shorter than two slices the share is proportional; for one longer than all chunks with slices it is
        that of the longest.
        """
        if not len(lasts_ns):
            return 0.0
        return float(np.average(np.interp(lasts_ns, self.lasts_ns, self.missed), weights=operations))

    @cached_property
    def missed_in_slice(self) -> float:
        """Share missed in a slice."""
        return self.missed_in(np.array([self.slice_ns]), np.ones(1))


def grain_of(trials: Iterable[Trial], longest_quick_ns: float) -> Grain:
    """Estimate the share that chunks' first and last probes miss, from the probes between their slices.

    Uses probes only, so that it does not look at costs. The share of inner probes that are not quick is multiplied by
    their median slowdown.
    """
    block, chunk, wall_ns, before_ns, after_ns = _slices(trials).T
    if not len(chunk):
        return Grain()
    begins, ends = before_ns <= longest_quick_ns, after_ns <= longest_quick_ns
    if ends.all() or not ends.any():
        return Grain(slice_ns=float(median(wall_ns)))
    slower = float(median(after_ns[~ends]) / median(after_ns[ends])) - 1
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
            # Quiet is so rare that two quick probes this far apart give no information about the time between them.
            lasts_ns.append(max(slices * apart_ns, lasts_ns[-1] + 1))
            missed.append(anywhere)
            continue
        lasts_ns.append(float((time_by[last + 1] - time_by[first] - after_ns[last]).mean()))
        slow = _at_least(slow_by[last] - slow_by[first], in_block[first])
        # Assumes a parabola through two quick ends: the sum of its inner points is its mean × (slices - 1 / slices).
        missed.append(slower * slow / (slices - 1 / slices))
    return Grain(lasts_ns, missed, float(median(wall_ns)))


def _at_least(values: np.ndarray, of_block: np.ndarray) -> float:
    """Return the mean of these values minus its standard error over blocks, at least 0."""
    windows, sums = np.bincount(of_block), np.bincount(of_block, values)
    mean, blocks = float(sums.sum() / windows.sum()), int((windows > 0).sum())
    apart = float(((sums - mean * windows) ** 2).sum()) * blocks / max(blocks - 1, 1)
    return max(0.0, mean - math.sqrt(apart) / float(windows.sum()))


def _slices(trials: Iterable[Trial]) -> np.ndarray:
    """Return an array (slice, 5): block, chunk number, duration, probe before and probe after."""
    tables, slices, number = [], [], 0
    for trial in trials:
        chunks = Chunks.of(trial.chunks if trial.outcome is Outcome.OK else ())
        # Most trials have no slices.
        if len({*chunks.rounds}) < len(chunks):
            _, place, counts = grouped(np.array(chunks.rounds, int))
            probes = probes_of([chunks])
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
