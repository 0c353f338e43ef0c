"""A server that the user has: the study that is made of its URL, and whose server it is."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Sequence
from dataclasses import replace
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


def refuse_others(studies: Sequence[Study], owned: str | None) -> tuple[Study, ...]:
    """The studies, each with the address of its URL.

    Raises TollbarError for one that is not this machine's loopback, unless the user named its host again. The name
    is looked up here and nowhere else: asked again, it might have another address than the one that was checked.
    """
    return tuple(study if study.url is None else _addressed(study, study.url, owned) for study in studies)


def _addressed(study: Study, url: str, owned: str | None) -> Study:
    host, address = _parts(url).hostname, address_of(url)
    number = address.rpartition(":")[0].strip("[]").partition("%")[0]
    if not ipaddress.ip_address(number).is_loopback and owned != host:
        raise TollbarError(
            f"{host} ({number}) is not this machine: a load test of a server that is not yours is an attack",
            where=url,
            hint=f"if it is yours, name it again: --i-own-this-server {host}",
        )
    return replace(study, address=address)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise TollbarError(f"not a URL: {error}", where=url) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TollbarError("not a URL of a server", where=url, hint="as in https://localhost:8443/path")
    return parts
