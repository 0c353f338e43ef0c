"""The report: one self-contained HTML file, in the order of a reader's doubts.

Charts, their runtime and the data are inside the file; it asks no network for anything. Altair and
Vega are imported only when a report is written.
"""

from __future__ import annotations

from pathlib import Path

from tollbar.errors import TollbarError, unknown
from tollbar.files import write_atomically
from tollbar.judge import Judgement

__all__ = ["chart_svg", "write"]


def write(judgement: Judgement, path: Path) -> None:
    """Writes the report of a run, whole or not at all. Raises TollbarError if the charts cannot be made."""
    from tollbar.report.page import page

    _write(path, page(judgement))


def chart_svg(judgement: Judgement, study_name: str, path: Path) -> None:
    """Writes one study's toll chart as SVG, in light colours. Raises TollbarError if there is none such."""
    from tollbar.report.picture import toll_picture

    studies = {s.study.study.name: s for s in judgement.studies}
    if study_name not in studies:
        raise unknown("study in this run", study_name, studies)
    _write(path, toll_picture(studies[study_name]))


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text)
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
