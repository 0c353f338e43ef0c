"""What to do with runs that are there: `judge`, `compare`, `report`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tollbar import console, results
from tollbar import judge as judging
from tollbar import report as reporting
from tollbar.cli.options import AsJson
from tollbar.cli.run import show, status_of
from tollbar.errors import ExitStatus
from tollbar.judge import Judgement
from tollbar.judge.comparison import compare as compare_judgements

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
    judged = _judged(run)
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
    across_machines: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> ExitStatus:
    """Set two runs' ratios side by side: do they come out the same?

    tollbar compare runs/2026-11-21-101500-digests runs/2026-11-22-090000-digests

    Parameters
    ----------
    one
        A run's directory.
    other
        Another run's directory.
    across_machines
        Compare even though the runs were measured on different machines.
    json
        Print one JSON document instead of tables.
    """
    judged = [_judged(run) for run in (one, other)]
    comparison = compare_judgements(*judged, across_machines=across_machines)
    if json:
        console.print_json(console.comparison_document(comparison))
    else:
        console.show_comparison(comparison)
    return ExitStatus.DONE


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
    path = to or run / "report.html"
    reporting.write(_judged(run), path)
    console.stdout().print(str(path), markup=False, soft_wrap=True)
    return ExitStatus.DONE


def export(run: Path, /, *, format: Literal["csv", "json", "parquet"] = "csv", to: Path | None = None) -> ExitStatus:
    """Write out every chunk of a run, as it was measured.

    tollbar export runs/2026-11-21-101500-digests > chunks.csv
    tollbar export runs/2026-11-21-101500-digests --format parquet --to chunks.parquet

    Parameters
    ----------
    run
        A run's directory.
    format
        CSV and JSON go to standard output unless `--to` is given; Parquet needs `--to`, and pyarrow.
    to
        The file to write.
    """
    results.export(results.read(run), format, to)
    return ExitStatus.DONE


def _judged(run: Path) -> Judgement:
    """A run, judged. That is a look, which blocks that are added afterwards pay for."""
    not_noted = results.look(run)
    if not_noted is not None:
        console.say(f"warning: {not_noted}", "yellow")
    return judging.judge(results.read(run))
