"""Warming: how a ratio changes within trials, which differences between fresh processes cannot show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from tollbar.arrays import np
from tollbar.stats import CONFIDENCE, FEWEST_BLOCKS, Interval, Visit, partners, student


def trend(of: Sequence[Visit], over: Sequence[Visit], *, confidence: float = CONFIDENCE) -> Interval | None:
    """How many times as large the ratio is in the last planned round of a trial as in its first, in quiet moments.

    A line through the logarithms of each block's rounds; the interval is Student's over blocks. None where fewer than
    `FEWEST_BLOCKS` blocks have three quiet rounds.
    """
    by_block: dict[int, list[float]] = defaultdict(list)
    for visit, partner in partners(of, over):
        rounds, mine, theirs = np.intersect1d(
            visit.rounds[visit.quiet], partner.rounds[partner.quiet], return_indices=True
        )
        last = max(visit.rounds[visit.first].max(initial=0), 1)
        if len(rounds) >= 3:
            logs = [
                np.log(one.costs[one.quiet][at] / one.operations[one.quiet][at])
                for one, at in ((visit, mine), (partner, theirs))
            ]
            apart = rounds - rounds.mean()
            by_block[visit.block].append(float(last * (apart @ (logs[0] - logs[1])) / (apart @ apart)))
    changes = [math.fsum(some) / len(some) for some in by_block.values()]
    number = len(changes)
    if number < FEWEST_BLOCKS:
        return None
    middle = math.fsum(changes) / number
    half = student(number - 1.0, confidence) * float(np.std(changes, ddof=1)) / math.sqrt(number)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return Interval(math.exp(middle), low, high, confidence, number, freedom=number - 1.0)
