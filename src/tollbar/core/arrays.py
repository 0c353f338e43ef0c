"""numpy, with one thread.

No matrix here is so large that a second thread would help. Those that numpy's library starts when it is imported take
as long as all of its import, and are another program on the cores that are measured.
"""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"
_is_said = _THREADS in os.environ
os.environ.setdefault(_THREADS, "1")

import numpy as np  # noqa: E402 - the library reads this when it is loaded, and at no other time

if not _is_said:
    # What a runner starts is left as it would be without Tollbar.
    del os.environ[_THREADS]

__all__ = ["grouped", "np"]


def grouped(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct values, the place of each value among them, and how often each occurs, as `np.unique` does.

    Values that ascend, as the rounds of a trial, are not sorted again: that takes ten times as long.
    """
    if (values[1:] > values[:-1]).all():
        return values, np.arange(len(values)), np.ones(len(values), int)
    if (values[1:] < values[:-1]).any():
        return np.unique(values, return_inverse=True, return_counts=True)
    begins = np.ones(len(values), bool)
    begins[1:] = values[1:] != values[:-1]
    place = np.cumsum(begins) - 1
    return values[begins], place, np.bincount(place)
