"""Workload of the toy: a gate stamps each request and writes it to a ledger, which cells of one colour share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from tollbar.catalog import servers
from tollbar.catalog.servers import Installed
from tollbar.core.records import ChunkRecord, Observations
from tollbar.lab.servers.configuration import Request
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Work
from tollbar.lab.workloads.request import RequestWorkload, settings_of
from tollbar.lab.workloads.request_work import RequestWork
from tollbar.study.plan.cells import Cell


class ToyWorkload(RequestWorkload):
    """Workload in which the gate stamps a request; known answers are the provider's."""

    def request(self, cell: Cell, found: Installed, seed: int, sandbox: Sandbox | None) -> Request:
        """Return a request with the choice's number of stamps and the ledger behind the gate."""
        words = {"turns": cell.choice.setting.get("turns", 0)}
        return Request(found, cell.provider, settings_of(cell), words=words, services=(servers.service("ledger"),))

    @contextmanager
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> Iterator[Work]:
        """Yield the usual work of a request, with its bytes observed."""
        with super().up(cell, seed, sandbox, core, begins_on=begins_on) as work:
            yield _Stamping(**{field.name: getattr(work, field.name) for field in fields(work)})


class _Stamping(RequestWork):
    def observed(self, chunk: ChunkRecord) -> Observations:
        """Return the bytes sent in both directions."""
        return {("", "wire"): chunk.observed.bytes_sent + chunk.observed.bytes_received}
