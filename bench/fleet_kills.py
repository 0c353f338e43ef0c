"""Fleets on simulated clusters, struck at random moments and resumed: leftovers and losses.

Each kill is printed as soon as it is known. A node is killed by the process that holds its machine, as in a power cut;
the raylet, Ray's own part of it, by SIGKILL; the network by taking the machine off its bridge.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.ground import NOTHING, Ground, Kept, a_ground, trials_of
from tollbar import cluster
from tollbar.core import proc

KILLS = 50
SEED = 24
NODES = 2
BLOCKS = 48
# A baseline, its repeat, and one more cell.
TRIALS = 3 * BLOCKS
WHOLE = [TRIALS] * NODES
# Status of a command whose nodes are all done.
DONE = 0
# From a node's beginning: slightly less than both nodes take.
SPREAD_S = 14.0
# Limit of fleets for each kill: some fleets finish before their kill, and if most do, the strikes are mistimed.
MOST_FLEETS = 3
# A node that is off the network is lost once it has not answered for a minute.
LIMIT_S = 300.0
POLL_S = 0.05
SPIN = """
question  = "What does work of a known size cost?"
family    = "spin"
choices   = ["spin-1", "spin-2"]
providers = ["spin"]
baseline  = "spin-1"

[measure]
chunk  = "2 ms"
rounds = 4
"""


@dataclass
class Kill:
    """Outcome of one fleet."""

    way: str
    node: str = ""
    """Name of the node that was measuring."""
    after_s: float = 0.0
    """Seconds from the node's beginning."""
    committed: int = 0
    """Trials on a disk at that moment."""
    statuses: list[int | None] = field(default_factory=list)
    """Exit statuses of the struck command, and of the resumed one."""
    left: list[str] = field(default_factory=list)
    lost: int = 0
    unfinished: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        wrong = [*(f"left: {one}" for one in self.left), *([f"{self.lost} trials lost"] if self.lost else [])]
        said = "; ".join([*wrong, *self.unfinished]) or "ok"
        at = f"{self.node} after {self.after_s:4.1f} s, {self.committed:3} trials"
        return f"{self.way:8} {at}, statuses {self.statuses}: {said}"


def figures(kills: int = KILLS, seed: int = SEED) -> Iterator[Figure]:
    """Strike a node, the driver, a raylet and the network between them, in turn, and yield the figures."""
    found: list[Kill] = []
    fleets = 0
    while len(found) < kills and fleets < MOST_FLEETS * kills:
        fleets += 1
        way = [*WAYS][len(found) % len(WAYS)]
        began_s = time.monotonic()
        with a_ground(prefix="f") as ground:
            kill = _struck(ground, way, random.Random(f"{seed} {fleets}"))
        took = f"{time.monotonic() - began_s:3.0f} s"
        print(f"{fleets:3} {took}  {kill or f'{way:8} the fleet was done before'}", flush=True)
        found += [kill] if kill else []
    are_all = len(found) == kills
    yield Figure(f"fleet: nodes at work that were struck, in {fleets} fleets", str(kills), str(len(found)), are_all)
    left = [one for kill in found for one in kill.left]
    is_clean = are_all and not left
    yield Figure(f"fleet: what is left after {len(found)} kills", "nothing", str(left[:3] or "nothing"), is_clean)
    lost = sum(kill.lost for kill in found)
    committed = sum(kill.committed for kill in found)
    yield Figure(f"fleet: trials of {committed} lost", "0", str(lost), are_all and not lost)
    whole = sum(not kill.unfinished for kill in found)
    yield Figure("fleet: runs that are whole in the end", str(kills), str(whole), whole == kills)


def _struck(ground: Ground, way: str, chance: random.Random) -> Kill | None:
    """Strike one fleet; return None if it was done before."""
    (ground.folder / "spin.toml").write_text(SPIN)
    driver = ground.start("spin.toml", "--blocks", BLOCKS, "--cluster", "ray", "--simulate", NODES)
    kill = Kill(way)
    while not (begun := _measuring(ground)) and driver.poll() is None:
        time.sleep(POLL_S)
    began_s = time.monotonic()
    # Nodes take turns, so one of them is measuring except for a moment.
    with suppress(subprocess.TimeoutExpired):
        driver.wait(chance.uniform(0.0, SPREAD_S))
    ground.under_way(driver)
    if begun is None or not (now := _measuring(ground)):
        _ended(driver, kill)
        return _unstruck(ground, kill) if begun is None else None
    kill.node, kill.after_s = now, time.monotonic() - began_s
    before = _committed(ground)
    kill.committed = sum(map(len, before.values()))
    struck = WAYS[way](driver, kill.node)
    # A fleet that finished meanwhile could not be struck.
    was_at_work = driver.poll() is None and _measuring(ground) == kill.node
    if not struck and was_at_work:
        kill.unfinished.append("nothing was struck")
    _ended(driver, kill)
    is_whole = kill.statuses == [DONE] and _counts(_committed(ground)) == WHOLE
    if is_whole and not was_at_work:
        return None
    if kill.statuses == [DONE] and not is_whole:
        kill.unfinished.append("what was not whole was called done")
    kill.left += _left(ground)
    # A fleet that survived whole has nothing to resume.
    for directory in () if is_whole else ground.folder.glob("runs/*-fleet"):
        _ended(ground.start("--resume", directory), kill)
        kill.left += _left(ground)
    after = _committed(ground)
    kill.lost = sum(len(trials - after.get(run, set())) for run, trials in before.items())
    if kill.statuses[-1] != DONE:
        kill.unfinished.append(f"{_states(ground)} {_last_words(ground)}")
    if _counts(after) != WHOLE:
        counts = {run: len(trials) for run, trials in after.items()}
        kill.unfinished.append(f"trials by run: {counts}")
    return kill


