"""Selection bias: chunks whose cost varies by itself, of which quiet moments would select the cheap ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tollbar.core.arrays import median, np
from tollbar.core.visits import Visits

# Quiet chunks of equal work vary by less than 0.1 from one to the next on any host measured; three key generations by
# 0.35.
_VARIES = 0.25
# Limit for all chunks, which neighbours made vary by 0.26 at most on a host that was quiet a tenth of the time.
_VARIES_ANYWHERE = 0.35
_ENOUGH_TO_VARY = 6
# No neighbour makes a chunk cost this multiple of the median; garbage collections do, and may be in no quiet chunk.
_LUMP, _OF_LUMPS = 2.5, 0.005
# Chunks this short are hardly selected by their length, because quiet lasts longer. Slices are longer: a slice of
# varying operations is less often quiet if they are the long ones, and such work came out 4 % too cheap in simulations.
_SHORT_NS = 0.3e6


def unselected(visits: Visits, falls: float, most: float) -> Visits:
    """Return the visits without their quiet chunks if chunks of the same operations vary by themselves.

    The more a chunk costs, the longer it lasts and the less likely it is quiet, so quiet chunks are the cheap ones: key
    generation came out 8 to 23 % too low, and garbage-collected work 2 to 10 %. `falls`: the per cent by which that
    likelihood falls if a chunk lasts 1 % longer. `most`: the largest bias that may stay, as a share. For example, quiet
    chunks that vary by 20 % are 2 % too cheap if it falls by 0.5 %.
    """
    if not visits or np.mean(visits.costs) < _SHORT_NS:
        return visits
    quiet, first = _costs(visits, visits.quiet), _costs(visits, visits.first)
    varies = quiet.variation > min(_VARIES, math.sqrt(most / falls) if falls else math.inf)
    varies = varies or first.variation > _VARIES_ANYWHERE
    of_all = first.each
    lumps = int((of_all > _LUMP * median(of_all)).sum()) if len(of_all) else 0
    if not varies and lumps < max(2, _OF_LUMPS * len(of_all)):
        return visits
    return replace(visits, quiet=np.zeros_like(visits.quiet))


def falls(begins: np.ndarray, ends: np.ndarray) -> float:
    """Return the per cent by which the likelihood of a quiet chunk falls if it lasts 1 % longer, by its probes.

    The arrays tell whether the probes before and after each chunk are quick. Assumes that quiet and other moments
    follow each other by chance: a share exp(-chunk / time) of chunks that begin in quiet meet no change.
    """
    began, quiet = int(begins.sum()), float(begins.mean()) if len(begins) else 1.0
    if not began or quiet == 1.0:
        return 0.0
    stays = float(ends[begins].mean())
    unchanged = min(max((stays - quiet) / (1 - quiet), 0.0), 1.0)
    if not 0.0 < unchanged < 1.0:
        return 0.0
    return -math.log(unchanged) * unchanged * (1 - quiet) / stays


@dataclass(frozen=True, slots=True)
class _Costs:
    """Costs of an operation in chunks of processes that used CPU time."""

    each: np.ndarray
    means: np.ndarray
    """Mean over the chunks of each chunk's process."""
    processes: int

    @property
    def variation(self) -> float:
        """Standard deviation over mean from chunk to chunk of one process; of all chunks if processes have one each.

        0 with too few chunks. Differences between processes and drift over blocks are not included.
        """
        freedom = len(self.each) - self.processes
        if freedom >= _ENOUGH_TO_VARY:
            return math.sqrt(float(((self.each / self.means - 1) ** 2).sum()) / freedom)
        return float(self.each.std(ddof=1) / self.each.mean()) if len(self.each) > _ENOUGH_TO_VARY else 0.0


def _costs(visits: Visits, selected: np.ndarray) -> _Costs:
    """Return the costs in the selected chunks."""
    each = visits.costs[selected] / visits.operations[selected]
    process = visits.frame.visit_of[selected]
    means = np.bincount(process, each, len(visits)) / np.maximum(np.bincount(process, minlength=len(visits)), 1)
    counts = (means > 0)[process]
    return _Costs(each[counts], means[process][counts], int(np.count_nonzero(means > 0)))
