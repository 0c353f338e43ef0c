"""Claims about cells of given costs."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from builders import lognormal, measured, row, study, study_run
from tollbar.analysis import ClaimResult, judge_study
from tollbar.catalog.families import Value
from tollbar.core.intervals import Interval
from tollbar.results import Row
from tollbar.study import Claim


def interval(low: float, high: float) -> Interval:
    """Return this interval, with an estimate in its middle."""
    return Interval(math.sqrt(low * high) if 0 < low else 1.0, low, high, 0.95, 20)


def cells(costs: Mapping[tuple[Value, ...], float], names: tuple[str, ...]) -> list[Row]:
    """Return cells of these true costs, by their coordinates."""
    found = measured(list(costs.values()), lognormal(0.01), random.Random(2), blocks=20)
    return [row(dict(zip(names, at, strict=True)), c) for at, c in zip(costs, found, strict=True)]


def results(rows: list[Row], *claims: Claim, apart: float = 1.0) -> list[ClaimResult]:
    """Return the results of claims about these cells, in a study whose A/A pairs differ by `apart`."""
    quiet = [100.0 + 0.01 * block for block in range(20)]
    baseline = row({"choice": "baseline"}, quiet, repeats_ns=[apart * cost for cost in quiet])
    return list(judge_study(study_run([baseline, *rows], (20,), study(claims=claims))).claims)
