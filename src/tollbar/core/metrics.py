"""Metrics: what each number of a result is, in which unit, whether more of it is better, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ALL_SAMPLES = "-all"
"""The ending of a cost's name over all samples; without it, a cost is the quiet one."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One kind of number."""

    name: str
    title: str
    unit: str
    more_is_better: bool = False
    is_limited: bool = False
    """Whether a busy client, an idle server or other programs take its meaning away: it says little of the server."""

    @property
    def is_per_operation(self) -> bool:
        """Whether what a chunk showed is shared out among its operations."""
        return self.unit.endswith("/op")


BACKGROUND = Metric("background", "of it, CPU time between chunks (collector, compiler)", "ns/op")
"""What a runner's other threads used while it was asked nothing: part of its cost, and shown apart."""

NETWORK = {
    metric.name: metric
    for metric in (
        Metric("network-sent", "sent to the server's machine", "B/op"),
        Metric("network-received", "received from it", "B/op"),
        Metric("network-round-trips", "round trips to it", "/op"),
    )
}
"""What passes between a load client and a server on another machine, counted by the kernel of the client's."""

# Those of every family; a family's folder adds its own.
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("cpu", "CPU time", "ns/op"),
        Metric("cpu-all", "CPU time, all samples", "ns/op"),
        Metric("server-cpu", "server CPU time", "ns/op"),
        Metric("server-cpu-all", "server CPU time, all samples", "ns/op"),
        Metric("client-cpu", "load client's CPU time", "ns/op"),
        Metric("client-cpu-all", "load client's CPU time, all samples", "ns/op"),
        BACKGROUND,
        Metric("wall", "elapsed time", "ns/op"),
        Metric("memory", "memory", "B"),
        Metric("throughput", "requests a second", "1/s", more_is_better=True, is_limited=True),
        Metric("latency-p50", "response time, median", "us", is_limited=True),
        Metric("latency-p95", "response time, 95th percentile", "us", is_limited=True),
        Metric("latency-p99", "response time, 99th percentile", "us", is_limited=True),
        Metric("server-memory", "server's memory", "B"),
        *NETWORK.values(),
        Metric("network-round-trip-time", "time of a round trip between the machines, before the load", "us"),
    )
}
