"""A study on every node of a cluster: node selection, transfer of runs, and resumption."""

from __future__ import annotations

import ast
import math
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import tollbar
from fleet_lab import RUN, Cluster, Part, at_once, begun, ended, trials
from tollbar import cluster as fleet
from tollbar import results
from tollbar.cluster import node as node_module
from tollbar.cluster.cluster import ClusterNode
from tollbar.cluster.driving import Fleets
from tollbar.cluster.fleet_file import FleetNode, State
from tollbar.cluster.node import NodeAgent
from tollbar.core.errors import TollbarError

# Enough blocks that a run is still going when its first blocks are reported, however busy the machine is.
LONG = 24


def test_ray_is_an_extra_that_one_module_imports() -> None:
    package = Path(tollbar.__file__).parent
    naming = [path for path in package.rglob("*.py") if "ray" in imported(path)]
    assert [package / "cluster" / "on_ray.py"] == naming
    code = "import sys, tollbar.cli.run, tollbar.cli.fleet; sys.exit('ray' in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


def imported(path: Path) -> set[str]:
    """Return the packages that a module imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}


def test_what_is_sent_to_a_node_needs_no_tollbar_to_arrive() -> None:
    """Nodes may have another version: code is sent by value and imports Tollbar late, on the node."""
    tree = ast.parse(Path(node_module.__file__).read_text())
    assert not [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tollbar")
    ]


def test_each_node_measures_and_its_run_comes_home(place: Path) -> None:
    fleets = begun(place)
    fleets.drive(
        Cluster({"one": lambda name: Part(NodeAgent(name)), "other": lambda name: Part(NodeAgent(name))}), *at_once(2)
    )
    assert {"one": (State.DONE, None), "other": (State.DONE, None)} == ended(fleets)
    runs = fleets.finished(report=False)
    assert ["one", "other"] == [run.parent.name for run in runs]
    for run in runs:
        read = results.read(run)
        assert 2 * 3 == len(trials(run))
        assert {"spin-1", "spin-2"} == {row.coordinates["choice"] for row in read.studies[0].rows}
    assert [] == [*(place / "cache").rglob("results.sqlite")]


@pytest.mark.share(0)
def test_a_node_that_dies_loses_nothing_that_came_home_and_is_gone_on_with_alone(place: Path) -> None:
    fleets = begun(place, blocks=LONG)
    run_of_one = fleets.directory / "one"

    def has_trials(_: str) -> bool:
        return any(trials(path.parent) for path in run_of_one.glob("*/run.json"))

    fleets.drive(
        Cluster(
            {"one": lambda name: Part(NodeAgent(name), dies=has_trials), "other": lambda name: Part(NodeAgent(name))}
        ),
        *at_once(2),
    )
    assert {"one": (State.LOST, "the node is gone"), "other": (State.DONE, None)} == ended(fleets)
    (run,) = [path.parent for path in run_of_one.glob("*/run.json")]
    before = trials(run)
    assert 0 < len(before) < LONG * 3
    again = fleet.take_up(fleets.directory)

    def not_again(name: str) -> Part:
        raise AssertionError("a node that is done is not asked again")

    again.drive(Cluster({"one": lambda name: Part(NodeAgent(name)), "other": not_again}), *at_once(2))
    assert {"one": (State.DONE, None), "other": (State.DONE, None)} == ended(again)
    after = trials(run)
    assert before == after[: len(before)]
    assert LONG * 3 == len(after)


@pytest.mark.share(0)
def test_a_node_that_lost_its_disk_is_sent_what_came_home(place: Path) -> None:
    fleets = begun(place, blocks=LONG)
    run_of_one = fleets.directory / "one"

    def has_trials(_: str) -> bool:
        return any(trials(path.parent) for path in run_of_one.glob("*/run.json"))

    nodes = at_once(1)[0][:1]
    fleets.drive(Cluster({"one": lambda name: Part(NodeAgent(name), dies=has_trials)}), nodes, 1)
    (run,) = [path.parent for path in run_of_one.glob("*/run.json")]
    before = trials(run)
    shutil.rmtree(place / "cache" / "tollbar" / "fleet")
    again = fleet.take_up(fleets.directory)
    again.drive(Cluster({"one": lambda name: Part(NodeAgent(name))}), nodes, 1)
    assert {"one": (State.DONE, None)} == ended(again)
    assert before == trials(run)[: len(before)]
    assert LONG * 3 == len(trials(run))
    assert [run] == [path.parent for path in run_of_one.glob("*/run.json")]


@pytest.mark.share(0)
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "unnamed"])
def test_what_was_measured_before_anything_came_home_is_gone_on_with(place: Path, is_named: bool) -> None:
    fleets = begun(place, blocks=LONG)
    nodes = at_once(1)[0][:1]

    def there() -> Path | None:
        return next((path.parent for path in (place / "cache").rglob("run.json")), None)

    def has_trials(_: str) -> bool:
        return (run := there()) is not None and bool(trials(run))

    fleets.drive(
        Cluster({"one": lambda name: Part(NodeAgent(name), dies=has_trials, answers={"changed": {}})}), nodes, 1
    )
    run = there()
    assert run is not None
    before = trials(run)
    assert 0 < len(before) < LONG * 3
    again = fleet.take_up(fleets.directory)
    assert run.name == again.fleet.nodes[0].run
    if not is_named:
        again.fleet.nodes[0].run = None
    again.drive(Cluster({"one": lambda name: Part(NodeAgent(name))}), nodes, 1)
    assert {"one": (State.DONE, None)} == ended(again)
    (at_home,) = [path.parent for path in fleets.directory.glob("one/*/run.json")]
    assert run.name == at_home.name
    assert before == trials(at_home)[: len(before)]
    assert LONG * 3 == len(trials(at_home))


def test_a_node_that_lost_what_never_came_home_begins_anew(place: Path) -> None:
    fleets = begun(place)
    nodes = at_once(1)[0][:1]
    made = {
        "one": lambda name: Part(
            NodeAgent(name), dies=lambda _: [*(place / "cache").rglob("run.json")] != [], answers={"changed": {}}
        )
    }
    fleets.drive(Cluster(made), nodes, 1)
    shutil.rmtree(place / "cache" / "tollbar" / "fleet")
    again = fleet.take_up(fleets.directory)
    again.fleet.nodes[0].run = RUN
    again.drive(Cluster({"one": lambda name: Part(NodeAgent(name))}), nodes, 1)
    assert {"one": (State.DONE, None)} == ended(again)
    assert 1 == len(again.finished(report=False))


AT = {"one": "10.0.0.1", "other": "10.0.0.2"}
# The cluster's later nodes by name and address, and the member that each one is.
LATER = {
    "other names": ([("one.lab", "10.0.0.1"), ("other.lab", "10.0.0.2")], ["one", "other"]),
    "other addresses": ([("one", "10.0.0.8"), ("other", "10.0.0.9")], ["one", "other"]),
    "addresses changed hands": ([("one", "10.0.0.2"), ("other", "10.0.0.1")], ["one", "other"]),
    "a second one of its name": ([("one", "10.0.0.7"), ("one", "10.0.0.1")], [None, "one"]),
    "its name is another's": ([("one", "10.0.0.7"), ("renamed", "10.0.0.1")], [None, "one"]),
    "one that was never asked for": ([("third", "10.0.0.3"), ("one", "10.0.0.1")], [None, "one"]),
    "none of them": ([("third", "10.0.0.3")], [None]),
}


@pytest.mark.parametrize("case", LATER)
def test_a_fleet_is_gone_on_with_on_its_own_nodes(place: Path, case: str) -> None:
    fleets = begun(place)
    fleets.fleet.nodes[:] = [FleetNode(name, address, {}, State.LOST) for name, address in AT.items()]
    fleets.write()
    later, expected = LATER[case]
    again = fleet.take_up(fleets.directory)
    places = [ClusterNode(f"{at}", name, address, {}) for at, (name, address) in enumerate(later)]
    again._join(places)
    assert [name for name in expected if name] == [one.member.name for one in again.nodes]
    assert [at for at, name in enumerate(expected) if name] == [int(one.place.id) for one in again.nodes]
    assert {*AT} == {one.name for one in again.fleet.nodes}


# Three nodes, two of one name; the later cluster, and the member that each node is.
RENAMED = {
    "all as it was": ([("same", "10.0.0.1"), ("same", "10.0.0.2"), ("one", "10.0.0.3")],
                      ["10.0.0.1", "10.0.0.2", "one"]),
    "another address": ([("same", "10.0.0.1"), ("same", "10.0.0.9")], ["10.0.0.1", "10.0.0.2"]),
    "another name": ([("same", "10.0.0.1"), ("renamed", "10.0.0.2")], ["10.0.0.1", "10.0.0.2"]),
    "another name, and the other another address": ([("renamed", "10.0.0.1"), ("same", "10.0.0.9")],
                                                    ["10.0.0.1", "10.0.0.2"]),
    "both other addresses": ([("same", "10.0.0.8"), ("same", "10.0.0.9")], [None, None]),
    "one is left, with another address": ([("same", "10.0.0.9")], [None]),
    "a third of their name": ([("same", "10.0.0.1"), ("same", "10.0.0.2"), ("same", "10.0.0.9")],
                              ["10.0.0.1", "10.0.0.2", None]),
    "one's address is another's": ([("one", "10.0.0.1"), ("same", "10.0.0.2")], ["one", "10.0.0.2"]),
}  # fmt: skip


@pytest.mark.parametrize("case", RENAMED)
def test_nodes_of_one_name_are_told_by_their_addresses(place: Path, case: str) -> None:
    fleets = begun(place)
    began = [ClusterNode(address, name, address, {}) for name, address in RENAMED["all as it was"][0]]
    fleets._join(began)
    assert ["10.0.0.1", "10.0.0.2", "one"] == [one.name for one in fleets.fleet.nodes]
    later, expected = RENAMED[case]
    again = fleet.take_up(fleets.directory)
    again._join([ClusterNode(f"{at}", name, address, {}) for at, (name, address) in enumerate(later)])
    assert [name for name in expected if name] == [one.member.name for one in again.nodes]
    assert [at for at, name in enumerate(expected) if name] == [int(one.place.id) for one in again.nodes]
    away = {"10.0.0.1", "10.0.0.2", "one"} - {*expected}
    assert away == {one.name for one in again.fleet.nodes if one.state is State.LOST}


@pytest.mark.share(0)
def test_nodes_of_one_name_are_gone_on_with_each_from_its_own_run(place: Path) -> None:
    fleets = begun(place, blocks=LONG)

    def has_trials(_: str) -> bool:
        return any(trials(path.parent) for path in (fleets.directory / "10.0.0.1").glob("*/run.json"))

    both = [ClusterNode(address, "same", address, {}) for address in AT.values()]
    fleets.drive(
        Cluster({"same": lambda name: Part(NodeAgent(name), dies=has_trials if name == "10.0.0.1" else never)}), both, 2
    )
    assert {"10.0.0.1": (State.LOST, "the node is gone"), "10.0.0.2": (State.DONE, None)} == ended(fleets)
    before = trials(run_of(fleets, "10.0.0.1"))
    again = fleet.take_up(fleets.directory)
    again.drive(
        Cluster({"same": lambda name: Part(NodeAgent(name))}),
        [ClusterNode("new", "same", "10.0.0.9", {}), ClusterNode("other", "same", "10.0.0.2", {})], 2,
    )  # fmt: skip
    assert {"10.0.0.1": (State.DONE, None), "10.0.0.2": (State.DONE, None)} == ended(again)
    after = trials(run_of(again, "10.0.0.1"))
    assert before == after[: len(before)]
    assert [LONG * 3, LONG * 3] == [len(after), len(trials(run_of(again, "10.0.0.2")))]


def never(_: str) -> bool:
    return False


def run_of(fleets: Fleets, name: str) -> Path:
    """Return the only run of a node."""
    (path,) = (fleets.directory / name).glob("*/run.json")
    return path.parent


def test_two_nodes_of_ray_on_one_machine_are_refused(place: Path) -> None:
    """They would measure at once on the same cores, into one directory."""
    fleets = begun(place)
    with pytest.raises(TollbarError, match=r"two nodes of the cluster are on one machine: 10\.0\.0\.1"):
        fleets._join([ClusterNode(name, "same", "10.0.0.1", {}) for name in ("a", "b")])
    # Nothing has begun: its directory is removed.
    assert [] == fleets.fleet.nodes


def test_of_two_of_one_name_one_is_gone_on_with_alone(place: Path) -> None:
    fleets = begun(place)
    both = [ClusterNode(address, "same", address, {}) for address in AT.values()]
    fleets._join(both)
    again = fleet.take_up(fleets.directory)
    again._join(both[1:])
    assert ["10.0.0.2"] == [one.member.name for one in again.nodes]
    assert {"10.0.0.1": State.LOST, "10.0.0.2": State.WAITING} == {one.name: one.state for one in again.fleet.nodes}


@pytest.mark.parametrize(
    ("has_nodes", "given", "expected"),
    [(False, {}, {"tollbar.io/role": "web"}), (True, {}, {}), (True, {"a": "b"}, {"a": "b"})],
)
def test_labels_are_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch, has_nodes: bool, given: dict[str, str], expected: dict[str, str]
) -> None:
    fleets = begun(place)
    if has_nodes:
        fleets._join(at_once(1)[0])
    fleets.write()
    again = fleet.take_up(fleets.directory)
    asked = []
    monkeypatch.setattr(fleet, "connected", lambda _: nullcontext(Cluster({"one": lambda name: Part(NodeAgent(name))})))
    monkeypatch.setattr(fleet, "chosen", lambda _, labels: asked.append(labels) or [])
    monkeypatch.setattr(Fleets, "drive", lambda *_, at_once: None)
    fleet.drive(again, given)
    assert [expected] == asked


def test_nodes_that_cannot_have_a_part_are_named(place: Path) -> None:
    fleets = begun(place)
    made = {
        "older": lambda name: Part(NodeAgent(name), answers={"version": "0.1.0"}),
        "bare": lambda name: Part(NodeAgent(name), answers={"version": None}),
        "odd": lambda name: Part(NodeAgent(name), answers={"begin": None, "progress": {"said": 1}}),
        "one": lambda name: Part(NodeAgent(name)),
    }
    cluster = Cluster(made)
    fleets.drive(cluster, cluster.places(), None)
    found = ended(fleets)
    ours = tollbar.__version__
    assert (State.REFUSED, f"has Tollbar 0.1.0; this machine has {ours}") == found["older"]
    assert (State.REFUSED, f"has no Tollbar; this machine has {ours}") == found["bare"]
    assert (State.REFUSED, "sent an invalid answer: `run`: Field required") == found["odd"]
    assert (State.DONE, None) == found["one"]


def test_a_node_that_is_done_and_sends_no_run_is_not_done(place: Path) -> None:
    fleets = begun(place)
    said = {"run": RUN, "status": 0, "done": 6, "planned": 6, "said": ""}
    made = {"one": lambda name: Part(NodeAgent(name), answers={"begin": None, "progress": said, "changed": {}})}
    fleets.drive(Cluster(made), at_once(1)[0][:1], 1)
    assert {"one": (State.FAILED, "sent nothing of its run")} == ended(fleets)
    assert [] == fleets.finished(report=True)


@pytest.mark.share(1)
@pytest.mark.parametrize("odd", [{"done": math.inf}, {"planned": math.inf}, {"planned": "many"}, {"run": 5}], ids=str)
def test_odd_answers_end_one_node_s_part(place: Path, odd: dict[str, Any]) -> None:
    fleets = begun(place)
    said = {"run": RUN, "status": None, "done": 1, "planned": 6, "said": ""} | odd
    answers = {"begin": None, "progress": said, "changed": {"run": said["run"]}}
    made = {"one": lambda name: Part(NodeAgent(name), answers=answers), "other": lambda name: Part(NodeAgent(name))}
    fleets.drive(Cluster(made), *at_once(2))
    assert {"one": State.REFUSED, "other": State.DONE} == {name: state for name, (state, _) in ended(fleets).items()}


@pytest.mark.share(0)
def test_a_run_that_cannot_be_read_hides_no_other(place: Path) -> None:
    fleets = begun(place)
    fleets.drive(
        Cluster({"one": lambda name: Part(NodeAgent(name)), "other": lambda name: Part(NodeAgent(name))}), *at_once(2)
    )
    one, other = (fleets.directory / member.name / str(member.run) for member in fleets.fleet.nodes)
    (one / "results.sqlite").write_bytes(b"nothing that SQLite wrote" * 100)
    assert [one, other] == fleets.finished(report=True)
    assert not (one / "report.html").exists()
    assert (other / "report.html").exists()


def test_what_a_run_says_when_it_fails_is_the_node_s_reason(place: Path) -> None:
    fleets = begun(place)
    fleets.fleet.options[:] = ["--precision", "much"]
    fleets.drive(Cluster({"one": lambda name: Part(NodeAgent(name))}), at_once(1)[0][:1], 1)
    state, reason = ended(fleets)["one"]
    assert State.FAILED is state
    assert "--precision much: " in str(reason)


def test_labels_choose_nodes() -> None:
    web, directory = (
        ClusterNode(name, name, name, {"tollbar.io/role": name, "ray.io/zone": "a"}) for name in ("web", "directory")
    )
    assert [web] == fleet.chosen([directory, web], fleet.read_labels(["tollbar.io/role=web"]))
    assert [directory, web] == fleet.chosen([web, directory], {})
    both = fleet.read_labels(["ray.io/zone=a", "tollbar.io/role=directory"])
    assert [directory] == fleet.chosen([directory, web], both)
    with pytest.raises(TollbarError) as none:
        fleet.chosen([directory, web], {"tollbar.io/role": "wep"})
    assert "none of 2 nodes has this label; at least one must" == none.value.what
    assert "tollbar.io/role=web" in str(none.value.hint)
    for wrong in ("web", "=web", "role="):
        with pytest.raises(TollbarError):
            fleet.read_labels([wrong])
