"""Components: each way of being ready, stopped and ended, with every fault of each."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bench.ground import mentioning, program

import component_lab
from component_lab import (
    KINDS,
    PATIENCE_S,
    FakeServer,
    kept,
    python_of_others,
    start,
    tree_of,
    wait_until,
    work_dir_of,
)
from tollbar.core import proc
from tollbar.core.records import Outcome
from tollbar.lab.servers import driver, guarded
from tollbar.lab.servers.driver import NotStarted, rendered
from tollbar.lab.servers.sandbox import Sandbox, folder_for_all


@pytest.mark.parametrize("by", KINDS)
def test_a_component_is_ready_in_its_own_way(at: Sandbox, fake: FakeServer, by: str) -> None:
    before = set(at.directory.iterdir())
    with start(at, fake.of(fake.component(by))) as server:
        pids = tree_of(server)
        assert server.fault() is None
        assert (work_dir_of(at, "web") / "up").exists()
    assert [] == [pid for pid in pids if proc.start_time(pid)]
    assert before == set(at.directory.iterdir())


@pytest.mark.parametrize("by", KINDS)
def test_a_component_that_is_never_ready_times_out(at: Sandbox, fake: FakeServer, by: str) -> None:
    with pytest.raises(NotStarted, match=r"fake-component was not ready within 0\.3 s") as caught:
        start(at, fake.of(fake.component(by, "never")))
    assert Outcome.TIMED_OUT == caught.value.outcome
    assert [] == at.running
    assert set() == mentioning(str(at.directory / "fake"))


@pytest.mark.parametrize("by", KINDS)
def test_a_component_that_dies_before_it_is_ready_is_a_row(at: Sandbox, fake: FakeServer, by: str) -> None:
    with pytest.raises(NotStarted) as caught:
        start(at, fake.of(fake.component(by, "dies")))
    assert (Outcome.FAILED, "fake-component ended with status 1: out of luck") == (
        caught.value.outcome,
        caught.value.reason,
    )
    assert [] == at.running


def test_a_line_of_another_kind_is_the_reason_whether_or_not_its_component_ends(at: Sandbox, fake: FakeServer) -> None:
    with pytest.raises(NotStarted) as caught:
        start(at, fake.of(fake.component("line", "mumbles")))
    assert Outcome.FAILED == caught.value.outcome
    assert "fake-component printed 'good evening' instead of the address that it listens on" == caught.value.reason
    assert [] == at.running


def test_a_command_is_run_until_it_succeeds(at: Sandbox, fake: FakeServer) -> None:
    ready = {"by": "command", "command": ["{{ program }}", "count", str(fake.count)]}
    with start(at, fake.of(fake.component("command", ready=ready))):
        assert 3 == len(fake.count.read_text().splitlines())


def test_a_command_that_never_succeeds_is_quoted(at: Sandbox, fake: FakeServer) -> None:
    ready = {"by": "command", "command": ["sh", "-c", "echo no answer; exit 1"], "limit": "0.3 s"}
    with pytest.raises(NotStarted, match=r"not ready within 0\.3 s: no answer") as caught:
        start(at, fake.of(fake.component("command", ready=ready)))
    assert Outcome.TIMED_OUT == caught.value.outcome


@pytest.mark.parametrize("by", ["http", "tcp"])
def test_an_address_of_its_own_has_a_fixed_port(at: Sandbox, fake: FakeServer, by: str) -> None:
    found = fake.of(fake.component(by, address="own", port=24389))
    with start(at, found) as one, start(at, found) as other:
        addresses = [server.address.split(":") for server in (one, other)]
        assert ["24389", "24389"] == [port for _, port in addresses]
        assert 3 == len({"127.0.0.1", *(address for address, _ in addresses)})
        assert {"127"} == {address.split(".")[0] for address, _ in addresses}


def test_components_know_where_the_others_listen(at: Sandbox, fake: FakeServer) -> None:
    store = fake.component(name="store", address="own", port=24389)
    web = fake.component(environment={"STORE": "{{ addresses.store }}:{{ ports.store }}"})
    with start(at, fake.of(store, web)) as server:
        names = Path(f"/proc/{proc.tree(server.components['web'])[-1]}/environ").read_bytes().split(b"\0")
        (address,) = [name.removeprefix(b"STORE=").decode() for name in names if name.startswith(b"STORE=")]
        host, port = address.split(":")
        assert proc.listens(proc.tree(server.components["store"]), host, int(port))
        assert "fake-component 1.2" == server.receipt["component store"]


def test_a_service_stands_behind_a_server(at: Sandbox, fake: FakeServer, service: FakeServer) -> None:
    """The service starts first, from its own folder; the server's configuration gets its endpoint and its folder."""
    (fake.folder / "conf.jinja").write_text("{{ directories.store }} {{ ports.store }} {{ ports.more }}")
    (service.folder / "conf.jinja").write_text("a store at {{ port }}")
    (service.folder / "as-it-is").write_text("{{ port }}")
    store = service.of(
        service.component(name="store", ports=["more"], render=["conf", "as-it-is"], prepare=service.preparation())
    )
    asked = component_lab.request(fake.of(fake.component(render=["conf"])), services=[store])
    assert "/store PORT PORT" in rendered(asked)
    with driver.start(at, asked) as server:
        assert ["store", "web"] == [*server.components] == [*server.work_dirs]
        store_dir, web_dir = server.work_dirs.values()
        folder, port, more = (web_dir / "conf").read_text().split()
        assert str(store_dir) == folder
        assert proc.listens(proc.tree(server.components["store"]), "127.0.0.1", int(port))
        assert more not in (port, server.address.rpartition(":")[2])
        assert [f"a store at {port}", "{{ port }}", "whole"] == [
            (store_dir / name).read_text() for name in ("conf", "as-it-is", "state")
        ]
        assert ["fake 1.2", "fake-component 1.2"] == [server.receipt[name] for name in ("server", "component store")]
        assert f"a store at {port}" in server.configuration
        assert server.address == server.configuration.rpartition("serve tcp none ")[2].split("\n")[0].replace(" ", ":")
    assert [] == at.running


