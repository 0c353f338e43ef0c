"""What a load client says of the server that it asked, beside its own cost, and what the two agreed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, FailFast, Field

MOST = 2**53 - 1
"""Of what a chunk counts: beyond it a double is not exact, and so many nanoseconds are a hundred days."""
Number = Annotated[int, Field(ge=-MOST, le=MOST)]


class ComponentRecord(BaseModel):
    """What one component of a server cost while it was asked: all processes of its tree."""

    model_config = ConfigDict(frozen=True)
    cpu_ns: Number = 0
    run_queue_wait_ns: Number = 0
    """Time in which it would have run and others had its core."""
    memory_bytes: Number = 0
    """The most each process ever held, summed: pages that they share are counted in each."""
    context_switches: Number = 0
    processes: Number = 1


MOST_COMPONENTS = 100
"""Limit of the components of a server. Ten thousand in each trial take minutes to be judged."""
Components = Annotated[Mapping[str, ComponentRecord], Field(max_length=MOST_COMPONENTS)]


class Negotiated(BaseModel):
    """What the two sides of so many TLS connections agreed on, in the specifications' names."""

    model_config = ConfigDict(frozen=True)
    version: str
    suite: str
    mac_order: str = ""
    """`encrypt-then-mac` or `mac-then-encrypt` with a CBC suite, else empty."""
    group: str = ""
    certificate: str = ""
    certificate_key: str = ""
    resumed: bool = False
    count: Number = 0

    @property
    def construction(self) -> str:
        """The suite, with the order of its MAC where its name leaves that open."""
        return f"{self.suite}, {self.mac_order}" if self.mac_order else self.suite


class Steady(BaseModel):
    """The part of a load in which new requests were still started: what a rate can be taken from."""

    model_config = ConfigDict(frozen=True)
    requests: Number
    wall_ns: Number


class Requested(BaseModel):
    """What a load client saw in a throughput phase, beside its own cost."""

    model_config = ConfigDict(frozen=True)
    requests: Number = 0
    errors: Mapping[str, Number] = {}
    latency_us: Annotated[tuple[tuple[Number, Number], ...], FailFast()] = ()
    """(upper bound of a bucket in microseconds, answers in it)."""
    steady: Steady | None = None
    bytes_sent: Number = 0
    bytes_received: Number = 0
    connections: Number = 0
    handshakes_full: Number = 0
    handshakes_resumed: Number = 0
    reopened: Number = 0
    """Kept connections that the server had closed and that were made again."""
    components: Components = {}
    client_run_queue_wait_ns: Number = 0
    """Time in which the load client would have run and others had its core; the lab looks in the throughput phase
    alone."""


class Totals(BaseModel):
    """What a load client says of its whole session, when that ends."""

    model_config = ConfigDict(frozen=True)
    negotiated: Annotated[tuple[Negotiated, ...], FailFast()] = ()
    client_libraries: Annotated[tuple[str, ...], FailFast()] = ()
    """The TLS libraries that its clients spoke through."""
    client_context_switches: Number = 0
    client_memory_bytes: Number = 0
    round_trip_ns: Annotated[Mapping[str, Number], Field(max_length=MOST_COMPONENTS)] = {}
    """Of a round trip before the load to the machine of each component that is on another one."""
    components: Components = {}


class LoadRecord(Requested, Totals):
    """What a load client saw of a server: in a throughput phase; or, without one, what it asked in all chunks."""

    wall_ns: Number
    """To the last answer: what was in flight when nothing new was started any more is part of the account."""
    is_settled: bool = True
    """Whether it is of a throughput phase, which requests a second, response times and what limited them are taken
    from."""
    client_cpu_ns: Number = 0

    @property
    def requests_per_s(self) -> float:
        """Answers a second, while new requests were started; 0 where there was no throughput phase."""
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
