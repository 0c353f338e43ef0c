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

__all__ = ["np"]
