"""A run, as it is read back from its directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tollbar.catalog.families import Standing, Value
from tollbar.core.machine import NOT_STATED
from tollbar.core.method import VERSION
from tollbar.core.records import Outcome, SetAside, Trial
from tollbar.study import Study

MEASURED_AS = ("blocks", "precision", "longest_s", "cells")
"""What a run keeps of how its studies are measured, beside their own files."""


@dataclass(frozen=True, slots=True)
class Row:
    """A planned cell and what became of it. A cell that failed keeps its row, with the reason."""

    key: str
    """Its coordinates as one canonical text; unique within its study."""
    coordinates: Mapping[str, Value]
    """`choice`, `provider` (as studies name it), `server` if there is one, `op`, each setting that applies."""
    provider: str
    """The library with its version, as the run's receipt says it: `openssl 3.0.19`."""
    title: str
    standing: Standing
    strength: int | None
    against: str | None
    """The key of the cell it is compared with; its own key where it is a baseline."""
    outcome: Outcome
    reason: str | None
    trials: tuple[Trial, ...]
    """In the order of blocks and batches: one for each block, of a baseline one for each batch that it was in."""
    repeats: tuple[Trial, ...]
    """A baseline's trials beside itself, one for each block; empty for every other cell."""
    known_answers: int = 0
    """How many known answers it met before it was measured."""
    accepted: tuple[str, ...] = ()
    """Right things that were accepted, in words."""
    refused: tuple[str, ...] = ()
    """Wrong things that were refused, in words."""
    not_tried: tuple[str, ...] = ()
    """Refusals that could not be tried, each with the reason."""
    server_version: str | None = None
    """Which server it was measured through, with its version (`nginx 1.22.1`), or the URL of one of the user's own."""
    set_aside: SetAside | None = None
    """Where it failed so often that no more trials of it are made until the run is resumed."""

    @property
    def choice(self) -> str:
        return str(self.coordinates["choice"])

    @property
    def server(self) -> str | None:
        return str(self.coordinates["server"]) if "server" in self.coordinates else None

    @property
    def shown(self) -> Mapping[str, Value]:
        """Its coordinates as people read them: library and server with their versions."""
        server = {"server": self.server_version} if self.server is not None and self.server_version is not None else {}
        return {**self.coordinates, "provider": self.provider, **server}

    @property
    def setting(self) -> Mapping[str, Value]:
        """The coordinates other than choice, provider and server."""
        return {k: v for k, v in self.coordinates.items() if k not in ("choice", "provider", "server")}

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        """Its own and its repeats'."""
        return (*self.trials, *self.repeats)

    @property
    def client_libraries(self) -> tuple[str, ...]:
        """What load clients spoke TLS through; their own cost can only be compared where this is the same."""
        loads = (trial.load for trial in self.all_trials if trial.load is not None)
        return tuple(dict.fromkeys(name for load in loads for name in load.client_libraries))


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One study of a run."""

    study: Study
    rows: tuple[Row, ...]
    left_out: tuple[tuple[Mapping[str, Value], str], ...]
    """Combinations that were not planned, and why."""
    interim_looks: tuple[int, ...]
    """How many blocks there were at each time the run was judged, this time included; each has its price."""
    set_aside: tuple[SetAside, ...] = ()
    """Every time that a cell was set aside, in order; also where the run was resumed and the cell tried again."""

    def named(self, name: str, value: Value) -> Value:
        """A coordinate's value as rows show it: a provider by its name with the version."""
        if name != "provider":
            return value
        return next((row.provider for row in self.rows if row.coordinates["provider"] == value), value)


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it stands in its directory."""

    directory: Path
    name: str
    command: tuple[str, ...]
    seed: int
    started: str
    fingerprint: Mapping[str, Any]
    providers: Mapping[str, Mapping[str, Any]]
    """Each provider's receipt, by its spec; `name` is the library with its version."""
    studies: tuple[StudyRun, ...]
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Each server's program, its `version` and `program`, by the server's name; or why it is `unavailable`."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Libraries that were found and cannot be used: where each is, and why."""
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The machine of each role that has one of its own: `address`, `host`, `fingerprint`, `is_simulated`."""
    version: str = NOT_STATED
    """Of the Tollbar that began it."""
    resumed_with: tuple[str, ...] = ()
    """Other versions that went on with it."""
    method: int = VERSION
    """The version of the method that measured it."""
    best_probe_ns: float | None = None
    """What a probe took on this processor and kernel, quiet, in the runs before; None where there were none."""
    chain_ns: float | None = None
    """Duration of the run's quickest chains; None where none was read: with `best_probe_ns`, in earlier versions."""

    @property
    def is_simulated(self) -> bool:
        """Whether its machine is a node of a simulated cluster, or that of a role is made up on it."""
        return "simulated" in self.fingerprint or any(node["is_simulated"] for node in self.nodes.values())
