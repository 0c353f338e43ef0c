"""Advice for an asset: choices that its platform supports, and rules that no other choice meets.

For example, a Java program cannot use a hash that no JDK has. A rule against a choice that is alone asks for a second
one next to it, and replacing the choice would give up its protection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tollbar.core import wire
from tollbar.core.patterns import is_like

_TABLE = Path(__file__).with_name("platforms.toml")
_UNKNOWN = "any"


def has(platform: str | None, family: str, choice: str) -> bool:
    """Return whether a platform has a choice. None: it is not known, and most libraries have it."""
    absent = _table().get(platform or _UNKNOWN, {}).get(family, ())
    return not any(is_like(choice, pattern) for pattern in absent)


def instead(policy: str, rule: str) -> str | None:
    """Return the way to meet a rule without another choice; None: another choice is needed."""
    return _INSTEAD.get((policy, rule))


# The rules of the product's policies against a choice alone.
_SECOND = "a classical signature next to it"
_HYBRID = "a hybrid of ML-KEM with a classical key exchange"
_INSTEAD = {
    ("tr-02102-2026-01", "sign-alone"): _SECOND,
    ("tr-02102-2026-01", "kem"): _HYBRID,
    ("tr-02102-2026-01", "kx-2031"): _HYBRID,
    ("tr-02102-2026-01", "tls-kem"): _HYBRID,
    ("fedora-default-2026-02", "pure-kem"): _HYBRID,
}


class _Table(wire.Wire):
    any: dict[str, tuple[str, ...]]
    java: dict[str, tuple[str, ...]]
    go: dict[str, tuple[str, ...]]
    python: dict[str, tuple[str, ...]]
    node: dict[str, tuple[str, ...]]
    dotnet: dict[str, tuple[str, ...]]


@cache
def _table() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    return dict(wire.read(_TABLE, _Table))
