"""Words of earlier versions with their replacements, for hints and for reading old runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS: Mapping[str, str] = {
    "bed": "server",
    "beds": "servers",
    "worth": "threshold",
    "is-rehearsal": "is-self-test",
    "stretch": "span",
    "--no-rehearse": "--no-self-test",
    "gather": "compare",
    "rehearsal": "self-test",
    "rehearsal-uneven": "self-test-uneven",
    "rehearsal-parts": "self-test-parts",
    "rehearsal-company": "self-test-scaling",
    "in-company": "scaling",
    "servers-in-company": "servers-scaling",
    "company-contexts": "scaling-contexts",
    "company-digests": "scaling-digests",
    "company-key-exchange": "scaling-key-exchange",
    "company-signatures": "scaling-signatures",
    "cpu-typical": "cpu-all",
    "server-cpu-typical": "server-cpu-all",
    "client-cpu-typical": "client-cpu-all",
    "wall-typical": "wall-all",
}
"""Keys, settings, studies, commands, options and metrics."""

COLUMNS: Mapping[str, str] = {"heat": "batch", "twin": "repeat", "server": "server_version"}
"""Tables and columns in results of format 5."""
COORDINATES = ("bed", "stretch")
"""Old words in `WORDS` that are coordinates of cells."""
# Keys whose values are names of coordinates or of metrics.
_OF_NAMES = frozenset({"rows", "columns", "factors", "metric"})


def today(said: Any, key: str = "") -> Any:
    """Return the content of an earlier version's file in current words: its keys, and the names of coordinates.

    Raises RecursionError if it is nested too deeply.
    """
    if isinstance(said, dict):
        return {WORDS.get(name, name): today(value, name) for name, value in said.items()}
    if isinstance(said, list):
        return [today(one, key) for one in said]
    return WORDS.get(said, said) if key in _OF_NAMES and isinstance(said, str) else said
