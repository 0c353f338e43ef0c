"""Probe: how much of a chunk's cost it explains, its effect on the next chunk, and its time. Four minutes.

All kinds of work are up at once and take turns, so that each meets the same moments. A pair is two chunks of one
session: each has a probe, a short chunk that is not counted, then for one of the two another probe, the chunk that is
counted, and a probe. The probes at both ends decide whether it was quiet, and they are the same for both; the one
between is under test.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from types import TracebackType
from unittest.mock import patch

import numpy as np

from bench import work
from bench.figures import Figure, unmeasured
from tollbar import study
from tollbar.catalog.servers import NotStarted
from tollbar.core import machine
from tollbar.core.intervals import Interval, Moments
from tollbar.core.moments import Quickness, quickness_of
from tollbar.core.runner import Stopped
from tollbar.core.stats import ratio
from tollbar.core.visits import Visit
from tollbar.lab import measure
from tollbar.lab.measure import batch
from tollbar.lab.measure.probe import Probe
from tollbar.study import plan

KINDS = (work.SHA_2, work.SHA_3, work.RSA, work.GCM, work.EMBEDDED, work.NGINX, work.PLAIN, work.READ)
BLOCKS = 12
ROUNDS = 80
CHUNK_S = 0.005
FEWEST_CHUNKS = 3
# Long enough to load the work's own data into the caches again, and no part of the comparison.
BETWEEN_S = 0.001
EFFECT_GOAL = 0.001
SHARE_GOAL = 0.05
DOES_GOAL = f"at most {EFFECT_GOAL:.1%}, and known so well"
# Chunks of 4 and 5 ms, servers among them.
MEASURED = ("signatures", "digests", "tls", "sign-in")


@dataclass(frozen=True, slots=True)
class Seen:
    """Counted chunk."""

    block: int
    round: int
    had_probe: bool
    spent_ns: float
    operations: int
    before_ns: float
    """Probe right before it, or before the short chunk that came first."""
    ends_ns: tuple[float, float]
    """Probes that both chunks of a pair have: before the short one, and after."""


def figures(
    kinds: Sequence[str] = KINDS, blocks: int = BLOCKS, rounds: int = ROUNDS, measured: Sequence[str] = MEASURED
) -> Iterator[Figure]:
    """Yield for each kind of work the probe's explanation and effect; then its share of the time of real batches."""
    work.core()
    machine.keep_off(work.core())
    seen: dict[str, list[Seen]] = {kind: [] for kind in kinds}
    readings: list[float] = []
    for block in range(blocks):
        _block(block, rounds, seen, readings)
    quickness = quickness_of(readings)
    what = "probe: what it takes on a core that is quiet, and how often it was"
    took = f"{quickness.quickest_ns / 1e3:.1f} µs; {quickness.quick_share:.0%} of {len(readings):,}"
    yield Figure(what, "(for comparison)", took, None) if readings else unmeasured(what, "no chunk was counted")
    for kind, chunks in seen.items():
        yield _explained(kind, chunks, quickness)
    yield from _effects(seen, quickness)
    yield from _shares(measured)


def _effects(seen: Mapping[str, Sequence[Seen]], quickness: Quickness) -> Iterator[Figure]:
    """Yield a probe's effect on the next chunk of each kind, and on all kinds whose effect is known."""
    found = []
    for kind, chunks in seen.items():
        effect = _effect(chunks, quickness)
        what = f"{kind} after a probe, over after itself"
        if effect is None:
            yield unmeasured(_does(what), f"too few quiet moments in {len(chunks)} chunks", DOES_GOAL)
            continue
        found.append(effect)
        yield _done(what, effect.estimate - 1, effect.half_width)
    what = f"all {len(found)} kinds together"
    yield _done(what, *_together(found)) if found else unmeasured(_does(what), "none is known", DOES_GOAL)


def _block(block: int, rounds: int, seen: dict[str, list[Seen]], readings: list[float]) -> None:
    """Measure fresh processes of all kinds, and a probe."""
    source = random.Random(block)
    core = work.core()
    with ExitStack() as stack:
        up = {}
        for kind in seen:
            try:
                up[kind] = work.running(stack, kind, block)
            except (NotStarted, Stopped) as why:
                print(f"probe: {kind} is left out of block {block}: {why}")
        probe = stack.enter_context(Probe(core if core is not None else 0))
        for number in range(rounds):
            for kind in source.sample(list(up), len(up)):
                for had_probe in source.sample((True, False), 2):
                    one = _chunk(up[kind], probe, block, number, had_probe=had_probe)
                    if one is not None:
                        seen[kind].append(one)
                        readings += {*one.ends_ns, one.before_ns}


def _chunk(running: work.Running, probe: Probe, block: int, number: int, *, had_probe: bool) -> Seen | None:
    """Return a counted chunk, or None if its account was not closed or the probe has ended."""
    first_ns = probe.read()
    running.chunk(BETWEEN_S)
    before_ns = probe.read() if had_probe else first_ns
    chunk = running.chunk(CHUNK_S)
    last_ns = probe.read()
    if first_ns is None or before_ns is None or last_ns is None or not chunk.observed.is_exact:
        return None
    spent_ns = running.spent_ns(chunk)
    return Seen(block, number, had_probe, spent_ns, chunk.operations, before_ns, (first_ns, last_ns))


