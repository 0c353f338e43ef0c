"""Looks at real servers with weak and strong settings, and the command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import server_lab
from conftest import Tollbar, here
from own_server import nginx, python_server
from tollbar.catalog.servers.remote import Remote
from tollbar.decide.look.pasted import approved, pasted
from tollbar.decide.rulings import wanted
from tollbar.lab.servers import driver
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls.looking import Look, look
from tollbar.lab.tls.url import found as found_servers

WEB = ("embedded", "nginx", "httpd")


def look_at(at: Sandbox, name: str, **settings: str) -> Look:
    """Return the look at a server of the lab with these settings."""
    found = here(name)
    given = {key.replace("_", "-"): value for key, value in settings.items()}
    server = server_lab.start(at, found, server_lab.provider_of(found.server), server_lab.SETTINGS | given)
    port = server.address.rpartition(":")[2]
    try:
        return look(Remote(f"https://localhost:{port}/bytes/4096", server.address))
    finally:
        server.stop()


def names(found: Look) -> dict[str, list[str]]:
    return {version: [one.name for one in some] for version, some in found.suites.items()}


def kinds(found: Look) -> set[str]:
    return {one.kind for one in found.certificates}


@pytest.mark.parametrize("name", WEB)
def test_rsa_alone_in_tls_12(at: Sandbox, name: str) -> None:
    # The library of the embedded server has neither RSA key exchange nor CBC.
    old = {"key_exchange": "rsa", "cipher": "aes-128-cbc"} if name != "embedded" else {}
    found = look_at(at, name, choice="tls-1.2", certificate="rsa-2048", resumption="none", **old)
    assert {"tls-1.2": ["AES128-SHA" if old else "ECDHE-RSA-AES128-GCM-SHA256"]} == names(found)
    assert {"rsa-2048"} == kinds(found)
    assert bool(old) != bool(found.groups)
    assert {"tls-1.2": []} == found.resumes
    assert found.unverified
    assert () == found.doubts


@pytest.mark.parametrize("name", WEB)
@pytest.mark.parametrize("version", ["tls-1.2", "tls-1.3"])
def test_two_certificates(at: Sandbox, name: str, version: str) -> None:
    found = look_at(at, name, choice=version, certificate="rsa-2048+ecdsa-p256", key_exchange="ecdhe-p256")
    assert {"rsa-2048", "ecdsa-p256"} == kinds(found)
    assert (version,) == found.versions
    assert ["ecdhe-p256"] == [one.value for one in found.groups[version]]
    assert {"rsa", "ecdsa"} <= {one.kind for one in found.schemes[version]}


@pytest.mark.parametrize("name", WEB)
@pytest.mark.parametrize(
    ("version", "resumption", "ways"),
    [
        ("tls-1.2", "none", []),
        ("tls-1.2", "ticket", ["ticket"]),
        ("tls-1.2", "session-id", ["session-id"]),
        ("tls-1.3", "none", []),
        ("tls-1.3", "ticket", ["ticket"]),
    ],
)
def test_resumption(at: Sandbox, name: str, version: str, resumption: str, ways: list[str]) -> None:
    found = look_at(at, name, choice=version, resumption=resumption)
    assert set(ways) <= {*found.resumes[version]}
    assert bool(ways) == bool(found.resumes[version])


@pytest.mark.parametrize("cache", ["off", "shared:sessions:1m"])
@pytest.mark.parametrize("tickets", [True, False])
def test_a_session_id_is_no_ticket(tmp_path: Path, cache: str, tickets: bool) -> None:
    settings = f"ssl_session_cache {cache};"
    with nginx(tmp_path / "nginx", versions=("TLSv1.2",), tickets=tickets, more=settings) as own:
        (remote,) = found_servers([own.https], ())
        resumes = look(remote).resumes["tls-1.2"]
    assert [*(["ticket"] if tickets else []), *(["session-id"] if cache != "off" else [])] == resumes


@pytest.mark.parametrize("name", WEB)
@pytest.mark.parametrize("cipher", ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"])
def test_each_suite_of_13_is_opened(at: Sandbox, name: str, cipher: str) -> None:
    found = look_at(at, name, choice="tls-1.3", cipher=cipher, certificate="ecdsa-p256", key_exchange="x25519")
    assert [cipher] == [one.cipher for one in found.suites["tls-1.3"]]
    assert {"ecdsa-p256"} == kinds(found)
    assert ["x25519"] == [one.value for one in found.groups["tls-1.3"]]


def test_a_hybrid_group_is_learnt(at: Sandbox) -> None:
    found = look_at(at, "embedded", choice="tls-1.3", key_exchange="x25519mlkem768")
    assert ["x25519mlkem768"] == [one.value for one in found.groups["tls-1.3"]]
    assert 1 == len(found.certificates)
    assert () == found.doubts


def test_no_certificate_is_seen_behind_a_group_without_a_share(tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", versions=("TLSv1.3",), more="ssl_ecdh_curve X448;") as own:
        (remote,) = found_servers([own.https], ())
        found = look(remote)
    assert ["x448"] == [one.value for one in found.groups["tls-1.3"]]
    assert any("certificates" in one for one in found.doubts)


@pytest.mark.parametrize("name", ["nginx", "httpd"])
@pytest.mark.parametrize(("parameters", "bits"), [("modp-1024", 1024), ("ffdhe2048", 2048)])
def test_the_prime_of_a_finite_field_is_known(at: Sandbox, name: str, parameters: str, bits: int) -> None:
    found = look_at(at, name, choice="tls-1.2", certificate="rsa-2048", key_exchange="dhe", dh_parameters=parameters)
    (prime,) = found.primes
    assert (bits, parameters) == (prime.bits, prime.name)


WEAK = "ssl_ciphers ALL:eNULL:@SECLEVEL=0; ssl_prefer_server_ciphers on;"


def asked(tollbar: Tollbar, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    return tollbar("ask", "tls", "--url", url, *words)


def document(done: subprocess.CompletedProcess[str], status: int) -> dict[str, Any]:
    assert status == done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_weak_server_breaks_the_policy(tollbar: Tollbar, tmp_path: Path) -> None:
    old = ("TLSv1", "TLSv1.1", "TLSv1.2")
    with nginx(tmp_path / "nginx", versions=old, keys=("rsa-1024", "ecdsa-p256"), tickets=False, more=WEAK) as own:
        done = asked(tollbar, own.https, "--policy", "tlsref-intermediate", "--for", "0s", "--json")
    said = document(done, 1)
    assert "nginx" == said["server"]
    broken = {
        fact["setting"]: {one["value"] for one in fact["offered"] if one["ruling"] == "breaks"}
        for fact in said["facts"]
        if fact["ruling"] == "breaks"
    }
    assert {"tls-1.0", "tls-1.1"} == broken["choice"]
    assert {"rsa"} <= broken["key-exchange"]
    assert {"aes-128-cbc", "null"} <= broken["cipher"]
    assert {"rsa-1024"} == broken["certificate"]
    assert said["own_order"]["tls-1.2"]
    assert said["connections"] <= 150
    assert [] == said["doubts"]
    assert said["run"] is None


def test_the_answer_is_printed_as_markdown(tollbar: Tollbar, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", keys=("rsa-2048",), tickets=False) as own:
        words = ("--policy", "tlsref-intermediate", "--for", "0s")
        done = asked(tollbar, own.https, *words, "--markdown")
        both = asked(tollbar, own.https, *words, "--markdown", "--json")
    assert 1 == done.returncode, done.stderr
    assert done.stdout.startswith("### Which TLS does https://")
    assert "| fact | offered | standing | policy |" in done.stdout
    assert "**nginx**\n\n```\n" in done.stdout
    assert (2, "") == (both.returncode, both.stdout)


def test_a_strong_server_meets_it(tollbar: Tollbar, tmp_path: Path) -> None:
    more = "ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256; ssl_ecdh_curve X25519:prime256v1;"
    with nginx(tmp_path / "nginx", keys=("rsa-2048", "ecdsa-p256"), more=more) as own:
        done = asked(tollbar, own.https, "--policy", "tlsref-intermediate", "--for", "0s", "--json")
    said = document(done, 0)
    assert not said["breaks"]
    assert {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"} == {*said["suites"]["tls-1.2"]}
    assert {"X25519", "prime256v1"} == {*said["groups"]["tls-1.3"]}
    assert ["ticket"] == said["resumption"]["tls-1.3"]
    assert {"rsa-2048", "ecdsa-p256"} == {one["kind"] for one in said["certificates"]}


def test_pasted_lines_make_the_server_meet_the_policy(tollbar: Tollbar, tmp_path: Path) -> None:
    """The certificates are the server's own; its OpenSSL may be too old for a group of ML-KEM."""
    lines = pasted(approved(wanted("tls", ["tlsref-intermediate"])))["nginx"].split("\n")
    more = " ".join(
        line.replace("X25519MLKEM768:", "")
        for line in lines
        if not line.startswith(("#", "ssl_protocols", "ssl_certificate", "ssl_session_tickets"))
    )
    with nginx(tmp_path / "nginx", keys=("rsa-2048", "ecdsa-p256"), more=more) as own:
        said = document(asked(tollbar, own.https, "--policy", "tlsref-intermediate", "--for", "0s", "--json"), 0)
    assert {"session-id", "ticket"} == {*said["resumption"]["tls-1.2"]}
    assert 6 == len(said["suites"]["tls-1.2"])
    assert 3 == len(said["suites"]["tls-1.3"])


