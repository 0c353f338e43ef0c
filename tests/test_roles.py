"""Parts of a server on machines of their own: made up here, in network namespaces joined by a bridge."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import lacking
from tollbar import __version__, beds, plan, study, workloads
from tollbar.beds import NotStarted, driver, shipping
from tollbar.beds.agent import Agent
from tollbar.beds.configuration import LOOPBACK, Endpoint, Location, Request
from tollbar.beds.nodes import Node, reached
from tollbar.beds.places import Place, read_places
from tollbar.beds.sandbox import Sandbox
from tollbar.cli.options import Options, places_for
from tollbar.errors import TollbarError
from tollbar.lab.measuring import refuse_others
from tollbar.libraries import Provider, engine_build
from tollbar.records import Outcome
from tollbar.runner import engine
from tollbar.runner.process import Process
from tollbar.workloads import request as request_workload

LAB = Path(__file__).with_name("roles_lab.py")
ROLES = Path(__file__).parent.parent / "docs" / "roles.md"
TOLLBAR = Path(sys.executable).with_name("tollbar")
LIMIT_S = 180.0
PATIENCE_S = 60.0

STUDY = """
question = "What does a handshake cost with a server on another machine?"
family   = "tls"
beds     = ["embedded"]
providers = ["aws-lc"]
baseline = "plaintext"
choices  = ["plaintext", "tls-1.3"]
[load]
users   = [2]
request = { get = "/bytes/{bytes}" }
expect  = { status = 200, bytes = "{bytes}" }
connection = "new"
[measure]
cost   = "server-cpu"
chunk  = "5 ms"
rounds = 2
blocks = 2
"""
SIGN_IN = """
question = "What does finding out who asks cost, with database and directory on machines of their own?"
family   = "web-auth"
beds     = ["httpd"]
providers = ["libcrypto"]
choices  = ["anonymous", "basic"]
baseline = { choice = "anonymous", op = "request" }
[vary]
op        = ["request"]
accounts  = [1000]
VARIED
[load]
users   = [2]
request = { get = "/bytes/{bytes}" }
expect  = { status = 200, bytes = "{bytes}" }
connection = "new"
"""

# For the directories of a run beside the first one: each has the same ports.
MORE_ADDRESSES = ("10.79.0.14", "10.79.0.24", "10.79.0.34")


class Machines:
    """A bridge's namespace, from which the lab asks, and one for each role."""

    def __init__(self) -> None:
        self._tag = f"roles{os.getpid()}"
        self._made: list[str] = []
        self._ip(f"netns add {self._tag}-hub")
        self._made.append("hub")
        for words in ("link set lo up", "link add name hub0 type bridge", "addr add 10.79.0.1/24 dev hub0"):
            self._ip(f"-n {self._tag}-hub {words}")
        self._ip(f"-n {self._tag}-hub link set hub0 up")
        for number, role in enumerate(("web", "database", "directory"), 2):
            self._ip(f"netns add {self._tag}-{role}")
            self._made.append(role)
            self._ip(f"-n {self._tag}-hub link add cable{number} type veth peer name eth0 netns {self._tag}-{role}")
            self._ip(f"-n {self._tag}-hub link set cable{number} master hub0 up")
            for words in ("link set lo up", f"addr add 10.79.0.{number}/24 dev eth0", "link set eth0 up"):
                self._ip(f"-n {self._tag}-{role} {words}")
        for more in MORE_ADDRESSES:
            self._ip(f"-n {self._tag}-directory addr add {more}/24 dev eth0")

    def inside(self, role: str) -> list[str]:
        return ["ip", "netns", "exec", f"{self._tag}-{role}"]

    def roles(self, *roles: str) -> list[str]:
        address = {"web": "10.79.0.2", "database": "10.79.0.3", "directory": "+".join(("10.79.0.4", *MORE_ADDRESSES))}
        return [f"{role}={address[role]} by {' '.join(self.inside(role))}" for role in roles]

    def pids(self, role: str) -> list[int]:
        said = subprocess.run(["ip", "netns", "pids", f"{self._tag}-{role}"], capture_output=True, text=True)
        return [int(pid) for pid in said.stdout.split()]

    def cut(self, role: str) -> None:
        number = {"web": 2, "database": 3, "directory": 4}[role]
        self._ip(f"-n {self._tag}-hub link set cable{number} down")

    def mend(self) -> None:
        for number in (2, 3, 4):
            self._ip(f"-n {self._tag}-hub link set cable{number} up")

    def is_empty(self, role: str) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while self.pids(role) and time.monotonic() < deadline:
            time.sleep(0.05)
        return not self.pids(role)

    def remove(self) -> None:
        for role in reversed(self._made):
            self._ip(f"netns del {self._tag}-{role}")

    def _ip(self, words: str) -> None:
        subprocess.run(["ip", *words.split()], check=True, capture_output=True, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    try:
        made = Machines()
    except (OSError, subprocess.CalledProcessError):
        lacking("no network namespaces can be made: that takes root and iproute2")
    yield made
    made.remove()


# On a busy machine packets are sent twice, and what servers do by themselves is more of a chunk; what is wrong is so
# each time.
ATTEMPTS = 5


def _trial(machines: Machines, tmp_path: Path, text: str, choice: str, *roles: str) -> dict[str, Any]:
    (tmp_path / "one.toml").write_text(text)
    words = [sys.executable, str(LAB), str(tmp_path / "one.toml"), choice, *machines.roles(*roles)]
    done = subprocess.run([*machines.inside("hub"), *words], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_round_trips_and_bytes_are_those_of_a_capture(machines: Machines, tmp_path: Path) -> None:
    """What the client's kernel counts is what a packet socket sees; connecting, and TLS, are a round trip each."""
    for choice, round_trips in (("plaintext", 2), ("tls-1.3", 3)):
        for _ in range(ATTEMPTS):
            said = _trial(machines, tmp_path, STUDY, choice, "web")
            if said["captured"]["round-trips"] == round_trips * said["operations"]:
                break
        assert said["captured"]["round-trips"] == said["network"]["round-trips"] == round_trips * said["operations"]
        assert said["captured"]["sent"] == said["network"]["sent"]
        if choice == "plaintext":
            # The end of the server's side counts as a byte where nothing looks at the connection again.
            more = said["network"]["received"] - said["captured"]["received"]
            assert 0 <= more <= said["operations"] // 20
        assert 0 < said["round_trip_ns"]["web"] < 1e9


@pytest.mark.parametrize(
    ("varied", "parts"),
    [
        ('store = ["sql"]\npassword-hash = ["sha-1"]', {"web", "database"}),
        ('store = ["ldap"]\ndirectory = ["mit"]', {"web", "directory"}),
    ],
)
def test_the_parts_are_the_whole(machines: Machines, tmp_path: Path, varied: str, parts: set[str]) -> None:
    """Accounts read on each machine add up to the clocks of all that runs there, within one per cent."""
    for name in ("httpd", "postgresql-accounts", "mit"):
        if not isinstance(beds.find({**beds.all_beds(), **beds.services()}[name]), beds.Installed):
            lacking(f"{name} is not installed")
    text = SIGN_IN.replace("VARIED", varied)
    for _ in range(ATTEMPTS):
        said = _trial(machines, tmp_path, text, "basic", "web", "database", "directory")
        if said["whole_ns"] == pytest.approx(sum(said["components"].values()), rel=0.01):
            break
    assert {name for name, ns in said["components"].items() if ns} == parts
    assert said["whole_ns"] == pytest.approx(sum(said["components"].values()), rel=0.01)


def _run(machines: Machines, tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    command = [*machines.inside("hub"), str(TOLLBAR), "run", *words, "--runs", str(tmp_path / "runs"), "--no-report"]
    command += ["--roles", ",".join(machines.roles("web"))]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, cwd=tmp_path
    )


def _until_served(machines: Machines) -> int:
    """Waits for a server on the other machine; says which process is the agent."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        words = {pid: _words(pid) for pid in machines.pids("web")}
        if any(b"serve" in said for said in words.values()):
            return next(pid for pid, said in words.items() if b"tollbar.beds.agent" in said and b"probe" not in said)
        time.sleep(0.01)
    raise AssertionError("no server was started")


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def test_a_lost_machine_ends_the_run_which_goes_on(machines: Machines, tmp_path: Path) -> None:
    """The heat under way is lost, the run says so, nothing is left there, and it is resumed with the same roles."""
    (tmp_path / "one.toml").write_text(STUDY)
    lab = _run(machines, tmp_path, "one.toml", "--blocks", "5")
    os.kill(_until_served(machines), signal.SIGKILL)
    said = lab.communicate(timeout=LIMIT_S)[0]
    assert lab.returncode != 0
    assert "the machine of the role web (10.79.0.2) is lost" in said
    assert "Traceback" not in said
    assert machines.is_empty("web")
    (run,) = (tmp_path / "runs").iterdir()
    elsewhere = subprocess.run([str(TOLLBAR), "run", "--resume", str(run)], capture_output=True, text=True)
    assert (2, True) == (elsewhere.returncode, "the run began with other roles" in elsewhere.stderr)
    again = _run(machines, tmp_path, "--resume", str(run))
    said = again.communicate(timeout=LIMIT_S)[0]
    assert again.returncode == 0, said
    assert "On machines of their own" in said
    assert machines.is_empty("web")


@pytest.mark.parametrize("what", ["lab", "network"])
def test_nothing_is_left_there(machines: Machines, tmp_path: Path, what: str) -> None:
    """Whether the lab is killed, or the network between the two is gone: all that ran there ends."""
    (tmp_path / "one.toml").write_text(STUDY)
    lab = _run(machines, tmp_path, "one.toml", "--blocks", "5")
    _until_served(machines)
    if what == "lab":
        os.kill(lab.pid, signal.SIGKILL)
        lab.communicate(timeout=LIMIT_S)
    else:
        machines.cut("web")
        said = lab.communicate(timeout=LIMIT_S)[0]
        machines.mend()
        assert "the machine of the role web (10.79.0.2) is lost: it cannot be reached" in said
    assert machines.is_empty("web")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("proxy=10.0.0.1", "no component has the role `proxy`"),
        ("web=here", "not an address: `here`"),
        ("web=10.0.0.1+2001:db8::7", "roles have IPv4 addresses: `2001:db8::7`"),
        ("web=10.0.0.1,web=10.0.0.2", "the role `web` is given twice"),
        ("client=10.0.0.1 by ssh x", "the client is where the lab is"),
        ("database=10.0.0.1", "has to know who comes"),
    ],
)
def test_roles_that_cannot_be(said: str, expected: str) -> None:
    with pytest.raises(TollbarError, match=expected):
        read_places([said])


def test_a_study_without_servers_has_no_roles(tmp_path: Path) -> None:
    """Refused before a run is made."""
    words = [str(TOLLBAR), "run", "digests", "--roles", "web=10.0.0.1", "--runs", str(tmp_path / "runs")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert (2, False) == (done.returncode, (tmp_path / "runs").exists())
    assert "nothing of these studies is asked of a server" in done.stderr


def test_roles_are_read() -> None:
    assert read_places(["web=10.0.0.1,client=10.0.0.2", "directory=10.0.0.3+10.0.0.4 by a b"]) == (
        Place("web", "10.0.0.1", ("ssh", "-T", "-o", "BatchMode=yes", "10.0.0.1")),
        Place("client", "10.0.0.2"),
        Place("directory", "10.0.0.3", ("a", "b"), ("10.0.0.4",)),
    )
    assert read_places(["web=10.0.0.1 by a -o b,c, client=10.0.0.2"]) == (
        Place("web", "10.0.0.1", ("a", "-o", "b,c")),
        Place("client", "10.0.0.2"),
    )


@pytest.mark.parametrize(
    ("said", "where", "expected"),
    [
        ('web = "10.0.0.1"\nproxy = "10.0.0.2"', "one.toml", "`roles.proxy`: no such key"),
        ("web = 7", "one.toml", "`roles.web`: Input should be a valid string"),
        ('web = "here"', "one.toml: `roles.web`", "not an address: `here`"),
        ('web = "10.0.0.1 by ssh \'x"', "one.toml: `roles.web`", "not a command: No closing quotation: `ssh 'x`"),
        ('client = "10.0.0.1 by ssh x"', "one.toml: `roles.client`", "the client is where the lab is"),
        ('database = "10.0.0.1"', "one.toml: `roles`", "has to know who comes"),
    ],
)
def test_roles_of_a_study_that_cannot_be(said: str, where: str, expected: str) -> None:
    """One line with the file and the key."""
    with pytest.raises(TollbarError) as error:
        study.read("one", f"{STUDY}[roles]\n{said}\n", where="one.toml")
    assert (where, True) == (error.value.where, expected in error.value.what)
    assert "\n" not in error.value.what


def test_a_study_says_roles_in_the_words_of_the_command_line() -> None:
    """And in a document: the words behind each role are the same."""
    text = re.findall(r"<!-- roles -->\n```toml\n(.*?)```", ROLES.read_text("utf-8"), re.DOTALL)[0]
    one = study.read("one", STUDY + text, where="one.toml")
    assert one.places == read_places(["client=192.0.2.1,web=192.0.2.7 by ssh bench@192.0.2.7"])
    several = study.read("one", STUDY + '[roles]\nweb = "10.0.0.3+10.0.0.4"', where="one.toml")
    assert several.places == read_places(["web=10.0.0.3+10.0.0.4"])
    assert () == study.read("one", STUDY, where="one.toml").places


def test_a_run_has_the_same_roles_for_all_studies() -> None:
    """Those of the command line take the place of all that studies say."""
    one, other, none = (
        study.read(name, STUDY + said, where=name)
        for name, said in (("one", '[roles]\nweb = "10.0.0.1"'), ("other", '[roles]\nweb = "10.0.0.2"'), ("none", ""))
    )
    assert one.places == places_for([one, one], Options())
    assert () == places_for([none, none], Options())
    for pair, names in (([one, other], "one and other"), ([one, none], "one and none")):
        with pytest.raises(TollbarError, match=f"the studies {names} say different ones"):
            places_for(pair, Options())
    told = Options(roles=("database=10.0.0.9,client=10.0.0.8",))
    assert read_places(told.roles) == places_for([one, other], told)


def test_a_run_is_made_where_its_study_says(machines: Machines, tmp_path: Path) -> None:
    """Its parts are on machines of their own, and it is resumed there without a word on the command line."""
    role, _, at = machines.roles("web")[0].partition("=")
    (tmp_path / "one.toml").write_text(f"{STUDY}[roles]\n{role} = {json.dumps(at)}\n")
    command = [*machines.inside("hub"), str(TOLLBAR), "run", "--no-report"]
    first = [*command, "one.toml", "--runs", "runs", "--blocks", "2"]
    done = subprocess.run(first, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert 0 == done.returncode, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    said = json.loads((run / "run.json").read_text())
    assert {"web": "10.79.0.2"} == said["roles"]
    assert "10.79.0.2" == said["nodes"]["web"]["address"]
    again = [*command, "--resume", str(run), "--blocks", "3"]
    done = subprocess.run(again, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "On machines of their own" in done.stdout


def test_a_study_with_roles_is_no_fleets(tmp_path: Path) -> None:
    """Each node of a fleet measures the whole by itself: refused as on the command line, before anything is made."""
    (tmp_path / "one.toml").write_text(STUDY + '[roles]\nweb = "10.0.0.1"')
    words = [str(TOLLBAR), "run", "one.toml", "--on", "ray"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert (2, False) == (done.returncode, (tmp_path / "runs").exists())
    assert "`roles`: each node of a fleet measures the whole by itself" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": "0.0.1"}, "it has Tollbar"),
        ({"addresses": ["127.0.0.1", "192.0.2.77"]}, "192.0.2.77 is none of its addresses"),
        ({}, None),
    ],
)
def test_an_agent_refuses(change: dict[str, str], expected: str | None) -> None:
    """A lab of another version, and an address that is not its machine's."""
    agent = Process((sys.executable, "-m", "tollbar.beds.agent"))
    try:
        asked = {"version": __version__, "build": engine_build(), "addresses": ["127.0.0.1"]}
        agent.say({"hello": {**asked, "directory": "/nowhere", "token": secrets.token_hex(32), **change}})
        said = json.loads(agent.hear(60))
        assert (expected or "") in said.get("error", "")
        assert (expected is None) == ("done" in said)
        directory = said.get("done", {}).get("directory")
        agent.end_input()
        assert agent.how_it_ends(60) is None
        assert directory is None or not Path(directory).exists()
    finally:
        agent.kill()


def test_a_port_that_is_taken_is_had_on_the_next_address(at: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory always has its ports: another of the run has them on another address of its machine, or nowhere."""
    agent = Agent(at)
    agent._addresses = ("127.9.8.1", "127.9.8.2")
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.9.8.1", 0))
        port = first.getsockname()[1]
        directory = SimpleNamespace(port=port, ports=("ldaps",), role="directory")
        monkeypatch.setattr(agent, "_component", lambda bed, component: directory)
        said = agent.endpoint("samba", "samba")
        assert ("127.9.8.2", port) == (said["address"], said["port"])
        second.bind(("127.9.8.2", port))
        with pytest.raises(
            NotStarted, match=rf"port {port} is taken on 127.9.8.1 and 127.9.8.2.*--roles directory="
        ) as why:
            agent.endpoint("samba", "samba")
    assert Outcome.UNSUPPORTED == why.value.outcome
    assert "127.9.8.1" == agent.endpoint("samba", "samba")["address"]


QUIET_AGENT = """
import time
from tollbar.beds import agent
agent.SILENCE_S = 3.0
agent.Agent.find = lambda self, bed: time.sleep(600)
agent.main()
"""


@pytest.mark.parametrize("is_asked", [True, False])
def test_an_agent_ends_once_its_lab_is_silent(is_asked: bool) -> None:
    """Without an end of its input, and whatever it does then; empty lines keep it, and have no answer."""
    agent = Process((sys.executable, "-c", QUIET_AGENT))
    try:
        asked = {"version": __version__, "build": engine_build(), "addresses": ["127.0.0.1"]}
        agent.say({"hello": {**asked, "directory": "/nowhere", "token": secrets.token_hex(32)}})
        directory = Path(json.loads(agent.hear(60))["done"]["directory"])
        for _ in range(8):
            time.sleep(0.5)
            agent.beat()
        agent.say({"nothing": {}})
        assert {"error": "an agent does not `nothing`"} == json.loads(agent.hear(60))
        assert directory.exists()
        if is_asked:
            agent.say({"find": {"bed": "embedded"}})
        assert agent.how_it_ends(60) is None
        assert not directory.exists()
    finally:
        agent.kill()


def test_a_lab_is_never_silent(at: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while it waits for an answer."""
    monkeypatch.setattr("tollbar.beds.nodes.BEAT_S", 0.01)
    told = "import sys; [sys.stdin.readline() for _ in range(3)]; print('{\"done\": 3}', flush=True)"
    node = Node(Place("web", "192.0.2.7"), at, Process((sys.executable, "-c", told)))
    node.keep_up()
    assert 3 == node.ask("anything")
    node.close()


@pytest.mark.parametrize("is_right", [True, False])
def test_accounts_are_told_to_who_has_the_token(is_right: bool) -> None:
    token = secrets.token_bytes(32)
    agent = Process((str(engine()), "account"))
    try:
        agent.say({"listen": "127.0.0.1:0", "token": token.hex()})
        host, _, port = json.loads(agent.hear(60))["listening"].rpartition(":")
        with socket.create_connection((host, int(port)), 60) as connection, connection.makefile("rwb") as lines:
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
    said = subprocess.run([str(engine()), "account"], input=told, capture_output=True, text=True, timeout=60)
    assert (1, "") == (said.returncode, said.stdout)
    assert "an agent listens on one address, and not on all" in said.stderr


class Told:
    """A machine that answers every question with what it was told to."""

    def __init__(self, **answers: Any) -> None:
        self._answers, self._asked = answers, ""

    def say(self, line: dict[str, Any]) -> None:
        (self._asked,) = line

    def hear(self, limit_s: float) -> bytes:
        return json.dumps({"done": self._answers[self._asked]}).encode()


def _node(at: Sandbox, **answers: Any) -> Node:
    said = {"directory": "/there", "account": None}
    return Node(Place("web", "192.0.2.7"), at, Told(**answers), said=said)  # type: ignore[arg-type]


def test_a_server_of_another_version_is_not_started(at: Sandbox) -> None:
    """Rows name the lab's."""
    found = beds.here(beds.all_beds()["embedded"])
    same = {"versions": dict(found.versions), "programs": {}, "tools": {}, "places": {}}
    assert _node(at, find=same).found(found).versions == found.versions
    other = {**same, "versions": dict.fromkeys(found.versions, "0.0.1")}
    with pytest.raises(beds.NotStarted, match=r"on web \(192.0.2.7\): tollbar-engine is of version 0.0.1, and of"):
        _node(at, find=other).found(found)


@pytest.mark.parametrize(("there", "is_same"), [("one", True), ("other", False), (None, False)])
def test_a_library_is_the_file_that_it_is_here(at: Sandbox, tmp_path: Path, there: str | None, is_same: bool) -> None:
    library = tmp_path / "libcrypto.so.3"
    library.write_text("one")
    digest = hashlib.sha256(there.encode()).hexdigest() if there else ""
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", str(library), (), {})
    request = Request(beds.here(beds.all_beds()["embedded"]), provider, {})
    said = {"proved": {"libcrypto": str(library)}, "digests": {str(library): digest}}
    node = _node(at, prove=said)
    if is_same:
        assert said["proved"] == node.prove(request, 1)
    else:
        with pytest.raises(beds.NotStarted, match=r"libcrypto\.so\.3 is another file than here"):
            node.prove(request, 1)


KEYTAB = {"path": "kdc-1/web1.keytab", "mode": 0o6777, "of_account": False, "data": "a2V5"}
GIVES = ("krb5.conf", "*.keytab")


def test_what_comes_back_is_plain_files(tmp_path: Path) -> None:
    """Of the names that the component gives, for its account alone, and never over what is there."""
    work_dir = tmp_path / "kdc-1"
    work_dir.mkdir()
    (work_dir / "krb5.conf").write_text("the lab's")
    configuration = {**KEYTAB, "path": "kdc-1/krb5.conf"}
    shipping.take([KEYTAB, configuration], work_dir, GIVES, "/there", None)
    assert ["krb5.conf", "web1.keytab"] == sorted(path.name for path in work_dir.iterdir())
    assert 0o600 == (work_dir / "web1.keytab").stat().st_mode & 0o7777
    assert "the lab's" == (work_dir / "krb5.conf").read_text()


@pytest.mark.parametrize(
    "bundle",
    [
        [{**KEYTAB, "path": "kdc-2/web1.keytab"}],
        [{**KEYTAB, "path": "web1.keytab"}],
        [{**KEYTAB, "path": "kdc-1/../account.token"}],
        [{**KEYTAB, "path": "kdc-1/x/web1.keytab"}],
        [{**KEYTAB, "path": "/kdc-1/web1.keytab"}],
        [{**KEYTAB, "path": "kdc-1/module.so"}],
        [{"path": "kdc-1/web1.keytab", "link": "/etc/shadow"}],
        [{**KEYTAB, "link": "/etc/shadow"}],
        [{**KEYTAB, "data": "not base64!"}],
        [{"path": "kdc-1/web1.keytab"}],
        [{**KEYTAB, "path": "kdc-1/\0.keytab"}],
        [{**KEYTAB, "path": f"kdc-1/{'x' * 250}.keytab"}],
        [{**KEYTAB, "path": "kdc-1/\ud800.keytab"}],
        [KEYTAB] * 1000,
        ["kdc-1/web1.keytab"],
        KEYTAB,
        None,
        5,
        [{**KEYTAB, "data": "AAAA" * (6 << 20)}],
    ],
)
def test_a_hostile_machine_lays_down_nothing_else(tmp_path: Path, bundle: shipping.Bundle) -> None:
    work_dir = tmp_path / "kdc-1"
    work_dir.mkdir()
    with pytest.raises(TollbarError, match="came back"):
        shipping.take(bundle, work_dir, GIVES, "/there", None)
    assert ["kdc-1"] == [path.name for path in tmp_path.rglob("*")]


@pytest.mark.parametrize("address", ["192.0.2.7", "192.0.2.8", "192.0.2.7\n[plugins]"])
def test_the_configuration_that_others_read_is_the_labs(at: Sandbox, address: str) -> None:
    """Whatever a hostile machine sends as its krb5.conf, and whatever address it says."""
    bed = beds.services()["mit"]
    kdc = next(one for one in bed.components if one.name == "kdc")
    names = [one.name for one in bed.components]
    found = beds.Installed(bed, dict.fromkeys(names, "1"), dict.fromkeys(names, Path("/x")), {"kdc": {}}, {})
    hostile = {**KEYTAB, "path": "mit-kdc-2/krb5.conf", "data": base64.b64encode(b"include /there").decode()}
    answers = {
        "find": {"versions": found.versions, "programs": {"kdc": "/x"}, "tools": {"kdc": {}}, "places": {}},
        "endpoint": {"address": address, "port": 88, "ports": {}},
        "start": {"pid": 1, "said": {}, "files": [hostile]},
    }
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", None, (), {})
    request = Request(found, provider, {"accounts": 10}, account=at.account)
    node = _node(at, **answers)
    if address != node.place.address:
        with pytest.raises(TollbarError, match="kdc would be at"):
            node.start(request, kdc, {}, {})
        return
    work_dir = node.start(request, kdc, {"directory": Location(at.work_dir("d"), Endpoint(address, 1))}, {}).work_dir
    said = (work_dir / "krb5.conf").read_text()
    assert ("kdc = 192.0.2.7:88" in said, "include" in said) == (True, False)


@pytest.mark.parametrize(("elsewhere", "is_counted"), [({"server"}, True), ({"database"}, False), (set(), False)])
def test_the_network_is_counted_where_the_client_uses_it(elsewhere: set[str], is_counted: bool) -> None:
    """A database elsewhere is asked by the web server, and not by the load client."""
    bed = beds.all_beds()["embedded"]
    names = {bed.frontend.name if name == "server" else name for name in elsewhere}
    cell, server = SimpleNamespace(bed=bed), SimpleNamespace(nodes=dict.fromkeys(names))
    assert is_counted == request_workload._is_elsewhere(cell, server)  # type: ignore[arg-type]


@pytest.mark.parametrize(("elsewhere", "lacks"), [(("web",), "directory"), (("directory",), None), ((), None)])
def test_what_stands_behind_a_web_server_elsewhere_is_elsewhere(
    at: Sandbox, elsewhere: tuple[str, ...], lacks: str | None
) -> None:
    """With the lab it would listen on loopback."""
    mit, frontend = beds.services()["mit"], beds.all_beds()["embedded"]
    names = [one.name for one in mit.components]
    behind = beds.Installed(mit, dict.fromkeys(names, "1"), dict.fromkeys(names, Path("/x")), {}, {})
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", None, (), {})
    at.nodes.update(dict.fromkeys(elsewhere))
    server = driver.Server(at, Request(beds.here(frontend), provider, {}, services=(behind,)))
    if lacks is None:
        server._refuse_unreachable()
    else:
        with pytest.raises(beds.NotStarted, match=f"cannot reach it: add --roles {lacks}=ADDRESS"):
            server._refuse_unreachable()


@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_a_store_elsewhere_is_not_changed_by_a_proof(at: Sandbox, tmp_path: Path, is_elsewhere: bool) -> None:
    """A proof that is given no store says that a revoked credential was not tried."""
    text = SIGN_IN.replace("VARIED", 'store = ["sql"]\npassword-hash = ["salted-sha-1"]')
    text = text.replace("httpd", "embedded").replace("libcrypto", "aws-lc")
    (one,) = plan.make([study.read("some", text, where="some.toml")], seed=1).studies
    cell = next(cell for cell in one.cells if cell.choice.name == "basic")
    server = SimpleNamespace(work_dirs={"web": tmp_path}, nodes={"web": None} if is_elsewhere else {})
    exchange = workloads.of(cell).exchange(cell, server, at)  # type: ignore[attr-defined]
    assert (None if is_elsewhere else str(tmp_path / "accounts.sqlite")) == exchange.get("store")


@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_proofs_and_trials_share_a_directory_elsewhere(at: Sandbox, is_elsewhere: bool) -> None:
    """A machine elsewhere has one core for all; with the lab, proofs have none, and trials have the servers' core."""
    mit, frontend = beds.services()["mit"], beds.all_beds()["embedded"]
    names = [one.name for one in mit.components]
    behind = beds.Installed(mit, dict.fromkeys(names, "1"), dict.fromkeys(names, Path("/x")), {}, {})
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", None, (), {})
    at.nodes.update({"directory": None} if is_elsewhere else {})
    server = driver.Server(at, Request(beds.here(frontend), provider, {}, services=(behind,)))
    of_run = [(request, one) for request, one in server._request.parts if one.lifetime == "run"]
    assert of_run
    for request, component in of_run:
        proof, trial = (server._shared_by(request, component, core) for core in (None, 1))
        assert is_elsewhere == (proof == trial)


def test_those_who_may_ask_are_the_roles_and_the_lab_itself(at: Sandbox) -> None:
    """A web server and a database that both stay with the lab meet on loopback."""
    with reached([Place("client", "192.0.2.1")], at):
        assert (LOOPBACK, "192.0.2.1/32") == at.peers


def test_another_machine_at_a_roles_address_is_refused(tmp_path: Path) -> None:
    """When a run is resumed; what could not be known yet is no difference."""
    one = {
        "web": {"address": "192.0.2.7", "fingerprint": {"cpu": "one", "kernel": "6.1", "hyperthreads": "not stated"}}
    }
    same = {"web": {**one["web"], "fingerprint": {"cpu": "one", "kernel": "6.1", "hyperthreads": []}}}
    other = {"web": {**one["web"], "fingerprint": {"cpu": "other", "kernel": "6.1", "hyperthreads": []}}}
    refuse_others({}, one, tmp_path)
    refuse_others(one, same, tmp_path)
    with pytest.raises(TollbarError, match=r"role web \(192.0.2.7\) is not the one the run began on: cpu: one / other"):
        refuse_others(one, other, tmp_path)


def test_files_name_the_other_machines_directory_there(at: Sandbox, tmp_path: Path) -> None:
    """What a configuration names is sent, with modes; what is there stays; and nothing leads out of the directory."""
    (at.directory / "keys").mkdir()
    key = at.directory / "keys" / "one.pem"
    key.write_text(f"key of {at.directory}/keys")
    key.chmod(0o600)
    found = shipping.named([f"certificate {key};", f"root {at.directory}/nothing"], at.directory)
    bundle = shipping.packed(found, at.directory, None)
    (tmp_path / "there").mkdir()
    for _ in range(2):
        shipping.unpack(bundle, tmp_path / "there", str(at.directory), None)
    there = tmp_path / "there" / "keys" / "one.pem"
    assert f"key of {tmp_path}/there/keys" == there.read_text()
    assert 0o600 == there.stat().st_mode & 0o777
    link = {"path": "away", "link": str(tmp_path)}
    for hostile in ([{**bundle[0], "path": "../../else"}], [link, {**bundle[0], "path": "away/else"}]):
        with pytest.raises(TollbarError, match="outside of the run's directory"):
            shipping.unpack(hostile, tmp_path / "there", "/x", None)
    assert not (tmp_path / "else").exists()