def _explained(kind: str, chunks: Sequence[Seen], quickness: Quickness) -> Figure:
    """Return R² and slope of ln cost on the mean of the logarithms of the probes right before and right after it."""
    beside = [one for one in chunks if one.had_probe]
    what = f"probe: ln cost of {kind} by the probes beside it"
    if len(beside) < FEWEST_CHUNKS:
        return unmeasured(what, f"{len(beside)} chunks")
    costs = np.log([one.spent_ns / one.operations for one in beside])
    probes = np.log([[one.before_ns, one.ends_ns[1]] for one in beside]).mean(axis=1)
    if not probes.std() or not costs.std():
        return unmeasured(what, f"{len(beside)} chunks, all alike")
    slope = float(np.polyfit(probes, costs, 1)[0])
    explained = float(np.corrcoef(probes, costs)[0, 1]) ** 2
    quiet = np.array([all(map(quickness.is_quick, (one.before_ns, one.ends_ns[1]))) for one in beside])
    scatter = f", scatters by {costs[quiet].std():.1%} in them" if quiet.sum() > 1 else ""
    return Figure(
        what,
        "(for comparison)",
        f"{explained:.0%} of the variance, slope {slope:.2f}; scatters by {costs.std():.1%}; "
        f"{quiet.mean():.0%} of {len(beside)} chunks quiet{scatter}",
        None,
    )


def _effect(chunks: Sequence[Seen], quickness: Quickness) -> Interval | None:
    """Return the cost after a probe over the cost after the work itself, by quiet chunks paired within rounds."""
    after, alone = (_visits([one for one in chunks if one.had_probe is had], quickness) for had in (True, False))
    return ratio(after, alone, Moments.QUIET)


def _visits(chunks: Sequence[Seen], quickness: Quickness) -> list[Visit]:
    visits = []
    for block in sorted({one.block for one in chunks}):
        own = [one for one in chunks if one.block == block]
        visits.append(
            Visit(
                block,
                0,
                rounds=np.array([one.round for one in own]),
                costs=np.array([one.spent_ns for one in own]),
                operations=np.array([one.operations for one in own]),
                quiet=np.array([all(map(quickness.is_quick, one.ends_ns)) for one in own]),
                first=np.ones(len(own), bool),
            )
        )
    return visits


def _together(effects: Sequence[Interval]) -> tuple[float, float]:
    """Return the mean effect on all kinds, weighted by their precision, and half of its interval."""
    weights = np.array([one.half_width**-2.0 for one in effects])
    if not weights.sum():
        return effects[0].estimate - 1, float("inf")
    mean = float((weights * [one.estimate - 1 for one in effects]).sum() / weights.sum())
    return mean, float(weights.sum() ** -0.5)


def _done(what: str, off: float, half: float) -> Figure:
    """Return the figure of an effect, which is missed if its precision is below the goal."""
    is_met = half <= EFFECT_GOAL and abs(off) <= EFFECT_GOAL + half
    return Figure(_does(what), DOES_GOAL, f"{off:+.2%} ± {half:.2%}", is_met)


def _does(what: str) -> str:
    return f"probe: what it does to the next chunk, {what}"


class _Timed(Probe):
    """Probe that records its share of the time between its start and its end."""

    taken: list[_Timed] = []  # noqa: RUF012 - one list for all that a batch makes, and none else sees them

    def __enter__(self) -> _Timed:
        super().__enter__()
        self.taken.append(self)
        self.began_s, self.asked_s, self.readings = time.monotonic(), 0.0, 0
        return self

    def read(self) -> float | None:
        self.readings = getattr(self, "readings", 0) + 1
        return super().read()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lasted_s = time.monotonic() - self.began_s
        super().__exit__(kind, error, trace)


def _shares(names: Sequence[str]) -> Iterator[Figure]:
    """Yield the probe's share of the time of a study's first batches, once all members are ready.

    It includes waits for a quiet moment, with a probe every half millisecond.
    """
    for name in names:
        path = files("tollbar.study") / "studies" / "quick" / f"{name}.toml"
        planned = plan.make(study.load([str(path)]), seed=1)
        batches = measure.batches_left(planned, counts={name: 1}, done=(), excluded=())
        _Timed.taken.clear()
        with measure.sandbox_for(planned) as sandbox, patch.object(batch, "Probe", _Timed):
            taken = measure.measured(planned, batches, core=work.core(), sandbox=sandbox)
            chunks = sum(len(trial.chunks) for trials, _ in taken for trial in trials)
        lasted_s = sum(one.lasted_s for one in _Timed.taken)
        what = f"probe: its share of the measuring time of quick's `{name}`"
        if not lasted_s:
            yield Figure(what, f"at most {SHARE_GOAL:.0%}", "no batch had one", False)
            continue
        asked_s = sum(one.asked_s for one in _Timed.taken)
        readings = sum(one.readings for one in _Timed.taken)
        share = asked_s / lasted_s
        yield Figure(
            what,
            f"at most {SHARE_GOAL:.0%}",
            f"{share:.1%} of {lasted_s:.1f} s: {readings:,} readings of {asked_s / readings * 1e6:.0f} µs "
            f"for {chunks:,} chunks",
            share <= SHARE_GOAL,
        )
