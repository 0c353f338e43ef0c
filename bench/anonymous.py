"""Anonymous: an anonymous request of the family costs as much as on a bare server. Half a minute.

Every toll of signing in is relative to it, so extra work of the family around it would be missing from every toll.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median, quantiles

from bench.figures import Figure, unmeasured
from bench.work import ANONYMOUS, BARE, Running, running
from tollbar.catalog.servers import NotStarted
from tollbar.core.runner import Stopped

GOAL = 0.01
# Each with servers of its own: a process's place in memory is worth some tenths of a percent.
BLOCKS = 8
ROUNDS, CHUNK_S = 100, 0.005
# Other programs can only raise costs on a shared machine.
PARTS = 5


def figures() -> Iterator[Figure]:
    """Yield the ratio of the two, measured in turn, over all blocks."""
    what, goal = "anonymous: server CPU a request of 4 KiB, the embedded server's over a bare one", f"within {GOAL:.0%}"
    try:
        found = [_block(seed) for seed in range(BLOCKS)]
    except (NotStarted, Stopped) as error:
        yield unmeasured(what, error, goal)
        return
    ratio = median(one / other for one, other in found)
    low, _, high = quantiles([one / other for one, other in found], n=4)
    one_us, other_us = (median(costs) / 1e3 for costs in zip(*found, strict=True))
    here = f"{ratio - 1:+.2%}, the middle blocks {low - 1:+.2%} to {high - 1:+.2%} ({one_us:.2f} / {other_us:.2f} µs)"
    yield Figure(what, goal, here, abs(ratio - 1) <= GOAL)


def _block(seed: int) -> tuple[float, float]:
    """Return the quiet cost in nanoseconds of an anonymous request, and of a bare one.

    Raises NotStarted and Stopped.
    """
    with ExitStack() as stack:
        both = [running(stack, name, seed) for name in (ANONYMOUS, BARE)]
        costs: tuple[list[float], list[float]] = ([], [])
        for turn in range(ROUNDS):
            # Neither is always the first.
            for at in (0, 1) if turn % 2 else (1, 0):
                costs[at].append(_cost_ns(both[at]))
        for one in both:
            one.session.finish()
    anonymous_ns, bare_ns = (quantiles(found, n=PARTS)[0] for found in costs)
    return anonymous_ns, bare_ns


def _cost_ns(one: Running) -> float:
    chunk = one.chunk(CHUNK_S)
    return one.spent_ns(chunk) / chunk.operations
