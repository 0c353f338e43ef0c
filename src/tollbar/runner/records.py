"""What runners say: the lines of the runner contract, as types.

Fields that this version does not know are let pass: runners have their own pace.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

CONTRACT = 2
"""The version of the runner contract that tasks are written in."""


class Outcome(StrEnum):
    """What became of a task."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


class Made(BaseModel):
    """A signature that is another one each time, for another implementation to verify."""

    model_config = ConfigDict(frozen=True)
    of: str
    """The message, as text."""
    signature_hex: str
    public_key_der_hex: str
    """A SubjectPublicKeyInfo."""


class Proof(BaseModel):
    """What an operation showed for itself: right things accepted, wrong things refused."""

    model_config = ConfigDict(frozen=True)
    answer: str | None = None
    accepted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()
    """Refusals that could not be tried, each with the reason."""
    made: Made | None = None


class ComponentRecord(BaseModel):
    """What one component of a server cost while it was asked: all processes of its tree."""

    model_config = ConfigDict(frozen=True)
    cpu_ns: int = 0
    run_queue_wait_ns: int = 0
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


class Steady(BaseModel):
    """The part of a load in which new requests were still started: what a rate can be taken from."""

    model_config = ConfigDict(frozen=True)
    requests: int
    wall_ns: int


class Requested(BaseModel):
    """What a load client saw in a stretch of time, beside its own cost."""

    model_config = ConfigDict(frozen=True)
    requests: int = 0
    errors: Mapping[str, int] = {}
    latency_us: tuple[tuple[int, int], ...] = ()
    """(upper bound of a bucket in microseconds, answers in it)."""
    steady: Steady | None = None
    bytes_sent: int = 0
    bytes_received: int = 0
    connections: int = 0
    handshakes_full: int = 0
    handshakes_resumed: int = 0
    reopened: int = 0
    """Kept connections that the server had closed and that were made again."""
    components: Mapping[str, ComponentRecord] = {}
    client_run_queue_wait_ns: int = 0
    """Time in which the load client would have run and others had its core; the lab looks in the stretch alone."""


class Totals(BaseModel):
    """What a load client says of its whole session, when that ends."""

    model_config = ConfigDict(frozen=True)
    negotiated: tuple[Negotiated, ...] = ()
    client_libraries: tuple[str, ...] = ()
    """The TLS libraries that its clients spoke through."""
    client_context_switches: int = 0
    client_memory_bytes: int = 0
    components: Mapping[str, ComponentRecord] = {}


class LoadRecord(Requested, Totals):
    """What a load client saw of a server: in a longer stretch; or, without one, what it asked in all chunks."""

    wall_ns: int
    """To the last answer: what was in flight when nothing new was started any more is part of the account."""
    is_settled: bool = True
    """Whether it is of a stretch, which requests a second, response times and what limited them are taken from."""
    client_cpu_ns: int = 0

    @property
    def requests_per_s(self) -> float:
        """Answers a second, while new requests were started; 0 where there was no stretch."""
        if not self.is_settled:
            return 0.0
        part = self.steady or self
        return part.requests / part.wall_ns * 1e9 if part.wall_ns else 0.0

    @property
    def client_busy(self) -> float:
        """The load client's CPU time over elapsed time."""
        return self.client_cpu_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def server_cpu_ns(self) -> int:
        """CPU time of all components together."""
        return sum(component.cpu_ns for component in self.components.values())

    @property
    def server_busy(self) -> float:
        """The server's CPU time over elapsed time: how much of its one core it used."""
        return self.server_cpu_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def server_run_queue_wait(self) -> float:
        """Over elapsed time, how long the server would have run and others had its core."""
        run_queue_wait_ns = sum(component.run_queue_wait_ns for component in self.components.values())
        return run_queue_wait_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def client_run_queue_wait(self) -> float:
        """The same of the load client."""
        return self.client_run_queue_wait_ns / self.wall_ns if self.wall_ns else 0.0

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
    """A runner's answer to `list` and `verify`, and its last line in a session."""

    model_config = ConfigDict(frozen=True)
    outcome: Outcome
    reason: str | None = None
    receipt: Mapping[str, Any] = {}
    offers: tuple[Mapping[str, str], ...] = ()
    proof: Proof | None = None
    load: Totals | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Record:
        if self.outcome is not Outcome.OK and not self.reason:
            raise ValueError(f"the outcome `{self.outcome}` needs a reason")
        return self


def failed(reason: str, outcome: Outcome = Outcome.FAILED) -> Record:
    """The record of a runner that gave none."""
    return Record(outcome=outcome, reason=reason)


class Ready(BaseModel):
    """A session that is ready: the receipt, and what the warm-up showed."""

    model_config = ConfigDict(frozen=True, extra="allow")
    provider: str = Field(min_length=1)
    """The provider's own version line: a runner that cannot say it measures nothing."""
    operation_ns: float = 0.0
    """CPU time of one operation, as the warm-up found it; 0: not said."""
    memory_bytes: int = 0
    """How far memory grew during the first operation."""


class Observed(Requested):
    """What a chunk showed beside its cost; a family's own metrics stand here by their names."""

    model_config = ConfigDict(frozen=True, extra="allow")
    background_ns: int = Field(default=0, ge=0)
    """CPU time of a collector or a compiler since the last chunk, which is part of `cpu_ns`."""
    ticks: bool = False
    """A process of the server ended in it, and what it cost is known to a clock tick only."""
    unsettled: bool = False
    """The server was still at work long after it was asked nothing more: the account was never closed."""

    def value_of(self, metric: str) -> float | None:
        """The total over the chunk of one of the family's own metrics; None: the runner did not observe it."""
        value = (self.model_extra or {}).get(metric)
        return value if isinstance(value, int | float) else None

    @property
    def is_exact(self) -> bool:
        """Whether a number may rest on it."""
        return not (self.ticks or self.unsettled)


class ChunkRecord(BaseModel):
    """A chunk as the runner counted it."""

    model_config = ConfigDict(frozen=True)
    operations: int = Field(ge=1)
    cpu_ns: int = Field(ge=1)
    wall_ns: int = Field(ge=1)
    # Made anew, which is quicker than the deep copy that a default is.
    observed: Observed = Field(default_factory=Observed)
