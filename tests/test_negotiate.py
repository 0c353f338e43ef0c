"""Kerberos and NTLM on real servers: right users sign in, wrong ones do not, and nothing is left outside the run.

A missing server fails here, because without it these schemes would be proved nowhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from test_sign_in import ACCOUNTS
from tollbar import study
from tollbar.core.records import CLIENT, Outcome, Proven, Trial
from tollbar.lab import measure, workloads
from tollbar.lab.servers.configuration import SHOWN
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.study import plan
from tollbar.study.plan import Plan

STUDY = """
question  = "Who asks?"
family    = "web-auth"
servers      = ["{server}"]
providers = ["libcrypto"]
choices   = ["anonymous", "{choice}"]
baseline  = {{ choice = "anonymous", op = "request" }}
[vary]
{vary}
[[leave-out]]
where   = {{ choice = "anonymous", op = "sign-on" }}
because = "There is none."
[load]
users   = [{users}]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ status = 200, bytes = "{{bytes}}" }}
[measure]
rounds = 3
blocks = 1
"""
REFUSED = {
    "kerberos": {
        "no credentials",
        "a wrong password",
        "an unknown user",
        "a replayed token",
        "a token for another service",
    },
    "ntlm": {"no credentials", "a wrong password", "an unknown user", "the answer to another challenge"},
}
# A few more accounts than members of groups, and the same number as in other tests, because directories are made once.
OF_DIRECTORY = {"op": "request", "accounts": ACCOUNTS, "directory": "samba", "groups": 0, "transport": "clear"}
OF_TICKETS = {
    "encryption": "aes-256",
    "persistence": "request",
    "runs": "in-server",
    "identity": "machine",
    "delegation": "no",
    "mechanism": "spnego",
}
USUAL: Mapping[str, Mapping[str, str | int]] = {
    "kerberos": {**OF_DIRECTORY, **OF_TICKETS},
    "ntlm": OF_DIRECTORY,
    "basic": {**OF_DIRECTORY, "store": "ldap"},
}
KERBEROS: list[Mapping[str, str | int]] = [
    {},
    {"directory": "mit"},
    {"persistence": "connection"},
    {"persistence": "session"},
    {"directory": "mit", "persistence": "connection"},
    {"directory": "mit", "persistence": "session"},
    {"identity": "service"},
    {"directory": "mit", "identity": "service"},
    {"delegation": "yes"},
    {"identity": "service", "delegation": "yes", "groups": 100},
    {"directory": "mit", "delegation": "yes"},
    {"directory": "mit", "identity": "service", "delegation": "yes"},
    {"identity": "service", "encryption": "rc4"},
    {"directory": "mit", "identity": "service", "encryption": "rc4"},
    {"runs": "gssproxy"},
    {"directory": "mit", "runs": "gssproxy", "persistence": "session"},
    {"server": "nginx", "runs": "auth-request"},
    {"transport": "tls"},
    {"op": "sign-on", "groups": 50},
    {"groups": 700},
    {"mechanism": "kerberos"},
    {"directory": "mit", "mechanism": "kerberos", "persistence": "session"},
    {"op": "sign-on", "directory": "mit"},
]
NTLM: list[Mapping[str, str | int]] = [{}, {"op": "sign-on", "groups": 100}, {"transport": "tls"}]
SIGNED_IN = [("kerberos", said) for said in KERBEROS] + [("ntlm", said) for said in NTLM]
# Default places of libkrb5's files.
OF_THE_MACHINE = [Path("/var/tmp"), Path("/tmp")]


def planned(choice: str, said: Mapping[str, str | int], users: int = 2) -> Plan:
    """Return a cell with these settings and the usual others, with its baseline."""
    settings = {**USUAL[choice], **said}
    server = settings.pop("server", "httpd")
    # The baseline is a plain request.
    vary = {name: list({"request": 0, value: 0} if name == "op" else [value]) for name, value in settings.items()}
    text = "\n".join(f"{name} = {json.dumps(values)}" for name, values in vary.items())
    text = STUDY.format(server=server, choice=choice, vary=text, users=users)
    return plan.make([study.read("some", text, where="some.toml")], seed=1)


def proved(at: Sandbox, choice: str, said: Mapping[str, str | int]) -> Proven:
    """Return the proof of the cell."""
    (proven,) = measure.prove([planned(choice, said).studies[0].cells[-1]], 1, sandbox=at)
    return proven


def measured(at: Sandbox, choice: str, said: Mapping[str, str | int]) -> Trial:
    """Return a short trial of the cell."""
    made = planned(choice, said)
    left = measure.batches_left(made, counts={"some": 1}, done=(), excluded=())
    trials = [trial for batch, _ in measure.measured(made, left, sandbox=at) for trial in batch]
    (trial,) = (trial for trial in trials if trial.cell == made.studies[0].cells[-1].key and not trial.repeat)
    assert Outcome.OK == trial.outcome, trial.reason
    return trial


def words(said: object) -> str:
    """Return the id of a test."""
    return "-".join(map(str, said.values())) or "usual" if isinstance(said, dict) else str(said)


def of_the_machine() -> dict[Path, tuple[int, int]]:
    """Return the machine's own caches of tickets and of replays, each with its inode and time of change."""
    found = {path: path.stat() for folder in OF_THE_MACHINE for path in folder.glob("krb5*")}
    return {path: (about.st_ino, about.st_mtime_ns) for path, about in found.items()}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Yield one lab for all tests: each directory is made and started once."""
    before = of_the_machine()
    with Sandbox(tmp_path_factory.mktemp("logs")) as at:
        yield at
    assert before == of_the_machine()


@pytest.mark.share(13)
@pytest.mark.parametrize(("choice", "said"), SIGNED_IN, ids=words)
def test_who_is_right_signs_in_and_who_is_wrong_does_not(
    lab: Sandbox, choice: str, said: Mapping[str, str | int]
) -> None:
    proven = proved(lab, choice, said)
    assert (Outcome.OK, None) == (proven.outcome, proven.reason)
    assert "the user that signed in is the one that the server saw" in proven.accepted
    assert REFUSED[choice] <= {refused.partition(":")[0] for refused in proven.refused}


def test_a_run_finds_nothing_of_the_one_before(tmp_path: Path) -> None:
    """gssproxy's clients keep a sealed reference to the key, which would lead nowhere in the next run."""
    before = of_the_machine()
    for run in ("first", "second"):
        with Sandbox(tmp_path / run) as at:
            proven = proved(at, "kerberos", {"directory": "mit", "runs": "gssproxy"})
        assert (Outcome.OK, None) == (proven.outcome, proven.reason)
    assert before == of_the_machine()


