"""`python -m bench survive --kills N`: runs of every kind, struck at random moments by random means, and resumed.

After each: nothing of the run is left, each committed batch is unchanged, the run is resumed to its end, and its tolls
agree with those of a quiet run (intervals that overlap, or ratios within a tenth of each other), made at first or at
that moment. A kill is a line of the log; `--kills 1 --seed` with the seed of its line repeats it: same kind, same
means, same moment.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.ground import a_ground
from bench.survival.kinds import KINDS
from bench.survival.means import MEANS
from bench.survival.striking import Survivors


def pairs(kinds: list[str], means: list[str]) -> list[tuple[str, str]]:
    """Return every kind with every means that can strike it, in a fixed order."""
    found = [(kind, name) for kind in kinds for name in means if kind in MEANS[name].kinds]
    random.Random(0).shuffle(found)
    return found


def outcome(line: Mapping[str, Any]) -> str:
    """Return the category of a log line; a run that was not struck did not survive anything."""
    if "not_run" in line:
        return "not run"
    if line["wrong"]:
        return "wrong"
    if line["late"]:
        return "too late"
    return "survived" if line["struck"] else "not struck"


def main(arguments: list[str]) -> None:
    """Strike as often as set, with a line of the log each, and print a table.

    The status is 1 if one was wrong, or none survived.
    """
    parser = argparse.ArgumentParser(prog="python -m bench survive", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first kill; each has the next")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only runs of this kind (repeatable)")
    parser.add_argument("--means", action="append", choices=MEANS, help="only this means (repeatable)")
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir()) / "survive.jsonl")
    parser.add_argument("--suspended", type=float, default=2.0, metavar="SECONDS", help="how long a run is suspended")
    asked = parser.parse_args(arguments)
    all_pairs = pairs(asked.kind or list(KINDS), asked.means or list(MEANS))
    if not all_pairs:
        parser.error("no run of that kind can be struck so")
    # A shell that starts the bench in the background has it ignore this signal, and its child processes would inherit
    # that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found: Counter[str] = Counter()
    with a_ground() as ground, open(asked.log, "a", buffering=1) as log:
        survivors = Survivors(ground, asked.suspended)
        for seed in range(asked.seed, asked.seed + asked.kills):
            kind, means = all_pairs[seed % len(all_pairs)]
            try:
                line = survivors.kill(kind, means, seed)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                # A run that is too slow on a busy machine shows nothing.
                survivors.clear()
                line = {"seed": seed, "kind": kind, "means": means, "not_run": str(error)[-300:], "wrong": []}
            log.write(json.dumps(line) + "\n")
            print(
                f"{seed:6} {kind:13} {means:22} {'; '.join(line['wrong']) or line.get('not_run') or 'ok'}", flush=True
            )
            found[outcome(line)] += 1
    print(f"{asked.kills} kills: {dict(found)}; log: {asked.log}")
    sys.exit(1 if found["wrong"] or not found["survived"] else 0)
