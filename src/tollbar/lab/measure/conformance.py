"""Conformance tests of the runner contract, run on any program."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tollbar.core import proc
from tollbar.core.records import CONTRACT, ChunkRecord, Outcome
from tollbar.core.runner import Session, Stopped, ask

LIMIT_S = 60.0
# Seconds and operations of the requested chunks. They are long compared with the overhead: a line read and written, and
# the lead before the clocks start.
ASKED = ((0.1, 1), (0.001, 3), (0.1, 1), (0.1, 1))
# At least the time that a runner waits for its turn in a batch.
REST_S = 0.1
# Time to read, parse, answer and write a line, in any language.
LINE_NS = 5e6
# Allowed work before the clocks start: a tenth of the requested time, or one operation if that takes at most a quarter.
# It depends on the runner's estimate of an operation's cost, which a busy machine changes by half.
LEAD, LONG, ESTIMATE = 0.1, 0.25, 1.5
# Waits that the kernel does not report: for a core that another guest of the machine has.
WAIT_S = 0.2
# Number of operations for the comparison with a single one; caches change the cost of each by no more than this share.
MANY, ALIKE = 8, 0.6
# Shorter operations vanish in clock reading and cold caches.
LEAST_NS = 100e3
# No hash, cipher or signature processes bytes faster than this: no core loads more than 64 bytes in a cycle.
LONG_BYTES, FASTEST_BYTES_PER_NS = 1 << 20, 300.0
# If each operation starts a process, a busy machine changes its cost by more than 1 MiB adds.
LONGEST_BYTES = 16 * LONG_BYTES


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one promise of the contract, with the observation."""

    kept: bool | None
    """True if the promise was kept; None: it could not be tested, for the reason in `seen`."""
    promise: str
    seen: str = ""


