"""Looks at servers that nobody runs, and a server that answers a handshake with given bytes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

from tollbar.catalog.servers.remote import Remote
from tollbar.lab.tls import Certificates
from tollbar.lab.tls.code_points import Group, Scheme, Suite, groups, schemes, suites
from tollbar.lab.tls.looking import Look, Prime
from tollbar.lab.tls.presented import Presented

URL = "https://localhost:8443/"
ENDS = date(2027, 1, 1)


def suites_named(*names: str) -> list[Suite]:
    known = {one.name: one for one in suites().values()}
    return [known[name] for name in names]


def groups_of(*values: str) -> list[Group]:
    return [next(one for one in groups().values() if one.value == value) for value in values]


def schemes_named(*names: str) -> list[Scheme]:
    known = {one.name: one for one in schemes().values()}
    return [known[name] for name in names]


def look_of(
    by_version: Mapping[str, Sequence[str]],
    *,
    of_groups: Mapping[str, Sequence[str]],
    certificates: Sequence[str] = ("rsa-2048",),
    signed: Sequence[str] = ("rsa_pss_rsae_sha256",),
    primes: Sequence[Prime] = (),
    resumes: Mapping[str, Sequence[str]] | None = None,
    server: str | None = None,
    doubts: Sequence[str] = (),
    subject: str = "example.org",
) -> Look:
    """Return a look at a server with these abilities."""
    newest = next(iter(by_version))
    return Look(
        remote=Remote(URL, "127.0.0.1:8443"),
        suites={version: suites_named(*names) for version, names in by_version.items()},
        prefers=dict.fromkeys(by_version, True),
        groups={version: groups_of(*values) for version, values in of_groups.items()},
        primes=primes,
        schemes={newest: schemes_named(*signed)},
        certificates=[Presented(kind, subject, "an authority", ENDS) for kind in certificates],
        resumes={newest: ["ticket"]} if resumes is None else resumes,
        not_tried={},
        unverified=None,
        server=server,
        connections=40,
        doubts=doubts,
    )


WEAK = look_of(
    {
        "tls-1.2": ["ECDHE-RSA-AES256-GCM-SHA384", "AES128-GCM-SHA256", "AES128-SHA", "DES-CBC3-SHA"],
        "tls-1.1": ["AES128-SHA"],
        "tls-1.0": ["AES128-SHA"],
    },
    of_groups={"tls-1.2": ["ecdhe-p384", "ecdhe-p256"]},
    signed=["rsa_pss_rsae_sha256", "rsa_pkcs1_sha1"],
    resumes={"tls-1.2": []},
)
"""RSA alone, old versions, RSA key exchange, CBC and 3DES, no resumption."""
STRONG = look_of(
    {
        "tls-1.3": ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"],
        "tls-1.2": ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
    },
    of_groups={"tls-1.3": ["x25519mlkem768", "x25519", "ecdhe-p256"], "tls-1.2": ["x25519", "ecdhe-p256"]},
    certificates=["ecdsa-p256", "rsa-2048"],
    signed=["ecdsa_secp256r1_sha256"],
)
"""The values of TLSRef's intermediate profile, with two certificates."""


@contextmanager
def mute(folder: Path, most: int | None = None, *, tickets: bool = True, closes: bool = False) -> Iterator[str]:
    """Yield the address of a server that completes each handshake and then says nothing.

    It `closes` the connection or waits. After `most` connections, if given, it closes each at once.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if not tickets:
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    own = Certificates(folder).server("ecdsa-p256")
    context.load_cert_chain(own.chain, own.key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept: list[socket.socket] = []

        def serve() -> None:
            number = 0
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                number += 1
                if most is not None and number > most:
                    connection.close()
                    continue
                with suppress(OSError):
                    secured = context.wrap_socket(connection, server_side=True)
                    kept.append(secured)
                    if closes:
                        secured.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()


@contextmanager
def answering(answer: bytes, *, stays: bool = False) -> Iterator[str]:
    """Yield the address of a server that answers each connection with these bytes, and closes it unless it `stays`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                    connection.recv(65536)
                    connection.sendall(answer)
                except OSError:
                    return
                kept.append(connection)
                if not stays:
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            host, port = listening.getsockname()
            yield f"{host}:{port}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()
