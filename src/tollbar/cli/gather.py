"""`tollbar gather`: the tolls of many runs side by side."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import console, gathering, report, results
from tollbar.cli.answers import AsJson, Layout, check_is_writable, command_line, show_answer
from tollbar.document.decisions.gather import document, toll_rows
from tollbar.errors import ExitStatus
from tollbar.present.decisions.gather import gather_answer, gather_page


def gather(
    directory: Path,
    /,
    *directories: Path,
    output: Path | None = None,
    parquet: Path | None = None,
    across_methods: Annotated[bool, Parameter(negative="")] = False,
    markdown: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> ExitStatus:
    """Set the tolls of many runs side by side, by machine: runs of a fleet, or those that others sent.

    Ratios alone: times of two machines are not compared. What cannot be believed is refused, with the reason, and gives
    status 1.

    tollbar gather runs --output fleet.html
    tollbar gather here/runs 2026-11-23-101500-quick --markdown

    Parameters
    ----------
    directory
        A run's directory, or one with runs in it.
    directories
        More of them.
    output
        A file to write all of it to as one self-contained page; what it held before is gone.
    parquet
        A file to write a row for each toll of each run to; needs pyarrow.
    across_methods
        Take runs of each version of the method, and not only those of the newest.
    markdown
        Print Markdown, for a pull request.
    json
        Print one JSON document instead of tables.
    """
    layout = Layout(markdown=markdown, json=json)
    for option, file in (("--output", output), ("--parquet", parquet)):
        if file is not None:
            check_is_writable(option, file)
    gathered = gathering.gather(gathering.read([directory, *directories], across_methods=across_methods))
    show_answer(gather_answer(gathered, everything=markdown), lambda: document(gathered), layout)
    if output is not None:
        report.write_page(gather_page(gathered, shlex.join(command_line()), output), output)
        console.say(f"  page       {output}")
    if parquet is not None:
        results.write(lambda: toll_rows(gathered), "parquet", parquet)
        console.say(f"  rows       {parquet}")
    is_whole = not gathered.unusable and not any(run.refused for run in gathered.runs)
    return ExitStatus.DONE if is_whole and gathered.rows else ExitStatus.SOME_FAILED
