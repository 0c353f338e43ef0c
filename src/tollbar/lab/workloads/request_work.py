"""Work of requests: a server that is up with its load client, and the observations of that client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tollbar.core.records import (
    ChunkRecord,
    ComponentRecord,
    LoadRecord,
    Observed,
    Outcome,
    Record,
    Totals,
)
from tollbar.core.runner.confined import Account
from tollbar.lab.servers import driver
from tollbar.lab.servers.nodes import Node
from tollbar.lab.workloads import Work

# In a chunk of a paced open load, the client waits for this number of arrivals, after that number at once
# (`LEAST_PACED_REQUESTS` and `LEADING` of the engine).
LEAST_PACED_REQUESTS, LEADING = 8, 4


class Target(Protocol):
    """Interface of a server as a load needs it."""

    @property
    def address(self) -> str: ...
    @property
    def components(self) -> Mapping[str, int]: ...
    @property
    def addresses(self) -> Mapping[str, str]: ...
    @property
    def nodes(self) -> Mapping[str, Node]: ...
    @property
    def work_dirs(self) -> Mapping[str, Path]: ...
    @property
    def given(self) -> Mapping[str, Path]: ...
    def client_account(self, like: str | None = None) -> Account | None: ...
    def fault(self, within_s: float = 0.0) -> str | None: ...
    def complaint(self) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWork(Work):
    """Server that is up, and its load client."""

    server: Target

    @property
    def fills_time(self) -> bool:
        """True if users ask as soon as they are answered; arrivals at a rate fill no time."""
        load = self.task["load"]
        return self.threads == 1 and load["shape"] != "open" and not load["think_s"]

    def least_s(self, operation_ns: float) -> float:
        """Return the least duration of a chunk; for an open load, the time to wait for arrivals."""
        load, each_s = self.task["load"], operation_ns / 1e9
        if load["shape"] != "open":
            return Work.least_s(self, operation_ns)
        share: float = load["utilisation"]
        rate_hz: float = load["rate_hz"]
        arrivals_s = LEAST_PACED_REQUESTS * each_s / share if share else 1 / rate_hz
        return arrivals_s + LEADING * each_s

    def wall_ns(self, chunk: ChunkRecord) -> int:
        """Return elapsed nanoseconds; with several threads, their cores' time without the load client's part.

        That is the server's work and its waits.
        """
        threads = chunk.observed.threads
        return max(1, sum(one.wall_ns - one.cpu_ns for one in threads)) if threads else chunk.wall_ns

    def with_fault(self, record: Record) -> Record:
        """Return the record of a load that failed, with the server's failure if it ended."""
        return with_fault(record, self.server)

    def contradiction(self, chunk: ChunkRecord) -> str | None:
        """Return a contradiction in a chunk, such as a failed request or an idle component, or None."""
        seen = chunk.observed
        wrong = sum(seen.errors.values())
        if wrong:
            return f"{wrong} of {seen.requests} requests failed"
        if seen.requests != chunk.operations:
            return f"{chunk.operations} right answers to {seen.requests} requests"
        return Work.contradiction(self, chunk)

    def lacks(self, last: Record) -> str | None:
        """Return the missing part of the last line, or None."""
        return "the load client says nothing of the load" if last.load is None else None

    def load(self, last: Record | None, phase: ChunkRecord | None, chunks: Sequence[ChunkRecord]) -> LoadRecord | None:
        """Return requests and answers; rates and response times only from the throughput phase."""
        return load_record(last, phase, chunks)


def with_fault(record: Record, server: Target) -> Record:
    if record.outcome is Outcome.OK:
        return record
    if (fault := server.fault(driver.NOTICED_S)) is not None:
        return record.model_copy(update={"reason": f"{fault}: {record.reason}"})
    # A server that still runs may have logged the reason.
    complaint = server.complaint() if record.outcome is not Outcome.UNSUPPORTED else None
    return record.model_copy(update={"reason": f"{record.reason}; {complaint}"}) if complaint else record


def load_record(last: Record | None, phase: ChunkRecord | None, chunks: Sequence[ChunkRecord]) -> LoadRecord:
    """Return a load client's observations in its throughput phase, or without one the sums over all chunks.

    Request rates and response times only come from the throughput phase, because in chunks the client is on the
    server's core.
    """
    totals = last.load if last and last.load else Totals()
    records = [phase] if phase else chunks
    observed = [record.observed for record in records]
    return LoadRecord(wall_ns=0, **dict(totals)).model_copy(
        update={
            **{name: sum(getattr(one, name) for one in observed) for name in _COUNTS},
            "wall_ns": sum(record.wall_ns for record in records),
            "steady": phase.observed.steady if phase else None,
            "latency_us": tuple(sorted(phase.observed.latency_us)) if phase else (),
            "is_settled": phase is not None,
            "reopened": sum(record.observed.reopened for record in chunks),
            "client_cpu_ns": sum(record.cpu_ns for record in records),
            "components": {name: _spent(total, name, observed) for name, total in totals.components.items()},
        }
    )


_COUNTS = ("requests", "bytes_sent", "bytes_received", "connections", "handshakes_full", "handshakes_resumed",
           "client_run_queue_wait_ns")  # fmt: skip


def _spent(total: ComponentRecord, name: str, observed: Sequence[Observed]) -> ComponentRecord:
    """Return a component's account of these chunks, with its values for the whole session."""
    parts = [one.components[name] for one in observed if name in one.components]
    summed = {key: sum(getattr(part, key) for part in parts) for key in ("cpu_ns", "run_queue_wait_ns")}
    return total.model_copy(update=summed)
