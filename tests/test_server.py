"""Servers: every one starts, answers and leaves nothing, whatever happens to it or to the lab."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import here, lacking
from patience import PATIENCE_S
from server_lab import PLAINTEXT, SETTINGS, anything_goes, ask, listens, provider_of, start
from tollbar.catalog import libraries, servers
from tollbar.catalog.libraries import Provider
from tollbar.core import proc, runner
from tollbar.core.records import Outcome
from tollbar.lab.servers import configuration, driver, loading
from tollbar.lab.servers.driver import NotStarted
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls import certificates, certificates_of, shown_request
from tollbar.lab.tls import settings as tls

# Servers asked over HTTP; the others are databases (`test_databases`).
SERVERS = sorted(name for name, server in servers.all_servers().items() if server.frontend.name == "web")
# Servers configured in OpenSSL's words.
OPENSSL_SERVERS = ["httpd", "nginx"]


@pytest.mark.parametrize("settings", [PLAINTEXT, SETTINGS], ids=["plaintext", "tls-1.3"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_starts_answers_and_leaves_nothing(at: Sandbox, name: str, settings: Mapping[str, str | int]) -> None:
    found = here(name)
    provider = provider_of(found.server)
    before = set(at.directory.iterdir())
    with start(at, found, provider, settings) as server:
        pids = proc.tree(server.components["web"])
        assert f"{name} {found.version} ({provider.name})" == server.receipt["name"]
        answer = ask(server.address, anything_goes() if settings is SETTINGS else None)
        assert ("200", 4096) == (answer.status, answer.length)
        assert server.fault() is None
    assert [] == [pid for pid in pids if proc.start_time(pid)]
    assert not listens(server.address)
    assert {at.directory / "certificates"} >= set(at.directory.iterdir()) - before


TLS_12 = [
    ("rsa-2048", "rsa", "aes-128-gcm", "AES128-GCM-SHA256"),
    ("rsa-2048", "rsa", "aes-128-cbc", "AES128-SHA"),
    ("rsa-2048", "dhe", "aes-256-gcm", "DHE-RSA-AES256-GCM-SHA384"),
    ("rsa-2048", "ecdhe-p256", "aes-128-gcm", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("ecdsa-p256", "ecdhe-p256", "chacha20-poly1305", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ("ecdsa-p384", "x25519", "aes-256-gcm", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("rsa-1024", "ecdhe-p256", "aes-128-gcm", "ECDHE-RSA-AES128-GCM-SHA256"),
]


@pytest.mark.share
@pytest.mark.parametrize(("certificate", "key_exchange", "cipher", "suite"), TLS_12)
@pytest.mark.parametrize("name", SERVERS)
def test_tls_1_2_is_as_asked(
    at: Sandbox, system: Provider, name: str, certificate: str, key_exchange: str, cipher: str, suite: str
) -> None:
    settings = {"choice": "tls-1.2", "certificate": certificate, "key-exchange": key_exchange, "cipher": cipher}
    with start(at, here(name), system, {**settings, "bytes": 100}) as server:
        answer = ask(server.address, anything_goes(), path="/bytes/100")
        assert ("200", 100, suite) == (answer.status, answer.length, answer.cipher)


@pytest.mark.share
@pytest.mark.parametrize("parameters", certificates.dh_parameter_names())
@pytest.mark.parametrize("name", SERVERS)
def test_parameters_are_those_asked_for(at: Sandbox, system: Provider, name: str, parameters: str) -> None:
    if shutil.which("openssl") is None:
        lacking("there is no `openssl` to ask with")
    settings = {"choice": "tls-1.2", "certificate": "rsa-2048", "key-exchange": "dhe", "dh-parameters": parameters}
    with start(at, here(name), system, settings) as server:
        asked = subprocess.run(
            ["openssl", "s_client", "-connect", server.address, "-tls1_2", "-cipher", "ALL:@SECLEVEL=0"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    bits = "".join(character for character in parameters if character.isdigit())
    assert f"Server Temp Key: DH, {bits} bits" in asked.stdout


@pytest.mark.parametrize("order", tls.MAC_ORDERS)
@pytest.mark.parametrize("name", SERVERS)
def test_a_cbc_suite_has_the_order_of_its_row(at: Sandbox, system: Provider, name: str, order: str) -> None:
    if shutil.which("openssl") is None:
        lacking("there is no `openssl` to ask with")
    settings = {"choice": "tls-1.2", "certificate": "rsa-2048", "key-exchange": "rsa", "cipher": "aes-128-cbc"}
    offers = [] if order == "encrypt-then-mac" else ["-no_etm"]
    with start(at, here(name), system, {**settings, "mac-order": order, "bytes": 100}) as server:
        asked = subprocess.run(
            ["openssl", "s_client", "-connect", server.address, "-tls1_2", "-tlsextdebug", *offers],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        (client,) = tls.clients(tls.Settings.read({**settings, "mac-order": order}), certificates_of(at))
        load = {
            "address": server.address,
            "host": "localhost",
            "clients": [client],
            "users": 1,
            "connection": "new",
            "request": {"paths": ["/bytes/100"]},
            "expect": {"status": 200, "bytes": 100},
        }
        task = {"mode": "verify", "load": load}
        record = runner.ask((str(runner.engine()), "load"), task, limit_s=PATIENCE_S)
        assert Outcome.OK == record.outcome, record.reason
        assert record.proof is not None
        proven = record.proof.accepted
    assert (order == "encrypt-then-mac") == ('"encrypt-then-mac"' in asked.stdout)
    words = {"encrypt-then-mac": "encrypt-then-MAC", "mac-then-encrypt": "MAC-then-encrypt"}[order]
    assert any(f"TLS_RSA_WITH_AES_128_CBC_SHA, {words}" in what for what in proven)


@pytest.mark.share
@pytest.mark.parametrize("resumption", tls.RESUMPTIONS)
@pytest.mark.parametrize("choice", ["tls-1.2", "tls-1.3"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_session_is_resumed_where_it_is_offered(at: Sandbox, name: str, choice: str, resumption: str) -> None:
    found = here(name)
    settings = {**SETTINGS, "choice": choice, "key-exchange": "ecdhe-p256", "resumption": resumption}
    with start(at, found, provider_of(found.server), settings) as server:
        context = anything_goes()
        first = ask(server.address, context)
        # Python's ssl rejects an empty session.
        session = first.session if first.session and (first.session.id or first.session.has_ticket) else None
        second = ask(server.address, context, session=session)
    assert (False, resumption != "none") == (first.resumed, second.resumed)
    if choice == "tls-1.2":
        assert (resumption == "ticket") == bool(first.session and first.session.has_ticket)


@pytest.mark.parametrize("name", SERVERS)
def test_a_client_shows_its_certificate(at: Sandbox, name: str) -> None:
    found = here(name)
    settings = {**SETTINGS, "client-certificate": "ecdsa-p256"}
    with start(at, found, provider_of(found.server), settings) as server:
        leaf = certificates_of(at).client("ecdsa-p256")
        known, stranger = anything_goes(), anything_goes()
        known.load_cert_chain(leaf.chain, leaf.key)
        assert "200" == ask(server.address, known).status
        # nginx refuses in HTTP; others end the handshake.
        with suppress(ssl.SSLError, ConnectionError, IndexError):
            assert "400" == ask(server.address, stranger).status


@pytest.mark.parametrize("name", SERVERS)
def test_each_client_gets_the_certificate_it_can_take(at: Sandbox, name: str) -> None:
    found = here(name)
    settings = {"choice": "tls-1.2", "certificate": "rsa-2048+ecdsa-p256", "key-exchange": "ecdhe-p256", "bytes": 10}
    with start(at, found, provider_of(found.server), settings) as server:
        for algorithm in ("RSA", "ECDSA"):
            context = anything_goes()
            context.set_ciphers(f"ECDHE-{algorithm}-AES128-GCM-SHA256")
            assert f"ECDHE-{algorithm}-AES128-GCM-SHA256" == ask(server.address, context, path="/bytes/10").cipher


def test_keys_are_for_their_owner_alone(at: Sandbox) -> None:
    cells = [
        SETTINGS,
        {**SETTINGS, "client-certificate": "rsa-2048", "revocation": "list"},
        {"choice": "tls-1.2", "certificate": "rsa-2048", "key-exchange": "ecdhe-p256", "bytes": 1},
    ]
    for name in SERVERS:
        for settings in cells:
            found = here(name)
            with start(at, found, provider_of(found.server), settings) as server:
                shown = server.configuration
                assert str(at.directory) in shown
                assert "PRIVATE KEY" not in shown
                for pid in proc.tree(server.components["web"]):
                    assert b"PRIVATE KEY" not in Path(f"/proc/{pid}/cmdline").read_bytes()
                for path in at.directory.rglob("*"):
                    if path.is_file() and b"PRIVATE KEY" in path.read_bytes():
                        assert ("0o600", ".key") == (oct(path.stat().st_mode & 0o777), path.suffix)
    logs = [path for path in at.logs.rglob("*") if path.is_file()] if at.logs else []
    assert len(SERVERS) * len(cells) <= len(logs)
    assert [] == [path for path in logs if b"PRIVATE KEY" in path.read_bytes()]


@pytest.mark.parametrize("name", SERVERS)
def test_a_configuration_is_shown_without_starting_anything(name: str, system: Provider) -> None:
    found = here(name)
    shown = driver.rendered(shown_request(found, system, SETTINGS))
    assert str(found.programs["web"]) in shown
    assert ("TLS_AES_128_GCM_SHA256" if name != "embedded" else "aes-128-gcm") in shown
    assert "BEGIN" not in shown


@pytest.mark.parametrize("name", SERVERS)
def test_a_taken_port_is_left_to_its_owner(at: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = here(name)
    with socket.create_server((driver.ADDRESS, 0)) as other:
        taken = other.getsockname()[1]
        ports = iter([taken, driver.free_port()])
        monkeypatch.setattr(driver, "free_port", lambda address: next(ports))
        with start(at, found, provider_of(found.server), PLAINTEXT) as server:
            assert str(taken) not in server.address
            assert "200" == ask(server.address).status


def test_no_port_is_a_failure(at: Sandbox, system: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((driver.ADDRESS, 0)) as other:
        monkeypatch.setattr(driver, "free_port", lambda address: other.getsockname()[1])
        with pytest.raises(NotStarted, match="other programs took 5 free ports") as caught:
            start(at, here("embedded"), system, PLAINTEXT)
    assert Outcome.FAILED == caught.value.outcome


@pytest.mark.parametrize("name", OPENSSL_SERVERS)
def test_a_refused_configuration_is_unsupported(
    at: Sandbox, system: Provider, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = here(name)
    monkeypatch.setattr(tls, "LOWEST_LEVEL", "@SECLEVEL=2")
    monkeypatch.setitem(tls.GROUPS, "x25519", "NoSuchGroup")
    for settings, words in [
        ({**SETTINGS, "certificate": "rsa-1024", "key-exchange": "ecdhe-p256"}, "ee key too small"),
        (SETTINGS, "NoSuchGroup"),
    ]:
        with pytest.raises(NotStarted) as caught:
            start(at, found, system, settings)
        assert Outcome.UNSUPPORTED == caught.value.outcome
        assert words in caught.value.reason
        assert str(at.directory) not in caught.value.reason
    assert at.logs is not None
    kept = sorted(path.name for path in at.logs.glob(f"{name}/*/failed/*"))
    assert ["configuration", "configuration", "web.log", "web.log"] == kept
    assert [] == at.running


def test_rustls_refuses_what_it_does_not_speak(at: Sandbox) -> None:
    (provider,) = libraries.resolve(["aws-lc"])
    settings = {"choice": "tls-1.2", "certificate": "rsa-2048", "key-exchange": "rsa"}
    with pytest.raises(NotStarted) as caught:
        start(at, here("embedded"), provider, settings)
    assert Outcome.UNSUPPORTED == caught.value.outcome
    assert caught.value.reason


IMPOSSIBLE = [
    ({"choice": "tls-1.3", "key-exchange": "rsa", "certificate": "rsa-2048"}, "TLS 1.3 has no key exchange `rsa`"),
    ({"choice": "tls-1.3", "cipher": "aes-128-cbc"}, "TLS 1.3 has no cipher"),
    ({"choice": "tls-1.2", "key-exchange": "x25519mlkem768"}, "no hybrid"),
    ({"choice": "tls-1.2", "key-exchange": "mlkem1024"}, "no ML-KEM"),
    ({"choice": "tls-1.2", "certificate": "ml-dsa-65"}, "no ML-DSA"),
    ({"choice": "tls-1.2", "client-certificate": "ml-dsa-87"}, "no ML-DSA"),
    ({"choice": "tls-1.2", "key-exchange": "dhe", "certificate": "ecdsa-p256"}, "`dhe` needs an RSA certificate"),
    ({"choice": "tls-1.2", "key-exchange": "rsa", "certificate": "rsa-2048", "cipher": "chacha20-poly1305"}, "ChaCha"),
    ({"choice": "tls-1.3", "certificate": "rsa-2049"}, "no such certificate: `rsa-2049`; did you mean"),
    ({"choice": "tls-1.3", "certificate": "rsa-2048+rsa-3072"}, "must have different algorithms"),
    ({"choice": "tls-1.3", "resumed": 50}, "`resumed` above 0 needs a `resumption`"),
    ({"choice": "tls-1.3", "old-clients": 50}, "`old-clients` needs an RSA certificate and another"),
    ({"choice": "tls-1.3", "resumption": "ticket", "resumed": 101}, "percent"),
    ({"choice": "tls-1.4"}, "no such choice"),
]


@pytest.mark.parametrize(("settings", "words"), IMPOSSIBLE)
def test_impossible_settings_are_said_to_be(settings: dict[str, str | int], words: str) -> None:
    with pytest.raises(tls.Impossible, match=words):
        tls.Settings.read(settings)


def test_an_impossible_cell_is_unsupported(at: Sandbox, system: Provider) -> None:
    with pytest.raises(NotStarted, match=r"TLS 1\.3 has no cipher") as caught:
        start(at, here("embedded"), system, {"choice": "tls-1.3", "cipher": "aes-128-cbc"})
    assert Outcome.UNSUPPORTED == caught.value.outcome
    assert [] == at.running


def test_a_provider_that_the_server_does_not_run_on_is_unsupported(at: Sandbox) -> None:
    for name, spec, settings in [("nginx", "aws-lc", PLAINTEXT), ("embedded", "rustcrypto", SETTINGS)]:
        (provider,) = libraries.resolve([spec])
        with pytest.raises(NotStarted, match="does not run on") as caught:
            start(at, here(name), provider, settings)
        assert Outcome.UNSUPPORTED == caught.value.outcome


@pytest.mark.parametrize("name", SERVERS)
def test_a_private_openssl_is_the_one_that_is_loaded(at: Sandbox, name: str) -> None:
    (provider,) = libraries.resolve(["libcrypto:psycopg"])
    with start(at, here(name), provider, SETTINGS) as server:
        assert provider.path is not None
        assert os.path.realpath(provider.path) == server.receipt["libcrypto"]
        assert os.path.dirname(server.receipt["libcrypto"]) == os.path.dirname(server.receipt["libssl"])
        assert provider.name in server.receipt["name"]
        assert "200" == ask(server.address, anything_goes()).status


@pytest.mark.parametrize("name", OPENSSL_SERVERS)
def test_a_server_on_the_systems_libcrypto_is_started_as_the_system_starts_it(at: Sandbox, name: str) -> None:
    """Only another libcrypto than its own needs the variable."""
    system, other = libraries.resolve(["libcrypto", "libcrypto:psycopg"])
    assert {} == loading.environment(here(name), system, at)
    assert ["LD_LIBRARY_PATH"] == list(loading.environment(here(name), other, at))


@pytest.mark.parametrize("name", OPENSSL_SERVERS)
def test_another_openssl_than_the_row_says_is_not_measured(
    at: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (provider,) = libraries.resolve(["libcrypto:psycopg"])
    monkeypatch.setattr(loading, "environment", lambda found, provider, sandbox: {})
    with pytest.raises(NotStarted, match=r"runs on .* instead of") as caught:
        start(at, here(name), provider, SETTINGS)
    assert Outcome.UNSUPPORTED == caught.value.outcome
    assert [] == at.running


@pytest.mark.parametrize("group", ["x25519mlkem768", "secp384r1mlkem1024", "mlkem1024"])
def test_post_quantum_groups_work_on_a_new_openssl(at: Sandbox, group: str) -> None:
    (provider,) = libraries.resolve(["libcrypto:psycopg"])
    with start(at, here("nginx"), provider, {**SETTINGS, "key-exchange": group}) as server:
        # OpenSSL's client offers it by default.
        if group == "x25519mlkem768" and ssl.OPENSSL_VERSION_INFO >= (3, 5):
            assert "200" == ask(server.address, anything_goes()).status
        else:
            with pytest.raises(ssl.SSLError):
                ask(server.address, anything_goes())


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_dies_says_so(at: Sandbox, name: str) -> None:
    found = here(name)
    server = start(at, found, provider_of(found.server), PLAINTEXT)
    os.kill(proc.tree(server.components["web"])[1], signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while server.fault() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "was ended by SIGKILL" in (server.fault() or "")
    server.stop()
    assert at.logs is not None
    assert ["configuration"] == [path.name for path in at.logs.glob(f"{name}/*/failed/configuration")]


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_stays_on_its_core(at: Sandbox, name: str) -> None:
    found = here(name)
    core = max(os.sched_getaffinity(0))
    with start(at, found, provider_of(found.server), PLAINTEXT, core=core) as server:
        for pid in proc.tree(server.components["web"]):
            limits = Path(f"/proc/{pid}/limits").read_text()
            assert str(configuration.files_limit()) in limits
        assert {(core,)} == {tuple(os.sched_getaffinity(pid)) for pid in proc.tree(server.components["web"])}
