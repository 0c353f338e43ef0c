"""Servers: the lab's own time for a trial on a server, with all starts and stops. Half a minute."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench.figures import TOLLBAR, Figure, timed, unmeasured
from bench.studies import HANDSHAKES, SERVED
from tollbar import results
from tollbar.core.records import Trial
from tollbar.results import Row, Run

GOAL_MS = 250.0
BLOCKS = 5
ROUNDS = 4

STUDY = HANDSHAKES.format(
    servers='["nginx", "httpd", "embedded"]', served=SERVED, measure=f"rounds = {ROUNDS}\nblocks = {BLOCKS}"
)


def figures() -> Iterator[Figure]:
    """Yield for each server the lab's time: start, readiness, proof, the load client's start, stop, and commit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "servers.toml"
        path.write_text(STUDY)
        done = timed(TOLLBAR, "run", str(path), "--json", "--no-report", cwd=Path(folder))
        try:
            run = results.read(Path(folder) / json.loads(done.out)["run"])
        except ValueError:
            yield unmeasured("servers: the lab adds to a trial", f"status {done.status}")
            return
    rows = [row for one in run.studies for row in one.rows]
    for server in ("nginx", "httpd", "embedded"):
        found = sorted(gap_s for row, gap_s in gaps(run) if row.server == server)
        goal = f"at most {GOAL_MS:.0f} ms" if server == "nginx" else "(for comparison)"
        what = f"servers: the lab adds to a trial on {server} (median)"
        if not found:
            why = next((row.reason for row in rows if row.server == server and row.reason), "no trial")
            yield unmeasured(what, why, goal)
            continue
        took_ms = median(found) * 1e3
        here = f"{took_ms:.0f} ms (9 of 10 within {found[len(found) * 9 // 10] * 1e3:.0f} ms)"
        yield Figure(what, goal, here, took_ms <= GOAL_MS if server == "nginx" else None)


def gaps(run: Run) -> Iterator[tuple[Row, float]]:
    """Yield each trial's equal share of its batch's time outside of chunks, for all batches but a study's last.

    That is start, readiness, proof of the library, warm-up, probes and waiting for quiet moments, the throughput phase,
    the end, and the commit.
    """
    for one in run.studies:
        batches: dict[tuple[int, int], list[tuple[Row, Trial]]] = {}
        for row in one.rows:
            for trial in (*row.trials, *row.repeats):
                batches.setdefault((trial.block, trial.batch), []).append((row, trial))
        ordered = sorted(batches.values(), key=lambda batch: batch[0][1].started_s)
        for batch, after in pairwise(ordered):
            spent_s = sum(trial.wall_ns for _, trial in batch) / 1e9
            each_s = (after[0][1].started_s - batch[0][1].started_s - spent_s) / len(batch)
            yield from ((row, each_s) for row, _ in batch)
