"""Sign-ins that go wrong on real servers: each fault is a row in the server's words, and the next cell goes on."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import here
from test_negotiate import planned, words
from test_sign_in import ACCOUNTS
from tollbar.catalog import servers
from tollbar.core import proc
from tollbar.core.records import Outcome, Proven, Trial
from tollbar.lab import measure, workloads
from tollbar.lab.measure.members import Member
from tollbar.lab.measure.rounds import Rounds
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox, folder_for_all
from tollbar.lab.workloads.request import RequestWorkload
from tollbar.lab.workloads.request_work import RequestWork
from tollbar.study.plan import Plan
from tollbar.study.plan.cells import Cell

Settings = Mapping[str, str | int]
Does = Callable[[StartedServer], AbstractContextManager[None]]
"""Function that makes a fault on running servers, and removes it."""
Changes = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Replacements of text in servers' files, by server and file."""

FAR = 900
# In seconds: more than the 300 that Kerberos allows between two clocks.
CLOCK = f"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += {FAR};
    return failed;
}}
time_t time(time_t *now) {{
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (now) *now = read.tv_sec;
    return read.tv_sec;
}}
int gettimeofday(struct timeval *now, void *zone) {{
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return 0;
}}
"""
LOCK = """
import sys, time
import ldb
from samba.auth import system_session
from samba.param import LoadParm
from samba.samdb import SamDB
directory, locked, *names = sys.argv[1:]
parameters = LoadParm()
parameters.load(directory + "/smb.conf")
database = SamDB(url=directory + "/private/sam.ldb", session_info=system_session(), lp=parameters)
# Windows counts tenths of microseconds since 1601.
since = str(int((time.time() + 11644473600) * 1e7)) if locked == "yes" else "0"
for name in names:
    message = ldb.Message(ldb.Dn(database, "CN=%s,OU=Accounts,DC=tollbar,DC=test" % name))
    message["lockoutTime"] = ldb.MessageElement(since, ldb.FLAG_MOD_REPLACE, "lockoutTime")
    database.modify(message)
"""
# Users whose requests are measured.
ASKING = [f"u{index:05d}" for index in range(500, ACCOUNTS)]


@contextmanager
def nothing(server: StartedServer) -> Iterator[None]:
    """Change nothing: the fault is in the servers' configuration."""
    yield


@contextmanager
def no_keytab(server: StartedServer) -> Iterator[None]:
    """Remove the web server's key."""
    keytab = server.given["directory"] / "web1.keytab"
    kept = keytab.rename(keytab.with_suffix(".kept"))
    try:
        yield
    finally:
        kept.rename(keytab)


@contextmanager
def unreadable_keytab(server: StartedServer) -> Iterator[None]:
    """Make the web server's key unreadable for its account."""
    keytab = server.given["directory"] / "web1.keytab"
    # Root's lab copies files that only root may read; this key is readable for all, in a folder closed to the web
    # server.
    keytab.chmod(0o604 if os.geteuid() == 0 else 0)
    try:
        yield
    finally:
        keytab.chmod(0o600)


@contextmanager
def strangers(server: StartedServer) -> Iterator[None]:
    """Send users that the directory does not know."""
    given = server.given["directory"]
    table = given / "accounts.tsv"
    known = table.read_text()

    def tell(text: str) -> None:
        table.write_text(text)
        # Clients of other trials have copies, which are made once.
        for copy in given.parent.glob(f"client-*-copies/{given.name}-accounts.tsv"):
            copy.unlink()

    tell(known.replace("u005", "x005"))
    try:
        yield
    finally:
        tell(known)


@contextmanager
def locked(server: StartedServer) -> Iterator[None]:
    """Lock the users' accounts, as after too many wrong passwords."""
    directory, kdc = server.work_dirs["directory"], server.work_dirs.get("kdc")

    def lock(yes: bool) -> None:
        if kdc is None:
            command = ["/usr/bin/python3", "-c", LOCK, str(directory), "yes" if yes else "no", *ASKING]
            subprocess.run(command, check=True, capture_output=True)
            return
        wanted = "".join(f"modprinc {'-' if yes else '+'}allow_tix {name}\n" for name in ASKING)
        environment = {**os.environ, "KRB5_CONFIG": "/dev/null", "KRB5_KDC_PROFILE": str(kdc / "kdc.conf")}
        (kadmin,) = here("mit").tools["directory"]["kadmin"].splitlines()
        command = [kadmin, "-p", "tollbar/admin"]
        subprocess.run(command, input=wanted, text=True, check=True, capture_output=True, env=environment)

    lock(True)
    try:
        yield
    finally:
        lock(False)


