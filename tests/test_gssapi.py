"""Kerberos and NTLM: the load client, against a real KDC and Apache's mod_auth_gssapi."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import lacking
from patience import PATIENCE_S
from server_lab import listens
from tollbar.core.runner import engine
from tollbar.lab.servers.sandbox import Sandbox

PATH = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
KDC = ["krb5kdc", "-n"]
PROGRAMS = ["kdb5_util", "kadmin.local", "krb5kdc", "apache2"]
MODULES = Path("/usr/lib/apache2/modules")
NTLM_MODULE = Path("/etc/gss/mech.d/mech.ntlmssp.conf")
INSTALL = "apt-get install krb5-kdc krb5-admin-server apache2 libapache2-mod-auth-gssapi gss-ntlmssp"
REALM = "TOLLBAR.TEST"
ACCOUNTS = {f"u{index:05d}": f"password-{index}" for index in range(4)}
BYTES = 1000
# The directory marks this service as trusted for delegation, and the client forwards the user's ticket to it.
TRUSTED = "HTTP/web3.tollbar.test"
FORWARDED = {"service": "HTTP@web3.tollbar.test", "delegate": True}

# Configuration of each location, which decides how often it authenticates.
WITH_KEYS = "GssapiAllowedMech krb5\nGssapiCredStore keytab:{folder}/keytab\n"
LOCATIONS = {
    "request": WITH_KEYS,
    "connection": WITH_KEYS + "GssapiConnectionBound On",
    "session": WITH_KEYS
    + "GssapiUseSessions On\nGssapiSessionKey file:{folder}/session.key\n"
    + "Session On\nSessionCookieName session path=/session",
    "ntlm": "GssapiAllowedMech ntlmssp\nGssapiConnectionBound On",
}

KRB5_CONF = """
[libdefaults]
default_realm = {realm}
dns_lookup_realm = false
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
forwardable = true
[realms]
{realm} = {{
  kdc = 127.0.0.1:{kdc}
}}
[domain_realm]
.tollbar.test = {realm}
[dbmodules]
{realm} = {{
  db_library = db2
  database_name = {folder}/principal
}}
"""

KDC_CONF = """
[kdcdefaults]
kdc_listen = 127.0.0.1:{kdc}
kdc_tcp_listen = 127.0.0.1:{kdc}
[realms]
{realm} = {{
  key_stash_file = {folder}/stash
  supported_enctypes = aes256-cts:normal
  default_principal_flags = +preauth
}}
[logging]
kdc = FILE:{folder}/kdc.log
"""

HTTPD_CONF = """
ServerRoot {folder}
ServerName web1.tollbar.test
PidFile {folder}/httpd.pid
DefaultRuntimeDir {folder}
Mutex file:{folder} default
ErrorLog {folder}/error.log
# What mod_auth_gssapi says each time that it authenticates.
LogLevel info auth_gssapi:debug
Listen 127.0.0.1:{web}
DocumentRoot {folder}/documents
MaxKeepAliveRequests 0
ServerLimit 1
StartServers 1
Header set X-User "expr=%{{REMOTE_USER}}"
{locations}
"""
LOADED = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi", "headers", "session", "session_cookie"]


@dataclass(frozen=True)
class Site:
    """KDC and a web server that knows its users."""

    folder: Path
    ports: Mapping[str, int]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        names = {"KRB5_CONFIG": "krb5.conf", "KRB5_KDC_PROFILE": "kdc.conf", "NTLM_USER_FILE": "ntlm"}
        files = {variable: f"{self.folder}/{name}" for variable, name in names.items()}
        return {"PATH": PATH, **files, "KRB5RCACHENAME": f"file2:{self.folder}/replays"}

    def run(self, *words: str, text: str = "") -> None:
        subprocess.run(
            words, input=text, env=self.environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
        )

    def start(self, name: str, *words: str, **more: Any) -> None:
        """Start a server, and wait until it listens."""
        with (self.folder / f"{name}.out").open("wb") as out:
            self.processes[name] = subprocess.Popen(
                words, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **more
            )
        address = f"127.0.0.1:{self.ports[name]}"
        end = time.monotonic() + PATIENCE_S
        while not listens(address):
            assert self.processes[name].poll() is None, out.name
            assert time.monotonic() < end, out.name
            time.sleep(0.02)

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        process.wait(timeout=PATIENCE_S)

    def authentications(self) -> int:
        """Return how often the web server has authenticated."""
        log = (self.folder / "error.log").read_text()
        return log.count("GSSapiImpersonate not On") - log.count("Already established context found")

    def issued(self) -> dict[str, int]:
        """Return how many tickets the directory has issued: to users, and for services."""
        log = (self.folder / "kdc.log").read_text()
        return {kind: len(re.findall(f"{kind}_REQ.*ISSUE", log)) for kind in ("AS", "TGS")}

    def exchange(self, scheme: str, **settings: Any) -> dict[str, Any]:
        accounts = {"file": str(self.folder / "accounts.tsv"), "count": len(ACCOUNTS)}
        of_scheme = {
            "kerberos": {
                "krb5_config": f"{self.folder}/krb5.conf",
                "another_service": "HTTP@web2.tollbar.test",
                "mechanism": "spnego",
            },
            "ntlm": {"domain": "TOLLBAR"},
        }[scheme]
        common = {"scheme": scheme, "accounts": accounts, "service": "HTTP@web1.tollbar.test"}
        return {**common, **of_scheme, **settings}

    def load(
        self, mode: str, location: str, exchange: dict[str, Any], chunks: Sequence[int] = (), **more: Any
    ) -> list[dict[str, Any]]:
        """Return the load client's answers; each chunk has at least the given number of operations."""
        load = {
            "address": f"127.0.0.1:{self.ports['web']}",
            "host": "web1.tollbar.test",
            "clients": [{"share": 1}],
            "users": 2,
            "connection": "user",
            "request": {"paths": [f"/{location}/page"]},
            "expect": {"status": 200, "bytes": BYTES},
            "components": {"web": self.processes["web"].pid},
            "exchange": exchange,
            **more,
        }
        advances = [{"advance": {"seconds": 0.001, "operations": operations}} for operations in chunks]
        lines = [{"contract": 2, "mode": mode, "provider": {"kind": "load"}, "seed": 7, "load": load}, *advances]
        # The result must not depend on the user's environment.
        bare = {"PATH": PATH, "HOME": str(self.folder), "KRB5CCNAME": f"FILE:{self.folder}/must-not-be-made"}
        text = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run(
            [str(engine()), "load"],
            input=text,
            env=bare,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        assert not (self.folder / "must-not-be-made").exists()
        return [json.loads(line) for line in done.stdout.splitlines()]


def free_ports() -> dict[str, int]:
    with ExitStack() as held:
        sockets = {name: held.enter_context(socket.create_server(("127.0.0.1", 0))) for name in ("kdc", "web")}
        return {name: held.getsockname()[1] for name, held in sockets.items()}


def write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a KDC with a few users and two services, one of which is the web server."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    missing += [str(path) for path in (MODULES / "mod_auth_gssapi.so", NTLM_MODULE) if not path.exists()]
    if missing:
        lacking(f"not here: {', '.join(missing)}: {INSTALL}")
    with Sandbox(tmp_path_factory.mktemp("logs")) as sandbox:
        account = sandbox.account_of("site")
        site = Site(sandbox.work_dir("site"), free_ports())
        values = {"folder": site.folder, "realm": REALM, **site.ports}
        write(site.folder / "krb5.conf", KRB5_CONF.format(**values))
        write(site.folder / "kdc.conf", KDC_CONF.format(**values))
        write(site.folder / "accounts.tsv", "".join(f"{name}\t{word}\t0\n" for name, word in ACCOUNTS.items()))
        write(site.folder / "ntlm", "".join(f"TOLLBAR:{name}:{word}\n" for name, word in ACCOUNTS.items()))
        write(site.folder / "httpd.conf", configuration(values))
        for location in LOCATIONS:
            (site.folder / "documents" / location).mkdir(parents=True)
            (site.folder / "documents" / location / "page").write_bytes(b"a" * BYTES)
        site.run("kdb5_util", "create", "-s", text="master\nmaster\n")
        services = {"HTTP/web1.tollbar.test": "", "HTTP/web2.tollbar.test": "", TRUSTED: "+ok_as_delegate "}
        commands = [f"addprinc -pw {word} {name}" for name, word in ACCOUNTS.items()]
        commands += [f"addprinc -randkey {options}{service}" for service, options in services.items()]
        commands += [f"ktadd -k {site.folder}/keytab {service}" for service in ("HTTP/web1.tollbar.test", TRUSTED)]
        site.run("kadmin.local", text="\n".join(commands) + "\n")
        more: dict[str, Any] = {"user": account.number, "group": account.number, "extra_groups": []} if account else {}
        for path in (site.folder, *site.folder.rglob("*")):
            if account:
                os.chown(path, account.number, account.number)
        site.start("kdc", *KDC)
        site.start("web", "apache2", "-f", f"{site.folder}/httpd.conf", "-DFOREGROUND", **more)
        try:
            yield site
        finally:
            for name in list(site.processes):
                site.stop(name)


def configuration(values: Mapping[str, Any]) -> str:
    """Return the web server's configuration."""
    loaded = [f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in LOADED]
    locations = [
        f"<Location /{name}>\nAuthType GSSAPI\nAuthName tollbar\nRequire valid-user\n"
        f"{text.format(**values)}\n</Location>"
        for name, text in LOCATIONS.items()
    ]
    return "\n".join([*loaded, HTTPD_CONF.format(**values, locations="\n".join(locations))])


OF_KERBEROS = [
    "no credentials",
    r"a wrong password: u\d+ cannot sign in: Preauthentication failed",
    r"an unknown user: .* not found in Kerberos database",
    "a replayed token",
    "a token for another service",
]
OF_NTLM = ["no credentials", "a wrong password", "an unknown user", "the answer to another challenge"]
PROOFS: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("request", "kerberos", {}, OF_KERBEROS),
    ("request", "kerberos", FORWARDED, OF_KERBEROS),
    ("connection", "kerberos", {"persistence": "connection"}, OF_KERBEROS),
    ("session", "kerberos", {"persistence": "session"}, OF_KERBEROS),
    ("ntlm", "ntlm", {}, OF_NTLM),
]