@pytest.mark.parametrize(
    ("choice", "said", "reason"),
    [
        ("kerberos", {"server": "nginx"}, "nginx has no Kerberos of its own; ask with `runs=auth-request`"),
        ("kerberos", {"runs": "auth-request"}, "only nginx asks another server; ask with `runs=in-server`"),
        ("ntlm", {"server": "nginx"}, "only Apache supports NTLM here; ask with `server=httpd`"),
        (
            "kerberos",
            {"encryption": "rc4", "delegation": "yes"},
            "the directories here have no machine account trusted for delegation with rc4 tickets",
        ),
    ],
    ids=words,
)
def test_what_a_server_does_not_have_is_said(
    lab: Sandbox, choice: str, said: Mapping[str, str | int], reason: str
) -> None:
    proven = proved(lab, choice, said)
    assert (Outcome.UNSUPPORTED, reason) == (proven.outcome, proven.reason)


@pytest.mark.share(0)
@pytest.mark.parametrize("identity", ["machine", "service"])
def test_a_ticket_grows_with_groups_and_doubles_where_its_account_is_trusted(lab: Sandbox, identity: str) -> None:
    """Read from the headers of the measured requests, for which neither client nor server asks the directory."""
    usual = {"identity": identity}
    smallest, larger, forwarded = (
        sent_by(measured(lab, "kerberos", {**usual, **more}))
        for more in ({}, {"groups": 100}, {"groups": 100, "delegation": "yes"})
    )
    # Eight bytes a group in the ticket, and more in base64.
    assert 100 * 8 < larger - smallest < 100 * 16
    assert 1.6 < forwarded / larger < 2.2


@pytest.mark.share(0)
def test_a_member_of_700_groups_has_a_ticket_of_7_kilobytes(lab: Sandbox) -> None:
    """The ticket is in base64 in the header of a request that is otherwise nearly empty."""
    assert 7000 * 4 / 3 < sent_by(measured(lab, "kerberos", {"groups": 700})) < 7500 * 4 / 3


@pytest.mark.parametrize(("choice", "said"), SIGNED_IN, ids=words)
def test_it_can_be_shown(choice: str, said: Mapping[str, str | int]) -> None:
    cell = planned(choice, said).studies[0].cells[-1]
    shown = workloads.of(cell).shown(cell, 1)
    assert shown.configuration is not None
    assert ("AuthType GSSAPI" in shown.configuration) == ("impossible" not in shown.task)
    assert str(SHOWN) in shown.task["load"]["exchange"]["accounts"]["file"]


@pytest.mark.share(0)
def test_later_requests_carry_no_ticket(lab: Sandbox) -> None:
    ticket = sent_by(measured(lab, "kerberos", {}))
    for choice, said in (
        ("kerberos", {"persistence": "connection"}),
        ("kerberos", {"persistence": "session"}),
        ("ntlm", {}),
    ):
        assert 0.4 * ticket > sent_by(measured(lab, choice, said))


def sent_by(trial: Trial) -> float:
    """Return the bytes sent for a request."""
    assert trial.load is not None
    return trial.load.bytes_sent / trial.load.requests


@pytest.mark.share(0)
def test_who_does_the_work_is_seen(lab: Sandbox) -> None:
    """The directory makes tickets at sign-on and is not asked about a request; gssproxy checks tickets."""
    for directory, component in (("samba", "directory"), ("mit", "kdc")):
        at_sign_on = {"op": "sign-on", "directory": directory}
        assert 0.1 < min(parts(lab, component, "kerberos", at_sign_on))
        assert any(0.05 > part for part in parts(lab, component, "kerberos", {"directory": directory}))
    assert 0.2 < min(parts(lab, "proxy", "kerberos", {"runs": "gssproxy"}))
    assert 0.2 < min(parts(lab, "directory", "ntlm", {"op": "sign-on"}))


# A directory's background work is a large part of a trial's few milliseconds, but not of every trial: a component with
# work has its part in each, one without has nearly none in at least one.
TRIALS = 3


def parts(lab: Sandbox, component: str, choice: str, said: Mapping[str, str | int]) -> Iterator[float]:
    """Return a component's shares of some trials, made on demand."""
    return (shares(measured(lab, choice, said))[component] for _ in range(TRIALS))


def shares(trial: Trial) -> dict[str, float]:
    """Return each component's share of the servers' CPU time."""
    used: Counter[str] = Counter()
    for chunk in trial.chunks:
        used.update(chunk.cpu_ns)
    return {name: used[name] / (used.total() - used[CLIENT]) for name in used}
