"""Workload of TLS: the server speaks it as the cell demands, or plainly, and the clients verify that."""

from __future__ import annotations

from tollbar.catalog import libraries
from tollbar.catalog.servers import Installed, NotStarted
from tollbar.catalog.servers.remote import Remote
from tollbar.core.records import Outcome, Proven
from tollbar.lab import tls
from tollbar.lab.servers.configuration import SHOWN, Request
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls.url import client_of
from tollbar.lab.workloads import Given
from tollbar.lab.workloads.request import Client, RequestWorkload, settings_of
from tollbar.study.plan.cells import Cell


class TlsWorkload(RequestWorkload):
    """Request over TLS or in clear."""

    def request(self, cell: Cell, found: Installed, seed: int, sandbox: Sandbox | None) -> Request:
        """Return the request for a server with the cell's certificates, key exchange, cipher and resumption."""
        if sandbox is not None:
            return tls.request(sandbox, found, cell.provider, settings_of(cell))
        try:
            return tls.shown_request(found, cell.provider, settings_of(cell))
        except tls.Impossible as impossible:
            raise NotStarted(Outcome.UNSUPPORTED, str(impossible)) from impossible

    def clients(self, cell: Cell, sandbox: Sandbox | None) -> list[Client]:
        """Return the kinds of client, old and new, resuming and not, which require one exact certificate."""
        if isinstance(cell.server, Remote):
            resumes = cell.coordinates.get("resumption", "none") != "none"
            return [{"share": 100, "tls": client_of(cell.server, cell.choice.name, resumes=resumes)}]
        made = tls.certificates_of(sandbox) if sandbox else tls.UnmadeCertificates(SHOWN / "certificates")
        try:
            kinds = tls.clients(tls.Settings.read(settings_of(cell)), made)
        except tls.Impossible as impossible:
            raise NotStarted(Outcome.UNSUPPORTED, str(impossible)) from impossible
        for kind in kinds:
            if kind["tls"]:
                # For what rustls does not support: the newest libssl here costs the client a third less than the
                # system's.
                kind["tls"]["libcrypto"] = libraries.libcryptos().get("psycopg")
        return kinds

    def proven_alone(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return an empty proof: without a server and its client there is no TLS."""
        return Proven(cell.study, cell.key, Outcome.OK, None, 0, (), ())
