"""Servers like a user's own: nginx with given versions of TLS, and Python's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import server_lab
from conftest import here
from tollbar.core import proc
from tollbar.lab.servers import driver
from tollbar.lab.tls import Certificates

BOTH = ("TLSv1.2", "TLSv1.3")
WORKERS = 2

NGINX = """
daemon off;
{user}
worker_processes {workers};
pid {folder}/nginx.pid;
events {{}}
http {{
    access_log off;
    keepalive_requests {keepalive_requests};
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        listen 127.0.0.1:{clear_port};
        ssl_protocols {versions};
        ssl_session_tickets {tickets};
        {certificates}
        {more}
        location = /page {{ return 200 "hello"; }}
        location / {{ return 404; }}
    }}
}}
"""


@dataclass(frozen=True)
class Own:
    """Running server with the URLs of its page."""

    process: subprocess.Popen[bytes]
    http: str
    https: str = ""

    @property
    def pid(self) -> int:
        """Return the process at the root of its tree."""
        return self.process.pid


@contextmanager
def nginx(
    folder: Path,
    *,
    versions: Sequence[str] = BOTH,
    keepalive_requests: int = 100_000,
    tickets: bool = True,
    keys: Sequence[str] = ("ecdsa-p256",),
    more: str = "",
) -> Iterator[Own]:
    """Start a master with its workers, which answers over TLS on one port and in clear on another.

    `keys` are the kinds of its certificates, and `more` is further lines of its server.
    """
    folder.mkdir(exist_ok=True)
    certificates = [Certificates(folder / "certificates").server(kind) for kind in keys]
    port, clear_port = driver.free_port(), driver.free_port()
    (folder / "nginx.conf").write_text(
        NGINX.format(
            folder=folder,
            # Only root can start workers as another user, and does so by default.
            user="user root;" if os.geteuid() == 0 else "",
            workers=WORKERS,
            port=port,
            clear_port=clear_port,
            versions=" ".join(versions),
            keepalive_requests=keepalive_requests,
            tickets="on" if tickets else "off",
            certificates=" ".join(
                f"ssl_certificate {one.chain}; ssl_certificate_key {one.key};" for one in certificates
            ),
            more=more,
        )
    )
    program = here("nginx").programs["web"]
    words = [str(program), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with started(words, port) as process:
        while len(proc.tree(process.pid)) <= WORKERS:
            time.sleep(0.01)
        yield Own(process, f"http://localhost:{clear_port}/page", f"https://localhost:{port}/page")


@contextmanager
def python_server(folder: Path) -> Iterator[Own]:
    """Start Python's own server, which speaks HTTP/1.0 and closes each connection after its answer."""
    folder.mkdir(exist_ok=True)
    (folder / "page").write_text("hello")
    port = driver.free_port()
    words = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), str(port)]
    with started(words, port) as process:
        yield Own(process, f"http://127.0.0.1:{port}/page")


@contextmanager
def started(words: Sequence[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not server_lab.listens(f"127.0.0.1:{port}"):
                assert process.poll() is None, f"{words[0]} did not start"
                time.sleep(0.01)
            yield process
        finally:
            # A terminated master ends its workers.
            process.terminate()
