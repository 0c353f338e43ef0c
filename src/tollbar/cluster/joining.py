"""Nodes of a cluster that take part in a fleet: those with its labels, each as a new member or as one that it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tollbar.cluster.cluster import ClusterNode
from tollbar.cluster.fleet_file import FILE, PAGE, FleetNode
from tollbar.core.errors import TollbarError, nearest
from tollbar.core.words import counted, enumeration
from tollbar.decide.compare.found_runs import shown

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,100}")


def chosen(places: Sequence[ClusterNode], wanted: Mapping[str, str]) -> list[ClusterNode]:
    """Return the nodes that have all these labels.

    Raises TollbarError where none has.
    """
    found = [one for one in places if all(one.labels.get(label) == value for label, value in wanted.items())]
    if not found and wanted:
        there = sorted({f"{label}={value}" for one in places for label, value in one.labels.items()})
        asked = " ".join(f"{label}={value}" for label, value in wanted.items())
        hint = nearest(asked, there) or "`ray start --labels=NAME=VALUE` sets a label"
        raise TollbarError(
            f"none of {counted(len(places), 'node')} has this label; at least one must",
            where=f"--nodes {asked}",
            hint=hint,
        )
    if not found:
        raise TollbarError("the cluster has no living node; it needs at least one", hint="`ray status` lists the nodes")
    return sorted(found, key=lambda one: (one.name, one.address))


def read_labels(said: Sequence[str]) -> dict[str, str]:
    """Return the labels of `--nodes`.

    Raises TollbarError.
    """
    for one in said:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise TollbarError(
                "must be a label with its value, for example `tollbar.io/role=web`", where=f"--nodes {one}"
            )
    return {one.partition("=")[0]: one.partition("=")[2] for one in said}


def new_members(places: Sequence[ClusterNode]) -> list[FleetNode | None]:
    """Return a member for each node; None: its name cannot be used. Nodes of one name are called by their addresses."""
    names, addresses = [place.name for place in places], {place.address for place in places}
    found: list[FleetNode | None] = []
    for place in places:
        # A name may be the address of another, by which that one may be called.
        is_one_of_several = names.count(place.name) > 1 or place.name in addresses - {place.address}
        name = place.address if is_one_of_several else place.name
        if name in {one.name for one in found if one}:
            hint = "start only one node of Ray on a machine, because a machine measures one cell at a time"
            raise TollbarError(f"two nodes of the cluster are on one machine: {shown(name)}", hint=hint)
        host = place.name if is_one_of_several else ""
        # A node gives its name itself, and a wrong one ends no other's part.
        is_usable = _NAME.fullmatch(name) and name not in (FILE, PAGE)
        found.append(FleetNode(name, place.address, dict(place.labels), host=host) if is_usable else None)
    if not any(found):
        raise TollbarError(f"no node has a valid host name: {enumeration([shown(name) for name in names])}")
    return found


def known_members(places: Sequence[ClusterNode], members: Sequence[FleetNode]) -> list[FleetNode | None]:
    """Return the member that each node is; names change with those of other nodes, and addresses from day to day."""
    names = {one.host_name for one in members}
    ways: tuple[Callable[[ClusterNode, FleetNode], bool], ...] = (
        lambda place, member: (place.name, place.address) == (member.host_name, member.address),
        # A node with another member's name is that member, with a new address.
        lambda place, member: place.address == member.address and place.name not in names,
        lambda place, member: place.name == member.host_name,
    )
    found: dict[int, FleetNode] = {}
    for is_it in ways:
        places_left = [at for at in range(len(places)) if at not in found]
        members_left = [one for one in members if one not in found.values()]
        for at in places_left:
            # Several of one name that are left cannot be distinguished.
            those = [one for one in members_left if is_it(places[at], one)]
            if len(those) == 1 and sum(is_it(places[other], those[0]) for other in places_left) == 1:
                found[at] = those[0]
    return [found.get(at) for at in range(len(places))]
