"""Run, as it is read back from its directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tollbar.catalog.families import Standing, Value
from tollbar.core.machine import NOT_STATED
from tollbar.core.method import VERSION
from tollbar.core.records import Outcome, SetAside, Trial
from tollbar.study import Study

MEASURED_AS = ("blocks", "precision", "longest_s", "cells")
"""Keys that a run keeps of how its studies are measured, in addition to their own files."""


@dataclass(frozen=True, slots=True)
class Row:
    """Planned cell with its results. A cell that failed keeps its row, with the reason."""

    key: str
    """Coordinates as one canonical text, unique within the study."""
    coordinates: Mapping[str, Value]
    """Coordinates: `choice`, `provider` (as studies name it), `server` if there is one, `op`, and each setting.

    Settings that do not apply are left out.
    """
    provider: str
    """Library with its version, by the run's receipt: `openssl 3.0.19`."""
    title: str
    standing: Standing
    strength: int | None
    against: str | None
    """Key of the cell it is compared with; its own key if it is a baseline."""
    outcome: Outcome
    reason: str | None
    trials: tuple[Trial, ...]
    """Trials in the order of blocks and batches: one for each block; for a baseline, one for each of its batches."""
    repeats: tuple[Trial, ...]
    """Repeat trials of a cell that is measured twice, one for each block; empty for every other cell."""
    known_answers: int = 0
    """Number of known answers it met before it was measured."""
    accepted: tuple[str, ...] = ()
    """Correct inputs that were accepted, in words."""
    refused: tuple[str, ...] = ()
    """Wrong inputs that were refused, in words."""
    not_tried: tuple[str, ...] = ()
    """Refusals that could not be tried, each with the reason."""
    server_version: str | None = None
    """Server it was measured through, with its version (`nginx 1.22.1`), or the URL of one of the user's own."""
    set_aside: SetAside | None = None
    """Quarantine, if it failed so often that it gets no more trials until the run is resumed."""

    @property
    def choice(self) -> str:
        return str(self.coordinates["choice"])

    @property
    def server(self) -> str | None:
        return str(self.coordinates["server"]) if "server" in self.coordinates else None

    @property
    def shown(self) -> Mapping[str, Value]:
        """Coordinates as they are printed: library and server with their versions."""
        server = {"server": self.server_version} if self.server is not None and self.server_version is not None else {}
        return {**self.coordinates, "provider": self.provider, **server}

    @property
    def setting(self) -> Mapping[str, Value]:
        """Coordinates other than choice, provider and server."""
        return {k: v for k, v in self.coordinates.items() if k not in ("choice", "provider", "server")}

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        """Trials of the cell and of its repeats."""
        return (*self.trials, *self.repeats)

    @property
    def client_libraries(self) -> tuple[str, ...]:
        """TLS libraries of the load clients; clients' own costs can only be compared if these are the same."""
        loads = (trial.load for trial in self.all_trials if trial.load is not None)
        return tuple(dict.fromkeys(name for load in loads for name in load.client_libraries))


@dataclass(frozen=True, slots=True)
class StudyRun:
    """Study of a run."""

    study: Study
    rows: tuple[Row, ...]
    left_out: tuple[tuple[Mapping[str, Value], str], ...]
    """Combinations that were not planned, with the reason."""
    interim_looks: tuple[int, ...]
    """Number of blocks each time the run was judged, this time included; each look costs confidence."""
    set_aside: tuple[SetAside, ...] = ()
    """Quarantines of cells, in order, with those that ended because the run was resumed and the cell tried again."""

    def named(self, name: str, value: Value) -> Value:
        """Return a coordinate's value as rows print it: a provider by its name with the version."""
        if name != "provider":
            return value
        return next((row.provider for row in self.rows if row.coordinates["provider"] == value), value)


@dataclass(frozen=True, slots=True)
class Run:
    """Run as it is in its directory."""

    directory: Path
    name: str
    command: tuple[str, ...]
    seed: int
    started: str
    fingerprint: Mapping[str, Any]
    providers: Mapping[str, Mapping[str, Any]]
    """Receipt of each provider, by its spec; `name` is the library with its version."""
    studies: tuple[StudyRun, ...]
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Program of each server by the server's name, with `version` and `program`; or why it is `unavailable`."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Libraries that were found and cannot be used: the place of each, and the reason."""
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Machine of each role that has its own: `address`, `host`, `fingerprint`, `is_simulated`."""
    version: str = NOT_STATED
    """Version of the Tollbar that began it."""
    resumed_with: tuple[str, ...] = ()
    """Other versions that continued it."""
    method: int = VERSION
    """Version of the method that measured it."""
    best_probe_ns: float | None = None
    """Duration of a quiet probe on this processor and kernel in earlier runs; None without any."""
    chain_ns: float | None = None
    """Duration of the run's quickest chains; None if none was read: with `best_probe_ns`, and in earlier versions."""
    probes_ns: Sequence[float] | None = None
    """Nanoseconds of all probes of the run, in no order, if only some of its studies were read; otherwise None."""

    @property
    def is_simulated(self) -> bool:
        """True if its machine is a node of a simulated cluster, or a role's machine is simulated on it."""
        return "simulated" in self.fingerprint or any(node["is_simulated"] for node in self.nodes.values())