@dataclass(frozen=True)
class Fault:
    """Fault, and the reason in its row."""

    name: str
    choice: str
    said: Settings
    reason: str
    """Regular expression for its reason."""
    made: Does = nothing
    may_do: bool = False
    """True if fast servers may avoid the fault."""
    changes: Changes = field(default_factory=dict)


LIMIT = {"httpd": {"negotiate.conf.jinja": {"LimitRequestFieldSize 65536": "LimitRequestFieldSize 2048"}}}
BUFFERS = {"nginx": {"nginx.conf.jinja": {"large_client_header_buffers 4 64k": "large_client_header_buffers 4 1k"}}}
WRONG_CLOCK = {"httpd": {"server.toml": {'LD_PRELOAD                   = "': 'LD_PRELOAD                   = "CLOCK '}}}
MANY_GROUPS = {
    "samba": {
        "provision.py": {
            "GROUPS = 700": "GROUPS = 5000",
            "MEMBERS = ((250, 100), (500, 50), (510, 700))": "MEMBERS = ((1, 5000),)",
        }
    }
}
GATE = {"server": "nginx", "runs": "auth-request"}
FORWARDED = {"identity": "service", "delegation": "yes"}

# mod_auth_gssapi's error without a key to check a ticket with.
NO_KEY = r"got 401: .*; apache2 said: GSS ERROR .*SPNEGO cannot find mechanisms to negotiate"
# httpd's own limit is 65,536 bytes here.
TOO_LARGE = r"got 400: Bad Request .* Size of a request header field exceeds server limit\."
# The server's answer or the directory's ticket may be late first, depending on the machine.
TOO_LATE = "no whole answer after|Cannot contact any KDC"
# The directory is silent, or does not finish 5,000 groups.
NOT_IN_TIME = r"got 500: .*; apache2 said: AH01695: .*\[Timed out\]"
REVOKED = r"sign-in: u005\d\d cannot sign in: Client's credentials have been revoked"
UNKNOWN = r"sign-in: x005\d\d cannot sign in: Client 'x005\d\d@TOLLBAR.TEST' not found in Kerberos database"
# winbindd's answer to gss-ntlmssp, whatever is wrong with the user.
DENIED = r"got 401: .*; apache2 said: GSS ERROR .*\(Permission denied\)"

