"""Servers of the user: the study of their URLs, and the check of their ownership."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from tollbar.catalog.servers.remote import Remote, accounted
from tollbar.core import hosts, wire
from tollbar.core.errors import TollbarError, masked_url
from tollbar.core.files import read_bytes
from tollbar.core.records import Outcome
from tollbar.core.runner import ask, confined, engine
from tollbar.lab.servers.scenario import exchange_of
from tollbar.lab.tls.sessions import unverified_words
from tollbar.study import Study, read
from tollbar.study.scenario import WireScenario
from tollbar.study.scenario_file import ScenarioFile, read_scenario

# Simultaneous connections in an idle and in a busy moment of a small service.
DEFAULT_USERS = (1, 8)
# Limits of a connection, and of the few requests of a proof, before the server counts as unreachable.
CONNECT_LIMIT_S, ANSWER_LIMIT_S = 5.0, 30.0
# Twenty times the certificates of all authorities that a machine trusts.
MOST_TRUST_BYTES = 4 * 1024 * 1024
MOST_AUTHORITIES = 500
"""Limit of the certificates of such a file, three times those of a browser: OpenSSL takes a time that grows with the
square of their number, and Ctrl-C does not end it."""
_BEGIN, _CERTIFICATE = "-----BEGIN ", "CERTIFICATE-----"
# The load client's reason.
_REDIRECTED = re.compile(r"wrong status: expected status 200, got 30[1-8]\b")
PLAINTEXT = "plaintext"
Resumption = Literal["none", "ticket"]
"""Session that clients offer from an earlier connection."""
# Highest first, as a server that supports both negotiates.
VERSIONS = ("tls-1.3", "tls-1.2")
SCHEMES = {"https": VERSIONS, "http": (PLAINTEXT,)}


def of_urls(
    urls: Sequence[str],
    users: Sequence[int] = DEFAULT_USERS,
    owned: Collection[str] = (),
    pids: Sequence[int] = (),
    resumption: Resumption = "none",
    scenario: Path | None = None,
) -> Study:
    """Return the study of one URL, or of several compared with the first.

    With `resumption` clients offer the session that a server gave them. Each server is contacted once, to learn its
    default version. Raises TollbarError for a server that may not be tested or does not answer, and for a process that
    is not a server's. With the file of a `scenario` its steps are measured, once all of them were performed right.
    """
    if len(set(urls)) < len(urls):
        raise TollbarError("`--url` and `--against` must be different URLs", where=masked_url(urls[0]))
    if resumption != "none" and not any(_parts(url).scheme == "https" for url in urls):
        hint = "use an https URL, or remove `--resumption`"
        raise TollbarError(f"`--resumption {resumption}` needs an https URL", where=urls[-1], hint=hint)
    steps = None if scenario is None else read_scenario(scenario)
    remotes = found(urls, owned, pids)
    if steps is not None:
        remotes = tuple(_trusted(remote, steps) for remote in remotes)
    by_itself = {remote.url: _negotiated(remote, steps) for remote in remotes}
    counts_server = all(remote.components for remote in remotes)
    if steps is None:
        text = text_of(by_itself, users, counts_server=counts_server, resumption=resumption)
    else:
        text = text_of_scenario(by_itself, users, steps, counts_server=counts_server, resumption=resumption)
    return replace(read("url", text, where=urls[0]), remotes=remotes)


def text_of(
    by_itself: Mapping[str, str],
    users: Sequence[int],
    *,
    counts_server: bool = False,
    resumption: Resumption = "none",
) -> str:
    """Return the study of these URLs as TOML: connections and requests, over each version of TLS for `https`.

    `by_itself` has the version that each server negotiates by default.
    """
    first, *others = by_itself
    beside = f", compared with {first}" if others else ""
    asked, side = " and ".join(others or [first]), "server" if counts_server else "client"
    # A single server is compared with itself; a further one, operation by operation, with the first.
    baseline = {"choice": by_itself[first]} | ({"server": first} if others else {"op": "request"})
    schemes = {url: _parts(url).scheme for url in by_itself}
    choices = [choice for scheme in SCHEMES if scheme in schemes.values() for choice in sorted(SCHEMES[scheme])]
    leave_out = [
        {
            "where": {
                "server": [url for url in schemes if schemes[url] == scheme],
                "choice": [choice for choice in choices if choice not in SCHEMES[scheme]],
            },
            "because": OTHERWISE[scheme],
        }
        for scheme in (SCHEMES if len({*schemes.values()}) > 1 else ())
    ]
    return wire.text_of(
        {
            "": {
                "question": f"What does a request to {asked} cost its {side}{beside}?",
                "family": "tls",
                "url": [*by_itself],
                "providers": ["aws-lc"],
                "choices": choices,
                "baseline": baseline,
                "notes": [COUNTED if counts_server else NOT_COUNTED],
            },
            "vary": {"resumption": [resumption]} if resumption != "none" else {},
            "load": {"users": [*users]},
            "leave-out": leave_out,
            "measure": {"cost": "server-cpu"} if counts_server else {},
        }
    )


def text_of_scenario(
    by_itself: Mapping[str, str],
    users: Sequence[int],
    file: ScenarioFile,
    *,
    counts_server: bool = False,
    resumption: Resumption = "none",
) -> str:
    """Return the study of a scenario as TOML, each server in the version of TLS that it negotiates by default."""
    first, *others = by_itself
    asked, side = " and ".join(others or [first]), "server" if counts_server else "client"
    scenario = file.scenario
    baseline = {"choice": by_itself[first]} | ({"server": first} if others else {"step": scenario.measured[0]})
    choices = [*dict.fromkeys(by_itself.values())]
    leave_out = [
        {"where": {"server": [url], "choice": other}, "because": BY_ITSELF}
        for url, other in ((url, [one for one in choices if one != by_itself[url]]) for url in by_itself)
        if other
    ]
    vary = {"op": ["connect" if scenario.connection == "new" else "request"]}
    return wire.text_of(
        {
            "": {
                "question": f"How much does each step of a scenario cost the {side} of {asked}"
                f"{f', compared with {first}' if others else ''}?",
                "family": "tls",
                "url": [*by_itself],
                "providers": ["aws-lc"],
                "choices": choices,
                "baseline": baseline,
                "notes": [PASSES, COUNTED if counts_server else NOT_COUNTED],
            },
            "vary": vary | ({"resumption": [resumption]} if resumption != "none" else {}),
            "load": file.load.table(tuple(users)),
            "leave-out": leave_out,
            "measure": {"cost": "server-cpu"} if counts_server else {},
            **scenario.tables,
        }
    )


PASSES = (
    "An operation is one pass over the scenario, from its first step to the one of the row, and a rate counts passes."
    " The cost of one step is its row minus the row before."
)
BY_ITSELF = "a scenario is performed in the version of TLS that the server negotiates by itself"
NOT_COUNTED = "Cost is the client's CPU time for a request; the server's is not included."
COUNTED = (
    "The server ran as it was found: Tollbar neither started it nor kept it to a core, and its other work"
    " at that time is in its cost."
)
OTHERWISE = {"https": "an https address is not asked in clear text", "http": "an http address is not asked over TLS"}


def with_servers(studies: Sequence[Study], owned: Collection[str], pids: Sequence[int]) -> tuple[Study, ...]:
    """Return the studies with the addresses and processes of their servers. Raises TollbarError as `of_urls` does."""
    urls = dict.fromkeys(remote.url for study in studies for remote in study.remotes)
    if pids and not urls:
        raise TollbarError(
            "`--server-pid` needs `--url`, or a study with `url`",
            hint="for example `--url https://localhost:8443/ --server-pid 4711`",
        )
    known = {remote.url: remote for remote in found([*urls], owned, pids)}
    asked = tuple(_asked(study, tuple(known[remote.url] for remote in study.remotes)) for study in studies)
    for study in asked:
        unknown = [remote.name for remote in study.remotes if not remote.components]
        if unknown and study.measure.cost == "server-cpu":
            raise TollbarError(
                f"the cost is the server's CPU time, which needs the process of {unknown[0]}",
                where=study.name,
                hint="for example `--server-pid 4711`",
            )
    return asked


def _asked(study: Study, remotes: tuple[Remote, ...]) -> Study:
    """Return a study of these servers. Raises TollbarError for a missing file or variable of its scenario."""
    scenario = study.load.scenario if study.load else None
    if scenario is not None:
        exchange_of(scenario)
        remotes = tuple(_trusted(remote, scenario) for remote in remotes)
    return replace(study, remotes=remotes)


def named_again(studies: Sequence[Study]) -> tuple[str, ...]:
    """Return the options for these studies' servers that only the command line can set: ownership and processes."""
    remotes = [remote for study in studies for remote in study.remotes]
    hosts = [_parts(remote.url).hostname or "" for remote in remotes if not _is_loopback(remote.address)]
    pids = [str(pid) for remote in remotes for pid in remote.components.values()]
    said = {"--i-own-this-server": dict.fromkeys(hosts), "--server-pid": dict.fromkeys(pids)}
    return tuple(word for option, values in said.items() for value in values for word in (option, value))


