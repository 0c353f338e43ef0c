"""Moments: what counts as quiet, while it is measured and when it is judged. Nothing else decides it.

A probe is a fixed piece of work that takes some tens of microseconds and is bound by the core's throughput, so that a
neighbour on the other hyperthread makes it dearer at once. It is asked before and after every chunk. A chunk between
two quick probes was quiet, whatever it cost itself.

A neighbour that never leaves slows every probe of a run. Earlier runs on the processor show that. Without them a chain
of dependent steps does: it is bound by latency, so that a neighbour hardly slows it. The quotient of the two belongs to
the processor's model, whatever the frequency of its clock.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from tollbar.core.arrays import grouped, np
from tollbar.core.files import cache_folder, write_atomically

PROBE: Mapping[str, object] = {
    "mode": "measure",
    "family": "spin",
    "op": "probe",
    "choice": "probe",
    "provider": {"kind": "spin"},
    "setting": {},
    "inputs": {},
    "seed": 0,
}
"""The task of the runner contract that the probe's session has."""
CHAIN: Mapping[str, object] = {**PROBE, "op": "spin", "choice": "chain", "setting": {"iterations": 20_000}}
"""The task of the chain's session: 20,000 steps, each of which needs the result of the one before."""

# A quick probe takes at most so much longer than the quickest, in logarithms. A core that is quiet gives 0.01 to
# 0.08, one with a busy neighbour 0.3 to 0.5, and hardly anything lies between: from 0.08 to 0.2 all do alike, and a
# step of the clock's frequency, which makes all work dearer alike, is a few hundredths.
QUIET = 0.15
# Beyond this, a run's quickest probe was beside a neighbour: what the other cores do lowers the frequency by less.
_NEVER_ALONE = 0.25
# The quickest probe of a run, as a quantile, and its place in their order at least: not the minimum, which one lucky
# reading makes. Where quiet is rare, a higher quantile is that of a busy neighbour: at 2 % two of nine runs on a noisy
# host were called quiet, with ratios a fifth too high.
_QUICKEST = 0.002
_LEAST_PLACE = 2
# The frequency is in probe and chain, so that only the scatter of quick probes, and of one machine of a model against
# another, is left. On a host with neighbours quiet probes took 1.00 to 1.06 times what the chain tells, all others 1.10
# and more, with hardly one between; a chain next to a neighbour takes 1 to 4 % longer itself.
_BY_CHAIN = 0.06
# So many of a run's probes must be quick: fewer are the tail of a disturbed machine's one kind of moments.
_FEWEST_QUICK = 0.05
# Fewer readings have no such quantile.
_ENOUGH = 50
# No processor does its 12,000 steps of 24 operations in less: a file that says so is damaged.
_LEAST_NS = 1_000.0
# What a machine once gave says little after its firmware, its host or its power supply may have changed.
_KEPT_S = 30 * 86400.0
# A chunk that has no slices lasts as long as two of its cell's slices at least: an operation that fills more than half
# of a chunk is no slice. A slice itself lasts 1.35 to 1.6 times as long next to a neighbour; that one is not quiet.
_LONGEST_SLICE = 1.5


class Known(StrEnum):
    """Evidence that a run's quickest probes were those of a quiet core."""

    EARLIER_RUNS = "earlier runs"
    CHAIN = "chain"
    """The chain, and the shipped quotient of this model."""
    NOTHING = "nothing"
    """No evidence: a steady neighbour cannot be excluded."""


@dataclass(frozen=True, slots=True)
class Quickness:
    """What a run's probes say of quiet moments."""

    quickest_ns: float = math.inf
    """What a probe takes on a core that is quiet, as far as the run shows; infinite where there was no probe."""
    best_ns: float | None = None
    """What one took on this processor and kernel in earlier runs; None where that is not known."""
    by_chain_ns: float | None = None
    """Duration of a quiet core's probe by this run's chain; None where it was not read or the model is not listed."""
    is_first_run: bool = False
    """Whether earlier runs were looked for and there are none."""
    quick_share: float = 0.0
    """Of all the run's probes."""

    @property
    def is_known(self) -> bool:
        """Whether there was a probe."""
        return math.isfinite(self.quickest_ns)

    @property
    def known_by(self) -> Known | None:
        """Evidence for what a quiet core's probe takes; that of earlier runs comes first. None: none was looked for."""
        if self.best_ns is not None:
            return Known.EARLIER_RUNS
        if self.by_chain_ns is not None:
            return Known.CHAIN
        return Known.NOTHING if self.is_first_run else None

    @property
    def slower_than_known(self) -> float | None:
        """Duration of the quickest probes over that of a quiet core's; None where a quiet core explains it.

        A quiet core's is that of earlier runs, or else that by the chain.
        """
        expected_ns = self.best_ns if self.best_ns is not None else self.by_chain_ns
        explained = _NEVER_ALONE if self.known_by is Known.EARLIER_RUNS else _BY_CHAIN
        if expected_ns is None or not self.is_known or self.quickest_ns <= expected_ns * math.exp(explained):
            return None
        return self.quickest_ns / expected_ns

    @property
    def was_ever_quiet(self) -> bool:
        """Whether the run met moments in which its core was quiet, as far as that is known."""
        return self.is_known and self.quick_share >= _FEWEST_QUICK and self.slower_than_known is None

    @property
    def longest_quick_ns(self) -> float:
        """What a probe takes at most while the core is quiet."""
        return self.quickest_ns * math.exp(QUIET)

    def is_quick(self, probe_ns: float) -> bool:
        """Whether the core was quiet when a probe took so long."""
        return probe_ns <= self.longest_quick_ns


