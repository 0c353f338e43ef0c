"""Commands on finished runs: `judge`, `report`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tollbar import analysis as judging
from tollbar import results
from tollbar.analysis import Judgement
from tollbar.cli.layouts import AsFormat, AsJson, AsMarkdown, layout_of
from tollbar.cli.options import read_run, show, status_of
from tollbar.core.errors import ExitStatus, one_line
from tollbar.decide import compare
from tollbar.report import html as reporting
from tollbar.report import terminal


def judge(
    run: Path,
    /,
    *,
    all: Annotated[bool, Parameter(name="--all", negative="")] = False,
    format: AsFormat = "terminal",
    markdown: AsMarkdown = False,
    json: AsJson = False,
) -> ExitStatus:
    """Judge a finished run again, without measuring.

    tollbar judge runs/2026-11-21-101500-digests --all
    tollbar judge runs/2026-11-21-101500-digests --markdown

    Parameters
    ----------
    run
        Directory of a run, such as `runs/2026-11-21-101500-digests`.
    all
        Print every row; default: at most 24 rows of each study.
    """
    layout = layout_of(format, markdown=markdown, json=json)
    judged = judged_run(run)
    if layout == "markdown":
        terminal.show_markdown(judged, everything=all)
    else:
        show(judged, as_json=layout == "json", everything=all)
    return status_of(judged)


def report(run: Path, /, *, to: Annotated[Path | None, Parameter(name="--output")] = None) -> ExitStatus:
    """Write the HTML report of a finished run again.

    tollbar report runs/2026-11-21-101500-digests
    tollbar report runs/2026-11-21-101500-digests --output digests.html

    Parameters
    ----------
    run
        Directory of a run, such as `runs/2026-11-21-101500-digests`.
    to
        File to write, such as `digests.html`; an existing file is replaced. Default: `report.html` in the run's
        directory.
    """
    path = reporting.write(judged_run(run), to)
    terminal.stdout().print(one_line(str(path)), markup=False, soft_wrap=True)
    return ExitStatus.DONE


def export(
    run: Path,
    /,
    *,
    per: Literal["chunk", "cell"] = "chunk",
    format: Literal["csv", "json", "markdown", "parquet"] = "csv",
    to: Annotated[Path | None, Parameter(name="--output")] = None,
) -> ExitStatus:
    """Export the chunks or the cells of a run as CSV, JSON, Markdown or Parquet.

    tollbar export runs/2026-11-21-101500-digests > chunks.csv
    tollbar export runs/2026-11-21-101500-digests --per cell --format markdown
    tollbar export runs/2026-11-21-101500-digests --format parquet --output chunks.parquet

    Parameters
    ----------
    run
        Directory of a run, such as `runs/2026-11-21-101500-digests`.
    per
        `chunk`: a row for each chunk, as measured. `cell`: a row for each cell with its cost, ratio, interval, verdict
        and standing. Default: `chunk`.
    format
        `csv`, `json`, `markdown` (cells only) or `parquet` (needs `--output` and pyarrow); default: `csv`.
    to
        File to write, such as `chunks.parquet`; an existing file is replaced. Default: standard output.
    """
    if per == "cell":
        from tollbar.report.json_forms import cell_rows

        judged = judged_run(run)
        results.write(lambda: cell_rows(judged), format, to)
    else:
        results.export(results.read(run), format, to)
    return ExitStatus.DONE


def judged_run(run: Path) -> Judgement:
    """Return the judgement of a run; this is a look, which later blocks pay for."""
    judged = judging.judge(read_run(run))
    compare.keep(judged)
    return judged
