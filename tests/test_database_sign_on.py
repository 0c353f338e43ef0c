"""Signing in to a database: each way over each channel is proved, and chunks account for all processes."""

from __future__ import annotations

import shutil

import pytest

from conftest import here, lacking
from patience import PATIENCE_S
from tollbar import study
from tollbar.core.records import Outcome
from tollbar.core.runner import Session
from tollbar.lab import workloads
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Given
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

STUDY = """
question = "What?"
family   = "database-sign-on"
servers     = ["{server}"]
choices  = ["{choice}"]
baseline = "{choice}"
[vary]
channel  = ["{channel}"]
{more}
"""

CHUNKS = 10
WITH_PASSWORD = ("scram-sha-256", "password", "md5")
POOLERS = ["none", "pgbouncer"]


def cell(choice: str, channel: str, pooler: str = "none", more: str = "", server: str = "postgresql") -> Cell:
    """Return the cell of a study that asks for this alone."""
    here(server)
    if pooler == "pgbouncer" and not shutil.which("pgbouncer"):
        lacking("PgBouncer is not installed")
    text = STUDY.format(server=server, choice=choice, channel=channel, more=more)
    text += f'pooler = ["{pooler}"]' if server == "postgresql" else ""
    (one,) = plan.make([study.read("sign-on", text, where="test")], seed=1).studies
    return one.cells[0]


@pytest.mark.share
@pytest.mark.parametrize("pooler", POOLERS)
@pytest.mark.parametrize("channel", ["socket", "tcp", "tls"])
@pytest.mark.parametrize("choice", ["trust", *WITH_PASSWORD, "client-certificate"])
def test_a_sign_on_is_proved(at: Sandbox, choice: str, channel: str, pooler: str) -> None:
    found = workloads.of(one := cell(choice, channel, pooler)).prove(one, 7, Given(at))
    if choice == "client-certificate" and channel != "tls":
        assert Outcome.UNSUPPORTED is found.outcome
        return
    assert Outcome.OK is found.outcome, found.reason
    expected = {"an unknown user"}
    if choice in WITH_PASSWORD:
        expected |= {"a wrong password"}
    if choice == "scram-sha-256":
        expected |= {"a server that does not know the verifier"}
        mechanism = "SCRAM-SHA-256-PLUS" if channel == "tls" and pooler == "none" else "SCRAM-SHA-256"
        assert f"a sign-on by {mechanism}, 4096 iterations" in found.accepted
    if channel == "tls":
        expected |= {"a connection in clear", "a server with another certificate"}
    if choice == "client-certificate":
        expected |= {"a client without a certificate", "a client with another's certificate"}
    assert expected == {*found.refused}


# Conditions that the client reads from the wire, and conditions that only the server knows.
MARIADB = {
    "trust": ("nothing asked", "mysql_native_password"),
    "mysql-native-password": ("mysql_native_password", "mysql_native_password"),
    "ed25519": ("client_ed25519", "ed25519"),
    "unix-socket": ("nothing asked", "unix_socket"),
}


def test_a_role_does_not_take_a_measured_database_elsewhere(at: Sandbox) -> None:
    """Only processes on the lab's machine can be inspected: the row gives the reason, and nothing is started."""
    here("postgresql")
    at.nodes = {"web": None}
    one = cell("scram-sha-256", "socket")
    proven = workloads.of(one).prove(one, 7, Given(at))
    assert Outcome.UNSUPPORTED == proven.outcome
    assert "leave --roles out" in str(proven.reason)


@pytest.mark.share
@pytest.mark.parametrize("channel", ["socket", "tcp", "tls"])
@pytest.mark.parametrize("choice", MARIADB)
def test_a_sign_on_to_mariadb_is_proved(at: Sandbox, choice: str, channel: str) -> None:
    found = workloads.of(one := cell(choice, channel, server="mariadb")).prove(one, 7, Given(at))
    if choice == "unix-socket" and channel != "socket":
        assert Outcome.UNSUPPORTED is found.outcome
        return
    assert Outcome.OK is found.outcome, found.reason
    agreed, known = MARIADB[choice]
    assert {f"a sign-on by {agreed}", f"a user whom the server knows by {known}"} < {*found.accepted}
    expected = {"an unknown user"}
    if agreed != "nothing asked":
        expected |= {"a wrong password"}
    if choice == "unix-socket":
        expected |= {"the user of another account"}
    if channel == "tls":
        expected |= {"a connection in clear", "a server with another certificate"}
    assert expected == {*found.refused}


@pytest.mark.parametrize(
    ("choice", "server"), [("scram-sha-256", "mariadb"), ("ed25519", "postgresql"), ("parsec", "mariadb")]
)
def test_what_a_server_has_not_is_a_reason(at: Sandbox, choice: str, server: str) -> None:
    found = workloads.of(one := cell(choice, "socket", server=server)).prove(one, 7, Given(at))
    assert Outcome.UNSUPPORTED is found.outcome
    assert ("11.6 or later" if choice == "parsec" else f"does not support {choice}") in str(found.reason)


def test_iterations_are_those_that_were_asked_for(at: Sandbox) -> None:
    one = cell("scram-sha-256", "socket", more="scram-iterations = [10_000]")
    found = workloads.of(one).prove(one, 7, Given(at))
    assert "a sign-on by SCRAM-SHA-256, 10000 iterations" in found.accepted, found.reason


@pytest.mark.share(0)
def test_a_chunk_has_the_processes_of_all_connections(at: Sandbox) -> None:
    """Ended processes are included: a sign-on costs the server more than SCRAM's iterations alone."""
    spent = {}
    for iterations in (1, 20_000):
        one = cell("scram-sha-256", "socket", more=f"scram-iterations = [{iterations}]")
        with (
            workloads.of(one).up(one, 7, at, None) as work,
            Session(work.command, work.task, core=work.core, account=work.account) as session,
        ):
            session.ready(PATIENCE_S)
            # On a busy machine the server may not come to rest in time, and its account is not exact then.
            chunks = [session.advance(0.0, work.fewest, PATIENCE_S) for _ in range(CHUNKS)]
            session.finish()
        assert {work.fewest} == {chunk.operations for chunk in chunks}
        assert {None} == {work.contradiction(chunk) for chunk in chunks}
        exact = [chunk for chunk in chunks if chunk.observed.is_exact]
        assert exact
        spent[iterations] = min(chunk.observed.components["database"].cpu_ns / chunk.operations for chunk in exact)
    # The server verifies by its stored keys: only the client pays the iterations.
    assert 0.5 < spent[20_000] / spent[1] < 2


def test_iterations_out_of_bounds_are_refused() -> None:
    for count in (0, 100_001):
        with pytest.raises(Exception, match=r"too (small|large)"):
            cell("scram-sha-256", "socket", more=f"scram-iterations = [{count}]")
