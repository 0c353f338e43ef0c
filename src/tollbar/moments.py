"""Moments: what counts as undisturbed, while it is measured and when it is judged. Nothing else decides it.

A probe is a fixed piece of work that takes some tens of microseconds and is bound by the core's throughput, so that a
neighbour on the other hyperthread makes it dearer at once. It is asked before and after every chunk. A chunk between
two quick probes was undisturbed, whatever it cost itself.
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
from pathlib import Path

from tollbar.files import cache_folder, write_atomically

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

# A quick probe takes at most so much longer than the quickest, in logarithms. A core that is left alone gives 0.01 to
# 0.08, one with a busy neighbour 0.3 to 0.5, and hardly anything lies between: from 0.08 to 0.2 all do alike, and a
# step of the clock's frequency, which makes all work dearer alike, is a few hundredths.
QUIET = 0.15
# Beyond this, a run's quickest probe was beside a neighbour: what the other cores do lowers the frequency by less.
_NEVER_ALONE = 0.25
# The quickest probe of a run, as a quantile, and its place in their order at least: not the minimum, which one lucky
# reading makes. Where quiet is rare, a higher quantile is that of a busy neighbour: at 2 % two of nine runs on a noisy
# host were called undisturbed, with ratios a fifth too high.
_QUICKEST = 0.002
_LEAST_PLACE = 2
# So many of a run's probes must be quick: fewer are the tail of a disturbed machine's one kind of moments.
_FEWEST_QUICK = 0.05
# Fewer readings have no such quantile.
_ENOUGH = 50
# No processor does its 20,000 steps of eight loads in less: a file that says so is damaged.
_LEAST_NS = 1_000.0
# What a machine once gave says little after its firmware, its host or its power supply may have changed.
_KEPT_S = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Quickness:
    """What a run's probes say of quiet moments."""

    quickest_ns: float = math.inf
    """What a probe takes on a core that is left alone, as far as the run shows; infinite where there was no probe."""
    best_ns: float | None = None
    """What one took on this processor and kernel in earlier runs; None where that is not known."""
    quick_share: float = 0.0
    """Of all the run's probes."""

    @property
    def is_known(self) -> bool:
        """Whether there was a probe."""
        return math.isfinite(self.quickest_ns)

    @property
    def slower_than_known(self) -> float | None:
        """How many times as long as in earlier runs the quickest probes took; None where a quiet core explains that."""
        if self.best_ns is None or not self.is_known or self.quickest_ns <= self.best_ns * math.exp(_NEVER_ALONE):
            return None
        return self.quickest_ns / self.best_ns

    @property
    def was_ever_quiet(self) -> bool:
        """Whether the run met moments in which its core was left alone, by what this machine has given before."""
        return self.is_known and self.quick_share >= _FEWEST_QUICK and self.slower_than_known is None

    @property
    def longest_quick_ns(self) -> float:
        """What a probe takes at most while the core is left alone."""
        return self.quickest_ns * math.exp(QUIET)

    def is_quick(self, probe_ns: float) -> bool:
        """Whether the core was left alone when a probe took so long."""
        return probe_ns <= self.longest_quick_ns

    def share_of(self, readings: Sequence[float]) -> float | None:
        """The share of these readings that are quick; None where there are none."""
        longest_ns = self.longest_quick_ns
        return sum(ns <= longest_ns for ns in readings) / len(readings) if readings else None


def quickness_of(readings: Sequence[float], best_ns: float | None = None) -> Quickness:
    """What a run's readings say; without any nothing is quick."""
    if not readings:
        return Quickness(best_ns=best_ns)
    ordered = sorted(readings)
    found = Quickness(_quickest(ordered), best_ns)
    return replace(found, quick_share=bisect_right(ordered, found.longest_quick_ns) / len(ordered))


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
    _ordered: list[float] = field(default_factory=list)

    @property
    def readings(self) -> Sequence[float]:
        """All that it took in, the quickest first."""
        return self._ordered

    def note(self, probe_ns: float) -> None:
        """Takes a reading in."""
        insort(self._ordered, probe_ns)

    @property
    def longest_quick_ns(self) -> float:
        """What a quick reading takes at most, as far as is known by now; until there is enough, by earlier runs too."""
        known = [self.best_ns] if self.best_ns is not None and len(self._ordered) < _ENOUGH else []
        if self._ordered:
            known.append(_quickest(self._ordered))
        return min(known) * math.exp(QUIET) if known else -math.inf

    def is_quick(self, probe_ns: float) -> bool:
        """Whether the core was left alone."""
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


def keep_best(machine: Machine, readings: Iterable[float]) -> None:
    """Keeps what these readings give, where it is better than what is known. Without a cache there is nothing kept."""
    found = [*readings]
    if len(found) < _ENOUGH:
        return
    quickest_ns = quickness_of(found).quickest_ns
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
