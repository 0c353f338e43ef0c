"""Many machines: a study on each node of a cluster, each node's run brought home while it grows.

`fleet_file` has the nodes of a fleet, and `joining` finds those that take part. `driving` has the part of a `node` on
each, which starts `tollbar run` there as anywhere, and `home` is where its run comes to. `on_ray` alone knows Ray, an
extra. `namespaces` makes machines up on this one, and `simulated` a cluster of such.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tollbar.cluster.driving import SIMULATED, Fleets, begin, take_up
from tollbar.cluster.fleet_file import FILE, PAGE
from tollbar.cluster.joining import chosen, read_labels
from tollbar.core.errors import TollbarError

if TYPE_CHECKING:
    from tollbar.cluster.cluster import Cluster

__all__ = [
    "FILE",
    "PAGE",
    "SIMULATED",
    "Fleets",
    "begin",
    "check_can",
    "chosen",
    "connected",
    "drive",
    "read_labels",
    "take_up",
]

ENGINES = ("ray",)


def check_can(on: str, simulate: int | None) -> None:
    """Raise TollbarError for an engine that is unknown or not installed."""
    engine, _, _ = on.partition(":")
    if engine not in ENGINES:
        raise TollbarError(f"no such engine: `{engine}`", where=f"--cluster {on}", hint=f"known: {', '.join(ENGINES)}")
    if simulate is not None and not 1 <= simulate <= MOST_SIMULATED:
        raise TollbarError(f"must be from 1 to {MOST_SIMULATED} nodes, for example 2", where=f"--simulate {simulate}")
    if simulate is not None and on != engine:
        raise TollbarError(
            "an address cannot be combined with `--simulate`", where=f"--cluster {on}", hint=f"`--cluster {engine}`"
        )
    if find_spec("ray") is None:
        raise TollbarError("Ray is not installed", where=f"--cluster {on}", hint="pip install 'tollbar[ray]'")


# Largest number of simulated nodes: each is a raylet with its agents, a fifth of a gigabyte.
MOST_SIMULATED = 16


@contextmanager
def connected(address: str | None) -> Iterator[Cluster]:
    """Yield a connection to an existing Ray cluster.

    Raises TollbarError.
    """
    # Not with the others: Ray is an extra, and takes half a second to import.
    from tollbar.cluster.on_ray import Cluster

    cluster = Cluster(address)
    try:
        yield cluster
    finally:
        cluster.close()


def drive(fleets: Fleets, labels: dict[str, str]) -> None:
    """Drive every qualifying node of the fleet's cluster until it has measured the missing cells.

    A fleet that has nodes is resumed on those, and `labels` select them. Raises TollbarError.
    """
    from tollbar.cluster.simulated import simulated

    labels = labels or ({} if fleets.fleet.nodes else fleets.fleet.labels)
    count = fleets.fleet.simulated
    if count is None:
        with connected(fleets.fleet.on.partition(":")[2] or None) as cluster:
            fleets.drive(cluster, chosen(cluster.places(), labels), at_once=None)
        return
    with simulated(count) as made, connected(made.address) as cluster:
        made.wait_for(cluster.places)
        # The next node has the same cores.
        fleets.on_lost = lambda name: made.network.end(made.network.spaces[name])
        fleets.drive(cluster, chosen(cluster.places(), labels), at_once=1)
