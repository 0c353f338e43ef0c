"""The service Samba: a real domain, in which right passwords sign in by every way, and wrong ones by none."""

from __future__ import annotations

import os
import re
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import share
from component_lab import commands_of, tree_of
from conftest import here
from patience import PATIENCE_S
from server_lab import ACCOUNTS, before
from tollbar.catalog import servers
from tollbar.core.runner import confined
from tollbar.lab.servers import driver
from tollbar.lab.servers.sandbox import Sandbox

COUNT = ACCOUNTS["accounts"]
# One account for each number of groups.
OF_GROUPS = {100: "u00000", 50: "u00250", 700: "u00500", 0: "u00510"}
SEARCHED = "OU=Accounts,DC=tollbar,DC=test"
ENCRYPTIONS = {
    "web1": "aes256-cts",
    "web2": "aes256-cts",
    "web3": "aes256-cts",
    "web4": "arcfour-hmac",
    "web5": "aes256-cts",
}
TRUSTED_FOR_DELEGATION = ("web3", "web5")
# Places of the distribution's own Samba.
OF_THE_SYSTEM = [Path(folder) for folder in ("/var/log/samba", "/var/lib/samba", "/var/cache/samba", "/run/samba")]


@dataclass(frozen=True)
class Domain:
    """The started service, and its clients' environment."""

    account: confined.Account | None
    """Account of the service in root's lab."""
    server: driver.StartedServer
    folder: Path

    @property
    def work_dir(self) -> Path:
        return self.server.work_dirs["directory"]

    @property
    def address(self) -> str:
        return self.text("hosts").split()[0]

    def text(self, name: str) -> str:
        return (self.server.given["directory"] / name).read_text()

    def password(self, name: str) -> str:
        return dict(line.split("\t")[:2] for line in self.text("accounts.tsv").splitlines())[name]

    def run(self, *words: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a client program with its tickets in a file of the test's."""
        environment |= {"KRB5_CONFIG": f"{self.work_dir}/krb5.conf", "KRB5CCNAME": f"FILE:{self.folder}/tickets"}
        environment |= {"PATH": f"{os.environ['PATH']}:/usr/bin:/usr/sbin", "LC_ALL": "C"}
        return subprocess.run(words, input=text, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)

    def search(self, scheme: str, name: str, password: str) -> subprocess.CompletedProcess[str]:
        """Sign in by LDAP, and search for the user's own entry."""
        told = self.folder / "password"
        told.write_text(password)
        words = ["-x", "-LLL", "-H", f"{scheme}://{self.address}", "-D", f"{name}@TOLLBAR.TEST", "-y", str(told)]
        # Trust in the certificate is tested separately: this program trusts none without its host's name.
        return self.run(
            "ldapsearch", *words, "-b", SEARCHED, f"(sAMAccountName={name})", "memberOf", LDAPTLS_REQCERT="never"
        )


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    """Yield a prepared, running domain, and check that it wrote nothing elsewhere.

    A share of the tests may find it prepared by earlier ones.
    """
    here("samba")
    before_it = of_the_system()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", share.of(os.environ["XDG_CACHE_HOME"], str(tmp_path_factory.mktemp("cache"))))
        with Sandbox() as at, driver.start(at, before("samba")) as server:
            yield Domain(at.account_of("samba/directory"), server, tmp_path_factory.mktemp("client"))
            assert server.fault() is None
    assert before_it == of_the_system()


def of_the_system() -> dict[Path, int]:
    """Return every file of the distribution's own Samba with its time of change."""
    return {
        path: path.lstat().st_mtime_ns
        for folder in OF_THE_SYSTEM
        for path in (folder, *folder.rglob("*"))
        if path.exists()
    }


def test_every_account_has_its_own_password(domain: Domain) -> None:
    lines = [line.split("\t") for line in domain.text("accounts.tsv").splitlines()]
    assert [f"u{index:05d}" for index in range(COUNT)] == [name for name, _, _ in lines]
    assert COUNT == len({password for _, password, _ in lines})
    assert all(re.fullmatch("[A-Za-z0-9_-]{24}", password) for _, password, _ in lines)
    assert ["100"] * 250 + ["50"] * 250 + ["700"] * 10 + ["0"] * (COUNT - 510) == [groups for _, _, groups in lines]


def test_secrets_are_for_their_account_alone(domain: Domain) -> None:
    owner = domain.account.number if domain.account else os.geteuid()
    for name in ("accounts.tsv", "bind.password", "tls.key", "krb5.conf", *(f"{host}.keytab" for host in ENCRYPTIONS)):
        about = (domain.work_dir / name).stat()
        assert (0o600, owner) == (stat.S_IMODE(about.st_mode), about.st_uid)
    for path in domain.server.given["directory"].iterdir():
        assert (0o600, os.geteuid()) == (stat.S_IMODE(path.stat().st_mode), path.stat().st_uid)
    said = domain.server.configuration + domain.server.logs["directory"].read_text()
    said += "".join(commands_of(tree_of(domain.server)))
    secrets = [domain.password(name) for name in OF_GROUPS.values()] + [domain.text("bind.password")]
    assert [] == [secret for secret in secrets if secret in said]


@pytest.mark.parametrize("name", OF_GROUPS.values())
def test_a_password_is_as_good_as_a_ticket(domain: Domain, name: str) -> None:
    assert 0 == domain.run("kinit", name, text=domain.password(name)).returncode
    refused = domain.run("kinit", name, text=domain.password("u00001"))
    assert (1, True) == (refused.returncode, "Password incorrect" in refused.stderr)


@pytest.mark.parametrize("host", ENCRYPTIONS)
def test_each_service_has_its_encryption(domain: Domain, host: str) -> None:
    domain.run("kinit", "u00510", text=domain.password("u00510"))
    service = f"HTTP/{host}.tollbar.test"
    opened = domain.run("kvno", "-k", f"{domain.work_dir}/{host}.keytab", service)
    assert "keytab entry valid" in opened.stdout, opened.stderr
    ticket = domain.run("klist", "-ef").stdout.partition(service)[2]
    assert ENCRYPTIONS[host] in ticket.rpartition("tkt): ")[2]
    assert (host in TRUSTED_FOR_DELEGATION) == bool(re.search("Flags: [A-NP-Z]*O", ticket))


def test_a_ticket_grows_with_groups(domain: Domain) -> None:
    sizes = {}
    for groups, name in OF_GROUPS.items():
        domain.run("kinit", name, text=domain.password(name))
        sizes[groups] = (domain.folder / "tickets").stat().st_size
    # Eight bytes each, and some for alignment.
    assert sizes[0] + 50 * 8 <= sizes[50] <= sizes[100] - 50 * 8 <= sizes[700] - 650 * 8


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
def test_a_password_signs_in_by_ldap(domain: Domain, scheme: str) -> None:
    for groups, name in OF_GROUPS.items():
        found = domain.search(scheme, name, domain.password(name))
        assert groups == found.stdout.count("memberOf: CN=g"), found.stderr
    refused = domain.search(scheme, "u00000", "wrong")
    assert "Invalid credentials (49)" in refused.stderr


def test_the_account_for_searches_signs_in(domain: Domain) -> None:
    words = ["-x", "-LLL", "-H", f"ldap://{domain.address}", "-D", "svcweb@TOLLBAR.TEST"]
    found = domain.run(
        "ldapsearch", *words, "-y", f"{domain.work_dir}/bind.password", "-b", SEARCHED, "(cn=u00001)", "cn"
    )
    assert "cn: u00001" in found.stdout, found.stderr


def test_the_certificate_is_trusted_by_its_file(domain: Domain) -> None:
    trusting = ssl.create_default_context(cafile=str(domain.work_dir / "tls.pem"))
    for context in (trusting, ssl.create_default_context()):
        connection = socket.create_connection((domain.address, 636), 10)
        try:
            with context.wrap_socket(connection, server_hostname="dc1.tollbar.test") as verified:
                assert (context is trusting, "TLSv1.3") == (True, verified.version())
        except ssl.SSLCertVerificationError:
            assert context is not trusting
    assert "dc1.tollbar.test" == domain.text("hosts").split()[1]


def test_winbindd_answers_the_account_of_servers(domain: Domain) -> None:
    words = confined.words(domain.account)
    said = domain.run(
        *words,
        "ntlm_auth",
        "--helper-protocol=squid-2.5-basic",
        f"--configfile={domain.work_dir}/smb.conf",
        text=f"TOLLBAR\\u00000 {domain.password('u00000')}\nTOLLBAR\\u00000 wrong\n",
        LD_PRELOAD=f"{domain.work_dir}/wbclient.so",
        SELFTEST_WINBINDD_SOCKET_DIR=f"{domain.work_dir}/run/winbindd",
    )
    assert ["OK", "ERR"] == said.stdout.split(), said.stderr
    # The socket for servers' requests is another one in this folder.
    about = (domain.work_dir / "state" / "winbindd_privileged").stat()
    assert (domain.account.number if domain.account else os.geteuid()) == about.st_uid


def test_a_port_that_is_denied_is_said() -> None:
    said = "stream_setup_socket: Failed to listen on 127.1.2.3:88 - NT_STATUS_ACCESS_DENIED"
    (pattern,) = servers.services()["samba"].frontend.refusals
    assert ["Failed to listen on 127.1.2.3:88 - NT_STATUS_ACCESS_DENIED"] == pattern.findall(said)
