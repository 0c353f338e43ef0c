"""Fleet: clusters that Ray makes, simulated on this machine. Some ten minutes.

The time of a cluster of three until its first batch, the time of `quick` on its nodes compared with one run here, and
costs of chunks through Ray compared with a run here. `fleet_kills` ends parts of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figures import TOLLBAR, Figure, Finished, timed, unmeasured
from bench.studies import Unmeasured
from tollbar import results

FIRST_BATCH_GOAL_S = 20.0
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
    """Yield start, `quick` on three nodes, and parity."""
    with tempfile.TemporaryDirectory(prefix="f", dir="/tmp") as folder:
        place = Path(folder)
        (place / "spin.toml").write_text(SPIN)
        for name, part in (("start", _start), ("parity", _parity), ("quick", _quick)):
            try:
                yield part(place)
            except Unmeasured as why:
                yield unmeasured(f"fleet: {name}", why)


def _start(place: Path) -> Figure:
    """Return the figure of the time from the command to the first node's first batch, by its journal.

    Raises Unmeasured.
    """
    began_s = time.time()
    runs = place / "start"
    _run(place, "spin.toml", "--cluster", "ray", "--simulate", str(NODES), "--runs", str(runs))
    works = _works(runs)
    # The first node alone would be as fast, so each node must have the same number of trials.
    if len(works) != NODES or len({*works}) > 1:
        raise Unmeasured(f"{NODES} nodes have {works} trials")
    took_s = min(_first_batch_s(run) for run in _runs(runs)) - began_s
    return Figure(
        f"fleet: from the command to the first batch, {NODES} simulated nodes", f"at most {FIRST_BATCH_GOAL_S:.0f} s",
        f"{took_s:.1f} s", took_s <= FIRST_BATCH_GOAL_S,
    )  # fmt: skip


def _parity(place: Path) -> Figure:
    """Return the figure of the median ratio of costs, in pairs of runs here and through Ray.

    Raises Unmeasured.
    """
    ratios = []
    for number in range(PARITY_PAIRS):
        here, there = place / f"here-{number}", place / f"there-{number}"
        seed = ("--seed", str(number))
        _run(place, "spin.toml", "--runs", str(here), *seed)
        _run(place, "spin.toml", "--cluster", "ray", "--simulate", "1", "--runs", str(there), *seed)
        (one,), (other,) = (_costs(_runs(folder)) for folder in (here, there))
        ratios += [other[cell] / one[cell] for cell in one]
    found = median(ratios) - 1
    return Figure(
        f"fleet: CPU time through Ray over that of a run here, median of {len(ratios)} cells", "within 0.5 %",
        f"{found:+.2%}, from {min(ratios) - 1:+.2%} to {max(ratios) - 1:+.2%}", abs(found) <= PARITY_GOAL,
    )  # fmt: skip


def _quick(place: Path) -> Figure:
    """Return the figure of a node's time by its journal: simulated nodes take turns, real ones do not.

    Raises Unmeasured.
    """
    one = _run(place, "quick", "--runs", str(place / "alone"))
    alone_s = max(map(_span_s, _runs(place / "alone")))
    _run(place, "quick", "--cluster", "ray", "--simulate", str(NODES), "--runs", str(place / "three"))
    what = f"fleet: `quick`, the slowest of {NODES} simulated nodes over a run here, from first batch to last"
    goal = f"at most × {OVER_ONE_GOAL}"
    # A node that ended early would shorten the slowest.
    (work,), works = (_works(place / folder) for folder in ("alone", "three"))
    if works != [work] * NODES:
        return unmeasured(what, f"the work differs: {work} trials here, and {works} on the nodes", goal)
    most_s = max(map(_span_s, _runs(place / "three")))
    return Figure(
        what, goal, f"× {most_s / alone_s:.2f} ({one.wall_s:.0f} s here in all)", most_s / alone_s <= OVER_ONE_GOAL
    )


def _run(place: Path, *words: str) -> Finished:
    """Run the command.

    Raises Unmeasured if a cell failed, or a node is not done.
    """
    done = timed(TOLLBAR, "run", *words, "--no-report", cwd=place)
    if done.status:
        raise Unmeasured(f"`tollbar run {' '.join(words)}` ended with status {done.status}")
    return done


def _works(folder: Path) -> list[int]:
    """Return the number of trials of each run."""
    return [len(_moments_s(run)) for run in _runs(folder)]


def _runs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("run.json"))


def _moments_s(run: Path) -> list[float]:
    return [trial.started_s for study in results.read(run).studies for row in study.rows for trial in row.all_trials]


def _first_batch_s(run: Path) -> float:
    return min(_moments_s(run))


def _span_s(run: Path) -> float:
    moments = _moments_s(run)
    return max(moments) - min(moments)


def _costs(runs: list[Path]) -> list[dict[str, float]]:
    """Return each run's nanoseconds of CPU per operation of each cell: the median of all chunks."""
    return [
        {
            row.key: median(trial.cost_of(chunk) for trial in row.all_trials for chunk in trial.chunks)
            for study in results.read(run).studies
            for row in study.rows
        }
        for run in runs
    ]
