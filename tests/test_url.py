"""A server of the user's own: asked only if it is this machine's, or was named again."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import bed_lab
from conftest import Tollbar, here
from tollbar import plan, results, study
from tollbar.beds import driver
from tollbar.errors import TollbarError
from tollbar.tls import Certificates

LOOPBACK = ("http://127.0.0.1:1/", "https://localhost:8443/path?x=1", "http://127.8.9.10/", "http://[::1]:80/")
# Addresses that no name server is asked for; the last is written as a number that means another machine.
OTHERS = ("http://192.0.2.1/", "https://198.51.100.7:8443/", "http://[2001:db8::1]/", "http://3221225985/")
NOT_URLS = ("localhost", "ftp://localhost/", "https://", "http://localhost:port/", "http://localhost:99999/")


@pytest.mark.parametrize("url", LOOPBACK)
def test_this_machine_may_be_asked(url: str) -> None:
    """Loopback by name or number needs no leave."""
    (one,) = study.refuse_others([study.of_url(url)], None)
    assert study.address_of(url) == one.address


@pytest.mark.parametrize("url", OTHERS)
def test_another_machine_is_refused_until_named_again(url: str) -> None:
    """Anything but loopback is refused, unless the very host is named again."""
    one = study.of_url(url)
    for owned in (None, "localhost", "192.0.2.2"):
        with pytest.raises(TollbarError, match="not this machine") as caught:
            study.refuse_others([one], owned)
    assert "--i-own-this-server" in (caught.value.hint or "")
    study.refuse_others([one], (caught.value.hint or "").split()[-1])


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that is measured is the one that was checked, whatever the name stands for afterwards."""
    addresses = iter(["127.0.0.1", "192.0.2.1"])

    def look_up(host: str, port: int, **more: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(addresses), port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    asked = study.refuse_others([study.of_url("http://changing.example:8080/")], None)
    (one,) = plan.make(asked, seed=0).studies
    assert {"127.0.0.1:8080"} == {cell.bed.address for cell in one.cells if cell.bed}
    assert {"http://changing.example:8080/"} == {cell.server for cell in one.cells}
    assert "192.0.2.1" == next(addresses)


@pytest.mark.parametrize("url", NOT_URLS)
def test_what_is_no_url_is_refused_in_words(url: str) -> None:
    """A URL names a server by http or https."""
    with pytest.raises(TollbarError, match="not a URL"):
        study.of_url(url)


def test_the_study_of_a_url_asks_for_what_the_url_says() -> None:
    """Both versions of TLS, connections and requests; nothing is claimed of settings that are not known."""
    (one,) = plan.make([study.of_url("https://localhost:8443/a?b={c}", (1, 4))], seed=0).studies
    assert 8 == len(one.cells)
    assert {"choice", "provider", "bed", "op", "users"} == set(one.cells[0].coordinates)
    assert "client-cpu" == one.study.measure.cost


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"hello"
        self.send_response(200 if self.path == "/page" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_server_of_the_users_own_is_measured_from_the_clients_side(tollbar: Tollbar) -> None:
    """Requests a second, latency and client CPU time, and the report says that the server's is unknown."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://localhost:{server.server_port}/page"
        done = tollbar("run", "--url", url, "--users", 2, "--blocks", 1, "--json")
    finally:
        server.shutdown()
        server.server_close()
    assert 0 == done.returncode, done.stderr
    assert '"metric": "client-cpu"' in done.stdout
    assert '"metric": "throughput"' in done.stdout
    assert '"metric": "server-cpu"' not in done.stdout


NGINX = """
daemon off;
master_process off;
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
        listen 127.0.0.1:{port} {ssl};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {chain};
        ssl_certificate_key {key};
        location = /page {{ return 200 "hello"; }}
        location / {{ return 404; }}
    }}
}}
"""


@contextmanager
def nginx(folder: Path, *, encrypted: bool, keepalive_requests: int = 1000) -> Iterator[str]:
    """A server as a user may have one, which speaks both versions of TLS; the URL of its page."""
    program = here("nginx").programs["web"]
    certificate = Certificates(folder / "certificates").server("ecdsa-p256")
    port = driver.free_port()
    (folder / "nginx.conf").write_text(
        NGINX.format(
            folder=folder,
            port=port,
            ssl="ssl" if encrypted else "",
            keepalive_requests=keepalive_requests,
            chain=certificate.chain,
            key=certificate.key,
        )
    )
    words = [str(program), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as server:
        try:
            while not bed_lab.listens(f"127.0.0.1:{port}"):
                assert server.poll() is None, "nginx did not start"
                time.sleep(0.01)
            yield f"{'https' if encrypted else 'http'}://localhost:{port}/page"
        finally:
            server.kill()


def test_a_server_that_speaks_both_versions_of_tls_is_measured(tollbar: Tollbar, tmp_path: Path) -> None:
    """It is held to what was asked of it and to nothing of the lab's own: each version has its cost and its toll."""
    with nginx(tmp_path, encrypted=True) as url:
        done = tollbar("run", "--url", url, "--users", 2, "--blocks", 2, "--json")
    assert 0 == done.returncode, done.stderr
    (study,) = json.loads(done.stdout)["studies"]
    costs = [result for result in study["results"] if result["metric"] == "client-cpu"]
    assert {("tls-1.2", "TLS 1.2"), ("tls-1.3", "TLS 1.3")} == {
        (result["choice"], agreed["version"]) for result in costs for agreed in result["negotiated"]
    }
    assert all(result["value"] > 0 for result in costs)
    ratios = {(toll["choice"], toll["setting"]["op"]): toll["ratio"] for toll in study["tolls"] if not toll["twin"]}
    assert {("tls-1.2", "request"), ("tls-1.2", "connect"), ("tls-1.3", "connect")} == ratios.keys()
    # A handshake costs more than a request on a kept connection, on any server.
    assert all(ratios[choice, "connect"] > 1 for choice in ("tls-1.2", "tls-1.3"))


def test_connections_that_the_server_closes_are_counted_and_said(tollbar: Tollbar, tmp_path: Path) -> None:
    """A server that keeps no connection for long is measured, and the reader is told what that does to a request."""
    with nginx(tmp_path, encrypted=False, keepalive_requests=10) as url:
        done = tollbar("run", "--url", url, "--users", 2, "--blocks", 1, "--json")
    assert 0 == done.returncode, done.stderr
    document = json.loads(done.stdout)
    (study,) = document["studies"]
    (said,) = [warning for warning in study["warnings"] if "opened again" in warning]
    (back,) = results.read(tmp_path / document["run"]).studies
    reopened = {
        op: sum(t.load.reopened for row in back.rows if row.coordinates["op"] == op for t in row.trials if t.load)
        for op in ("connect", "request")
    }
    # Where each request has a connection of its own, there is none to be kept.
    assert 0 == reopened["connect"]
    assert reopened["request"] > 0
    assert said.startswith("The server closed ")


def test_the_command_refuses_somebody_elses_server(tollbar: Tollbar) -> None:
    """Nothing is sent, and the status says that the arguments cannot be used."""
    done = tollbar("run", "--url", "http://192.0.2.1/")
    assert 2 == done.returncode
    assert "not this machine" in done.stderr
    assert "--i-own-this-server 192.0.2.1" in done.stderr
