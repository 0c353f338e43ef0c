"""First flight of a TLS client, and the server's answer to it, for a look at a server.

Only the bytes that a look needs are written and read, so that it can offer more than any library here: old versions,
broken ciphers and new groups. No handshake is completed. An answer comes from a stranger: its size, its time and
every length in it are checked, and it is data alone.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.lab.tls import opening
from tollbar.lab.tls.code_points import VERSIONS, schemes, suites
from tollbar.lab.tls.opening import Share

# Largest handshake message, and largest answer: a chain of ten certificates with ML-DSA has some 60 KB.
MOST_MESSAGE, MOST_ANSWER = 1 << 17, 1 << 18
# RFC 9846 section 5.2: a record with 16 KiB, and room for its protection.
MOST_RECORD = (1 << 14) + 2048

ALERT, HANDSHAKE, APPLICATION = 21, 22, 23
_CHANGE_CIPHER = 20
_SERVER_HELLO, _CERTIFICATE, _KEY_EXCHANGE, _DONE, _PROOF = 2, 11, 12, 14, 15
_NAME, _GROUPS, _POINTS, _SCHEMES, _ENCRYPT_THEN_MAC, _EXTENDED, _TICKET = 0, 10, 11, 13, 22, 23, 35
_VERSIONS, _MODES, _SCHEMES_OF_CHAIN, _SHARES = 43, 45, 50, 51
_RENEGOTIATION = 0x00FF
_NAMED_CURVE = 3
_WARNING, _UNRECOGNIZED_NAME = 1, 112
# RFC 9846 section 4.1.3: a server hello with this random is a request to begin again with another share.
_AGAIN = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
ALERTS: Mapping[int, str] = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 40: "handshake_failure", 42: "bad_certificate",
    47: "illegal_parameter", 50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
    71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled",
    109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name", 116: "certificate_required",
    120: "no_application_protocol",
}  # fmt: skip
_ERROR = ALERTS[80]


class NotTls(Exception):
    """Raised for an answer that is not TLS, or not well formed."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer of a client."""

    version: str
    """The only version that it accepts."""
    suites: tuple[int, ...]
    groups: tuple[int, ...] = ()
    schemes: tuple[int, ...] = ()
    host: str | None = None
    """Name of the server; None: it has none, only an address."""
    share: Share | None = None
    """Key share of TLS 1.3; without one the server is asked to name a group."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreed parameters of a handshake."""

    version: str
    suite: int
    group: int | None = None
    scheme: int | None = None
    """Signature scheme of the server's proof; None where it was not sent, or not read."""
    certificate: bytes | None = None
    """Certificate of the server itself, as DER."""
    prime: int | None = None
    """Prime of a Diffie-Hellman key exchange over a finite field."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """End of a handshake without an agreement."""

    why: str
    is_timeout: bool = False

    @property
    def is_error(self) -> bool:
        """True if the server failed at an offer that it had accepted."""
        return self.why == _ERROR


def ask(address: str, offer: Offer, limit_s: float) -> Agreement | Refusal:
    """Return a server's answer to an offer.

    Raises NotTls for an answer that is not TLS, and OSError if no connection is accepted.
    """
    until_s = time.monotonic() + limit_s
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), limit_s) as connection:
        try:
            hello = _hello(offer)
            connection.sendall(_records(offer, hello))
            return _answer(connection, offer, hello, until_s)
        except TimeoutError:
            return Refusal(f"no answer within {limit_s:g} s", is_timeout=True)
        except OSError as error:
            # Some servers reset a connection instead of sending an alert.
            return Refusal(error.strerror or "the connection was closed")


class _Refused(Exception):
    """Raised for an alert, and for the end of a connection."""


@dataclass(slots=True)
class _Reader:
    """Handshake messages of a connection, with limits for their size and time."""

    connection: socket.socket
    until_s: float
    read: int = 0
    pending: bytes = b""
    secrets: opening.Secrets | None = None

    def messages(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield each message: its type, its body, and the whole of it."""
        while True:
            while len(self.pending) >= 4:
                kind, size = self.pending[0], int.from_bytes(self.pending[1:4])
                if size > MOST_MESSAGE:
                    raise NotTls(f"a handshake message of {size:,} B")
                if len(self.pending) < 4 + size:
                    break
                whole, self.pending = self.pending[: 4 + size], self.pending[4 + size :]
                yield kind, whole[4:], whole
            self.pending += self._fragment()

    def _fragment(self) -> bytes:
        """Return the content of the next record of the handshake. Raises _Refused for an alert."""
        while True:
            head = self._bytes(5)
            kind, version, size = struct.unpack(">BHH", head)
            if kind not in (_CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION) or version >> 8 != 3:
                raise NotTls(f"the answer begins with `{_text(head)}`" if self.read == len(head) else "a broken record")
            if size > MOST_RECORD:
                raise NotTls(f"a record of {size:,} B")
            body = self._bytes(size)
            if kind == APPLICATION:
                if self.secrets is None:
                    raise NotTls("data before the handshake's end")
                kind, body = self.secrets.opened(head, body)
            if kind == ALERT:
                code = body[1] if len(body) > 1 else -1
                if body[:2] == bytes([_WARNING, _UNRECOGNIZED_NAME]):
                    # RFC 6066 section 3: the handshake goes on with the certificate of another name.
                    continue
                raise _Refused(ALERTS.get(code, f"alert {code}"))
            if kind == HANDSHAKE:
                return body

    def _bytes(self, number: int) -> bytes:
        found = b""
        while len(found) < number:
            left_s = self.until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            self.connection.settimeout(left_s)
            some = self.connection.recv(number - len(found))
            if not some:
                if found:
                    raise NotTls(f"the answer ends within a record: `{_text(found)}`")
                raise _Refused("the connection was closed")
            found += some
        self.read += number
        if self.read > MOST_ANSWER:
            raise NotTls(f"an answer of more than {MOST_ANSWER:,} B")
        return found


