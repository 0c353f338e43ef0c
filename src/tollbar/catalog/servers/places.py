"""Machines of roles, as given by the command line and studies."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from tollbar.catalog.servers.description import ROLES
from tollbar.core.errors import TollbarError

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
            raise TollbarError(f"no component has the role `{role}`", where=where, hint=f"known: {', '.join(known)}")
        if role in places:
            raise TollbarError(
                f"the role `{role}` is given twice; it must have one place",
                where=where,
                hint="several addresses are joined by `+`, for example `directory=192.0.2.9+192.0.2.10`",
            )
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
            raise TollbarError(
                f"`{address}` is not an IPv4 address", where=where, hint=f"for example `{role}=192.0.2.7`"
            ) from None
        # IPv6 addresses need brackets before a port, in every server's templates and in the engine.
        if found.version != IPV4:
            raise TollbarError(f"`{found}` is not an IPv4 address", where=where, hint=f"for example `{role}=192.0.2.7`")
        addresses.append(str(found))
    address, *more = addresses
    if role == CLIENT and command:
        raise TollbarError(
            "the role `client` cannot have a command; it is always this machine",
            where=where,
            hint=f"for example `client={address}`",
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        what = f"`{command}` is not a command: {error}"
        raise TollbarError(what, where=where, hint=f"for example `{role}={address} by ssh bench@{address}`") from None
    reach = tuple(words) or ("ssh", "-T", "-o", "BatchMode=yes", address)
    return RoleMachine(role, address, reach if role != CLIENT else (), tuple(more))


def _reachable(places: Mapping[str, RoleMachine], where: str) -> tuple[RoleMachine, ...]:
    if places and CLIENT not in places and len(places) < len(ROLES) and "web" not in places:
        raise TollbarError(
            "a role on another machine needs the address of this machine, which the role `client` has",
            where=where,
            hint="add it, for example `client=192.0.2.1`",
        )
    return tuple(places.values())
