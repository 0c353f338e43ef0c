"""Servers with several threads: their configuration, the cores of server and load, and the chunks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import here
from server_lab import PLAINTEXT
from test_client_core import cores_of
from test_scaling import judged
from tollbar import study as studies
from tollbar.catalog import servers
from tollbar.catalog.libraries import resolve
from tollbar.catalog.servers import Installed, NotStarted, Server
from tollbar.core import machine, proc
from tollbar.core.records import ChunkRecord, Observed, Outcome
from tollbar.core.records.contract import ThreadRecord
from tollbar.core.runner import Session
from tollbar.lab import workloads
from tollbar.lab.servers.configuration import Request, rendered
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Given
from tollbar.lab.workloads.request_work import RequestWork
from tollbar.report.sections.scaling import scaling_listing
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

STUDY = """
question  = "What does a connection cost with several threads?"
family    = "tls"
servers      = ["{server}"]
providers = ["libcrypto"]
choices   = ["tls-1.3"]
baseline  = {{ threads = {threads[0]} }}
vary      = {{ op = ["{op}"], threads = {threads} }}

[load]
users   = [3]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ status = 200, bytes = "{{bytes}}" }}
{more}
"""
WITH_WORKERS = ["nginx", "httpd", "embedded"]
MOST = min(2, len(machine.CORES))


def cells(server: str, threads: Sequence[int], op: str = "connect", more: str = "") -> tuple[Cell, ...]:
    text = STUDY.format(server=server, threads=[*threads], op=op, more=more)
    (one,) = plan.make([studies.read("some", text, where="some.toml")], seed=1).studies
    return one.cells


def told(server: str, cores: tuple[int, ...]) -> str:
    """Return the configuration of the server's program, which need not be installed."""
    found = _installed(servers.all_servers()[server])
    return rendered(Request(found, resolve(["libcrypto"])[0], PLAINTEXT, cores=cores))


def _installed(server: Server) -> Installed:
    programs = {component.name: Path("server") for component in server.components}
    return Installed(
        server, dict.fromkeys(programs, "1"), programs, {name: {} for name in programs}, {"modules": "modules"}
    )


@pytest.mark.parametrize(
    ("server", "cores", "words"),
    [
        ("nginx", (), ["worker_processes 1;"]),
        ("nginx", (3,), ["worker_processes 1;"]),
        ("nginx", (3, 0, 1), ["worker_processes 3;", "worker_cpu_affinity 1000 1 10 ;"]),
        ("httpd", (), ["ThreadLimit 64", "ThreadsPerChild 64", "MaxRequestWorkers 64", "MaxSpareThreads 65"]),
        ("httpd", (3,), ["ServerLimit 1", "ThreadsPerChild 64"]),
        ("httpd", (3, 0), ["ServerLimit 1", "ThreadLimit 128", "ThreadsPerChild 128", "MaxSpareThreads 129"]),
        ("embedded", (), ['"cores": []']),
        ("embedded", (3, 0), ['"cores": [3, 0]']),
    ],
)
def test_a_server_is_told_of_its_cores(server: str, cores: tuple[int, ...], words: list[str]) -> None:
    """A single core is configured as without the setting: the same set-up is the baseline."""
    said = told(server, cores)
    assert [] == [word for word in words if f"{word}\n" not in said and f"{word}}}" not in said]
    assert ("worker_cpu_affinity" in said) is (server == "nginx" and len(cores) > 1)