def _answer(connection: socket.socket, offer: Offer, hello: bytes, until_s: float) -> Agreement | Refusal:
    reader = _Reader(connection, until_s)
    try:
        return _agreed(reader, offer, hello)
    except _Refused as refused:
        return Refusal(str(refused))
    except IndexError as error:
        raise NotTls("a handshake message is shorter than its own lengths") from error
    except opening.NotOpened as error:
        raise NotTls(str(error)) from error


def _agreed(reader: _Reader, offer: Offer, hello: bytes) -> Agreement:
    messages = reader.messages()
    kind, body, whole = next(messages)
    if kind != _SERVER_HELLO:
        raise NotTls(f"the first message has the type {kind}")
    found, is_again, share = _server_hello(body)
    if found.version != offer.version:
        # A server without the offered version may answer with its own.
        raise _Refused(f"it chose {found.version}")
    if offer.version == "tls-1.3":
        if is_again or offer.share is None:
            return found
        reader.secrets = opening.secrets(offer.share, share, suites()[found.suite].name, hello + whole)
        return _proved(messages, found)
    return _in_clear(messages, found)


def _server_hello(body: bytes) -> tuple[Agreement, bool, bytes]:
    """Return the agreement, whether the server wants another share, and its own share."""
    part = _Part(body)
    number, random = part.number(2), part.take(32)
    part.take(part.number(1))
    suite, _ = part.number(2), part.number(1)
    group, share = None, b""
    extensions = _Part(part.take(part.number(2))) if part.rest else _Part(b"")
    while extensions.rest:
        kind, inner = extensions.number(2), _Part(extensions.take(extensions.number(2)))
        if kind == _VERSIONS:
            number = inner.number(2)
        elif kind == _SHARES:
            group = inner.number(2)
            share = inner.take(inner.number(2)) if inner.rest else b""
    if suite not in suites():
        raise NotTls(f"the suite 0x{suite:04x}, which was not offered")
    name = next((name for name, one in VERSIONS.items() if one == number), f"version 0x{number:04x}")
    return Agreement(name, suite, group), random == _AGAIN, share


def _in_clear(messages: Iterator[tuple[int, bytes, bytes]], found: Agreement) -> Agreement:
    """Return the agreement with certificate and key exchange, as versions before TLS 1.3 send them."""
    for kind, body, _ in messages:
        if kind == _CERTIFICATE:
            part = _Part(body)
            part.number(3)
            found = replace(found, certificate=part.take(part.number(3)) if part.rest else None)
        elif kind == _KEY_EXCHANGE:
            found = _exchanged(_Part(body), found)
        elif kind == _DONE:
            return found
    return found


