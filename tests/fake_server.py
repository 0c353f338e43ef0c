#!/usr/bin/env python3
"""A web server that serves `/bytes/N`, in clear or under TLS, and fails as requested.

fake_server.py -v      prints its version
fake_server.py         reads its task from standard input, as JSON:
    port, fault, after, sign, tls: null or {"version", "cipher", "chain", "key"}, other: {"chain", "key"}

`fault` is one of START_FAULTS, ANSWER_FAULTS and TLS_FAULTS. Faults of answers and of TLS begin after a number of
correctly served requests or connections (`after`), or, if that is null, once there is a file named `sign`; and then
they never end. `…-once` is wrong one time.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

FOREVER_S = 3600.0


class Closed(Exception):
    """End of a connection: no more data follows."""


class Server:
    """State of the server: its task and its progress."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.fault: str = told["fault"] or ""
        self.after: int | None = told["after"]
        self.sign: str = told["sign"]
        self.tls: Mapping[str, str] | None = told["tls"]
        self.other: Mapping[str, str] = told["other"]
        # Python cannot disable a server's session memory; contexts that share none have none.
        self.common = context_of(self, faulty=True) if self.fault == "every-session" else None
        self._counters = {"request": count(1), "connection": count(1), "sign": count(1)}

    def is_faulty(self, faults: Mapping[str, Any], what: str) -> bool:
        """Return whether this request or connection goes wrong; call it once for each."""
        if self.fault.removesuffix("-once") not in faults:
            return False
        is_once = self.fault.endswith("-once")
        if self.after is not None:
            number = next(self._counters[what])
            return number == self.after + 1 if is_once else number > self.after
        try:
            os.stat(self.sign)
        except FileNotFoundError:
            return False
        # Counted, because the sign is in the lab's folder, where the server's account cannot remove it.
        return not is_once or next(self._counters["sign"]) == 1


# Before there is anything to answer.


def unready(listener: socket.socket) -> None:
    """Run without accepting connections."""
    listener.close()
    time.sleep(FOREVER_S)


def mute(listener: socket.socket) -> None:
    """Accept connections silently, and ignore SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        listener.accept()[0].detach()


def refuse(listener: socket.socket) -> None:
    """Refuse the configuration."""
    sys.exit("refused: no such curve in line 7")


def leave(listener: socket.socket) -> None:
    """End with a status and an error line."""
    sys.exit("out of luck")


def crash(listener: socket.socket) -> None:
    """End by a signal."""
    os.kill(os.getpid(), signal.SIGSEGV)


START_FAULTS: dict[str, Callable[[socket.socket], None]] = {
    "unready": unready,
    "mute": mute,
    "refuse": refuse,
    "leave": leave,
    "crash": crash,
}

# Instead of an answer.

asked = 0


def head(length: int, status: str = "200 OK") -> bytes:
    """Return the head of a response."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n".encode()


def reset(connection: socket.socket, length: int) -> None:
    """Reset the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise Closed


def wrong_status(connection: socket.socket, length: int) -> None:
    """Answer 503, with an error line that differs each time."""
    global asked
    asked += 1
    print(f"sorry, it is the {('1st', '2nd')[asked > 1]} time", file=sys.stderr, flush=True)
    connection.sendall(head(length, "503 Not Now") + bytes(length))


def half(connection: socket.socket, length: int) -> None:
    """Send half of the promised body and close."""
    connection.sendall(head(length) + bytes(length // 2))
    raise Closed


def drip(connection: socket.socket, length: int) -> None:
    """Send a byte now and then, without end."""
    for byte in head(length) + bytes(length):
        connection.sendall(bytes([byte]))
        time.sleep(0.02)


def babble(connection: socket.socket, length: int) -> None:
    """Send header lines without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-More: and more\r\n" * 100)


ANSWER_FAULTS: dict[str, Callable[[socket.socket, int], None]] = {
    "die": lambda connection, length: os.kill(os.getpid(), signal.SIGSEGV),
    "wrong-length": lambda connection, length: connection.sendall(head(10) + bytes(10)),
    "wrong-status": wrong_status,
    "reset": reset,
    "half": half,
    "garbage": lambda connection, length: connection.sendall(b"\x00\xff\xfe rubbish \r\n\r\n" + bytes(length)),
    "stall": lambda connection, length: time.sleep(FOREVER_S),
    "drip": drip,
    "babble": babble,
}

