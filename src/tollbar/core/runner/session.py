"""Sessions: a runner is made ready once, and then advanced chunk by chunk until its input ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tollbar.core.records import CONTRACT, ChunkRecord, Outcome, Ready, Record, failed
from tollbar.core.runner.confined import Account
from tollbar.core.runner.process import Ended, Process
from tollbar.core.wire import read_json

Said = TypeVar("Said", bound=BaseModel)
Meanwhile = tuple[float, Callable[[], object]]
"""Interval in seconds, and the callback to repeat while waiting for a chunk."""

# More CPU time than this number of cores could give means that the runner uses another clock than the contract's.
MOST_CORES = 1024
# The longest chunk, a minute, has 120,000 slices with a million values. An empty list takes 64 bytes of memory.
MOST_VALUES = 2_000_000
# A runner's clock may be read a little before or after the lab's, and clocks tick.
CLOCK_SLACK_NS = 1_000_000
# After its input has ended, a runner only has to print its last line.
END_LIMIT_S = 10.0
OUT_OF_TURN = "the runner answered out of turn; each line that it reads has one answer"


class Stopped(Exception):
    """Raised when a session gives no further chunk, with the record of the reason."""

    def __init__(self, record: Record) -> None:
        self.record = record
        super().__init__(record.reason)


def ask(
    command: Sequence[str],
    task: Mapping[str, Any],
    *,
    limit_s: float,
    core: int | None = None,
    account: Account | None = None,
) -> Record:
    """Return a fresh runner's answer to a task that has one record, within `limit_s` seconds."""
    process = Process(command, core=core, account=account)
    try:
        process.say({"contract": CONTRACT, **task})
        process.end_input()
        deadline = time.monotonic() + limit_s
        record = _read(process.hear(limit_s), Record)
        fault = process.how_it_ends(max(0.0, deadline - time.monotonic()))
        return failed(fault) if fault else record
    except Ended as ended:
        return _of(ended)
    except Stopped as stopped:
        return stopped.record
    finally:
        process.kill()


class Session:
    """A measuring runner, as a context; after it nothing of the runner is left.

    Every failure raises `Stopped` with a record of the reason, and the session cannot be used afterwards.
    """

    def __init__(
        self,
        command: Sequence[str],
        task: Mapping[str, Any],
        *,
        core: int | None = None,
        account: Account | None = None,
    ) -> None:
        self._process = Process(command, core=core, account=account)
        self._process.say({"contract": CONTRACT, **task})

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()

    def terminate(self) -> None:
        """End the runner from another thread; the thread that waits for it gets Stopped."""
        self._process.terminate()

    @property
    def pid(self) -> int:
        """Process id of the guard; the runner and its children are below it."""
        return self._process.pid

    def ready(self, limit_s: float) -> Ready:
        """Wait until the runner is ready and warm. Return its receipt. Raises Stopped."""
        said = _unless_ended(self._hear(limit_s))
        if not isinstance(said.get("ready"), dict):
            raise Stopped(failed("the runner did not report that it is ready"))
        if not said["ready"].get("provider"):
            raise Stopped(failed("the runner must report its provider's version, because every result names it"))
        return _validated(said["ready"], Ready)

    def advance(
        self,
        seconds: float,
        operations: int,
        limit_s: float,
        meanwhile: Meanwhile | None = None,
        *,
        slice_s: float = 0.0,
    ) -> ChunkRecord:
        """Return one chunk of at least `seconds` and at least `operations`. Raises Stopped.

        `slice_s` is the approximate duration of its slices, for a runner that can slice; 0: no slices. `meanwhile` is
        called at its interval until the chunk arrives.
        """
        if (early := self._process.line_here()) is not None:
            _chunk(early)
            raise Stopped(failed(OUT_OF_TURN))
        asked_ns = time.monotonic_ns()
        slices = {"slice_seconds": slice_s} if slice_s else {}
        self._process.say({"advance": {"seconds": seconds, "operations": operations}, **slices})
        if meanwhile is not None:
            every_s, do = meanwhile
            while not self._process.answers_within(every_s) and time.monotonic_ns() - asked_ns < limit_s * 1e9:
                do()
        left_s = limit_s - (time.monotonic_ns() - asked_ns) / 1e9
        chunk = _chunk(self._hear(max(0.0, left_s)))
        fault = _impossible(chunk, seconds, operations, time.monotonic_ns() - asked_ns)
        # The runner's own probe has another scale than the lab's: one quick reading would make all others count as
        # noisy.
        if chunk.observed.slices and not slice_s:
            fault = "the runner sent slices, which were not requested"
        if fault:
            raise Stopped(failed(fault))
        return chunk

    def finish(self) -> Record:
        """End the input and return the runner's last line, the outcome of the session."""
        try:
            if (early := self._process.line_here()) is not None:
                return _too_early(_last(early))
            self._process.end_input()
            record = _last(self._process.hear(END_LIMIT_S))
            if record.outcome is not Outcome.OK:
                return record
            fault = self._process.how_it_ends(END_LIMIT_S)
            return failed(fault) if fault else record
        except Ended as ended:
            return _of(ended)
        except Stopped as stopped:
            return stopped.record

    def _hear(self, limit_s: float) -> bytes:
        """Return the next line. Raises Stopped if none comes."""
        try:
            return self._process.hear(limit_s)
        except Ended as ended:
            raise Stopped(_of(ended)) from None


