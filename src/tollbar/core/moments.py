"""Quiet moments: the only definition, for measuring and for judging.

A probe is a fixed piece of work of some tens of microseconds. It is bound by the core's throughput, so a neighbour on
the other hyperthread slows it at once. It runs before and after every chunk. A chunk between two quick probes is quiet,
whatever its own cost.

A neighbour that never leaves slows every probe of a run. Earlier runs on the processor reveal that. Without them a
chain of dependent steps does: it is bound by latency, so a neighbour hardly slows it. The quotient of the two belongs
to the processor's model, at any clock frequency.
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

from tollbar.core.arrays import median, np
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
"""Task of the probe's session in the runner contract."""
CHAIN: Mapping[str, object] = {**PROBE, "op": "spin", "choice": "chain", "setting": {"iterations": 20_000}}
"""Task of the chain's session: 20,000 steps, each of which needs the result of the previous one."""

# Limit of a quick probe's excess over the quickest, in logarithms. A quiet core gives 0.01 to 0.08, one with a busy
# neighbour 0.3 to 0.5, and hardly anything lies between: limits from 0.08 to 0.2 select the same. A step of the clock's
# frequency, which slows all work equally, is a few hundredths.
QUIET = 0.15
# Beyond this excess the quickest probe ran next to a neighbour; frequency changes by other cores are smaller.
_NEVER_ALONE = 0.25
# The quickest probe of a run, as a quantile with a least rank. The minimum would depend on one lucky reading. A higher
# quantile is that of a busy neighbour if quiet is rare: at 2 %, two of nine runs on a noisy host counted as quiet, with
# ratios a fifth too high.
_QUICKEST = 0.002
_LEAST_PLACE = 2
# The frequency cancels in the quotient of probe and chain; only scatter and differences between machines of a model
# remain. On a host with neighbours, quiet probes took 1.00 to 1.06 times the chain's prediction, all others 1.10 and
# more, with hardly one between. A chain next to a neighbour takes 1 to 4 % longer itself.
_BY_CHAIN = 0.06
# Least share of quick probes in a run. Fewer are the tail of a constantly disturbed machine.
_FEWEST_QUICK = 0.05
# Fewer readings do not have such a quantile.
_ENOUGH = 50
# No processor does the probe's 12,000 steps of 24 operations in less; a file with less is damaged.
_LEAST_NS = 1_000.0
# Older readings are unreliable, because firmware, host or power supply may have changed.
_KEPT_S = 30 * 86400.0
# A chunk without slices lasts at least two slices of its cell, because an operation longer than half a chunk is not
# sliced. A slice lasts 1.35 to 1.6 times as long next to a neighbour, and is not quiet then.
_LONGEST_SLICE = 1.5


class Known(StrEnum):
    """Evidence that a run's quickest probes were those of a quiet core."""

    EARLIER_RUNS = "earlier runs"
    CHAIN = "chain"
    """The chain, with the shipped quotient of this model."""
    NOTHING = "nothing"
    """No evidence: a steady neighbour cannot be excluded."""


@dataclass(frozen=True, slots=True)
class Quickness:
    """Evidence for quiet moments from a run's probes."""

    quickest_ns: float = math.inf
    """Duration of a probe on a quiet core, estimated from the run; infinite if there was no probe."""
    best_ns: float | None = None
    """Duration of a quick probe on this processor and kernel in earlier runs; None if unknown."""
    by_chain_ns: float | None = None
    """Duration of a quiet core's probe by this run's chain; None where it was not read or the model is not listed."""
    is_first_run: bool = False
    """True if a search for earlier runs found none."""
    quick_share: float = 0.0
    """Share of quick probes among all of the run."""

    @property
    def is_known(self) -> bool:
        """True if there was a probe."""
        return math.isfinite(self.quickest_ns)

    @property
    def known_by(self) -> Known | None:
        """Evidence for the duration of a quiet core's probe, earlier runs first; None: none was looked for."""
        if self.best_ns is not None:
            return Known.EARLIER_RUNS
        if self.by_chain_ns is not None:
            return Known.CHAIN
        return Known.NOTHING if self.is_first_run else None

    @property
    def slower_than_known(self) -> float | None:
        """Quotient of the quickest probes and a quiet core's duration; None if a quiet core explains it.

        The quiet core's duration comes from earlier runs, or else from the chain.
        """
        expected_ns = self.best_ns if self.best_ns is not None else self.by_chain_ns
        explained = _NEVER_ALONE if self.known_by is Known.EARLIER_RUNS else _BY_CHAIN
        if expected_ns is None or not self.is_known or self.quickest_ns <= expected_ns * math.exp(explained):
            return None
        return self.quickest_ns / expected_ns

    @property
    def was_ever_quiet(self) -> bool:
        """True if the core was quiet at times during the run, as far as is known."""
        return self.is_known and self.quick_share >= _FEWEST_QUICK and self.slower_than_known is None

    @property
    def longest_quick_ns(self) -> float:
        """Longest duration of a probe on a quiet core."""
        return self.quickest_ns * math.exp(QUIET)

    def is_quick(self, probe_ns: float) -> bool:
        """Return whether the core was quiet during a probe of this duration."""
        return probe_ns <= self.longest_quick_ns


