"""Warming: the change of a ratio within trials, which differences between fresh processes cannot show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from tollbar.core.arrays import grouped, np
from tollbar.core.stats import CONFIDENCE, FEWEST_BLOCKS, Interval, Visit, partners, student

# Any line fits two rounds.
_FEWEST_ROUNDS = 3


def trend(of: Sequence[Visit], over: Sequence[Visit], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the ratio in the last planned round of a trial over that in its first, in quiet moments.

    A line is fitted to the logarithms of each block's rounds; the interval is Student's over blocks. None if fewer than
    `FEWEST_BLOCKS` blocks have three quiet rounds.
    """
    by_block: dict[int, list[float]] = defaultdict(list)
    for visit, partner in partners(of, over):
        (mine, own_costs), (theirs, other_costs) = _by_round(visit), _by_round(partner)
        rounds = mine
        # Nearly always both have the same rounds, and intersecting them takes most of the time.
        if not np.array_equal(mine, theirs):
            rounds, one, other = np.intersect1d(mine, theirs, True, return_indices=True)
            own_costs, other_costs = own_costs[one], other_costs[other]
        last = max(visit.rounds[visit.first].max(initial=0), 1)
        if len(rounds) >= _FEWEST_ROUNDS:
            logs = np.log(own_costs) - np.log(other_costs)
            apart = rounds - rounds.mean()
            by_block[visit.block].append(float(last * (apart @ logs) / (apart @ apart)))
    changes = [math.fsum(some) / len(some) for some in by_block.values()]
    number = len(changes)
    if number < FEWEST_BLOCKS:
        return None
    middle = math.fsum(changes) / number
    half = student(number - 1.0, confidence) * float(np.std(changes, ddof=1)) / math.sqrt(number)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return Interval(math.exp(middle), low, high, confidence, number, freedom=number - 1.0)


def _by_round(visit: Visit) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounds with a quiet chunk, and the cost of an operation in each."""
    counted = visit.quiet & (visit.costs > 0)
    rounds, at, _ = grouped(visit.rounds[counted])
    spent, operations = (np.bincount(at, some[counted], len(rounds)) for some in (visit.costs, visit.operations))
    return rounds, spent / operations
