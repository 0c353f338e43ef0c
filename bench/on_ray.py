"""Fleet: clusters that Ray makes, simulated on this machine. Some ten minutes.

How long a cluster of three takes to its first heat, what `quick` on its nodes takes of each beside one run here, and
what chunks cost through Ray beside those of a run here. `fleet_kills` ends parts of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figures import TOLLBAR, Figure, timed, unmeasured
from tollbar import results

FIRST_HEAT_GOAL_S = 20.0
OVER_ONE_GOAL = 1.2
PARITY_GOAL = 0.005
NODES = 3
PARITY_PAIRS = 3
SPIN = """
question  = "What does work of a known size cost?"
family    = "spin"
choices   = ["spin-1", "spin-2"]
providers = ["spin"]
baseline  = "spin-1"

[measure]
blocks = 20
"""


def figures() -> Iterator[Figure]:
    """Start, `quick` on three nodes, and parity."""
    with tempfile.TemporaryDirectory(prefix="f", dir="/tmp") as folder:
        place = Path(folder)
        (place / "spin.toml").write_text(SPIN)
        yield _start(place)
        yield _parity(place)
        yield _quick(place)


def _start(place: Path) -> Figure:
    """From the command to the first heat of the first node, as its journal has it."""
    began_s = time.time()
    timed(TOLLBAR, "run", "spin.toml", "--on", "ray", "--simulate", str(NODES), "--no-report", cwd=place)
    took_s = min(_first_heat_s(run) for run in _runs(place)) - began_s
    return Figure(
        f"fleet: from the command to the first heat, {NODES} simulated nodes", f"at most {FIRST_HEAT_GOAL_S:.0f} s",
        f"{took_s:.1f} s", took_s <= FIRST_HEAT_GOAL_S,
    )  # fmt: skip


def _parity(place: Path) -> Figure:
    """Runs here and through Ray in turn, and the median of what each pair's costs are of one another."""
    ratios = []
    for number in range(PARITY_PAIRS):
        here, there = place / f"here-{number}", place / f"there-{number}"
        seed = ("--seed", str(number), "--no-report")
        timed(TOLLBAR, "run", "spin.toml", "--runs", str(here), *seed, cwd=place)
        timed(TOLLBAR, "run", "spin.toml", "--on", "ray", "--simulate", "1", "--runs", str(there), *seed, cwd=place)
        (one,), (other,) = (_costs(_runs(folder)) for folder in (here, there))
        ratios += [other[cell] / one[cell] for cell in one]
    found = median(ratios) - 1
    return Figure(
        f"fleet: CPU time through Ray over that of a run here, median of {len(ratios)} cells", "within 0.5 %",
        f"{found:+.2%}, from {min(ratios) - 1:+.2%} to {max(ratios) - 1:+.2%}", abs(found) <= PARITY_GOAL,
    )  # fmt: skip


def _quick(place: Path) -> Figure:
    """What measuring takes of a node, by its journal: simulated nodes take turns, which real ones do not."""
    one = timed(TOLLBAR, "run", "quick", "--runs", str(place / "alone"), "--no-report", cwd=place)
    alone_s = max(map(_span_s, _runs(place / "alone")))
    runs = str(place / "three")
    timed(TOLLBAR, "run", "quick", "--on", "ray", "--simulate", str(NODES), "--runs", runs, "--no-report", cwd=place)
    what = f"fleet: `quick`, the slowest of {NODES} simulated nodes over a run here, from first heat to last"
    goal = f"at most × {OVER_ONE_GOAL}"
    # A node that ended early would make the slowest quicker.
    (work,), works = ([len(_moments_s(run)) for run in _runs(place / folder)] for folder in ("alone", "three"))
    if works != [work] * NODES:
        return unmeasured(what, f"the work differs: {work} trials here, and {works} on the nodes", goal)
    most_s = max(map(_span_s, _runs(place / "three")))
    return Figure(
        what, goal, f"× {most_s / alone_s:.2f} ({one.wall_s:.0f} s here in all)", most_s / alone_s <= OVER_ONE_GOAL
    )


def _runs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("run.json"))


def _moments_s(run: Path) -> list[float]:
    return [trial.started_s for study in results.read(run).studies for row in study.rows for trial in row.all_trials]


def _first_heat_s(run: Path) -> float:
    return min(_moments_s(run))


def _span_s(run: Path) -> float:
    moments = _moments_s(run)
    return max(moments) - min(moments)


def _costs(runs: list[Path]) -> list[dict[str, float]]:
    """Nanoseconds of CPU per operation of each cell, of each run: the median of all its chunks."""
    return [
        {
            row.key: median(trial.cost_of(chunk) for trial in row.all_trials for chunk in trial.chunks)
            for study in results.read(run).studies
            for row in study.rows
        }
        for run in runs
    ]
