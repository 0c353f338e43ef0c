"""Warming: the change of a ratio within trials, which differences between fresh processes cannot show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tollbar.core.arrays import np
from tollbar.core.intervals import CONFIDENCE, FEWEST_BLOCKS, Interval, exp, student
from tollbar.core.visits import Frame, Visit, Visits, numbered

# Any line fits two rounds.
_FEWEST_ROUNDS = 3


def trend(of: Iterable[Visit], over: Iterable[Visit], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the ratio in the last planned round of a trial over that in its first, in quiet moments.

    A line is fitted to the logarithms of each block's rounds; the interval is Student's over blocks. None if fewer than
    `FEWEST_BLOCKS` blocks have three quiet rounds.
    """
    by_block: dict[int, list[float]] = defaultdict(list)
    own, others = Visits.of(of), Visits.of(over)
    mine, theirs = own.frame.partners(others.frame)
    together, logs = _ratios(own, mine, others, theirs)
    pair_of, pairs = together.visit_of, len(mine)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = together.rounds - (np.bincount(pair_of, together.rounds, pairs) / together.lengths)[pair_of]
        slopes = np.bincount(pair_of, apart * logs, pairs) / np.bincount(pair_of, apart**2, pairs)
    changes_of = (slopes * own.last_rounds[mine]).tolist()
    for (block, _), change, rounds in zip(together.places, changes_of, together.lengths.tolist(), strict=True):
        if rounds >= _FEWEST_ROUNDS:
            by_block[block].append(change)
    changes = [math.fsum(some) / len(some) for some in by_block.values()]
    number = len(changes)
    if number < FEWEST_BLOCKS:
        return None
    middle = math.fsum(changes) / number
    half = student(number - 1.0, confidence) * float(np.std(changes, ddof=1)) / math.sqrt(number)
    low, high = exp(middle - half), exp(middle + half)
    return Interval(exp(middle), low, high, confidence, number, freedom=number - 1.0)


def _ratios(own: Visits, mine: Sequence[int], others: Visits, theirs: Sequence[int]) -> tuple[Frame, np.ndarray]:
    """Return the rounds that are quiet in both visits of each pair, and the logarithm of the ratio in each."""
    (frame, logs), (other_frame, other_logs) = own.quiet_rounds, others.quiet_rounds
    (one, my_places), (other, their_places) = frame.taken(mine), other_frame.taken(theirs)
    my_rounds, their_rounds = numbered(one, other)
    # Both ascend: `intersect1d` would sort them all again.
    at = np.searchsorted(their_rounds, my_rounds)
    both = np.flatnonzero(at < len(their_rounds))
    both = both[their_rounds[at[both]] == my_rounds[both]]
    together = Frame(one.places, np.bincount(one.visit_of[both], minlength=len(mine)), one.rounds[both])
    return together, logs[my_places][both] - other_logs[their_places][at[both]]
