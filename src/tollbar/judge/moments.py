"""How disturbed each moment was, as all that was measured in it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tollbar.stats import Visit, lowest

Visits = tuple[Visit, ...]


def with_moments(
    visits: Mapping[str, Visits], twins: Mapping[str, Visits]
) -> tuple[dict[str, Visits], dict[str, Visits]]:
    """The same visits, each with how disturbed the others of its heat were in its rounds, on average.

    A cell that was never measured on a core left alone cannot see that in its own chunks. The others of its heats were
    measured in other heats as well, and cost less there.
    """
    logs = {key: [visit.logs for visit in (*own, *twins.get(key, ()))] for key, own in visits.items()}
    least = {key: lowest(np.concatenate(some)) for key, some in logs.items() if some}
    members = [(key, visit) for group in (visits, twins) for key, some in group.items() for visit in some]
    totals: dict[tuple[int, int], np.ndarray] = {}
    for key, visit in members:
        own = _excess(visit, least[key])
        at = (visit.block, visit.heat)
        total = totals.get(at, np.zeros((2, 0)))
        missing = int(visit.rounds.max(initial=-1)) + 1 - total.shape[1]
        totals[at] = total = np.pad(total, ((0, 0), (0, max(missing, 0))))
        total[:, visit.rounds] += own

    def filled(key: str, visit: Visit) -> Visit:
        excess, number = totals[visit.block, visit.heat][:, visit.rounds] - _excess(visit, least[key])
        return replace(visit, beside=excess / np.maximum(number, 1.0))

    return (
        {key: tuple(filled(key, visit) for visit in some) for key, some in visits.items()},
        {key: tuple(filled(key, visit) for visit in some) for key, some in twins.items()},
    )


def _excess(visit: Visit, least: float) -> np.ndarray:
    """(2, chunks): by how much each cost more than the cell's lowest, and whether that says anything of the moment."""
    if visit.varies:
        # Of work that varies by nature, a chunk's own cost says nothing.
        return np.zeros((2, len(visit.logs)))
    return np.stack([np.maximum(visit.logs - least, 0.0), np.ones(len(visit.logs))])
