"""Runners: programs that measure. One JSON task on standard input, one JSON record on standard output.

Every runner is a process of its own, on a core of its own, that dies with the lab. Whatever it does, what
comes back is a `Record`: a runner that crashes, hangs or prints rubbish has failed, with a reason.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tollbar.errors import TollbarError


class Outcome(StrEnum):
    """What became of a task."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


class Proof(BaseModel):
    """What an operation showed for itself: right things accepted, wrong things refused."""

    model_config = ConfigDict(frozen=True)
    answer: str | None = None
    accepted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class ComponentRecord(BaseModel):
    """What one component of a server cost while it was asked: all processes of its tree."""

    model_config = ConfigDict(frozen=True)
    cpu_ns: int
    held_up_ns: int = 0
    """Time in which it would have run and others had its core."""
    memory_bytes: int = 0
    """The most each process ever held, summed: pages that they share are counted in each."""
    context_switches: int = 0
    processes: int = 1


class Negotiated(BaseModel):
    """What the two sides of so many TLS connections agreed on, in the specifications' names."""

    model_config = ConfigDict(frozen=True)
    version: str
    suite: str
    group: str = ""
    certificate: str = ""
    certificate_key: str = ""
    resumed: bool = False
    count: int = 0


class Slice(BaseModel):
    """A slice of the timed part: its end, and what was done and paid in it."""

    model_config = ConfigDict(frozen=True)
    at_ms: float
    requests: int
    client_cpu_ns: int = 0
    components: Mapping[str, int] = {}


class Steady(BaseModel):
    """The part of a load in which new requests were still started: what a rate can be taken from."""

    model_config = ConfigDict(frozen=True)
    requests: int
    wall_ns: int


class LoadRecord(BaseModel):
    """What a load client saw of a server, beside its own cost."""

    model_config = ConfigDict(frozen=True)
    requests: int
    wall_ns: int
    """To the last answer: what was in flight when nothing new was started any more is part of the account."""
    steady: Steady | None = None
    errors: Mapping[str, int] = {}
    latency_us: tuple[tuple[int, int], ...] = ()
    """(upper bound of a bucket in microseconds, answers in it)."""
    series: tuple[Slice, ...] = ()
    bytes_sent: int = 0
    bytes_received: int = 0
    connections: int = 0
    handshakes_full: int = 0
    handshakes_resumed: int = 0
    negotiated: tuple[Negotiated, ...] = ()
    client_libraries: tuple[str, ...] = ()
    """The TLS libraries that its clients spoke through."""
    client_cpu_ns: int = 0
    client_busy: float = 0.0
    """The load client's CPU time over elapsed time."""
    client_held_up_ns: int = 0
    """Time in which the load client would have run and others had its core."""
    client_context_switches: int = 0
    client_memory_bytes: int = 0
    components: Mapping[str, ComponentRecord] = {}

    @property
    def requests_per_s(self) -> float:
        """Answers a second, while new requests were started."""
        part = self.steady or self
        return part.requests / part.wall_ns * 1e9 if part.wall_ns else 0.0

    @property
    def server_cpu_ns(self) -> int:
        """CPU time of all components together."""
        return sum(component.cpu_ns for component in self.components.values())

    @property
    def server_busy(self) -> float:
        """The server's CPU time over elapsed time: how much of its one core it used."""
        return self.server_cpu_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def server_held_up(self) -> float:
        """Over elapsed time, how long the server would have run and others had its core."""
        held_up_ns = sum(component.held_up_ns for component in self.components.values())
        return held_up_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def client_held_up(self) -> float:
        """The same of the load client."""
        return self.client_held_up_ns / self.wall_ns if self.wall_ns else 0.0

    def latency_at(self, share: float) -> float:
        """The latency in microseconds that this share of answers did not exceed; 0 where there were none."""
        total = sum(count for _, count in self.latency_us)
        passed = 0
        for bound, count in self.latency_us:
            passed += count
            if passed >= share * total:
                return float(bound)
        return 0.0