FAULTS = [
    Fault("no keytab", "kerberos", {}, NO_KEY, no_keytab),
    Fault("no keytab", "kerberos", {"directory": "mit"}, NO_KEY, no_keytab),
    Fault("no keytab", "kerberos", {"runs": "gssproxy"}, NO_KEY, no_keytab),
    Fault("no keytab", "kerberos", GATE, NO_KEY, no_keytab),
    Fault("unreadable keytab", "kerberos", {}, NO_KEY, unreadable_keytab),
    Fault("header too large", "kerberos", {"groups": 100}, TOO_LARGE, changes=LIMIT),
    Fault(
        "header too large", "kerberos", {**GATE, "groups": 100}, "Request Header Or Cookie Too Large", changes=BUFFERS
    ),
    Fault("clock skew", "kerberos", {}, r"apache2 said: GSS ERROR .*\(Clock skew too great\)", changes=WRONG_CLOCK),
    Fault("locked", "kerberos", {}, REVOKED, locked),
    Fault("locked", "kerberos", {"directory": "mit"}, REVOKED, locked),
    Fault("locked", "ntlm", {}, DENIED, locked),
    Fault("locked", "basic", {}, r"apache2 said: AH01617: user u005\d\d: authentication failure", locked),
    Fault("strangers", "kerberos", {}, UNKNOWN, strangers),
    Fault("strangers", "kerberos", {"directory": "mit"}, UNKNOWN, strangers),
    Fault("strangers", "ntlm", {}, DENIED, strangers),
    Fault("strangers", "basic", {}, r"apache2 said: AH01618: user x005\d\d not found", strangers),
    Fault("strangers", "basic", {"directory": "mit"}, r"apache2 said: AH01618: user x005\d\d not found", strangers),
    Fault("5,000 groups", "kerberos", {"accounts": 1, "groups": 100}, TOO_LATE, may_do=True, changes=MANY_GROUPS),
    Fault(
        "5,000 groups",
        "kerberos",
        {"accounts": 1, "groups": 100, **FORWARDED},
        f"{TOO_LARGE}|{TOO_LATE}",
        changes=MANY_GROUPS,
    ),
    Fault("5,000 groups", "ntlm", {"accounts": 1, "groups": 100}, TOO_LATE, may_do=True, changes=MANY_GROUPS),
    Fault(
        "5,000 groups",
        "basic",
        {"accounts": 1, "groups": 100},
        f"{TOO_LATE}|{NOT_IN_TIME}",
        may_do=True,
        changes=MANY_GROUPS,
    ),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Yield one lab for all tests: each directory is made and started once."""
    with Sandbox(tmp_path_factory.mktemp("logs")) as at:
        yield at


@contextmanager
def changed(folder: Path, changes: Changes) -> Iterator[None]:
    """Replace Tollbar's servers by copies with changed files."""
    with tempfile.TemporaryDirectory(dir=folder_for_all()) as public:
        # Servers load the clock from there, each under its own account.
        Path(public).chmod(0o755)
        with _changed(folder, changes, Path(public)):
            yield


@contextmanager
def _changed(folder: Path, changes: Changes, public: Path) -> Iterator[None]:
    folders = {name: server.folder for name, server in {**servers.all_servers(), **servers.services()}.items()}
    shutil.copytree(
        folders["httpd"].parent, folder / "servers", ignore=shutil.ignore_patterns("__pycache__", "*.py[co]")
    )
    clock = public / "clock.so"
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(clock), str(folder / "clock.c")], check=True)
    for path, texts in (
        (folder / "servers" / name / file, texts) for name in changes for file, texts in changes[name].items()
    ):
        text = path.read_text()
        for before, after in texts.items():
            assert before in text, before
            text = text.replace(before, after.replace("CLOCK", str(clock)))
        path.write_text(text)
    made = {name: servers.read(folder / "servers" / name) for name in folders}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            servers, "all_servers", lambda: {name: server for name, server in made.items() if not server.is_service}
        )
        patch.setattr(servers, "services", lambda: {name: server for name, server in made.items() if server.is_service})
        yield


def cell_of(made: Plan) -> Cell:
    """Return the faulty cell."""
    return made.studies[0].cells[-1]


def up(lab: Sandbox, cell: Cell) -> StartedServer:
    """Start the cell's servers."""
    workload = workloads.of(cell)
    assert isinstance(workload, RequestWorkload)
    assert isinstance(cell.server, servers.Server)
    return driver.start(lab, workload.request(cell, servers.here(cell.server), 1, lab))


def proved(lab: Sandbox, cell: Cell) -> Proven:
    """Return the proof of the cell."""
    (proven,) = measure.prove([cell], 1, sandbox=lab)
    return proven


def name_of(fault: Fault) -> str:
    """Return the id of a test."""
    return f"{fault.name}-{fault.choice}-{words(fault.said)}"


@pytest.mark.share(2)
@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_fault_is_a_row_in_the_servers_words(lab: Sandbox, tmp_path: Path, fault: Fault) -> None:
    """With `may_do` the proof may succeed instead, if servers are fast enough.

    Afterwards the same cell is proved.
    """
    with changed(tmp_path, fault.changes) if fault.changes else nullcontext():
        cell = cell_of(planned(fault.choice, fault.said))
        with up(lab, cell) as server, fault.made(server):
            proven = proved(lab, cell)
    if fault.may_do and proven.outcome is Outcome.OK:
        assert proven.reason is None
    else:
        assert Outcome.FAILED == proven.outcome
        assert re.search(fault.reason, proven.reason or ""), proven.reason
    again = proved(lab, cell_of(planned(fault.choice, {**fault.said, "accounts": ACCOUNTS})))
    assert (Outcome.OK, None) == (again.outcome, again.reason)


Strikes = Callable[[Sequence[int]], object]
"""Function that does something to the processes of a directory."""


