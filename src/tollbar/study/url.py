"""A server that the user has: the study that is made of its URL, and whose server it is."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from tollbar.errors import TollbarError
from tollbar.study.definition import Study
from tollbar.study.reading import read

# As many connections at once as an idle and a busy moment of a small service have.
DEFAULT_USERS = (1, 8)


def of_url(url: str, users: Sequence[int] = DEFAULT_USERS) -> Study:
    """The study of one URL: connections and requests, over each version of TLS where it is `https`."""
    parts = _parts(url)
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    text = f"""\
question  = {json.dumps(f"What does {url} cost its clients?")}
family    = "tls"
url       = {json.dumps(url)}
providers = ["aws-lc"]
choices   = {json.dumps(["tls-1.2", "tls-1.3"] if secure else ["plaintext"])}
baseline  = {{ choice = "{"tls-1.3" if secure else "plaintext"}", op = "request" }}
notes     = ["Measured from the client's side alone: what the server pays for it is not known."]

[load]
users   = {json.dumps(list(users))}
request = {{ get = {json.dumps(path.replace("{", "{{").replace("}", "}}"))} }}

[measure]
trial   = "500 ms"
warm-up = "100 ms"
blocks  = 12
"""
    return read("url", text, where=url)


def address_of(url: str) -> str:
    """`address:port` of a URL's host, resolved once. Raises TollbarError where there is none."""
    parts = _parts(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise TollbarError(f"the host `{host}` has no address: {error}", where=url) from error
    # IPv4 first: a server that listens on `localhost` by that name often has no other.
    address = str(sorted(found, key=lambda one: one[0] != socket.AF_INET)[0][4][0])
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def refuse_others(studies: Sequence[Study], owned: str | None) -> None:
    """Raises TollbarError for a URL whose host is not this machine's loopback, unless the user named it again."""
    for study in studies:
        if study.url is None:
            continue
        host = _parts(study.url).hostname
        address = address_of(study.url).rpartition(":")[0].strip("[]")
        if not ipaddress.ip_address(address.partition("%")[0]).is_loopback and owned != host:
            raise TollbarError(
                f"{host} ({address}) is not this machine: a load test of somebody else's server is an attack",
                where=study.url,
                hint=f"if it is yours, name it again: --i-own-this-server {host}",
            )


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise TollbarError(f"not a URL: {error}", where=url) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TollbarError("not a URL of a server", where=url, hint="as in https://localhost:8443/path")
    return parts
