"""Fleet: clusters that Ray makes, simulated on this machine. Some ten minutes; `fleet:kills` some thirty.

How long a cluster of three takes to its first heat, what `quick` on its nodes takes of each beside one run here, what
chunks cost through Ray beside those of a run here, and what is left, or lost, where something is killed.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figures import TOLLBAR, Figure, timed
from tollbar import results
from tollbar.beds import proc

FIRST_HEAT_GOAL_S = 20.0
OVER_ONE_GOAL = 1.2
PARITY_GOAL = 0.005
NODES = 3
PARITY_PAIRS = 3
KILLS = 50
LIMIT_S = 600.0
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


def kills() -> Iterator[Figure]:
    """A node, the driver, a raylet and the network between them, ended at random moments, and gone on with."""
    chance = random.Random(24)
    ways = {"node": _end_node, "driver": _end_driver, "raylet": _end_raylet, "network": _cut}
    left: list[str] = []
    lost = unfinished = 0
    for number in range(KILLS):
        name = [*ways][number % len(ways)]
        with tempfile.TemporaryDirectory(prefix="f", dir="/tmp") as folder:
            place = Path(folder)
            (place / "spin.toml").write_text(SPIN)
            driver = _started(place, "spin.toml", "--on", "ray", "--simulate", "2")
            while not _trials(place) and driver.poll() is None:
                time.sleep(0.05)
            time.sleep(chance.uniform(0.0, 5.0))
            tree = proc.tree(driver.pid)
            before = _trials(place)
            ways[name](driver)
            driver.wait(LIMIT_S)
            time.sleep(5.0)
            left += [f"{name}: {pid}" for pid in tree if proc.start_time(pid) is not None]
            left += [f"{name}: {path.name}" for path in (place / "tmp").iterdir()]
            (directory,) = place.glob("runs/*-fleet")
            status = _started(place, "--resume", directory).wait(LIMIT_S)
            after = _trials(place)
            lost += not all(trials <= after.get(run, set()) for run, trials in before.items())
            unfinished += status != 0
    yield Figure(f"fleet: processes and folders left after {KILLS} kills", "none", str(left[:3] or "none"), not left)
    yield Figure(f"fleet: kills of {KILLS} after which a trial that was home is gone", "0", str(lost), lost == 0)
    yield Figure(f"fleet: runs of {KILLS} that were not whole when gone on with", "0", str(unfinished), unfinished == 0)


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
    most_s = max(map(_span_s, _runs(place / "three")), default=float("inf"))
    return Figure(
        f"fleet: `quick`, the slowest of {NODES} simulated nodes over a run here, from first heat to last",
        f"at most × {OVER_ONE_GOAL}", f"× {most_s / alone_s:.2f} ({one.wall_s:.0f} s here in all)",
        most_s / alone_s <= OVER_ONE_GOAL,
    )  # fmt: skip


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


def _trials(place: Path) -> dict[Path, set[tuple[object, ...]]]:
    return {
        run: {
            (row.key, trial.twin, trial.block, trial.heat)
            for study in results.read(run).studies
            for row in study.rows
            for trial in row.all_trials
        }
        for run in _runs(place / "runs")
    }


def _started(place: Path, *words: object) -> subprocess.Popen[bytes]:
    (place / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [TOLLBAR, "run", *map(str, words), "--no-report"], cwd=place, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(place / "tmp"), "XDG_CACHE_HOME": str(place / "cache")},
    )  # fmt: skip


def _named(driver: subprocess.Popen[bytes], words: str, host: str) -> list[int]:
    """The processes of these words on a made-up machine."""
    found = []
    for pid in proc.tree(driver.pid):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        asked = ["nsenter", "--target", str(pid), "--uts", "hostname"]
        if re.match(words, line) and host == subprocess.run(asked, capture_output=True, text=True).stdout.strip():
            found.append(pid)
    return found


def _kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def _end_node(driver: subprocess.Popen[bytes]) -> None:
    _kill(_named(driver, "sleep infinity", "node-1"))


def _end_driver(driver: subprocess.Popen[bytes]) -> None:
    driver.kill()


def _end_raylet(driver: subprocess.Popen[bytes]) -> None:
    _kill(_named(driver, r"\S*/raylet ", "node-1"))


def _cut(driver: subprocess.Popen[bytes]) -> None:
    """Takes the first node off the network, which it is not told."""
    for hub in _named(driver, "sleep infinity", "hub"):
        words = ["nsenter", "--target", str(hub), "--net", "ip", "link", "set", "cable2", "nomaster"]
        subprocess.run(words, check=False)
