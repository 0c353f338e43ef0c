"""Made-up runs of a fleet: ordinary run directories with known chunks and tolls."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tollbar import analysis, results, study
from tollbar.analysis import Verdict
from tollbar.analysis.kept import FILE, KeptJudgement, state
from tollbar.catalog.families import Value
from tollbar.core.records import RUNNER, Chunk, Outcome, Trial
from tollbar.decide import compare
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

QUIET_NS = (25_000.0, 25_000.0)
OPERATIONS = 100_003
BLOCKS, ROUNDS = 5, 2
FLAGS = ("aes", "sha_ni", "avx2", "avx512f", "vaes")
DIGESTS = """
question  = "What does a hash cost?"
family    = "digest"
providers = ["libcrypto", "rustcrypto"]
choices   = ["sha-256", "sha-512", "sha-1", "blake3"]
baseline  = "sha-256"

[vary]
bytes = ["64 B", "4 KiB"]
"""

Cost = Callable[[Mapping[str, Value]], float]
"""Function for the nanoseconds per operation of a cell with these coordinates."""


def fingerprint(cpu: str, *, flags: tuple[str, ...] = FLAGS, **more: object) -> dict[str, Any]:
    """Return the fingerprint of a machine with this processor."""
    return {"cpu": cpu, "flags": list(flags), "cores": 4, "kernel": "6.1.0", "architecture": "x86_64", **more}


def run_of(
    parent: Path,
    machine: Mapping[str, Any],
    cost_of: Cost,
    *,
    text: str = DIGESTS,
    name: str = "digests",
    seed: int = 1,
    quiet: bool = True,
    repeat: float = 1.0,
) -> Path:
    """Make a finished run without its report.

    `repeat`: the ratio of a baseline's second cost to its first.
    """
    planned = plan.make([study.read(name, text, where=name)], seed=seed)
    store = results.create(planned, parent, command=("tollbar", "run", name), libraries=(), fingerprint=machine,
                           best_probe_ns=QUIET_NS[0])  # fmt: skip
    chance = random.Random(seed)
    (only,) = planned.studies
    with store.database as database:
        database.execute("update cell set outcome = ?, known_answers = 1", (Outcome.OK,))
    for block in range(BLOCKS):
        sides = [(cell, repeat) for cell in only.cells for repeat in ((False, True) if cell.is_baseline else (False,))]
        began_s = time.time()
        store.record(
            [
                _trial(
                    cell,
                    is_repeat,
                    block,
                    order,
                    began_s,
                    cost_of(cell.coordinates) * (repeat if is_repeat else 1),
                    quiet,
                    chance,
                )
                for order, (cell, is_repeat) in enumerate(sides, len(sides) * block)
            ]
        )
    store.note_interim_look()
    store.close()
    compare.keep(analysis.judge(results.read(store.directory)))
    return store.directory


def like(run: Path, to: Path, machine: Mapping[str, Any], seed: int) -> Path:
    """Copy a run to this machine, with slightly different tolls."""
    shutil.copytree(run, to)
    for name in ("run.json", FILE):
        (to / name).unlink()
    said = json.loads((run / "run.json").read_text("utf-8"))
    (to / "run.json").write_text(json.dumps({**said, "seed": seed, "fingerprint": machine}), "utf-8")
    chance = random.Random(seed)
    kept = KeptJudgement.model_validate_json((run / FILE).read_bytes())
    studies = []
    for one in kept.studies:
        tolls = []
        for toll in one.tolls:
            by = chance.lognormvariate(0, 0.1)
            ratio, low, high = (value and value * by for value in (toll.ratio, toll.low, toll.high))
            tolls.append(toll._replace(ratio=ratio, low=low, high=high, verdict=_verdict(low, high)))
        studies.append(one.model_copy(update={"tolls": tolls}))
    (to / FILE).write_text(kept.model_copy(update={"of": state(to), "studies": studies}).model_dump_json(), "utf-8")
    return to


def _verdict(low: float | None, high: float | None) -> Verdict:
    if low is None or high is None:
        return Verdict.NOT_MEASURED
    return Verdict.COSTS if low > 1.03 else Verdict.SAVES if high < 0.97 else Verdict.UNCLEAR


def _trial(
    cell: Cell, repeat: bool, block: int, order: int, began_s: float, cost_ns: float, quiet: bool, chance: random.Random
) -> Trial:
    # A block's processes have a luck of their own.
    luck = chance.gauss(1, 0.002)
    chunks = []
    for number in range(ROUNDS):
        operations = OPERATIONS + 17 * number + block
        cpu_ns = round(cost_ns * luck * operations)
        probes_ns = QUIET_NS if quiet else (4 * QUIET_NS[0], 4 * QUIET_NS[1])
        chunks.append(Chunk(number, operations, cpu_ns, {RUNNER: cpu_ns}, probes_ns=probes_ns))
    return Trial(
        study=cell.study, cell=cell.key, repeat=repeat, block=block, batch=0, order=order, started_s=began_s,
        outcome=Outcome.OK, reason=None, chunks=tuple(chunks), paid_by=(RUNNER,), memory_bytes=0, steal_ns=0,
        machine_load=1.0,
    )  # fmt: skip
