"""Real clusters of Ray on simulated machines: a node that dies, resumed runs, and leftovers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bench.ground import NOTHING, Ground, program, trials_of, until

from conftest import command, machines_are_made, ray_is_there
from fleet_lab import spin
from tollbar import cluster, results
from tollbar.cluster import namespaces, simulated
from tollbar.core import proc

# Blocks of some tenths of a second each; a node is polled every two seconds.
BLOCKS = 48
PORT_OF_RAY = f"{simulated.PORT:04X}"


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Yield a place for fleets whose path is short enough for Ray's sockets, or skip."""
    ray_is_there()
    machines_are_made()
    folder = Path(tempfile.mkdtemp(prefix="f", dir="/tmp"))
    try:
        (folder / "tmp").mkdir()
        (folder / "spin.toml").write_text(spin(BLOCKS))
        yield Ground(folder, frozenset(proc._children(os.getpid())))
    finally:
        shutil.rmtree(folder)


def started(ground: Ground, *words: object) -> subprocess.Popen[bytes]:
    """Start `tollbar run`, with its data in `data`."""
    places = {"TMPDIR": str(ground.temporary), "XDG_CACHE_HOME": str(ground.folder / "cache")}
    with open(ground.folder / "output", "wb") as output, open(ground.folder / "data", "wb") as data:
        return subprocess.Popen(
            [command(), "run", *map(str, words), "--json", "--no-report"], cwd=ground.folder,
            env={**os.environ, **places}, stdout=data, stderr=output,
        )  # fmt: skip


def node(driver: subprocess.Popen[bytes], name: str) -> int:
    """Return the process that holds the simulated machine of this name."""
    holders = [pid for pid in proc.tree(driver.pid) if "sleep infinity" in program(pid)]
    return next(pid for pid in holders if name == hostname(pid))


def hostname(pid: int) -> str:
    asked = ["nsenter", "--target", str(pid), "--uts", "hostname"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def listening(pid: int | str) -> dict[str, str]:
    """Return the inode of each listening address in a process's network, with addresses as the kernel prints them."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return {fields[1]: fields[9] for fields in lines if fields[3] == proc.LISTENING}


def sockets(pids: set[int]) -> set[str]:
    """Return the inodes of all sockets of these processes."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            for file in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    found.add(os.readlink(f"/proc/{pid}/fd/{file}").removeprefix("socket:[").removesuffix("]"))
    return found


def home(ground: Ground) -> dict[str, list[object]]:
    """Return the trials that are home, by node."""
    return {path.parents[1].name: [*trials_of(path.parent)] for path in ground.folder.glob("runs/*-fleet/*/*/run.json")}


def states(ground: Ground) -> dict[str, str]:
    (said,) = ground.folder.glob(f"runs/*/{cluster.FILE}")
    return {one["name"]: one["state"] for one in json.loads(said.read_text())["nodes"]}


@pytest.mark.share(0)
def test_a_node_that_dies_is_gone_on_with_alone_and_nothing_is_left(ground: Ground) -> None:
    listening_before = listening("self")
    driver = started(ground, "spin.toml", "--blocks", BLOCKS, "--cluster", "ray", "--simulate", "2")
    until(lambda: home(ground).get("node-1"), driver)
    ground.under_way(driver)
    before = home(ground)["node-1"]
    os.kill(node(driver, "node-1"), signal.SIGKILL)
    # Ray listens in the private network alone: on its head's machine; this machine's listeners are unchanged.
    assert PORT_OF_RAY in {at.rpartition(":")[2] for at in listening(node(driver, namespaces.HUB))}
    ours = {*proc.tree(driver.pid)}
    assert not {inode for _, inode in listening("self").items() - listening_before.items()} & sockets(ours)
    assert 1 == driver.wait(), ground.output()
    assert {"node-1": "lost", "node-2": "done"} == states(ground)
    assert ground.left() == NOTHING
    (directory,) = ground.folder.glob("runs/*-fleet")
    assert f"tollbar run --resume {directory}" in ground.output().replace("\n", "")
    assert 1 == len(json.loads((ground.folder / "data").read_text())["runs"])
    assert 0 == started(ground, "--resume", directory).wait(), ground.output()
    assert {"node-1": "done", "node-2": "done"} == states(ground)
    found = home(ground)
    assert {"node-1": BLOCKS * 3, "node-2": BLOCKS * 3} == {name: len(trials) for name, trials in found.items()}
    assert before == found["node-1"][: len(before)]
    document = json.loads((ground.folder / "data").read_text())
    assert 2 == len(document["runs"])
    assert "simulated" in json.loads(next(directory.glob("node-1/*/run.json")).read_text())["fingerprint"]
    assert ground.left() == NOTHING


@pytest.mark.share(0)
def test_a_driver_that_is_killed_leaves_nothing_but_what_is_home(ground: Ground) -> None:
    driver = started(ground, "spin.toml", "--blocks", BLOCKS, "--cluster", "ray", "--simulate", "1")
    until(lambda: home(ground).get("node-1"), driver)
    ground.under_way(driver)
    driver.kill()
    driver.wait()
    assert ground.left() == NOTHING
    (run,) = ground.folder.glob("runs/*-fleet/node-1/*")
    assert results.read(run).studies[0].rows[0].trials
    assert {"node-1": "measuring"} == states(ground)
