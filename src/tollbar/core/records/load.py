"""Observations of a load client: the server's cost and answers, and the negotiated TLS connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, FailFast, Field

MOST = 2**53 - 1
"""Limit of the counts of a chunk: a double is exact up to it, and that many nanoseconds are a hundred days."""
Number = Annotated[int, Field(ge=-MOST, le=MOST)]


class ComponentRecord(BaseModel):
    """Cost of one component of a server during the load, over its whole process tree."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    cpu_ns: Number = 0
    run_queue_wait_ns: Number = 0
    """Time in which the component was runnable and others had its core."""
    memory_bytes: Number = 0
    """Sum of the peak memory of its processes; shared pages count in each."""
    context_switches: Number = 0
    processes: Number = 1


MOST_COMPONENTS = 100
"""Limit of the components of a server. Ten thousand in each trial take minutes to judge."""
Components = Annotated[Mapping[str, ComponentRecord], Field(max_length=MOST_COMPONENTS)]


class Negotiated(BaseModel):
    """Negotiated parameters of `count` TLS connections, in the specifications' names."""

    model_config = ConfigDict(frozen=True, defer_build=True)
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
        """Suite, with the order of its MAC if the name leaves that open."""
        return f"{self.suite}, {self.mac_order}" if self.mac_order else self.suite


class Steady(BaseModel):
    """The part of a load in which new requests were still started, from which the rate is taken."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    requests: Number
    wall_ns: Number


class Requested(BaseModel):
    """Observations of a load client in a throughput phase, in addition to its own cost."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    requests: Number = 0
    errors: Mapping[str, Number] = {}
    latency_us: Annotated[tuple[tuple[Number, Number], ...], FailFast()] = ()
    """Pairs of a bucket's upper bound in microseconds and the number of answers in it."""
    steady: Steady | None = None
    bytes_sent: Number = 0
    bytes_received: Number = 0
    connections: Number = 0
    handshakes_full: Number = 0
    handshakes_resumed: Number = 0
    reopened: Number = 0
    """Kept connections that the server closed and the client opened again."""
    components: Components = {}
    client_run_queue_wait_ns: Number = 0
    """Time in which the load client was runnable and others had its core, recorded in the throughput phase only."""


class Totals(BaseModel):
    """Observations of a load client over its whole session, reported at its end."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    negotiated: Annotated[tuple[Negotiated, ...], FailFast()] = ()
    client_libraries: Annotated[tuple[str, ...], FailFast()] = ()
    """TLS libraries that the clients used."""
    client_context_switches: Number = 0
    client_memory_bytes: Number = 0
    round_trip_ns: Annotated[Mapping[str, Number], Field(max_length=MOST_COMPONENTS)] = {}
    """Duration of a round trip before the load to each component on another machine."""
    components: Components = {}


class LoadRecord(Requested, Totals):
    """Observations of a load client in a throughput phase, or without one the sums over all chunks."""

    wall_ns: Number
    """Time until the last answer; requests in flight at the end of the load count."""
    is_settled: bool = True
    """True if it is of a throughput phase, so that it has request rates, response times and their limits."""
    client_cpu_ns: Number = 0

    @property
    def requests_per_s(self) -> float:
        """Answers a second while new requests were started; 0 without a throughput phase."""
        if not self.is_settled:
            return 0.0
        part = self.steady or self
        return part.requests / part.wall_ns * 1e9 if part.wall_ns else 0.0

    @property
    def client_busy(self) -> float:
        """CPU time of the load client over elapsed time."""
        return self.client_cpu_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def server_cpu_ns(self) -> int:
        """CPU time of all components together."""
        return sum(component.cpu_ns for component in self.components.values())

    @property
    def server_busy(self) -> float:
        """CPU time of the server over elapsed time, as the used share of its one core."""
        return self.server_cpu_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def server_run_queue_wait(self) -> float:
        """Time in which the server was runnable and others had its core, over elapsed time."""
        run_queue_wait_ns = sum(component.run_queue_wait_ns for component in self.components.values())
        return run_queue_wait_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def client_run_queue_wait(self) -> float:
        """Time in which the load client was runnable and others had its core, over elapsed time."""
        return self.client_run_queue_wait_ns / self.wall_ns if self.wall_ns else 0.0

    def latency_at(self, share: float) -> float:
        """Return the latency in microseconds that this share of answers did not exceed; 0 without answers."""
        total = sum(count for _, count in self.latency_us)
        passed = 0
        for bound, count in self.latency_us:
            passed += count
            if passed >= share * total:
                return float(bound)
        return 0.0