# Lines are distinguished by their keys alone. A line that arrives before the lab asks for it is read like one that
# arrives after, so that the reason of a failure does not depend on timing.


def _chunk(line: bytes) -> ChunkRecord:
    """Return a line as a chunk. Raises Stopped for another kind of line."""
    said = _unless_ended(line)
    if "ready" in said:
        raise Stopped(failed(OUT_OF_TURN))
    return _validated(said, ChunkRecord)


def _last(line: bytes) -> Record:
    """Return a line as the outcome of the session. Raises Stopped for another kind of line."""
    said = _document(line)
    if {"ready", "operations"} & said.keys():
        raise Stopped(failed(OUT_OF_TURN))
    return _validated(said, Record)


def _unless_ended(line: bytes) -> dict[str, Any]:
    """Return a line that is not an outcome. Raises Stopped for an outcome, because nothing follows it."""
    said = _document(line)
    if "outcome" in said:
        raise Stopped(_too_early(_validated(said, Record)))
    return said


def _too_early(record: Record) -> Record:
    """Return the outcome of a session that the runner ended by itself."""
    return failed("the runner ended before its input did") if record.outcome is Outcome.OK else record


def _impossible(chunk: ChunkRecord, seconds: float, operations: int, elapsed_ns: int) -> str | None:
    """Return why this chunk is impossible by the lab's own clock, or None."""
    # Checked first: a duplicate answer to the previous request may also be too small for this one.
    if chunk.wall_ns > elapsed_ns + CLOCK_SLACK_NS:
        elapsed = f"a chunk of {chunk.wall_ns / 1e6:.1f} ms came {elapsed_ns / 1e6:.1f} ms after its request"
        return f"the runner answered out of turn, or with another clock: {elapsed}"
    if chunk.operations < operations:
        return f"a chunk has {chunk.operations} operations; at least {operations} were requested"
    if chunk.wall_ns + CLOCK_SLACK_NS < seconds * 1e9:
        return f"a chunk of {chunk.wall_ns / 1e6:.3f} ms is too short; at least {seconds * 1e3:.3f} ms were requested"
    for what in ("operations", "cpu_ns", "wall_ns") if chunk.observed.slices else ():
        said, parts = getattr(chunk, what), sum(getattr(one, what) for one in chunk.observed.slices)
        if said != parts:
            return f"`{what}` is {said}, but its slices add up to {parts}"
    if chunk.observed.background_ns > chunk.cpu_ns:
        return "the CPU time between chunks exceeds the total CPU time"
    if chunk.cpu_ns > (chunk.wall_ns + chunk.observed.background_ns) * MOST_CORES:
        return "the CPU time exceeds that of all cores of the machine"
    return None


def _of(ended: Ended) -> Record:
    return failed(ended.reason, Outcome.TIMED_OUT if ended.timed_out else Outcome.FAILED)


def _document(line: bytes) -> dict[str, Any]:
    try:
        said = read_json(line.decode(), MOST_VALUES)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise Stopped(failed(f"the runner's answer is no JSON object: {line[:60].decode(errors='replace')!r}"))
    return said


def _read(line: bytes, model: type[Said]) -> Said:
    return _validated(_document(line), model)


def _validated(said: Mapping[str, Any], model: type[Said]) -> Said:
    try:
        return model.model_validate(said)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        what = f"the runner's answer is not one of the contract: {where + ': ' if where else ''}{fault['msg']}"
        raise Stopped(failed(what)) from None
