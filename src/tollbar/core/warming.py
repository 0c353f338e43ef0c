"""Warming: the change of a ratio within trials, which differences between fresh processes cannot show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from tollbar.core.arrays import np
from tollbar.core.stats import CONFIDENCE, FEWEST_BLOCKS, Interval, Visit, Visits, student

# Any line fits two rounds.
_FEWEST_ROUNDS = 3


def trend(of: Sequence[Visit], over: Sequence[Visit], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the ratio in the last planned round of a trial over that in its first, in quiet moments.

    A line is fitted to the logarithms of each block's rounds; the interval is Student's over blocks. None if fewer than
    `FEWEST_BLOCKS` blocks have three quiet rounds.
    """
    by_block: dict[int, list[float]] = defaultdict(list)
    of_others = Visits.of(over).quiet_by_batch
    for visit in of:
        own_rounds, every_log = visit.quiet_by_round
        last = max(visit.rounds[visit.first].max(initial=0), 1)
        for other_rounds, other_logs in of_others.get((visit.block, visit.batch), ()):
            rounds, own_logs = own_rounds, every_log
            # Often both have the same quiet rounds.
            if not np.array_equal(own_rounds, other_rounds):
                one, other = _in_both(own_rounds, other_rounds)
                rounds, own_logs, other_logs = own_rounds[one], every_log[one], other_logs[other]
            if len(rounds) >= _FEWEST_ROUNDS:
                apart = rounds - rounds.mean()
                by_block[visit.block].append(float(last * (apart @ (own_logs - other_logs)) / (apart @ apart)))
    changes = [math.fsum(some) / len(some) for some in by_block.values()]
    number = len(changes)
    if number < FEWEST_BLOCKS:
        return None
    middle = math.fsum(changes) / number
    half = student(number - 1.0, confidence) * float(np.std(changes, ddof=1)) / math.sqrt(number)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return Interval(math.exp(middle), low, high, confidence, number, freedom=number - 1.0)


def _in_both(mine: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in either of the values that both have, which ascend: `intersect1d` sorts them all again."""
    at = np.searchsorted(theirs, mine)
    one = np.flatnonzero(at < len(theirs))
    one = one[theirs[at[one]] == mine[one]]
    return one, at[one]
