"""The lab's side of another machine: same machine, same programs, and files taken from it."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tollbar.catalog import servers
from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers.places import RoleMachine
from tollbar.core.errors import TollbarError
from tollbar.lab.measuring import refuse_others
from tollbar.lab.servers import shipping
from tollbar.lab.servers.configuration import Endpoint, Location, Request
from tollbar.lab.servers.nodes import Node
from tollbar.lab.servers.sandbox import Sandbox


class Told:
    """Machine that gives prepared answers to every question."""

    def __init__(self, **answers: Any) -> None:
        self._answers, self._asked = answers, ""

    def say(self, line: dict[str, Any]) -> None:
        (self._asked,) = line

    def hear(self, limit_s: float) -> bytes:
        return json.dumps({"done": self._answers[self._asked]}).encode()


def _node(at: Sandbox, **answers: Any) -> Node:
    said = {"directory": "/there"}
    return Node(RoleMachine("web", "192.0.2.7"), at, Told(**answers), said=said)  # type: ignore[arg-type]


def test_a_server_of_another_version_is_not_started(at: Sandbox) -> None:
    """Rows name the lab's version."""
    found = servers.here(servers.all_servers()["embedded"])
    same = {"versions": dict(found.versions), "programs": {}, "tools": {}, "places": {}}
    assert _node(at, find=same).found(found).versions == found.versions
    other = {**same, "versions": dict.fromkeys(found.versions, "0.0.1")}
    with pytest.raises(
        servers.NotStarted, match=r"on web \(192.0.2.7\): tollbar-engine has version 0.0.1, but must have"
    ):
        _node(at, find=other).found(found)


@pytest.mark.parametrize(("there", "is_same"), [("one", True), ("other", False), (None, False)])
def test_a_library_is_the_file_that_it_is_here(at: Sandbox, tmp_path: Path, there: str | None, is_same: bool) -> None:
    library = tmp_path / "libcrypto.so.3"
    library.write_text("one")
    digest = hashlib.sha256(there.encode()).hexdigest() if there else ""
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", str(library), (), {})
    request = Request(servers.here(servers.all_servers()["embedded"]), provider, {})
    said = {"proved": {"libcrypto": str(library)}, "digests": {str(library): digest}}
    node = _node(at, prove=said)
    if is_same:
        assert said["proved"] == node.prove(request, 1)
    else:
        with pytest.raises(servers.NotStarted, match=r"libcrypto\.so\.3 differs from the file on this machine"):
            node.prove(request, 1)


def test_another_machine_at_a_roles_address_is_refused(tmp_path: Path) -> None:
    """The machine is compared when a run is resumed; facts that were unknown then are no difference."""
    one = {
        "web": {"address": "192.0.2.7", "fingerprint": {"cpu": "one", "kernel": "6.1", "hyperthreads": "not stated"}}
    }
    same = {"web": {**one["web"], "fingerprint": {"cpu": "one", "kernel": "6.1", "hyperthreads": []}}}
    other = {"web": {**one["web"], "fingerprint": {"cpu": "other", "kernel": "6.1", "hyperthreads": []}}}
    refuse_others({}, one, tmp_path)
    refuse_others(one, same, tmp_path)
    with pytest.raises(
        TollbarError, match=r"role web \(192.0.2.7\) is on another machine than when the run began: cpu: one / other"
    ):
        refuse_others(one, other, tmp_path)


def test_files_name_the_other_machines_directory_there(at: Sandbox, tmp_path: Path) -> None:
    (at.directory / "keys").mkdir()
    key = at.directory / "keys" / "one.pem"
    key.write_text(f"key of {at.directory}/keys")
    key.chmod(0o600)
    found = shipping.named([f"certificate {key};", f"root {at.directory}/nothing"], at.directory)
    bundle = shipping.packed(found, at.directory)
    (tmp_path / "there").mkdir()
    for _ in range(2):
        shipping.unpack(bundle, tmp_path / "there", str(at.directory))
    there = tmp_path / "there" / "keys" / "one.pem"
    assert f"key of {tmp_path}/there/keys" == there.read_text()
    assert 0o600 == there.stat().st_mode & 0o777
    link = {"path": "away", "link": str(tmp_path)}
    for hostile in ([{**bundle[0], "path": "../../else"}], [link, {**bundle[0], "path": "away/else"}]):
        with pytest.raises(TollbarError, match="outside the run's directory"):
            shipping.unpack(hostile, tmp_path / "there", "/x")
    assert not (tmp_path / "else").exists()


KEYTAB = {"path": "kdc-1/web1.keytab", "mode": 0o6777, "data": "a2V5"}
GIVES = ("krb5.conf", "*.keytab")


def test_what_comes_back_is_plain_files(tmp_path: Path) -> None:
    work_dir = tmp_path / "kdc-1"
    work_dir.mkdir()
    (work_dir / "krb5.conf").write_text("the lab's")
    configuration = {**KEYTAB, "path": "kdc-1/krb5.conf"}
    shipping.take([KEYTAB, configuration], work_dir, GIVES, "/there")
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
    with pytest.raises(TollbarError, match=r"came back|the answer is not a list of files"):
        shipping.take(bundle, work_dir, GIVES, "/there")
    assert ["kdc-1"] == [path.name for path in tmp_path.rglob("*")]


@pytest.mark.parametrize("address", ["192.0.2.7", "192.0.2.8", "192.0.2.7\n[plugins]"])
def test_the_configuration_that_others_read_is_the_labs(at: Sandbox, address: str) -> None:
    server = servers.services()["mit"]
    kdc = next(one for one in server.components if one.name == "kdc")
    names = [one.name for one in server.components]
    found = servers.Installed(server, dict.fromkeys(names, "1"), dict.fromkeys(names, Path("/x")), {"kdc": {}}, {})
    hostile = {**KEYTAB, "path": "mit-kdc-2-given/krb5.conf", "data": base64.b64encode(b"include /there").decode()}
    answers = {
        "find": {"versions": found.versions, "programs": {"kdc": "/x"}, "tools": {"kdc": {}}, "places": {}},
        "endpoint": {"address": address, "port": 88, "ports": {}},
        "start": {"pid": 1, "said": {}, "files": [hostile]},
    }
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", None, (), {})
    request = Request(found, provider, {"accounts": 10})
    node = _node(at, **answers)
    if address != node.place.address:
        with pytest.raises(TollbarError, match="kdc must listen on an address"):
            node.start(request, kdc, {}, {})
        return
    directory = Location(at.work_dir("d"), Endpoint(address, 1), at.directory)
    started = node.start(request, kdc, {"directory": directory}, {})
    said = (at.given_by(started.work_dir) / "krb5.conf").read_text()
    assert ("kdc = 192.0.2.7:88" in said, "include" in said) == (True, False)
