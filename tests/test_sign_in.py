"""Signing in on the real servers: every scheme, every password store, right and wrong credentials."""

from __future__ import annotations

import base64
import http.client
import itertools
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from component_lab import commands_of, tree_of
from conftest import here
from patience import PATIENCE_S
from tollbar import study
from tollbar.catalog import servers
from tollbar.core.records import Outcome
from tollbar.lab import measure, workloads
from tollbar.lab.servers import driver
from tollbar.lab.servers.configuration import SHOWN
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import accounts
from tollbar.lab.workloads.accounts import accounts_of
from tollbar.lab.workloads.by_family.web_auth import MEMBERS, _of_directory
from tollbar.lab.workloads.request import RequestWorkload
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

# A few more accounts than members of groups.
ACCOUNTS = 600
STUDY = """
question  = "Who is asking?"
family    = "web-auth"
servers      = ["{server}"]
providers = ["{provider}"]
choices   = ["anonymous", {choices}]
baseline  = {{ choice = "anonymous", op = "request" }}

[[leave-out]]
where   = {{ choice = "anonymous", op = "sign-on" }}
because = "There is none."

[vary]
accounts = [{accounts}]
bytes    = ["1 KiB"]
{vary}

[load]
users      = [2]
connection = "new"
request    = {{ get = "/bytes/{{bytes}}" }}
expect     = {{ status = 200, bytes = "{{bytes}}" }}
"""
EVERY_WAY = """
op               = ["request", "sign-on"]
store            = ["file", "sql", "ldap", "ldaps"]
directory        = ["samba", "mit"]
password-hash    = ["sha-1"]
digest-algorithm = ["md5"]
transport        = ["clear"]
"""
EVERY_HASH = """
op               = ["request"]
store            = ["file"]
password-hash    = ["sha-1", "salted-sha-1", "bcrypt", "argon2id"]
digest-algorithm = ["md5", "sha-256"]
transport        = ["tls"]
"""
OF_GROUPS = """
op               = ["request"]
store            = ["ldap"]
directory        = ["mit"]
groups           = [0, 50, 100]
directory-cache  = ["off", "on"]
transport        = ["clear"]
"""
ELSEWHERE = """
op               = ["request"]
store            = ["file", "sql", "ldap", "ldaps"]
directory        = ["samba", "mit"]
password-hash    = ["sha-1"]
runs             = ["gssproxy", "auth-request"]
transport        = ["clear"]
"""
# In a file, which every server supports.
IN_A_FILE = """
op            = ["request"]
store         = ["file"]
password-hash = ["sha-1"]
runs          = ["in-server", "auth-request"]
transport     = ["clear"]
"""
# With a token, a key or a certificate: no password is sent.
WITHOUT_PASSWORD = """
op        = ["request"]
signature = ["hs256", "rs256", "es256", "eddsa"]
verifier  = ["sha-256", "hmac", "bcrypt", "argon2id"]
transport = ["tls"]
"""
# Verified each time, and once; with many accounts, because a cache keeps those of few.
REMEMBERED = """
op            = ["request"]
password-hash = ["sha-1", "bcrypt"]
verifier      = ["sha-256", "bcrypt"]
verified      = ["each-time", "cached"]
hit-share     = ["0 %", "90 %"]
transport     = ["tls"]
"""
PROVIDERS = {"embedded": "aws-lc", "httpd": "libcrypto", "nginx": "libcrypto"}

# Password stores of each server, by scheme.
OFFERED = {
    "embedded": {
        "basic": {"file", "sql"},
        "digest": {"file", "sql"},
        "form": {"file", "sql"},
        "session-cookie": {""},
    },
    "httpd": {
        "basic": {"file", "sql", "ldap", "ldaps"},
        "digest": {"file", "sql"},
        "form": {"file", "sql", "ldap", "ldaps"},
    },
    "nginx": {"basic": {"file"}},
}
# Stored hashes that each server supports: for Basic and forms, and for Digest.
STORED = {
    "embedded": {"sha-1", "salted-sha-1", "bcrypt", "argon2id", "md5", "sha-256"},
    "httpd": {"sha-1", "bcrypt", "md5"},
    "nginx": {"sha-1", "salted-sha-1", "bcrypt"},
}
REFUSED = {
    "basic": {"no credentials", "a wrong password", "an unknown user"},
    "digest": {"no credentials", "a wrong password", "an unknown user", "a request that was sent before"},
    "form": {"no credentials", "a wrong password", "an unknown user", "a forged cookie"},
    "session-cookie": {"no credentials", "a wrong password", "an unknown user", "a forged cookie"},
    "jwt": {"no credentials", "a forged signature", "an expired token", "a token for another audience"},
    "opaque-token": {"no credentials", "an unknown token", "an expired token"},
    "api-key": {"no credentials", "an unknown key", "a key with another secret", "a key without its secret"},
    "hmac": {"no credentials", "an unknown user", "a request that was sent before"},
    "client-certificate": {"a client without a certificate", "a client with a revoked certificate"},
}
RIGHT_USER = "the user that signed in is the one that the server saw"


