"""A server that the user has, as a bed: it is up already, and nothing is known of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Remote:
    """What a bed and its started server are to others; there is nothing to start and nothing to account for."""

    url: str
    address: str
    """`address:port` that the URL was found to stand for."""
    components: Mapping[str, int] = field(default_factory=dict, compare=False)
    work_dirs: Mapping[str, Path] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return "url"

    @property
    def server(self) -> str:
        """Which server this is, as rows name it."""
        return self.url

    def fault(self, within_s: float = 0.0) -> str | None:
        """Nothing is known of its end."""
        return None

    def complaint(self) -> str | None:
        """Nor of its log."""
        return None
