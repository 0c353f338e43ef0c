"""Runner of contract 2 for Python's packages, such as `cryptography` and PyCryptodome (docs/runners.md).

Each process has one task: `operations` performs it, `with_*` has each package's calls, and this module times it.
"""

import importlib
import json
import platform
import sys
import time
from itertools import repeat
from math import ceil
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from operations import Refusal, offers_of, prepared

PACKAGES = ("cryptography", "pycryptodome")
MS = 1e6
# A window of the warm-up is as long as a usual chunk; two in a row within 2 % are steady.
WINDOW_NS, STEADY, LEAST_WARM_UP_NS, MOST_WARM_UP_NS = 5 * MS, 0.02, 10 * MS, 3000 * MS
# A tenth of the requested time is worked before the clocks start, unless an operation exceeds a quarter of it.
LEAD, LONG = 0.1, 0.25


def main():
    task = json.loads(sys.stdin.readline())
    if task.get("contract") != 2:
        raise Refusal("failed", "this runner supports contract 2 only")
    package = package_of(task.get("provider", {}).get("package", PACKAGES[0]))
    receipt = receipt_of(package)
    if task["mode"] == "list":
        defaults = {"defaults": {"hash": package.password_default()}} if hasattr(package, "password_default") else {}
        return say(outcome="ok", receipt=receipt | defaults, offers=offers_of(package))
    operation = prepared(task, package)
    if task["mode"] == "verify":
        proof = operation.prove(task["inputs"])
        return say(outcome="ok", receipt=receipt, proof=vars(proof))
    return measure(operation.perform, receipt)


def package_of(name):
    """Return the module with the calls of this package."""
    if name not in PACKAGES:
        raise Refusal("unsupported", f"this runner has no package {name}; it has {', '.join(PACKAGES)}")
    return importlib.import_module(f"with_{name.replace('-', '_')}")


def receipt_of(package):
    runtime = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "provider": f"{package.NAME} on {runtime}, {package.BACKEND}",
        "name": package.NAME,
        "parts": {"runtime": runtime, "backend": package.BACKEND},
    }


def measure(perform, receipt):
    """Serve a session: ready, then a chunk for each line."""
    memory_bytes = grown_by(perform)
    each_ns = until_steady(perform)
    memory = {} if memory_bytes is None else {"memory_bytes": memory_bytes}
    say(ready={**receipt, "operation_ns": each_ns, **memory})
    others_ns = of_other_threads_ns()
    for line in iter(sys.stdin.readline, ""):
        # CPU time of the packages' other threads meanwhile; this thread only reads and writes lines. The two clocks are
        # read one after the other, so the difference may seem to shrink once threads have worked.
        background_ns = max(0, of_other_threads_ns() - others_ns)
        asked = json.loads(line)["advance"]
        asked_ns = asked["seconds"] * 1e9
        if asked_ns == 0:
            perform_so_often(perform, max(int(LEAD * asked["operations"]), int(asked["operations"] > 1)))
        elif each_ns <= LONG * asked_ns:
            perform_so_often(perform, filling(LEAD * asked_ns, each_ns))
        operations, wall_ns, wall, cpu = 0, 0, time.monotonic_ns(), time.process_time_ns()
        while operations < asked["operations"] or wall_ns < asked_ns:
            count = max(filling(asked_ns - wall_ns, each_ns), asked["operations"] - operations)
            perform_so_often(perform, count)
            operations += count
            cpu_ns, wall_ns = time.process_time_ns() - cpu, time.monotonic_ns() - wall
        each_ns = (each_ns + max(cpu_ns, 1) / operations) / 2
        others_ns = of_other_threads_ns()
        observed = {"background_ns": background_ns}
        say(operations=operations, cpu_ns=max(cpu_ns, 1) + background_ns, wall_ns=wall_ns, observed=observed)
    say(outcome="ok")


def perform_so_often(perform, count):
    for _ in repeat(None, count):
        perform()


def of_other_threads_ns():
    """Return the CPU time of all other threads so far."""
    return max(0, time.process_time_ns() - time.thread_time_ns())


def filling(time_ns, each_ns):
    """Return the number of operations that fill this time: at least one."""
    return max(1, ceil(time_ns / each_ns))


def until_steady(perform):
    """Perform until two windows in a row agree. Return the CPU nanoseconds of one operation."""
    began, before_ns, count = time.process_time_ns(), 0.0, 1
    while True:
        window = time.process_time_ns()
        perform_so_often(perform, count)
        now = time.process_time_ns()
        each_ns, spent_ns = max(now - window, 1) / count, now - began
        is_whole = each_ns * count >= WINDOW_NS / 2
        is_steady = is_whole and before_ns and abs(each_ns / before_ns - 1) <= STEADY
        if (is_steady and spent_ns >= LEAST_WARM_UP_NS) or spent_ns >= MOST_WARM_UP_NS:
            return each_ns
        before_ns = each_ns if is_whole else 0.0
        count = min(filling(WINDOW_NS, each_ns), count * 10)


def grown_by(perform):
    """Perform once. Return the growth of resident memory in bytes; None if the kernel does not report it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        resting = memory_of("VmRSS")
        perform()
        return max(0, memory_of("VmHWM") - resting)
    except OSError:
        perform()
        return None


def memory_of(field):
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def say(**line):
    print(json.dumps(line), flush=True)


def run():
    """Run the task on standard input; print a refusal as an outcome."""
    try:
        main()
    except Refusal as refusal:
        say(outcome=refusal.outcome, reason=refusal.reason)


if __name__ == "__main__":
    run()