# Faults of the handshake, or of wrong acceptances.
TLS_FAULTS = (
    "other-certificate",
    "other-version",
    "other-suite",
    "handshake-garbage",
    "handshake-stall",
    "every-version",
    "every-session",
    "clear-too",
)
# Wrong acceptances in clear.
GULLIBLE = ("every-path",)


def context_of(server: Server, *, faulty: bool) -> ssl.SSLContext:
    """Return the TLS context for a connection: as requested, or with the fault."""
    assert server.tls is not None
    fault = server.fault if faulty else ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wanted = ssl.TLSVersion[server.tls["version"]]
    another = ssl.TLSVersion.TLSv1_2 if wanted is ssl.TLSVersion.TLSv1_3 else ssl.TLSVersion.TLSv1_3
    context.minimum_version = context.maximum_version = another if fault == "other-version" else wanted
    if fault == "every-version":
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    if fault != "every-session":
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    context.set_ciphers("ECDHE+AES256" if fault == "other-suite" else server.tls["cipher"])
    # The only curve that every Python can name.
    context.set_ecdh_curve("prime256v1")
    identity = server.other if fault == "other-certificate" else server.tls
    context.load_cert_chain(identity["chain"], identity["key"])
    return context


def secured(server: Server, connection: socket.socket) -> socket.socket:
    """Return the connection, under TLS if that is set and the client begins so."""
    if server.tls is None:
        return connection
    first = connection.recv(1, socket.MSG_PEEK)
    if first != b"\x16":
        # A client in clear is the readiness probe, or one that must be refused.
        if server.fault != "clear-too":
            connection.sendall(head(0, "400 Bad Request"))
            raise Closed
        return connection
    faulty = server.is_faulty(dict.fromkeys(TLS_FAULTS), "connection")
    if faulty and server.fault == "handshake-garbage":
        connection.sendall(bytes(range(256)))
        raise Closed
    if faulty and server.fault == "handshake-stall":
        time.sleep(FOREVER_S)
    context = server.common or context_of(server, faulty=faulty)
    return context.wrap_socket(connection, server_side=True)


def serve(server: Server, connection: socket.socket) -> None:
    """Answer requests until the client closes."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = secured(server, connection)
        held = b""
        while True:
            while b"\r\n\r\n" not in held:
                read = connection.recv(65536)
                if not read:
                    return
                held += read
            request, _, held = held.partition(b"\r\n\r\n")
            answer(server, connection, request.split(b" ")[1].decode())
            if b"connection: close" in request.lower():
                return
    except (Closed, OSError):
        pass
    finally:
        connection.close()


def answer(server: Server, connection: socket.socket, path: str) -> None:
    """Answer one request."""
    place, _, size = path.rpartition("/")
    if place != "/bytes":
        # A wrong answer of the right length, where any path is accepted.
        right = server.fault == "every-path"
        connection.sendall(head(1000) + bytes(1000) if right else head(0, "404 Not Found"))
    # The empty document is the readiness probe's.
    elif size != "0" and server.is_faulty(ANSWER_FAULTS, "request"):
        ANSWER_FAULTS[server.fault.removesuffix("-once")](connection, int(size))
    else:
        connection.sendall(head(int(size)) + bytes(int(size)))


def main() -> None:
    """Listen at the requested port."""
    if sys.argv[1:] == ["-v"]:
        print("fake/1.2")
        return
    told = json.load(sys.stdin)
    server = Server(told)
    assert not server.fault or server.fault.removesuffix("-once") in {
        *START_FAULTS, *ANSWER_FAULTS, *TLS_FAULTS, *GULLIBLE
    }  # fmt: skip
    with socket.create_server(("127.0.0.1", told["port"]), backlog=128) as listener:
        if server.fault in START_FAULTS:
            START_FAULTS[server.fault](listener)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(server, connection), daemon=True).start()


if __name__ == "__main__":
    main()
