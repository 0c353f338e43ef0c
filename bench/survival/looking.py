"""Checks after a kill: leftovers, losses, and whether the run comes to the same end."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.ground import NOTHING, Ground, Kept, cells_of, trials_of
from bench.survival.kinds import EXACTLY
from bench.survival.means import Kill

# Expected files next to a run on a ground: temporary files, output, the shim's settings, the user's cache.
BESIDE = {"tmp", "output", "said.json", "told", ".cache"}
# Costs from which tolls are made.
COSTS = ("cpu", "server-cpu")
# Accepted ratio of two ratios measured at different times next to other kills, each of four blocks.
NEAR = 1.1
MADE_BY_THE_BENCH = (".toml", ".c", ".so")


class Uninterrupted(NamedTuple):
    """Results of an undisturbed run of a kind."""

    study: Path
    starting_s: float
    """Seconds from its start to its first batch."""
    measuring_s: float
    """Seconds from its first batch to its end."""
    trials: int
    tolls: Mapping[str, Any]


def tolls_of(ground: Ground) -> dict[str, Any]:
    """Return the last run's tolls of costs, by their cells."""
    try:
        said = json.loads((ground.folder / "said.json").read_text())
    except ValueError:
        return {}
    keys = ("choice", "provider", "server", "setting")
    return {
        json.dumps([toll[key] for key in keys]): toll
        for study in said["studies"]
        for toll in study["tolls"]
        if toll["metric"] in COSTS and not toll["aa"]
    }


def batch_sizes(trials: list[Kept]) -> Counter[tuple[str, int, int]]:
    """Return the number of trials of each batch, which are committed at once."""
    return Counter((trial.study, trial.block, trial.batch) for trial in trials)


def committed_in(runs: Path) -> list[Kept]:
    """Return the trials on the disk at this moment."""
    for about in runs.glob("*/run.json"):
        return trials_of(about.parent)
    return []


def committed_in_mounts(ground: Ground, run: subprocess.Popen[bytes], runs: Path) -> list[Kept]:
    """Return the trials in a copy, made while the lab is stopped.

    SQLite resolves links, and would leave those mounts.
    """
    looked = ground.folder / "looked"
    if not runs.exists():
        return []
    run.send_signal(signal.SIGSTOP)
    try:
        shutil.copytree(runs, looked)
    finally:
        run.send_signal(signal.SIGCONT)
    try:
        return committed_in(looked)
    finally:
        shutil.rmtree(looked)


def resumed(kill: Kill, reference: Uninterrupted, committed: list[Kept]) -> Iterator[str]:
    """Resume the run, and yield its faults."""
    ground = kill.ground
    made = [path.parent for name in ("runs", "elsewhere") for path in sorted((ground.folder / name).glob("*/run.json"))]
    if not made:
        if committed:
            yield "the run is lost"
        kill.note["resumed"] = "begun anew"
        if ground.finish(reference.study, *EXACTLY) != 0:
            yield f"cannot be begun anew: {ground.output()[-300:]}"
        elif len(trials_of(ground.runs[0])) != reference.trials:
            yield f"begun anew: {len(trials_of(ground.runs[0]))} trials, and {reference.trials} when quiet"
        return
    run = kill.moved(made[0]) if kill.moved else made[0]
    before = trials_of(run)
    if before[: len(committed)] != committed:
        yield f"of {len(committed)} trials that were committed {len(before)} are there, or they are others"
    proved = [outcome for outcome, _ in cells_of(run)]
    status = ground.finish("--resume", run, *EXACTLY)
    faults = [reason for outcome, reason in cells_of(run) if outcome != "ok"]
    after = trials_of(run)
    yield from _failed_anew(cells_of(run), proved, after[len(before) :])
    reasons = faults + sorted({trial.reason or trial.outcome for trial in after if trial.outcome != "ok"})
    kill.note["resumed"] = status
    # A failed trial stays failed, and the run's status shows it; others may have been made up for.
    if status != 0 and not (status == 1 and reasons):
        yield f"resumed, it ended with status {status}: {ground.output()[-300:]}"
    if (left := ground.left()) != NOTHING:
        yield f"left by the resumed run: { {what: value for what, value in left.items() if value} }"
    if after[: len(before)] != before:
        yield "trials that were committed have changed"
    sizes, whole = batch_sizes(before), batch_sizes(after)
    if parts := [batch for batch, size in sizes.items() if size != whole[batch]]:
        yield f"of the batches {parts} a part was there"
    if reasons:
        kill.note["harmed"] = [str(reason)[:200] for reason in reasons]
    # Failed trials are kept with those made up for them; a failed cell has no trials.
    is_whole = len(after) == reference.trials if not reasons else len(after) >= reference.trials or faults
    if not is_whole:
        yield f"{len(after)} trials, and {reference.trials} when quiet"


def _failed_anew(
    cells: Sequence[tuple[str | None, str | None]], proved: Sequence[str | None], trials: Sequence[Kept]
) -> Iterator[str]:
    """Yield new failures of the undisturbed resumed run: cells that had not failed before, and trials."""
    had_failed = {place for place, outcome in enumerate(proved) if outcome not in (None, "ok")}
    found = [reason for place, (outcome, reason) in enumerate(cells) if outcome != "ok" and place not in had_failed]
    if found:
        yield f"cells that failed in the resumed run: {found}"
    if failed := sorted({trial.reason or trial.outcome for trial in trials if trial.outcome != "ok"}):
        yield f"trials that failed in the resumed run: {failed}"


def answers(tolls: Mapping[str, Any], reference: Uninterrupted, *, harmed: bool) -> tuple[Counter[str], list[str]]:
    """Compare a resumed run's tolls with the quiet run's: the number that agree, and those that do not.

    A toll agrees if its interval overlaps with the other run's, or if its ratio is near the other's, because a few in a
    hundred miss by chance alone. After a failed trial there may be too few blocks for an interval, and a failed cell
    has no toll.
    """
    found, apart = Counter[str](), []
    for key, toll in reference.tolls.items():
        other = tolls.get(key)
        if other is None or other["low"] is None:
            if not harmed:
                apart.append(f"no toll of {key}: {other and other['reason']}")
            continue
        found["verdict"] += other["verdict"] == toll["verdict"]
        if other["low"] <= toll["high"] and toll["low"] <= other["high"]:
            found["interval"] += 1
        elif 1 / NEAR <= other["ratio"] / toll["ratio"] <= NEAR:
            found["near"] += 1
        else:
            apart.append(f"another answer: {key}: {toll['low']}-{toll['high']} became {other['low']}-{other['high']}")
    return found, apart


def files_beside(ground: Ground) -> list[str]:
    """Remove files outside the run, and return their names."""
    found = sorted(
        path.name
        for path in ground.folder.iterdir()
        if path.suffix not in MADE_BY_THE_BENCH and path.name not in {*BESIDE, "runs", "elsewhere"}
    )
    for name in found:
        path = ground.folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    return found
