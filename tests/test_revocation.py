"""Revocation lists: all servers refuse the same certificates, and none accepts a client without its list."""

from __future__ import annotations

import os
import signal
import ssl
import time
from datetime import timedelta

import pytest

from conftest import here
from server_lab import PATIENCE_S, SETTINGS, anything_goes, ask, provider_of, start
from tollbar.catalog import servers
from tollbar.core import proc
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import NotStarted
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls import Certificates, certificates, certificates_of
from tollbar.lab.tls.certificates import Certificate

SERVERS = sorted(name for name, server in servers.all_servers().items() if server.frontend.name == "web")
KIND, OTHER_KIND = "ecdsa-p256", "rsa-2048"
CHOICES = ["tls-1.2", "tls-1.3"]
# Signals to read the configuration again; the embedded server never does.
RELOADED_BY = {"httpd": signal.SIGUSR1, "nginx": signal.SIGHUP}
# Sessions that a server resumes without checking its current list: nginx's session memory outlives its workers, and
# neither OpenSSL nor nginx checks a resumed session's certificate again.
OUTLIVE_A_LIST = {("nginx", "session-id")}


def started(at: Sandbox, name: str, choice: str, resumption: str = "none") -> driver.StartedServer:
    """Start a server that checks clients' certificates."""
    found = here(name)
    asked = {"choice": choice, "client-certificate": KIND, "revocation": "list", "resumption": resumption}
    return start(at, found, provider_of(found.server), {**SETTINGS, "key-exchange": "ecdhe-p256", **asked})


def client(leaf: Certificate) -> ssl.SSLContext:
    """Return a client context with this certificate."""
    context = anything_goes()
    context.load_cert_chain(leaf.chain, leaf.key)
    return context


def is_served(server: driver.StartedServer, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> bool:
    """Return whether the client gets the page; otherwise the handshake ends, or nginx refuses in HTTP.

    Check that the server is up in either case.
    """
    try:
        status = ask(server.address, context, session=session).status
    except ConnectionRefusedError:
        raise
    except (ssl.SSLError, ConnectionError, IndexError):
        assert server.fault() is None
        return False
    assert status in ("200", "400")
    return status == "200"


def put(made: Certificates, revoked: Certificate) -> None:
    """Make the list name this certificate instead of its usual one."""
    kind = certificates.AUTHORITY[KIND]
    listed = certificates._revoking(revoked, made._authorities[kind], authority=kind)
    made.revocations(KIND).file.write_bytes(listed)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", SERVERS)
def test_a_certificate_on_the_list_is_refused_and_another_served(at: Sandbox, name: str, choice: str) -> None:
    made = certificates_of(at)
    with started(at, name, choice) as server:
        assert is_served(server, client(made.client(KIND)))
        assert not is_served(server, client(made.revocations(KIND).revoked))


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", SERVERS)
def test_a_list_that_has_expired_lets_no_client_in(
    at: Sandbox, name: str, choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Revocations since its expiry may be missing."""
    made = certificates_of(at)
    known = client(made.client(KIND))
    revoked = made.revocations(KIND).revoked
    with started(at, name, choice) as server:
        assert is_served(server, known)
    with monkeypatch.context() as patch:
        patch.setattr(certificates, "VALID", timedelta(seconds=-60))
        put(made, revoked)
    with started(at, name, choice) as server:
        assert not is_served(server, known)


@pytest.mark.share(3)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", SERVERS)
def test_the_list_of_another_authority_lets_no_client_in(at: Sandbox, name: str, choice: str) -> None:
    made = certificates_of(at)
    known = client(made.client(KIND))
    made.revocations(KIND).file.write_bytes(made.revocations(OTHER_KIND).file.read_bytes())
    with started(at, name, choice) as server:
        assert not is_served(server, known)


@pytest.mark.parametrize("missing", ["no file", "nothing in it", "no list in it"])
@pytest.mark.parametrize("name", SERVERS)
def test_without_its_list_a_server_lets_no_client_in(at: Sandbox, name: str, missing: str) -> None:
    """The server does not start; two servers notice the content of another file only with their first client."""
    made = certificates_of(at)
    known, file = client(made.client(KIND)), made.revocations(KIND).file
    if missing == "no file":
        file.unlink()
    else:
        file.write_bytes(b"" if missing == "nothing in it" else made.client(KIND).authority.read_bytes())
    if missing == "no list in it" and name in ("httpd", "nginx"):
        with started(at, name, "tls-1.3") as server:
            assert not is_served(server, known)
        return
    with pytest.raises(NotStarted), started(at, name, "tls-1.3"):
        pass


@pytest.mark.share(4)
@pytest.mark.parametrize("resumption", ["session-id", "ticket"])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", SERVERS)
def test_a_session_does_not_outlive_the_list_of_its_server(
    at: Sandbox, name: str, choice: str, resumption: str
) -> None:
    """Servers read their list as they start, and check new clients only, so a start must end every session."""
    made = certificates_of(at)
    leaf = made.client(KIND)
    made.revocations(KIND)
    known = client(leaf)
    with started(at, name, choice, resumption) as server:
        session = ask(server.address, known).session
        put(made, leaf)
        assert ask(server.address, known, session=session).resumed
        assert is_served(server, client(leaf))
    with started(at, name, choice, resumption) as server:
        assert not is_served(server, known, session)
        assert not is_served(server, client(leaf))


@pytest.mark.share(4)
@pytest.mark.parametrize("resumption", ["session-id", "ticket"])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", sorted(RELOADED_BY))
def test_a_server_that_is_told_to_reads_the_new_list(at: Sandbox, name: str, choice: str, resumption: str) -> None:
    made = certificates_of(at)
    leaf = made.client(KIND)
    made.revocations(KIND)
    known = client(leaf)
    with started(at, name, choice, resumption) as server:
        session = ask(server.address, known).session
        put(made, leaf)
        _, main, *workers = proc.tree(server.components["web"])
        os.kill(main, RELOADED_BY[name])
        end_s = time.monotonic() + PATIENCE_S
        # Old workers serve for a while next to the new ones.
        while is_served(server, client(leaf)) or {*workers} & {*proc.tree(server.components["web"])}:
            assert time.monotonic() < end_s, "the new list is not used"
            time.sleep(0.05)
        assert ((name, resumption) in OUTLIVE_A_LIST) == is_served(server, known, session)