def _exchanged(part: _Part, found: Agreement) -> Agreement:
    suite = suites()[found.suite]
    if suite.key_exchange == "dhe" or suite.name.startswith("ADH-"):
        prime = int.from_bytes(part.take(part.number(2)))
        part.take(part.number(2))
        part.take(part.number(2))
        found = replace(found, prime=prime)
    elif part.number(1) == _NAMED_CURVE:
        found = replace(found, group=part.number(2))
        part.take(part.number(1))
    else:
        return found
    is_signed = suite.key_exchange != "anon" and found.version == "tls-1.2"
    return replace(found, scheme=part.number(2)) if is_signed else found


def _proved(messages: Iterator[tuple[int, bytes, bytes]], found: Agreement) -> Agreement:
    """Return the agreement with certificate and scheme of the proof, from TLS 1.3's encrypted messages."""
    for kind, body, _ in messages:
        part = _Part(body)
        if kind == _CERTIFICATE:
            part.take(part.number(1))
            part.number(3)
            found = replace(found, certificate=part.take(part.number(3)) if part.rest else None)
        elif kind == _PROOF:
            return replace(found, scheme=part.number(2))
    return found


class _Part:
    """Bytes that are read from their beginning. Raises IndexError beyond their end."""

    def __init__(self, rest: bytes) -> None:
        self.rest = rest

    def take(self, number: int) -> bytes:
        if number > len(self.rest):
            raise IndexError
        taken, self.rest = self.rest[:number], self.rest[number:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))


def _text(some: bytes) -> str:
    return some.decode("ascii", "replace")


def _records(offer: Offer, hello: bytes) -> bytes:
    version = 0x0300 if offer.version == "ssl-3" else 0x0301
    return struct.pack(">BHH", HANDSHAKE, version, len(hello)) + hello


def _hello(offer: Offer) -> bytes:
    """Return the client hello."""
    is_13 = offer.version == "tls-1.3"
    numbers = offer.suites if is_13 else (*offer.suites, _RENEGOTIATION)
    body = struct.pack(">H", min(VERSIONS[offer.version], VERSIONS["tls-1.2"]))
    # A session id in TLS 1.3 lets the handshake pass devices that know earlier versions only.
    body += os.urandom(32) + _sized(1, os.urandom(32) if is_13 else b"")
    body += _sized(2, _numbers(numbers)) + _sized(1, b"\0")
    if offer.version != "ssl-3":
        body += _sized(2, b"".join(struct.pack(">H", kind) + _sized(2, inner) for kind, inner in _extensions(offer)))
    return bytes([1]) + _sized(3, body)


def _extensions(offer: Offer) -> Iterator[tuple[int, bytes]]:
    is_13 = offer.version == "tls-1.3"
    if offer.host is not None:
        yield _NAME, _sized(2, b"\0" + _sized(2, offer.host.encode("idna")))
    if offer.groups:
        yield _GROUPS, _sized(2, _numbers(offer.groups))
    if offer.schemes and offer.version in ("tls-1.2", "tls-1.3"):
        yield _SCHEMES, _sized(2, _numbers(offer.schemes))
        # Which scheme signed the certificate is no part of the question.
        yield _SCHEMES_OF_CHAIN, _sized(2, _numbers([*schemes()]))
    if is_13:
        shares = b"" if offer.share is None else struct.pack(">H", offer.share.group) + _sized(2, offer.share.public)
        yield _VERSIONS, _sized(1, _numbers([VERSIONS["tls-1.3"]]))
        yield _MODES, _sized(1, b"\1")
        yield _SHARES, _sized(2, shares)
    else:
        yield _POINTS, _sized(1, b"\0")
        yield from ((_ENCRYPT_THEN_MAC, b""), (_EXTENDED, b""), (_TICKET, b""))


def _sized(size: int, inner: bytes) -> bytes:
    """Return bytes after their length, which has `size` bytes."""
    return len(inner).to_bytes(size) + inner


def _numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">{len(numbers)}H", *numbers)