def found(urls: Sequence[str], owned: Collection[str], pids: Sequence[int] = ()) -> tuple[Remote, ...]:
    """Return the servers of these URLs, each with its address and its own processes.

    Raises TollbarError for a server outside this machine's loopback, unless the user confirmed its host, and for one
    that does not listen. The name is only looked up here, because a second lookup might return another address than the
    checked one.
    """
    checked = {url: _own(url, owned) for url in urls}
    return accounted([Remote(url, _listening(url, addresses)) for url, addresses in checked.items()], pids)


def client_of(remote: Remote, version: str, *, resumes: bool = False) -> Mapping[str, str | bool | None] | None:
    """Return a client that accepts the server's preferences, in one version of TLS; None in clear.

    If it `resumes`, it offers the session of its last connection, if the server gave it one.
    """
    if remote.parts.scheme != "https":
        return None
    pinned = {"certificate_pem": remote.certificate_pem} if remote.certificate_pem else {}
    return {"protocol": version, "name": remote.parts.hostname, **pinned, **({"resume": True} if resumes else {})}


def addresses_of(url: str) -> tuple[str, ...]:
    """Return `address:port` for each address of a URL's host. Raises TollbarError if it has none."""
    parts = _parts(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        looked_up = hosts.addresses(host, port)
    except (OSError, UnicodeError) as error:
        # A label of the name that is empty or longer than 63 letters raises UnicodeError.
        # `http://anna:1/secret@localhost/` is the path of a host `anna`, and rather a password with `/`.
        raise TollbarError(f"the host `{host}` has no address: {error}", where=masked_url(url)) from error
    # IPv4 first, as most servers that listen on `localhost` by name do.
    addresses = [str(one[4][0]) for one in sorted(looked_up, key=lambda one: one[0] != socket.AF_INET)]
    return tuple(dict.fromkeys(f"[{one}]:{port}" if ":" in one else f"{one}:{port}" for one in addresses))


def _own(url: str, owned: Collection[str]) -> tuple[str, ...]:
    """Return the addresses of a host that may be tested. Raises TollbarError for one that may not."""
    host, addresses = _parts(url).hostname, addresses_of(url)
    others = [_number(address) for address in addresses if not _is_loopback(address)]
    if others and host not in owned:
        raise TollbarError(
            f"{host} ({others[0]}) is not this machine; a test of a server that is not yours is an attack",
            where=url,
            hint=f"if it is yours, add `--i-own-this-server {host}`",
        )
    return addresses


def _listening(url: str, addresses: Sequence[str]) -> str:
    """Return the first of these addresses that accepts a connection, because some servers have IPv6 only."""
    said = []
    for address in addresses:
        try:
            socket.create_connection((_number(address), int(address.rpartition(":")[2])), CONNECT_LIMIT_S).close()
            return address
        except OSError as error:
            said.append(f"{address}: {error.strerror or error}")
    raise TollbarError(
        f"no server answers: {'; '.join(said)}", where=url, hint="`ss -ltn` lists the listening ports of this machine"
    )


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(_number(address)).is_loopback


def _number(address: str) -> str:
    return address.rpartition(":")[0].strip("[]").partition("%")[0]


def _trusted(remote: Remote, scenario: WireScenario) -> Remote:
    """Return a server with its certificate, which must verify before it gets a secret. Raises TollbarError."""
    if remote.parts.scheme != "https":
        return remote
    host, _, port = remote.address.rpartition(":")
    authorities = None if scenario.trust is None else _authorities(Path(scenario.trust))
    try:
        context = ssl.create_default_context(cadata=authorities)
        with (
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_LIMIT_S) as plain,
            context.wrap_socket(plain, server_hostname=remote.parts.hostname) as secured,
        ):
            certificate = secured.getpeercert(binary_form=True)
    except ssl.SSLCertVerificationError as error:
        raise TollbarError(
            f"the certificate does not verify: {unverified_words(error)}; a scenario sends no secret there",
            where=remote.name,
            hint='`trust = "ca.pem"` in the scenario names the certificates to accept as authorities',
        ) from error
    except ssl.SSLError as error:
        where = scenario.trust if scenario.trust and "PEM" in str(error.reason) else remote.name
        raise TollbarError(f"the TLS handshake failed: {error.reason or error}", where=where) from error
    except OSError as error:
        where = (scenario.trust if isinstance(error, FileNotFoundError) else None) or remote.name
        raise TollbarError(f"cannot be read: {error.strerror or error}", where=where) from error
    assert certificate is not None
    return replace(remote, certificate_pem=ssl.DER_cert_to_PEM_cert(certificate))