def _unstruck(ground: Ground, kill: Kill) -> Kill:
    kill.unfinished.append(f"did not begin: {_last_words(ground)}")
    return kill


def _ended(command: subprocess.Popen[bytes], kill: Kill) -> None:
    try:
        kill.statuses.append(command.wait(LIMIT_S))
    except subprocess.TimeoutExpired:
        command.kill()
        command.wait()
        kill.statuses.append(None)
        kill.unfinished.append(f"went on for {LIMIT_S:.0f} s")


def _left(ground: Ground) -> list[str]:
    left = ground.left()
    return [] if left == NOTHING else [f"{kind}: {one}" for kind, one in left.items() if one]


def _last_words(ground: Ground) -> str:
    return " / ".join(ground.output().split("\n")[-6:])[-400:]


def _members(ground: Ground) -> list[dict[str, Any]]:
    with suppress(OSError, ValueError):
        for path in ground.folder.glob(f"runs/*/{cluster.FILE}"):
            members: list[dict[str, Any]] = json.loads(path.read_text())["nodes"]
            return members
    return []


def _states(ground: Ground) -> dict[str, tuple[str, str | None]]:
    return {one["name"]: (one["state"], one["reason"]) for one in _members(ground)}


def _measuring(ground: Ground) -> str | None:
    return next((one["name"] for one in _members(ground) if one["state"] == "measuring"), None)


def _committed(ground: Ground) -> Mapping[tuple[str, str], set[Kept]]:
    """Return the trials of each node's runs: those at home, and those on the node."""
    found: dict[tuple[str, str], set[Kept]] = {}
    folders = {"runs/*-fleet/*/*/results.sqlite": -3, ".cache/tollbar/fleet/*/*/runs/*/results.sqlite": -5}
    for pattern, node in folders.items():
        for path in ground.folder.glob(pattern):
            # The file may just be being made.
            with suppress(sqlite3.OperationalError):
                found.setdefault((path.parts[node], path.parent.name), set()).update(trials_of(path.parent))
    return found


def _counts(committed: Mapping[tuple[str, str], set[Kept]]) -> list[int]:
    return [len(trials) for trials in committed.values()]


def _named(driver: subprocess.Popen[bytes], words: str, host: str) -> list[int]:
    """Return the processes with these words on a simulated machine."""
    found = []
    for pid in proc.tree(driver.pid):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        asked = ["nsenter", "--target", str(pid), "--uts", "hostname"]
        if re.match(words, line) and host == subprocess.run(asked, capture_output=True, text=True).stdout.strip():
            found.append(pid)
    return found


def _kill(pids: list[int]) -> list[int]:
    """Kill these processes, and return those that still existed."""
    struck = []
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            struck.append(pid)
    return struck


def _end_node(driver: subprocess.Popen[bytes], node: str) -> list[int]:
    return _kill(_named(driver, "sleep infinity", node))


def _end_driver(driver: subprocess.Popen[bytes], _: str) -> list[int]:
    return _kill([driver.pid]) if driver.poll() is None else []


def _end_raylet(driver: subprocess.Popen[bytes], node: str) -> list[int]:
    return _kill(_named(driver, r"\S*/raylet ", node))


def _cut(driver: subprocess.Popen[bytes], node: str) -> list[int]:
    """Take a node off the network without notice."""
    # The hub's address is the first.
    cable = f"cable{int(node.rpartition('-')[2]) + 1}"
    hubs = _named(driver, "sleep infinity", "hub")
    for hub in hubs:
        subprocess.run(["nsenter", "--target", str(hub), "--net", "ip", "link", "set", cable, "nomaster"], check=True)
    return hubs


WAYS: dict[str, Callable[[subprocess.Popen[bytes], str], list[int]]] = {
    "node": _end_node,
    "driver": _end_driver,
    "raylet": _end_raylet,
    "network": _cut,
}
