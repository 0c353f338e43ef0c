"""Slices: the effect of the probe between them on the work, and the spread of runs with and without slices.

Two minutes on otherwise idle cores; more `RUNS` are more precise. The host's own quiet is printed with each figure.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from bench.figures import Figure, unmeasured
from bench.studies import Document
from tollbar import study
from tollbar.core import machine
from tollbar.core.runner import Session, Stopped, engine
from tollbar.lab.measure.rounds import SLICE_S
from tollbar.study import plan

PAIRS = 1_500
RUNS = 6
# Largest accepted effect of the probe on the cost of the work around it.
MOST_ADDED = 0.002
_CHUNK_NS = 5e6
_READY_LIMIT_S, _LIMIT_S = 60.0, 10.0

STUDIES = {
    "digests of 64 KiB": ("digest", ("sha-256", "sha-512", "blake2b-512"), 'bytes = ["64 KiB"]'),
    "signing": ("signature", ("ecdsa-p256", "ed25519", "rsa-2048"), 'op = ["sign"]'),
}
_STUDY = """
question  = "?"
family    = "{family}"
choices   = {choices}
providers = ["libcrypto"]
baseline  = "{baseline}"

[vary]
{vary}

[measure]
blocks = 4
chunk  = "5 ms"
rounds = 10
"""
# The command with slices of another length.
_RUN = "import sys; from tollbar.lab.measure import rounds; rounds.SLICE_S = float(sys.argv.pop(1)); "
_RUN += "from tollbar.cli import main; main()"


def figures(pairs: int = PAIRS, runs: int = RUNS) -> Iterator[Figure]:
    """Yield the figures of `added` and `spread`."""
    yield from added(pairs)
    yield from spread(runs)


def added(pairs: int = PAIRS) -> Iterator[Figure]:
    """Yield the cost of an operation in sliced chunks over that in whole ones, in turns in one process."""
    core = machine.measuring_core()
    if core is None:
        yield unmeasured("slices: what the probe adds", "there is no core to measure on")
        return
    machine.keep_off(core)
    planned = plan.make([study.read(name.split()[0], _text(name), where=name) for name in STUDIES], seed=1)
    for cell in (cell for one in planned.studies for cell in one.cells):
        what, goal = f"slices: what the probe adds to {cell.choice.title}", f"at most {MOST_ADDED:.1%}"
        try:
            logs = _apart(core, cell.task("measure", 1), pairs)
        except Stopped as stopped:
            yield unmeasured(what, stopped, goal)
            continue
        middle, low, high = _median(logs)
        said = f"{exp(middle) - 1:+.2%} [{exp(low) - 1:+.2%}, {exp(high) - 1:+.2%}], {len(logs)} pairs"
        yield Figure(what, goal, said, low <= MOST_ADDED)


def _text(name: str) -> str:
    family, choices, vary = STUDIES[name]
    return _STUDY.format(family=family, choices=json.dumps(choices), baseline=choices[0], vary=vary)


def _apart(core: int, task: Mapping[str, Any], pairs: int) -> list[float]:
    """Return logarithms of sliced over whole, of neighbouring chunks.

    Raises Stopped.
    """
    logs = []
    with Session((str(engine()), "op"), task, core=core) as session:
        operations = max(1, round(_CHUNK_NS / session.ready(_READY_LIMIT_S).operation_ns))
        for number in range(pairs):
            order = (SLICE_S, 0.0) if number % 2 else (0.0, SLICE_S)
            spent = {one: session.advance(0.0, operations, _LIMIT_S, slice_s=one).cpu_ns for one in order}
            logs.append(log(spent[SLICE_S] / spent[0.0]))
    return logs


def _median(values: list[float]) -> tuple[float, float, float]:
    """Return the median, and order statistics around it that cover in 95 % of cases."""
    ordered, half = sorted(values), 0.98 * sqrt(len(values))
    middle = len(values) / 2
    return median(values), ordered[int(middle - half)], ordered[min(int(middle + half), len(values) - 1)]


def spread(runs: int = RUNS) -> Iterator[Figure]:
    """Yield the spread of small studies in turns: without slices, and with them."""
    with tempfile.TemporaryDirectory() as folder:
        for name in STUDIES:
            (Path(folder) / "one.toml").write_text(_text(name))
            found: dict[str, list[Document]] = {"whole chunks": [], "slices": []}
            for _ in range(runs):
                for how, slice_s in (("whole chunks", "inf"), ("slices", str(SLICE_S))):
                    command = [sys.executable, "-c", _RUN, slice_s, "run", "./one.toml", "--json", "--no-report"]
                    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
                    if not done.returncode:
                        found[how] += json.loads(done.stdout)["studies"]
            for how, documents in found.items():
                yield _spread(f"slices: {name}, {runs} runs with {how}", documents)


def _spread(what: str, documents: list[Document]) -> Figure:
    if len(documents) < 2:
        return unmeasured(what, f"{len(documents)} runs ended well")
    ratios = defaultdict(list)
    for toll in (toll for one in documents for toll in one["tolls"] if not toll["aa"] and toll["ratio"]):
        ratios[toll["choice"]].append((toll["ratio"], not toll["noisy"]))
    said = [
        f"{choice} {min(all_of):.3f} to {max(all_of):.3f}, spread {stdev(map(log, all_of)):.1%},"
        f" {sum(quiet for _, quiet in some)} of {len(some)} quiet"
        for choice, some in ratios.items()
        for all_of in ([ratio for ratio, _ in some],)
        if len(all_of) > 1
    ]
    alone = fmean(one["quiet_share"] or 0.0 for one in documents)
    return Figure(what, "(for comparison)", f"{'; '.join(said)}; the core quiet {alone:.0%} of the time", None)
