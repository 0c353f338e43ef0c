"""Parts of a server on other machines: clients that may ask them, counted traffic, shared directories."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from roles_lab import SIGN_IN
from tollbar import study
from tollbar.catalog import servers
from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers.places import RoleMachine
from tollbar.lab import workloads
from tollbar.lab.servers import driver
from tollbar.lab.servers.configuration import LOOPBACK, Request
from tollbar.lab.servers.nodes import reached
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import request as request_workload
from tollbar.study import plan


def test_those_who_may_ask_are_the_roles_and_the_lab_itself(at: Sandbox) -> None:
    """A web server and a database that both stay with the lab meet on loopback."""
    with reached([RoleMachine("client", "192.0.2.1")], at):
        assert (LOOPBACK, "192.0.2.1/32") == at.peers


@pytest.mark.parametrize(("elsewhere", "is_counted"), [({"server"}, True), ({"database"}, False), (set(), False)])
def test_the_network_is_counted_where_the_client_uses_it(elsewhere: set[str], is_counted: bool) -> None:
    """A remote database is asked by the web server, not by the load client."""
    server = servers.all_servers()["embedded"]
    names = {server.frontend.name if name == "server" else name for name in elsewhere}
    cell, started = SimpleNamespace(server=server), SimpleNamespace(nodes=dict.fromkeys(names))
    assert is_counted == request_workload._is_elsewhere(cell, started)  # type: ignore[arg-type]


@pytest.mark.parametrize(("elsewhere", "lacks"), [(("web",), "directory"), (("directory",), None), ((), None)])
def test_what_stands_behind_a_web_server_elsewhere_is_elsewhere(
    at: Sandbox, elsewhere: tuple[str, ...], lacks: str | None
) -> None:
    """With the lab it would listen on loopback."""
    mit, frontend = servers.services()["mit"], servers.all_servers()["embedded"]
    names = [one.name for one in mit.components]
    behind = servers.Installed(mit, dict.fromkeys(names, "1"), dict.fromkeys(names, Path("/x")), {}, {})
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", None, (), {})
    at.nodes.update(dict.fromkeys(elsewhere))
    server = driver.StartedServer(at, Request(servers.here(frontend), provider, {}, services=(behind,)))
    if lacks is None:
        server._refuse_unreachable()
    else:
        with pytest.raises(servers.NotStarted, match=f"cannot reach; add --roles {lacks}=ADDRESS"):
            server._refuse_unreachable()


@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_a_store_elsewhere_is_not_changed_by_a_proof(at: Sandbox, tmp_path: Path, is_elsewhere: bool) -> None:
    """A proof without a store reports that a revoked credential was not tried."""
    text = SIGN_IN.replace("VARIED", 'store = ["sql"]\npassword-hash = ["salted-sha-1"]')
    text = text.replace("httpd", "embedded").replace("libcrypto", "aws-lc")
    (one,) = plan.make([study.read("some", text, where="some.toml")], seed=1).studies
    cell = next(cell for cell in one.cells if cell.choice.name == "basic")
    server = SimpleNamespace(work_dirs={"web": tmp_path}, nodes={"web": None} if is_elsewhere else {})
    exchange = workloads.of(cell).exchange(cell, server, at)  # type: ignore[attr-defined]
    assert (None if is_elsewhere else str(tmp_path / "accounts.sqlite")) == exchange.get("store")


@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_proofs_and_trials_share_a_directory_elsewhere(at: Sandbox, is_elsewhere: bool) -> None:
    """A remote machine has one core for all; with the lab, proofs have none, and trials have the servers' core."""
    mit, frontend = servers.services()["mit"], servers.all_servers()["embedded"]
    names = [one.name for one in mit.components]
    behind = servers.Installed(mit, dict.fromkeys(names, "1"), dict.fromkeys(names, Path("/x")), {}, {})
    provider = Provider("libcrypto", "OpenSSL", "libcrypto", None, (), {})
    at.nodes.update({"directory": None} if is_elsewhere else {})
    server = driver.StartedServer(at, Request(servers.here(frontend), provider, {}, services=(behind,)))
    of_run = [(request, one) for request, one in server._request.parts if one.lifetime == "run"]
    assert of_run
    for request, component in of_run:
        proof, trial = (server._shared_by(request, component, core) for core in (None, 1))
        assert is_elsewhere == (proof == trial)
