"""A machine made by hand, whose truth is known: what a study would see of cells on a core that others disturb.

Three things happen to a cost there, as measured on shared machines. A process has its luck (memory layout) and keeps
it for life. The machine has states that last from milliseconds to half a minute, and they do not multiply all work
alike: when handshakes take 1.5 times as long, plain requests take 1.2 times as long. And some operations (key
generation, signing by rejection) vary by nature from one to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tollbar.stats import Visit

# How finely the machine's state is followed; a state of 2 ms is seen by several steps.
_STEP_S = 0.0005
# A heat holds the baseline, in one of the block's heats its twin, and so many cells.
_CELLS_A_HEAT = 4


@dataclass(frozen=True, slots=True)
class Work:
    """What a cell does: its true cost, and what it suffers."""

    ns: float
    """Of one operation, on a core that is left alone."""
    suffers: float = 1.0
    """With 1, the machine's state multiplies its cost as it says; with 0.5, by the square root of that."""
    varies: float = 0.0
    """Standard deviation of one operation by nature, over its mean."""


HASH = Work(20_000, suffers=0.7)
HANDSHAKE = Work(260_000)
PLAIN = Work(16_000, suffers=math.log(1.2) / math.log(1.5))
KEY_GENERATION = Work(40_000_000, varies=0.6)
SIGNING_BY_REJECTION = Work(150_000, varies=0.8)


@dataclass(frozen=True, slots=True)
class State:
    """One of the machine's disturbances, that comes and goes."""

    lasts_s: float
    """On average."""
    share: float
    """Of all time in which it is there."""
    log: float
    """Logarithm of what it multiplies costs by."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine does to the costs measured on it."""

    states: tuple[State, ...]
    luck: float = 0.005
    """Standard deviation over processes of the logarithm of a process's own cost, in all its chunks alike."""
    jitter: float = 0.003
    """The same over chunks, of what comes and goes within a chunk."""


# Single chunks scatter by 0.2 on it, and the correlation of two falls from 0.7 to 0.3 between a tenth of a second and
# several seconds: what a shared machine of two cores was measured to do. A quarter of the time nothing disturbs.
SHARED = Machine(tuple(State(lasts_s, 0.25, 0.2) for lasts_s in (0.002, 0.02, 0.2, 2.0, 20.0)))
QUIET = Machine(tuple(State(lasts_s, 0.05, 0.2) for lasts_s in (0.002, 0.02, 0.2, 2.0, 20.0)))
# No state of it comes and goes between two chunks of a round.
SLOW = Machine(tuple(State(lasts_s, 0.25, 0.2) for lasts_s in (0.5, 2.0, 20.0)))
# Left alone one time in thirteen.
BUSY = Machine(tuple(State(lasts_s, 0.4, 0.2) for lasts_s in (0.002, 0.02, 0.2, 2.0, 20.0)))


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a study's trials would give: of each cell its visits, the first cell being the baseline."""

    cells: tuple[tuple[Visit, ...], ...]
    twins: tuple[Visit, ...]
    """The baseline's, beside itself in one heat of each block."""


def simulate(
    works: Sequence[Work],
    source: np.random.Generator,
    *,
    blocks: int = 12,
    rounds: int = 10,
    chunk_s: float = 0.005,
    between_s: float = 1.0,
    machine: Machine = SHARED,
) -> Simulated:
    """Blocks of heats of rounds; `works[0]` is the baseline, in every heat. `between_s` is from a heat to the next."""
    weather = _Weather(machine, source)
    cells: list[list[Visit]] = [[] for _ in works]
    twins: list[Visit] = []
    for block in range(blocks):
        for heat, members in enumerate(_heats(len(works), source)):
            # Of the baseline's two, the second is its twin.
            who = [0, *([0] if heat == 0 else []), *members]
            logs = weather.heat([works[cell] for cell in who], rounds, chunk_s)
            for place, cell in enumerate(who):
                is_twin = heat == 0 and place == 1
                (twins if is_twin else cells[cell]).append(
                    Visit(block, heat, np.arange(rounds), logs[place], varies=works[cell].varies > 0)
                )
            weather.wait(between_s)
    return Simulated(tuple(tuple(visits) for visits in cells), tuple(twins))


def _heats(cells: int, source: np.random.Generator) -> Iterator[list[int]]:
    order = [int(cell) for cell in 1 + source.permutation(cells - 1)]
    number = max(1, math.ceil(len(order) / _CELLS_A_HEAT))
    for heat in range(number):
        yield order[heat::number]


@dataclass(slots=True)
class _Weather:
    """The machine's states as time goes by."""

    machine: Machine
    source: np.random.Generator
    now: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.now = [bool(self.source.random() < state.share) for state in self.machine.states]

    def wait(self, seconds: float) -> None:
        """Time that is measured by none of the trials."""
        for place, state in enumerate(self.machine.states):
            # A process with two states forgets at the sum of its two rates.
            kept = math.exp(-seconds / (state.lasts_s * (1 - state.share)))
            if self.source.random() >= kept:
                self.now[place] = bool(self.source.random() < state.share)

    def heat(self, works: Sequence[Work], rounds: int, chunk_s: float) -> list[np.ndarray]:
        """The logarithms of the cost per operation of each chunk, in the order of rounds, for each of these."""
        operations = [max(1, round(chunk_s * 1e9 / work.ns)) for work in works]
        steps = [max(1, round(n * w.ns * 1e-9 / _STEP_S)) for n, w in zip(operations, works, strict=True)]
        order = np.concatenate([self.source.permutation(len(works)) for _ in range(rounds)])
        ends = np.cumsum(np.array(steps)[order])
        total = int(ends[-1])
        state = self._states(total)
        found: list[np.ndarray] = []
        for place, work in enumerate(works):
            until = ends[order == place]
            paid = np.concatenate([[0.0], np.cumsum(np.exp(work.suffers * state))])
            slower = (paid[until] - paid[until - steps[place]]) / steps[place]
            nature = np.ones(rounds)
            if work.varies:
                shape = operations[place] / work.varies**2
                nature = self.source.gamma(shape, 1 / shape, rounds)
            luck = self.source.normal(0.0, self.machine.luck)
            jitter = self.source.normal(0.0, self.machine.jitter, rounds)
            found.append(math.log(work.ns) + np.log(slower * nature) + luck + jitter)
        return found

    def _states(self, steps: int) -> np.ndarray:
        """The logarithm of what costs are multiplied by, at each step from now on."""
        times = np.arange(steps) * _STEP_S
        log = np.zeros(steps)
        for place, state in enumerate(self.machine.states):
            is_on = self._one(state, self.now[place], times)
            self.now[place] = bool(is_on[-1])
            log += state.log * is_on
        return log

    def _one(self, state: State, starts: bool, times: np.ndarray) -> np.ndarray:
        lasts = (state.lasts_s, state.lasts_s * (1 - state.share) / state.share)
        means = lasts if starts else lasts[::-1]
        pairs = 4 + int(2 * times[-1] / sum(lasts))
        while True:
            ends = np.cumsum(self.source.exponential(np.tile(means, pairs)))
            if ends[-1] > times[-1]:
                changes = np.searchsorted(ends, times, side="right")
                return (changes % 2 == 0) == starts
            pairs *= 2