@pytest.mark.parametrize("op", ["connect", "request"])
@pytest.mark.parametrize("server", WITH_WORKERS)
def test_server_and_load_have_a_part_on_each_core(server: str, op: str) -> None:
    here(server)
    core = max(machine.CORES)
    for cell in cells(server, [*range(1, MOST + 1)], op):
        with Sandbox() as sandbox:
            assert Outcome.OK is workloads.of(cell).prove(cell, 7, Given(sandbox)).outcome
            with (
                workloads.of(cell).up(cell, 7, sandbox, core, begins_on=min(machine.CORES)) as work,
                Session(work.command, work.task, core=work.core, account=work.account) as session,
            ):
                session.ready(60.0)
                assert (core, cell.threads, None, False) == (
                    work.cores[0],
                    len(set(work.cores)),
                    work.begins_on,
                    work.settles,
                )
                (root,) = work.components.values()
                assert {*work.cores} == cores_of(root) == cores_of(session.pid)
                if server == "nginx":
                    workers = proc.tree(root)[-cell.threads :]
                    assert [{one} for one in work.cores] == [cores_of(worker) for worker in workers]
                for seconds, operations in ((0.005, 1), (0.0, 40)):
                    chunk = session.advance(seconds, max(operations, work.fewest), 30.0)
                    assert work.contradiction(chunk) is None
                    assert cell.threads == len(chunk.observed.threads)
                    assert all(one.operations >= 6 for one in chunk.observed.threads), "each user asks twice"
                assert Outcome.OK is session.finish().outcome


def test_each_thread_has_as_many_users_as_one() -> None:
    (one, many) = cells("embedded", [1, MOST]) if MOST > 1 else cells("embedded", [1]) * 2
    for cell in (one, many):
        task = workloads.of(cell).shown(cell, 7).task
        assert 3 * cell.threads == task["load"]["users"]


def test_elapsed_time_is_without_the_load_client_s() -> None:
    work = RequestWork((), {}, 1, threads=2, server=None)  # type: ignore[arg-type]
    threads = tuple(ThreadRecord(operations=5, cpu_ns=cpu_ns, wall_ns=5_000_000) for cpu_ns in (2_000_000, 1_500_000))
    chunk = ChunkRecord(operations=10, cpu_ns=3_500_000, wall_ns=5_000_000, observed=Observed(threads=threads))
    assert (6_500_000, 0) == (work.wall_ns(chunk), work.contended_ns(chunk))
    assert 5_000_000 == work.wall_ns(chunk.model_copy(update={"observed": Observed()}))


def test_what_a_server_cannot_have_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def reason(cell: Cell) -> str:
        proven = workloads.of(cell).prove(cell, 7, Given(None))
        assert Outcome.UNSUPPORTED is proven.outcome
        return proven.reason or ""

    monkeypatch.setattr(machine, "CORES", frozenset({0}))
    one, two = cells("embedded", [1, 2])
    assert "2 threads need a core each; 1 core can be used here (0)" == reason(two)
    assert isinstance(one.server, Server)
    shutil.copytree(one.server.folder, tmp_path / "embedded")
    text = (tmp_path / "embedded/server.toml").read_text()
    (tmp_path / "embedded/server.toml").write_text(text.replace('workers = "threads"', ""))
    alone = replace(one, server=servers.read(tmp_path / "embedded"))
    assert "the server embedded works on one core" == reason(alone)
    (apart,) = cells("embedded", [1], more='client = ["apart"]')
    assert "cannot be `apart`" in reason(apart)


def test_what_stands_behind_a_server_is_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = cells("embedded", [1])
    workload = workloads.of(cell)
    service = replace(_installed(servers.services()["postgresql-accounts"]))
    asked = Request(_installed(servers.all_servers()["embedded"]), cell.provider, PLAINTEXT, services=(service,))
    monkeypatch.setattr(workload, "request", lambda *_: asked)
    with pytest.raises(NotStarted, match="postgresql-accounts, which embedded calls, runs on one core"):  # noqa: SIM117
        with Sandbox() as sandbox, workload.up(cell, 7, sandbox, None):
            pass


def test_where_a_server_s_threads_are_is_said() -> None:
    served = judged(1.3, 1.3)
    listing = scaling_listing(served, {"cores": 2})
    assert listing is not None
    assert not any("load client" in note for note in listing.notes)
    (one,) = served.scaling
    (about,) = [replace(one, row=replace(one.row, coordinates={**one.row.coordinates, "server": "nginx"}))]
    listing = scaling_listing(replace(served, scaling=(about,)), {"cores": 2})
    assert listing is not None
    assert any("shares its core with a part of the load client" in note for note in listing.notes)
