"""Machines of roles, as given by the command line and studies."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from tollbar.catalog.servers.description import ROLES
from tollbar.core.errors import TollbarError, nearest

CLIENT = "client"
IPV4 = 4
# Commands may contain commas.
_NEXT = re.compile(r",(?=\s*\w+=)")


@dataclass(frozen=True, slots=True)
class RoleMachine:
    """Role, and the machine that has it."""

    role: str
    address: str
    reach: tuple[str, ...] = ()
    """Words that run a command on the machine."""
    more: tuple[str, ...] = ()
    """Further addresses: a fixed port may be taken on the first by another component."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses on which its components may listen."""
        return (self.address, *self.more)

    @property
    def agent(self) -> tuple[str, ...]:
        """Command that starts an agent there. Tollbar has the same path on all machines."""
        return (*self.reach, sys.executable, "-m", "tollbar.lab.servers.agent")


def read_places(said: Sequence[str]) -> tuple[RoleMachine, ...]:
    """Return the machines of `--roles`: `ROLE=ADDRESS[+ADDRESS…][ by COMMAND],…`. Raises TollbarError."""
    places: dict[str, RoleMachine] = {}
    for text in (part.strip() for one in said for part in _NEXT.split(one)):
        role, _, at = text.partition("=")
        where = f"--roles {text}"
        if role not in (known := (CLIENT, *ROLES)):
            raise TollbarError(f"no component has the role `{role}`", where=where, hint=nearest(role, known))
        if role in places:
            raise TollbarError(f"the role `{role}` is given twice", where=where)
        places[role] = _place(role, at, where)
    return _reachable(places, f"--roles {','.join(said)}")


def places_of(said: Mapping[str, str], where: str) -> tuple[RoleMachine, ...]:
    """Return the machines of `[roles]` in a study's file, each in the words of `--roles`. Raises TollbarError."""
    places = {role: _place(role, at, f"{where}: `roles.{role}`") for role, at in said.items()}
    return _reachable(places, f"{where}: `roles`")


def _place(role: str, at: str, where: str) -> RoleMachine:
    said_addresses, _, command = (part.strip() for part in at.partition(" by "))
    addresses = []
    for address in said_addresses.split("+"):
        try:
            found = ip_address(address.strip())
        except ValueError:
            raise TollbarError(f"not an address: `{address}`", where=where, hint="as in 192.0.2.7") from None
        # IPv6 addresses need brackets before a port, in every server's templates and in the engine.
        if found.version != IPV4:
            raise TollbarError(f"roles have IPv4 addresses: `{found}`", where=where, hint="as in 192.0.2.7")
        addresses.append(str(found))
    address, *more = addresses
    if role == CLIENT and command:
        raise TollbarError("the client is where the lab is", where=where, hint=f"its address alone: {address}")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise TollbarError(f"not a command: {error}: `{command}`", where=where) from None
    reach = tuple(words) or ("ssh", "-T", "-o", "BatchMode=yes", address)
    return RoleMachine(role, address, reach if role != CLIENT else (), tuple(more))


def _reachable(places: Mapping[str, RoleMachine], where: str) -> tuple[RoleMachine, ...]:
    if places and CLIENT not in places and len(places) < len(ROLES) and "web" not in places:
        raise TollbarError(
            "what is behind the web server is on another machine, and has to know who comes",
            where=where,
            hint="say this machine's address too, as that of the role `client`",
        )
    return tuple(places.values())