def cells(
    vary: str,
    names: Sequence[str] = tuple(PROVIDERS),
    choices: Sequence[str] = ("basic", "digest", "form", "session-cookie"),
    accounts: int = ACCOUNTS,
) -> list[Cell]:
    """Return the cells of all servers."""
    listed = ", ".join(f'"{choice}"' for choice in choices)
    given = {"accounts": accounts, "choices": listed, "vary": vary}
    texts = [STUDY.format(server=name, provider=PROVIDERS[name], **given) for name in names]
    planned = plan.make([study.read(name, text, where=name) for name, text in zip(names, texts, strict=True)], seed=1)
    return [cell for one in planned.studies for cell in one.cells if cell.choice.name != "anonymous"]


def name_of(cell: Cell) -> str:
    """Return a cell's id from the settings that differ."""
    shown = (
        "op",
        "store",
        "directory",
        "groups",
        "directory-cache",
        "runs",
        "password-hash",
        "digest-algorithm",
        "transport",
        "signature",
        "verifier",
        "verified",
        "hit-share",
    )
    words = [server_of(cell), cell.choice.name, *(str(cell.coordinates.get(name, "")) for name in shown)]
    return "-".join(filter(None, words))


def server_of(cell: Cell) -> str:
    """Return the name of a cell's server."""
    assert isinstance(cell.server, servers.Server)
    return cell.server.name


@pytest.fixture(scope="module")
def lab() -> Iterator[Sandbox]:
    """Yield a sandbox for all tests, in which each service is started once."""
    with pytest.MonkeyPatch.context() as patch, Sandbox() as sandbox:
        # As few as have wrong neighbours: each takes longer than its proof.
        patch.setattr(accounts, "DEAR_ACCOUNTS", 2)
        yield sandbox


def all_here(cell: Cell) -> None:
    """Require the cell's servers, or skip or fail."""
    here(server_of(cell))
    if "directory" in cell.coordinates:
        here(str(cell.coordinates["directory"]))
    if cell.coordinates.get("store") == "sql":
        here("postgresql-accounts")


def is_offered(cell: Cell) -> bool:
    """Return whether the server supports the scheme with passwords kept there."""
    return str(cell.coordinates.get("store", "")) in OFFERED[server_of(cell)].get(cell.choice.name, set())


def is_run(cell: Cell) -> bool:
    """Return whether the server checks passwords where the cell requires it."""
    return cell.coordinates["runs"] == "in-server" or server_of(cell) == "nginx"


def holds(lab: Sandbox, cell: Cell, can: bool) -> None:
    """Check that a server accepts right credentials and refuses wrong ones, or reports the scheme as unsupported."""
    all_here(cell)
    (one,) = measure.prove([cell], 1, sandbox=lab)
    if not can:
        assert Outcome.UNSUPPORTED == one.outcome, one.reason
        assert "not available here" not in (one.reason or "not available here")
        return
    assert (Outcome.OK, None) == (one.outcome, one.reason)
    assert RIGHT_USER in one.accepted
    assert REFUSED[cell.choice.name] <= {*one.refused}


@pytest.mark.share(51)
@pytest.mark.parametrize("cell", cells(EVERY_WAY), ids=name_of)
def test_the_right_user_signs_in_and_no_other(lab: Sandbox, cell: Cell) -> None:
    holds(lab, cell, is_offered(cell))


@pytest.mark.share(14)
@pytest.mark.parametrize("cell", cells(EVERY_HASH), ids=name_of)
def test_every_hash_is_known_or_refused_in_words(lab: Sandbox, cell: Cell) -> None:
    stored = cell.coordinates.get("password-hash", cell.coordinates.get("digest-algorithm"))
    holds(lab, cell, stored in STORED[server_of(cell)] and is_offered(cell))


@pytest.mark.parametrize(
    "cell", [cell for cell in cells(OF_GROUPS, ["httpd"]) if cell.choice.name == "basic"], ids=name_of
)
def test_members_of_groups_sign_in(lab: Sandbox, cell: Cell) -> None:
    holds(lab, cell, True)


@pytest.mark.parametrize(
    "cell",
    cells(WITHOUT_PASSWORD, choices=["jwt", "opaque-token", "api-key", "hmac", "client-certificate"]),
    ids=name_of,
)
def test_users_without_a_password_sign_in(lab: Sandbox, cell: Cell) -> None:
    holds(lab, cell, server_of(cell) == "embedded")


def test_as_many_users_ask_whatever_their_groups() -> None:
    """Users who return sooner find more in a server's caches, so only the sizes of groups may differ."""
    server: Any = SimpleNamespace(given={})
    for choice, of_none in (("kerberos", 250), ("ntlm", 250), ("basic", 9_490)):
        settings = {"choice": choice, "accounts": 10_000}
        asked = {groups: _of_directory({**settings, "groups": groups}, server) for groups in MEMBERS}
        assert {0: of_none, 50: 250, 100: 250, 700: 10} == {groups: one["count"] for groups, one in asked.items()}
        of = sorted((one["first"], one["first"] + one["count"]) for one in asked.values())
        assert all(end <= first for (_, end), (first, _) in pairwise(of)), "no user is of two numbers of groups"