def hold(command: Sequence[str], measure: Mapping[str, Any], verify: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield findings on a runner for a task that it has proved: its session, and required refusals.

    `measure` and `verify` are the task in both modes, the second with a known answer if there is one. The choice must
    perform work, unlike the null choice.
    """
    for promise, change, outcome in _REFUSED:
        record = ask(command, {**verify, **change(verify)}, limit_s=LIMIT_S)
        yield Finding(record.outcome is outcome, promise, f"{record.outcome}: {record.reason or 'it was accepted'}")
    yield _own_answer(command, verify)
    short_ns = yield from _session(command, measure)
    yield from _counts(command, measure, short_ns)


# Changes that turn a good task into one that the runner must refuse, and the expected outcome.
_REFUSED: Sequence[tuple[str, Callable[[Mapping[str, Any]], Mapping[str, Any]], Outcome]] = (
    (
        "a task of another version of the contract is a failure",
        lambda task: {"contract": CONTRACT - 1},
        Outcome.FAILED,
    ),
    (
        "a setting that it does not read is a failure",
        lambda task: {"setting": {**task["setting"], "colour": "red"}},
        Outcome.FAILED,
    ),
    (
        "a choice that it does not have is unsupported",
        lambda task: {"choice": "no-such-choice"},
        Outcome.UNSUPPORTED,
    ),
)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A chunk as reported by its runner and by the kernel, in nanoseconds."""

    asked_ns: float
    chunk: ChunkRecord
    rested_ns: int
    """CPU time of the runner's processes during the rest before the chunk."""
    cpu_ns: int
    """CPU time of the runner's processes from the request to the answer."""
    elapsed_ns: int
    queued_ns: int
    """Time in which the runner or this process was runnable and others had their core, from request to answer."""

    @property
    def own_ns(self) -> int:
        """CPU time of the chunk itself, as reported."""
        return self.chunk.cpu_ns - self.chunk.observed.background_ns

    @property
    def each_ns(self) -> float:
        """CPU time of one operation, as reported."""
        return self.own_ns / self.chunk.operations

    @property
    def lead_ns(self) -> float:
        """Largest allowed CPU time before the clocks start."""
        one_ns = self.each_ns if self.each_ns <= ESTIMATE * LONG * self.asked_ns else 0.0
        return ESTIMATE * max(LEAD * self.asked_ns, one_ns)


def _session(command: Sequence[str], task: Mapping[str, Any]) -> Generator[Finding, None, float]:
    """Yield findings. Return the cost of an operation in nanoseconds; 0 if the session failed."""
    promise, seen = "its first line says that it is ready, and which code it is", []
    try:
        with Session(command, task) as session:
            yield Finding(True, promise, session.ready(LIMIT_S).provider)
            for seconds, operations in ASKED:
                promise = f"a chunk is at least {seconds * 1e3:.0f} ms and {operations} operations, and one line"
                one = _advance(session, seconds, operations)
                seen.append(one)
                said = f"{one.chunk.wall_ns / 1e6:.1f} ms, {one.chunk.operations} operations"
                yield Finding(True, promise, said)
            promise = "at the end of its input it says how it went, and ends"
            record = session.finish()
            yield Finding(record.outcome is Outcome.OK, promise, record.reason or "ok")
    except Stopped as stopped:
        yield Finding(False, promise, stopped.record.reason or "")
        return 0.0
    yield from _clocks(seen)
    return min(one.each_ns for one in seen)


def _advance(session: Session, seconds: float, operations: int, rest_s: float = REST_S) -> _Seen:
    """Return one chunk after a rest, with observations of its runner's processes. Raises Stopped."""
    before_ns = proc.cpu_ns(proc.tree(session.pid))
    time.sleep(rest_s)
    # The runner is a descendant of this process.
    queued_ns = proc.run_queue_wait_ns(os.getpid())
    began_ns, start_ns = time.monotonic_ns(), proc.cpu_ns(proc.tree(session.pid))
    chunk = session.advance(seconds, operations, LIMIT_S)
    elapsed_ns = time.monotonic_ns() - began_ns
    spent_ns = proc.cpu_ns(proc.tree(session.pid)) - start_ns
    queued_ns = _held_up(proc.run_queue_wait_ns(os.getpid()) - queued_ns, elapsed_ns, spent_ns)
    return _Seen(seconds * 1e9, chunk, start_ns - before_ns, spent_ns, elapsed_ns, queued_ns)


def _held_up(queued_ns: int, elapsed_ns: int, spent_ns: int) -> int:
    """Return the time in which others had the core.

    Simultaneous waits of threads are counted for each thread, even if they wait for each other while the runner has the
    core; waits of ended threads are missing.
    """
    return max(0, min(queued_ns, elapsed_ns - spent_ns))


def _clocks(seen: Sequence[_Seen]) -> Iterator[Finding]:
    """Yield findings that compare reported times with the kernel's, over all chunks."""
    slack_ns = LINE_NS * len(seen) + proc.TICK_NS
    says_ns, kernel_ns = sum(one.own_ns for one in seen), sum(one.cpu_ns for one in seen)
    said = f"{says_ns / 1e6:.1f} ms, and the kernel counts {kernel_ns / 1e6:.1f} ms with the beginnings of chunks"
    most_ns = says_ns + sum(one.lead_ns for one in seen) + slack_ns
    yield Finding(kernel_ns <= most_ns, "its CPU time is no less than its processes used", said)
    yield Finding(says_ns <= kernel_ns + slack_ns, "its CPU time is no more than its processes used", said)

    asked_ns, wall_ns = sum(one.elapsed_ns for one in seen), sum(one.chunk.wall_ns for one in seen)
    queued_ns = sum(one.queued_ns for one in seen)
    most_ns = ESTIMATE * wall_ns + sum(one.lead_ns for one in seen) + WAIT_S * 1e9
    said = f"{wall_ns / 1e6:.1f} ms, and its answers took {asked_ns / 1e6:.1f} ms"
    said += f", {queued_ns / 1e6:.1f} ms of that in wait for a core" if queued_ns else ""
    yield Finding(asked_ns - queued_ns <= most_ns, "it answers when its clock stops", said)

    # The first rest follows the warm-up, whose line may still be in transit.
    rested_ns = sum(one.rested_ns - one.chunk.observed.background_ns for one in seen[1:])
    said = f"{rested_ns / 1e6:.1f} ms of CPU time that no chunk has, in {REST_S * (len(seen) - 1):.1f} s"
    rests = "between chunks it sleeps, and what its collector and compiler use is in the next one's `background_ns`"
    yield Finding(rested_ns <= slack_ns, rests, said)


def _counts(command: Sequence[str], task: Mapping[str, Any], short_ns: float) -> Iterator[Finding]:
    """Yield findings whether it performed the counted operations, on a long message if one is measurable."""
    setting = task["setting"]
    is_longer = isinstance(setting.get("bytes"), int) and setting["bytes"] * 4 <= LONG_BYTES
    longer = {**task, "setting": {**setting, "bytes": LONG_BYTES}} if is_longer else task
    exact, done = "asked for operations and no time, it does as many", "it does the operations that it counts"
    try:
        with Session(command, longer) as session:
            session.ready(LIMIT_S)
            asked = [(0.0, 1)] * 5 + [(0.0, MANY)] * 3 + [(0.02, 1)] * 3
            seen = [(count, _advance(session, seconds, count, rest_s=0.0)) for seconds, count in asked]
            session.finish()
    except Stopped as stopped:
        yield Finding(False, done, stopped.record.reason or "")
        return
    untimed = [(count, one.chunk.operations) for count, one in seen if not one.asked_ns]
    said = ", ".join(f"{did} of {count}" for count, did in dict.fromkeys(untimed))
    yield Finding(all(count == did for count, did in untimed), exact, said)

    alone_ns = min(one.each_ns for count, one in seen if not one.asked_ns and count == 1)
    among_ns = min(one.each_ns for count, one in seen if one.asked_ns or count == MANY)
    said = f"{alone_ns / 1e3:.0f} µs alone, {among_ns / 1e3:.0f} µs among others"
    is_long = max(alone_ns, among_ns) >= LEAST_NS
    yield Finding(among_ns >= ALIKE * alone_ns if is_long else None, done, said if is_long else f"too short: {said}")

    dearer = "a long message costs more than a short one"
    if not is_longer or not short_ns:
        yield Finding(None, dearer, "the task has no message that could be longer")
        return
    # In a chunk of few operations, reading the clock is a large part of an operation that takes almost no time.
    long_ns = statistics.median(one.each_ns for _, one in seen if one.asked_ns)
    finding = _is_dearer(dearer, (setting["bytes"], short_ns), (LONG_BYTES, long_ns))
    if not finding.kept:
        finding = _far_longer(command, longer, dearer, (setting["bytes"], short_ns)) or finding
    yield finding


def _is_dearer(promise: str, short: tuple[int, float], long: tuple[int, float]) -> Finding:
    """Return the comparison of two messages, each given by its bytes and the nanoseconds of an operation."""
    (short_bytes, short_ns), (long_bytes, long_ns) = short, long
    said = f"{short_bytes} bytes {short_ns / 1e3:.1f} µs, {long_bytes} bytes {long_ns / 1e3:.1f} µs"
    return Finding(long_ns - short_ns >= long_bytes / FASTEST_BYTES_PER_NS, promise, said)


def _far_longer(
    command: Sequence[str], task: Mapping[str, Any], promise: str, short: tuple[int, float]
) -> Finding | None:
    """Compare the short message with the longest one, for operations to which 1 MiB adds little.

    Returns None if the runner does not accept a message of that length.
    """
    try:
        with Session(command, {**task, "setting": {**task["setting"], "bytes": LONGEST_BYTES}}) as session:
            session.ready(LIMIT_S)
            each_ns = [_advance(session, 0.02, 1, rest_s=0.0).each_ns for _ in range(3)]
            session.finish()
    except Stopped:
        return None
    return _is_dearer(promise, short, (LONGEST_BYTES, statistics.median(each_ns)))


def _own_answer(command: Sequence[str], verify: Mapping[str, Any]) -> Finding:
    promise = "a known answer is worked out, and not handed back"
    right = verify["inputs"].get("expected_hex")
    if right is None:
        return Finding(None, promise, "there is none for this choice")
    wrong = f"{int(right[:2], 16) ^ 1:02x}{right[2:]}"
    record = ask(command, {**verify, "inputs": {**verify["inputs"], "expected_hex": wrong}}, limit_s=LIMIT_S)
    answer = record.proof.answer if record.proof else None
    return Finding(answer is None or answer.lower() != wrong.lower(), promise, record.reason or f"its own: {answer}")
