"""Processes that root's lab starts: their accounts, their capabilities, and the owners of the files they open."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.figures import TOLLBAR
from bench.ground import RUN_LIMIT_S, Ground, a_ground, cells_of
from bench.survival.kinds import BLOCKS, KINDS

import own_server
import server_lab
from conftest import here, lacking
from listening import addresses
from opened import watched
from patience import PATIENCE_S
from tollbar.catalog import servers
from tollbar.core import proc
from tollbar.core.runner import confined, engine
from tollbar.core.runner.process import Process

CLIENT = ("", "client")
MEASURE = """
[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""
NTLM = KINDS["samba"].replace('"kerberos"', '"ntlm"').replace('runs      = ["in-server"]', "")
BY_NAME = f"""
question  = "What may they do?"
family    = "database-sign-on"
choices   = ["unix-socket"]
servers      = ["mariadb"]
baseline  = "unix-socket"
{MEASURE}
"""
REVOKED = (
    KINDS["accounts"]
    .replace("httpd", "embedded")
    .replace('password-hash = ["sha-1"]', 'password-hash = ["sha-1"]\nverified = ["cached"]')
    # More than the cache holds.
    .replace("accounts  = [1]", "accounts  = [6200]")
)
POOLER = f"""
question  = "What may they do?"
family    = "database-sign-on"
choices   = ["trust"]
servers      = ["postgresql"]
baseline  = "trust"

[vary]
pooler = ["pgbouncer"]
{MEASURE}
"""
APPLICATION = f"""
question  = "What may they do?"
family    = "stack"
choices   = ["page"]
providers = ["libcrypto"]
servers      = ["nginx"]
baseline  = "page"

[vary]
op           = ["read"]
sign-in      = ["anonymous"]
transport    = ["plaintext"]
storage      = ["plaintext"]
storage-rows = [200]
database     = ["postgresql"]

[load]
users   = [2]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}
{MEASURE}
"""
# Studies that together start every component, and the accounts of each.
STUDIES = {
    "embedded": (KINDS["embedded"], ("embedded",)),
    "nginx": (KINDS["nginx"], ("nginx",)),
    "samba": (KINDS["samba"], ("httpd", "samba")),
    "kdc": (KINDS["kdc"], ("httpd", "mit", "gssproxy")),
    "authenticator": (KINDS["authenticator"], ("nginx", "authenticator", "mit")),
    "accounts": (KINDS["accounts"], ("httpd", "postgresql-accounts")),
    "postgresql": (KINDS["postgresql"], ("postgresql",)),
    "mariadb": (KINDS["mariadb"], ("mariadb",)),
    "ntlm": (NTLM, ("httpd", "samba")),
    "by-name": (BY_NAME, ("mariadb",)),
    "revoked": (REVOKED, ("embedded",)),
    "pooler": (POOLER, ("pgbouncer", "postgresql")),
    "application": (APPLICATION, ("nginx", "application", "postgresql")),
}
# The kernel's numbers of these capabilities.
NUMBERS = {confined.READ_ALL: 2, confined.LOW_PORT: 10}
# Components and clients of one study that share an account, with the reason.
SHARED = {
    # The KDC's database and the directory are prepared together.
    "kdc": [{("mit", "directory"), ("mit", "kdc")}],
    "authenticator": [{("mit", "directory"), ("mit", "kdc")}],
    # winbindd answers NTLM's questions only to a process of its own account.
    "ntlm": [{("samba", "directory"), ("httpd", "web")}],
    # The proof revokes a credential in the store that the server has in its directory.
    "revoked": [{("embedded", "web"), CLIENT}],
}
# Their servers listen on no address.
ON_SOCKETS_OF_FILES = ("postgresql", "mariadb", "by-name")
# MariaDB asks for the name of the client's account, and only root's has one.
ROOTS_CLIENTS = ("by-name",)
# The lab makes and reads files in the directory of its run as plain data: it follows no link there, and neither loads
# nor parses files that others may have written.
BY_LAB = re.compile(r"/tollbar-[0-9a-f]{8}/")
# Capabilities that a process has, may take again, or passes on; and the most that any program could give it, if this
# root may reduce that.
SETS = ("CapEff", "CapPrm", "CapAmb")
MOST = "CapBnd"
# The name of a component's work directory, by which its guard is found: its log is there.
LOG = re.compile(r"/tollbar-\w+/logs/(?P<server>[a-z-]+)-(?P<component>[a-z]+)-\d+-(?P=component)\.log$")


Part = tuple[str, str]
"""Server and its component, or the client."""


class Privileges(NamedTuple):
    """Privileges of a process."""

    program: str
    user: int
    has: int
    """Capabilities, a bit each."""
    may_gain: bool


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Yield a ground for runs of root's."""
    if os.geteuid() != 0:
        lacking("only what root has started has capabilities to drop")
    with a_ground() as ground:
        yield ground


@pytest.mark.share(1)
@pytest.mark.parametrize("kind", [*STUDIES][1:] + [*STUDIES][:1])
def test_a_process_of_root_s_lab_has_what_it_needs_and_no_more(ground: Ground, kind: str) -> None:
    """Rights hold from start to end of each process.

    No process of one user opens a file that another unprivileged user could have changed, and none listens on an
    address that other machines reach.
    """
    text, names = STUDIES[kind]
    for name in names:
        here(name)
    (ground.folder / "study.toml").write_text(text.replace("BLOCKS", str(BLOCKS)))
    run = ground.start("study.toml", "--blocks", 1)
    seen: dict[Part, set[Privileges]] = {}
    listened: set[IPv4Address | IPv6Address] = set()
    with watched(run.pid) as watch:
        for looks in itertools.count():
            if run.poll() is not None:
                break
            # Each look reads all files of all processes.
            if looks % 20 == 0:
                listened |= addresses(proc.tree(run.pid))
            for pid in proc.tree(run.pid):
                for part in part_of(pid):
                    seen.setdefault(part, set()).update(filter(None, map(privileges, proc.tree(pid)[1:])))
            # Each process lives longer than this; without a pause the run would have one core less.
            time.sleep(0.02)
    assert 0 == run.wait(RUN_LIMIT_S), ground.output()
    assert {("ok", None)} == set(cells_of(ground.runs[0]))
    assert [] == [one for one in listened if not one.is_loopback]
    assert listened or kind in ON_SOCKETS_OF_FILES
    described = {**servers.all_servers(), **servers.services()}
    parts = {(name, one.name): one for name in names for one in described[name].components}
    assert {*parts, CLIENT} == set(seen)
    users: dict[Part, set[int]] = {}
    for part, found in seen.items():
        users[part] = {one.user for one in found}
        low = (parts[part].port or 1024) < 1024 if part != CLIENT else False
        allowed = (1 << NUMBERS[confined.LOW_PORT]) * low
        assert found, part
        for one in found:
            more = (1 << NUMBERS[confined.READ_ALL]) * (not confined.can_reach(engine(), one.user))
            assert 0 == one.has & ~(allowed | more), (part, one)
            assert not one.may_gain, (part, one)
    by_user: dict[int, set[Part]] = {}
    for part, of_part in users.items():
        for user in of_part:
            by_user.setdefault(user, set()).add(part)
    shared = [of_user for of_user in by_user.values() if len(of_user) > 1]
    assert SHARED.get(kind, []) == shared
    # Components that share an account in one cell have their own in the others.
    assert {part for part, of_part in users.items() if len(of_part) > 1} <= set().union(*shared)
    assert ({CLIENT} if kind in ROOTS_CLIENTS else set()) == by_user.get(0, set())
    assert all(user == 0 or confined.FIRST_ACCOUNT <= user <= confined.LAST_ACCOUNT for user in by_user)
    # Each of them opened files while it was watched.
    assert by_user.keys() <= watch.by_user.keys()
    wrong = [one for one in watch.of_others if one.program != "tollbar" or not BY_LAB.search(one.path)]
    assert [] == wrong


@pytest.mark.share(1)
def test_a_client_of_a_user_s_own_server_has_an_account(ground: Ground, tmp_path: Path) -> None:
    """The responder could be anybody, so the reader of its answers is never root."""
    with own_server.nginx(tmp_path / "nginx") as own:
        run = ground.start("--url", own.http, "--users", 2, "--blocks", 1)
        seen: set[Privileges] = set()
        while run.poll() is None:
            for pid in proc.tree(run.pid):
                for _ in part_of(pid):
                    seen.update(filter(None, map(privileges, proc.tree(pid)[1:])))
            time.sleep(0.02)
    assert 0 == run.wait(RUN_LIMIT_S), ground.output()
    assert {(0, False)} == {(one.has, one.may_gain) for one in seen}
    assert {True} == {confined.FIRST_ACCOUNT <= one.user <= confined.LAST_ACCOUNT for one in seen}


@pytest.mark.share(1)
@pytest.mark.parametrize("option", ["hidepid=2", "hidepid=2,gid=4242"])
def test_work_is_accounted_where_processes_are_hidden(ground: Ground, option: str) -> None:
    """A system may hide processes from all but one group: the client is in it, and sees those of the server."""
    (ground.folder / "study.toml").write_text(KINDS["embedded"].replace("BLOCKS", str(BLOCKS)))
    hidden = ("unshare", "--mount", "--pid", "--fork", "sh", "-c", f'mount -t proc -o {option} proc /proc && exec "$@"')
    if subprocess.run([*hidden, "sh", "true"], capture_output=True).returncode != 0:
        lacking("this kernel mounts no /proc that hides processes")
    run = ground.start("study.toml", "--blocks", 1, before=(*hidden, "sh", TOLLBAR), stdout=subprocess.DEVNULL)
    assert 0 == run.wait(RUN_LIMIT_S), ground.output()
    assert {("ok", None)} == set(cells_of(ground.runs[0]))


def test_the_group_that_sees_processes_is_the_mount_s(tmp_path: Path) -> None:
    at_proc = "22 27 0:21 / /proc rw,nosuid,nodev shared:13 - proc proc rw"
    tables = {
        at_proc: (),
        f"{at_proc},hidepid=0": (),
        f"{at_proc},hidepid=2": (0,),
        f"{at_proc},gid=109,hidepid=invisible": (109,),
        f"{at_proc},hidepid=invisible\n{at_proc}": (),
        f"{at_proc}\n{at_proc.replace('/proc', '/other')},hidepid=2": (),
        "": (),
    }
    for text in tables:
        (tmp_path / "mountinfo").write_text(text)
        assert tables[text] == confined.seeing_groups(tmp_path / "mountinfo"), text
    assert () == confined.seeing_groups(tmp_path / "nothing")


def test_a_file_that_another_user_may_change_is_noticed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        lacking("only root may see which files are opened")
    ours, theirs = confined.FIRST_ACCOUNT, confined.FIRST_ACCOUNT + 1
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "open").mkdir()
        (folder / "open").chmod(0o777)
        expected = {}
        for file, owner, group, mode, is_wrong in (
            ("root's", 0, 0, 0o644, False),
            ("own", ours, ours, 0o600, False),
            ("of another", theirs, theirs, 0o644, True),
            ("for all", 0, 0, 0o666, True),
            ("for a group", 0, theirs, 0o664, True),
            ("open/replaced", 0, 0, 0o644, True),
        ):
            path = folder / file
            path.write_text("")
            os.chown(path, owner, group)
            path.chmod(mode)
            expected[str(path)] = is_wrong
        words = [*confined.words(confined.Account(ours)), "sh", "-c", 'for one; do . "$one"; done; sleep 1', "sh"]
        with watched(os.getpid()) as watch:
            subprocess.run([*words, *expected], check=True)
    assert expected.keys() <= watch.by_user[ours]
    assert {path for path, is_wrong in expected.items() if is_wrong} == {one.path for one in watch.of_others}


