"""The report: one self-contained HTML file, in the order of a reader's doubts.

Charts, their runtime and the data are inside the file; it asks no network for anything. The package `present` says
what stands in it, the templates lay that out, and they and Vega's runtime are loaded only when a report is written.
"""

from __future__ import annotations

from pathlib import Path

from tollbar.errors import TollbarError
from tollbar.files import write_atomically
from tollbar.judge import Judgement
from tollbar.present import page as present

__all__ = ["write", "write_page"]


def write(judgement: Judgement, path: Path) -> None:
    """Writes the report of a run, whole or not at all. Raises TollbarError if the charts cannot be made."""
    write_page(present.page(judgement), path)


def write_page(said: present.Page, path: Path) -> None:
    """Writes a page, whole or not at all. Raises TollbarError if its charts cannot be made."""
    from tollbar.report.page import html

    text = html(said)
    try:
        write_atomically(path, text)
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