def send(number: signal.Signals, pids: Sequence[int]) -> None:
    """Send a signal to each process that still exists."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def slow(pids: Sequence[int]) -> None:
    """Stop the directory for a time that is longer than all chunks together."""
    send(signal.SIGSTOP, pids)
    threading.Timer(0.5, send, (signal.SIGCONT, pids)).start()


def silent(pids: Sequence[int]) -> None:
    """Stop the directory."""
    send(signal.SIGSTOP, pids)


def gone(pids: Sequence[int]) -> None:
    """Kill the directory."""
    send(signal.SIGKILL, pids)


NO_KDC = r"u005\d\d cannot sign in: Cannot contact any KDC for realm 'TOLLBAR.TEST'"
ENDED = "{} was ended by SIGKILL: "
# The web server's answer may come before the end is noticed.
NO_LDAP = r"got 500: .*; apache2 said: AH01695: .*\[Can't contact LDAP server\]"
# Trouble of a directory in mid-trial; the cell that needs it; and the row's reason, or None for a success.
IN_MID_TRIAL: list[tuple[Strikes, str, Settings, str | None]] = [
    (slow, "kerberos", {"op": "sign-on"}, None),
    (slow, "ntlm", {"op": "sign-on"}, None),
    (slow, "basic", {}, None),
    (slow, "basic", {"directory": "mit"}, None),
    (silent, "kerberos", {"op": "sign-on"}, NO_KDC),
    # gss-ntlmssp waits for winbindd longer than a client waits for the page.
    (silent, "ntlm", {"op": "sign-on"}, "timeout 1 .*no whole answer after"),
    (silent, "basic", {}, NOT_IN_TIME),
    (silent, "basic", {"directory": "mit"}, NOT_IN_TIME),
    (gone, "kerberos", {"op": "sign-on"}, f"{ENDED.format('samba')}.*{NO_KDC}"),
    (gone, "kerberos", {"op": "sign-on", "directory": "mit"}, f"{ENDED.format('krb5kdc')}.*{NO_KDC}"),
    (gone, "ntlm", {"op": "sign-on"}, f"{ENDED.format('samba')}.*got 401|{DENIED}"),
    (gone, "basic", {}, f"{ENDED.format('samba')}.*got 500|{NO_LDAP}"),
    (gone, "basic", {"directory": "mit"}, f"{ENDED.format('slapd')}.*got 500|{NO_LDAP}"),
]


def struck(lab: Sandbox, made: Plan, strikes: Strikes) -> list[Trial]:
    """Return the trials of the cell and of its baseline, with the directory struck before the cell's first chunk."""
    cell = cell_of(made)
    pids: list[int] = []
    advance = Rounds._advance

    def strike_and_advance(rounds: Rounds, member: Member, number: int, **how: bool) -> None:
        if number == 0 and member.visit.cell.key == cell.key and not member.visit.repeat:
            assert isinstance(member.work, RequestWork)
            components = member.work.server.components
            pids.extend(
                proc.tree(components.get("kdc" if cell.choice.name == "kerberos" else "", components["directory"]))[1:]
            )
            strikes(pids)
        advance(rounds, member, number, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rounds, "_advance", strike_and_advance)
        try:
            return trials_of(lab, made)
        finally:
            # Other tests use this lab too.
            send(signal.SIGCONT, pids)


def trials_of(lab: Sandbox, made: Plan) -> list[Trial]:
    """Return the trials of one block, the cell's own last."""
    left = measure.batches_left(made, counts={"some": 1}, done=(), excluded=())
    trials = [trial for found, _ in measure.measured(made, left, sandbox=lab) for trial in found]
    return sorted(trials, key=lambda trial: trial.cell == cell_of(made).key and not trial.repeat)


@pytest.mark.share(0)
@pytest.mark.parametrize(
    ("strikes", "choice", "said", "reason"),
    IN_MID_TRIAL,
    ids=lambda value: words(value) if not callable(value) else value.__name__,
)
def test_a_directory_in_trouble_fails_the_trials_that_ask_it(
    lab: Sandbox, strikes: Strikes, choice: str, said: Settings, reason: str | None
) -> None:
    made = planned(choice, said, users=1)
    *others, trial = struck(lab, made, strikes)
    # The baseline asks no directory.
    assert {Outcome.OK} == {other.outcome for other in others if other.cell == made.studies[0].cells[0].key}
    if reason is None:
        assert (Outcome.OK, None) == (trial.outcome, trial.reason)
    else:
        assert (Outcome.FAILED, 0, None) == (trial.outcome, len(trial.chunks), trial.load)
        assert re.search(reason, trial.reason or ""), trial.reason
    (*_, again) = trials_of(lab, made)
    assert (Outcome.OK, None) == (again.outcome, again.reason)
