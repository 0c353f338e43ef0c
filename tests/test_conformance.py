"""`tollbar verify --runner`: a good program keeps every promise, and each broken promise is reported.

The good program is `tests/toy/hash-runner`; each faulty one is that program with one thing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import Tollbar
from tollbar.lab.measure.conformance import Finding, hold

GOOD = Path(__file__).parent / "toy" / "hash-runner"
KNOWN = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
TASK: dict[str, Any] = {
    "contract": 2,
    "mode": "measure",
    "family": "digest",
    "op": "hash",
    "choice": "sha-256",
    "provider": {"kind": "runner"},
    "setting": {"bytes": 4096, "cpu": "native"},
    "inputs": {},
    "seed": 7,
}
VERIFY = {**TASK, "mode": "verify", "inputs": {"of": "abc", "expected_hex": KNOWN}}

CHUNK = "    say(operations=done[0], cpu_ns=done[1], wall_ns=done[2], observed={})\n"
READY = 'say(ready={**RECEIPT, "operation_ns": each_ns})\n'
# Text of the good program, its replacement, and the beginning of the promise that this breaks.
FAULTS = {
    "talks before it is ready": (READY, 'print("hello")\n' + READY, "its first line says that it is ready"),
    "does not say which code it is": (READY, 'say(ready={"operation_ns": each_ns})\n', "its first line says"),
    "chunks that are too short": ('advance["seconds"] * 1e9', 'advance["seconds"] * 1e7', "a chunk is at least 100 ms"),
    "fewer operations than asked for": (
        'while done[0] < advance["operations"] or done[2] < asked_ns:\n'
        '        count = max(int((asked_ns - done[2]) / each_ns) + 1, advance["operations"] - done[0], 1)',
        "while not done[0] or done[2] < asked_ns:\n        count = max(int((asked_ns - done[2]) / each_ns), 1)",
        "it does the operations that it counts",
    ),
    "more operations than asked for": (
        'advance["operations"] - done[0], 1)',
        'advance["operations"] - done[0], 64)',
        "asked for operations and no time",
    ),
    "chatters between chunks": (CHUNK, CHUNK + "    say(still='here')\n", "a chunk is at least"),
    "answers late": (CHUNK, "    time.sleep(0.5)\n" + CHUNK, "it answers when its clock stops"),
    "says half of its CPU time": ("cpu_ns=done[1]", "cpu_ns=done[1] // 2", "its CPU time is no less"),
    "says twice its CPU time": ("cpu_ns=done[1]", "cpu_ns=done[1] * 2", "its CPU time is no more"),
    "leaves a process out of its account": (
        CHUNK,
        "    import os\n    child = os.fork()\n    if not child:\n        perform(hash_of, data, done[0])\n"
        "        os._exit(0)\n    os.waitpid(child, 0)\n" + CHUNK,
        "its CPU time is no less",
    ),
    "works between chunks": (
        "for line in iter(sys.stdin.readline",
        "import threading\nthreading.Thread(target=lambda: perform(hash_of, data, 10**9), daemon=True).start()\n"
        "for line in iter(sys.stdin.readline",
        "between chunks it sleeps",
    ),
    "counts operations that it did not do": (
        "perform(hash_of, data, count))]",
        "(count, *perform(hash_of, data, count // 2 + 1)[1:]))]",
        "it does the operations that it counts",
    ),
    "counts twice what it did": (
        "perform(hash_of, data, count))]",
        "(2 * count, *perform(hash_of, data, count)[1:]))]",
        "asked for operations and no time",
    ),
    "keeps the answer": (
        "hash_of, setting, inputs = CHOICES[",
        "import functools\ncached = {name: functools.cache(one) for name, one in CHOICES.items()}\n"
        "hash_of, setting, inputs = cached[",
        "a long message costs more",
    ),
    "takes any contract": ('task.get("contract") != 2', "False", "a task of another version"),
    "does not look at its settings": ("if setting:", "if False:", "a setting that it does not read"),
    "fails for what it does not have": (
        'refuse("unsupported", f"hashlib has no',
        'refuse("failed", f"hashlib has no',
        "a choice that it does not have",
    ),
    "hands the known answer back": ("hash_of(message).hex() if", 'inputs["expected_hex"] if', "a known answer is"),
    "does not end": ('say(outcome="ok")\n$', "time.sleep(60)\n", "at the end of its input"),
    "ends badly": ('say(outcome="ok")\n$', 'say(outcome="ok")\nsys.exit(3)\n', "at the end of its input"),
}
# Findings by clocks need CPU time: on a busy machine a tenth of a second may hold too little, and an answer may be
# late. A fault that is never reported, or a promise that is always broken, still fails. `test_promises.py` tests the
# rules themselves with simulated clocks.
ATTEMPTS = 6
CLOCKS = ("its CPU time is", "it answers when", "between chunks it sleeps", "it does the operations")
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the good program with one text (`$` ends the file) replaced by another, and return its path."""
    good = GOOD.read_text("utf-8")

    def written(old: str, new: str) -> Path:
        text = good + "$"
        assert 1 == text.count(old), f"the example has no single {old!r}"
        path = tmp_path / "runner"
        path.write_text(text.replace(old, new).removesuffix("$"))
        path.chmod(0o755)
        return path

    return written