def _authorities(path: Path) -> str:
    """Return the certificates in a file. Raises TollbarError for one that is no file of certificates."""
    # The text between certificates may have any letters, and `ssl` accepts only ASCII.
    text = read_bytes(path, MOST_TRUST_BYTES).decode("ascii", "ignore")
    if _CERTIFICATE not in text:
        what = "has no certificate; it must have one or more in PEM, each after `-----BEGIN CERTIFICATE-----`"
        raise TollbarError(
            what, where=str(path), hint="`openssl x509 -in FILE -noout -subject` prints one, for example"
        )
    if (count := text.count(_BEGIN)) > MOST_AUTHORITIES:
        what = f"has {count:,} certificates; the limit is {MOST_AUTHORITIES:,}"
        raise TollbarError(what, where=str(path), hint="keep the authority of the server, for example")
    return text


def _negotiated(remote: Remote, scenario: WireScenario | None = None) -> str:
    """Return the version that a server negotiates by default. Raises TollbarError if it returns no page.

    The load client connects in the same way as in measurements.
    """
    exchange: dict[str, Any] | None = None if scenario is None else exchange_of(scenario)
    for choice in SCHEMES[remote.parts.scheme]:
        load = {
            "address": remote.address,
            "host": remote.host,
            "clients": [{"share": 100, "tls": client_of(remote, choice)}],
            "users": 1,
            "connection": "new",
            "request": {"paths": [remote.path]},
            "exchange": exchange,
            "is_lab": False,
        }
        task = {"mode": "verify", "load": load}
        with confined.one_account() as account:
            record = ask((str(engine()), "load"), task, limit_s=ANSWER_LIMIT_S, account=account)
        if record.outcome is Outcome.OK:
            return choice
        if record.outcome is not Outcome.UNSUPPORTED:
            break
    reason = record.reason or "the server does not answer"
    redirects = scenario is None and _REDIRECTED.search(reason)
    hint = "the load client follows no redirection; pass the URL of the page itself" if redirects else None
    raise TollbarError(reason, where=remote.name, hint=hint)


_BARE_HOST = re.compile(
    r"(?:localhost|[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8})(?::[0-9]{1,5})?(?:/[\w./-]{0,200})?", re.I
)
"""Host without a scheme, and without a user, whose password a hint would print."""


def _parts(url: str) -> SplitResult:
    hint = "for example `https://localhost:8443/path`"
    if _BARE_HOST.fullmatch(url):
        hint = f"did you mean `https://{url}`?"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        # The reason may quote a part of a password: `:` and `/` in it look like a port and a path.
        reason = "its user or port is not valid" if "@" in url else str(error)
        raise TollbarError(f"is not a URL: {reason}", where=masked_url(url), hint=hint) from error
    if parts.scheme not in SCHEMES or not parts.hostname or "@" in parts.netloc:
        what = "is not a URL of a server; it must be http or https, with a host and without a user"
        raise TollbarError(what, where=masked_url(url), hint=hint)
    return parts
