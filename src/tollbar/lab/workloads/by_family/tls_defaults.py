"""Workload of TLS by default: one client with its own library's defaults, and servers with different ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tollbar.catalog import libraries
from tollbar.catalog.servers import Installed
from tollbar.lab import tls
from tollbar.lab.servers.configuration import SHOWN, Request
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls.settings import BY_DEFAULT
from tollbar.lab.workloads.by_family.tls import TlsWorkload
from tollbar.lab.workloads.request import Client, settings_of
from tollbar.study.plan.cells import Cell

HELD = {"choice": "tls-1.3", "key-exchange": "x25519", "cipher": "aes-256-gcm"}
# This libssl's defaults represent current clients; with the server's own library, two upgrades would be measured as
# one.
CLIENT = "psycopg"


class TlsDefaultsWorkload(TlsWorkload):
    """Connection by default, or with version, key exchange and cipher fixed on both sides."""

    def request(self, cell: Cell, found: Installed, seed: int, sandbox: Sandbox | None) -> Request:
        """Return the request for a server with the cell's certificate."""
        if sandbox is None:
            return tls.shown_request(found, cell.provider, _settings(cell))
        return tls.request(sandbox, found, cell.provider, _settings(cell))

    def clients(self, cell: Cell, sandbox: Sandbox | None) -> list[Client]:
        """Return one kind of client, independent of the server's library."""
        made = tls.certificates_of(sandbox) if sandbox else tls.UnmadeCertificates(SHOWN / "certificates")
        kinds = tls.clients(tls.Settings.read(_settings(cell)), made)
        by_itself: dict[str, Any] = {"library": "libssl", "libcrypto": libraries.libcryptos().get(CLIENT)}
        for kind in kinds:
            if kind["tls"]:
                # The client accepts any signature; the certificate is checked by its bytes.
                kind["tls"] |= {**by_itself, "signer": None}
        return kinds


def _settings(cell: Cell) -> Mapping[str, str | int]:
    """Return the cell's TLS settings; resumption is left to the server in both choices."""
    settings = settings_of(cell)
    agreed = {"by-default": dict.fromkeys(HELD, BY_DEFAULT), "held": HELD}.get(cell.choice.name, {})
    return {
        **settings,
        "certificate": settings.get("certificate-key", "ecdsa-p256"),
        "resumption": BY_DEFAULT,
        **agreed,
    }