def test_a_runner_of_root_s_lab_has_no_capability_that_it_does_not_need() -> None:
    """The runner stays root's, like its files, and can neither use nor gain a right of root's."""
    if os.geteuid() != 0:
        lacking("only what root has started has capabilities to drop")
    process = Process(("sh", "-c", "cat /proc/self/status; exec cat"))
    try:
        said = {}
        while "NoNewPrivs" not in said:
            name, _, value = process.hear(10).decode().partition(":")
            said[name] = value.strip()
    finally:
        process.kill()
    assert ("0", "1") == (said["Uid"].split()[1], said["NoNewPrivs"])
    assert {0} == {int(said[name], 16) for name in (*SETS, *([MOST] if confined._may_drop() else []))}


# Root's capabilities in a container of Docker's.
OF_CONTAINERS = (
    "chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,"
    "+sys_chroot,+kill,+audit_write"
)
ROOTS = {
    "of a container": ("setpriv", f"--bounding-set=-all,+{OF_CONTAINERS}"),
    "without a right": ("setpriv", "--bounding-set=-all"),
    "of a user namespace": ("unshare", "--user", "--map-root-user"),
}


@pytest.mark.parametrize("kind", ROOTS)
def test_a_root_that_may_not_give_accounts_measures_without_them(kind: str) -> None:
    if os.geteuid() != 0:
        lacking("an ordinary user is no root of a container")
    words = ROOTS[kind]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        lacking(f"`{words[0]}` is not installed, or may not take rights")
    done = subprocess.run(
        [*words, sys.executable, server_lab.__file__, "trials", "embedded", "1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (0, "done") == (done.returncode, done.stdout.splitlines()[-1:][0] if done.stdout else done.stderr)


@pytest.mark.parametrize("table", ["uid_map", "gid_map"])
def test_accounts_are_of_the_namespace(table: str, tmp_path: Path) -> None:
    tables = {
        "         0          0 4294967295\n": True,
        "0 1000 1\n1 100000 65536\n": True,
        "0 1000 1\n": False,
        f"0 100000 {confined.LAST_ACCOUNT + 1}\n": True,
        f"0 100000 {confined.LAST_ACCOUNT}\n": False,
        "": False,
    }
    for text in tables:
        (tmp_path / table).write_text(text)
        assert tables[text] == confined._has_numbers(tmp_path / table), text
    assert confined._has_numbers(tmp_path / "not there")


def test_every_component_is_in_a_study() -> None:
    described = {**servers.all_servers(), **servers.services()}
    assert {*described} == {name for _, names in STUDIES.values() for name in names}


def part_of(pid: int) -> Iterator[Part]:
    """Yield server and component, or the client, if this process is the guard of a started one."""
    words = Path(f"/proc/{pid}/cmdline")
    try:
        said = words.read_bytes()
        if b"\0guard\0--tree\0" not in said:
            return
        if log := LOG.search(os.readlink(f"/proc/{pid}/fd/2")):
            yield log["server"], log["component"]
        elif said.endswith((b"\0load\0", b"\0store\0")):
            yield CLIENT
    except OSError:
        return


def privileges(pid: int) -> Privileges | None:
    """Return a process's command, its capabilities, and whether it may gain others.

    None if it has ended, or has not become the server yet.
    """
    folder = Path(f"/proc/{pid}")
    try:
        words = (folder / "cmdline").read_bytes()
        lines = (folder / "status").read_text().splitlines()
        # A process that is becoming another program is read the next time.
        is_another = (folder / "cmdline").read_bytes() != words
    except OSError:
        return None
    program, _, arguments = words.partition(b"\0")
    # A process that has ended has no command line.
    if is_another or not words or program.endswith(b"setpriv") or arguments.startswith(b"guard\0"):
        return None
    said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    has = 0
    for name in (*SETS, *([MOST] if confined._may_drop() else [])):
        has |= int(said[name], 16)
    user = int(said["Uid"].split()[1])
    return Privileges(program.decode(errors="replace"), user, has, said["NoNewPrivs"] == "0")
