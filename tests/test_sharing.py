"""Components of the run: cells that share one, and the death of a shared one."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from component_lab import PATIENCE_S, FakeServer, start, tree_of
from tollbar.catalog import servers
from tollbar.core import proc
from tollbar.core.records import Outcome
from tollbar.lab.servers.driver import NotStarted
from tollbar.lab.servers.sandbox import Sandbox


def shared_server(fake: FakeServer, **more: Any) -> servers.Installed:
    """Return a server with a store of the run, shared by the number of groups, and a frontend of each trial."""
    store = fake.component(name="store", lifetime="run", shared_by=["groups"], **{"on_provider": False, **more})
    return fake.of(store, fake.component())


def test_equal_settings_share_a_component_of_the_run(at: Sandbox, fake: FakeServer) -> None:
    found = shared_server(fake)
    users = [{"groups": 50, "users": 1}, {"groups": 50, "users": 2}]
    with start(at, found, users[0]) as one, start(at, found, users[1], provider="libcrypto:psycopg") as other:
        assert one.components["store"] == other.components["store"]
        assert one.components["web"] != other.components["web"]
    with start(at, found, {"groups": 50}) as later:
        assert one.components["store"] == later.components["store"]
    assert 1 == len(at.running)


def test_another_value_has_a_component_of_its_own(at: Sandbox, fake: FakeServer) -> None:
    found = shared_server(fake)
    with start(at, found, {"groups": 50}) as one, start(at, found, {"groups": 100}) as other:
        assert one.components["store"] != other.components["store"]
        assert (None, None) == (one.fault(), other.fault())
    assert 2 == len(at.running)


def test_a_component_on_the_provider_is_another_with_another(at: Sandbox, fake: FakeServer) -> None:
    found = shared_server(fake, on_provider=True)
    with start(at, found) as one, start(at, found, provider="libcrypto:psycopg") as other:
        assert one.components["store"] != other.components["store"]


def test_a_component_of_the_run_is_measured_on_the_servers_core(at: Sandbox, fake: FakeServer) -> None:
    found, core = shared_server(fake), max(os.sched_getaffinity(0))
    with start(at, found) as proof, start(at, found, core=core) as trial, start(at, found, core=core) as other:
        assert proof.components["store"] != trial.components["store"] == other.components["store"]
        assert {(core,)} == {tuple(os.sched_getaffinity(pid)) for pid in tree_of(trial)}


def test_threads_that_want_the_same_component_start_it_once(at: Sandbox, fake: FakeServer) -> None:
    found = shared_server(fake)
    with ThreadPoolExecutor(4) as pool:
        servers = list(pool.map(lambda users: start(at, found, {"users": users}), range(4)))
    assert 1 == len({server.components["store"] for server in servers})
    assert 5 == len(at.running)
    for server in servers:
        server.stop()


@pytest.mark.parametrize("victim", ["server", "guard"])
def test_a_shared_component_that_dies_fails_who_uses_it(at: Sandbox, fake: FakeServer, victim: str) -> None:
    found = shared_server(fake)
    with start(at, found) as one, start(at, found) as other:
        pids = proc.tree(one.components["store"])
        os.kill(pids[-1 if victim == "server" else 0], signal.SIGKILL)
        words = [server.fault(PATIENCE_S) or "" for server in (one, other)]
        assert [True, True] == ["fake-component was ended by SIGKILL" in said for said in words]
        with start(at, found) as fresh:
            assert one.components["store"] != fresh.components["store"]
            assert fresh.fault() is None
            assert [] == [pid for pid in pids if proc.start_time(pid)]
            assert words == [one.fault(), other.fault()]


def test_what_needs_a_component_that_died_is_another_one_too(at: Sandbox, fake: FakeServer) -> None:
    """The configuration has the dead component's endpoint."""
    base = fake.component(name="base", lifetime="run")
    found = fake.of(base, fake.component(name="store", lifetime="run"), fake.component())
    with start(at, found) as one:
        os.kill(proc.tree(one.components["base"])[-1], signal.SIGKILL)
        assert one.fault(PATIENCE_S)
    with start(at, found) as fresh:
        assert one.components["store"] != fresh.components["store"]


