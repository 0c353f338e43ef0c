"""Gather: two hundred runs of a thousand tolls each, read, compared and written as a page; some 40 s."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from bench.figures import TOLLBAR, Figure, timed
from bench.fleet import FLAGS, fingerprint, like, run_of

RUNS = 200
SECONDS_GOAL, MEGABYTES_GOAL = 10.0, 5.0
# Each run is of another machine, because kernels differ: a page of few machines is lighter.
PROCESSORS = 20
# Eleven choices with their baseline, by two providers, make a thousand tolls and some with this number of sizes.
SIZES = 46
TEXT = """
question  = "What does a hash cost?"
family    = "digest"
providers = ["libcrypto", "rustcrypto"]
baseline  = "sha-256"

[vary]
bytes = [{sizes}]
"""


def figures() -> Iterator[Figure]:
    """Yield the time, and the size of the page, for runs in their final state."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = run_of(folder / "first", fingerprint("Example CPU 1"), _cost, text=TEXT.format(sizes=_sizes()))
        runs, page = folder / "runs", folder / "page.html"
        runs.mkdir()
        for number in range(RUNS):
            cpu = number % PROCESSORS
            machine = fingerprint(f"Example CPU {cpu}", flags=FLAGS[: cpu % len(FLAGS) + 1], kernel=f"6.1.{number}")
            like(first, runs / f"run-{number}", machine, number)
        done = timed(TOLLBAR, "compare", "--by", "machine", str(runs), "--output", str(page))
        size = page.stat().st_size / 1e6 if page.exists() else float("nan")
        said = next((line for line in done.out.splitlines() if " tolls of " in line), "nothing was gathered")
        yield Figure(
            "gather: 200 runs of 1,000 tolls, a page",
            f"{SECONDS_GOAL:.0f} s",
            f"{done.wall_s:.1f} s ({said})",
            done.status == 0 and done.wall_s <= SECONDS_GOAL,
        )
        yield Figure("gather: its page", f"{MEGABYTES_GOAL:.0f} MB", f"{size:.1f} MB", size <= MEGABYTES_GOAL)


def _sizes() -> str:
    return ", ".join(f'"{64 * (number + 1)} B"' for number in range(SIZES))


def _cost(at: object) -> float:
    return 100.0 + crc32(str(at).encode()) % 900
