"""Cells of a plan: a choice, a provider, a server and a setting each, and their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tollbar.catalog import servers
from tollbar.catalog.families import Answer, Choice, Standing
from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers import Server, Unavailable
from tollbar.catalog.servers.remote import Remote
from tollbar.core.records import CONTRACT
from tollbar.study import NOT_SETTINGS, Coordinates, Load

Task = Mapping[str, Any]
"""Task of the runner contract."""
# `json.dumps` makes a new encoder for each call, and a large study has a hundred thousand keys.
_KEYS = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell of a study: one choice × provider × setting."""

    study: str
    family: str
    choice: Choice
    provider: Provider
    server: Server | Remote | None
    """Server through which it is measured; None if the provider itself is measured."""
    load: Load | None
    coordinates: Coordinates
    standing: Standing
    """Worst standing of its choice and its settings."""
    strength: int | None
    """Least strength of its choice and its settings, in bits."""
    against: str | None
    """Key of its baseline: its own if it is a baseline, None if there is none."""
    key: str = field(init=False, repr=False, compare=False)
    """Canonical text of its coordinates, cached because each round of a batch uses it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key_of(self.coordinates))

    @property
    def is_baseline(self) -> bool:
        return self.against == self.key

    @property
    def server_version(self) -> str | None:
        """Server through which it is measured: `nginx 1.22.1`, or the URL of a user's own."""
        if self.server is None:
            return None
        found = servers.find(self.server) if isinstance(self.server, Server) else self.server
        return found.name if isinstance(found, Unavailable) else found.server_version

    @property
    def memory_bytes(self) -> int:
        """Memory of one operation by its parameters, in bytes; 0 if negligible."""
        return self.choice.memory_bytes(self.coordinates)

    @property
    def threads(self) -> int:
        """Number of threads that perform it at once."""
        return int(self.coordinates.get("threads", 1))

    def task(self, mode: str, seed: int, answer: Answer | None = None) -> dict[str, Any]:
        """Return the task for this cell, with a known answer's inputs and settings if one is given."""
        own = {name: value for name, value in self.coordinates.items() if name not in NOT_SETTINGS}
        inputs = dict(self.choice.inputs)
        if answer is not None:
            inputs |= {**answer.inputs, "expected_hex": answer.expected}
        return {
            "contract": CONTRACT,
            "mode": mode,
            "family": self.family,
            "op": self.coordinates["op"],
            "choice": self.choice.name,
            "provider": self.provider.in_task,
            "setting": {**own, **self.choice.setting, **(answer.setting if answer else {})},
            "inputs": inputs,
            "seed": seed,
            **({"threads": self.threads} if "threads" in self.coordinates else {}),
        }


def key_of(coordinates: Coordinates) -> str:
    """Return coordinates as canonical text: the same cell has the same key in every run."""
    return _KEYS.encode(dict(coordinates))