def test_workers_write_in_folders_of_their_own(at: Sandbox, fake: FakeServer) -> None:
    with start(at, found := fake.of(fake.component(writable=["kept"], has_sockets=True))) as server:
        about = (server.work_dirs["web"] / "kept").stat()
    account = at.account_of(f"{found.server.name}/web")
    owner = account.number if account else os.geteuid()
    assert (owner, 0o750) == (about.st_uid, stat.S_IMODE(about.st_mode))


def test_a_server_uses_a_template_of_another(fake: FakeServer, service: FakeServer) -> None:
    (service.folder / "part.jinja").write_text("a part for {{ address }}")
    (fake.folder / "conf.jinja").write_text(f"{{% include '{service.folder.name}/part.jinja' %}}")
    assert "a part for 127.0.0.1" in rendered(component_lab.request(fake.of(fake.component(render=["conf"]))))


def test_components_of_the_run_are_started_first(at: Sandbox, fake: FakeServer, service: FakeServer) -> None:
    proxy = service.of(service.component(name="proxy"))
    store = fake.component(name="store", lifetime="run", environment={"SEES": "{{ ports | join }}"})
    with start(at, fake.of(store, fake.component()), services=[proxy]) as server:
        assert ["store", "proxy", "web"] == [*server.components]
    assert 1 == len(at.running)


def test_components_that_are_used_together_have_names_of_their_own(fake: FakeServer, service: FakeServer) -> None:
    for clash in (service.component(), service.component(name="store", ports=["web"])):
        with pytest.raises(
            NotStarted, match=r"fake-service and fake cannot be used together: .* have the name `web`"
        ) as caught:
            component_lab.request(fake.of(fake.component()), services=[service.of(clash)])
        assert Outcome.FAILED == caught.value.outcome


@pytest.mark.parametrize("signal_name", ["TERM", "INT", "QUIT"])
def test_a_component_is_stopped_by_its_own_signal(at: Sandbox, fake: FakeServer, signal_name: str) -> None:
    ended_by = fake.notes / "ended-by"
    with start(at, fake.of(fake.component(stop=signal_name, environment={"ENDED_BY": str(ended_by)}))):
        assert not ended_by.exists()
    assert f"SIG{signal_name}" == ended_by.read_text()


