"""What is looked for after a kill: what is left, what is lost, and whether the run comes to the same end."""

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

# What a run may put beside itself on a ground: temporary files, what it says, what the shim is told, the user's cache.
BESIDE = {"tmp", "output", "said.json", "told", ".cache"}
# What tolls are made of.
COSTS = ("cpu", "server-cpu")
# The ratio of two ratios that were measured at different times beside other kills, each of four blocks.
NEAR = 1.1
MADE_BY_THE_BENCH = (".toml", ".c", ".so")


class Uninterrupted(NamedTuple):
    """What a run of a kind comes to when nothing happens to it."""

    study: Path
    starting_s: float
    """From its start to its first batch."""
    measuring_s: float
    """From there to its end."""
    trials: int
    tolls: Mapping[str, Any]


def tolls_of(ground: Ground) -> dict[str, Any]:
    """Those of a cost that the last run printed, by what they are of."""
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
    """How many trials there are of each batch: all are committed at once."""
    return Counter((trial.study, trial.block, trial.batch) for trial in trials)


def committed_in(runs: Path) -> list[Kept]:
    """The trials that are on the disk at this moment."""
    for about in runs.glob("*/run.json"):
        return trials_of(about.parent)
    return []


def committed_in_mounts(ground: Ground, run: subprocess.Popen[bytes], runs: Path) -> list[Kept]:
    """The same of a copy, made while the lab is stopped: SQLite resolves links, and leaves those mounts by that."""
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
    """Goes on with the run, and yields what is not as it should be."""
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
    # What has failed is a failed trial for good, and the run says so; others may have been made up for.
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
    # What failed stands beside what was made up for it; a cell that failed has no trials.
    is_whole = len(after) == reference.trials if not reasons else len(after) >= reference.trials or faults
    if not is_whole:
        yield f"{len(after)} trials, and {reference.trials} when quiet"


def _failed_anew(
    cells: Sequence[tuple[str | None, str | None]], proved: Sequence[str | None], trials: Sequence[Kept]
) -> Iterator[str]:
    """What failed in the resumed run, to which nothing was done: cells that had not failed before, and trials."""
    had_failed = {place for place, outcome in enumerate(proved) if outcome not in (None, "ok")}
    found = [reason for place, (outcome, reason) in enumerate(cells) if outcome != "ok" and place not in had_failed]
    if found:
        yield f"cells that failed in the resumed run: {found}"
    if failed := sorted({trial.reason or trial.outcome for trial in trials if trial.outcome != "ok"}):
        yield f"trials that failed in the resumed run: {failed}"


def answers(tolls: Mapping[str, Any], reference: Uninterrupted, *, harmed: bool) -> tuple[Counter[str], list[str]]:
    """Compares a resumed run's tolls with the quiet run's: how many agree, and those that do not.

    A toll agrees by an interval that overlaps with the other run's, or, since of two such runs a few in a hundred do
    not by chance alone, by a ratio that is near the other's. Where a trial has failed there may be too few left for an
    interval, and a cell that failed has no toll.
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
    """Files outside the run, which are removed."""
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