def test_changes_are_priced_on_a_server_of_the_same_kind(tollbar: Tollbar, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", versions=("TLSv1.2",), keys=("rsa-2048",), tickets=False) as own:
        done = asked(tollbar, own.https, "--policy", "tlsref-intermediate", "--for", "20s", "--json")
    said = document(done, 1)
    by = {one["change"]: one for one in said["changes"]}
    key = by["add a certificate with an ECDSA P-256 key"]
    assert "nginx" == key["server"]
    # Signing with RSA-2048 costs ten times as much as with P-256.
    assert key["ratio"] < 0.8
    assert by["offer tickets"]["ratio"] < 0.9
    hybrid = by["offer X25519MLKEM768 with TLS 1.3"]
    assert hybrid["ratio"] > 0.8
    assert Path(said["run"]).name in {one.name for one in (tmp_path / "runs").iterdir()}


@pytest.mark.parametrize("layout", [(), ("--json",)])
def test_failures_are_one_line(tollbar: Tollbar, tmp_path: Path, layout: tuple[str, ...]) -> None:
    with python_server(tmp_path / "python") as own:
        done = asked(tollbar, own.http.replace("http:", "https:"), "--for", "0s", *layout)
        assert 2 == done.returncode
        assert "the answer is not TLS" in done.stderr
    refused = asked(tollbar, f"https://127.0.0.1:{driver.free_port()}/", "--for", "0s", *layout)
    assert 2 == refused.returncode
    assert "no server answers" in refused.stderr
    for done in (refused, asked(tollbar, "https://192.0.2.1/"), asked(tollbar, "http://localhost/")):
        assert 2 == done.returncode
        assert "Traceback" not in done.stderr
        assert "" == done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["digest", "--url", "https://localhost/"], "`--url` needs the family `tls`"),
        (["tls", "tls-1.3", "--url", "https://localhost/"], "cannot be combined with `--url`"),
        (["tls", "server=postgresql", "--url", "https://localhost/"], "`postgresql` does not serve TLS here"),
        (["tls", "--url", "https://localhost/", "--precision", "1%"], "--precision: cannot be combined with `--url`"),
        (["tls", "--url", "https://localhost/", "--policy", "owasp-password-storage"], "owasp-password-storage"),
        (["tls", "tls-1.3", "tls-1.2", "--policy", "bcp195"], "`--policy` needs `--url`"),
    ],
)
def test_options_that_a_look_does_not_read_are_refused(tollbar: Tollbar, words: list[str], said: str) -> None:
    done = tollbar("ask", *words)
    assert 2 == done.returncode
    assert said in done.stderr