def test_servers_share_a_service(at: Sandbox, fake: FakeServer, service: FakeServer, tmp_path: Path) -> None:
    other = FakeServer(tmp_path, name="other")
    store = service.of(service.component(name="store", lifetime="run", on_provider=False))
    founds = [one.of(one.component()) for one in (fake, other)]
    with start(at, founds[0], services=[store]) as one, start(at, founds[1], services=[store]) as two:
        assert one.components["store"] == two.components["store"]
        assert one.components["web"] != two.components["web"]
        os.kill(proc.tree(one.components["store"])[-1], signal.SIGKILL)
        assert all(server.fault(PATIENCE_S) for server in (one, two))
        with start(at, founds[0], services=[store]) as fresh:
            assert fresh.components["store"] in [running.pid for running in at.running]
            assert one.components["store"] != fresh.components["store"]
            assert one.work_dirs["store"] != fresh.work_dirs["store"]


def test_a_component_of_a_trial_that_cannot_start_is_tried_again(at: Sandbox, fake: FakeServer) -> None:
    found = fake.of(fake.component("tcp", "never"))
    for _ in range(2):
        with pytest.raises(NotStarted, match="was not ready within"):
            start(at, found)
        assert [] == at.running
    # The number of directories made: one for each try, and this one.
    assert at.work_dir("fake-web").name.endswith("-3")


def test_a_component_of_the_run_that_cannot_start_is_tried_once(at: Sandbox, fake: FakeServer) -> None:
    found = fake.of(
        fake.component("tcp", "never", name="store", lifetime="run", shared_by=["groups"]), fake.component()
    )
    for groups, started in ((1, 1), (1, 1), (2, 2), (1, 2)):
        with pytest.raises(NotStarted, match="was not ready within") as caught:
            start(at, found, {"groups": groups})
        assert Outcome.TIMED_OUT == caught.value.outcome
        assert started == len([*at.directory.glob("fake-store-*")])
        assert [] == at.running


def test_threads_that_want_a_component_that_cannot_start_try_it_once(at: Sandbox, fake: FakeServer) -> None:
    found = fake.of(fake.component("tcp", "never", name="store", lifetime="run"), fake.component())

    def reason(_: int) -> str:
        with pytest.raises(NotStarted) as caught:
            start(at, found)
        return caught.value.reason

    with ThreadPoolExecutor(4) as pool:
        assert 1 == len(set(pool.map(reason, range(4))))
    assert 1 == len([*at.directory.glob("fake-store-*")])


READS = {
    "another setting": ("{{ settings.users }}", "users"),
    "a word of the family": ("{{ turns }}", "turns"),
    "a part of such a word": ("{{ tls.protocol }}", "tls"),
}


@pytest.mark.parametrize("place", ["server.toml", "store.conf.jinja"])
@pytest.mark.parametrize("what", READS)
def test_a_component_of_the_run_reads_what_makes_it_another(
    at: Sandbox, fake: FakeServer, what: str, place: str
) -> None:
    """Another value would only be right for the first cell: the row names file, component and key."""
    text, key = READS[what]
    (fake.folder / "store.conf.jinja").write_text(text)
    reads = {"environment": {"U": text}} if place == "server.toml" else {"render": ["store.conf"]}
    store = fake.component(name="store", lifetime="run", shared_by=["groups"], **reads)
    words = {"turns": 3, "tls": None}
    said = rf"^failed: the server fake: {place}: the component store: .*'{key}'.*`shared-by`"
    with pytest.raises(NotStarted, match=said) as caught:
        start(at, fake.of(store, fake.component()), {"groups": 1, "users": 1}, words=words)
    assert Outcome.FAILED == caught.value.outcome
    assert "\n" not in caught.value.reason
    assert [] == [*at.directory.glob("fake-*")]


def test_a_word_of_the_family_may_make_a_component_another(at: Sandbox, fake: FakeServer) -> None:
    store = fake.component(name="store", lifetime="run", shared_by=["turns"], environment={"T": "{{ turns }}"})
    found = fake.of(store, fake.component())
    roots = []
    for turns in ([3], [3], [4]):
        with start(at, found, words={"turns": turns}) as server:
            roots.append(server.components["store"])
    assert roots[0] == roots[1] != roots[2]
