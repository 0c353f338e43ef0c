"""What a fleet asks of a cluster, whichever engine it is: the nodes, and a part on each that answers in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Lost(Exception):
    """A node's part does not answer any more, or never began."""


class Said(Exception):
    """A node's part answers that it could not do what it was asked for."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of a cluster."""

    id: str
    name: str
    """Its host name."""
    address: str
    labels: Mapping[str, str]
    holds_resource: bool = False
    """Whether the cluster counts what measures on it."""


class Part(Protocol):
    """What stands on a node, for one run."""

    def call(self, method: str, *words: Any, limit_s: float = ..., **named: Any) -> Any:
        """What this method of `node.NodeAgent` answers there. Raises Lost or Said."""

    def end(self) -> None:
        """Ends it."""


class Cluster(Protocol):
    """A connection with a cluster."""

    def places(self) -> Sequence[ClusterNode]:
        """The nodes that may measure."""

    def start(self, place: ClusterNode, name: str) -> Part:
        """A part on a node, which has this name in its fleet. Raises TollbarError where it can have none."""

    def close(self) -> None:
        """Lets the cluster go."""
