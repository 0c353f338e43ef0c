"""Suites, groups and signature schemes of TLS by their numbers, as `code-points.toml` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tollbar.core import wire

_TABLE = Path(__file__).with_name("code-points.toml")

VERSIONS: Mapping[str, int] = {
    "tls-1.3": 0x0304,
    "tls-1.2": 0x0303,
    "tls-1.1": 0x0302,
    "tls-1.0": 0x0301,
    "ssl-3": 0x0300,
}
"""Number of each version in a handshake, the newest first."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cipher suite."""

    number: int
    name: str
    """Name in OpenSSL's configuration."""
    key_exchange: str
    """`ecdhe`, `dhe`, `rsa`, `ecdh` or `anon`; empty in TLS 1.3, where groups decide it."""
    cipher: str
    """Value of the setting `cipher`, or a name of the same form."""

    @property
    def is_of_13(self) -> bool:
        return not self.key_exchange

    @property
    def proves(self) -> str:
        """Kind of key that proves the server's name: `ecdsa`, `rsa`, or empty where the suite leaves it open."""
        if self.key_exchange in ("", "anon"):
            return ""
        return "ecdsa" if "ECDSA" in self.name else "rsa"


@dataclass(frozen=True, slots=True)
class Group:
    """Group of a key exchange."""

    number: int
    title: str
    name: str
    """Name in OpenSSL's configuration."""
    value: str
    """Value of the setting `key-exchange`, or a name of the same form."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """Signature scheme of a handshake."""

    number: int
    name: str
    kind: str
    """Kind of key that signs."""
    digest: str


class _Numbers(wire.Wire):
    suite: dict[str, tuple[str, str, str]]
    group: dict[str, tuple[str, str, str]]
    scheme: dict[str, tuple[str, str, str]]


@cache
def suites() -> Mapping[int, Suite]:
    """Return all suites by number, in the order of an offer."""
    return {(number := int(key, 16)): Suite(number, *row) for key, row in _table().suite.items()}


@cache
def groups() -> Mapping[int, Group]:
    """Return all groups by number, in the order of an offer."""
    return {(number := int(key, 16)): Group(number, *row) for key, row in _table().group.items()}


@cache
def schemes() -> Mapping[int, Scheme]:
    """Return all signature schemes by number, in the order of an offer."""
    return {(number := int(key, 16)): Scheme(number, *row) for key, row in _table().scheme.items()}


@cache
def _table() -> _Numbers:
    return wire.read(_TABLE, _Numbers)