def held(command: Sequence[str], measure: Mapping[str, Any], verify: Mapping[str, Any]) -> list[Finding]:
    """Return the findings of a runner that must keep every promise; retry if only clocks speak against it."""
    for _ in range(ATTEMPTS):
        findings = list(hold(command, measure, verify))
        broken = [one for one in findings if not one.kept]
        if not broken or not all(one.promise.startswith(CLOCKS) for one in broken):
            break
    return findings


def findings_of(path: Path) -> Iterator[Finding]:
    """Yield the findings of the runner at this path, promise by promise."""
    return hold([str(path)], TASK, VERIFY)


def test_a_good_runner_keeps_every_promise(write: Write) -> None:
    findings = held([str(write("$", "$"))], TASK, VERIFY)
    assert [] == [one for one in findings if one.kept is not True]
    assert 15 <= len(findings)


def test_a_message_that_adds_less_than_the_machine_moves_is_made_longer(write: Write) -> None:
    """For example where each operation starts a process and the machine was busier during the short message."""
    busier = "        until = time.process_time() + (0.003 if len(data) < 1 << 20 else 0)\n"
    busier += "        while time.process_time() < until:\n            pass\n"
    path = write("        hash_of(data)\n    return", "        hash_of(data)\n" + busier + "    return")
    (finding,) = (one for one in findings_of(path) if one.promise.startswith("a long message costs more"))
    assert finding.kept, finding
    assert "16777216 bytes" in finding.seen


@pytest.mark.share(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_broken_promise_is_told(write: Write, fault: str) -> None:
    old, new, promise = FAULTS[fault]
    path = write(old, new)
    seen = []
    attempts = ATTEMPTS if promise.startswith(CLOCKS) else 1
    for one in (finding for _ in range(attempts) for finding in findings_of(path)):
        seen.append(one)
        if one.kept is False and one.promise.startswith(promise):
            assert one.seen
            return
    pytest.fail(f"nothing is told: {seen}")


@pytest.mark.share(0)
@pytest.mark.parametrize(("fault", "status"), [("says half of its CPU time", 1), (None, 0)])
def test_the_command_says_what_is_kept(write: Write, tollbar: Tollbar, fault: str | None, status: int) -> None:
    old, new, _ = FAULTS[fault] if fault else ("$", "$", "")
    path = write(old, new)
    for _ in range(ATTEMPTS):
        done = tollbar("verify", "--runner", path)
        if status == done.returncode:
            break
    assert status == done.returncode, done.stdout
    assert "kept         a setting that it does not read is a failure" in done.stdout
    assert ("BROKEN       its CPU time is no less" in done.stdout) == bool(status)
    assert "promises of the contract kept" in done.stderr
