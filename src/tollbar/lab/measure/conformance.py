"""Any program held against the runner contract: what it must do, tried on the program itself."""

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
# Seconds and operations of the chunks that are asked for. Long beside what is lost around them: a line read and
# written, and the beginning that is worked before the clocks start.
ASKED = ((0.1, 1), (0.001, 3), (0.1, 1), (0.1, 1))
# As long as a runner waits for its turn among the others of its batch, and some.
REST_S = 0.1
# A line read, understood, answered and written, in any language.
LINE_NS = 5e6
# What may be worked before the clocks start: a tenth of the asked time, or one operation if that takes no more than a
# quarter. By the runner's own estimate of an operation's cost, which a busy machine moves by half.
LEAD, LONG, ESTIMATE = 0.1, 0.25, 1.5
# Waits that the kernel does not count as such: for a core that another guest of the machine has.
WAIT_S = 0.2
# So many operations at once, and one of them: what each costs differs by caches and by no more than this share.
MANY, ALIKE = 8, 0.6
# Shorter operations are lost in the reading of a clock and in cold caches.
LEAST_NS = 100e3
# No hash, cipher or signature takes in a byte faster than this: no core loads more than 64 bytes in a cycle.
LONG_BYTES, FASTEST_BYTES_PER_NS = 1 << 20, 300.0
# Where a process is started for each operation, a busy machine moves its cost by more than 1 MiB adds.
LONGEST_BYTES = 16 * LONG_BYTES


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise of the contract: whether it was kept, and what was seen."""

    kept: bool | None
    """None: it could not be tried, and `seen` says why."""
    promise: str
    seen: str = ""


def hold(command: Sequence[str], measure: Mapping[str, Any], verify: Mapping[str, Any]) -> Iterator[Finding]:
    """Tries a runner on a task that it has proved: its session, and what it must refuse.

    `measure` and `verify` are the task in both modes, the second with a known answer where there is one. A choice that
    does something: of the null choice there is nothing to see.
    """
    for promise, change, outcome in _REFUSED:
        record = ask(command, {**verify, **change(verify)}, limit_s=LIMIT_S)
        yield Finding(record.outcome is outcome, promise, f"{record.outcome}: {record.reason or 'it was accepted'}")
    yield _own_answer(command, verify)
    short_ns = yield from _session(command, measure)
    yield from _counts(command, measure, short_ns)


# Each changes a good task into one that the runner must not let pass, and says how that is refused.
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
    """A chunk as its runner tells it and as the kernel does, in nanoseconds."""

    asked_ns: float
    chunk: ChunkRecord
    rested_ns: int
    """CPU time of the runner's processes while it was asked nothing, before."""
    cpu_ns: int
    """The same from when it was asked to its answer."""
    elapsed_ns: int
    queued_ns: int
    """Of that, what the runner or this process would have run, and others had their core."""

    @property
    def own_ns(self) -> int:
        """What it says of the chunk itself."""
        return self.chunk.cpu_ns - self.chunk.observed.background_ns

    @property
    def each_ns(self) -> float:
        """Of one operation, as it says."""
        return self.own_ns / self.chunk.operations

    @property
    def lead_ns(self) -> float:
        """The most that it may work before its clocks start."""
        one_ns = self.each_ns if self.each_ns <= ESTIMATE * LONG * self.asked_ns else 0.0
        return ESTIMATE * max(LEAD * self.asked_ns, one_ns)


def _session(command: Sequence[str], task: Mapping[str, Any]) -> Generator[Finding, None, float]:
    """Yields findings. Returns what an operation costs in nanoseconds; 0 where the session failed."""
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
    """One chunk after a rest, its runner's processes watched from outside. Raises Stopped."""
    before_ns = proc.cpu_ns(proc.tree(session.pid))
    time.sleep(rest_s)
    # The runner is below this process.
    queued_ns = proc.run_queue_wait_ns(os.getpid())
    began_ns, start_ns = time.monotonic_ns(), proc.cpu_ns(proc.tree(session.pid))
    chunk = session.advance(seconds, operations, LIMIT_S)
    elapsed_ns = time.monotonic_ns() - began_ns
    spent_ns = proc.cpu_ns(proc.tree(session.pid)) - start_ns
    queued_ns = _held_up(proc.run_queue_wait_ns(os.getpid()) - queued_ns, elapsed_ns, spent_ns)
    return _Seen(seconds * 1e9, chunk, start_ns - before_ns, spent_ns, elapsed_ns, queued_ns)


def _held_up(queued_ns: int, elapsed_ns: int, spent_ns: int) -> int:
    """How long others had the core. Threads that wait at once are counted each, also for each other, in which time the
    runner has the core itself; and the waits of one that has ended are gone."""
    return max(0, min(queued_ns, elapsed_ns - spent_ns))


def _clocks(seen: Sequence[_Seen]) -> Iterator[Finding]:
    """What it says of time against what the kernel does, over all chunks."""
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

    # The first rest follows the warm-up, whose line may still be on its way.
    rested_ns = sum(one.rested_ns - one.chunk.observed.background_ns for one in seen[1:])
    said = f"{rested_ns / 1e6:.1f} ms of CPU time that no chunk has, in {REST_S * (len(seen) - 1):.1f} s"
    rests = "between chunks it sleeps, and what its collector and compiler use is in the next one's `background_ns`"
    yield Finding(rested_ns <= slack_ns, rests, said)


def _counts(command: Sequence[str], task: Mapping[str, Any], short_ns: float) -> Iterator[Finding]:
    """Whether it did the operations that it counts, on a long message, where one is long enough to be seen."""
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
    # In a chunk of one or of few operations what the clock itself takes is no small part of those that take none.
    long_ns = statistics.median(one.each_ns for _, one in seen if one.asked_ns)
    finding = _is_dearer(dearer, (setting["bytes"], short_ns), (LONG_BYTES, long_ns))
    if not finding.kept:
        finding = _far_longer(command, longer, dearer, (setting["bytes"], short_ns)) or finding
    yield finding


def _is_dearer(promise: str, short: tuple[int, float], long: tuple[int, float]) -> Finding:
    """Compares two messages, each given by its bytes and by the nanoseconds of an operation."""
    (short_bytes, short_ns), (long_bytes, long_ns) = short, long
    said = f"{short_bytes} bytes {short_ns / 1e3:.1f} µs, {long_bytes} bytes {long_ns / 1e3:.1f} µs"
    return Finding(long_ns - short_ns >= long_bytes / FASTEST_BYTES_PER_NS, promise, said)


def _far_longer(
    command: Sequence[str], task: Mapping[str, Any], promise: str, short: tuple[int, float]
) -> Finding | None:
    """Compare the short message with the longest one, for operations to which 1 MiB adds little.

    None: the runner does not take so long a message.
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
