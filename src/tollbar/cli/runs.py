"""Commands on finished runs: `judge`, `report`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tollbar import analysis as judging
from tollbar import results
from tollbar.analysis import Judgement, kept
from tollbar.cli.layouts import AsFormat, AsJson, AsMarkdown, layout_of, read_run, read_seconds
from tollbar.cli.output import show, status_of
from tollbar.core.errors import ExitStatus, TollbarError, one_line
from tollbar.report import html as reporting
from tollbar.report import terminal
from tollbar.report.blocks import Listing


def judge(
    run: Path,
    /,
    *,
    all: Annotated[bool, Parameter(name="--all", negative="")] = False,
    within: str | None = None,
    format: AsFormat = "terminal",
    markdown: AsMarkdown = False,
    json: AsJson = False,
) -> ExitStatus:
    """Judge a finished run again, without measuring.

    tollbar judge runs/2026-11-21-101500-digests --all
    tollbar judge runs/2026-11-21-101500-digests --markdown
    tollbar judge runs/2026-11-21-101500-tls-certificates --within 50ms

    Parameters
    ----------
    run
        Directory of a run, such as `runs/2026-11-21-101500-digests`.
    all
        Print every row; default: at most 24 rows of each study.
    within
        Limit of the response time of 95 % of the answers, such as `50ms`: print the highest rate or number of users of
        each cell that meets it, for studies of several loads; default: no limit.
    """
    layout = layout_of(format, markdown=markdown, json=json)
    limit_s = None if within is None else read_seconds("--within", within)
    if limit_s == 0:
        raise TollbarError("must be greater than 0, for example `50ms`", where=f"--within {within}")
    judged = judged_run(run)
    listings = [] if limit_s is None else _within(judged, limit_s, where=str(run))
    # The answer to the user's question comes before the report.
    for one in listings if layout != "json" else ():
        (terminal.show_listing_markdown if layout == "markdown" else terminal.show_listing)(one)
    if layout == "markdown":
        terminal.show_markdown(judged, everything=all)
    else:
        show(judged, as_json=layout == "json", everything=all, within_s=limit_s)
    return status_of(judged)


def _within(judged: Judgement, limit_s: float, *, where: str) -> list[Listing]:
    """Return the highest load of each cell within a limit. Raises TollbarError for a run without several loads."""
    from tollbar.report.sections.within import within_listing

    listings = [one for study in judged.studies if (one := within_listing(study, limit_s)) is not None]
    if not listings:
        hint = "a study needs several `users` or `rates` in `[load]` (docs/studies.md), `run --url` several `--users`"
        raise TollbarError("`--within` needs a run with several loads", where=where, hint=hint)
    return listings


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
    kept.keep(judged)
    return judged