@pytest.mark.parametrize(("location", "scheme", "settings", "refused"), PROOFS)
def test_right_users_are_let_in_and_all_others_refused(
    site: Site, location: str, scheme: str, settings: dict[str, Any], refused: list[str]
) -> None:
    (answer,) = site.load("verify", location, site.exchange(scheme, **settings))
    assert "ok" == answer["outcome"], answer
    proof = answer["proof"]
    assert "the user that signed in is the one that the server saw" in proof["accepted"]
    assert [] == proof["not_tried"]
    for expected in refused:
        assert any(re.fullmatch(expected, words) for words in proof["refused"]), (expected, proof["refused"])
    # The receipt names the library that made the tokens after the engine.
    assert "MIT krb5-" in answer["receipt"]["provider"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"delegate": True}, "the user's ticket was not forwarded"),
        ({**FORWARDED, "delegate": False}, "the user's ticket was forwarded to an account without delegation"),
    ],
)
def test_a_ticket_is_forwarded_to_whom_the_directory_trusts(site: Site, settings: dict[str, Any], words: str) -> None:
    (answer,) = site.load("verify", "request", site.exchange("kerberos", **settings))
    assert "failed" == answer["outcome"]
    assert words in answer["reason"]


# Settings of a load, limits of a request's bytes, and whether the server authenticates each request.
PERSISTENCE: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], tuple[int, int], bool]] = {
    "each request": ("request", "kerberos", {}, {}, (700, 2000), True),
    "each request, made ahead": ("request", "kerberos", {"ahead": True}, {}, (700, 2000), True),
    "with the user's ticket": ("request", "kerberos", {"ahead": True, **FORWARDED}, {}, (1500, 4000), True),
    "a connection": ("connection", "kerberos", {"persistence": "connection"}, {}, (30, 100), False),
    "a connection each": (
        "connection",
        "kerberos",
        {"persistence": "connection"},
        {"connection": "new"},
        (700, 2000),
        True,
    ),
    "a session": ("session", "kerberos", {"persistence": "session"}, {}, (100, 500), False),
    "sign-on": ("request", "kerberos", {"operation": "sign-on"}, {}, (700, 2000), True),
    "ntlm": ("ntlm", "ntlm", {}, {}, (30, 100), False),
    "ntlm, sign-on": ("ntlm", "ntlm", {"operation": "sign-on"}, {"connection": "new"}, (400, 1000), True),
}


