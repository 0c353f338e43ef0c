"""Probes: the readings next to a trial's chunks, as arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tollbar.analysis.quotients import by_chain_ns
from tollbar.core.arrays import np
from tollbar.core.moments import Quickness, quickness_of
from tollbar.core.records import Chunks
from tollbar.core.visits import column
from tollbar.results import Row, Run


@dataclass(frozen=True, slots=True)
class Probes:
    """Nanoseconds of each chunk's probes; NaN for a chunk without them."""

    first_ns: np.ndarray
    last_ns: np.ndarray
    slowest_ns: np.ndarray
    """Slowest of the two and of those within the chunk."""


Readings = Sequence[float | None]
"""Nanoseconds of a probe of each chunk; None for a chunk without it."""


def ends_of(chunks: Chunks) -> tuple[Readings, Readings]:
    """Return the probes before and after each chunk."""
    if not chunks.probes_ns:
        return [None] * len(chunks), [None] * len(chunks)
    first, last = chunks.probes_ns[0], chunks.probes_ns[-1]
    if _may_lack(first) or _may_lack(last):
        # Some chunks have fewer probes than others: each has its own last one.
        return [one[0] if one else None for one in chunks.probed], [one[-1] if one else None for one in chunks.probed]
    return first, last


def _may_lack(readings: Readings) -> bool:
    # An array has no None, and searching it takes longer than anything else here.
    return not isinstance(readings, array) and None in readings


def probes_of(trials: Sequence[Chunks]) -> Probes:
    """Return the probes of the chunks of these trials, one after the other."""
    ends = [ends_of(chunks) for chunks in trials]
    first, last = (column((both[side] for both in ends), float) for side in (0, 1))
    slowest = np.fmax(first, last)
    for place in range(1, max((len(chunks.probes_ns) for chunks in trials), default=0) - 1):
        slowest = np.fmax(slowest, column((_within(chunks, place) for chunks in trials), float))
    return Probes(first, last, slowest)


def _within(chunks: Chunks, place: int) -> Readings:
    """Return the probes in this place between those at the ends."""
    return chunks.probes_ns[place] if place < len(chunks.probes_ns) - 1 else [None] * len(chunks)


def quickness(run: Run) -> Quickness:
    """Return the quickness of a quiet moment by all probes of a run: a short study may lie in one phase of the machine.

    They are those of the whole run, even if only some of its studies were read.
    """
    probes_ns = run.probes_ns
    if probes_ns is None:
        probes_ns = readings(row for study_run in run.studies for row in study_run.rows)
    found = quickness_of(probes_ns, run.best_probe_ns, by_chain_ns(run.fingerprint, run.chain_ns))
    # Probes of other machines have no history in any run (docs/roles.md).
    return replace(found, is_first_run=run.best_probe_ns is None and not run.nodes)


def readings(rows: Iterable[Row]) -> list[float]:
    """Return the nanoseconds of the probes next to these rows' chunks, in no order.

    Probes within a long chunk are left out: only its slowest are kept, which do not represent all moments.
    """
    found: list[float] = []
    for trial in (trial for row in rows for trial in row.all_trials):
        for ends in ends_of(Chunks.of(trial.chunks)):
            found += ends if isinstance(ends, array) else [ns for ns in ends if ns is not None]
    return found
