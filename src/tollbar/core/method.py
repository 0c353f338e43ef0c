"""Version of the measuring method. A change that gives the same work another ratio raises it."""

from __future__ import annotations

from collections.abc import Iterable

from tollbar.core.errors import TollbarError

VERSION = 5
"""Current version; METHOD.md has a line for each under "Versions"."""
FIRST = 1
"""Version of runs that state none."""


def refuse_mixed(versions: Iterable[int], *, across_methods: bool, where: str | None = None) -> None:
    """Raise TollbarError if figures of several method versions would be compared."""
    several = sorted(set(versions))
    if len(several) > 1 and not across_methods:
        raise TollbarError(
            f"the runs were measured by versions {' and '.join(map(str, several))} of the method",
            where=where,
            hint="measure the older run again, or add `--across-methods` to compare them anyway",
        )
