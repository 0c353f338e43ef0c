"""Services: every one starts, answers a real question, refuses a wrong password, and leaves nothing."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from bench.ground import mentioning

from component_lab import PATIENCE_S, commands_of, tree_of
from conftest import here
from server_lab import ACCOUNTS, before
from tollbar.catalog import servers
from tollbar.core import proc
from tollbar.core.files import write
from tollbar.lab.servers import driver
from tollbar.lab.servers.configuration import rendered
from tollbar.lab.servers.driver import NotStarted, StartedServer
from tollbar.lab.servers.sandbox import Sandbox

# Services of the run. Those that start for each trial need a directory, and are tested with it (`test_negotiate`).
SERVICES = sorted(name for name, server in servers.services().items() if server.frontend.lifetime == "run")
WEB_PASSWORD = secrets.token_urlsafe(24)


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield an empty cache, which labs in other processes use as well."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


def started(at: Sandbox, name: str) -> StartedServer:
    """Start the service behind the embedded server, with all inputs that a workload gives it."""
    here(name)
    folder = at.directory / "tables"
    if not folder.exists():
        folder.mkdir()
        folder.chmod(0o711)
        write(folder / "tables.sql", TABLES.encode(), 0o600)
    return driver.start(at, before(name, {"tables": str(folder / "tables.sql")}))


def said(words: list[str], env: Mapping[str, str], told: str = "") -> tuple[int, str]:
    """Return the exit status and output of a client program."""
    env = {"PATH": f"{os.environ['PATH']}:/usr/sbin", "LC_ALL": "C", **env}
    done = subprocess.run(words, env=env, input=told, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout + done.stderr


TABLES = f"""
create table users (name text primary key, password text not null);
copy users from stdin;
u00000\tfirst
u00001\tsecond
\\.
create role web login password '{WEB_PASSWORD}';
grant select on users to web;
"""


def ask_postgresql(server: StartedServer, folder: Path) -> None:
    """Check that a web server reads a row over TCP or through the socket, and other accounts do not."""
    socket_dir = server.work_dirs["database"]
    (path,) = (path for path in socket_dir.glob(".s.PGSQL.*") if path.is_socket())
    port = path.suffix.removeprefix(".")
    select = [
        "psql",
        "-X",
        "-At",
        "-p",
        port,
        "-d",
        "postgres",
        "-c",
        "select password from users where name = 'u00001'",
    ]

    def over_tcp(role: str, password: str) -> tuple[int, str]:
        return said([*select, "-h", "127.0.0.1", "-U", role, "--no-password"], {"PGPASSWORD": password})

    assert (0, "second\n") == over_tcp("web", WEB_PASSWORD)
    for role, password in (("web", "wrong"), ("tollbar", ""), ("tollbar", WEB_PASSWORD), ("stranger", WEB_PASSWORD)):
        status, words = over_tcp(role, password)
        assert status != 0
        assert "authentication failed" in words or "no password supplied" in words
    through_socket = [*select, "-h", str(socket_dir), "-U", "tollbar"]
    assert (0, "second\n") == said(through_socket, {})
    if os.geteuid() == 0:
        # A web server's worker has the account of the database.
        owner = path.stat().st_uid
        worker, stranger = (["setpriv", f"--reuid={uid}", "--regid=4242", "--clear-groups"] for uid in (owner, 4242))
        assert (0, "second\n") == said([*worker, *through_socket], {})
        status, words = said([*stranger, *through_socket], {})
        assert status != 0
        assert "Permission denied" in words


def ask_mit(server: StartedServer, folder: Path) -> None:
    """Check sign-on, tickets and their keytabs, and binding to the directory, in clear and over TLS."""
    kdc_dir, directory = server.work_dirs["kdc"], server.work_dirs["directory"]
    accounts = [line.split("\t") for line in (directory / "accounts.tsv").read_text().splitlines()]
    assert [f"u{index:05d}" for index in range(ACCOUNTS["accounts"])] == [name for name, *_ in accounts]
    assert len(accounts) == len({password for _, password, _ in accounts})
    env = {"KRB5_CONFIG": str(kdc_dir / "krb5.conf"), "KRB5CCNAME": f"FILE:{folder / 'cache'}"}
    for name, password, _ in (accounts[0], accounts[-1]):
        assert 0 == said(["kinit", name], env, f"{password}\n")[0]
        for host, flag, encryption in (
            ("web1", "", "aes256"),
            ("web3", "O", "aes256"),
            ("web4", "", "arcfour"),
            ("web5", "O", "aes256"),
        ):
            service = f"HTTP/{host}.tollbar.test"
            opened = said(["kvno", "-k", str(directory / f"{host}.keytab"), service], env)
            assert (0, f"{service}@TOLLBAR.TEST: kvno = 1, keytab entry valid\n") == opened
            ticket = said(["klist", "-f", "-e"], env)[1].partition(f"{service}@")[2]
            assert encryption in ticket
            assert (flag == "O") == ("O" in ticket.partition("Flags: ")[2].partition("\n")[0])
    refused = {accounts[0][0]: "Password incorrect", "u99999": "not found in Kerberos database"}
    for name, words in refused.items():
        status, reason = said(["kinit", name], env, "wrong\n")
        assert (True, True) == (status != 0, words in reason)
    ldap, ldaps = re.findall(r"ldaps?://127.0.0.1:\d+", server.configuration)
    trusted = {"LDAPTLS_CACERT": str(directory / "tls.pem"), "LDAPTLS_REQCERT": "demand"}
    for url in (ldap, ldaps):
        # Members of 700 groups would find more entries than slapd returns.
        for name, password, groups in (accounts[0], accounts[250], accounts[510]):
            dn = f"uid={name},ou=accounts,dc=tollbar,dc=test"
            assert (0, int(groups)) == bound(folder, url, dn, password, f"(member={dn})", trusted)
            assert 49 == bound(folder, url, dn, accounts[1][1], "(cn=*)", trusted)[0]
        by = ("cn=svcweb,dc=tollbar,dc=test", (directory / "bind.password").read_text())
        assert (0, 1) == bound(folder, url, *by, "(uid=u00042)", trusted)
    # A client must trust its certificate explicitly.
    assert 0 != bound(folder, ldaps, *by, "(uid=u00042)", {"LDAPTLS_REQCERT": "demand"})[0]


def bound(folder: Path, url: str, dn: str, password: str, wanted: str, env: Mapping[str, str]) -> tuple[int, int]:
    """Return the exit status of a search that begins with a simple bind, and the number of entries found."""
    (folder / "password").write_text(password)
    words = [
        "ldapsearch",
        "-x",
        "-LLL",
        "-H",
        url,
        "-D",
        dn,
        "-y",
        str(folder / "password"),
        "-b",
        "dc=tollbar,dc=test",
    ]
    status, text = said([*words, wanted, "1.1"], env)
    return status, text.count("dn: ")


def ask_samba(server: StartedServer, folder: Path) -> None:
    """Check sign-on and binding to the directory, which knows the groups; `test_samba` has more."""
    directory = server.given["directory"]
    accounts = [line.split("\t") for line in (directory / "accounts.tsv").read_text().splitlines()]
    env = {"KRB5_CONFIG": str(directory / "krb5.conf"), "KRB5CCNAME": f"FILE:{folder / 'cache'}"}
    address, _ = (directory / "hosts").read_text().split()
    for name, password, groups in (accounts[0], accounts[250], accounts[500], accounts[510]):
        dn = f"CN={name},OU=Accounts,DC=tollbar,DC=test"
        assert 0 == said(["kinit", name], env, f"{password}\n")[0]
        assert (0, int(groups)) == bound(folder, f"ldap://{address}", dn, password, f"(member={dn})", {})
        assert 49 == bound(folder, f"ldap://{address}", dn, accounts[1][1], "(cn=*)", {})[0]


QUESTIONS: Mapping[str, Callable[[StartedServer, Path], None]] = {
    "postgresql-accounts": ask_postgresql,
    "mit": ask_mit,
    "samba": ask_samba,
}


@pytest.mark.share(1)
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_answers_and_leaves_nothing(name: str, tmp_path: Path, cache: Path) -> None:
    here(name)
    archives: list[set[tuple[str, int]]] = []
    before = segments()
    for time_of in ("first", "second"):
        began = time.monotonic()
        with Sandbox() as at:
            with started(at, name) as server:
                print(f"{name}: ready for the {time_of} time after {time.monotonic() - began:.2f} s")
                components = [component.name for component in servers.services()[name].components]
                assert [*components, "web"] == [*server.components]
                pids = tree_of(server)
                QUESTIONS[name](server, tmp_path)
                for component, work_dir in server.work_dirs.items():
                    # MIT's KDC and its directory are prepared together.
                    own = component.replace("kdc", "directory")
                    account = at.account_of("embedded/web" if component == "web" else f"{name}/{own}")
                    owner = account.number if account else os.geteuid()
                    owners: set[int] = set()
                    for pid in proc.tree(server.components[component])[1:]:
                        # Processes that answered the questions above may end meanwhile.
                        with suppress(FileNotFoundError):
                            owners.add(Path(f"/proc/{pid}").stat().st_uid)
                    assert {owner} == owners
                    assert work_dir.is_dir()
            assert server.fault() is None
        assert [] == [pid for pid in pids if proc.start_time(pid)]
        assert not at.directory.exists()
        assert [] == [segment for segment, maker in (segments() - before) if maker in pids]
        archives.append({(path.name, path.stat().st_ino) for path in cache.rglob("*.tar")})
    assert archives[0] == archives[1]
    assert archives[0]


def segments() -> set[tuple[int, int]]:
    """Return each System V segment with the process that made it, because numbers are reused."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {(int(line.split()[1]), int(line.split()[4])) for line in lines}


