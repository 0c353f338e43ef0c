"""HTML report: one self-contained file, in the order of a reader's doubts.

Charts, their runtime and the data are inside the file; it makes no network requests. The package `report` provides the
content and the templates lay it out; they and Vega's runtime are loaded only when a report is written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tollbar.analysis import Judgement
from tollbar.core.errors import TollbarError
from tollbar.core.files import write_atomically, write_named
from tollbar.report import page as present

__all__ = ["write", "write_page"]


def write(judgement: Judgement, to: Path | None = None) -> Path:
    """Write the report of a run to a file that the user names, or else into its directory, and return its path.

    The file is written whole or not at all. Raises TollbarError if the charts cannot be made.
    """
    path = to or judgement.run.directory / "report.html"
    _write(present.page(judgement), path, write_named if to else write_atomically)
    return path


def write_page(said: present.Page, path: Path) -> None:
    """Write a page to a file that the user names, whole or not at all.

    Raises TollbarError if its charts cannot be made.
    """
    _write(said, path, write_named)


def _write(said: present.Page, path: Path, write_text: Callable[[Path, str], None]) -> None:
    from tollbar.report.html.page import html

    text = html(said)
    try:
        write_text(path, text)
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
