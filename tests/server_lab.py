"""A lab to be ended, and a program that ends it and counts its remains.

server_lab.py trials SERVER [TRIALS]             starts, asks and stops the server, or the embedded server before this
                                                 service
server_lab.py user SERVER                        does that as root, and then as an ordinary user
server_lab.py end SERVER SERVED SECONDS SIGNAL   does that in a child, ends it SECONDS after SERVED servers were up, and
                                                 prints the remains
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from tollbar.catalog import libraries, servers
from tollbar.core.runner import engine
from tollbar.lab import tls
from tollbar.lab.servers import driver
from tollbar.lab.servers.sandbox import Sandbox

PR_SET_CHILD_SUBREAPER = 36

NOBODY = 65534
CANNOT_READ = 77
PLAINTEXT = {"choice": "plaintext", "bytes": 4096}
# Some accounts are in a hundred groups, some in fifty, and some in no group.
ACCOUNTS = {"choice": "none", "accounts": 600}
SETTINGS = {"choice": "tls-1.3", "certificate": "ecdsa-p256", "key-exchange": "x25519", "bytes": 4096}


@dataclass(frozen=True)
class Answer:
    """Response, and the parameters of its connection."""

    status: str
    length: int
    cipher: str | None = None
    session: ssl.SSLSession | None = None
    resumed: bool = False


def ask(
    address: str,
    context: ssl.SSLContext | None = None,
    *,
    path: str = "/bytes/4096",
    session: ssl.SSLSession | None = None,
) -> Answer:
    """Send one request and return its response."""
    host, port = address.split(":")
    connection = socket.create_connection((host, int(port)), PATIENCE_S)
    if context:
        connection = context.wrap_socket(connection, server_hostname="localhost", session=session)
    with connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while read := connection.recv(65536):
            answer += read
        head, _, body = answer.partition(b"\r\n\r\n")
        status = head.split(b"\r\n")[0].decode().split(" ")[1]
        if not isinstance(connection, ssl.SSLSocket):
            return Answer(status, len(body))
        cipher = (connection.cipher() or [None])[0]
        return Answer(status, len(body), cipher, connection.session, bool(connection.session_reused))


def anything_goes() -> ssl.SSLContext:
    """Return a client context that accepts any certificate and offers every suite."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def provider_of(server: servers.Server) -> libraries.Provider:
    """Return the first kind of provider that the server can run on."""
    (provider,) = libraries.resolve([server.runs_on[0]])
    return provider


def start(
    sandbox: Sandbox,
    found: servers.Installed,
    provider: libraries.Provider,
    settings: Mapping[str, str | int],
    core: int | None = None,
) -> driver.StartedServer:
    """Start the server as a cell of the family `tls` with these settings does."""
    return driver.start(sandbox, tls.request(sandbox, found, provider, settings), core)


def before(service: str, words: Mapping[str, Any] | None = None) -> driver.Request:
    """Return a request to the embedded server with this service behind it."""
    found = servers.here(servers.all_servers()["embedded"])
    (provider,) = libraries.resolve(["libcrypto"])
    return driver.Request(
        found, provider, ACCOUNTS, words=words or {}, sizes=(4096,), services=(servers.service(service),)
    )


def database(
    sandbox: Sandbox, found: servers.Installed, settings: Mapping[str, str | int], core: int | None = None
) -> driver.StartedServer:
    """Start the server of a database as a cell of the family `storage` with these settings does."""
    words, shown = {"table_key": secrets.token_hex(32)}, {"table_key": "KEY"}
    request = driver.Request(found, provider_of(found.server), settings, words=words, shown_words=shown)
    return driver.start(sandbox, request, core)


def query(server: driver.StartedServer, sql: str) -> list[str]:
    """Return the lines that this database answers through its socket."""
    folder = server.work_dirs["database"]
    port = server.address.rpartition(":")[2]
    words = ["psql", "-X", "-At", "-U", "tollbar", "-h", str(folder), "-p", port, "-d", "postgres", "-c"]
    if (folder / "private").exists():
        socket_path = str(folder / "private" / "mariadb.sock")
        words = ["mariadb", "--no-defaults", "-N", "-B", "-u", "tollbar", "-S", socket_path, "-D", "tollbar", "-e"]
    done = subprocess.run([*words, sql], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def trials(name: str, count: int) -> None:
    """Print the sandbox's folder, and each address of the started servers."""
    with Sandbox() as sandbox:
        print(sandbox.directory, flush=True)
        for _ in range(count):
            # The lab does so, too: a thread starts the server and ends before it.
            with ThreadPoolExecutor(1) as pool:
                starting = pool.submit(start_named, sandbox, name)
            with starting.result() as server:
                print(server.address, flush=True)
                if is_database(name):
                    assert ["1"] == query(server, "select 1")
                    continue
                answer = ask(server.address, None if name in servers.services() else anything_goes())
                assert ("200", 4096) == (answer.status, answer.length)
    print("done", flush=True)


def is_database(name: str) -> bool:
    """Return whether this server is queried in SQL instead of HTTP."""
    return name in servers.all_servers() and servers.all_servers()[name].frontend.name == "database"


def start_named(sandbox: Sandbox, name: str) -> driver.StartedServer:
    """Start the server under TLS, the database with its tables encrypted, or the service."""
    if name in servers.services():
        return driver.start(sandbox, before(name))
    server = servers.all_servers()[name]
    if is_database(name):
        return database(sandbox, servers.here(server), {"choice": "table-encryption"})
    return start(sandbox, servers.here(server), provider_of(server), SETTINGS)


def user(name: str) -> None:
    """Give up root between two trials.

    The first has read files that perhaps only root may read, such as Python itself.
    """
    trials(name, 1)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    folder = {**servers.all_servers(), **servers.services()}[name].folder
    if not (os.access(engine(), os.X_OK) and os.access(folder / "server.toml", os.R_OK)):
        sys.exit(CANNOT_READ)
    trials(name, 1)


def end(name: str, served: int, after_s: float, how: signal.Signals) -> None:
    """End a lab and count its remains.

    They become children of this process; without children, nothing was left.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    lab = subprocess.Popen([sys.executable, __file__, "trials", name, "1000000"], stdout=subprocess.PIPE)
    assert lab.stdout is not None
    directory = Path(lab.stdout.readline().decode().strip())
    before = b"".join(lab.stdout.readline() for _ in range(served))
    time.sleep(after_s)
    os.kill(lab.pid, how)
    started = time.monotonic()
    addresses = (before + lab.stdout.read()).decode().split()
    # A lab that could not start a server ends by itself, and leaves nothing either.
    ended_by = -lab.wait()
    while time.monotonic() < started + PATIENCE_S:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
        except ChildProcessError:
            break
    took_s = time.monotonic() - started
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    listening = [address for address in addresses[-1:] if listens(address)]
    left = {"ended": ended_by == how, "directory": directory.exists(), "children": children, "listening": listening}
    print(json.dumps({"left": left, "trials": len(addresses), "took_s": round(took_s, 3)}))


def listens(address: str) -> bool:
    """Return whether a server listens there."""
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["trials", name, *count]:
            try:
                trials(name, int(count[0]) if count else 1)
            except KeyboardInterrupt:
                # Python does this itself, unless another thread meanwhile executes a string, as dataclasses do.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGINT)
        case ["user", name]:
            user(name)
        case ["end", name, served, after_s, how]:
            end(name, int(served), float(after_s), signal.Signals[how])
        case _:
            sys.exit(__doc__)