@pytest.mark.share(1)
@pytest.mark.parametrize("name", SERVICES[1:] + SERVICES[:1])
def test_a_component_that_is_killed_is_replaced(at: Sandbox, name: str, tmp_path: Path) -> None:
    pids: set[int] = set()
    before = segments()
    for component in servers.services()[name].components:
        with started(at, name) as server:
            program = proc.tree(server.components[component.name])[1]
            pids.update(tree_of(server))
            os.kill(program, signal.SIGKILL)
            assert "was ended by SIGKILL" in (server.fault(PATIENCE_S) or "")
    with started(at, name) as fresh:
        assert fresh.fault() is None
        QUESTIONS[name](fresh, tmp_path)
    for running in at.running[:]:
        running.end()
    assert [] == [segment for segment, maker in (segments() - before) if maker in pids]


@pytest.mark.share(1)
@pytest.mark.parametrize("moment", range(3))
@pytest.mark.parametrize("name", SERVICES[1:] + SERVICES[:1])
def test_a_port_that_is_taken_costs_a_try(
    at: Sandbox, name: str, moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_port, drawn = driver.free_port, itertools.count()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        monkeypatch.setattr(driver, "free_port", lambda *at: taken if next(drawn) == moment else free_port(*at))
        with started(at, name) as server:
            QUESTIONS[name](server, tmp_path)


@pytest.mark.share(1)
@pytest.mark.parametrize("name", SERVICES[::-1])
def test_secrets_are_for_their_owner_alone(at: Sandbox, name: str) -> None:
    with started(at, name) as server:
        secret_words = [WEB_PASSWORD]
        for work_dir in (*server.work_dirs.values(), *server.given.values()):
            for file in ("accounts.tsv", "bind.password"):
                if (work_dir / file).exists():
                    secret_words += (work_dir / file).read_text().split()[1:2] or [(work_dir / file).read_text()]
        lines = commands_of(tree_of(server))
        texts = [server.configuration, *lines, *(path.read_text() for path in at.directory.glob("*/*.log"))]
        assert [] == [word for word in secret_words for text in texts if word in text]
        secrets = [word.encode() for word in secret_words]
        for path in at.directory.rglob("*"):
            if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o077 and not path.is_relative_to(at.documents):
                content = path.read_bytes()
                assert b"PRIVATE KEY" not in content, path
                assert not any(word in content for word in secrets), path
                assert path.suffix != ".keytab", path


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_be_shown(name: str) -> None:
    here(name)
    shown = rendered(before(name))
    assert shown.count("==> command <==") == len(servers.services()[name].components) + 1
    assert set() == mentioning("tollbar-RUN")


@pytest.mark.share(0)
def test_tables_that_cannot_be_loaded_are_quoted(at: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    here("postgresql-accounts")
    monkeypatch.setattr(servers.Readiness, "limit", 6.0)
    with pytest.raises(NotStarted, match="No such file or directory"):
        driver.start(at, before("postgresql-accounts", {"tables": "/no/such/file"}))
