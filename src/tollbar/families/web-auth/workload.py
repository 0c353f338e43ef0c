"""The workload of signing in: a server that protects its page, and users who prove who they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tollbar import libraries, tls
from tollbar.accounts import Accounts, accounts_of
from tollbar.beds import Installed, NotStarted
from tollbar.beds.configuration import SHOWN, Request
from tollbar.beds.sandbox import Sandbox
from tollbar.plan import Cell
from tollbar.runner import Outcome
from tollbar.workloads import Given, Proven
from tollbar.workloads.request import Client, RequestWorkload, Server, settings_of

Settings = Mapping[str, str | int]
# TLS as it is spoken today, where it is spoken at all.
OVER_TLS = {"choice": "tls-1.3", "certificate": "ecdsa-p256", "key-exchange": "x25519"}
IN_CLEAR = {"choice": tls.PLAINTEXT}
# Which accounts ask, by the number of groups that they are members of.
MEMBERS = {100: (0, 250), 50: (250, 250), 0: (500, None)}


class FamilyWorkload(RequestWorkload):
    """A request for a page that not all may see."""

    def request(self, cell: Cell, found: Installed, seed: int, sandbox: Sandbox | None) -> Request:
        """A bed that asks who is there, as the cell says."""
        settings = settings_of(cell)
        transport = _transport(settings)
        if sandbox is None:
            shown = tls.shown_request(found, cell.provider, transport)
            return replace(shown, settings=settings, words={**shown.words, "sign_in": _sign_in(settings, found, None)})
        asked = tls.request(sandbox, found, cell.provider, {**transport, "bytes": settings["bytes"]})
        sign_in = _sign_in(settings, found, accounts_of(sandbox, _count(settings)))
        return replace(
            asked,
            settings=settings,
            words={**asked.words, "sign_in": sign_in},
            shown_words={**(asked.shown_words or {}), "sign_in": _sign_in(settings, found, None)},
        )

    def clients(self, cell: Cell, sandbox: Sandbox | None) -> list[Client]:
        """One kind, over TLS or in clear."""
        made = tls.certificates_of(sandbox) if sandbox else tls.UnmadeCertificates(SHOWN / "certificates")
        kinds = tls.clients(tls.Settings.read(_transport(settings_of(cell))), made)
        for kind in kinds:
            if kind["tls"]:
                kind["tls"]["libcrypto"] = libraries.libcryptos().get("psycopg")
        return kinds

    def exchange(self, cell: Cell, server: Server, sandbox: Sandbox | None) -> dict[str, Any] | None:
        """How its users sign in, and with which accounts."""
        settings = settings_of(cell)
        if cell.choice.name == "anonymous":
            return None
        count = _count(settings)
        if sandbox is None:
            file, usable = SHOWN / "accounts.tsv", count
        else:
            accounts = accounts_of(sandbox, count)
            file, usable = accounts.passwords, accounts.usable(_stored(settings))
        return {
            "scheme": cell.choice.name,
            "operation": cell.coordinates["op"],
            "accounts": {"file": str(file), "first": 0, "count": usable},
            **_of_scheme(settings),
        }

    def proven_alone(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Nothing: without a server and its users there is no sign-in."""
        return Proven(cell.study, cell.key, Outcome.OK, None, 0, (), ())


def _transport(settings: Settings) -> dict[str, str | int]:
    return dict(OVER_TLS if settings["transport"] == "tls" else IN_CLEAR)


def _count(settings: Settings) -> int:
    return int(settings.get("accounts", 0))


def _stored(settings: Settings) -> str:
    """What the server keeps of a password."""
    if settings["choice"] == "digest":
        return f"digest-{settings['digest-algorithm']}"
    return str(settings["password-hash"])


def _of_scheme(settings: Settings) -> dict[str, Any]:
    """What a scheme has of its own on both sides."""
    return {"algorithm": settings["digest-algorithm"]} if settings["choice"] == "digest" else {}


def _sign_in(settings: Settings, found: Installed, accounts: Accounts | None) -> dict[str, Any] | None:
    """What a bed's templates are told; without accounts, to be shown."""
    if settings["choice"] == "anonymous":
        return None
    stored = _stored(settings)
    if settings["store"] == "sql":
        store = {"sql": str(accounts.sqlite(stored) if accounts else SHOWN / f"{stored}.sqlite")}
    elif settings["store"] == "file":
        store = {"file": str(accounts.file(stored) if accounts else SHOWN / f"{stored}.txt")}
    else:
        raise NotStarted(Outcome.UNSUPPORTED, f"{found.bed.title} does not look accounts up by {settings['store']}")
    return {"scheme": settings["choice"], "store": store, **_of_scheme(settings)}
