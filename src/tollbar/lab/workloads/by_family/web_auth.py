"""Workload of signing in: a server that protects its page, and users who authenticate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tollbar.catalog import libraries, servers
from tollbar.catalog.servers import Installed, NotStarted, Server
from tollbar.core.records import Outcome, Proven
from tollbar.lab import tls
from tollbar.lab.servers import handing, prepared
from tollbar.lab.servers.configuration import SHOWN, Request
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Given
from tollbar.lab.workloads.accounts import Accounts, UnmadeAccounts, accounts_of
from tollbar.lab.workloads.request import Client, RequestWorkload, settings_of
from tollbar.lab.workloads.request_work import Target
from tollbar.study.plan.cells import Cell

Plain = Mapping[str, str | int]
# Current TLS, for cells that use TLS.
OVER_TLS = {"choice": "tls-1.3", "certificate": "ecdsa-p256", "key-exchange": "x25519"}
# The server checks the client's certificate for revocation, so that a closed account stays outside.
MUTUAL = {"client-certificate": "ecdsa-p256", "revocation": "list"}
IN_CLEAR = {"choice": tls.PLAINTEXT}
# Accounts of a directory by the number of their groups: first index and count. Counts are equal, because users who come
# back find more in a server's caches. Only the members of 700 groups are ten, because a directory takes long to make
# each.
MEMBERS = {100: (0, 250), 50: (250, 250), 700: (500, 10), 0: (510, 250)}
# Number of returning users, for whom alone a cache saves work: few enough that each has asked before the measurement.
RETURNING = 4
# Choices with a form, and the servers whose form has a token against cross-site request forgery.
FORMS = ("form", "session-cookie")
GIVES_TOKENS = ("embedded",)
# Store of passwords for a choice that has no setting for it.
LOOKED_UP = {"session-cookie": "sql"}


def _file(settings: Plain, accounts: Accounts) -> dict[str, Any]:
    return {"store": {"file": str(accounts.file(_stored(settings)))}}


def _sqlite(settings: Plain, accounts: Accounts) -> dict[str, Any]:
    return {"store": {"sql": str(accounts.sqlite(_stored(settings)))}}


def _postgresql(settings: Plain, accounts: Accounts) -> dict[str, Any]:
    """Return the store with the file of the server's password, which its client library reads."""
    return {"store": {"sql": str(accounts.web_password)}, "tables": str(accounts.postgresql(_stored(settings)))}


def _directory(settings: Plain, accounts: Accounts) -> dict[str, Any]:
    """Return the directory's store, which over TLS has the library for its name.

    Templates find its address themselves.
    """
    if (settings["store"], settings["directory"]) != ("ldaps", "samba"):
        return {"store": {}}
    # The system's resolver does not know the name in Samba's certificate, and this library finds it in a file.
    found = prepared.names_library()
    if found is None:
        reason = "not available here: Samba's certificate has a name that only libnss_wrapper resolves"
        raise NotStarted(Outcome.UNSUPPORTED, f"{reason}; to install it: apt-get install libnss-wrapper")
    return {"store": {"names": found}}


# Password stores of each server, and the functions that make the words of its templates.
STORES: Mapping[str, Mapping[str, Callable[[Plain, Accounts], dict[str, Any]]]] = {
    "embedded": {"sql": _sqlite, "file": _file},
    "httpd": {"sql": _postgresql, "file": _file, "ldap": _directory, "ldaps": _directory},
    "nginx": {"file": _file},
}


def _jwt(settings: Plain, accounts: Accounts) -> tuple[dict[str, Any], dict[str, Any]]:
    signature = str(settings["signature"])
    verifies = {"signature": signature, "verification_key": str(accounts.verification_key(signature))}
    return verifies, {**verifies, "key": str(accounts.issuer_key(signature))}


def _opaque_token(settings: Plain, accounts: Accounts) -> tuple[dict[str, Any], dict[str, Any]]:
    told = {"expired": str(accounts.expired_token), "spare": str(accounts.spare_token)}
    return {"held": str(accounts.tokens)}, told


def _api_key(settings: Plain, accounts: Accounts) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"store": {"sql": str(accounts.sqlite(_stored(settings)))}, "pepper": str(accounts.pepper)}, {}


def _hmac(settings: Plain, accounts: Accounts) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"store": {"sql": str(accounts.sqlite("key"))}}, {}


def _client_certificate(settings: Plain, accounts: Accounts) -> tuple[dict[str, Any], dict[str, Any]]:
    return {}, {}