@pytest.mark.parametrize("case", PERSISTENCE)
def test_a_server_authenticates_as_often_as_asked(site: Site, case: str) -> None:
    location, scheme, settings, more, (least, most), each = PERSISTENCE[case]
    before = site.authentications()
    *lines, end = site.load("measure", location, site.exchange(scheme, **settings), [20, 20], **more)
    assert "ok" == end["outcome"], end
    chunks = lines[1:]
    requests = sum(chunk["operations"] for chunk in chunks)
    assert requests >= 40
    for chunk in chunks:
        assert least < chunk["observed"]["bytes_sent"] / chunk["operations"] < most
    authenticated = site.authentications() - before
    # Each user signs in once, before anything is accounted for.
    assert authenticated >= requests if each else authenticated == 2


def test_a_sign_on_is_an_exchange_with_the_directory(site: Site) -> None:
    """A sign-on fetches a user's ticket and one for the service; a request uses tickets fetched before."""
    for operation in ("sign-on", "request"):
        before = site.issued()
        *_, end = site.load("measure", "request", site.exchange("kerberos", operation=operation), [20])
        assert "ok" == end["outcome"], end
        for kind, count in site.issued().items():
            asked = count - before[kind]
            assert asked >= 20 if operation == "sign-on" else asked == len(ACCOUNTS), (operation, kind)


