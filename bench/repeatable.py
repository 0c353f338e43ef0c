"""Repeatable: the study `digests` twice in a row, and `openssl speed` twice beside it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figures import TOLLBAR, Figure, timed
from bench.true import _speed

MOST_DIFFERENCE = 0.015
LEAST_OVERLAP = 0.95
DIGESTS = ("md5", "sha1", "sha256", "sha512", "sha3-256", "blake2b512")


def figures() -> Iterator[Figure]:
    """Median relative difference of the ratios, and the share of intervals that overlap."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [_run(Path(folder)) for _ in range(2)]
        compared = json.loads(timed(TOLLBAR, "compare", *runs, "--json", cwd=Path(folder)).out)
    difference, overlap = compared["median_difference"], compared["overlapping"]
    yield Figure(
        "repeatable: `digests` twice, median relative difference of ratios",
        f"at most {MOST_DIFFERENCE:.1%}",
        f"{difference:.2%}",
        difference <= MOST_DIFFERENCE,
    )
    yield Figure(
        "repeatable: `digests` twice, intervals that overlap",
        f"at least {LEAST_OVERLAP:.0%}",
        f"{overlap:.1%}",
        overlap >= LEAST_OVERLAP,
    )
    one, other = (_speed_ratios() for _ in range(2))
    off = median(abs(b / a - 1) for a, b in zip(one, other, strict=True))
    yield Figure("repeatable: `openssl speed` twice, the same", "(for comparison)", f"{off:.2%}", None)


def _run(folder: Path) -> str:
    done = timed(TOLLBAR, "run", "digests", "--json", "--no-report", cwd=folder)
    return str(json.loads(done.out)["run"])


def _speed_ratios() -> list[float]:
    rates = [_speed("-bytes", "4096", "-evp", name)[0] for name in DIGESTS]
    return [rate / rates[2] for rate in rates]
