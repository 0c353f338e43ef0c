"""Interface of a cluster, for any engine: the nodes, and an agent on each that answers in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Lost(Exception):
    """A node's part does not answer any more, or never began."""


class Said(Exception):
    """Error that a node's agent answers when it cannot do a task."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of a cluster."""

    id: str
    name: str
    """Host name."""
    address: str
    labels: Mapping[str, str]
    holds_resource: bool = False
    """True if the cluster counts measurements on the node as a resource."""


class Part(Protocol):
    """Handle to the `node.NodeAgent` that runs on a cluster node, for one run."""

    def call(self, method: str, *words: Any, limit_s: float = ..., **named: Any) -> Any:
        """Return the answer of this method of `node.NodeAgent`.

        Raises Lost or Said.
        """

    def end(self) -> None:
        """End it."""


class Cluster(Protocol):
    """A connection with a cluster."""

    def places(self) -> Sequence[ClusterNode]:
        """Return the nodes that may measure."""

    def start(self, place: ClusterNode, name: str) -> Part:
        """Start an agent on a node, under the node's name in its fleet.

        Raises TollbarError where it can have none.
        """

    def close(self) -> None:
        """Lets the cluster go."""
