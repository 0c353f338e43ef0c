"""A server of the user's own: asked only if it is this machine's, or was named again."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conftest import Tollbar
from tollbar import plan, study
from tollbar.errors import TollbarError

LOOPBACK = ("http://127.0.0.1:1/", "https://localhost:8443/path?x=1", "http://127.8.9.10/", "http://[::1]:80/")
# Addresses that no name server is asked for; the last is written as a number that means another machine.
OTHERS = ("http://192.0.2.1/", "https://198.51.100.7:8443/", "http://[2001:db8::1]/", "http://3221225985/")
NOT_URLS = ("localhost", "ftp://localhost/", "https://", "http://localhost:port/", "http://localhost:99999/")


@pytest.mark.parametrize("url", LOOPBACK)
def test_this_machine_may_be_asked(url: str) -> None:
    """Loopback by name or number needs no leave."""
    study.refuse_others([study.of_url(url)], None)


@pytest.mark.parametrize("url", OTHERS)
def test_another_machine_is_refused_until_named_again(url: str) -> None:
    """Anything but loopback is refused, unless the very host is named again."""
    one = study.of_url(url)
    for owned in (None, "localhost", "192.0.2.2"):
        with pytest.raises(TollbarError, match="not this machine") as caught:
            study.refuse_others([one], owned)
    assert "--i-own-this-server" in (caught.value.hint or "")
    study.refuse_others([one], (caught.value.hint or "").split()[-1])


@pytest.mark.parametrize("url", NOT_URLS)
def test_what_is_no_url_is_refused_in_words(url: str) -> None:
    """A URL names a server by http or https."""
    with pytest.raises(TollbarError, match="not a URL"):
        study.of_url(url)


def test_the_study_of_a_url_asks_for_what_the_url_says() -> None:
    """Both versions of TLS, connections and requests; nothing is claimed of settings that nobody knows."""
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
        done = tollbar("run", "--url", url, "--users", 2, "--blocks", 2, "--json")
    finally:
        server.shutdown()
        server.server_close()
    assert 0 == done.returncode, done.stderr
    assert '"metric": "client-cpu"' in done.stdout
    assert '"metric": "throughput"' in done.stdout
    assert '"metric": "server-cpu"' not in done.stdout


def test_the_command_refuses_somebody_elses_server(tollbar: Tollbar) -> None:
    """Nothing is sent, and the status says that the arguments cannot be used."""
    done = tollbar("run", "--url", "http://192.0.2.1/")
    assert 2 == done.returncode
    assert "not this machine" in done.stderr
    assert "--i-own-this-server 192.0.2.1" in done.stderr
