"""Whole handshakes for a look at a server: whether it resumes sessions, and whether its certificate verifies."""

from __future__ import annotations

import re
import socket
import ssl
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass

from tollbar.catalog.servers.remote import Remote

MOST_HEAD = 1 << 14
"""Largest part of an answer that is read, in bytes."""
_VERSIONS = {
    "tls-1.3": ssl.TLSVersion.TLSv1_3,
    "tls-1.2": ssl.TLSVersion.TLSv1_2,
    "tls-1.1": ssl.TLSVersion.TLSv1_1,
    "tls-1.0": ssl.TLSVersion.TLSv1,
}
# As in the header `Server`, up to its version: nginx, Apache.
_SERVER = re.compile(rb"\r\nserver:[ \t]*([A-Za-z][A-Za-z-]{0,30})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Resumed:
    """Attempt to resume a session."""

    done: bool
    why: str | None = None
    """Reason why it could not be tried; None: it was tried."""
    server: str | None = None
    """Name that the server gives itself in its answer."""


def resumed(remote: Remote, version: str, *, by_ticket: bool, limit_s: float) -> Resumed:
    """Return whether a second connection resumes the session of a first one, by ticket or by session id."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        # A weak server must be looked at too: its keys may be below the library's own level.
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            # Python advises against versions that a look must try.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = _VERSIONS[version]
        if not by_ticket:
            context.options |= ssl.OP_NO_TICKET
        with _connected(remote, context, None, limit_s) as first:
            head = _answered(first, remote, limit_s)
            session = first.session
        server = _SERVER.search(head)
        named = server[1].decode("ascii") if server else None
        # Without a ticket, a client that accepts them resumes by session id.
        if session is None or session.has_ticket != by_ticket:
            # TLS 1.3 sends tickets later: a server that closes the connection first, for example because it requires
            # a certificate of the client, shows nothing.
            why = "the server gave no answer to a request" if version == "tls-1.3" and not head else None
            return Resumed(False, why, server=named)
        with _connected(remote, context, session, limit_s) as second:
            return Resumed(bool(second.session_reused), server=named)
    except (OSError, ValueError, KeyError) as error:
        return Resumed(False, reason(error))


def unverified(remote: Remote, limit_s: float) -> str | None:
    """Return why the certificate does not verify by this machine's authorities; None: it verifies."""
    context = ssl.create_default_context()
    try:
        _connected(remote, context, None, limit_s).close()
    except ssl.SSLCertVerificationError as error:
        return unverified_words(error)
    except OSError as error:
        return f"no handshake was completed ({reason(error)})"
    return None


def unverified_words(error: ssl.SSLCertVerificationError) -> str:
    """Return why a certificate does not verify; some of OpenSSL's messages end with a full stop."""
    return error.verify_message.rstrip(".")


def reason(error: Exception) -> str:
    """Return the reason of a failed handshake in words."""
    if isinstance(error, ssl.SSLError):
        return str(error.reason or "the handshake failed").lower().replace("_", " ")
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror if isinstance(error, OSError) else None) or "this machine's OpenSSL does not support it"


def _connected(
    remote: Remote, context: ssl.SSLContext, session: ssl.SSLSession | None, limit_s: float
) -> ssl.SSLSocket:
    host, _, port = remote.address.rpartition(":")
    plain = socket.create_connection((host.strip("[]"), int(port)), limit_s)
    try:
        return context.wrap_socket(plain, server_hostname=remote.parts.hostname, session=session)
    except BaseException:
        plain.close()
        raise


def _answered(connection: ssl.SSLSocket, remote: Remote, limit_s: float) -> bytes:
    """Return the head of the answer to one request: TLS 1.3 sends its tickets after the handshake.

    A server of another protocol than HTTP may wait for something else. Its tickets came all the same.
    """
    request = f"HEAD {remote.path} HTTP/1.1\r\nHost: {remote.host}\r\nConnection: close\r\n\r\n"
    connection.sendall(request.encode("ascii", "replace"))
    until_s, head = time.monotonic() + limit_s, b""
    with suppress(TimeoutError):
        while len(head) < MOST_HEAD and b"\r\n\r\n" not in head:
            connection.settimeout(max(until_s - time.monotonic(), 0.001))
            some = connection.recv(MOST_HEAD)
            if not some:
                break
            head += some
    return head
