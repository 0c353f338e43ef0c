"""What a load client says of the server that it asked, beside its own cost, and what the two agreed on."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


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
    round_trip_ns: Mapping[str, int] = {}
    """Of a round trip before the load to the machine of each component that is on another one."""
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