# Schemes without a password, which only the embedded server has: words for the server, and for its users.
WITHOUT_PASSWORD: Mapping[str, Callable[[Plain, Accounts], tuple[dict[str, Any], dict[str, Any]]]] = {
    "jwt": _jwt,
    "opaque-token": _opaque_token,
    "api-key": _api_key,
    "hmac": _hmac,
    "client-certificate": _client_certificate,
}
# Stores in which a server of a choice keeps its credentials, so that a proof may revoke one.
OWN_STORES = {"basic": "accounts.sqlite", "api-key": "accounts.sqlite", "opaque-token": "held.sqlite"}
# Time to live in proofs, in seconds, because proofs wait for its end; longer if a token expires within it.
PROVEN_S = {"jwt": 10}
PROVEN_OTHERWISE_S = 2
# Host names of the web server and its keys, by account, trust for delegation, and encryption of its tickets.
HOSTS = {
    ("machine", "no", "aes-256"): "web1",
    ("service", "no", "aes-256"): "web2",
    ("service", "yes", "aes-256"): "web3",
    ("service", "no", "rc4"): "web4",
    ("machine", "yes", "aes-256"): "web5",
}
REALM = "tollbar.test"
NT_DOMAIN = "TOLLBAR"
# Services that check sign-ins between the directory and the server.
CHECKED_BY = {"gssproxy": "gssproxy", "auth-request": "authenticator"}
# Servers that can delegate the password check; a setting tells them whether to.
ASK_ANOTHER = ("nginx",)
# Server that a service is an instance of.
SAME_AS = {"authenticator": "httpd"}
# A ticket takes the directory milliseconds, so requests use the tickets of this number of users.
TICKETS = 50