class Record(BaseModel):
    """A runner's answer. Fields that this version does not know are let pass: runners have their own pace."""

    model_config = ConfigDict(frozen=True)
    outcome: Outcome
    reason: str | None = None
    receipt: Mapping[str, Any] = {}
    offers: tuple[Mapping[str, str], ...] = ()
    proof: Proof | None = None
    operations: int = 0
    bytes: int = 0
    cpu_ns: int = 0
    wall_ns: int = 0
    batches: tuple[tuple[int, int], ...] = ()
    checked: int = 0
    memory_bytes: int = 0
    load: LoadRecord | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Record:
        if self.outcome is not Outcome.OK and not self.reason:
            raise ValueError(f"the outcome `{self.outcome}` needs a reason")
        if min(self.operations, self.cpu_ns, self.wall_ns, self.checked) < 0:
            raise ValueError("a count or a time is below zero")
        return self


def failed(reason: str, outcome: Outcome = Outcome.FAILED) -> Record:
    """The record of a runner that gave none."""
    return Record(outcome=outcome, reason=reason)


@cache
def engine() -> Path:
    """Where the engine is. Raises TollbarError with what to do when it is not installed."""
    name = "tollbar-engine"
    places = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    for place in places:
        if os.access(place / name, os.X_OK):
            return place / name
    found = shutil.which(name)
    if found is None:
        raise TollbarError("the engine is not installed", where=name, hint="`make run` builds and installs it")
    return Path(found)


# A record holds a few hundred batches; a runner that sends more than this is not answering the task.
MOST_BYTES = 16 * 1024 * 1024
# The end of what a runner said on standard error, which is where it says why it died.
KEPT_TALK_BYTES = 2000


def ask(command: Sequence[str], task: Mapping[str, Any], *, limit_s: float, core: int | None = None) -> Record:
    """Hands a task to a fresh process of this runner and waits for its record, `limit_s` seconds at most."""
    pinned = ["--core", str(core)] if core is not None else []
    guarded = [str(engine()), "guard", *pinned, "--", *command]
    # A file in memory, not a pipe: a runner that never reads cannot block the lab.
    with open(os.memfd_create("task"), "w+b") as stdin:
        stdin.write(json.dumps(task).encode())
        stdin.seek(0)
        process = subprocess.Popen(
            guarded, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            answer, talk, ended = _listen(process, limit_s)
        finally:
            _end(process)
    if not ended:
        return failed(f"no record within {limit_s:.0f} s", Outcome.TIMED_OUT)
    if len(answer) > MOST_BYTES:
        return failed(f"answered more than {MOST_BYTES // 1024**2} MiB")
    if process.returncode != 0:
        return failed(_how_it_ended(process.returncode, talk))
    return _read(answer)


def _listen(process: subprocess.Popen[bytes], limit_s: float) -> tuple[bytes, str, bool]:
    """What it says until it closes both ends, ends, or the time is up: (answer, talk, ended by itself)."""
    assert process.stdout is not None
    assert process.stderr is not None
    deadline = time.monotonic() + limit_s
    answer, talk = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, answer)
        selector.register(process.stderr, selectors.EVENT_READ, talk)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return bytes(answer), _text(talk), False
            for key, _ in selector.select(left):
                read = os.read(key.fd, 1 << 16)
                if not read:
                    selector.unregister(key.fileobj)
                key.data.extend(read)
            del talk[:-KEPT_TALK_BYTES]
            if len(answer) > MOST_BYTES:
                return bytes(answer), _text(talk), True
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return bytes(answer), _text(talk), False
    return bytes(answer), _text(talk), True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and whatever it started, if it is still there, and reaps it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _text(raw: bytearray) -> str:
    return raw.decode(errors="replace").strip()


def _how_it_ended(status: int, talk: str) -> str:
    if status < 0:
        how = f"the runner was ended by {signal.Signals(-status).name}"
    else:
        how = f"the runner ended with status {status}"
    return f"{how}: {talk.splitlines()[-1]}" if talk else how


def _read(answer: bytes) -> Record:
    try:
        return Record.model_validate_json(answer)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        return failed(f"the runner's answer is not a record: {where + ': ' if where else ''}{fault['msg']}")
