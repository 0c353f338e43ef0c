#!/usr/bin/env -S python3 -I -S
"""A runner that speaks the whole contract, measures nothing, and fails as requested.

It computes the answers by itself. Its "CPU time" is the number of iterations of the task's choice, with some noise. As
a load client it connects to no server, and makes up the account of a server.

FAKE_FAULT names a fault (see `FAULTS`) as MOMENT:FAULT, such as `verify:crash` or `chunk:crash`; with
MOMENT:FAULT:CHOICE only that choice is struck.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

RECEIPT = {"provider": "fake 1.0", "name": "fake 1.0"}
WORD = (1 << 64) - 1
# CPU time of a server's component for a request of a fake load client.
SERVED_NS = 1000


def chain(iterations: int) -> str:
    """Return the answer that the family `spin` defines."""
    x = 1
    for _ in range(iterations):
        x = (x * 6364136223846793005 + 1442695040888963407) & WORD
    return f"{x:016x}"


def record_of(task: dict) -> dict:
    """Return the one line of a healthy runner that lists or verifies."""
    if task["mode"] == "list":
        return {"outcome": "ok", "receipt": RECEIPT, "offers": [{"family": "spin", "choice": "spin-1"}]}
    proof = {"answer": chain(task["setting"].get("iterations", 0)), "accepted": ["itself"], "refused": ["another"]}
    return {"outcome": "ok", "receipt": RECEIPT, "proof": proof}


def refusal_of(task: dict) -> str | None:
    """Return the reason to refuse a task, as every runner must, or None."""
    if task["contract"] != 2:
        return "this runner speaks version 2 of the contract"
    if task["mode"] == "list":
        return None
    if "load" in task:
        return None
    if not task["choice"].startswith("spin-") and task["choice"] != "none":
        return f"there is no choice {task['choice']}"
    unread = set(task["setting"]) - {"iterations"}
    return f"the setting {', '.join(unread)} means nothing here" if unread else None


def session(task: dict, strike: object) -> None:
    """Answer chunk after chunk.

    The noise is a function of the task, so that equal runs give equal answers.
    """
    cost_ns = max(1, task["setting"].get("iterations", 0))
    source = random.Random(f"{task['seed']}/{task['choice']}")
    luck = source.uniform(0.997, 1.003)
    say(strike("ready", {"ready": {**RECEIPT, "operation_ns": cost_ns}}))
    for number, line in enumerate(sys.stdin):
        asked = json.loads(line)["advance"]
        began = time.perf_counter_ns()
        operations = max(asked["operations"], 20)
        cpu_ns = round(operations * cost_ns * luck * source.uniform(0.999, 1.001))
        served_ns = SERVED_NS * operations if "load" in task else 0
        # A chunk lasts as long as requested, and as long as its work, by the lab's clock as well.
        while (wall_ns := time.perf_counter_ns() - began) < max(asked["seconds"] * 1e9, cpu_ns + served_ns):
            time.sleep(0.0002)
        chunk = {"operations": operations, "cpu_ns": cpu_ns, "wall_ns": wall_ns, "observed": {}}
        if "load" in task:
            paid = {"cpu_ns": SERVED_NS * operations}
            chunk["observed"] = {"requests": operations, "components": dict.fromkeys(task["load"]["components"], paid)}
        say(strike("chunk", chunk, number))
    say(strike("last", {"outcome": "ok", **({"load": {}} if "load" in task else {})}))


def say(line: dict) -> None:
    """Print one line of the contract."""
    print(json.dumps(line), flush=True)


def crash(line: dict) -> None:
    """End by a signal."""
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(line: dict) -> None:
    """End with a status and an error line."""
    sys.exit("out of luck")


def fork(line: dict) -> None:
    """Start another process, which sleeps."""
    if os.fork() == 0:
        time.sleep(3600)


def fork_away(line: dict) -> None:
    """Start another process in a session of its own, which sleeps."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)


def hang(line: dict) -> None:
    """Print nothing and sleep, after starting another process in a session of its own that sleeps, too."""
    fork_away(line)
    time.sleep(3600)


def spew(line: dict) -> None:
    """Print without end."""
    while True:
        sys.stdout.write("x" * 65536)


def twice(line: dict) -> None:
    """Answer twice."""
    say(line)


def bye(line: dict) -> None:
    """End successfully before the request."""
    say({"outcome": "ok"})
    sys.exit(0)


FAULTS = {
    "crash": crash,
    "leave": leave,
    "hang": hang,
    "fork": fork,
    "fork-away": fork_away,
    "spew": spew,
    "twice": twice,
    "bye": bye,
    "rubbish": lambda line: sys.exit(print("hello", flush=True) or 0),
    "half": lambda line: sys.exit(print(json.dumps(line)[:40], flush=True) or 0),
    "nothing": lambda line: sys.exit(0),
    "wrong": lambda line: line["proof"].update(answer="00ff"),
    "silent": lambda line: line["proof"].update(answer=None),
    "gullible": lambda line: line["proof"].update(refused=[]),
    "unproven": lambda line: line.pop("proof"),
    "nameless": lambda line: (line.get("ready") or line["receipt"]).update(provider="", name=""),
    "unsupported": lambda line: line.update(outcome="unsupported", reason="not in this build"),
    "reasonless": lambda line: line.update(outcome="failed"),
    "idle": lambda line: line.update(operations=0),
    "few": lambda line: line.update(operations=line["operations"] - 1000),
    "countless": lambda line: line.update(operations=1 << 63),
    "negative": lambda line: line.update(cpu_ns=-5),
    "timeless": lambda line: line.update(wall_ns=0),
    "short": lambda line: line.update(wall_ns=1000),
    "long": lambda line: line.update(wall_ns=10**12),
    "other-clock": lambda line: line.update(cpu_ns=line["wall_ns"] * 10_000),
    # The sums agree; the probes report an implausibly quiet core.
    "sliced": lambda line: line.update(observed={"slices": [{**line, "observed": None, "probes_ns": [2000, 2000]}]}),
    "failing": lambda line: line["observed"].update(errors={"reset": 1, "timeout": 1}),
    "boasting": lambda line: line["observed"].update(requests=line["observed"]["requests"] - 1),
    "blind": lambda line: line["observed"].update(components={}),
    "effortless": lambda line: line["observed"].update(components={"web": {"cpu_ns": 0}}),
    "unsaid": lambda line: line.pop("load"),
    "sorry": lambda line: line.update(outcome="failed", reason="the third answer was wrong"),
}
# Moments of a session at which a fault can strike; a chunk is struck from the third on, in mid-round.
MOMENTS = ("ready", "chunk", "last")
STRUCK_FROM = 2


def main() -> None:
    """Read one task and do it."""
    task = json.loads(sys.stdin.readline())
    refusal = refusal_of(task)
    if refusal:
        say({"outcome": "failed", "reason": refusal})
        return
    mode, _, rest = os.environ.get("FAKE_FAULT", "").partition(":")
    fault, _, choice = rest.partition(":")
    struck = bool(mode) and choice in ("", task.get("choice"))
    if task["mode"] != "measure":
        record = record_of(task)
        if struck and mode == task["mode"]:
            FAULTS[fault](record)
        say(record)
        return

    def strike(moment: str, line: dict, number: int = STRUCK_FROM) -> dict:
        if struck and mode == moment and number >= STRUCK_FROM:
            FAULTS[fault](line)
        return line

    session(task, strike)


if __name__ == "__main__":
    main()
