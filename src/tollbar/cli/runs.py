"""What to do with runs that are there: `judge`, `compare`, `report`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tollbar import console, document, gathering, results
from tollbar import judge as judging
from tollbar import report as reporting
from tollbar.cli.options import AsJson, read_run, read_share, show, status_of
from tollbar.errors import ExitStatus, one_line
from tollbar.judge import Changed, Judgement
from tollbar.judge.comparison import compare as compare_judgements
from tollbar.present.decisions.compare import by_cost_lines, headlines, increase_lines

TableFormat = Literal["terminal", "markdown"]


def judge(
    run: Path,
    /,
    *,
    all: Annotated[bool, Parameter(name="--all", negative="")] = False,
    format: TableFormat = "terminal",
    json: AsJson = False,
) -> ExitStatus:
    """Judge a run again, without measuring.

    tollbar judge runs/2026-11-21-101500-digests --all
    tollbar judge runs/2026-11-21-101500-digests --format markdown

    Parameters
    ----------
    run
        A run's directory.
    all
        Show every row.
    format
        `markdown` is for a pull request.
    json
        Print one JSON document instead of tables.
    """
    judged = judged_run(run)
    if format == "markdown" and not json:
        console.show_markdown(judged, everything=all)
    else:
        show(judged, as_json=json, everything=all)
    return status_of(judged)


def compare(
    one: Path,
    other: Path,
    /,
    *,
    fail_above: str | None = None,
    of: Changed = "ratio",
    across_machines: Annotated[bool, Parameter(negative="")] = False,
    across_methods: Annotated[bool, Parameter(negative="")] = False,
    format: TableFormat = "terminal",
    json: AsJson = False,
) -> ExitStatus:
    """Set two runs' costs and ratios side by side: what has changed?

    tollbar compare runs/2026-11-21-101500-digests runs/2026-11-22-090000-digests
    tollbar compare runs/before runs/after --fail-above 5%

    Rows meet by what they are, such as `libcrypto`, whatever its version.

    Parameters
    ----------
    one
        A run's directory.
    other
        Another run's directory.
    fail_above
        A share, such as 5%: end with status 1 if a row rose by more, its whole interval beyond it, or was measured in
        the first run and not in the second, or is not compared; with status 3 if no row could have shown it.
    of
        What `--fail-above` looks at: the `ratio` to the baseline of the same run, or the `cost`, which is larger too
        where the machine is slower today.
    across_machines
        Compare even though the runs were measured on different machines.
    across_methods
        Compare even though the runs were measured by different versions of the method.
    format
        `markdown` is for a pull request.
    json
        Print one JSON document instead of tables.
    """
    above = None if fail_above is None else read_share("--fail-above", fail_above, most=None)
    judged = [judged_run(run) for run in (one, other)]
    comparison = compare_judgements(*judged, across_machines=across_machines, across_methods=across_methods)
    found = () if above is None else comparison.increases(above, of)
    notes = [] if above is None else increase_lines(comparison, found, above, of)
    if above is not None and of == "ratio" and not found:
        notes += by_cost_lines(comparison, above)
    if json:
        console.print_json(document.of_comparison(comparison, found, above))
    elif format == "markdown":
        console.show_comparison_markdown(comparison, notes, headlines(judged))
    else:
        console.show_comparison(comparison, notes)
    if above is None:
        return ExitStatus.DONE
    if found or comparison.gone or comparison.unjudged(of):
        return ExitStatus.SOME_FAILED
    return ExitStatus.DONE if comparison.tellable(of, above) else ExitStatus.CANNOT_TELL


def report(run: Path, /, *, to: Path | None = None) -> ExitStatus:
    """Write a run's report again.

    tollbar report runs/2026-11-21-101500-digests
    tollbar report runs/2026-11-21-101500-digests --to digests.html

    Parameters
    ----------
    run
        A run's directory.
    to
        Where to; None: `report.html` in the run's directory.
    """
    path = reporting.write(judged_run(run), to)
    console.stdout().print(one_line(str(path)), markup=False, soft_wrap=True)
    return ExitStatus.DONE


def export(
    run: Path,
    /,
    *,
    per: Literal["chunk", "cell"] = "chunk",
    format: Literal["csv", "json", "markdown", "parquet"] = "csv",
    to: Path | None = None,
) -> ExitStatus:
    """Write out every chunk of a run as it was measured, or what was found of each cell.

    tollbar export runs/2026-11-21-101500-digests > chunks.csv
    tollbar export runs/2026-11-21-101500-digests --per cell --format markdown
    tollbar export runs/2026-11-21-101500-digests --format parquet --to chunks.parquet

    Parameters
    ----------
    run
        A run's directory.
    per
        A row for each chunk; or for each cell: its cost, ratio, interval, verdict and standing.
    format
        CSV, JSON and Markdown (of cells) go to standard output unless `--to` is given; Parquet needs that, and
        pyarrow.
    to
        The file to write.
    """
    if per == "cell":
        judged = judged_run(run)
        results.write(lambda: document.cell_rows(judged), format, to)
    else:
        results.export(results.read(run), format, to)
    return ExitStatus.DONE


def judged_run(run: Path) -> Judgement:
    """A run, judged. That is a look, which blocks that are added afterwards pay for."""
    judged = judging.judge(read_run(run))
    gathering.keep(judged)
    return judged
