"""numpy, with one thread.

No matrix here is large enough for a second thread to help. The threads that numpy's library starts at import take as
long as the rest of the import, and compete for the measured cores.
"""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"
_is_said = _THREADS in os.environ
os.environ.setdefault(_THREADS, "1")

import numpy as np  # noqa: E402 - the library reads this when it is loaded, and at no other time

if not _is_said:
    # Runners must inherit the environment that they would have without Tollbar.
    del os.environ[_THREADS]

__all__ = ["grouped", "median", "np"]


def grouped(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct values, each value's index among them, and their counts, as `np.unique` does.

    Ascending values, such as the rounds of a trial, are not sorted again: that takes ten times as long.
    """
    if (values[1:] > values[:-1]).all():
        return values, np.arange(len(values)), np.ones(len(values), int)
    if (values[1:] < values[:-1]).any():
        return np.unique(values, return_inverse=True, return_counts=True)
    begins = np.ones(len(values), bool)
    begins[1:] = values[1:] != values[:-1]
    place = np.cumsum(begins) - 1
    return values[begins], place, np.bincount(place)


def median(values: np.ndarray) -> np.float64:
    """Return the median of at least one value, as `np.median` does, which imports masked arrays for it."""
    ordered, middle = np.sort(values), len(values) // 2
    found: np.float64 = ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return found
