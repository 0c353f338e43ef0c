"""Lattices: chunk times that are multiples of a tick, as a coarse clock or a sleeping scheduler makes them.

Their intervals are tight around 1.00, 2.00 and 4.00, and wrong: a flush that waits for the scheduler's next tick takes
4 ms for anything from 1 to 4, and a clock of 10 ms counts a chunk of 5 ms as 0 or 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tollbar.core.arrays import median, np
from tollbar.core.records import Chunks, Outcome, Trial
from tollbar.core.visits import column

# Ticks of the scheduler, at 1000, 250 and 100 a second.
_TICKS_NS = (1_000_000, 4_000_000, 10_000_000)
# A time this near to a multiple, as a share of the tick, counts as on it: 8 of 100 do by chance.
_NEAR = 0.04
# More than chance explains, and reached although nearly half of the chunks wait for no tick.
_MANY = 0.5
# A chunk lasts for its minimum, which may be a multiple itself: a lattice must use other multiples as well.
_ANOTHER = 0.1
# Share of a chunk's time that a chunk works if it waits for nothing.
_WORKS = 0.5
# A clock whose step is this share of a chunk moves a cost by more than a study distinguishes.
_COARSE = 0.005
# Fewer chunks than these are on a lattice by chance.
_FEWEST = 20
# A component that worked in one chunk alone has that chunk's time as its step; five hardly ever share one by chance.
_FEWEST_AT_WORK = 5


def lattice(trials: Sequence[Trial]) -> str | None:
    """Return why these trials' chunk times are multiples of a tick; None if they are not."""
    columns = [Chunks.of(trial.chunks) for trial in trials if trial.outcome is Outcome.OK]
    has_worked = column((one.operations for one in columns), int) > 0
    if np.count_nonzero(has_worked) < _FEWEST:
        return None

    def together(of: Callable[[Chunks], Sequence[int]]) -> np.ndarray:
        """Return this column of all chunks that performed an operation."""
        return column(map(of, columns), int)[has_worked]

    names = dict.fromkeys(name for trial in trials for name in trial.paid_by)
    whole_ns = np.zeros(np.count_nonzero(has_worked), int)
    for name in names:
        cpu_ns = together(partial(Chunks.paid, components=[name]))
        whole_ns += cpu_ns
        is_at_work = np.count_nonzero(cpu_ns) >= _FEWEST_AT_WORK
        step_ns = int(np.gcd.reduce(cpu_ns))
        if is_at_work and step_ns > _COARSE * np.mean(cpu_ns):
            return f"a CPU clock that moves in steps of {_ms(step_ns)}"
    wall_ns = together(lambda one: one.wall_ns)
    # Work that never waits can end with a tick only because another program used its core in between.
    return next(_waits(wall_ns), None) if median(whole_ns / wall_ns) < _WORKS else None


def _waits(wall_ns: np.ndarray) -> Iterator[str]:
    # The longest tick first: a multiple of 4 ms is a multiple of 1 ms as well.
    for tick_ns in sorted(_TICKS_NS, reverse=True):
        multiples = np.rint(wall_ns / tick_ns)
        on_it = (np.abs(wall_ns - multiples * tick_ns) <= _NEAR * tick_ns) & (multiples > 0)
        in_use = Counter(multiples[on_it].tolist())
        enough = [multiple for multiple, number in in_use.items() if number >= _ANOTHER * len(wall_ns)]
        if on_it.mean() > _MANY and len(enough) > 1:
            yield f"waits for a tick every {_ms(tick_ns)}"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:g} ms"