def test_a_component_that_is_not_ready_is_given_little_time_to_stop(
    at: Sandbox, fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    wait = guarded.wait
    monkeypatch.setattr(guarded, "wait", lambda *given: waited.append(given[1]) or wait(*given))
    with pytest.raises(NotStarted):
        start(at, fake.of(fake.component(fault="never", grace="9 s")))
    assert guarded.TERM_GRACE_S == waited[0]
    waited.clear()
    with start(at, fake.of(fake.component(grace="9 s"))):
        pass
    assert 9.0 == waited[0]


def test_a_component_that_does_not_stop_is_killed(at: Sandbox, fake: FakeServer) -> None:
    fake.program.write_text(
        "#!/bin/sh\n[ $1 = -v ] && echo fake/1.2 && exit\ntrap '' TERM\ntouch up\nwhile :; do sleep 1; done"
    )
    with start(at, fake.of(fake.component("command", grace="0.1 s"))) as server:
        pids = tree_of(server)
    assert [] == [pid for pid in pids if proc.start_time(pid)]


# Stages at which a lab is ended, and the fault that keeps a component in each.
FAULTS = {"preparing": "none", "starting": "never", "ready": "none", "stopping": "stubborn"}
# A limit that the lab does not reach.
LONG = {"by": "http", "limit": "60 s"}


@pytest.mark.share(2)
@pytest.mark.parametrize("moment", FAULTS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_lab_that_ends_at_any_moment(
    tmp_path: Path, fake: FakeServer, how: signal.Signals, moment: str
) -> None:
    preparation = fake.preparation("hangs" if moment == "preparing" else "none")
    fake.write(fake.component("http", FAULTS[moment], prepare=preparation, ready=LONG, grace="10 s"))
    lab = subprocess.Popen(
        [sys.executable, component_lab.__file__, str(fake.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert lab.stdin is not None
    assert lab.stdout is not None
    directory = Path(lab.stdout.readline().decode().strip())
    wait_until(
        {
            "preparing": lambda: any(directory.glob("*/state")),
            "starting": lambda: any(directory.glob("*/started")),
            "ready": lambda: any(directory.glob("*/up")),
            "stopping": lambda: any(directory.glob("*/up")),
        }[moment]
    )
    if moment == "stopping":
        assert b"ready\n" == lab.stdout.readline()
        lab.stdin.close()
        wait_until(lambda: any(directory.glob("*/ended-by")))
    lab.send_signal(how)
    lab.wait(PATIENCE_S)
    for pipe in (lab.stdin, lab.stdout):
        pipe.close()
    wait_until(lambda: not directory.exists() and not mentioning(str(directory)))
    assert ([] if moment == "preparing" else [".tar"]) == kept(fake)
    with Sandbox() as at, start(at, fake.of(fake.component(prepare=fake.preparation()))):
        assert "whole" == (work_dir_of(at, "web") / "state").read_text()


def test_a_component_runs_without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preparation and start use the unprivileged account, which may bind a low port.

    Without root everything runs under the lab's account, which cannot bind low ports.
    """
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory(dir=folder_for_all()) as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        fake = FakeServer(folder, python_of_others())
        low = {"port": 389} if is_root else {}
        component = fake.component(address="own", prepare=fake.preparation(), ready={"by": "tcp"}, **low)
        with Sandbox() as at:
            account = at.account_of(f"{fake.folder.name}/web")
            owner = account.number if account else os.geteuid()
            assert is_root == (owner != os.geteuid())
            for _ in range(2):
                with start(at, fake.of(component)) as server:
                    server_pid = proc.tree(server.components["web"])[-1]
                    state = work_dir_of(at, "web") / "state"
                    assert [owner] * 2 == [Path(f"/proc/{server_pid}").stat().st_uid, state.stat().st_uid]
                    assert is_root == server.address.endswith(":389"), program(server_pid)
        assert 1 == fake.times_prepared
