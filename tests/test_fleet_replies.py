"""Broken or hostile replies of a node: one line, the end of that node, and the other nodes go on."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import tollbar
from fleet_lab import RUN, Cluster, Part, at_once, begun, ended
from test_fleet_home import sent
from tollbar import cluster
from tollbar.cluster.cluster import ClusterNode
from tollbar.cluster.fleet_file import State
from tollbar.cluster.home import Home, _with_looks
from tollbar.cluster.node import BLOCK_BYTES, KEPT_LOG_BYTES, NodeAgent
from tollbar.core.errors import TollbarError
from tollbar.results.directory import MOST_BYTES, MOST_FILES, MOST_TEXTS

PROGRESS: Mapping[str, Any] = {"run": RUN, "status": None, "done": 1, "planned": 6, "said": ""}
# Limits of address space and of CPU time.
MOST_MORE, MOST_CPU_S = 300 << 20, 30
LONG_NAME = f"2026-11-24-101500-{'é' * 200}"


def _deep() -> list[Any]:
    """Return a value nested deeper than Python can print."""
    inner: list[Any] = []
    for _ in range(100_000):
        inner = [inner]
    return inner


def progress(**odd: Any) -> Mapping[str, Any]:
    return {"progress": {**PROGRESS, **odd}}


def changed(**odd: Any) -> Mapping[str, Any]:
    return {"progress": PROGRESS, "changed": {**sent(b"x"), **odd}}


def results(**odd: Any) -> Mapping[str, Any]:
    return changed(results={**sent(b"x")["results"], **odd})


ODD: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "a version that is deep": lambda: {"version": _deep()},
    "a version of bytes": lambda: {"version": b"\xff"},
    "a number of trials that is a word": lambda: {"trials": "many"},
    "a number of trials that is true": lambda: {"trials": True},
    "progress that is nothing": lambda: {"progress": None},
    "progress that is deep": lambda: {"progress": _deep()},
    "progress that is words": lambda: {"progress": ["run", "status", "done", "planned", "said"]},
    "last words that are deep": lambda: progress(said=_deep()),
    "last words without end": lambda: progress(said="x" * (KEPT_LOG_BYTES + 1)),
    "last words of bytes": lambda: progress(said=b"x"),
    "batches below nothing": lambda: progress(done=-1),
    "batches without number": lambda: progress(done=10**5000),
    "batches that are true": lambda: progress(done=True),
    "a status that is a word": lambda: progress(status="0"),
    "a status without number": lambda: progress(status=10**5000),
    "a run that is a list": lambda: progress(run=[RUN]),
    "a run elsewhere": lambda: progress(run=f"{RUN}/../../x"),
    "a run with a longer name than any file": lambda: progress(run=LONG_NAME),
    "a run with an escape": lambda: progress(run=f"{RUN}\x1b[2J"),
    "changes that are nothing": lambda: {"progress": PROGRESS, "changed": None},
    "changes that are deep": lambda: {"progress": PROGRESS, "changed": _deep()},
    "files that are a list": lambda: changed(files=[["run.json", b"{}"]]),
    "a file whose name is a number": lambda: changed(files={5: b""}),
    "a file that is text": lambda: changed(files={"run.json": "{}"}),
    "a file that can be changed": lambda: changed(files={"run.json": bytearray(b"{}")}),
    "a file with a longer name than any": lambda: changed(files={f"studies/{'é' * 200}.toml": b""}),
    "a file above": lambda: changed(files={"families/../family.toml": b""}),
    "a link's name": lambda: changed(files={"results.sqlite-wal": b""}),
    "more texts than any run has": lambda: changed(files={f"studies/{one}.toml": b"x" * (1 << 20) for one in range(5)}),
    "results that are a list": lambda: changed(results=[]),
    "a length that is true": lambda: results(bytes=True),
    "a length beyond any": lambda: results(bytes=MOST_BYTES["results.sqlite"] + 1),
    "blocks that are a list": lambda: results(blocks=[b"x"]),
    "a block with a name": lambda: results(blocks={"0": b"x"}),
    "a block that is text": lambda: results(blocks={0: "x"}),
    "a block that is numbers": lambda: results(blocks={0: [120]}),
    "a block that is longer": lambda: results(bytes=2 * BLOCK_BYTES, blocks={0: b"x" * 2 * BLOCK_BYTES}),
    "a block that is shorter": lambda: results(bytes=BLOCK_BYTES + 1, blocks={0: b"x", 1: b"x" * BLOCK_BYTES}),
    "a digest that is none": lambda: results(digest=None),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("what", ODD)
def test_an_odd_answer_ends_one_node_s_part(place: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    fleets = begun(place)
    answers = {"begin": None, "forget": None, "stop": None, "version": tollbar.__version__, "trials": -1, **ODD[what]()}
    made = {"one": lambda name: Part(NodeAgent(name), answers=answers), "other": lambda name: Part(NodeAgent(name))}
    fleets.drive(Cluster(made), *at_once(2))
    states = {name: state for name, (state, _) in ended(fleets).items()}
    assert {"one": State.REFUSED, "other": State.DONE} == states
    messages = capsys.readouterr().err
    assert "\x1b" not in messages
    assert 1 == sum(line.startswith("  one ") for line in messages.splitlines())
    assert [] == [path for path in (fleets.directory / "one").rglob("*") if path.is_file()]


@pytest.mark.parametrize("what", ["changes that are deep", "a file that is text", "results that are a list"])
def test_an_interrupt_ends_a_fleet_whatever_a_node_answers(
    place: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleets = begun(place)
    still = {"begin": None, "stop": None, "version": tollbar.__version__, "trials": -1,
             "progress": {**PROGRESS, "run": None, "done": 0}, "changed": {}}  # fmt: skip
    answers = {**still, "changed": ODD[what]()["changed"]}
    monkeypatch.setattr(cluster.driving, "BROUGHT_S", 1e9)
    monkeypatch.setattr("tollbar.cluster.driving.time.sleep", _interrupt)
    monkeypatch.setattr("tollbar.cluster.driving.time.monotonic", lambda: 0.0)
    made = {
        "one": lambda name: Part(NodeAgent(name), answers=answers),
        "other": lambda name: Part(NodeAgent(name), answers=still),
    }
    with pytest.raises(KeyboardInterrupt):
        fleets.drive(Cluster(made), *at_once(2))
    assert {State.INTERRUPTED} == {state for state, _ in ended(fleets).values()}


def _interrupt(_: float) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["a b", "é", "..", "/etc", "x\x1b[2J", "fleet.json", "fleet.html", "x" * 200, ""])
def test_a_node_with_no_name_is_left_out(place: Path, name: str) -> None:
    fleets = begun(place)
    fleets._join([ClusterNode("a", name, "10.0.0.1", {}), ClusterNode("b", "other", "10.0.0.2", {})])
    assert ["other"] == [one.member.name for one in fleets.nodes]
    assert ["other"] == [one.name for one in fleets.fleet.nodes]


def test_a_node_called_by_the_address_of_another_ends_no_other_part(place: Path) -> None:
    """Members that share a name are called by their addresses."""
    fleets = begun(place)
    nodes = [("10.0.0.2", "10.0.0.1"), ("one", "10.0.0.2"), ("one", "10.0.0.3")]
    found = [ClusterNode(str(number), name, address, {}) for number, (name, address) in enumerate(nodes)]
    fleets._join(found)
    again = cluster.take_up(fleets.directory)
    again._join(found)
    for part in (fleets, again):
        assert ["10.0.0.1", "10.0.0.2", "10.0.0.3"] == [one.member.name for one in part.nodes]


def test_a_fleet_of_nodes_without_names_does_not_begin(place: Path) -> None:
    fleets = begun(place)
    with pytest.raises(TollbarError, match="no node has a valid host name: é"):
        fleets._join([ClusterNode("a", "é", "10.0.0.1", {})])
    assert [] == fleets.fleet.nodes


def test_a_run_grows_to_the_files_of_a_run(tmp_path: Path) -> None:
    home = Home(tmp_path / "node")
    texts = {f"studies/{number}.toml": b"" for number in range(MOST_FILES - 1)}
    home.take(sent(b"x", files=texts))
    home.take(sent(b"x", files={"studies/0.toml": b"again"}))
    home.take(sent(b"x", files={"studies/another.toml": b""}))
    with pytest.raises(TollbarError, match="limit of a run is 2000"):
        home.take(sent(b"x", files={"studies/one more.toml": b""}))
    half = b"x" * (MOST_TEXTS // 2)
    home.take(sent(b"x", files={"studies/0.toml": half}))
    home.take(sent(b"x", files={"studies/1.toml": half}))
    with pytest.raises(TollbarError, match="bytes of studies"):
        home.take(sent(b"x", files={"studies/2.toml": half, "studies/3.toml": half}))
    assert b"" == (tmp_path / "node" / RUN / "studies/2.toml").read_bytes()


def test_looks_are_merged_however_many_they_are(tmp_path: Path) -> None:
    """Comparing each look with each took minutes at the largest number that a file may have."""
    path = tmp_path / "run.json"
    path.write_bytes(_looks(range(0, 16_000, 2)))
    merged = json.loads(_with_looks(path, _looks(range(1, 16_000, 2))))["studies"]["a"]["interim_looks"]
    assert [*range(16_000)] == [look["trials"] for look in merged]
    path.write_bytes(_looks(range(0, 80_000, 2)))
    with pytest.raises(TollbarError, match="too large with the looks"):
        _with_looks(path, _looks(range(1, 80_000, 2)))


def _looks(numbers: Sequence[int]) -> bytes:
    noted = [{"blocks": 1, "trials": number} for number in numbers]
    return json.dumps({"studies": {"a": {"interim_looks": noted}}}).encode()


FILES: Mapping[str, Callable[[int], str]] = {
    "nodes that are none": lambda size: '{"nodes": [' + "{}," * (size // 3) + "{}]}",
    "options that are lists": lambda size: '{"options": [' + "[]," * (size // 3) + "[]]}",
    "unknown keys": lambda size: "{" + ",".join(f'"{number:07}":0' for number in range(size // 12)) + "}",
    "labels": lambda size: '{"labels": {' + ",".join(f'"{number:07}":"xx"' for number in range(size // 15)) + "}}",
    "deep lists": lambda size: '{"nodes": ' + "[" * size,
}


@pytest.mark.parametrize("what", FILES)
def test_a_fleet_s_file_is_read_within_limits(tmp_path: Path, what: str) -> None:
    (tmp_path / cluster.FILE).write_text(FILES[what](cluster.fleet_file.MOST_BYTES - 100))
    process = get_context("fork").Process(target=_refused_within_limits, args=(tmp_path,))
    process.start()
    process.join()
    assert 0 == process.exitcode


def _refused_within_limits(directory: Path) -> None:
    """Check the refusal within limits, in a process of its own.

    Exits with 0 if the fleet is refused for its content, not because memory ran out.
    """
    (pages, *_) = Path("/proc/self/statm").read_text().split()
    most = int(pages) * resource.getpagesize() + MOST_MORE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    try:
        cluster.take_up(directory)
    except TollbarError as error:
        raise SystemExit("not as Tollbar writes it" not in str(error)) from error
    raise SystemExit(2)