def test_tickets_are_kept_for_the_next_trial(site: Site) -> None:
    """The next trial of requests fetches no tickets; sign-ons and proofs do. Only the owner can read the files."""
    kept = site.folder / "tickets"
    trials = [("measure", "request", False), ("measure", "request", True), ("measure", "sign-on", False)]
    for mode, operation, has_all in [*trials, ("verify", "request", False)]:
        before = site.issued()
        exchange = site.exchange("kerberos", operation=operation, tickets=str(kept))
        *_, end = site.load(mode, "request", exchange, [20] if mode == "measure" else ())
        assert "ok" == end["outcome"], end
        assert has_all == (before == site.issued()), (mode, operation)
        files = {path.name for path in kept.iterdir()}
        assert files == {f"HTTP@web1.tollbar.test-{name}" for name in ACCOUNTS}
        assert {0o600} == {path.stat().st_mode & 0o777 for path in kept.iterdir()}
        assert 0o700 == kept.stat().st_mode & 0o777


def test_tickets_that_are_old_are_fetched_anew(site: Site) -> None:
    kept = site.folder / "aging"
    exchange = site.exchange("kerberos", tickets=str(kept))
    for hours, has_all in [(0, False), (3, True), (5, False), (0, True)]:
        for path in kept.iterdir() if kept.exists() else ():
            os.utime(path, (time.time() - hours * 3600,) * 2)
        before = site.issued()
        *_, end = site.load("measure", "request", exchange, [20])
        assert "ok" == end["outcome"], end
        assert has_all == (before == site.issued()), hours


def test_tickets_that_cannot_be_kept_are_named(site: Site) -> None:
    exchange = site.exchange("kerberos", tickets=str(site.folder / "krb5.conf" / "tickets"))
    *_, end = site.load("measure", "request", exchange, [1])
    assert "failed" == end["outcome"]
    assert "krb5.conf/tickets" in end["reason"]
    assert "Not a directory" in end["reason"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a setting that is none": ({"colour": 1}, "unknown field `colour`"),
    "ahead of a sign-on": (
        {"ahead": True, "operation": "sign-on"},
        "needs a scheme in which each request has its own token",
    ),
    "a directory that is not there": ({"krb5_config": "/nowhere"}, "cannot sign in"),
    "a service that is none": ({"service": "HTTP@web9.tollbar.test"}, "not found in Kerberos database"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_work_says_why(site: Site, case: str) -> None:
    settings, words = WRONG[case]
    *_, end = site.load("measure", "request", site.exchange("kerberos", **settings), [1])
    assert "failed" == end["outcome"]
    assert words in end["reason"]


def test_a_directory_that_is_gone_is_named(site: Site) -> None:
    site.stop("kdc")
    try:
        *_, end = site.load("measure", "request", site.exchange("kerberos"), [1])
    finally:
        site.start("kdc", *KDC)
    assert "failed" == end["outcome"]
    assert "Cannot contact any KDC for realm" in end["reason"]


@pytest.mark.parametrize("scheme", ["kerberos", "ntlm"])
def test_the_embedded_server_does_not_offer_it(scheme: str) -> None:
    config = {"listen": "127.0.0.1:0", "sign_in": {"scheme": scheme}}
    done = subprocess.run(
        [str(engine()), "serve"],
        input=json.dumps(config),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert f"the embedded server does not offer {scheme}" in done.stdout + done.stderr