class WebAuthWorkload(RequestWorkload):
    """Request for a page that not all may see."""

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof as it will be measured, except for a shorter time to live that a proof can wait for."""
        if "time-to-live" not in cell.coordinates:
            return super().prove(cell, seed, given)
        time_to_live_s = PROVEN_S.get(cell.choice.name, PROVEN_OTHERWISE_S)
        tried = replace(cell, coordinates={**cell.coordinates, "time-to-live": time_to_live_s})
        return replace(super().prove(tried, seed, given), cell=cell.key)

    def request(self, cell: Cell, found: Installed, seed: int, sandbox: Sandbox | None) -> Request:
        """Return the request for a server that authenticates its clients as the cell demands."""
        settings = settings_of(cell)
        transport = _transport(settings)
        if sandbox is None:
            asked = tls.shown_request(found, cell.provider, transport)
        else:
            asked = tls.request(sandbox, found, cell.provider, {**transport, "bytes": settings["bytes"]})
        words = _words(settings, found, _accounts(settings, sandbox))
        return replace(
            asked,
            settings=settings,
            words={**asked.words, **words},
            shown_words={**(asked.shown_words or asked.words), **words},
            services=_services(settings, words),
        )

    def clients(self, cell: Cell, sandbox: Sandbox | None) -> list[Client]:
        """Return one kind of client, over TLS or in clear."""
        made = tls.certificates_of(sandbox) if sandbox else tls.UnmadeCertificates(SHOWN / "certificates")
        kinds = tls.clients(tls.Settings.read(_transport(settings_of(cell))), made)
        for kind in kinds:
            if kind["tls"]:
                kind["tls"]["libcrypto"] = libraries.libcryptos().get("psycopg")
        return kinds

    def host(self, cell: Cell) -> str:
        """Return the name of the web server's key, if it has one."""
        settings = settings_of(cell)
        return _host(settings) if _negotiates(settings) else super().host(cell)

    def connection(self, cell: Cell) -> str:
        """Return `new` for a sign-on, because its user has not been there before."""
        return "new" if cell.coordinates["op"] == "sign-on" else super().connection(cell)

    def exchange(self, cell: Cell, server: Target, sandbox: Sandbox | None) -> dict[str, Any] | None:
        """Return the scheme and accounts of its users. Raises NotStarted if there are no such accounts."""
        settings = settings_of(cell)
        if cell.choice.name == "anonymous":
            # It has no accounts and no sign-on, and the number and size of its requests are observed.
            return {"scheme": cell.choice.name}
        operation = str(cell.coordinates["op"])
        if _negotiates(settings):
            return _negotiation(settings, operation, server, sandbox)
        made, told = _accounts(settings, sandbox), _of_scheme(settings)
        if "directory" in settings:
            accounts = _of_directory(settings, server)
        else:
            count, stored, passwords = _count(settings), _stored(settings), made.passwords
            if cell.choice.name in WITHOUT_PASSWORD:
                _, told = WITHOUT_PASSWORD[cell.choice.name](settings, made)
            if stored and _is_remembered(settings):
                # More users come than have an expensive hash of their own; each is still another credential.
                passwords = made.passwords_of(stored)
            elif stored:
                count = made.usable(stored)
            accounts = {"file": str(passwords), "first": 0, "count": count}
        if cell.choice.name in FORMS and isinstance(cell.server, Server) and cell.server.name in GIVES_TOKENS:
            told = {**told, "token": True}
        cache = {**_cache(settings), "hit_percent": settings["hit-share"]} if _is_remembered(settings) else None
        # A store on another machine is out of the proof's reach, and the proof reports that as not tested.
        if (store := _own_store(cell)) and "web" not in server.nodes:
            told = {**told, "store": str(server.work_dirs.get("web", SHOWN / "web") / store)}
        return {"scheme": cell.choice.name, "operation": operation, "accounts": accounts, "cache": cache, **told}

    def account_like(self, cell: Cell) -> str | None:
        """Return the server's component if a proof revokes a credential in the store of the server's directory."""
        return "web" if _own_store(cell) else None

    def proven_alone(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return an empty proof: without a server and its users there is no sign-in."""
        return Proven(cell.study, cell.key, Outcome.OK, None, 0, (), ())


def _own_store(cell: Cell) -> str | None:
    """Return the file in the server's directory with its credentials, so that a proof may revoke one."""
    settings = settings_of(cell)
    store = OWN_STORES.get(cell.choice.name) if "verified" in settings else None
    return store if settings.get("store") != "file" else None


def _transport(settings: Plain) -> dict[str, str | int]:
    mutual = MUTUAL if settings["choice"] == "client-certificate" else {}
    return {**OVER_TLS, **mutual} if settings["transport"] == "tls" else dict(IN_CLEAR)


def _is_remembered(settings: Plain) -> bool:
    return settings.get("verified") == "cached"


def _cache(settings: Plain) -> dict[str, Any]:
    """Return the parameters of a credential cache, for a server and its clients."""
    return {"time_to_live_s": settings["time-to-live"], "entries": settings["cache-entries"]}


def _count(settings: Plain) -> int:
    return int(settings.get("accounts", 0))


def _accounts(settings: Plain, sandbox: Sandbox | None) -> Accounts:
    """Return the accounts of the run, or without a sandbox accounts for display."""
    count = _count(settings)
    return accounts_of(sandbox, count) if sandbox else UnmadeAccounts(SHOWN / f"accounts-{count}", count)


def _of_directory(settings: Plain, server: Target) -> dict[str, Any]:
    """Return the directory's own accounts, whose keys it has: the members of the cell's number of groups."""
    first, most = MEMBERS[int(settings["groups"])]
    count = _count(settings)
    if count <= first:
        reason = f"{settings['groups']} groups need at least {first + 1} accounts, and there are {count}"
        raise NotStarted(Outcome.UNSUPPORTED, reason)
    if settings.get("directory-cache") == "on":
        most = RETURNING
    elif int(settings["groups"]) == 0 and not _negotiates(settings):
        # Passwords are asked of as many users as there are: only tickets and challenges need pools of one size.
        most = count - first
    # A directory that is only displayed has no path.
    given = server.given.get("directory", SHOWN / "directory-given")
    return {"file": str(given / "accounts.tsv"), "first": first, "count": min(count - first, most)}


def _negotiates(settings: Plain) -> bool:
    """Return whether the directory authenticates the clients."""
    return settings["choice"] in ("kerberos", "ntlm")


def _host(settings: Plain) -> str:
    """Return the web server's name. Raises NotStarted if the directories have no such account."""
    identity, delegation = str(settings.get("identity", "machine")), str(settings.get("delegation", "no"))
    encryption = str(settings.get("encryption", "aes-256"))
    name = HOSTS.get((identity, delegation, encryption))
    if name is None:
        trusted = " trusted for delegation" if delegation == "yes" else ""
        reason = f"the directories here have no {identity} account{trusted} with {encryption} tickets"
        raise NotStarted(Outcome.UNSUPPORTED, reason)
    return f"{name}.{REALM}"


def _negotiated(settings: Plain) -> dict[str, Any]:
    """Return the server's words for Kerberos or NTLM. Raises NotStarted if the directories do not have its account."""
    return {
        "scheme": settings["choice"],
        "runs": settings.get("runs", "in-server"),
        "persistence": settings.get("persistence", "connection"),
        "delegation": settings.get("delegation", "no"),
        "keytab": _host(settings).replace(REALM, "keytab"),
    }


def _negotiation(settings: Plain, operation: str, server: Target, sandbox: Sandbox | None) -> dict[str, Any]:
    """Return the client's words for tickets and challenges."""
    accounts, host = _of_directory(settings, server), _host(settings)
    common = {"scheme": settings["choice"], "operation": operation, "accounts": accounts, "service": f"HTTP@{host}"}
    if settings["choice"] == "ntlm":
        return {**common, "domain": NT_DOMAIN}
    asks_often = operation == "request"
    if asks_often:
        accounts["count"] = min(accounts["count"], TICKETS)
    directory = "kdc" if settings["directory"] == "mit" else "directory"
    given = server.given.get(directory, SHOWN / f"{directory}-given")
    own = handing.client_folder(sandbox, server.client_account()) if sandbox else SHOWN / "client"
    return {
        **common,
        "krb5_config": str(given / "krb5.conf"),
        # A ticket is valid for hours, and fetching those of all users would take most of each trial's time.
        "tickets": str(own / f"tickets-{given.name}"),
        # Any other name that the directory knows.
        "another_service": "HTTP@" + next(f"{name}.{REALM}" for name in HOSTS.values() if not host.startswith(name)),
        "persistence": settings["persistence"],
        "delegate": settings["delegation"] == "yes",
        "mechanism": settings["mechanism"],
        # Tickets are fetched ahead, because only the server is measured.
        "ahead": asks_often and settings["persistence"] == "request",
    }


def _stored(settings: Plain) -> str:
    """Return the stored form of a password, if the server and not a directory keeps it."""
    if settings["choice"] == "digest":
        return f"digest-{settings['digest-algorithm']}"
    return str(settings.get("verifier", settings.get("password-hash", "")))


def _of_scheme(settings: Plain) -> dict[str, Any]:
    """Return the scheme's own parameters for both sides."""
    return {"algorithm": settings["digest-algorithm"]} if settings["choice"] == "digest" else {}


def _words(settings: Plain, found: Installed, accounts: Accounts) -> dict[str, Any]:
    """Return the templates' words: `sign_in`, and those of services. They contain no secrets; files do.

    Raises NotStarted if the server does not support the cell.
    """
    if settings["choice"] == "anonymous":
        return {"sign_in": None}
    # The family reports unsupported combinations of these servers itself.
    if found.server.name not in STORES:
        raise NotStarted(Outcome.UNSUPPORTED, f"{found.server.title} has no configuration for this sign-in")
    if _negotiates(settings):
        return {"sign_in": _negotiated(settings)}
    if settings["choice"] in WITHOUT_PASSWORD:
        told, _ = WITHOUT_PASSWORD[str(settings["choice"])](settings, accounts)
        return {"sign_in": {"scheme": settings["choice"], **told, **_remembered(settings)}}
    runs = str(settings.get("runs", "in-server"))
    store = str(settings.get("store", LOOKED_UP.get(str(settings["choice"]))))
    # If another server checks the password, its words are used.
    told = STORES[SAME_AS.get(CHECKED_BY.get(runs, ""), found.server.name)][store](settings, accounts)
    sign_in = {
        "scheme": settings["choice"],
        "store": told.pop("store"),
        **_of_scheme(settings),
        **_remembered(settings),
    }
    if settings["choice"] == "session-cookie":
        sign_in["held"] = str(accounts.sessions)
    if found.server.name in ASK_ANOTHER:
        sign_in["runs"] = runs
    return {"sign_in": sign_in, **told}


def _remembered(settings: Plain) -> dict[str, Any]:
    return {"cache": _cache(settings)} if _is_remembered(settings) else {}


def _services(settings: Plain, words: Mapping[str, Any]) -> tuple[Installed, ...]:
    """Return the services that the server needs. Raises NotStarted if one is not available here."""
    database = "postgresql-accounts" if "tables" in words else None
    names = (settings.get("directory"), database, CHECKED_BY.get(str(settings.get("runs"))))
    return tuple(servers.service(str(name)) for name in names if name)
