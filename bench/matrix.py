"""Matrix: the study `tls-certificates`, whole and twice. On two cores that do nothing else, most of an hour.

For a first look, `TOLLBAR_BENCH_BLOCKS=2` in the environment has two blocks measured instead of the study's own
number. The figures then say so, and are held to no goal.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles

from bench.figures import TOLLBAR, Figure, timed
from bench.servers import gaps
from tollbar import results
from tollbar.measure import Outcome
from tollbar.results import Row, Run

STUDY = "tls-certificates"
BLOCKS_VARIABLE = "TOLLBAR_BENCH_BLOCKS"
NGINX_GOAL_S = 20 * 60.0
MOST_DIFFERENCE = 0.03


def figures() -> Iterator[Figure]:
    """How long nginx's part of it takes, and how far two runs are from each other."""
    blocks = os.environ.get(BLOCKS_VARIABLE)
    name = f"matrix: `{STUDY}`" + (f", reduced to {blocks} blocks" if blocks else "")
    command = (TOLLBAR, "run", STUDY, "--json", "--no-report", *(("--blocks", blocks) if blocks else ()))
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            done = timed(*command, cwd=Path(folder))
            try:
                runs.append(results.read(Path(folder) / json.loads(done.out)["run"]))
            except ValueError:
                yield Figure(name, "(not measured)", f"`tollbar run` ended with status {done.status}", None)
                return
            if len(runs) == 1:
                # While the second is under way, somebody may already read this.
                yield _time(name, runs[0], done.wall_s, whole=not blocks)
    for bed, of, how, judged in REPEATED:
        yield _repeats(
            f"{name} twice, server CPU a handshake on {bed}{how}", runs, bed, of, judged=judged and not blocks
        )


def _time(name: str, run: Run, wall_s: float, *, whole: bool) -> Figure:
    """nginx's trials, each from its start to the next one's; and of all else as large a part as nginx has of the cells.

    All else is proving the cells, and little beside.
    """
    rows = [row for one in run.studies for row in one.rows]
    taken = [(row.bed, gap_s) for row, _, gap_s in gaps(run)]
    nginx_s = sum(gap_s for bed, gap_s in taken if bed == "nginx")
    rest_s = wall_s - sum(gap_s for _, gap_s in taken)
    nginx_s += rest_s * sum(row.bed == "nginx" for row in rows) / len(rows)
    without = [row for row in rows if row.outcome is not Outcome.OK]
    fault = f"; {len(without)} of {len(rows)} cells have no result ({without[0].reason})" if without else ""
    return Figure(
        f"{name}, nginx's part",
        f"at most {NGINX_GOAL_S / 60:.0f} min" if whole else "(for comparison)",
        f"{nginx_s / 60:.1f} min (with httpd and embedded {wall_s / 60:.1f} min{fault})",
        nginx_s <= NGINX_GOAL_S and not without if whole else None,
    )


Cost = Callable[[Row, Row], float]
"""What a cell costs, given its baseline as well."""


def _typical(row: Row, _baseline: Row) -> float:
    """Nanoseconds: the median of its trials."""
    return median(trial.cost_ns for trial in row.trials)


def _undisturbed(row: Row, _baseline: Row) -> float:
    """Nanoseconds: the first decile, for whatever disturbs a trial makes it dearer."""
    return quantiles((trial.cost_ns for trial in row.trials), n=10, method="inclusive")[0]


def _of_baseline(row: Row, baseline: Row) -> float:
    """The median of the ratios within each block."""
    against = {trial.block: trial.cost_ns for trial in baseline.trials}
    return median(trial.cost_ns / against[trial.block] for trial in row.trials if trial.block in against)


REPEATED: tuple[tuple[str, Cost, str, bool], ...] = (
    ("nginx", _typical, "", True),
    ("httpd", _typical, "", False),
    ("embedded", _typical, "", False),
    ("nginx", _undisturbed, ", of the tenth of its trials that were least disturbed", False),
    ("nginx", _of_baseline, ", over plaintext in the same block", False),
)


def _repeats(what: str, runs: Sequence[Run], bed: str, of: Cost, *, judged: bool) -> Figure:
    """Over all cells that shake hands and have a result in both runs."""
    one, other = (_costs(run, bed, of) for run in runs)
    differences = sorted(abs(other[cell] / cost - 1) for cell, cost in one.items() if cell in other)
    goal = f"median difference at most {MOST_DIFFERENCE:.0%}" if judged else "(for comparison)"
    if not differences:
        return Figure(what, goal, "no cell has a result in both runs", False if judged else None)
    middle = median(differences)
    here = f"{middle:.1%} over {len(differences)} cells (9 of 10 within {differences[len(differences) * 9 // 10]:.1%})"
    return Figure(what, goal, here, middle <= MOST_DIFFERENCE if judged else None)


def _costs(run: Run, bed: str, of: Cost) -> dict[str, float]:
    rows = {row.key: row for one in run.studies for row in one.rows if row.outcome is Outcome.OK and row.trials}
    return {
        key: of(row, rows[row.against])
        for key, row in rows.items()
        if row.bed == bed and row.choice != "plaintext" and row.against in rows
    }