REVOKED = "a credential that was revoked in the store"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "cell",
    cells(REMEMBERED, ["embedded"], ["basic", "jwt", "opaque-token", "api-key"], accounts=7_000),
    ids=name_of,
)
def test_a_credential_is_taken_for_as_long_as_it_says(lab: Sandbox, cell: Cell) -> None:
    (one,) = measure.prove([cell], 1, sandbox=lab)
    assert (Outcome.OK, None, cell.key) == (one.outcome, one.reason, one.cell)
    if cell.coordinates["verified"] == "each-time":
        expected = {REVOKED} - ({REVOKED} if cell.choice.name == "jwt" else set())
    elif cell.choice.name == "jwt":
        expected = {"a token that ran out while it was remembered"}
    else:
        expected = {f"{REVOKED}, when 2 s were over; before that it was taken"}
    assert expected <= {*one.refused}
    shares = [words for words in one.accepted if "the server remembers" in words]
    counted = {"0": ["0 of 1 requests"], "90": ["9 of 10 requests"]}.get(str(cell.coordinates.get("hit-share")), [])
    assert [f"{words} by a credential that the server remembers" for words in counted] == shares


@pytest.mark.parametrize("cell", [cell for cell in cells(ELSEWHERE) if cell.choice.name == "basic"], ids=name_of)
def test_another_server_may_check_passwords(lab: Sandbox, cell: Cell) -> None:
    holds(lab, cell, (server_of(cell), cell.coordinates["runs"]) == ("nginx", "auth-request"))


def heads(address: str, more: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    """Return the status of an answer, and its headers."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request("GET", "/bytes/1024", headers=more)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders())


@pytest.mark.parametrize("cell", [cell for cell in cells(IN_A_FILE, choices=["basic"]) if is_run(cell)], ids=name_of)
def test_a_server_names_the_user_to_a_proof_alone(lab: Sandbox, cell: Cell) -> None:
    """The measured answer is the same on every server; a name in it would make some longer."""
    all_here(cell)
    assert isinstance(cell.server, servers.Server)
    workload = workloads.of(cell)
    assert isinstance(workload, RequestWorkload)
    user = next(iter(accounts_of(lab, ACCOUNTS)))
    shown = {"Authorization": "Basic " + base64.b64encode(f"{user.name}:{user.password}".encode()).decode()}
    with driver.start(lab, workload.request(cell, servers.here(cell.server), 1, lab)) as server:
        status, told = heads(server.address, {**shown, "X-Tell-User": "yes"})
        assert (200, user.name) == (status, told.pop("X-User", None))
        status, usual = heads(server.address, shown)
        assert (200, list(told)) == (status, list(usual))
        assert "Vary" not in usual
        assert not any(user.name in value for value in usual.values())


@pytest.mark.parametrize("cell", cells(EVERY_WAY), ids=name_of)
def test_every_cell_is_shown(cell: Cell) -> None:
    all_here(cell)
    shown = workloads.of(cell).shown(cell, 1)
    assert is_offered(cell) == ("impossible" not in shown.task)
    if is_offered(cell):
        assert cell.choice.name == shown.task["load"]["exchange"]["scheme"]
        assert str(SHOWN) in (shown.configuration or "")
    assert not SHOWN.exists()


@pytest.mark.share(15)
@pytest.mark.parametrize("cell", [cell for cell in cells(EVERY_WAY) if is_offered(cell)], ids=name_of)
def test_no_secret_can_be_seen(lab: Sandbox, cell: Cell) -> None:
    all_here(cell)
    assert isinstance(cell.server, servers.Server)
    workload = workloads.of(cell)
    assert isinstance(workload, RequestWorkload)
    with driver.start(lab, workload.request(cell, servers.here(cell.server), 1, lab)) as server:
        words = secrets_of(lab, server)
        commands = commands_of(tree_of(server))
        assert commands
        seen = [server.configuration, *commands, *(path.read_text() for path in lab.directory.glob("logs/*.log"))]
        assert [] == [word for word, text in itertools.product(words, seen) if word in text]
        for folder in (server.work_dirs["web"], *lab.directory.glob("accounts-*")):
            for path in filter(Path.is_file, folder.rglob("*")):
                is_private = not stat.S_IMODE(path.stat().st_mode) & 0o077
                assert is_private or not any(word.encode() in path.read_bytes() for word in words), path


def secrets_of(lab: Sandbox, server: driver.StartedServer) -> list[str]:
    """Return some users' passwords, and those that servers use among themselves."""
    made = [one.password for one in accounts_of(lab, ACCOUNTS)]
    for work_dir in server.work_dirs.values():
        for table in work_dir.glob("accounts.tsv"):
            made += [line.split("\t")[1] for line in table.read_text().splitlines()]
        made += [path.read_text() for path in work_dir.glob("bind.password")]
    web = [path.read_text().strip().rpartition(":")[2] for path in lab.directory.glob("accounts-*/web.password")]
    return made[::100] + made[-1:] + web
