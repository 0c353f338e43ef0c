"""Addresses of hosts, looked up within a limit."""

from __future__ import annotations

import socket
import threading
from queue import Empty, SimpleQueue
from typing import Any

# A name server that is there answers within a second. The system's own limit is 10 s for each server and domain.
LIMIT_S = 10.0


def addresses(host: str, port: int) -> list[tuple[Any, ...]]:
    """Return the result of `socket.getaddrinfo` for a stream. Raises the same errors, and TimeoutError.

    A thread looks the name up, because the system's function ends for no signal: with silent name servers, Ctrl-C had
    no effect for a minute.
    """
    answer: SimpleQueue[list[tuple[Any, ...]] | Exception] = SimpleQueue()

    def look_up() -> None:
        try:
            answer.put([*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except Exception as error:  # whichever it is, the caller gets it
            answer.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        found = answer.get(timeout=LIMIT_S)
    except Empty:
        raise TimeoutError(f"no name server answered within {LIMIT_S:.0f} s") from None
    if isinstance(found, Exception):
        raise found
    return found
