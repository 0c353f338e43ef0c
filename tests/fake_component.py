"""A component that becomes ready in each way or fails to, and prepares itself or fails to.

fake_component.py -v                                prints its version
fake_component.py serve HOW FAULT ADDRESS PORT      HOW is a kind of readiness; FAULT is one of `none`,
                                                    `never` (ready), `dies`, `mumbles` (prints a line, and goes on)
                                                    and `stubborn` (does not stop)
fake_component.py prepare COUNT FAULT               adds a line to the file COUNT, and writes `state`, half of it first
fake_component.py count COUNT                       succeeds at the third run

The program imports nothing that loads a libcrypto, and writes the signal that ends it to `ended-by`.
"""

import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

FOREVER_S = 3600.0


def serve(how: str, fault: str, address: str, port: int) -> None:
    def end(number: int, frame: object) -> None:
        Path(os.environ.get("ENDED_BY", "ended-by")).write_text(signal.Signals(number).name)
        if fault != "stubborn":
            sys.exit(0)

    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(one, end)
    is_ready = fault in ("none", "stubborn")
    Path("started").touch()
    if fault == "dies":
        sys.exit("out of luck")
    if fault == "mumbles":
        print("good evening", flush=True)
        time.sleep(FOREVER_S)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        if fault != "never" or how == "http":
            listener.listen()
        if is_ready:
            Path("up").touch()
            if how == "line":
                print(json.dumps({"listening": f"{address}:{port}"}), flush=True)
        kept = []
        while is_ready or how == "http":
            connection, _ = listener.accept()
            with suppress(OSError):
                if is_ready and connection.recv(65536):
                    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            if is_ready:
                connection.close()
            kept.append(connection)
        time.sleep(FOREVER_S)


def prepare(count: Path, fault: str) -> None:
    with count.open("a") as file:
        file.write("prepared\n")
    Path("state").write_text("half")
    if fault == "hangs":
        time.sleep(FOREVER_S)
    if fault == "fails":
        sys.exit("no more than half")
    Path("state").write_text("whole")


def succeed_the_third_time(count: Path) -> None:
    with count.open("a") as file:
        file.write("tried\n")
    sys.exit(len(count.read_text().splitlines()) < 3)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["-v"]:
            print(f"fake/{os.environ.get('FAKE_VERSION', '1.2')}")
        case ["serve", how, fault, address, port]:
            serve(how, fault, address, int(port))
        case ["prepare", count, fault]:
            prepare(Path(count), fault)
        case ["count", count]:
            succeed_the_third_time(Path(count))
        case _:
            sys.exit(__doc__)
