"""Answers: how soon finished runs are analysed, shown, reported and exported. A minute; nothing is measured."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from bench.figures import TOLLBAR, Figure, timed
from tollbar import results, study
from tollbar.core import machine
from tollbar.core.records import RUNNER, Chunk, Outcome, Proven, Trial
from tollbar.results.store import Store
from tollbar.study import plan
from tollbar.study.plan import batches

# Each size has a cell of every digest.
DIGESTS = 12
TEXT = """
question  = "How long does a large run take to judge?"
family    = "digest"
providers = ["rustcrypto"]
baseline  = "sha-256"
[vary]
bytes = [{sizes}]
[measure]
blocks = {blocks}
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """Command on a made-up run, and the seconds that it may take."""

    what: str
    sizes: int
    blocks: int
    words: tuple[str, ...]
    goal_s: float


COMMANDS = (
    Asked("1,008 cells analysed, shown and reported", 84, 12, ("report", "{run}"), 2.5),
    Asked("1,008 cells analysed and shown", 84, 12, ("judge", "{run}"), 2.5),
    Asked("choose --run on 420 rows", 35, 12, ("choose", "digest", "--run", "{run}"), 0.35),
    Asked("12 cells of 2,500 blocks analysed and shown", 1, 2500, ("judge", "{run}"), 4.0),
    Asked("12 cells of 2,500 blocks exported", 1, 2500, ("export", "{run}"), 4.0),
)


def figures() -> Iterator[Figure]:
    """Yield the time of each command, its start included."""
    # Compiled like an installed package: compiling takes as long as most commands.
    with tempfile.TemporaryDirectory() as name, patch.dict(os.environ, {"PYTHONPYCACHEPREFIX": f"{name}/compiled"}):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        small = run_of(Path(name), 1, 4)
        for words in dict.fromkeys(asked.words for asked in COMMANDS):
            timed(TOLLBAR, *(word.format(run=small) for word in words), cwd=Path(name))
        runs: dict[tuple[int, int], Path] = {}
        for asked in COMMANDS:
            size = asked.sizes, asked.blocks
            if size not in runs:
                runs[size] = run_of(Path(name), *size)
            done = timed(TOLLBAR, *(word.format(run=runs[size]) for word in asked.words), cwd=Path(name))
            goal = f"at most {asked.goal_s:g} s"
            yield Figure(f"answers: {asked.what}", goal, f"{done.wall_s:.2f} s", done.wall_s <= asked.goal_s)


def run_of(folder: Path, sizes: int, blocks: int) -> Path:
    """Make a run of made-up trials: all digests at each of these sizes."""
    said = ", ".join(f'"{256 * (n + 1)} B"' for n in range(sizes))
    text = TEXT.format(sizes=said, blocks=blocks)
    planned = plan.make([study.read("large", text, where="large")], seed=1)
    store = results.create(planned, folder, command=(), libraries=(), fingerprint=machine.fingerprint())
    _make_up(store, planned.studies[0])
    store.close()
    return store.directory


def _make_up(store: Store, planned: plan.StudyPlan) -> None:
    noise = random.Random(1)
    measure = planned.study.measure
    order = 0
    for cell in planned.cells:
        store.record_proof(Proven(cell.study, cell.key, Outcome.OK, None, 1, (), ("a tampered message",)))
    for block in batches.blocks(planned, 1, measure.blocks):
        for batch in block:
            trials = [_trial(visit, order + place, measure.rounds, noise) for place, visit in enumerate(batch.visits)]
            store.record(trials)
            order += len(trials)


def _trial(visit: batches.Visit, order: int, rounds: int, noise: random.Random) -> Trial:
    ns = 1000 * (1 + len(visit.cell.choice.name) % 7)
    costs = [round(5000 * ns * noise.lognormvariate(0, 0.02)) for _ in range(rounds)]
    return Trial(
        study=visit.cell.study,
        cell=visit.cell.key,
        repeat=visit.repeat,
        block=visit.block,
        batch=visit.batch,
        order=order,
        started_s=float(order),
        outcome=Outcome.OK,
        reason=None,
        chunks=tuple(
            Chunk(number, 5000, cost + 1000, {RUNNER: cost}, probes_ns=(_probe_ns(noise), _probe_ns(noise)))
            for number, cost in enumerate(costs)
        ),
        paid_by=(RUNNER,),
        memory_bytes=0,
        steal_ns=0,
        machine_load=0.0,
    )


def _probe_ns(noise: random.Random) -> float:
    """Return the time of a probe that finds the core quiet four times in five."""
    return 25_000.0 * noise.choice((1.0, 1.01, 1.02, 1.04, 1.4))