def quickness_of(
    readings: Sequence[float], best_ns: float | None = None, by_chain_ns: float | None = None
) -> Quickness:
    """What a run's readings say; without any nothing is quick."""
    if not readings:
        return Quickness(best_ns=best_ns, by_chain_ns=by_chain_ns)
    ordered = sorted(readings)
    found = Quickness(_quickest(ordered), best_ns, by_chain_ns)
    return replace(found, quick_share=bisect_right(ordered, found.longest_quick_ns) / len(ordered))


def without_slices(trials: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Tell for each trial of one cell which chunks are whole although others have slices, by rounds and elapsed times.

    Others had the core during such a chunk. It is ten times as long as a slice, and no probe looked inside it, so that
    it is not quiet.
    """
    numbers = [grouped(rounds)[1:] for rounds, _ in trials]
    single = [counts[places] == 1 for places, counts in numbers]
    slices = [wall_ns[~alone] for (_, wall_ns), alone in zip(trials, single, strict=True)]
    lasts = np.concatenate(slices) if slices else np.zeros(0)
    if not len(lasts):
        return [np.zeros_like(alone) for alone in single]
    longest_ns = _LONGEST_SLICE * float(np.median(lasts))
    return [alone & (wall_ns > longest_ns) for (_, wall_ns), alone in zip(trials, single, strict=True)]


def _quickest(ordered: Sequence[float]) -> float:
    last = len(ordered) - 1
    return ordered[min(last // 2, max(_LEAST_PLACE, int(_QUICKEST * last)))]


Core = int | tuple[str, ...]
"""A core of this machine, or the command of the probe of another machine's."""


@dataclass(slots=True)
class Watch:
    """The same while it is measured: each reading says more of what is quick here."""

    best_ns: float | None = None
    best_of: dict[Core, float] = field(default_factory=dict)
    """The least nanoseconds that a probe has read on each core: those of several machines are compared by it."""
    chain_ns: float | None = None
    """Duration of the quickest chains; None where none was read."""
    _ordered: list[float] = field(default_factory=list)

    @property
    def readings(self) -> Sequence[float]:
        """All that it took in, the quickest first."""
        return self._ordered

    def note(self, probe_ns: float) -> None:
        """Takes a reading in."""
        insort(self._ordered, probe_ns)

    def note_chains(self, chains_ns: Sequence[float]) -> None:
        """Takes in the chains that were read together: the third quickest, since one may be a lucky reading."""
        if chains_ns:
            quickest_ns = sorted(chains_ns)[min(_LEAST_PLACE, len(chains_ns) - 1)]
            self.chain_ns = min(quickest_ns, self.chain_ns or math.inf)

    @property
    def longest_quick_ns(self) -> float:
        """What a quick reading takes at most, as far as is known by now; until there is enough, by earlier runs too."""
        known = [self.best_ns] if self.best_ns is not None and len(self._ordered) < _ENOUGH else []
        if self._ordered:
            known.append(_quickest(self._ordered))
        return min(known) * math.exp(QUIET) if known else -math.inf

    def is_quick(self, probe_ns: float) -> bool:
        """Whether the core was quiet."""
        return probe_ns <= self.longest_quick_ns


Machine = tuple[str, ...]
"""What probes are compared within: processor, kernel, and the engine's build, whose compiler made the probe."""


def best_known(machine: Machine) -> float | None:
    """What a quick probe took here in earlier runs, in nanoseconds; None: not known."""
    with suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RuntimeError):
        kept = json.loads(_file(machine).read_text("utf-8"))
        probe_ns, age_s = float(kept["probe_ns"]), time.time() - float(kept["at_s"])
        if 0 <= age_s <= _KEPT_S and _LEAST_NS <= probe_ns < math.inf:
            return probe_ns
    return None


def keep_best(machine: Machine, readings: Iterable[float], by_chain_ns: float | None = None) -> None:
    """Keeps what these readings give, where it is better than what is known. Without a cache there is nothing kept.

    Readings next to a steady neighbour, which the chain tells, would deceive later runs.
    """
    found = [*readings]
    quickness = quickness_of(found, None, by_chain_ns)
    if len(found) < _ENOUGH or quickness.slower_than_known is not None:
        return
    quickest_ns = quickness.quickest_ns
    known = best_known(machine)
    if known is not None and known <= quickest_ns:
        return
    with suppress(OSError, RuntimeError):
        path = _file(machine)
        path.parent.mkdir(parents=True, exist_ok=True)
        said = {"machine": list(machine), "probe_ns": quickest_ns, "at_s": time.time()}
        write_atomically(path, json.dumps(said, indent=1) + "\n")


def _file(machine: Machine) -> Path:
    name = hashlib.sha256("\n".join(machine).encode()).hexdigest()[:16]
    return cache_folder() / "probes" / f"{name}.json"
