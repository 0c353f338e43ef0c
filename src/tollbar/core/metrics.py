"""Metrics: the meaning of each number of a result, its unit, its direction, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ALL_SAMPLES = "-all"
"""Suffix of the name of a cost over all samples; without it, a cost is over quiet samples."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Name, title and unit of one kind of number."""

    name: str
    title: str
    unit: str
    more_is_better: bool = False
    is_limited: bool = False
    """True if a busy client, an idle server or other programs make it meaningless for the server."""

    @property
    def is_per_operation(self) -> bool:
        """True if a chunk's total is divided by its number of operations."""
        return self.unit.endswith("/op")


BACKGROUND = Metric("background", "of it, CPU time between chunks (collector, compiler)", "ns/op")
"""CPU time of a runner's other threads between chunks: part of its cost, and reported separately."""

NETWORK = {
    metric.name: metric
    for metric in (
        Metric("network-sent", "sent to the server's machine", "B/op"),
        Metric("network-received", "received from it", "B/op"),
        Metric("network-round-trips", "round trips to it", "/op"),
    )
}
"""Traffic between a load client and a server on another machine, counted by the client's kernel."""

# Metrics of every family; a family's folder adds its own.
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