def quickness_of(
    readings: Sequence[float], best_ns: float | None = None, by_chain_ns: float | None = None
) -> Quickness:
    """Return the evidence in a run's probe readings; without readings no probe is quick."""
    if not readings:
        return Quickness(best_ns=best_ns, by_chain_ns=by_chain_ns)
    ordered = sorted(readings)
    found = Quickness(_quickest(ordered), best_ns, by_chain_ns)
    return replace(found, quick_share=bisect_right(ordered, found.longest_quick_ns) / len(ordered))


def without_slices(slices: np.ndarray, wall_ns: np.ndarray) -> np.ndarray:
    """Return which chunks of one cell have no slices although others have, by numbers of slices and elapsed times.

    Other programs used the core during such a chunk. It is ten times as long as a slice without an inner probe, so it
    is not quiet.
    """
    is_single = slices == 1
    if is_single.all():
        return np.zeros_like(is_single)
    found: np.ndarray = is_single & (wall_ns > _LONGEST_SLICE * median(wall_ns[~is_single]))
    return found


def _quickest(ordered: Sequence[float]) -> float:
    last = len(ordered) - 1
    return ordered[min(last // 2, max(_LEAST_PLACE, int(_QUICKEST * last)))]


Core = int | tuple[str, ...]
"""Core of this machine, or the probe command of another machine."""


@dataclass(slots=True)
class Watch:
    """Quiet-moment evidence during a measurement: each reading refines the limit of a quick probe."""

    best_ns: float | None = None
    best_of: dict[Core, float] = field(default_factory=dict)
    """Least probe duration on each core, in nanoseconds, for comparing several machines."""
    chain_ns: float | None = None
    """Duration of the quickest chains; None where none was read."""
    _ordered: list[float] = field(default_factory=list)

    @property
    def readings(self) -> Sequence[float]:
        """Noted readings in ascending order."""
        return self._ordered

    def note(self, probe_ns: float) -> None:
        """Add a reading."""
        insort(self._ordered, probe_ns)

    def note_chains(self, chains_ns: Sequence[float]) -> None:
        """Add chains that were read together: the third quickest counts, because one may be a lucky reading."""
        if chains_ns:
            quickest_ns = sorted(chains_ns)[min(_LEAST_PLACE, len(chains_ns) - 1)]
            self.chain_ns = min(quickest_ns, self.chain_ns or math.inf)

    @property
    def longest_quick_ns(self) -> float:
        """Longest duration of a quick probe, as known so far; with few readings earlier runs count as well."""
        known = [self.best_ns] if self.best_ns is not None and len(self._ordered) < _ENOUGH else []
        if self._ordered:
            known.append(_quickest(self._ordered))
        return min(known) * math.exp(QUIET) if known else -math.inf

    def is_quick(self, probe_ns: float) -> bool:
        """Return whether the core was quiet."""
        return probe_ns <= self.longest_quick_ns


Machine = tuple[str, ...]
"""Scope of comparable probes: processor, kernel, and the engine's build, whose compiler made the probe."""


def best_known(machine: Machine) -> float | None:
    """Return the duration of a quick probe here in earlier runs, in nanoseconds; None if unknown."""
    with suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RuntimeError):
        kept = json.loads(_file(machine).read_text("utf-8"))
        probe_ns, age_s = float(kept["probe_ns"]), time.time() - float(kept["at_s"])
        if 0 <= age_s <= _KEPT_S and _LEAST_NS <= probe_ns < math.inf:
            return probe_ns
    return None


def keep_best(machine: Machine, readings: Iterable[float], by_chain_ns: float | None = None) -> None:
    """Keep the quickest of these readings if it beats the known one. Without a cache nothing is kept.

    Readings next to a steady neighbour, which the chain reveals, are not kept, because they would mislead later runs.
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
