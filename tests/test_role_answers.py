"""Answers of another machine: the lab reports each in one line or in a row, and goes on or ends."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tollbar.catalog import servers
from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers import NotStarted
from tollbar.catalog.servers.places import RoleMachine
from tollbar.core.errors import TollbarError
from tollbar.lab.servers import loading
from tollbar.lab.servers.configuration import Endpoint, Request
from tollbar.lab.servers.nodes import Elsewhere, Node
from tollbar.lab.servers.sandbox import Sandbox

LOST = r"the machine of the role web \(192\.0\.2\.7\) is lost: "
HELLO = {
    "accounts": "192.0.2.7:4000", "host": "web-1", "directory": "/there", "core": 1, "boot_id": "one",
    "fingerprint": {"cpu": "Example CPU"},
}  # fmt: skip
FOUND: dict[str, Any] = {"versions": {}, "programs": {}, "tools": {}, "places": {}}


class Says:
    """Machine that gives the same line for every question."""

    def __init__(self, line: bytes) -> None:
        self._line = line

    def say(self, line: dict[str, Any]) -> None:
        pass

    def beat(self) -> None:
        pass

    def hear(self, limit_s: float) -> bytes:
        return self._line


def node(at: Sandbox, line: bytes) -> Node:
    """Return a machine of the role `web` with this answer."""
    return Node(RoleMachine("web", "192.0.2.7"), at, Says(line), said={"directory": "/there"})  # type: ignore[arg-type]


def done(said: Any) -> bytes:
    return json.dumps({"done": said}).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"5", b"null", b"[]", b"{}", b'"done"', b"[" * 100_000, b"nonsense", b"\xff",
        b'{"not_started":5}', b'{"not_started":["huh","x"]}', b'{"not_started":["ok","x"]}',
        b'{"not_started":[["failed"],"x"]}', b'{"not_started":["failed"]}', b'"not_started"', b'"port_taken"',
    ],
    ids=lambda line: line[:40].decode(errors="replace"),
)  # fmt: skip
def test_what_no_agent_answers_is_a_machine_that_is_lost(at: Sandbox, line: bytes) -> None:
    with pytest.raises((TollbarError, NotStarted), match=LOST):
        node(at, line).ask("find", server="embedded")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        *((what, said) for what in ("hello", "find", "endpoint", "start", "prove") for said in (5, None, [], {}, "x")),
        ("hello", {**HELLO, "core": "x"}),
        ("hello", {**HELLO, "accounts": "192.0.2.7"}),
        ("hello", {**HELLO, "directory": ""}),
        ("hello", {**HELLO, "core": "1"}),
        ("hello", {**HELLO, "more": 1}),
        ("find", {**FOUND, "versions": {"web": 1}}),
        ("find", {**FOUND, "tools": {"web": []}}),
        ("find", {**FOUND, "programs": {"web": None}}),
        ("endpoint", {"address": "192.0.2.7", "port": "80", "ports": {}}),
        ("endpoint", {"address": "192.0.2.7", "port": True, "ports": {}}),
        ("start", {"pid": "1", "said": {}, "files": []}),
        ("start", {"pid": 1, "said": {}, "files": ["x"]}),
        ("start", {"pid": 1, "said": [], "files": []}),
        ("prove", {"proved": {"libssl": 5}, "digests": {}}),
        ("prove", {"proved": {}, "digests": ["/lib/libssl.so.3"]}),
        ("fault", 5), ("complaint", {}), ("log", None), ("end", []), ("stop", False),
    ],
)  # fmt: skip
def test_an_answer_of_another_kind_is_none(at: Sandbox, what: str, said: Any) -> None:
    """The lab uses parts of an answer only if their types are right."""
    with pytest.raises(TollbarError, match=f"{LOST}its agent gave an invalid answer to `{what}`"):
        node(at, done(said)).ask(what)


@pytest.mark.parametrize(("what", "said"), [("hello", HELLO), ("find", FOUND), ("fault", None), ("log", "a\x1bb\n")])
def test_what_an_agent_answers_is_handed_on(at: Sandbox, what: str, said: Any) -> None:
    """A log may hold anything."""
    assert said == node(at, done(said)).ask(what)


def test_no_reason_steers_a_terminal(at: Sandbox) -> None:
    with pytest.raises(NotStarted, match=r"on web \(192\.0\.2\.7\): a�\[2Jb c"):
        node(at, json.dumps({"not_started": ["failed", "a\x1b[2Jb\nc"]}).encode()).ask("find")
    with pytest.raises(TollbarError, match=r"�\[2J$"):
        node(at, json.dumps({"error": "\x1b[2J"}).encode()).ask("find")
    with pytest.raises(TollbarError, match=r"`host`: the control character U\+001B"):
        node(at, done({**HELLO, "host": "\x1b[2J"})).ask("hello")
    there = Elsewhere(node(at, done("\x1b[2J")), "web", Path("/there/web-1"), Endpoint("192.0.2.7", 1), 1, {})
    assert ("on web (192.0.2.7): �[2J", "�[2J") == (there.fault(), there.complaint())


def of_libcrypto(path: Path, *, is_encrypted: bool = False) -> Request:
    """Return a request for the embedded server on this library."""
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", str(path), (), {})
    return Request(servers.here(servers.all_servers()["embedded"]), provider, {}, is_encrypted=is_encrypted)


def test_every_library_is_told_by_its_digest(at: Sandbox, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("libcrypto.so.3", "libssl.so.3")]
    for path in paths:
        path.write_text(path.name)
    digests = {str(path): hashlib.sha256(path.name.encode()).hexdigest() for path in paths}
    proved = {"libcrypto": str(paths[0]), "libssl": str(paths[1]), "cpu": "OPENSSL_ia32cap=0x0"}
    asked = of_libcrypto(paths[0], is_encrypted=True)
    assert proved == node(at, done({"proved": proved, "digests": digests})).prove(asked, 1)
    nothing = done({"proved": {}, "digests": {}})
    assert {} == node(at, nothing).prove(of_libcrypto(paths[0]), 1)
    for line in (
        nothing,
        done({"proved": proved, "digests": {}}),
        done({"proved": proved, "digests": {str(paths[0]): digests[str(paths[0])]}}),
        done({"proved": {"cpu": "x"}, "digests": digests}),
        done({"proved": {**proved, "libcrypto": f"{paths[0]} and /other/libcrypto.so.3"}, "digests": digests}),
    ):
        with pytest.raises(NotStarted, match="the agent sent no digest of"):
            node(at, line).prove(asked, 1)
    with pytest.raises(TollbarError, match=r"`proved\.cpu`: the control character"):
        node(at, done({"proved": {**proved, "cpu": "\x1b[2J"}, "digests": digests})).prove(asked, 1)


@pytest.mark.parametrize("name", ["libcrypto.so.3", "fifo"])
def test_no_path_that_a_machine_names_is_waited_for(at: Sandbox, tmp_path: Path, name: str) -> None:
    """Only a regular file named as a library of TLS is read, because other reads may never end."""
    os.mkfifo(tmp_path / name)
    said = {"proved": {"libcrypto": str(tmp_path / name)}, "digests": {str(tmp_path / name): "00"}}
    with pytest.raises(NotStarted, match=r"differs from the file on this machine|the agent sent no digest of"):
        node(at, done(said)).prove(of_libcrypto(tmp_path / name), 1)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "/no/such/file", "\0"])
def test_what_is_no_ordinary_file_has_no_digest(path: str) -> None:
    """Reading it would not end, or the file does not exist."""
    assert "" == loading.digest(path)
