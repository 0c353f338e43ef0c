"""Addresses on which processes listen, as the kernel reports them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from tollbar.core import proc

# A socket of TCP that listens, and one of UDP that takes datagrams from everyone; see the kernel's tcp_states.h.
STATES = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}
# A client of UDP has a port of the kernel's choice.
FIRST_OF_CLIENTS = 32768


def addresses(pids: Iterable[int]) -> set[IPv4Address | IPv6Address]:
    """Return the addresses on which these processes listen."""
    sockets = {}
    for table, state in STATES.items():
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, its_state, *_, inode = line.split()[:10]
            address, _, port = local.partition(":")
            if its_state == state and (table.startswith("tcp") or int(port, 16) < FIRST_OF_CLIENTS):
                sockets[f"socket:[{inode}]"] = proc._address(address)
    return {sockets[link] for pid in pids for link in proc._open_files(pid) & sockets.keys()}
