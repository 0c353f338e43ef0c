"""Probes: the readings next to a trial's chunks, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tollbar.analysis.quotients import by_chain_ns
from tollbar.core.arrays import np
from tollbar.core.moments import Quickness, quickness_of
from tollbar.core.records import Chunks
from tollbar.results import Row, Run


@dataclass(frozen=True, slots=True)
class Probes:
    """Nanoseconds of each chunk's probes; NaN for a chunk without them."""

    first_ns: np.ndarray
    last_ns: np.ndarray
    slowest_ns: np.ndarray
    """Slowest of the two and of those within the chunk."""


def probes_of(chunks: Chunks) -> Probes:
    """Return the probes of a trial's chunks."""
    if not chunks.probes_ns:
        none = np.full(len(chunks), np.nan)
        return Probes(none, none, none)
    columns = [np.array(column, float) for column in chunks.probes_ns]
    first, last = columns[0], columns[-1]
    if np.isnan(first).any() or np.isnan(last).any():
        # Some chunks have fewer probes than others: each has its own last one.
        each = [one or (np.nan,) for one in chunks.probed]
        first, last = np.array([one[0] for one in each], float), np.array([one[-1] for one in each], float)
    return Probes(first, last, np.fmax.reduce(columns))


def quickness(run: Run, probes_ns: Sequence[float] | None = None) -> Quickness:
    """Return the quickness of a quiet moment by all probes of a run: a short study may lie in one phase of the machine.

    `probes_ns` are those of the whole run, if only some of its studies were read.
    """
    if probes_ns is None:
        probes_ns = readings(row for study_run in run.studies for row in study_run.rows)
    found = quickness_of(probes_ns, run.best_probe_ns, by_chain_ns(run.fingerprint, run.chain_ns))
    # Probes of other machines have no history in any run (docs/roles.md).
    return replace(found, is_first_run=run.best_probe_ns is None and not run.nodes)


def readings(rows: Iterable[Row]) -> list[float]:
    """Return the nanoseconds of the probes next to these rows' chunks, in no order.

    Probes within a long chunk are left out: only its slowest are kept, which do not represent all moments.
    """
    found = [probes_of(Chunks.of(trial.chunks)) for row in rows for trial in row.all_trials]
    values = np.concatenate([np.zeros(0), *(side for one in found for side in (one.first_ns, one.last_ns))])
    each: list[float] = values[~np.isnan(values)].tolist()
    return each
