"""A study of known work, clusters whose nodes are in this process, and readers of a fleet's state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tollbar import cluster
from tollbar.cluster.cluster import ClusterNode, Lost, Said
from tollbar.cluster.driving import Fleets
from tollbar.cluster.fleet_file import State
from tollbar.cluster.node import NodeAgent

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
    """Return a study of known work with this number of blocks."""
    return SPIN.replace("BLOCKS", str(blocks))


@dataclass
class Part:
    """Part whose node is in this process; it dies when `dies` is true for a method."""

    node: NodeAgent
    dies: Callable[[str], bool] = lambda _: False
    answers: Mapping[str, Any] = field(default_factory=dict)

    def call(self, method: str, *words: Any, limit_s: float = 0.0, **named: Any) -> Any:
        if self.dies(method):
            raise Lost("the node is gone")
        if method in self.answers:
            return self.answers[method]
        try:
            return getattr(self.node, method)(*words, **named)
        except Exception as error:  # like Ray, which passes remote errors on
            raise Said(str(error)) from error

    def end(self) -> None:
        if self.node._process is not None:
            self.node._process.kill()
            self.node._process.wait()


@dataclass
class Cluster:
    """Cluster with nodes of these names; `made` makes the part of each."""

    made: Mapping[str, Callable[[str], Part]]
    labels: Mapping[str, str] = field(default_factory=dict)

    def places(self) -> Sequence[ClusterNode]:
        return [ClusterNode(f"id-{name}", name, f"10.0.0.{at}", self.labels) for at, name in enumerate(self.made, 1)]

    def start(self, place: ClusterNode, name: str) -> Part:
        return self.made[place.name](name)

    def close(self) -> None:
        pass


def begun(place: Path, blocks: int = 2) -> Fleets:
    """Begin a fleet of the study of known work."""
    return cluster.begin(
        place / "runs", "spin", command=("tollbar", "run"), studies=[], files={"spin.toml": spin(blocks)},
        options=["--blocks", str(blocks)],
        on="ray", simulated=None, labels={"tollbar.io/role": "web"},
    )  # fmt: skip


def ended(fleets: Fleets) -> dict[str, tuple[State, str | None]]:
    """Return how each node ended."""
    return {one.name: (one.state, one.reason) for one in cluster.take_up(fleets.directory).fleet.nodes}


def trials(run: Path) -> list[tuple[object, ...]]:
    """Return all trials of a run, in order, after an integrity check of the file."""
    with closing(sqlite3.connect(run / "results.sqlite")) as database:
        assert [("ok",)] == database.execute("pragma integrity_check").fetchall()
        return database.execute("select study, cell, repeat, block, batch, outcome from trial order by ord").fetchall()


def at_once(count: int) -> tuple[Sequence[ClusterNode], int]:
    """Return the nodes `one` and `other`, and how many of them measure at once."""
    return [ClusterNode(f"id-{name}", name, "10.0.0.1", {}) for name in ("one", "other")], count
