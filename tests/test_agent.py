"""The agent on another machine: accepted labs, listening addresses, and its end."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from patience import PATIENCE_S
from tollbar import __version__
from tollbar.catalog.libraries import engine_build
from tollbar.catalog.servers import NotStarted
from tollbar.catalog.servers.places import RoleMachine
from tollbar.core.records import Outcome
from tollbar.core.runner import engine
from tollbar.core.runner.process import Process
from tollbar.lab.servers.agent import Agent
from tollbar.lab.servers.nodes import Node
from tollbar.lab.servers.sandbox import Sandbox


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": "0.0.1"}, "it has Tollbar"),
        ({"addresses": ["127.0.0.1", "192.0.2.77"]}, "192.0.2.77 is not an address of that machine"),
        ({}, None),
    ],
)
def test_an_agent_refuses(change: dict[str, str], expected: str | None) -> None:
    agent = Process((sys.executable, "-m", "tollbar.lab.servers.agent"))
    try:
        asked = {"version": __version__, "build": engine_build(), "addresses": ["127.0.0.1"]}
        agent.say({"hello": {**asked, "directory": "/nowhere", "token": secrets.token_hex(32), **change}})
        said = json.loads(agent.hear(PATIENCE_S))
        assert (expected or "") in said.get("error", "")
        assert (expected is None) == ("done" in said)
        directory = said.get("done", {}).get("directory")
        agent.end_input()
        assert agent.how_it_ends(PATIENCE_S) is None
        assert directory is None or not Path(directory).exists()
    finally:
        agent.kill()


# An agent whose lab is silent once there is a file, so that the test does not depend on the machine's speed.
QUIET_AGENT = """
import os, select, sys, time
from types import SimpleNamespace
from tollbar.lab.servers import agent

def until_silent(read, write, error, limit_s):
    assert limit_s == agent.SILENCE_S
    while not (found := select.select(read, write, error, 0.01)[0]) and not os.path.exists(sys.argv[1]):
        pass
    return found, [], []

agent.select = SimpleNamespace(select=until_silent)
agent.Agent.find = lambda self, server: time.sleep(3600)
agent.main()
"""


@pytest.mark.share(1)
@pytest.mark.parametrize("is_asked", [True, False])
def test_an_agent_ends_once_its_lab_is_silent(is_asked: bool, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    agent = Process((sys.executable, "-c", QUIET_AGENT, str(silent)))
    try:
        asked = {"version": __version__, "build": engine_build(), "addresses": ["127.0.0.1"]}
        agent.say({"hello": {**asked, "directory": "/nowhere", "token": secrets.token_hex(32)}})
        directory = Path(json.loads(agent.hear(PATIENCE_S))["done"]["directory"])
        for _ in range(3):
            agent.beat()
        agent.say({"nothing": {}})
        assert {"error": "the agent does not support the request `nothing`"} == json.loads(agent.hear(PATIENCE_S))
        assert directory.exists()
        if is_asked:
            agent.say({"find": {"server": "embedded"}})
        silent.touch()
        assert agent.how_it_ends(PATIENCE_S) is None
        assert not directory.exists()
    finally:
        agent.kill()


def test_a_lab_is_never_silent(at: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tollbar.lab.servers.nodes.BEAT_S", 0.01)
    told = "import sys; [sys.stdin.readline() for _ in range(3)]; print('{\"done\": 3}', flush=True)"
    node = Node(RoleMachine("web", "192.0.2.7"), at, Process((sys.executable, "-c", told)))
    node.keep_up()
    assert 3 == node.ask("anything")
    node.close()


def test_a_port_that_is_taken_is_had_on_the_next_address(at: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory always has its ports: another of the run has them on another address of its machine, or fails."""
    agent = Agent(at)
    agent._addresses = ("127.9.8.1", "127.9.8.2")
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.9.8.1", 0))
        port = first.getsockname()[1]
        directory = SimpleNamespace(port=port, ports=("ldaps",), role="directory")
        monkeypatch.setattr(agent, "_component", lambda server, component: directory)
        said = agent.endpoint("samba", "samba")
        assert ("127.9.8.2", port) == (said["address"], said["port"])
        second.bind(("127.9.8.2", port))
        with pytest.raises(
            NotStarted, match=rf"port {port} is in use on 127.9.8.1 and 127.9.8.2.*--roles directory="
        ) as why:
            agent.endpoint("samba", "samba")
    assert Outcome.UNSUPPORTED == why.value.outcome
    assert "127.9.8.1" == agent.endpoint("samba", "samba")["address"]


@pytest.mark.parametrize("is_right", [True, False])
def test_accounts_are_told_to_who_has_the_token(is_right: bool) -> None:
    token = secrets.token_bytes(32)
    agent = Process((str(engine()), "account"))
    try:
        agent.say({"listen": "127.0.0.1:0", "token": token.hex()})
        host, _, port = json.loads(agent.hear(PATIENCE_S))["listening"].rpartition(":")
        with socket.create_connection((host, int(port)), PATIENCE_S) as connection, connection.makefile("rwb") as lines:
            nonce = bytes.fromhex(json.loads(lines.readline())["nonce"])
            proof = hmac.digest(token if is_right else bytes(32), nonce, hashlib.sha256).hex()
            lines.write(json.dumps({"proof": proof}).encode() + b"\n")
            lines.flush()
            if is_right:
                lines.write(json.dumps({"open": {"web": os.getpid()}}).encode() + b"\n")
                lines.flush()
            fault = json.loads(lines.readline())["fault"]
            assert fault == (None if is_right else "the token is not this run's")
            assert is_right or lines.readline() == b""
    finally:
        agent.kill()


def test_an_agent_never_listens_on_all_addresses() -> None:
    told = json.dumps({"listen": "0.0.0.0:0", "token": "00" * 32}) + "\n"
    said = subprocess.run([str(engine()), "account"], input=told, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (1, "") == (said.returncode, said.stdout)
    assert "an agent must listen on one address, not on all" in said.stderr
