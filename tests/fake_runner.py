#!/usr/bin/env python3
"""A runner that returns what its task says it should, and fails in the way it is told to.

It speaks the whole contract and measures nothing: its "CPU time" is the number of iterations that the task's
choice carries. FAKE_FAULT names a fault (see `FAULTS`) as MODE:FAULT, such as `measure:crash`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time


def record_of(task: dict) -> dict:
    """The record of a runner in good health."""
    receipt = {"provider": "fake 1.0", "name": "fake 1.0"}
    if task["mode"] == "list":
        return {"outcome": "ok", "receipt": receipt, "offers": [{"family": "spin", "choice": "spin-1"}]}
    if task["mode"] == "verify":
        proof = {"answer": task["inputs"].get("expected_hex"), "accepted": ["itself"], "refused": ["another"]}
        return {"outcome": "ok", "receipt": receipt, "proof": proof}
    # The noise is a function of the task, so that the same run says the same twice.
    noise = random.Random(f"{task['seed']}/{task['choice']}").uniform(0.99, 1.01)
    cost_ns = max(1, round(task["setting"].get("iterations", 0) * noise))
    return {
        "outcome": "ok",
        "receipt": receipt,
        "operations": 20,
        "bytes": 0,
        "cpu_ns": 20 * cost_ns,
        "wall_ns": 21 * cost_ns,
        "batches": [[10, 10 * cost_ns], [10, 10 * cost_ns]],
        "checked": 20,
        "memory_bytes": 0,
    }


def crash(record: dict) -> None:
    """Ends by a signal."""
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(record: dict) -> None:
    """Ends with a status and a word."""
    sys.exit("out of luck")


def hang(record: dict) -> None:
    """Says nothing for ever, and starts another that does the same."""
    if os.fork() >= 0:
        time.sleep(3600)


def spew(record: dict) -> None:
    """Never stops talking."""
    while True:
        sys.stdout.write("x" * 65536)


FAULTS = {
    "crash": crash,
    "leave": leave,
    "hang": hang,
    "spew": spew,
    "rubbish": lambda record: sys.exit(print("hello") or 0),
    "half": lambda record: sys.exit(print(json.dumps(record)[:40]) or 0),
    "nothing": lambda record: sys.exit(0),
    "wrong": lambda record: record["proof"].update(answer="00ff"),
    "gullible": lambda record: record["proof"].update(refused=[]),
    "unproven": lambda record: record.pop("proof"),
    "nameless": lambda record: record.update(receipt={}),
    "unsupported": lambda record: record.update(outcome="unsupported", reason="not in this build"),
    "reasonless": lambda record: record.update(outcome="failed"),
    "idle": lambda record: record.update(operations=0, batches=[], checked=0),
    "unchecked": lambda record: record.update(checked=1),
    "uneven": lambda record: record.update(batches=[[3, 3]]),
    "negative": lambda record: record.update(cpu_ns=-5),
    "timeless": lambda record: record.update(wall_ns=0),
}


def main() -> None:
    """One task in, one record out."""
    task = json.load(sys.stdin)
    record = record_of(task)
    mode, _, fault = os.environ.get("FAKE_FAULT", "").partition(":")
    if mode == task["mode"]:
        FAULTS[fault](record)
    print(json.dumps(record))


if __name__ == "__main__":
    main()
