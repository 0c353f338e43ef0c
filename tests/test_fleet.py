"""A study on every node of a cluster: which nodes qualify, what comes home of them, and how it is gone on with."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bench import fleet as made_up

import tollbar
from conftest import command
from tollbar import fleet, gathering, report, results
from tollbar.cli.fleet import noted
from tollbar.errors import TollbarError
from tollbar.fleet import driving
from tollbar.fleet import node as node_module
from tollbar.fleet.cluster import Lost, Place, Said
from tollbar.fleet.driving import Fleets, State
from tollbar.fleet.home import Home
from tollbar.fleet.node import BLOCK_BYTES, Node, _copy, digest
from tollbar.present.decisions.gather import gather_page

SPIN = """
question  = "Does this lab find a difference where there is one?"
family    = "spin"
choices   = ["spin-1", "spin-2"]
providers = ["spin"]
baseline  = "spin-1"

[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""
RUN = "2026-11-24-101500-spin"


def spin(blocks: int) -> str:
    """A study of known work, of so many blocks."""
    return SPIN.replace("BLOCKS", str(blocks))


@dataclass
class Part:
    """A part whose node is in this process; it dies when `dies` says so of a method."""

    node: Node
    dies: Callable[[str], bool] = lambda _: False
    answers: Mapping[str, Any] = field(default_factory=dict)

    def call(self, method: str, *words: Any, limit_s: float = 0.0, **named: Any) -> Any:
        if self.dies(method):
            raise Lost("the node is gone")
        if method in self.answers:
            return self.answers[method]
        try:
            return getattr(self.node, method)(*words, **named)
        except Exception as error:  # as Ray hands on what went wrong there
            raise Said(str(error)) from error

    def end(self) -> None:
        if self.node._process is not None:
            self.node._process.kill()
            self.node._process.wait()


@dataclass
class Cluster:
    """Nodes of these names; `made` makes the part of each."""

    made: Mapping[str, Callable[[str], Part]]
    labels: Mapping[str, str] = field(default_factory=dict)

    def places(self) -> Sequence[Place]:
        return [Place(f"id-{name}", name, f"10.0.0.{at}", self.labels) for at, name in enumerate(self.made, 1)]

    def start(self, place: Place, name: str) -> Part:
        return self.made[place.name](name)

    def close(self) -> None:
        pass


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for fleets, whose nodes keep theirs in a cache of its own and are asked at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(driving, "POLL_S", 0.05)
    monkeypatch.setattr(driving, "BROUGHT_S", 0.2)
    cores = {int(thread): os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")}
    yield tmp_path
    for thread, before in cores.items():
        # Some end meanwhile.
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, before)


def begun(place: Path, blocks: int = 2) -> Fleets:
    """A fleet of the study of known work."""
    return fleet.begin(
        place / "runs", "spin", command=("tollbar", "run"), studies=[], files={"spin.toml": spin(blocks)},
        options=["--blocks", str(blocks)],
        on="ray", simulated=None, labels={"tollbar.io/role": "web"},
    )  # fmt: skip


def ended(fleets: Fleets) -> dict[str, tuple[State, str | None]]:
    """How each node ended."""
    return {one.name: (one.state, one.reason) for one in fleet.take_up(fleets.directory).fleet.nodes}


def trials(run: Path) -> list[tuple[object, ...]]:
    """All of a run's trials, in their order; the file is whole."""
    with closing(sqlite3.connect(run / "results.sqlite")) as database:
        assert [("ok",)] == database.execute("pragma integrity_check").fetchall()
        return database.execute("select study, cell, twin, block, heat, outcome from trial order by ord").fetchall()


def test_ray_is_an_extra_that_one_module_imports() -> None:
    """No other module names it, and a command that needs none imports none."""
    package = Path(tollbar.__file__).parent
    naming = [path for path in package.rglob("*.py") if "ray" in imported(path)]
    assert [package / "fleet" / "on_ray.py"] == naming
    code = "import sys, tollbar.cli.run, tollbar.cli.fleet; sys.exit('ray' in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


def imported(path: Path) -> set[str]:
    """The packages that a module imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}


def test_what_is_sent_to_a_node_needs_no_tollbar_to_arrive() -> None:
    """It is sent by value to nodes that may have another version: Tollbar is imported late, and there."""
    tree = ast.parse(Path(node_module.__file__).read_text())
    assert not [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tollbar")
    ]


def test_each_node_measures_and_its_run_comes_home(place: Path) -> None:
    """Two nodes, each with an ordinary run at home that can be judged; nothing of it stays on the nodes."""
    fleets = begun(place)
    fleets.drive(Cluster({"one": lambda name: Part(Node(name)), "other": lambda name: Part(Node(name))}), *at_once(2))
    assert {"one": (State.DONE, None), "other": (State.DONE, None)} == ended(fleets)
    runs = fleets.judged(report=False)
    assert ["one", "other"] == [run.parent.name for run in runs]
    for run in runs:
        read = results.read(run)
        assert 2 * 3 == len(trials(run))
        assert {"spin-1", "spin-2"} == {row.coordinates["choice"] for row in read.studies[0].rows}
    assert [] == [*(place / "cache").rglob("results.sqlite")]


def at_once(count: int) -> tuple[Sequence[Place], int]:
    """The nodes `one` and `other`, so many of them at once."""
    return [Place(f"id-{name}", name, "10.0.0.1", {}) for name in ("one", "other")], count


def test_a_node_that_dies_loses_nothing_that_came_home_and_is_gone_on_with_alone(place: Path) -> None:
    """It dies once a heat is home; the other ends; what it has by itself is newer, and the run has all at the end."""
    fleets = begun(place, blocks=6)
    run_of_one = fleets.directory / "one"

    def has_trials(_: str) -> bool:
        return any(trials(path.parent) for path in run_of_one.glob("*/run.json"))

    fleets.drive(
        Cluster({"one": lambda name: Part(Node(name), dies=has_trials), "other": lambda name: Part(Node(name))}),
        *at_once(2),
    )
    assert {"one": (State.LOST, "the node is gone"), "other": (State.DONE, None)} == ended(fleets)
    (run,) = [path.parent for path in run_of_one.glob("*/run.json")]
    before = trials(run)
    assert 0 < len(before) < 6 * 3
    again = fleet.take_up(fleets.directory)

    def not_again(name: str) -> Part:
        raise AssertionError("a node that is done is not asked again")

    again.drive(Cluster({"one": lambda name: Part(Node(name)), "other": not_again}), *at_once(2))
    assert {"one": (State.DONE, None), "other": (State.DONE, None)} == ended(again)
    after = trials(run)
    assert before == after[: len(before)]
    assert 6 * 3 == len(after)


def test_a_node_that_lost_its_disk_is_sent_what_came_home(place: Path) -> None:
    """What is home is what it goes on from."""
    fleets = begun(place, blocks=6)
    run_of_one = fleets.directory / "one"

    def has_trials(_: str) -> bool:
        return any(trials(path.parent) for path in run_of_one.glob("*/run.json"))

    nodes = at_once(1)[0][:1]
    fleets.drive(Cluster({"one": lambda name: Part(Node(name), dies=has_trials)}), nodes, 1)
    (run,) = [path.parent for path in run_of_one.glob("*/run.json")]
    before = trials(run)
    shutil.rmtree(place / "cache" / "tollbar" / "fleet")
    again = fleet.take_up(fleets.directory)
    again.drive(Cluster({"one": lambda name: Part(Node(name))}), nodes, 1)
    assert {"one": (State.DONE, None)} == ended(again)
    assert before == trials(run)[: len(before)]
    assert 6 * 3 == len(trials(run))
    assert [run] == [path.parent for path in run_of_one.glob("*/run.json")]


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "unnamed"])
def test_what_was_measured_before_anything_came_home_is_gone_on_with(place: Path, is_named: bool) -> None:
    """The node dies before the first bring, or the driver before it heard of a run: the node's heats are kept."""
    fleets = begun(place, blocks=6)
    nodes = at_once(1)[0][:1]

    def there() -> Path | None:
        return next((path.parent for path in (place / "cache").rglob("run.json")), None)

    def has_trials(_: str) -> bool:
        return (run := there()) is not None and bool(trials(run))

    fleets.drive(Cluster({"one": lambda name: Part(Node(name), dies=has_trials, answers={"changed": {}})}), nodes, 1)
    run = there()
    assert run is not None
    before = trials(run)
    assert 0 < len(before) < 6 * 3
    again = fleet.take_up(fleets.directory)
    assert run.name == again.fleet.nodes[0].run
    if not is_named:
        again.fleet.nodes[0].run = None
    again.drive(Cluster({"one": lambda name: Part(Node(name))}), nodes, 1)
    assert {"one": (State.DONE, None)} == ended(again)
    (at_home,) = [path.parent for path in fleets.directory.glob("one/*/run.json")]
    assert run.name == at_home.name
    assert before == trials(at_home)[: len(before)]
    assert 6 * 3 == len(trials(at_home))


def test_a_node_that_lost_what_never_came_home_begins_anew(place: Path) -> None:
    """Its name alone was known: the next run has another."""
    fleets = begun(place)
    nodes = at_once(1)[0][:1]
    made = {
        "one": lambda name: Part(
            Node(name), dies=lambda _: [*(place / "cache").rglob("run.json")] != [], answers={"changed": {}}
        )
    }
    fleets.drive(Cluster(made), nodes, 1)
    shutil.rmtree(place / "cache" / "tollbar" / "fleet")
    again = fleet.take_up(fleets.directory)
    again.fleet.nodes[0].run = RUN
    again.drive(Cluster({"one": lambda name: Part(Node(name))}), nodes, 1)
    assert {"one": (State.DONE, None)} == ended(again)
    assert 1 == len(again.judged(report=False))


AT = {"one": "10.0.0.1", "other": "10.0.0.2"}
# What the cluster has later, by names and addresses, and which member each is.
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
    """Each member is found again whatever it is called now, and no other node measures."""
    fleets = begun(place)
    fleets.fleet.nodes[:] = [driving.Member(name, address, {}, State.LOST) for name, address in AT.items()]
    fleets.write()
    later, expected = LATER[case]
    again = fleet.take_up(fleets.directory)
    places = [Place(f"{at}", name, address, {}) for at, (name, address) in enumerate(later)]
    again._join(places)
    assert [name for name in expected if name] == [one.member.name for one in again.nodes]
    assert [at for at, name in enumerate(expected) if name] == [int(one.place.id) for one in again.nodes]
    assert {*AT} == {one.name for one in again.fleet.nodes}


# Three nodes, two of them of one name; what the cluster has later, and which member each is.
TWINS = {
    "all as it was": ([("twin", "10.0.0.1"), ("twin", "10.0.0.2"), ("one", "10.0.0.3")],
                      ["10.0.0.1", "10.0.0.2", "one"]),
    "another address": ([("twin", "10.0.0.1"), ("twin", "10.0.0.9")], ["10.0.0.1", "10.0.0.2"]),
    "another name": ([("twin", "10.0.0.1"), ("renamed", "10.0.0.2")], ["10.0.0.1", "10.0.0.2"]),
    "another name, and the other another address": ([("renamed", "10.0.0.1"), ("twin", "10.0.0.9")],
                                                    ["10.0.0.1", "10.0.0.2"]),
    "both other addresses": ([("twin", "10.0.0.8"), ("twin", "10.0.0.9")], [None, None]),
    "one is left, with another address": ([("twin", "10.0.0.9")], [None]),
    "a third of their name": ([("twin", "10.0.0.1"), ("twin", "10.0.0.2"), ("twin", "10.0.0.9")],
                              ["10.0.0.1", "10.0.0.2", None]),
    "one's address is another's": ([("one", "10.0.0.1"), ("twin", "10.0.0.2")], ["one", "10.0.0.2"]),
}  # fmt: skip


@pytest.mark.parametrize("case", TWINS)
def test_nodes_of_one_name_are_told_by_their_addresses(place: Path, case: str) -> None:
    """Also when one of them has changed; what cannot be told apart is left out, and never another's run."""
    fleets = begun(place)
    began = [Place(address, name, address, {}) for name, address in TWINS["all as it was"][0]]
    fleets._join(began)
    assert ["10.0.0.1", "10.0.0.2", "one"] == [one.name for one in fleets.fleet.nodes]
    later, expected = TWINS[case]
    again = fleet.take_up(fleets.directory)
    again._join([Place(f"{at}", name, address, {}) for at, (name, address) in enumerate(later)])
    assert [name for name in expected if name] == [one.member.name for one in again.nodes]
    assert [at for at, name in enumerate(expected) if name] == [int(one.place.id) for one in again.nodes]
    away = {"10.0.0.1", "10.0.0.2", "one"} - {*expected}
    assert away == {one.name for one in again.fleet.nodes if one.state is State.LOST}


def test_nodes_of_one_name_are_gone_on_with_each_from_its_own_run(place: Path) -> None:
    """One of two of a name dies and comes back under another address: its run goes on there."""
    fleets = begun(place, blocks=6)

    def has_trials(_: str) -> bool:
        return any(trials(path.parent) for path in (fleets.directory / "10.0.0.1").glob("*/run.json"))

    both = [Place(address, "twin", address, {}) for address in AT.values()]
    fleets.drive(
        Cluster({"twin": lambda name: Part(Node(name), dies=has_trials if name == "10.0.0.1" else never)}), both, 2
    )
    assert {"10.0.0.1": (State.LOST, "the node is gone"), "10.0.0.2": (State.DONE, None)} == ended(fleets)
    before = trials(run_of(fleets, "10.0.0.1"))
    again = fleet.take_up(fleets.directory)
    again.drive(
        Cluster({"twin": lambda name: Part(Node(name))}),
        [Place("new", "twin", "10.0.0.9", {}), Place("other", "twin", "10.0.0.2", {})], 2,
    )  # fmt: skip
    assert {"10.0.0.1": (State.DONE, None), "10.0.0.2": (State.DONE, None)} == ended(again)
    after = trials(run_of(again, "10.0.0.1"))
    assert before == after[: len(before)]
    assert [6 * 3, 6 * 3] == [len(after), len(trials(run_of(again, "10.0.0.2")))]


def never(_: str) -> bool:
    return False


def run_of(fleets: Fleets, name: str) -> Path:
    """The run of a node, which is its only one."""
    (path,) = (fleets.directory / name).glob("*/run.json")
    return path.parent


def test_two_nodes_of_ray_on_one_machine_are_refused(place: Path) -> None:
    """They would measure at once on the same cores, into one directory."""
    fleets = begun(place)
    with pytest.raises(TollbarError, match=r"two nodes of the cluster are one machine: 10\.0\.0\.1"):
        fleets._join([Place(name, "twin", "10.0.0.1", {}) for name in ("a", "b")])


def test_of_two_of_one_name_one_is_gone_on_with_alone(place: Path) -> None:
    """They are called by their addresses; when one is away the other is no new node."""
    fleets = begun(place)
    both = [Place(address, "twin", address, {}) for address in AT.values()]
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
    """They choose until there are nodes; from then on those are the fleet's, and a label tells which of them."""
    fleets = begun(place)
    if has_nodes:
        fleets._join(at_once(1)[0])
    fleets.write()
    again = fleet.take_up(fleets.directory)
    asked = []
    monkeypatch.setattr(fleet, "connected", lambda _: nullcontext(Cluster({"one": lambda name: Part(Node(name))})))
    monkeypatch.setattr(fleet, "chosen", lambda _, labels: asked.append(labels) or [])
    monkeypatch.setattr(Fleets, "drive", lambda *_, at_once: None)
    fleet.drive(again, given)
    assert [expected] == asked


def test_nodes_that_cannot_have_a_part_are_named(place: Path) -> None:
    """Another version, none, and one that answers what no node does: each has its reason, and the others go on."""
    fleets = begun(place)
    made = {
        "older": lambda name: Part(Node(name), answers={"version": "0.1.0"}),
        "bare": lambda name: Part(Node(name), answers={"version": None}),
        "odd": lambda name: Part(Node(name), answers={"begin": None, "progress": {"said": 1}}),
        "one": lambda name: Part(Node(name)),
    }
    cluster = Cluster(made)
    fleets.drive(cluster, cluster.places(), None)
    found = ended(fleets)
    ours = tollbar.__version__
    assert (State.REFUSED, f"has Tollbar 0.1.0, and this is {ours}") == found["older"]
    assert (State.REFUSED, f"has no Tollbar, and this is {ours}") == found["bare"]
    assert (State.REFUSED, "answers what no node answers: 'done'") == found["odd"]
    assert (State.DONE, None) == found["one"]


def test_a_node_that_is_done_and_sends_no_run_is_not_done(place: Path) -> None:
    """What it says of itself is not enough."""
    fleets = begun(place)
    said = {"run": RUN, "status": 0, "done": 6, "planned": 6, "said": ""}
    made = {"one": lambda name: Part(Node(name), answers={"begin": None, "progress": said, "changed": {}})}
    fleets.drive(Cluster(made), at_once(1)[0][:1], 1)
    assert {"one": (State.FAILED, "sends nothing of its run")} == ended(fleets)
    assert [] == fleets.judged(report=True)


def test_a_run_that_cannot_be_read_hides_no_other(place: Path) -> None:
    """It is read apart, as what others sent; the other nodes' runs are judged and have their reports."""
    fleets = begun(place)
    fleets.drive(Cluster({"one": lambda name: Part(Node(name)), "other": lambda name: Part(Node(name))}), *at_once(2))
    one, other = (fleets.directory / member.name / str(member.run) for member in fleets.fleet.nodes)
    (one / "results.sqlite").write_bytes(b"nothing that SQLite wrote" * 100)
    assert [one, other] == fleets.judged(report=True)
    assert not (one / "report.html").exists()
    assert (other / "report.html").exists()


def test_what_a_run_says_when_it_fails_is_the_node_s_reason(place: Path) -> None:
    """Its own line is the reason, whatever else it said."""
    fleets = begun(place)
    fleets.fleet.options[:] = ["--precision", "much"]
    fleets.drive(Cluster({"one": lambda name: Part(Node(name))}), at_once(1)[0][:1], 1)
    state, reason = ended(fleets)["one"]
    assert State.FAILED is state
    assert "--precision much: " in str(reason)


def test_labels_choose_nodes() -> None:
    """All of them must fit; where none has them, the nearest is named."""
    web, directory = (
        Place(name, name, name, {"tollbar.io/role": name, "ray.io/zone": "a"}) for name in ("web", "directory")
    )
    assert [web] == fleet.chosen([directory, web], fleet.read_labels(["tollbar.io/role=web"]))
    assert [directory, web] == fleet.chosen([web, directory], {})
    both = fleet.read_labels(["ray.io/zone=a", "tollbar.io/role=directory"])
    assert [directory] == fleet.chosen([directory, web], both)
    with pytest.raises(TollbarError) as none:
        fleet.chosen([directory, web], {"tollbar.io/role": "wep"})
    assert "no node of 2 nodes has this label" == none.value.what
    assert "tollbar.io/role=web" in str(none.value.hint)
    for wrong in ("web", "=web", "role="):
        with pytest.raises(TollbarError):
            fleet.read_labels([wrong])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty place of a node's run."""
    (tmp_path / "node").mkdir()
    return Home(tmp_path / "node")


def sent(content: bytes = b"", files: Mapping[Any, Any] | None = None, **said: Any) -> dict[str, Any]:
    """What a node sends of a run."""
    blocks = {at: content[at * BLOCK_BYTES :][:BLOCK_BYTES] for at in range(-(-len(content) // BLOCK_BYTES))}
    found = {"bytes": len(content), "digest": digest(content), "blocks": blocks} | said.pop("results", {})
    return {"run": RUN, "files": files or {}, "results": found} | said


@pytest.mark.parametrize(
    "wrong",
    [
        sent(run="../elsewhere"),
        sent(run="/etc"),
        sent(run=".."),
        sent(files={"../run.json": b""}),
        sent(files={"/etc/passwd": b""}),
        sent(files={"studies/../../x.toml": b""}),
        sent(files={"families/../family.toml": b""}),
        sent(files={"report.html": b"<script>"}),
        sent(files={"studies/a\n.toml": b""}),
        sent(files={"run.json": b"x" * (9 << 20)}),
        sent(files={"run.json": "text"}),
        sent(files={5: b""}),
        sent(files={f"studies/{number}.toml": b"" for number in range(10_001)}),
        sent(b"whole", results={"digest": digest(b"other")}),
        sent(b"whole", results={"bytes": 5 << 40}),
        sent(b"whole", results={"bytes": -1}),
        sent(b"whole", results={"blocks": {7: b"far"}}),
        sent(b"whole", results={"blocks": {-1: b"far"}}),
        sent(b"whole", results={"blocks": {0: b"longer than it"}}),
    ],
)
def test_what_no_run_has_is_refused_and_not_written(home: Home, wrong: dict[str, Any]) -> None:
    """Names that lead elsewhere, what is no file of a run, sizes and parts that are not so: nothing of it is kept."""
    with pytest.raises(TollbarError):
        home.take(wrong)
    assert [] == [path for path in home.folder.parent.rglob("*") if path.is_file()]


def test_another_run_than_the_one_begun_is_refused(home: Home) -> None:
    """A node has one run."""
    home.take(sent(b"first", files={"run.json": b"{}"}))
    with pytest.raises(TollbarError):
        home.take(sent(b"first", run="2026-11-24-101501-spin"))


def test_only_what_has_changed_is_sent(home: Home) -> None:
    """Blocks that are home are not sent again; a file that shrinks is as long as it is there."""
    chance = random.Random(1)
    content = chance.randbytes(3 * BLOCK_BYTES + 17)
    home.take(sent(content, files={"run.json": b"{}", "studies/a.toml": b"a"}))
    files, blocks = home.known()
    assert {"run.json", "studies/a.toml"} == {*files}
    assert 4 == len(blocks)
    longer = content[:BLOCK_BYTES] + b"x" + content[BLOCK_BYTES + 1 :] + b"more"
    changed = sent(longer)
    changed["results"]["blocks"] = {at: block for at, block in changed["results"]["blocks"].items() if at in (1, 3)}
    home.take(changed)
    assert home.directory is not None
    assert longer == (home.directory / "results.sqlite").read_bytes()
    home.take(sent(content[:100]))
    assert content[:100] == (home.directory / "results.sqlite").read_bytes()


def test_a_growing_database_comes_home_whole_each_time(place: Path, home: Home) -> None:
    """While a run is written, each copy of it is a database of one moment, and blocks that did not change stay."""
    run = made_up.run_of(place / "cache/tollbar/fleet/one/f/runs", made_up.fingerprint("A"), lambda _: 100.0)
    node = Node("one")
    store = results.reopen(run)
    seen = []
    for number in range(5):
        with store.database as database:
            database.execute("insert into event values (?, ?)", (number, "x" * 100_000))
        home.take(node.changed("f", *home.known()))
        assert home.directory is not None
        with closing(sqlite3.connect(home.directory / "results.sqlite")) as copy:
            seen.append(copy.execute("select count(*) from event").fetchone()[0])
        assert trials(run) == trials(home.directory)
    store.close()
    assert [1, 2, 3, 4, 5] == seen
    assert node.changed("f", *home.known())["files"] == {}
    assert [one.rows for one in results.read(run).studies] == [one.rows for one in results.read(home.directory).studies]
    assert not list(home.directory.glob("results.sqlite-*"))


def test_looks_at_home_are_kept_when_the_node_goes_on(place: Path, home: Home) -> None:
    """Who gathers while a node measures pays for the look, whatever that node says later: never fewer looks."""
    run = made_up.run_of(place / "cache/tollbar/fleet/one/f/runs", made_up.fingerprint("A"), lambda _: 100.0)
    node = Node("one")
    results.update_about(run, {"studies": without_looks(run)})
    home.take(node.changed("f", *home.known()))
    assert home.directory is not None
    assert results.look(home.directory) is None
    (at_home,) = looks_of(home.directory)
    assert 1 == len(at_home)
    with closing(sqlite3.connect(run / "results.sqlite")) as database, database:
        database.execute("delete from trial where ord = (select max(ord) from trial)")
    assert results.look(run) is None
    home.take(node.changed("f", *home.known()))
    (found,) = looks_of(home.directory)
    assert [*looks_of(run)[0], *at_home] == found
    home.take(node.changed("f", {}, []))
    assert [found] == looks_of(home.directory)
    assert home.directory.name == results.read(home.directory).name


def looks_of(run: Path) -> list[list[dict[str, int]]]:
    """What is noted of each study."""
    return [entry["looks"] for entry in results.about(run)["studies"].values()]


def without_looks(run: Path) -> dict[str, dict[str, Any]]:
    """What a run says of its studies before it was judged."""
    return {name: {**entry, "looks": []} for name, entry in results.about(run)["studies"].items()}


@pytest.mark.parametrize("said", [b"", b"[]", b"{}", b'{"studies": {}}', b'{"studies": {"a": {"looks": 1}}}'])
def test_a_node_cannot_take_looks_away(home: Home, said: bytes) -> None:
    """What says nothing of a study that was looked at is none of the run's."""
    first = json.dumps({"studies": {"a": {"looks": [{"blocks": 1, "trials": 3}]}}}).encode()
    home.take(sent(b"first", files={"run.json": first}))
    with pytest.raises(TollbarError):
        home.take(sent(b"first", files={"run.json": said}))
    assert home.directory is not None
    assert first == (home.directory / "run.json").read_bytes()


def test_a_copy_has_what_is_in_the_log_beside_the_file(tmp_path: Path) -> None:
    """SQLite's log is part of the results while a run is written."""
    path = tmp_path / "results.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table heat (number)")
        database.execute("insert into heat values (1)")
        database.commit()
        (tmp_path / "copy").write_bytes(_copy(path))
    with closing(sqlite3.connect(tmp_path / "copy")) as copy:
        assert [(1,)] == copy.execute("select * from heat").fetchall()
        assert [("delete",)] == copy.execute("pragma journal_mode").fetchall()


BAD = {
    ("spin", "--on", "rey"): "no such engine: `rey`",
    ("spin", "--on", "ray:nowhere"): "no address of a cluster",
    ("spin", "--on", "ray:127.0.0.1:9"): "no cluster there",
    ("spin", "--on", "ray", "--simulate", "0"): "from 1 to 16 nodes",
    ("spin", "--on", "ray:10.1.2.3:6379", "--simulate", "2"): "has an address of its own",
    ("spin", "--on", "ray", "--nodes", "web"): "a label and its value",
    ("no-such-study", "--on", "ray"): "no such study",
    ("spin", "--on", "ray", "--roles", "web=10.1.2.3"): "`--roles`: each node of a fleet measures the whole by itself",
    ("--url", "http://localhost:1/", "--on", "ray"): "is asked from one machine",
    ("--resume", "runs/none", "--on", "ray"): "not a fleet",
}


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nowhere"])
def test_a_cluster_of_the_environment_that_is_not_there_is_one_line(tmp_path: Path, address: str) -> None:
    """Ray would wait for it for ever."""
    pytest.importorskip("ray")
    (tmp_path / "spin.toml").write_text(spin(1))
    words, environment = [command(), "run", "spin.toml", "--on", "ray"], {**os.environ, "RAY_ADDRESS": address}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert 2 == done.returncode, done.stderr
    assert f"RAY_ADDRESS={address}" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.glob("runs/*")]


def test_a_cluster_that_ended_long_ago_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray keeps its address in a file, and would wait for it for ever."""
    pytest.importorskip("ray")
    from tollbar.fleet import on_ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(on_ray.services, "canonicalize_bootstrap_address_or_die", lambda _: "127.0.0.1:9")
    monkeypatch.setattr(on_ray.ray, "init", lambda *_, **__: pytest.fail("is not asked"))
    with pytest.raises(TollbarError) as error:
        on_ray.Cluster(None)
    assert "127.0.0.1:9" in str(error.value.where)


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    """What and where, often what to try; and no directory of a fleet is left."""
    (tmp_path / "spin.toml").write_text(spin(1))
    typed = [word.replace("spin", "spin.toml") if word == "spin" else word for word in words]
    done = subprocess.run([command(), "run", *typed], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 2 == done.returncode, done.stderr
    assert BAD[words] in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "" == done.stdout
    assert not [*tmp_path.glob("runs/*")]


def test_a_fleet_that_is_gone_on_with_is_kept_where_there_is_no_cluster(place: Path) -> None:
    """What is wrong with a cluster takes nothing of a fleet that was begun before."""
    fleets = begun(place)
    fleets.write()
    words = [command(), "run", "--resume", str(fleets.directory), "--on", "ray:127.0.0.1:9"]
    assert 2 == subprocess.run(words, capture_output=True, check=False).returncode
    assert (fleets.directory / fleet.FILE).exists()


def test_the_page_of_a_simulated_fleet_says_so(tmp_path: Path) -> None:
    """Above all tolls, in words that no style hides."""
    run = made_up.run_of(tmp_path, made_up.fingerprint("A"), lambda at: 100.0 + 50.0 * (at["choice"] == "sha-512"))
    page = gather_page(gathering.gather(gathering.read([run])), "tollbar gather", tmp_path / "page.html")
    report.write_page(noted(page, fleet.SIMULATED), tmp_path / "page.html")
    assert 1 == (tmp_path / "page.html").read_text().count("all nodes are this one machine")


@pytest.mark.parametrize("text", ["", "{}", "[]", json.dumps({"schema": 9})])
def test_a_fleet_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """One line, whatever is in the file."""
    (tmp_path / fleet.FILE).write_text(text)
    with pytest.raises(TollbarError):
        fleet.take_up(tmp_path)
